"""Any object with `encode` is an encoder; its vectors are checked in every batch."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from letters import Letters

from ulr.encoders import SplitTexts, encode_texts, fingerprint
from ulr.errors import EncoderError


class Gives:
    """Returns the given answers, whatever the texts."""

    def __init__(self, *answers):
        self.answers = iter(answers)

    def encode(self, texts):
        return next(self.answers)


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64, list])
def test_vectors_of_any_float_type_and_lists_become_float32(kind):
    numbers = [[1.0, 2.5], [3.0, 4.0]]
    vectors = encode_texts(Gives(numbers if kind is list else np.array(numbers, kind)), ["a", "b"])
    assert (vectors.dtype, vectors.tolist()) == (np.float32, numbers)


class Steps:
    """Records progress."""

    def __init__(self):
        self.steps = []

    def stage(self, name, total=None, unit="documents"):
        raise AssertionError("stages are the caller's")

    def advance(self, count=1):
        self.steps.append(count)


@settings(deadline=None)
@given(st.lists(st.text("ab ", max_size=2), min_size=1, max_size=20))
def test_each_distinct_text_is_encoded_once_in_batches(texts):
    encoder, progress = Letters(), Steps()
    encoder.batch_texts = 3
    vectors = encode_texts(encoder, texts, progress)
    np.testing.assert_array_equal(vectors, Letters().encode(texts))
    assert [text for batch in encoder.asked for text in batch] == list(dict.fromkeys(texts))
    assert all(len(batch) == 3 for batch in encoder.asked[:-1])
    assert sum(progress.steps) == len(texts)
    np.testing.assert_array_equal(encode_texts(Letters(), SplitTexts(texts)), vectors)


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


def test_no_texts_and_dimensions_that_change_between_batches_are_refused():
    with pytest.raises(EncoderError, match="there are no texts to encode"):
        encode_texts(Letters(), [])
    with pytest.raises(EncoderError, match="returned vectors of 3 dimensions, then of 4"):
        encode_texts(Gives(np.ones((16, 3)), np.ones((16, 4))), list(map(str, range(2049))))


def test_the_first_batches_are_small_so_that_progress_is_soon_known():
    encoder, progress = Letters(), Steps()
    encoder.batch_texts = 256
    encode_texts(encoder, list(map(str, range(1000))), progress)
    assert progress.steps == [16, 16, 32, 64, 128, 256, 256, 232]


def test_fingerprint_is_the_encoders_own_or_its_class():
    assert fingerprint(Gives()) == fingerprint(Gives(1)) == f"{__name__}.Gives"
    assert fingerprint(Letters()) == "letters"
