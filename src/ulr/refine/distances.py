"""The distances a refinement can use, and what the paper does by default with each.

Everything here works on one block of documents in float64; blocking and threads are the loop's.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Float = NDArray[np.float64]
Keep = Literal["lowest", "last"]
EmptyCluster = Literal["mean", "previous"]


@dataclass(frozen=True)
class Distance:
    """One way to say how far a document is from a centroid.

    Attributes
    ----------
    name
        What the user calls it.
    points
        Turns raw rows into the rows this distance compares, e.g. unit vectors.
    between
        Distances of points (n, n_dims) to centroids (n_labels, n_dims): (n, n_labels).
    nearest_score
        The score of a document that lies on its centroid; ``score = nearest_score - distance``,
        so that a larger score is always a closer label.
    anchor_weight
        The share of the label's own vector in an updated centroid.
    keep
        Which iteration is the answer: the one of the lowest objective, or the last.
    empty_cluster
        What stands in for the mean of a cluster without documents.
    """

    name: str
    points: Callable[[Float], Float]
    between: Callable[[Float, Float], Float]
    nearest_score: float
    anchor_weight: float
    keep: Keep
    empty_cluster: EmptyCluster


def unit_rows(rows: Float) -> Float:
    """Rows scaled to length one; a zero row stays zero."""
    lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows))[:, None]
    return rows / np.where(lengths > 0, lengths, 1.0)


def _as_they_are(rows: Float) -> Float:
    return rows


def _distributions(rows: Float) -> Float:
    return rows / rows.sum(axis=1, keepdims=True)


def _cosine(points: Float, centroids: Float) -> Float:
    return 1.0 - points @ unit_rows(centroids).T


def _squared_l2(points: Float, centroids: Float) -> Float:
    squares = np.einsum("ij,ij->i", points, points)[:, None]
    distances = squares - 2.0 * (points @ centroids.T)
    distances += np.einsum("ij,ij->i", centroids, centroids)
    return np.maximum(distances, 0.0)


def _negative_dot(points: Float, centroids: Float) -> Float:
    return -(points @ centroids.T)


def _jensen_shannon(points: Float, centroids: Float) -> Float:
    from scipy.special import rel_entr

    distances = np.empty((len(points), len(centroids)))
    for label, centroid in enumerate(centroids):
        middle = (points + centroid) / 2.0
        divergence = rel_entr(points, middle).sum(axis=1) + rel_entr(centroid, middle).sum(axis=1)
        distances[:, label] = np.sqrt(np.maximum(divergence / 2.0, 0.0))
    return distances


DISTANCES: dict[str, Distance] = {
    distance.name: distance
    for distance in (
        Distance("cosine", unit_rows, _cosine, 1.0, 0.5, "lowest", "mean"),
        Distance("l2", _as_they_are, _squared_l2, 0.0, 0.5, "lowest", "mean"),
        Distance("dot", _as_they_are, _negative_dot, 0.0, 0.5, "lowest", "mean"),
        Distance("jensen-shannon", _distributions, _jensen_shannon, 0.0, 0.0, "last", "previous"),
    )
}
