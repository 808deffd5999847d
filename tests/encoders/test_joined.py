"""Several encoders as one: cosines are weighted means; specs, languages and vocabularies."""

import numpy as np
import pytest

from ulr import DatalessClassifier, load_encoder
from ulr.encoders import JoinedEncoder
from ulr.encoders.cache import inspect_cache
from ulr.errors import EncoderError

TEXTS = ["The striker scored twice", "Shares fell", "", "A late goal won the cup"]


class Letters:
    """How often each letter occurs."""

    def encode(self, texts, /):
        return np.array([[t.count(chr(97 + i)) for i in range(26)] for t in texts], dtype=float)


def cosines(vectors):
    lengths = np.linalg.norm(vectors, axis=1)
    return vectors @ vectors.T / np.maximum(np.outer(lengths, lengths), 1e-12)


def test_cosines_are_the_weighted_mean_of_the_encoders_cosines():
    static, letters = load_encoder("static"), Letters()
    joined = JoinedEncoder([static, letters], [1.0, 3.0])
    texts = [text for text in TEXTS if text]
    expected = 0.25 * cosines(static.encode(texts)) + 0.75 * cosines(letters.encode(texts))
    np.testing.assert_allclose(cosines(joined.encode(texts)), expected, atol=1e-6)


def test_an_empty_text_is_zero_and_others_have_length_one():
    lengths = np.linalg.norm(
        JoinedEncoder([load_encoder("static"), Letters()]).encode(TEXTS), axis=1
    )
    np.testing.assert_allclose(lengths, [1, 1, 0, 1], atol=1e-6)


def test_languages_are_those_of_all_parts_and_words_those_of_any():
    static, letters = load_encoder("static"), Letters()
    both = JoinedEncoder([letters, Letters()])
    assert (both.languages, both.knows_word) == (None, None)
    joined = JoinedEncoder([static, letters])
    assert joined.languages is None
    assert [joined.knows_word(word) for word in ("sports", "qzjx")] == [True, False]
    letters.languages, letters.knows_word = ("de", "en"), lambda word: word == "qzjx"
    assert joined.languages == ("en",)
    assert [joined.knows_word(word) for word in ("sports", "qzjx", "zzqq")] == [True, True, False]


def test_languages_and_words_are_known_behind_a_cache(tmp_path):
    cached = load_encoder("static+static").cached(tmp_path)
    assert cached.languages == ("en",)
    assert [cached.knows_word(word) for word in ("sports", "qzjx")] == [True, False]


def test_a_spec_joins_and_weighs():
    joined = load_encoder("static+2*static")
    assert joined.spec == "static+2*static"
    assert joined.weights == [1.0, 2.0]
    assert joined.encode(["goal"]).shape == (1, 512)
    assert load_encoder(joined.spec).fingerprint == joined.fingerprint
    assert load_encoder("static+static").fingerprint != joined.fingerprint


def test_a_plus_in_a_path_joins_nothing(tmp_path):
    with pytest.raises(EncoderError, match=r"a\+b' is neither a folder nor the name"):
        load_encoder(f"static:{tmp_path}/a+b")


def test_a_classifier_saves_the_joined_ones_by_name(tmp_path):
    labels = ["sports", "business"]
    classifier = DatalessClassifier(labels, encoder="static+0.5*static").fit(TEXTS)
    classifier.save(tmp_path / "model")
    again = DatalessClassifier.load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict_proba(TEXTS), classifier.predict_proba(TEXTS))


def test_each_encoder_has_a_cache_that_it_shares(tmp_path):
    labels = ["sports", "business"]
    for encoder in ("static+2*static", "static"):
        DatalessClassifier(labels, encoder=encoder, cache=tmp_path).fit(TEXTS)
    (entry,) = inspect_cache(tmp_path)
    assert entry.texts == len(TEXTS) + len(labels)


@pytest.mark.parametrize(
    ("encoders", "weights", "message"),
    [
        ([Letters()], None, "at least two encoders and one weight for each; got 1 encoders"),
        ([Letters(), Letters()], [1.0], "got 2 encoders and 1 weights"),
        ([Letters(), Letters()], [1.0, 0.0], r"must be positive numbers; got \[1.0, 0.0\]"),
    ],
)
def test_invalid_encoders_and_weights_are_refused(encoders, weights, message):
    with pytest.raises(EncoderError, match=message):
        JoinedEncoder(encoders, weights)


def test_unknown_names_are_refused():
    with pytest.raises(EncoderError, match=r"encoder must be one of static, .*; got 'bert'"):
        load_encoder("bert+static")
