"""Any object with `encode` is an encoder; its vectors are checked in every batch."""

import zlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ulr.encoders import Encoder, StaticEncoder, encode_batches, encode_texts, fingerprint
from ulr.encoders.batching import in_batches
from ulr.errors import EncoderError


class HashingEncoder:
    """A text is the sum of random vectors, one per word, seeded by its hash."""

    def __init__(self, n_dims=8, dtype=np.float64):
        self.n_dims = n_dims
        self.dtype = dtype

    def encode(self, texts):
        return np.array([self._vector(text) for text in texts], dtype=self.dtype)

    def _vector(self, text):
        draws = [np.random.default_rng(zlib.crc32(w.encode())) for w in text.split()]
        return sum((draw.standard_normal(self.n_dims) for draw in draws), np.zeros(self.n_dims))


class Gives:
    """Returns the given answers, whatever the texts."""

    def __init__(self, *answers):
        self.answers = iter(answers)

    def encode(self, texts):
        return next(self.answers)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_any_object_with_encode_gives_float32_vectors(dtype):
    encoder = HashingEncoder(dtype=dtype)
    assert isinstance(encoder, Encoder)
    vectors = encode_texts(encoder, ["a b", "", "c"])
    assert vectors.dtype == np.float32
    np.testing.assert_array_equal(vectors, encoder.encode(["a b", "", "c"]).astype(np.float32))


def test_plain_lists_of_numbers_are_vectors():
    vectors = encode_texts(Gives([[1.0, 2.0], [3.0, 4.0]]), ["a", "b"])
    np.testing.assert_array_equal(vectors, np.array([[1, 2], [3, 4]], dtype=np.float32))


@settings(deadline=None)
@given(st.lists(st.lists(st.text("abc ", max_size=5), max_size=4), min_size=1).filter(any))
def test_batches_come_out_as_one_array_in_order(batches):
    counts = []
    vectors = encode_batches(HashingEncoder(), iter(batches), counts.append)
    flat = [text for batch in batches for text in batch]
    np.testing.assert_array_equal(vectors, encode_texts(HashingEncoder(), flat))
    assert counts == [len(batch) for batch in batches if batch]


def test_many_texts_go_through_in_batches_of_at_most_2048():
    texts = [str(number) for number in range(5000)]
    batches = list(in_batches(texts))
    assert [len(batch) for batch in batches] == [2048, 2048, 904]
    assert [text for batch in batches for text in batch] == texts


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        (np.ones(2), r"got shape \(2,\) of float64"),
        (np.ones((3, 4)), r"got shape \(3, 4\) of float64"),
        (np.ones((2, 4), dtype=int), r"got shape \(2, 4\) of int64"),
        (np.array([["a"], ["b"]]), r"got shape \(2, 1\) of <U1"),
        (None, r"got shape \(\) of object"),
        ([[1.0], [1.0, 2.0]], "got vectors of different lengths"),
    ],
)
def test_anything_but_a_float_vector_a_text_is_refused(answer, found):
    expected = r"^Gives.encode must return float vectors of shape \(2, n_dims\) for 2 texts; "
    with pytest.raises(EncoderError, match=expected + found):
        encode_texts(Gives(answer), ["a", "b"])


def test_dimensions_that_change_between_batches_are_refused():
    with pytest.raises(EncoderError, match="returned vectors of 3 dimensions, then of 4"):
        encode_batches(Gives(np.ones((1, 3)), np.ones((1, 4))), [["a"], ["b"]])


@pytest.mark.parametrize("batches", [[], [[]]])
def test_nothing_to_encode_is_refused(batches):
    with pytest.raises(EncoderError, match="there are no texts to encode"):
        encode_batches(HashingEncoder(), batches)


def test_fingerprint_is_the_encoders_own_or_its_class():
    encoder = HashingEncoder()
    assert fingerprint(encoder) == fingerprint(HashingEncoder(3)) == f"{__name__}.HashingEncoder"
    encoder.fingerprint = "hashing, seed 1"
    assert fingerprint(encoder) == "hashing, seed 1"
    assert fingerprint(StaticEncoder.embedded()).startswith("static wordllama ")
