"""Explicit Semantic Analysis: vectors as by hand, an index that is whole, and texts of any kind."""

import gzip
import json
import math
import os
import pickle
import re
import shutil
import subprocess
import sys
from collections import Counter
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ulr import refine
from ulr.encoders import encode_texts
from ulr.encoders.concepts import read_articles, words_of
from ulr.encoders.esa import EsaEncoder
from ulr.errors import EncoderError

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
    return EsaEncoder.from_file(corpus, min_words=5)


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


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


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
    encoder = EsaEncoder.from_file(path)
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
    everything = EsaEncoder.from_file(corpus, min_words=1)
    assert everything.n_concepts == 7
    assert everything.fingerprint != encoder.fingerprint


@pytest.mark.parametrize("name", ["concepts.parquet", "concepts.jsonl.gz", "no-ending"])
def test_every_format_gives_the_same_vectors(tmp_path, encoder, name):
    other = EsaEncoder.from_file(write(tmp_path / name, ARTICLES), min_words=5)
    np.testing.assert_array_equal(other.encode(TEXTS), encoder.encode(TEXTS))
    assert other.strongest_concepts("wind") == encoder.strongest_concepts("wind")


@pytest.mark.parametrize("names", [("name", "abstract"), ("Title", "TEXT"), ("concept", "body")])
@pytest.mark.parametrize("file", ["other.jsonl", "other.parquet"])
def test_columns_go_by_their_usual_names(tmp_path, encoder, names, file):
    other = EsaEncoder.from_file(write(tmp_path / file, ARTICLES, names), min_words=5)
    np.testing.assert_array_equal(other.encode(TEXTS), encoder.encode(TEXTS))


def test_index_is_the_same_bytes_when_built_twice(corpus, encoder):
    folder = corpus.with_name("concepts.jsonl.ulr")
    first = contents(folder)
    shutil.rmtree(folder)
    EsaEncoder.from_file(corpus, min_words=5)
    assert contents(folder) == first
    assert len(first) == 11


def test_index_is_opened_in_place_and_not_built_again(corpus, encoder):
    read = []
    again = EsaEncoder.from_file(corpus, min_words=5, on_progress=lambda *told: read.append(told))
    assert read == []
    np.testing.assert_array_equal(again.encode(TEXTS), encoder.encode(TEXTS))
    assert again.fingerprint == encoder.fingerprint
    matrix = again._by_term
    assert not any(part.flags.writeable for part in (matrix.data, matrix.indices, matrix.indptr))


def test_articles_are_reported_as_they_are_read(many, tmp_path):
    read = []
    path = shutil.copy(many[1], tmp_path)
    EsaEncoder.from_file(path, on_progress=lambda *told: read.append(told))
    assert read == [(1024, None), (1500, None)]


def test_copy_or_touch_of_a_corpus_does_not_build_again(corpus, encoder):
    os.utime(corpus, ns=(1, 1))
    read = []
    EsaEncoder.from_file(corpus, min_words=5, on_progress=lambda *told: read.append(told))
    assert read == []


def test_changed_corpus_or_setting_builds_again(corpus, encoder):
    write(corpus, [*ARTICLES[:5], ("Sea", ARTICLES[5][1].replace("wind", "wand"))])
    os.utime(corpus, ns=(1, 1))
    changed = EsaEncoder.from_file(corpus, min_words=5)
    assert changed.fingerprint != encoder.fingerprint
    assert not changed.encode(["wind"]).any()
    fewer = EsaEncoder.from_file(corpus, min_words=5, max_dims=4)
    assert fewer.n_dims == 4
    assert fewer.fingerprint != changed.fingerprint


def break_byte(folder):
    path = folder / "weights.npy"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)


