"""Every method gives the same labels whatever the order of the documents."""

import numpy as np
import pytest
from problems import problem, topics, word_counts

from ulr.refinement import METHODS, refine

WAYS = [(method, distance) for method, each in METHODS.items() for distance in each.distances]
ORDERS = ["shuffled", "sorted", "interleaved"]


def rows_in(order, truth, seed=0):
    """Positions of the documents in some order."""
    shuffled = np.random.default_rng(seed).permutation(len(truth))
    if order == "shuffled":
        return shuffled
    by_class = shuffled[np.argsort(truth[shuffled], kind="stable")]
    if order == "sorted":
        return by_class
    within = np.concatenate([np.arange(count) for count in np.bincount(truth) if count])
    return by_class[np.argsort(within, kind="stable")]  # ABCDABCD


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(("method", "distance"), WAYS)
def test_order_of_documents_does_not_matter(method, distance, order):
    documents, anchors = problem(distance, 3, n=600)
    first = refine(documents, anchors, method=method, distance=distance)
    rows = rows_in(order, np.maximum(first.unrefined, 0))
    again = refine(documents[rows], anchors, method=method, distance=distance)
    assert (again.predictions == first.predictions[rows]).mean() > 0.995
    scale = np.abs(first.scores).max()
    np.testing.assert_allclose(again.scores, first.scores[rows], atol=0.02 * scale)


@pytest.mark.parametrize("order", ORDERS)
def test_order_matters_little_above_every_sampling_threshold(order):
    """More documents than the covariance and the fit are estimated on."""
    documents, anchors, truth = topics(3, n=40_000, n_dims=16, spread=1.5, off=1.0)
    counts = word_counts(truth, n_words=30)
    first, again = (
        refine(documents[rows], anchors, fit_sample=20_000, word_counts=counts[rows])
        for rows in (np.arange(len(truth)), rows_in(order, truth))
    )
    accuracies = [
        (first.predictions == truth).mean(),
        (again.predictions == truth[rows_in(order, truth)]).mean(),
    ]
    assert abs(accuracies[0] - accuracies[1]) < 0.005


def test_length_of_documents_does_not_matter_under_cosine():
    documents, anchors, _ = topics(2)
    lengths = np.random.default_rng(2).choice([0.25, 0.5, 2.0, 8.0], size=(len(documents), 1))
    for method in METHODS:
        one = refine(documents, anchors, method=method)
        other = refine(documents * lengths.astype(np.float32), anchors, method=method)
        np.testing.assert_array_equal(one.predictions, other.predictions)


def test_another_seed_changes_nothing_where_nothing_is_drawn():
    documents, anchors, _ = topics(2)
    one, other = (refine(documents, anchors, random_state=seed) for seed in (0, 1))
    np.testing.assert_array_equal(one.scores, other.scores)
