"""Explicit Semantic Analysis: vectors as by hand, and corpora and texts of any kind."""

import gzip
import json
import math
import os
import pickle
import re
import shutil
from collections import Counter

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ulr import refine
from ulr.encoders import encode_texts
from ulr.encoders.esa import EsaEncoder, read_articles, words_of
from ulr.errors import EncoderError, InputError

ARTICLES = [
    ("Football", "the team scored a late goal and the team won the match before the crowd"),
    ("Tennis", "a player won the match with a long serve while the crowd watched the player"),
    ("Bank", "a bank lends money at interest and the money of the bank earns interest"),
    ("Market", "shares fell on the market as money left and interest rates rose"),
    ("Rain", "rain fell all day and the clouds brought more rain and wind from the sea"),
    ("Sea", "the sea is salt water and wind drives waves over the sea before the coast"),
    ("Stub", "too short"),
]
TEXTS = ["the team won a match", "money money interest", "Rain, wind!", "sea goal bank unheard"]


def write(path, articles, names=("title", "text")):
    rows = [dict(zip(names, article, strict=True)) for article in articles]
    if path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(rows), path, row_group_size=2)
    else:
        lines = "".join(json.dumps(row) + "\n" for row in rows).encode()
        path.write_bytes(gzip.compress(lines) if path.suffix == ".gz" else lines)
    return path


@pytest.fixture
def corpus(tmp_path):
    return write(tmp_path / "concepts.jsonl", ARTICLES)


@pytest.fixture
def encoder(corpus):
    return EsaEncoder(corpus, min_words=5)


def strongest(weights, window=100, drop=0.05):
    """A term's concepts as the paper keeps them, one window after the other."""
    order = sorted(np.flatnonzero(weights), key=lambda concept: (-weights[concept], concept))
    for start in range(len(order) - window + 1):
        first, last = weights[order[start]], weights[order[start + window - 1]]
        if first - last < drop * weights[order[0]]:
            order = order[: start + window]
            break
    kept = np.zeros_like(weights)
    kept[order] = weights[order]
    return kept


def by_hand(articles, texts, stop_words=(), per_text=1000):
    """Vectors of texts, with dense arrays and plain loops."""
    counts = [Counter(re.findall(r"\w\w+", f"{a} {b}".lower())) for a, b in articles]
    n = len(counts)
    spread = Counter(word for count in counts for word in count if word not in stop_words)
    idf = {word: math.log(n / df) for word, df in spread.items() if 2 <= df < n}
    concepts = np.zeros((len(idf), n))
    for j, count in enumerate(counts):
        for i, word in enumerate(idf):
            if count[word]:
                concepts[i, j] = (1 + math.log(count[word])) * idf[word]
    concepts /= np.linalg.norm(concepts, axis=0)
    concepts = np.stack([strongest(row) for row in concepts])
    vectors = np.zeros((len(texts), n))
    for k, text in enumerate(texts):
        count = Counter(re.findall(r"\w\w+", text.lower()))
        for i, word in enumerate(idf):
            if count[word]:
                vectors[k] += (1 + math.log(count[word])) * idf[word] * concepts[i]
        vectors[k][vectors[k] < np.sort(vectors[k])[-per_text:][0]] = 0
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def test_vectors_are_those_computed_by_hand(encoder):
    expected = by_hand(ARTICLES[:6], TEXTS, {"the", "all", "and", "before", "with", "on"})
    found = encoder.encode(TEXTS)
    assert found.dtype == np.float32
    assert found.shape == (4, encoder.n_dims) == (4, 6)
    np.testing.assert_allclose(found, expected, atol=1e-6)


@pytest.fixture(scope="module")
def many(tmp_path_factory):
    """1,500 articles of 60 words: terms of many concepts, texts of more than 1,000."""
    random = np.random.default_rng(5)
    words = [f"word{i}" for i in range(60)]
    chance = 1 / np.arange(3, 63)
    drawn = random.choice(60, size=(1500, 60), p=chance / chance.sum())
    articles = [(f"Concept {i}", " ".join(words[w] for w in own)) for i, own in enumerate(drawn)]
    return articles, write(tmp_path_factory.mktemp("many") / "many.jsonl", articles)


def test_terms_and_texts_keep_their_strongest_concepts(many):
    articles, path = many
    texts = ["word3", "word20 word20 word41", " ".join(f"word{i}" for i in range(60))]
    encoder = EsaEncoder(path)
    found = encoder.encode(texts)
    np.testing.assert_allclose(found, by_hand(articles, texts), atol=1e-6)
    counts = (found > 0).sum(axis=1)
    assert 100 <= counts[0] < sum("word3 " in text for _, text in articles)
    assert counts[2] == 1000


