"""Explicit Semantic Analysis: vectors as by hand, and corpora and texts of any kind."""

import json
import math
import re
from collections import Counter

import numpy as np
import pytest

from reproduction.datasets import ReproductionError
from reproduction.esa import EsaEncoder, words_of
from ulr import refine
from ulr.encoders import encode_texts

ARTICLES = [
    ("Football", "the team scored a late goal and the team won the match before the crowd"),
    ("Tennis", "a player won the match with a long serve while the crowd watched"),
    ("Bank", "a bank lends money at interest and the money of the bank earns interest"),
    ("Market", "shares fell on the market as money left and interest rates rose"),
    ("Rain", "rain fell all day and the clouds brought more rain and wind from the sea"),
    ("Sea", "the sea is salt water and wind drives waves over the sea before the coast"),
    ("Stub", "too short"),
]
TEXTS = ["the team won a match", "money money interest", "Rain, wind!", "sea goal bank unheard"]


def write(path, articles):
    rows = ({"title": title, "text": text} for title, text in articles)
    path.write_text("".join(json.dumps(row) + "\n\n" for row in rows))
    return path


def by_hand(articles, texts, stop_words=(), per_text=1000, window=100, drop=0.05):
    """Vectors of texts, with dense arrays and plain loops."""
    counts = [Counter(re.findall(r"\w\w+", f"{a} {b}".lower())) for a, b in articles]
    n = len(counts)
    spread = Counter(word for count in counts for word in count if word not in stop_words)
    idf = {word: math.log(n / df) for word, df in spread.items() if 2 <= df < n}

    def weights(count):
        return [count[w] and (1 + math.log(count[w])) * idf[w] for w in idf]

    concepts = np.array([weights(count) for count in counts]).T
    concepts /= np.linalg.norm(concepts, axis=0)
    for row in concepts:  # a term keeps its concepts up to the first flat window, as in the paper
        order = sorted(np.flatnonzero(row), key=lambda concept: (-row[concept], concept))
        for start in range(len(order) - window + 1):
            if row[order[start]] - row[order[start + window - 1]] < drop * row[order[0]]:
                row[order[start + window :]] = 0
                break
    counts = [Counter(re.findall(r"\w\w+", text.lower())) for text in texts]
    vectors = np.array([weights(count) for count in counts]) @ concepts
    for vector in vectors:
        vector[vector < np.sort(vector)[-per_text:][0]] = 0
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


@pytest.fixture
def encoder(tmp_path):
    return EsaEncoder(write(tmp_path / "concepts.jsonl", ARTICLES), min_words=5)


def test_vectors_are_those_computed_by_hand_over_articles_that_are_long_enough(encoder):
    expected = by_hand(ARTICLES[:6], TEXTS, {"the", "all", "and", "before", "with", "on"})
    found = encoder.encode(TEXTS)
    assert found.dtype == np.float32
    assert found.shape == (4, encoder.n_concepts) == (4, 6)
    np.testing.assert_allclose(found, expected, atol=1e-6)
    known = encoder.encode(["", "unheard of", "the and", "wind", "!?", "\ud83d"]).any(axis=1)
    assert known.tolist() == [False, False, False, True, False, False]


def test_terms_and_texts_keep_their_strongest_concepts(tmp_path):
    random, chance = np.random.default_rng(5), 1 / np.arange(3, 63)
    drawn = random.choice(60, size=(1500, 60), p=chance / chance.sum())
    articles = [(f"Concept {i}", " ".join(f"word{w}" for w in own)) for i, own in enumerate(drawn)]
    texts = ["word3", "word20 word20 word41", " ".join(f"word{i}" for i in range(60))]
    found = EsaEncoder(write(tmp_path / "many.jsonl", articles)).encode(texts)
    np.testing.assert_allclose(found, by_hand(articles, texts), atol=1e-6)
    counts = (found > 0).sum(axis=1)
    assert 100 <= counts[0] < sum("word3 " in text for _, text in articles)
    assert counts[2] == 1000


def test_fewer_dimensions_leave_the_nearest_label_and_refinement_corrects_it(tmp_path):
    random, n_topics = np.random.default_rng(3), 12

    def text(topic, n_words):
        """Words of a topic, and some that all topics share."""
        kinds = np.where(random.random(n_words) < 0.4, "common", f"topic{topic}")
        return " ".join(f"{kind}word{random.integers(25)}" for kind in kinds)

    articles = [(f"Concept {i}", text(i % n_topics, 60)) for i in range(720)]
    texts = [text(i % n_topics, 12) for i in range(240)]
    labels = [f"topic{topic}word0 topic{topic}word1" for topic in range(n_topics)]
    path = write(tmp_path / "topics.jsonl", articles)
    results = [
        refine(encode_texts(each, texts), each.encode(labels), method="ulr")
        for each in (EsaEncoder(path), EsaEncoder(path, max_dims=64))
    ]
    assert [result.centroids.shape[1] for result in results] == [720, 64]
    assert (results[0].unrefined == results[1].unrefined).mean() > 0.9
    assert (results[0].predictions == np.arange(len(texts)) % n_topics).mean() > 0.95


def test_words_are_runs_of_letters_and_digits_of_any_script():
    text = "Snow-white, SNOW_white; it's 3 ﬁne e\u0301te\u0301 Привет, 日本 １２ cut \ud83d off 😀"
    words = "snow white snow white it fine été привет 日本 12 cut off"
    assert words_of(text) == words.split()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"title": "a", "words": "b"}', "line 1 has no 'text'; it has: title, words"),
        ('{"title": "a", "text": "b"}\n{"title": ', "line 2 is not JSON: Expecting value."),
        ('["a", "b"]', 'line 1 must be a JSON object; got ["a", "b"].'),
        ('{"title": "a", "text": null}', "needs at least 2 articles of at least 2 words; it has 0"),
        ('{"title": "aa", "text": "two"}\n{"title": "bb", "text": "six"}', "no two articles of"),
    ],
)
def test_a_corpus_that_cannot_be_used_is_refused(tmp_path, content, message):
    path = tmp_path / "bad.jsonl"
    path.write_text(content)
    with pytest.raises(ReproductionError, match=re.escape(message)):
        EsaEncoder(path, min_words=2)
    with pytest.raises(ReproductionError, match="must be a file of articles"):
        EsaEncoder(tmp_path / "none.jsonl")
