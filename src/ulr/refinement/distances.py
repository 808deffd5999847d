"""Arrays of scores and sums, and the distances of the paper's refinement.

``cosine``, ``l2`` (squared Euclidean) and ``dot`` are linear: the nearest centroid of a document x
has the highest ``x · weights + offset``, where x is scaled to length one for ``cosine``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

Float = NDArray[np.float64]
Single = NDArray[np.float32]
Labels = NDArray[np.int32]
Rows = NDArray[np.intp]
Number = TypeVar("Number", np.float32, np.float64)
Keep = Literal["lowest", "last"]
EmptyCluster = Literal["mean", "previous"]

_TILE = 1 << 18
_SUM_ROWS = 4096
_CHUNK_NUMBERS = 1 << 17  # fit into a processor cache
_TINY = 1e-300  # its logarithm stands for that of zero, which is multiplied by zero
_EQUAL = 1e-12


@dataclass(frozen=True)
class Distance:
    """A distance between documents and centroids, with the settings of the paper for it."""

    name: str
    linear: bool = True  # whether its scores are linear in the document
    normalize: bool = False  # whether documents and centroids are scaled to length one
    anchor_weight: float = 0.5  # share of the anchor in an updated centroid
    keep: Keep = "lowest"  # the iteration that is the result: that of the lowest objective, or last
    empty_cluster: EmptyCluster = "mean"  # it takes the mean of all documents, or does not move


DISTANCES: dict[str, Distance] = {
    each.name: each
    for each in (
        Distance("cosine", normalize=True),
        Distance("l2"),
        Distance("dot"),
        Distance(
            "jensen-shannon", linear=False, anchor_weight=0.0, keep="last", empty_cluster="previous"
        ),
    )
}


def scores_by_label(weights: NDArray[Number], documents: NDArray[Number]) -> NDArray[Number]:
    """``weights @ documents.T``; one row per label, so that labels are compared by whole rows."""
    (n_labels, n_dims), n = weights.shape, len(documents)
    step = _TILE // max(1, weights.size)
    if step < 16:
        return np.asarray(weights @ documents.T)
    # OpenBLAS multiplies small matrices without copying them first: with a few labels, a stack of
    # small products takes half as long as one large product.
    scores = np.empty((n_labels, n), dtype=documents.dtype)
    whole = n - n % step
    tiles = documents[:whole].reshape(-1, step, n_dims).transpose(0, 2, 1)
    np.matmul(weights, tiles, out=scores[:, :whole].reshape(n_labels, -1, step).transpose(1, 0, 2))
    np.matmul(weights, documents[whole:].T, out=scores[:, whole:])
    return scores


def inverse_lengths(lengths: Float) -> Float:
    """One over each length; 0 for zero."""
    return 1.0 / np.where(lengths > 0, lengths, np.inf)


def label_sums(
    documents: NDArray[np.floating], weights: Float, labels: Labels, n_labels: int
) -> Float:
    """Weighted sums, (n_labels, n_dims), of the documents of each label, without negative ones."""
    sums = np.zeros((n_labels, documents.shape[1]))
    for start in range(0, len(labels), _SUM_ROWS):
        rows = slice(start, start + _SUM_ROWS)
        order = np.argsort(labels[rows], kind="stable")
        bounds = np.searchsorted(labels[rows][order], np.arange(n_labels + 1)).tolist()
        for label in np.flatnonzero(np.diff(bounds)):
            own = start + order[bounds[label] : bounds[label + 1]]
            sums[label] += weights[own] @ documents[own].astype(np.float64)
    return sums


def two_best(scores: NDArray[Number]) -> tuple[Labels, NDArray[Number], NDArray[Number]]:
    """First best label, best and second best score of every column of (n_labels, …)."""
    best = scores[0].copy()
    second = np.full_like(best, -np.inf)
    labels = np.zeros(best.shape, dtype=np.int32)
    for label in range(1, len(scores)):
        row = scores[label]
        np.maximum(second, np.minimum(best, row), out=second)
        np.copyto(labels, label, where=row > best)
        np.maximum(best, row, out=best)
    return labels, best, second


def mean_lead(scores: Single) -> float:
    """Mean lead of the best score over the second, of (n, n_labels) scores; 1 without any lead."""
    _, best, second = two_best(np.asarray(scores, dtype=np.float32).T)
    return positive_mean(best - second)


def positive_mean(leads: Single) -> float:
    """The mean of leads; 1 without any."""
    lead = float(leads.mean(dtype=np.float64))
    return lead if 0.0 < lead < np.inf else 1.0


def distributions(rows: NDArray[np.floating]) -> Float:
    """Rows in float64 that add up to one."""
    rows = rows.astype(np.float64)
    return rows / rows.sum(axis=1, keepdims=True)


def cached_rows(n_rows: int, n_dims: int) -> Iterator[slice]:
    """Slices of rows for Jensen-Shannon distances, which need several temporary arrays."""
    size = max(64, _CHUNK_NUMBERS // n_dims)
    for start in range(0, n_rows, size):
        yield slice(start, min(start + size, n_rows))


def paired_distances(points: Float, others: Float) -> Float:
    """Jensen-Shannon distance of each row to the row beside it."""
    entropy = 0.5 * (_negative_entropy(points) + _negative_entropy(others))
    return np.sqrt(np.maximum(entropy - _negative_entropy(0.5 * (points + others)), 0.0))


def jensen_shannon_distances(points: Float, centroids: Float) -> Float:
    """(n, n_centroids); differences that rounding could decide become those of the first centroid."""
    points_entropy, centroids_entropy = _negative_entropy(points), _negative_entropy(centroids)
    squares = np.empty((len(points), len(centroids)))
    middle = np.empty_like(points)
    for label, centroid in enumerate(centroids):
        np.add(points, centroid, out=middle)
        middle *= 0.5
        squares[:, label] = 0.5 * (points_entropy + centroids_entropy[label])
        squares[:, label] -= _negative_entropy(middle)
    np.maximum(squares, 0.0, out=squares)
    lowest = squares.min(axis=1, keepdims=True)
    return np.sqrt(np.where(squares <= lowest + _EQUAL, lowest, squares))


def _negative_entropy(points: Float) -> Float:
    """Sum of p ln p of each row."""
    return np.einsum("ij,ij->i", points, np.log(np.maximum(points, _TINY)))
