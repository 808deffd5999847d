"""Matrix products and solutions of linear equations that stay on the calling thread.

Blocks are already spread over threads. A BLAS that starts threads of its own for every block
competes with them, and limiting it would change a setting of the whole process: on a busy machine,
waiting for its threads takes a hundred times as long as the work. OpenBLAS computes small products
on the calling thread, so large ones are cut into tiles and passed to `numpy.matmul` as one stack.
"""

from __future__ import annotations

from itertools import pairwise
from math import isqrt

import numpy as np
from numpy.typing import NDArray

Float = NDArray[np.float64]
Single = NDArray[np.float32]
Labels = NDArray[np.int32]

# OpenBLAS uses one thread for products of at most 4 * 65,536 multiplications.
_TILE = 1 << 18
_EDGE = 64  # of square tiles
_GROUP_ROWS = 256


def _tile_shape(n_labels: int, n_dims: int) -> tuple[int, int]:
    """Labels and documents of one tile."""
    labels = min(n_labels, max(1, isqrt(_TILE // max(1, n_dims))))
    return labels, max(1, _TILE // (labels * max(1, n_dims)))


def scores_by_label(weights: Single, documents: Single) -> Single:
    """``weights @ documents.T``, shape (n_labels, n_documents).

    One row per label makes comparisons between labels fast: each is one operation on whole rows.
    """
    n_documents, n_dims = documents.shape
    n_labels = len(weights)
    scores = np.empty((n_labels, n_documents), dtype=np.float32)
    label_step, step = _tile_shape(n_labels, n_dims)
    whole = n_documents - n_documents % step
    tiles = documents[:whole].reshape(-1, step, n_dims).transpose(0, 2, 1)
    for first in range(0, n_labels, label_step):
        rows = slice(first, first + label_step)
        if whole:
            out = scores[rows, :whole].reshape(-1, whole // step, step).transpose(1, 0, 2)
            np.matmul(weights[rows], tiles, out=out)
        if whole < n_documents:
            np.matmul(weights[rows], documents[whole:].T, out=scores[rows, whole:])
    return scores


def weighted_sums(shares: Single | Float, documents: Single | Float) -> Float:
    """``shares @ documents`` for shares of shape (n_labels, n_documents), added in float64."""
    n_documents, n_dims = documents.shape
    n_labels = len(shares)
    sums = np.zeros((n_labels, n_dims))
    label_step, step = _tile_shape(n_labels, n_dims)
    whole = n_documents - n_documents % step
    tiles = documents[:whole].reshape(-1, step, n_dims)
    for first in range(0, n_labels, label_step):
        rows = slice(first, first + label_step)
        if whole:
            parts = shares[rows, :whole].reshape(-1, whole // step, step).transpose(1, 0, 2)
            sums[rows] += np.matmul(parts, tiles).sum(axis=0, dtype=np.float64)
        if whole < n_documents:
            sums[rows] += np.matmul(shares[rows, whole:], documents[whole:])
    return sums


def gram(documents: Single) -> Float:
    """``documents.T @ documents``, shape (n_dims, n_dims), added in float64."""
    n_documents, n_dims = documents.shape
    products = np.zeros((n_dims, n_dims))
    step = _TILE // _EDGE**2
    whole = n_documents - n_documents % step
    for tiles in (documents[:whole].reshape(-1, step, n_dims), documents[None, whole:]):
        for first in range(0, n_dims, _EDGE):
            left = tiles[:, :, first : first + _EDGE].transpose(0, 2, 1)
            for second in range(first, n_dims, _EDGE):
                columns = slice(second, second + _EDGE)
                parts = np.matmul(left, tiles[:, :, columns])
                products[first : first + _EDGE, columns] += parts.sum(axis=0, dtype=np.float64)
    return np.triu(products) + np.triu(products, 1).T


def solve_positive_definite(matrix: Float, right: Float) -> Float:
    """``inverse(matrix) @ right`` for a symmetric positive definite matrix, by blocked Cholesky."""
    n = len(matrix)
    blocks = [slice(start, min(start + _EDGE, n)) for start in range(0, n, _EDGE)]
    lower = np.array(matrix, dtype=np.float64)
    inverses = []
    for place, block in enumerate(blocks):
        inverse = np.linalg.inv(np.linalg.cholesky(lower[block, block]))
        inverses.append(inverse)
        for rows in blocks[place + 1 :]:
            lower[rows, block] = lower[rows, block] @ inverse.T
            for columns in blocks[place + 1 :]:
                if columns.start <= rows.start:
                    lower[rows, columns] -= lower[rows, block] @ lower[columns, block].T
    solution = np.array(right, dtype=np.float64)
    for place, block in enumerate(blocks):
        solution[block] = inverses[place] @ solution[block]
        for rows in blocks[place + 1 :]:
            solution[rows] -= lower[rows, block] @ solution[block]
    for place, block in reversed(list(enumerate(blocks))):
        for rows in blocks[place + 1 :]:
            solution[block] -= lower[rows, block].T @ solution[rows]
        solution[block] = inverses[place].T @ solution[block]
    return solution


def label_sums(
    documents: Float, labels: Labels, n_labels: int, previous: Labels | None = None
) -> Float:
    """Sum of the documents of each label in float64, shape (n_labels, n_dims).

    They are subtracted from the sums of their previous labels, if there are any.
    """
    members = np.zeros((n_labels, len(documents)))
    columns = np.arange(len(documents))
    members[labels, columns] = 1.0
    if previous is not None:
        members[previous, columns] -= 1.0
    return weighted_sums(members, documents)


def grouped_sums(
    documents: NDArray[np.floating], weights: Float, labels: Labels, n_labels: int
) -> Float:
    """Weighted sum of the documents of each label in float64, shape (n_labels, n_dims).

    Documents with a negative label are left out. Faster than `label_sums` where all documents have
    a label: each is added to one sum only.
    """
    sums = np.zeros((n_labels, documents.shape[1]))
    order = np.argsort(labels, kind="stable")
    bounds = np.searchsorted(labels[order], np.arange(n_labels + 1)).tolist()
    for label, (first, last) in enumerate(pairwise(bounds)):
        for start in range(first, last, _GROUP_ROWS):
            rows = order[start : min(start + _GROUP_ROWS, last)]
            sums[label] += np.einsum("i,ij->j", weights[rows], documents[rows].astype(np.float64))
    return sums


def two_best(scores: Single) -> tuple[Labels, Single, Single]:
    """Label, best score and second best score of every column of (n_labels, n_documents).

    The first of equally good labels is taken. With a single label the second best is -infinity.
    """
    best = scores[0].copy()
    second = np.full_like(best, -np.inf)
    labels = np.zeros(len(best), dtype=np.int32)
    for label in range(1, len(scores)):
        row = scores[label]
        np.maximum(second, np.minimum(best, row), out=second)
        np.copyto(labels, label, where=row > best)
        np.maximum(best, row, out=best)
    return labels, best, second


def mean_lead(scores: Single) -> float:
    """Mean lead of the best score over the second, of (n, n_labels) scores; 1 without any lead."""
    _, best, second = two_best(np.asarray(scores, dtype=np.float32).T)
    lead = float((best - second).mean(dtype=np.float64))
    return lead if 0.0 < lead < np.inf else 1.0
