"""Matrix products and solutions of linear equations that stay on the calling thread."""

import numpy as np
import pytest

from ulr.refinement.products import (
    gram,
    grouped_sums,
    label_sums,
    scores_by_label,
    solve_positive_definite,
    weighted_sums,
)


def normal(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("n_labels", [1, 3, 40])
@pytest.mark.parametrize(("n", "n_dims"), [(1, 5), (700, 33), (5_000, 300), (300, 3_000)])
def test_tiled_products_equal_plain_ones(n, n_dims, n_labels):
    documents, weights, shares = normal(n, n_dims), normal(n_labels, n_dims), normal(n_labels, n)
    exact = documents.astype(np.float64)
    np.testing.assert_allclose(scores_by_label(weights, documents), weights @ exact.T, atol=2e-3)
    np.testing.assert_allclose(weighted_sums(shares, documents), shares @ exact, atol=2e-3)


@pytest.mark.parametrize(("n", "n_dims"), [(1, 1), (63, 64), (64, 65), (1_000, 200)])
def test_gram_matrix_equals_the_plain_product(n, n_dims):
    documents = normal(n, n_dims)
    exact = documents.astype(np.float64)
    found = gram(documents)
    np.testing.assert_allclose(found, exact.T @ exact, atol=1e-3)
    np.testing.assert_array_equal(found, found.T)


@pytest.mark.parametrize("n", [1, 63, 64, 65, 200])
def test_solution_satisfies_the_equations(n):
    vectors = normal(2 * n, n).astype(np.float64)
    matrix, right = vectors.T @ vectors / n + 0.1 * np.eye(n), normal(n, 3).astype(np.float64)
    before = matrix.copy()
    np.testing.assert_allclose(matrix @ solve_positive_definite(matrix, right), right, atol=1e-9)
    np.testing.assert_array_equal(matrix, before)


def test_changed_labels_move_their_documents_between_sums():
    documents = normal(50, 7).astype(np.float64)
    before, after = np.arange(50) % 3, np.arange(50) % 4
    expected = label_sums(documents, after, 4) - label_sums(documents, before, 4)
    np.testing.assert_allclose(label_sums(documents, after, 4, before), expected, atol=1e-12)
    np.testing.assert_allclose(label_sums(documents, after, 4)[1], documents[1::4].sum(axis=0))


def test_grouped_sums_are_weighted_sums_of_each_label():
    random = np.random.default_rng(0)
    documents = random.normal(size=(1_000, 7)).astype(np.float32)
    weights, labels = random.random(1_000), random.integers(-1, 4, size=1_000).astype(np.int32)
    found = grouped_sums(documents, weights, labels, 5)
    for label in range(5):
        own = labels == label
        expected = (weights[own, None] * documents[own].astype(float)).sum(axis=0)
        np.testing.assert_allclose(found[label], expected, atol=1e-10)
    assert not found[4].any()