def test_strongest_concepts_are_named(encoder):
    names = [title for title, _ in encoder.strongest_concepts("interest on money", most=2)]
    assert names == ["Bank", "Market"]
    strengths = [strength for _, strength in encoder.strongest_concepts("a match of tennis")]
    assert strengths == sorted(strengths, reverse=True)
    assert encoder.strongest_concepts("unheard") == []


def test_short_articles_are_left_out_and_counted(corpus, encoder):
    assert encoder.n_concepts == 6
    assert encoder.articles_left_out == 1
    everything = EsaEncoder(corpus, min_words=1)
    assert everything.n_concepts == 7
    assert everything.fingerprint != encoder.fingerprint


@pytest.mark.parametrize("name", ["concepts.parquet", "concepts.jsonl.gz", "no-ending"])
def test_every_format_gives_the_same_vectors(tmp_path, encoder, name):
    other = EsaEncoder(write(tmp_path / name, ARTICLES), min_words=5)
    np.testing.assert_array_equal(other.encode(TEXTS), encoder.encode(TEXTS))
    assert other.strongest_concepts("wind") == encoder.strongest_concepts("wind")


@pytest.mark.parametrize("names", [("name", "abstract"), ("Title", "TEXT"), ("concept", "body")])
@pytest.mark.parametrize("file", ["other.jsonl", "other.parquet"])
def test_columns_go_by_their_usual_names(tmp_path, encoder, names, file):
    other = EsaEncoder(write(tmp_path / file, ARTICLES, names), min_words=5)
    np.testing.assert_array_equal(other.encode(TEXTS), encoder.encode(TEXTS))


def test_articles_are_reported_as_they_are_read(many, tmp_path):
    read = []
    path = shutil.copy(many[1], tmp_path)
    EsaEncoder(path, on_progress=lambda *told: read.append(told))
    assert read == [(1500, None)]


def test_changed_corpus_or_setting_builds_again(corpus, encoder):
    write(corpus, [*ARTICLES[:5], ("Sea", ARTICLES[5][1].replace("wind", "wand"))])
    os.utime(corpus, ns=(1, 1))
    changed = EsaEncoder(corpus, min_words=5)
    assert changed.fingerprint != encoder.fingerprint
    assert not changed.encode(["wind"]).any()
    fewer = EsaEncoder(corpus, min_words=5, max_dims=4)
    assert fewer.n_dims == 4
    assert fewer.fingerprint != changed.fingerprint


TOPICS = 12


@pytest.fixture(scope="module")
def topics(tmp_path_factory):
    """720 articles and 240 texts of twelve topics with words of their own and common ones."""
    random = np.random.default_rng(3)

    def text(topic, n_words):
        own = random.integers(0, 25, n_words)
        common = random.random(n_words) < 0.4
        return " ".join(
            f"common{word}" if also else f"topic{topic}word{word}"
            for word, also in zip(own, common, strict=True)
        )

    articles = [(f"Concept {i}", text(i % TOPICS, 60)) for i in range(720)]
    texts = [text(i % TOPICS, 12) for i in range(240)]
    labels = [f"topic{topic}word{word}" for topic in range(TOPICS) for word in (0, 1)]
    return write(tmp_path_factory.mktemp("topics") / "topics.jsonl", articles), texts, labels


def test_fewer_dimensions_leave_the_nearest_label(topics, tmp_path):
    path, texts, labels = topics
    exact = EsaEncoder(path)
    fewer = EsaEncoder(shutil.copy(path, tmp_path), max_dims=64)
    assert (exact.n_dims, fewer.n_dims) == (720, 64)

    def nearest_topic(encoder):
        return (encoder.encode(texts) @ encoder.encode(labels).T).argmax(axis=1) // 2

    assert (nearest_topic(exact) == nearest_topic(fewer)).mean() > 0.95


def test_concepts_that_are_like_no_other_still_have_a_dimension(tmp_path):
    pairs = [(f"t{i}", f"alpha{i // 2} beta{i // 2} gamma{i // 2}") for i in range(40)]
    path = write(tmp_path / "pairs.jsonl", pairs)
    encoder = EsaEncoder(path, min_words=1, max_dims=4)
    vectors = encoder.encode([text for _, text in pairs])
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, rtol=1e-6)
    assert (vectors > 0).any(axis=0).all()


def test_refinement_corrects_what_the_labels_got_wrong(topics):
    path, texts, labels = topics
    encoder = EsaEncoder(path)
    truth = np.arange(len(texts)) % TOPICS
    result = refine(encode_texts(encoder, texts), encoder.encode(labels[::2]))
    assert (result.predictions == truth).mean() > 0.95