DAMAGES = {
    "a byte": break_byte,
    "cut": lambda folder: os.truncate(folder / "concepts.npy", 100),
    "missing file": lambda folder: (folder / "idf.npy").unlink(),
    "missing description": lambda folder: (folder / "index.json").unlink(),
    "no JSON": lambda folder: (folder / "index.json").write_bytes(b"\xff{"),
    "other JSON": lambda folder: (folder / "index.json").write_text("[1]"),
    "other format": lambda folder: (folder / "index.json").write_text('{"format": "ulr esa 0"}'),
    "no files": lambda folder: [path.unlink() for path in folder.iterdir()],
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_index_is_built_again(corpus, encoder, damage):
    folder = corpus.with_name("concepts.jsonl.ulr")
    whole, expected = contents(folder), encoder.encode(TEXTS)
    DAMAGES[damage](folder)
    again = EsaEncoder.from_file(corpus, min_words=5)
    np.testing.assert_array_equal(again.encode(TEXTS), expected)
    assert contents(folder) == whole


def test_what_is_no_index_is_never_replaced(corpus):
    place = corpus.with_name("concepts.jsonl.ulr")
    place.mkdir()
    (place / "letters.txt").write_text("dear")
    with pytest.raises(EncoderError, match=r"\.ulr is in the place of the index of concepts\.json"):
        EsaEncoder.from_file(corpus, min_words=5)
    assert contents(place) == {"letters.txt": b"dear"}
    shutil.rmtree(place)
    place.write_text("a file")
    with pytest.raises(EncoderError, match="but is none; move it away"):
        EsaEncoder.from_file(corpus, min_words=5)


def run(code, corpus, **environment):
    code = f"from ulr.encoders.esa import EsaEncoder\nPATH = {str(corpus)!r}\n{code}"
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=os.environ | environment
    )


def test_killed_build_leaves_nothing(corpus):
    kill = "import os\nEsaEncoder.from_file(PATH, on_progress=lambda *_: os.kill(os.getpid(), 9))"
    assert run(kill, corpus).returncode == -9
    assert [path.name for path in corpus.parent.iterdir()] == ["concepts.jsonl"]


def test_full_disk_leaves_nothing_and_is_told(corpus, tmp_path):
    full = (
        "import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, (300, 300))\n"
        "try:\n    EsaEncoder.from_file(PATH, min_words=5)\nexcept ValueError as error:\n"
        "    print(error)"
    )
    result = run(full, corpus, XDG_CACHE_HOME=str(tmp_path / "cache"))
    assert re.search(r"cannot be kept in .*\.ulr \(.+\) nor in .*cache.* \(.+\)\.", result.stdout)
    left = {path.name for path in tmp_path.rglob("*")}
    assert left == {"concepts.jsonl", "cache", "ulr", "esa"}


