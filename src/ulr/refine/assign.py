"""One pass over the documents: the nearest centroid of each, and what the next update needs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ulr.refine.distances import Float
from ulr.refine.points import Points


@dataclass
class Assignment:
    """The outcome of one pass.

    Attributes
    ----------
    predictions
        (n_rows,) the nearest centroid of each document; the known label where it is known.
    sums
        (n_centroids, n_dims) sum of the points of each cluster, known documents left out.
    counts
        (n_centroids,) documents in each cluster, known documents left out.
    total
        Sum of the distances of the documents to their centroids, known documents left out.
    """

    predictions: NDArray[np.intp]
    sums: Float
    counts: Float
    total: float


def cluster_sums(points: Float, clusters: NDArray[np.intp], n_clusters: int) -> Float:
    """Sum of the points of each cluster, (n_clusters, n_dims)."""
    from scipy.sparse import csr_array

    n = len(points)
    membership = csr_array(
        (np.ones(n), (clusters, np.arange(n))), shape=(n_clusters, n), dtype=np.float64
    )
    return np.asarray(membership @ points)


def assign(points: Points, centroids: Float, known: NDArray[np.intp]) -> Assignment:
    """Give every document its nearest centroid, the first where several are equally near.

    Parameters
    ----------
    points
        The documents.
    centroids
        (n_centroids, n_dims).
    known
        (n_rows,) the label of each document, -1 where it is not known.
    """
    n_centroids = len(centroids)
    predictions = np.empty(points.n_rows, dtype=np.intp)

    def work(blocks: list[slice]) -> tuple[Float, float]:
        sums = np.zeros_like(centroids)
        total = 0.0
        for rows in blocks:
            block = points.block(rows)
            distances = points.distance.between(block, centroids)
            nearest = distances.argmin(axis=1)
            free = known[rows] < 0
            predictions[rows] = np.where(free, nearest, known[rows])
            total += float(distances[np.flatnonzero(free), nearest[free]].sum())
            sums += cluster_sums(block[free], nearest[free], n_centroids)
        return sums, total

    sums, total = np.zeros_like(centroids), 0.0
    for shard_sums, shard_total in points.map_shards(work):
        sums += shard_sums
        total += shard_total
    counts = np.bincount(predictions[known < 0], minlength=n_centroids).astype(np.float64)
    return Assignment(predictions, sums, counts, total)


def score(
    points: Points, centroids: Float, n_rows: int
) -> tuple[NDArray[np.intp], NDArray[np.float32]]:
    """The nearest centroid of the first `n_rows` documents, and their scores to all of them."""
    predictions = np.empty(n_rows, dtype=np.intp)
    scores = np.empty((n_rows, len(centroids)), dtype=np.float32)

    def work(blocks: list[slice]) -> None:
        for rows in blocks:
            if rows.start < n_rows:
                distances = points.distance.between(points.block(rows), centroids)
                predictions[rows] = distances.argmin(axis=1)
                scores[rows] = points.distance.nearest_score - distances

    for _ in points.map_shards(work):
        pass
    return predictions, scores
