"""Vectors of documents in memory and in a file are the same."""

import numpy as np
import pytest

from ulr.encoders import StaticEncoder, encode_texts
from ulr.jobs.vectors import encode_documents
from ulr.refinement import refine
from ulr.word_counts import count_words


@pytest.fixture(scope="module")
def encoder():
    return StaticEncoder.embedded()


def test_large_vectors_are_mapped_and_give_the_same_labels(encoder):
    draw = np.random.default_rng(0)
    words = ["goal", "team", "bank", "profit", "rain", "storm"]
    texts = [" ".join(draw.choice(words, 8)) for _ in range(20_000)]
    anchors = encode_texts(encoder, ["sports", "business", "weather"])
    counts = []
    in_memory, _ = encode_documents(encoder, texts, counts.append)
    mapped, words = encode_documents(encoder, texts, most_bytes=1e6, with_words=True)
    assert not isinstance(in_memory, np.memmap)
    assert isinstance(mapped, np.memmap)
    assert sum(counts) == len(texts)
    np.testing.assert_array_equal(mapped, in_memory)
    np.testing.assert_array_equal(in_memory, encode_texts(encoder, texts))
    assert (words != count_words(texts)).nnz == 0
    found, expected = (refine(each, anchors) for each in (mapped, in_memory))
    np.testing.assert_array_equal(found.predictions, expected.predictions)
    np.testing.assert_array_equal(found.scores, expected.scores)