def test_index_goes_to_the_cache_where_it_cannot_be_beside(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    # With .ulr after it, the name is longer than a file system takes.
    corpus = write(tmp_path / ("c" * 245 + ".jsonl"), ARTICLES)
    encoder = EsaEncoder.from_file(corpus, min_words=5)
    assert len(list((tmp_path / "cache" / "ulr" / "esa").iterdir())) == 1
    read = []
    again = EsaEncoder.from_file(corpus, min_words=5, on_progress=lambda *told: read.append(told))
    assert read == []
    np.testing.assert_array_equal(again.encode(TEXTS), encoder.encode(TEXTS))


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
    exact = EsaEncoder.from_file(path)
    fewer = EsaEncoder.from_file(shutil.copy(path, tmp_path), max_dims=64)
    assert (exact.n_dims, fewer.n_dims) == (720, 64)

    def nearest_topic(encoder):
        return (encoder.encode(texts) @ encoder.encode(labels).T).argmax(axis=1) // 2

    assert (nearest_topic(exact) == nearest_topic(fewer)).mean() > 0.95


def test_concepts_that_share_a_dimension_are_summed_over_the_root_of_their_number(topics, tmp_path):
    path, texts, _ = topics
    exact = EsaEncoder.from_file(path)
    fewer = EsaEncoder.from_file(shutil.copy(path, tmp_path), max_dims=64)
    groups = np.load(tmp_path / "topics.jsonl.ulr" / "groups.npy")
    assert sorted(set(groups)) == list(range(64))
    np.testing.assert_array_equal(groups[np.arange(64) * 720 // 64], np.arange(64))
    sums = np.zeros((len(texts), 64))
    np.add.at(sums.T, groups, exact.encode(texts).T.astype(float))
    sums /= np.sqrt(np.bincount(groups))
    sums /= np.linalg.norm(sums, axis=1, keepdims=True)
    np.testing.assert_allclose(fewer.encode(texts), sums, atol=1e-6)


def test_concepts_share_the_dimension_of_the_leader_they_are_most_like(topics, tmp_path):
    path = shutil.copy(topics[0], tmp_path)
    EsaEncoder.from_file(path, max_dims=64)
    folder = tmp_path / "topics.jsonl.ulr"
    names = ("starts", "concepts", "weights", "groups")
    starts, concepts, weights, groups = (np.load(folder / f"{name}.npy") for name in names)
    by_concept = np.zeros((720, len(starts) - 1))
    for term, (start, end) in enumerate(pairwise(starts)):
        by_concept[concepts[start:end], term] = weights[start:end]
    leaders = by_concept[np.arange(64) * 720 // 64]
    leaders /= np.linalg.norm(leaders, axis=1, keepdims=True)
    assert ((by_concept @ leaders.T).argmax(axis=1) == groups).mean() > 0.99


def test_concepts_that_are_like_no_other_still_have_a_dimension(tmp_path):
    pairs = [(f"t{i}", f"alpha{i // 2} beta{i // 2} gamma{i // 2}") for i in range(40)]
    path = write(tmp_path / "pairs.jsonl", pairs)
    encoder = EsaEncoder.from_file(path, min_words=1, max_dims=4)
    vectors = encoder.encode([text for _, text in pairs])
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, rtol=1e-6)
    assert (vectors > 0).any(axis=0).all()


def test_refinement_corrects_what_the_labels_got_wrong(topics):
    path, texts, labels = topics
    encoder = EsaEncoder.from_file(path)
    truth = np.arange(len(texts)) % TOPICS
    result = refine(encode_texts(encoder, texts), encoder.encode(labels[::2]))
    assert (result.predictions == truth).mean() > 0.95


def test_company_does_not_matter(many):
    articles, path = many
    encoder = EsaEncoder.from_file(path)
    texts = [text[: 9 + i % 200] for i, (_, text) in enumerate(articles[:600])]
    together = encoder.encode(texts)
    for place in (0, 255, 256, 599):
        np.testing.assert_array_equal(encoder.encode([texts[place]])[0], together[place])


def test_ten_thousand_labels_are_encoded_each_as_itself(topics):
    path, _, _ = topics
    encoder = EsaEncoder.from_file(path)
    words = [f"topic{topic}word{word}" for topic in range(TOPICS) for word in range(25)]
    labels = [f"{words[i % 300]} {words[(i + 1 + i // 300) % 300]}" for i in range(10_000)]
    vectors = encoder.encode(labels)
    assert vectors.shape == (10_000, 720)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, rtol=1e-5)
    places = [0, 4999, 9999]
    likeness = encoder.encode([labels[place] for place in places]) @ vectors.T
    np.testing.assert_array_equal(likeness.argmax(axis=1), places)
    assert encoder.unknown_texts == 0


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
        ("Café \ud83d", "du café crème et du thé"),
        ("Thé", "du thé vert sans café"),
    ]
    encoder = EsaEncoder.from_file(write(tmp_path / "a.jsonl", articles), min_words=1)
    vectors = encoder.encode(["ВЕТЕР", "cafe\u0301"])
    np.testing.assert_array_equal(vectors > 0, [[1, 1, 0, 0], [0, 0, 1, 1]])
    assert encoder.strongest_concepts("café")[0][0] in ("Café \ufffd", "Thé")


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
        ('{"title": "a", "words": "b"}', "line 1 has no column for the text of an article, one of"),
        ('{"title": "a", "words": "b"}', "it has: title, words. Rename one."),
        ('{"heading": "a", "text": "b"}', "line 1 has no column for the title of an article, one"),
        ('{"title": "a", "text": "b"}\n\n{"title": "a"}', "line 3 has no 'text'; it has: title."),
        ('{"title": "a", "text": "b"}\n{"title": ', "line 2 is not JSON: Expecting value."),
        ('{"title": "a", "text": 5}', "line 1: 'text' must be a text; got 5."),
        ('["a", "b"]', 'line 1 must be a JSON object; got ["a", "b"].'),
        (b'{"title": "a", "text": "b"}\n{"title": "\xe9"}', "line 2 is not UTF-8: "),
        ("", "has 0 articles of at least 50 words (and 0 shorter ones); at least 2 are needed."),
        ('{"title": "a", "text": null}', "has 0 articles of at least 50 words (and 1 shorter ones"),
        (gzip.compress(b'{"title": "a"}' * 99)[:-9], "bad.jsonl is a damaged gzip file: "),
        (b"PAR1 and no more", "bad.jsonl cannot be read as Parquet: "),
    ],
)
def test_corpus_that_cannot_be_used_is_refused_by_line(tmp_path, content, message):
    path = tmp_path / "bad.jsonl"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(EncoderError, match=re.escape(message)):
        EsaEncoder.from_file(path)
    assert [each.name for each in tmp_path.iterdir()] == ["bad.jsonl"]


