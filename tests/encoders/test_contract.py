"""What holds for every encoder: shape, order, batches, threads, copies, fingerprint, truncation."""

import copy
import pickle
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from ulr.encoders import Encoder, batch_texts, encode_texts, fingerprint, label_encoder

TEXTS = [
    "the rain of a goal",
    "",
    "Ein Straßenfest – 日本語 😀",
    "goal " * 40,
    "a\tb\nc",
    "half an emoji \ud83d",
    "team </s> bank <unk>",
    " sun ",
    "the rain of a goal",
]


def assert_same(found, expected):
    """Equal but for what other texts of a batch may change in a transformer."""
    np.testing.assert_allclose(found, expected, atol=2e-5)


def test_it_is_an_encoder_of_float32_vectors(encoder):
    assert isinstance(encoder, Encoder)
    vectors = encode_texts(encoder, TEXTS)
    assert vectors.shape == (len(TEXTS), vectors.shape[1])
    assert vectors.dtype == np.float32
    assert np.isfinite(vectors).all()
    if hasattr(encoder, "n_dims"):
        assert vectors.shape[1] == encoder.n_dims
    assert batch_texts(encoder) >= 1


def test_vectors_follow_the_order_of_the_texts_whatever_the_batch(encoder):
    together = np.asarray(encoder.encode(TEXTS))
    assert_same(np.asarray(encoder.encode(TEXTS[::-1]))[::-1], together)
    assert_same(np.concatenate([encoder.encode([text]) for text in TEXTS]), together)
    assert_same(encode_texts(encoder, TEXTS), together)
    assert len(np.unique(together.round(3), axis=0)) >= 4


def test_texts_without_content_have_vectors(encoder):
    vectors = np.asarray(encoder.encode(["", " ", "\n", "\u200b"]))
    assert np.isfinite(vectors).all()


def test_threads_give_the_same(encoder):
    batches = [[f"{word} {i} {text}" for text in TEXTS[:3]] for i, word in enumerate(TEXTS * 3)]
    expected = [np.asarray(encoder.encode(batch)) for batch in batches]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)  # threads interrupt each other often, so that a race shows
    try:
        with ThreadPoolExecutor(8) as pool:
            found = list(pool.map(encoder.encode, batches))
    finally:
        sys.setswitchinterval(interval)
    assert_same(np.concatenate(found), np.concatenate(expected))


@pytest.mark.parametrize("again", [lambda e: pickle.loads(pickle.dumps(e)), copy.deepcopy])
def test_copies_give_the_same(encoder, name, again):
    copied = again(encoder)
    assert name == "own" or len(pickle.dumps(encoder)) < 2000  # a reference, not the weights
    assert fingerprint(copied) == fingerprint(encoder)
    for name in ("spec", "languages", "batch_texts"):
        assert getattr(copied, name, None) == getattr(encoder, name, None)
    assert_same(copied.encode(TEXTS), encoder.encode(TEXTS))
    assert_same(label_encoder(copied).encode(TEXTS), label_encoder(encoder).encode(TEXTS))


def test_fingerprint_is_stable_and_tells_encoders_apart(encoder, name, make, fingerprints):
    assert fingerprint(make(name, number=1)) == fingerprint(encoder)
    fingerprints[name] = fingerprint(encoder)
    assert len(set(fingerprints.values())) == len(fingerprints)


def test_longer_texts_are_truncated_and_counted(make, limited_name):
    encoder = make(limited_name, 6)
    assert fingerprint(encoder) != fingerprint(make(limited_name))
    before = encoder.truncated
    vectors = np.asarray(encoder.encode(["goal goal", "the rain " * 50, "the rain " * 80]))
    assert encoder.truncated - before == 2
    if limited_name not in ("joined", "cached"):  # their other part does not truncate
        assert_same(vectors[1], vectors[2])