def test_texts_without_a_known_word_are_zero_and_counted(encoder):
    vectors = encoder.encode(["", "unheard of", "the and", "wind", "!?", "\ud83d"])
    assert not vectors[[0, 1, 2, 4, 5]].any()
    assert vectors[3].any()
    assert encoder.unknown_texts == 5
    encoder.encode(["wind", "nothing known"])
    assert encoder.unknown_texts == 6
    assert encoder.encode([]).shape == (0, 6)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Snow-white, SNOW_white; it's 3 o'clock!", "snow white snow white it clock"),
        ("Straße ÉTÉ e\u0301te\u0301 ﬁne", "straße été été fine"),
        ("Привет, мир! 日本 １２", "привет мир 日本 12"),
        ("cut \ud83d off \ud83d\ude00 😀", "cut off"),
        ("a b c", ""),
        ("", ""),
    ],
)
def test_words_are_runs_of_letters_and_digits_of_any_script(text, words):
    assert words_of(text) == words.split()


def test_articles_in_any_script_are_concepts(tmp_path):
    articles = [
        ("Море", "море и ветер над волнами"),
        ("Парус", "ветер и парус в море"),
        ("Café", "du café crème et du thé"),
        ("Thé", "du thé vert sans café"),
    ]
    encoder = EsaEncoder(write(tmp_path / "a.jsonl", articles), min_words=1)
    vectors = encoder.encode(["ВЕТЕР", "cafe\u0301"])
    np.testing.assert_array_equal(vectors > 0, [[1, 1, 0, 0], [0, 0, 1, 1]])
    assert encoder.strongest_concepts("café")[0][0] in ("Café", "Thé")


def test_pickle_refers_to_the_corpus(encoder, corpus):
    packed = pickle.dumps(encoder)
    assert len(packed) < 1000
    again = pickle.loads(packed)
    np.testing.assert_array_equal(again.encode(TEXTS), encoder.encode(TEXTS))
    assert again.fingerprint == encoder.fingerprint
    assert again.spec == f"esa:{corpus}"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"title": "a", "words": "b"}', "no column for the text of an article, one of text, "),
        ('{"title": "a", "words": "b"}', "it has: title, words. Rename one."),
        ('{"heading": "a", "text": "b"}', "no column for the title of an article, one of title,"),
        ('{"title": "a", "text": "b"}\n{"title": ', "line 2 is not JSON: Expecting value."),
        ('["a", "b"]', 'line 1 must be a JSON object; got ["a", "b"].'),
        ('{"title": "a", "text": "b"}', "needs at least 2 articles of at least 50 words; it has 0"),
        (b"PAR1 and no more", "bad.jsonl is not a jsonl file but looks like .parquet"),
    ],
)
def test_corpus_that_cannot_be_used_is_refused_by_line(tmp_path, content, message):
    path = tmp_path / "bad.jsonl"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(InputError, match=re.escape(message)):
        EsaEncoder(path)
    assert [each.name for each in tmp_path.iterdir()] == ["bad.jsonl"]


def test_missing_values_and_blank_lines_are_passed_over(tmp_path):
    path = write(tmp_path / "a.jsonl", [("a", "one"), (None, None), ("b", "")])
    path.write_text("\ufeff" + path.read_text().replace("\n", "\n\n"), encoding="utf-8")
    assert list(read_articles(path)) == [("a", "one"), ("", ""), ("b", "")]


def test_titles_may_all_be_empty(tmp_path):
    path = write(tmp_path / "a.jsonl", [(None, text) for _, text in ARTICLES])
    encoder = EsaEncoder(path, min_words=5)
    assert {title for title, _ in encoder.strongest_concepts("wind")} == {""}


def test_corpus_that_is_missing_or_shares_no_word_is_refused(tmp_path):
    for path in (tmp_path / "none.jsonl", tmp_path):
        with pytest.raises(EncoderError, match="must be a file of articles"):
            EsaEncoder(path)
    path = write(tmp_path / "a.jsonl", [("one", "two three"), ("four", "five six")])
    with pytest.raises(EncoderError, match=r"no two articles of .*a\.jsonl share a word"):
        EsaEncoder(path, min_words=1)


@pytest.mark.parametrize(("setting", "value"), [("min_words", 0), ("max_dims", 1)])
def test_settings_out_of_range_are_refused(corpus, setting, value):
    with pytest.raises(EncoderError, match=f"{setting}.* at least .*got .*{value}"):
        EsaEncoder(corpus, **{setting: value})