def test_parquet_that_cannot_be_used_is_refused_by_row(tmp_path):
    path = write(tmp_path / "a.parquet", [("a", "b")], ("title", "words"))
    with pytest.raises(
        EncoderError, match=r"a\.parquet has no column for the text .* title, words"
    ):
        EsaEncoder.from_file(path)
    write(path, [("a", 1), ("b", 2)])
    with pytest.raises(EncoderError, match=r"a\.parquet row 1: 'text' must be a text; got 1\."):
        EsaEncoder.from_file(path)


def test_missing_values_and_blank_lines_are_passed_over(tmp_path):
    path = write(tmp_path / "a.jsonl", [("a", "one"), (None, None), ("b", "")])
    path.write_text("\ufeff" + path.read_text().replace("\n", "\n\n"), encoding="utf-8")
    assert list(read_articles(path)) == [("a", "one"), ("", ""), ("b", "")]


def test_titles_may_all_be_empty(tmp_path):
    path = write(tmp_path / "a.jsonl", [(None, text) for _, text in ARTICLES])
    encoder = EsaEncoder.from_file(path, min_words=5)
    assert {title for title, _ in encoder.strongest_concepts("wind")} == {""}


def test_corpus_that_is_not_there_or_shares_no_word_is_refused(tmp_path):
    with pytest.raises(EncoderError, match=r"none\.jsonl does not exist; a JSONL or Parquet file"):
        EsaEncoder.from_file(tmp_path / "none.jsonl")
    with pytest.raises(EncoderError, match="is a folder; a JSONL or Parquet file of articles"):
        EsaEncoder.from_file(tmp_path)
    path = write(tmp_path / "a.jsonl", [("one", "two three"), ("four", "five six")])
    with pytest.raises(EncoderError, match=r"no two articles of .*a\.jsonl share a word"):
        EsaEncoder.from_file(path, min_words=1)


@pytest.mark.parametrize(("setting", "value"), [("min_words", 0), ("max_dims", 1)])
def test_settings_out_of_range_are_refused(corpus, setting, value):
    with pytest.raises(EncoderError, match=f"{setting}.* at least .*got .*{value}"):
        EsaEncoder.from_file(corpus, **{setting: value})
