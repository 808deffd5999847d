"""One pass over the documents, whichever way it is done.

A `Passer` is asked for one pass after another and may remember what it learnt in earlier ones.
`PlainPasser` remembers nothing: it scores every document against every centroid in float64 and
is the reference that the faster ones are tested against.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ulr.refine.distances import Float
from ulr.refine.points import Points

# Multiplications up to which a matrix of memberships is done before a sparse one is made.
_FEW_MULTIPLICATIONS = 400_000


@dataclass
class Assignment:
    """The outcome of one pass.

    Attributes
    ----------
    predictions
        (n_rows,) the nearest centroid of each document; the known label where it is known. The
        passer's own array: valid until the next pass.
    sums
        (n_centroids, n_dims) sum of the points of each cluster, known documents left out.
    counts
        (n_centroids,) documents in each cluster, known documents left out.
    total
        Sum of the distances of the documents to their centroids, known documents left out.
    changed
        Predictions that differ from the pass before.
    skipped
        Documents that were not scored because they could not change.
    """

    predictions: NDArray[np.int32]
    sums: Float
    counts: Float
    total: float
    changed: int
    skipped: int


class Passer(Protocol):
    """Does passes over one set of documents for one run of centroids."""

    def assign(self, centroids: Float) -> Assignment:
        """Give every document its nearest centroid, the first of equally near ones."""
        ...


def moved_sums(
    points: Float,
    before: NDArray[np.integer] | None,
    after: NDArray[np.integer],
    n_clusters: int,
) -> Float:
    """What documents that move add to the sums of the clusters, (n_clusters, n_dims).

    Parameters
    ----------
    points
        (n, n_dims) the documents that move.
    before
        (n,) the cluster each leaves; None where they come from nowhere.
    after
        (n,) the cluster each joins.
    """
    n = len(points)
    if n_clusters * points.size <= _FEW_MULTIPLICATIONS:
        memberships = np.zeros((n_clusters, n))
        memberships[after, np.arange(n)] = 1.0
        if before is not None:
            memberships[before, np.arange(n)] -= 1.0
        return memberships @ points
    from scipy.sparse import csc_array

    clusters, signs = after, np.ones(n)
    if before is not None:
        clusters = np.stack([after, before], axis=1).ravel()
        signs = np.tile([1.0, -1.0], n)
    ends = np.arange(n + 1, dtype=np.int32) * (len(clusters) // n)
    moves = csc_array((signs, clusters.astype(np.int32), ends), shape=(n_clusters, n))
    return np.asarray(moves @ points)


def moved_counts(
    before: NDArray[np.integer] | None, after: NDArray[np.integer], n_clusters: int
) -> Float:
    """What documents that move add to the counts of the clusters; as `moved_sums`."""
    counts = np.bincount(after, minlength=n_clusters).astype(np.float64)
    if before is not None:
        counts -= np.bincount(before, minlength=n_clusters)
    return counts


def with_largest(scores: NDArray[np.float32], labels: NDArray[np.integer]) -> NDArray[np.float32]:
    """Scores with each row's label above the others, by the least there is where it was not."""
    wrong = np.flatnonzero(scores.argmax(axis=1) != labels)
    scores[wrong, labels[wrong]] = np.nextafter(scores[wrong].max(axis=1), np.float32(np.inf))
    return scores


class PlainPasser:
    """Scores every document against every centroid in every pass, in float64.

    Parameters
    ----------
    points
        The documents.
    known
        (n_rows,) the label of each document, -1 where it is not known.
    """

    def __init__(self, points: Points, known: NDArray[np.int32]) -> None:
        self._points = points
        self._known = known
        self._previous: NDArray[np.int32] | None = None

    def assign(self, centroids: Float) -> Assignment:
        """Give every document its nearest centroid."""
        points, known = self._points, self._known
        predictions = np.empty(points.n_rows, dtype=np.int32)

        def work(rows: slice, raw: NDArray[np.floating]) -> tuple[Float, float]:
            block = points.exact(raw)
            nearest, distances = points.distance.nearest(block, centroids)
            free = known[rows] < 0
            predictions[rows] = np.where(free, nearest, known[rows])
            total = float(distances[np.flatnonzero(free), nearest[free]].sum())
            return moved_sums(block[free], None, nearest[free], len(centroids)), total

        sums, total = np.zeros_like(centroids), 0.0
        for block_sums, block_total in points.map_rows(work):
            sums += block_sums
            total += block_total
        counts = np.bincount(predictions[known < 0], minlength=len(centroids))
        previous, self._previous = self._previous, predictions
        changed = 0 if previous is None else int((predictions != previous).sum())
        return Assignment(predictions, sums, counts.astype(np.float64), total, changed, 0)
