"""The sample of documents: seeded, uniform, with every label, whatever the batches."""

import numpy as np
import pytest

from ulr.classifier import Predictions
from ulr.report import Sampler


def predictions(labels, n_labels, empty=None):
    labels = np.asarray(labels, dtype=np.intp)
    scores, n = np.zeros((len(labels), n_labels), dtype=np.float32), len(labels)
    empty = np.zeros(n, dtype=bool) if empty is None else empty
    nobody = np.zeros_like(empty)
    return Predictions(labels, scores, labels, empty, nobody, np.ones(n), np.empty((n, 0)))


def draw(labels, batch, size=100, seed=0, n_labels=5, empty=None):
    sampler = Sampler(seed, size)
    for first in range(0, len(labels), batch):
        rows = slice(first, first + batch)
        texts = [str(row) for row in range(len(labels))[rows]]
        own = None if empty is None else empty[rows]
        sampler.add(texts, predictions(labels[rows], n_labels, own))
    return sampler.drawn


@pytest.fixture
def labels():
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, 5_000)
    labels[rng.permutation(5_000)[:60]] = 4
    labels[[17, 2_500, 4_999]] = 3
    return labels


def test_the_sample_does_not_depend_on_the_batches(labels):
    whole = draw(labels, 5_000)
    for batch in (1, 90, 777):
        other = draw(labels, batch)
        np.testing.assert_array_equal(other.rows, whole.rows)
        assert other.texts == whole.texts == [str(row) for row in whole.rows]
        np.testing.assert_array_equal(other.predictions.labels, labels[whole.rows])


def test_rare_labels_are_in_the_sample_and_the_rest_is_uniform_over_the_rows(labels):
    sample = draw(labels, 500)
    assert len(sample.rows) == 100
    assert {17, 2_500, 4_999} <= set(sample.rows.tolist())
    assert np.count_nonzero(sample.predictions.labels == 4) >= 10
    rows = np.concatenate([draw(labels, 1_000, seed=seed).rows for seed in range(40)])
    halves = np.bincount(rows // 1_000, minlength=5)
    assert halves.max() / halves.min() < 1.3


def test_all_of_few_documents_with_words_are_kept_in_their_order():
    labels, empty = np.array([0, -1, 1, 2, 3, 1]), np.array([False, True, *[False] * 4])
    assert draw(labels, 2, empty=empty).rows.tolist() == [0, 2, 3, 4, 5]
    assert len(draw(np.arange(400), 150, size=50, n_labels=400).rows) == 50
