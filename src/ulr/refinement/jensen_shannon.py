"""The single-encoder algorithm of the paper: Jensen-Shannon distance between distributions.

The distance is a metric, so Hamerly's bound applies: a document keeps its label while the distance
to its centroid is below a lower bound of its distance to every other centroid, and that bound
shrinks by no more than the largest movement of a centroid.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ulr.refinement.blocks import UNKNOWN, Block, State, Summary
from ulr.refinement.products import Float, label_sums

_CHUNK_NUMBERS = 1 << 17
_TINY = 1e-300  # its logarithm stands for that of zero, which is multiplied by zero
_EQUAL = 1e-12
# Distances computed in different ways differ by less: the square root of a rounding error.
_ROUNDING = 1e-6


def distributions(rows: NDArray[np.floating]) -> Float:
    """Rows in float64 that add up to one."""
    rows = rows.astype(np.float64)
    return rows / rows.sum(axis=1, keepdims=True)


def chunks(n_rows: int, n_dims: int) -> Iterator[slice]:
    """Slices of rows that fit into a processor cache."""
    size = max(64, _CHUNK_NUMBERS // n_dims)
    for start in range(0, n_rows, size):
        yield slice(start, min(start + size, n_rows))


def _negative_entropy(points: Float) -> Float:
    """Sum of p ln p of each row."""
    return np.einsum("ij,ij->i", points, np.log(np.maximum(points, _TINY)))


def pairwise(points: Float, others: Float) -> Float:
    """Distance of each row to the row beside it."""
    entropy = 0.5 * (_negative_entropy(points) + _negative_entropy(others))
    return np.sqrt(np.maximum(entropy - _negative_entropy(0.5 * (points + others)), 0.0))


def distances(points: Float, centroids: Float) -> Float:
    """Distances, (n, n_centroids).

    Differences that rounding could decide are removed: they become those of the first centroid.
    """
    points_entropy = _negative_entropy(points)
    centroids_entropy = _negative_entropy(centroids)
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


@dataclass(frozen=True, eq=False)
class Clusters(Summary):
    """Sums over the documents whose label is not known; see `ulr.refinement.paper`."""

    sums: Float  # (n_centroids, n_dims) change of the sum of the documents in each cluster
    counts: Float  # (n_centroids,) change of their number
    total: float  # sum of the distances of documents to their centroids
    changed: int  # documents that changed their label
    scored: int  # documents that were compared with all centroids


@dataclass(frozen=True, eq=False)
class Assign:
    """Assigns every document to its nearest centroid."""

    centroids: Float  # (n_centroids, n_dims)
    movement: float  # largest one since the last pass; infinite in the first

    def __call__(self, block: Block, state: State) -> tuple[State, Clusters]:
        """State: labels, and lower bounds of the distances to all other centroids."""
        n, k = len(block), len(self.centroids)
        free = block.known == UNKNOWN
        before = state["labels"] if state else np.full(n, -1, dtype=np.int32)
        labels = before.copy()
        lower = state["lower"] - self.movement if state else np.zeros(n)
        sums, total, scored = np.zeros((k, block.documents.shape[1])), 0.0, 0
        for rows in chunks(n, block.documents.shape[1]):
            points = distributions(block.documents[rows])
            own = np.zeros(len(points))
            if state:
                own = pairwise(points, self.centroids[np.maximum(before[rows], 0)])
            unsure = np.flatnonzero(free[rows] & ~(own + _ROUNDING < lower[rows]))
            if len(unsure):
                found = distances(points[unsure], self.centroids)
                own[unsure] = found.min(axis=1)
                nearest = found.argmin(axis=1)
                found[np.arange(len(unsure)), nearest] = np.inf
                labels[rows.start + unsure] = nearest
                lower[rows.start + unsure] = found.min(axis=1)
            moved = np.flatnonzero(labels[rows] != before[rows])
            left = before[rows][moved] if state else None
            sums += label_sums(points[moved], labels[rows][moved], k, left)
            total += float(own[free[rows]].sum())
            scored += len(unsure)
        counts = np.bincount(labels[free], minlength=k).astype(float)
        if state:
            counts -= np.bincount(before[free], minlength=k)
        changed = int(np.count_nonzero(labels != before)) if state else 0
        new = {"labels": labels, "lower": lower}
        return new, Clusters(sums, counts, total, changed, scored)
