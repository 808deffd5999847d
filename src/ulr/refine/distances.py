"""The distances a refinement can use, and what the paper does by default with each.

Everything here works on a few rows in float64; blocks, threads and shortcuts are others'.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Float = NDArray[np.float64]
Keep = Literal["lowest", "last"]
EmptyCluster = Literal["mean", "previous"]

# Distances closer than this, relative to the lengths of the vectors, are equal: their order
# would be decided by rounding. The first of equally near labels is taken.
EQUAL = 1e-12


@dataclass(frozen=True, eq=False)
class LinearForm:
    """Centroids of a distance that is ``offset_c - x · slope_c``, but for what all have in common.

    Attributes
    ----------
    slopes
        (n_centroids, n_dims).
    offsets
        (n_centroids,).
    """

    slopes: Float
    offsets: Float

    @cached_property
    def lengths(self) -> Float:
        """Lengths of the slopes, (n_centroids,)."""
        return _lengths(self.slopes)

    def compare(self, points: Float) -> Float:
        """What tells the centroids apart, (n, n_centroids); smaller is nearer."""
        return self.offsets - points @ self.slopes.T

    def nearest(self, points: Float) -> NDArray[np.intp]:
        """The nearest centroid of each point, the first of equally near ones."""
        lengths = np.multiply.outer(_lengths(points), self.lengths)
        return first_nearest(self.compare(points), lengths, self.offsets)


def first_nearest(compared: Float, lengths: Float, offsets: Float) -> NDArray[np.intp]:
    """The place of the least in every row, the first of those that are equal.

    Parameters
    ----------
    compared
        (n, n_centroids) ``offset - x · slope``.
    lengths
        (n, n_centroids) length of x times length of slope.
    offsets
        The offsets.
    """
    equal = lengths + np.abs(offsets)
    equal *= EQUAL
    equal += compared.min(axis=1)[:, None]
    return (compared <= equal).argmax(axis=1)


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
    form
        The linear form of centroids, for a distance that has one.
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
    form: Callable[[Float], LinearForm] | None
    nearest_score: float
    anchor_weight: float
    keep: Keep
    empty_cluster: EmptyCluster

    def nearest(self, points: Float, centroids: Float) -> tuple[NDArray[np.intp], Float]:
        """The nearest centroid of each point, the first of equally near ones, and all distances."""
        distances = self.between(points, centroids)
        if self.form is None:
            return distances.argmin(axis=1), distances
        return self.form(centroids).nearest(points), distances


def _squares(rows: Float) -> Float:
    return np.einsum("ij,ij->i", rows, rows)


def _lengths(rows: Float) -> Float:
    return np.sqrt(_squares(rows))


def unit_rows(rows: Float) -> Float:
    """Rows scaled to length one; a zero row stays zero."""
    lengths = _lengths(rows)[:, None]
    return rows / np.where(lengths > 0, lengths, 1.0)


def _as_they_are(rows: Float) -> Float:
    return rows


def _distributions(rows: Float) -> Float:
    return rows / rows.sum(axis=1, keepdims=True)


def _cosine_form(centroids: Float) -> LinearForm:
    return LinearForm(unit_rows(centroids), np.zeros(len(centroids)))


def _cosine(points: Float, centroids: Float) -> Float:
    return 1.0 + _cosine_form(centroids).compare(points)


def _squared_l2_form(centroids: Float) -> LinearForm:
    return LinearForm(2.0 * centroids, _squares(centroids))


def _squared_l2(points: Float, centroids: Float) -> Float:
    distances = _squares(points)[:, None] + _squared_l2_form(centroids).compare(points)
    return np.maximum(distances, 0.0)


def _dot_form(centroids: Float) -> LinearForm:
    return LinearForm(centroids, np.zeros(len(centroids)))


def _negative_dot(points: Float, centroids: Float) -> Float:
    return _dot_form(centroids).compare(points)


def _jensen_shannon(points: Float, centroids: Float) -> Float:
    distances = np.empty((len(points), len(centroids)))
    for label, centroid in enumerate(centroids):
        distances[:, label] = jensen_shannon_pairs(points, centroid)
    return distances


def jensen_shannon_pairs(points: Float, others: Float) -> Float:
    """Jensen-Shannon distance of each row to the row beside it, or to one and the same row."""
    from scipy.special import rel_entr

    middle = (points + others) / 2.0
    divergence = rel_entr(points, middle).sum(axis=1) + rel_entr(others, middle).sum(axis=1)
    return np.sqrt(np.maximum(divergence / 2.0, 0.0))


DISTANCES: dict[str, Distance] = {
    distance.name: distance
    for distance in (
        Distance("cosine", unit_rows, _cosine, _cosine_form, 1.0, 0.5, "lowest", "mean"),
        Distance("l2", _as_they_are, _squared_l2, _squared_l2_form, 0.0, 0.5, "lowest", "mean"),
        Distance("dot", _as_they_are, _negative_dot, _dot_form, 0.0, 0.5, "lowest", "mean"),
        Distance(
            "jensen-shannon", _distributions, _jensen_shannon, None, 0.0, 0.0, "last", "previous"
        ),
    )
}
