"""Passes for Jensen-Shannon that look only at documents and centroids that could matter.

The distance is a metric, so a document keeps its label while its distance to its own centroid
stays below a lower bound of its distance to every other, which shrinks by no more than that
other one has moved. Where a bound fails, one matrix product makes a new one: with
h = 1 - Σ √(p r), the squared Hellinger distance, the divergence lies between ``ln 2 · h`` and
``h``. (Coordinate by coordinate, the ratio of the two depends on p / r alone, and falls from 1
at p = r to ln 2 where one of them is 0.) Only what fails that too is scored. Against the
certainties that the labels begin as, the nearest is the most probable label, without a logarithm.

A divergence takes one logarithm a coordinate: it is half the sums of p ln p and r ln r, less
the sum of m ln m for their middle m. Where two are closer than rounding can tell apart, the
distances of `PlainPasser` decide, so every label is the one that it gives.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ulr.refine.assign import Assignment, moved_counts, moved_sums, with_largest
from ulr.refine.distances import DISTANCES, Float, jensen_shannon_pairs
from ulr.refine.points import Points

_LN2 = float(np.log(2.0))
_TINY = 1e-300  # its logarithm stands in for that of zero, which it is multiplied with
_EQUAL = 1e-12  # divergences this close may be equal
_EQUAL_DISTANCES = np.float32(2e-6)  # so may distances: the root of that, and float32's rounding
_CHUNK_BYTES = 1 << 20  # of float64 points worked on at a time

Raw = NDArray[np.floating]
Single = NDArray[np.float32]


def _sum_of_logs(distributions: Float) -> Float:
    """Σ p ln p of each row."""
    return np.einsum("ij,ij->i", distributions, np.log(np.maximum(distributions, _TINY)))


def _divergence(points: Float, logs: Float, others: Float, other_logs: Float) -> Float:
    """Divergence of each row and the row beside it, or one and the same row."""
    middle = points + others
    middle *= 0.5
    return np.maximum(0.5 * (logs + other_logs) - _sum_of_logs(middle), 0.0)


def _chunks(rows: slice, raw: Raw) -> Iterator[tuple[slice, Raw]]:
    """A block in parts that stay in the cache."""
    size = max(64, _CHUNK_BYTES // (8 * raw.shape[1]))
    for start in range(0, len(raw), size):
        part = raw[start : start + size]
        yield slice(rows.start + start, rows.start + start + len(part)), part


def _sure_nearest(divergences: Float, points: Float, centroids: Float) -> NDArray[np.intp]:
    """The nearest centroid, by the plain distances where rounding could decide.

    Parameters
    ----------
    divergences
        (n, n_centroids), or lower bounds of those that cannot be the least.
    points, centroids
        What they are of.
    """
    each = np.arange(len(points))
    nearest = divergences.argmin(axis=1)
    best = divergences[each, nearest]
    divergences[each, nearest] = np.inf
    next_best = divergences.min(axis=1)
    divergences[each, nearest] = best
    doubtful = np.flatnonzero(next_best - best <= _EQUAL)
    if len(doubtful):
        nearest[doubtful] = DISTANCES["jensen-shannon"].nearest(points[doubtful], centroids)[0]
    return nearest


@dataclass(frozen=True, eq=False)
class _Outcome:
    """What one block did: as `ulr.refine.linear.Outcome`, and the sum of its distances."""

    total: float
    moved: int
    scored: int
    sums: Float | None
    counts: Float


@dataclass(frozen=True, eq=False)
class _Target:
    """The centroids of a pass, and how far each has gone since every earlier one.

    Attributes
    ----------
    centroids
        (n_centroids, n_dims).
    logs
        (n_centroids,) Σ r ln r.
    roots
        (n_dims, n_centroids) √r.
    certain
        Whether each centroid is the certainty of its label.
    moved
        (n_passes, n_centroids) the way gone since each pass, rounded up.
    farthest
        (n_passes,) the longest of them.
    """

    centroids: Float
    logs: Float
    roots: Single
    certain: bool
    moved: Single
    farthest: Single


class DivergencePasser:
    """Does passes for one run of centroids under the Jensen-Shannon distance.

    Parameters
    ----------
    points
        The documents.
    known
        (n_rows,) the label of each document, -1 where it is not known.
    n_centroids
        How many centroids there are.
    """

    def __init__(self, points: Points, known: NDArray[np.int32], n_centroids: int) -> None:
        n = points.n_rows
        self._points = points
        self._free = known < 0
        self._predictions = known.copy()
        self._logs = np.empty(n)  # Σ p ln p
        # Lower bounds of the distances to all centroids but one's own, when they were made, and
        # the least of them.
        self._lower = np.zeros((n, n_centroids), dtype=np.float32)
        self._made_at = np.zeros(n, dtype=np.int32)
        self._least = np.zeros(n, dtype=np.float32)
        self._sums = np.zeros((n_centroids, points.n_dims))
        self._counts = np.zeros(n_centroids)
        self._ways = np.zeros((0, n_centroids))  # gone in each pass
        self._previous: Float | None = None

    def assign(self, centroids: Float) -> Assignment:
        """Give every document its nearest centroid."""
        first = self._previous is None
        target = self._aim(centroids)

        def work(rows: slice, raw: Raw) -> list[_Outcome]:
            return [
                self._pass_rows(few, self._points.exact(part), target, first)
                for few, part in _chunks(rows, raw)
            ]

        total, changed, scored = 0.0, 0, 0
        for outcomes in self._points.map_rows(work):
            for outcome in outcomes:
                total += outcome.total
                changed += outcome.moved
                scored += outcome.scored
                self._counts += outcome.counts
                if outcome.sums is not None:
                    self._sums += outcome.sums
        return Assignment(
            predictions=self._predictions,
            # Taking away what was added can leave a trace below zero.
            sums=np.maximum(self._sums, 0.0),
            counts=self._counts,
            total=total,
            changed=0 if first else changed,
            skipped=self._points.n_rows - scored,
        )

    def _aim(self, centroids: Float) -> _Target:
        """What the documents are compared with in this pass."""
        way = np.zeros((1, len(centroids)))
        if self._previous is not None:
            way[0] = jensen_shannon_pairs(self._previous, centroids) + 1e-7
        self._previous = centroids
        self._ways = np.concatenate([self._ways, way])
        # From after each pass to this one.
        gone = self._ways[::-1].cumsum(axis=0)[::-1] - self._ways
        return _Target(
            centroids=centroids,
            logs=_sum_of_logs(centroids),
            roots=np.sqrt(centroids).T.astype(np.float32),
            certain=np.array_equal(centroids, np.eye(len(centroids))),
            moved=gone.astype(np.float32),
            farthest=gone.max(axis=1).astype(np.float32),
        )

    def _pass_rows(self, rows: slice, points: Float, target: _Target, first: bool) -> _Outcome:
        before = self._predictions[rows].copy()
        if first:
            self._logs[rows] = _sum_of_logs(points)
            nearest = self._first_nearest(points, self._logs[rows], target)
            self._predictions[rows] = np.where(self._free[rows], nearest, before)
        label, unsure = self._predictions[rows], np.arange(len(points))
        own = _divergence(points, self._logs[rows], target.centroids[label], target.logs[label])
        if not first:
            unsure = self._unsure(rows, own, target)
            if len(unsure):
                own[unsure] = self._settle(rows, unsure, points[unsure], own[unsure], target)
        return self._outcome(rows, points, own, None if first else before, len(unsure))

    def _first_nearest(self, points: Float, logs: Float, target: _Target) -> NDArray[np.intp]:
        if target.certain:
            # A larger probability is a smaller divergence, and nothing else matters.
            return _sure_nearest(1.0 - points, points, target.centroids)
        divergences = _all_divergences(points, logs, target.centroids, target.logs)
        return _sure_nearest(divergences, points, target.centroids)

    def _unsure(self, rows: slice, own: Float, target: _Target) -> NDArray[np.intp]:
        """Places of the documents that some other centroid could be nearer to."""
        reach = np.sqrt(own).astype(np.float32) + _EQUAL_DISTANCES
        made_at = self._made_at[rows]
        near = self._least[rows] - target.farthest[made_at] <= reach
        suspects = np.flatnonzero(near & self._free[rows])
        if len(suspects) == 0:
            return suspects
        numbers, each = suspects + rows.start, np.arange(len(suspects))
        lower = self._lower[numbers]
        lower -= target.moved[made_at[suspects]]
        lower[each, self._predictions[numbers]] = np.inf
        return suspects[lower.min(axis=1) <= reach[suspects]]

    def _settle(
        self,
        rows: slice,
        unsure: NDArray[np.intp],
        points: Float,
        own: Float,
        target: _Target,
    ) -> Float:
        """Find the nearest centroid of some documents, and give the divergence to it."""
        numbers, each = unsure + rows.start, np.arange(len(unsure))
        label = self._predictions[numbers]
        hellinger = 1.0 - np.sqrt(points, dtype=np.float32) @ target.roots
        rounding = np.float32((points.shape[1] + 8) * 2.0**-23)
        lower = np.sqrt(np.maximum(np.float32(_LN2) * (hellinger - rounding), 0.0))
        np.maximum(lower, self._lower[numbers] - target.moved[self._made_at[numbers]], out=lower)
        reach = np.sqrt(np.minimum(own, hellinger.min(axis=1) + rounding)) + _EQUAL_DISTANCES
        lower[each, label] = np.inf
        document, other = np.nonzero(lower <= reach[:, None])
        divergences = np.full(lower.shape, np.inf)
        divergences[each, label] = own
        divergences[document, other] = _divergence(
            points[document],
            self._logs[numbers[document]],
            target.centroids[other],
            target.logs[other],
        )
        nearest = _sure_nearest(divergences, points, target.centroids)
        lower[document, other] = np.sqrt(divergences[document, other])
        lower[each, label] = np.sqrt(own)
        self._predictions[numbers] = nearest
        self._lower[numbers] = lower
        self._made_at[numbers] = len(target.moved) - 1
        lower[each, nearest] = np.inf
        self._least[numbers] = lower.min(axis=1)
        return divergences[each, nearest]

    def _outcome(
        self, rows: slice, points: Float, own: Float, before: NDArray[np.int32] | None, scored: int
    ) -> _Outcome:
        free, after, n = self._free[rows], self._predictions[rows], len(self._counts)
        moved = np.flatnonzero(free if before is None else after != before)
        left = None if before is None else before[moved]
        sums = moved_sums(points[moved], left, after[moved], n) if len(moved) else None
        counts = moved_counts(left, after[moved], n)
        return _Outcome(float(np.sqrt(own[free]).sum()), len(moved), scored, sums, counts)


def _all_divergences(points: Float, logs: Float, centroids: Float, centroid_logs: Float) -> Float:
    divergences = np.empty((len(points), len(centroids)))
    for label, centroid in enumerate(centroids):
        divergences[:, label] = _divergence(points, logs, centroid, centroid_logs[label])
    return divergences


def score(
    points: Points, centroids: Float, n_rows: int
) -> tuple[NDArray[np.intp], NDArray[np.float32]]:
    """The nearest centroid of the first documents, and their scores to all of them."""
    predictions = np.empty(n_rows, dtype=np.intp)
    scores = np.empty((n_rows, len(centroids)), dtype=np.float32)
    centroid_logs = _sum_of_logs(centroids)

    def work(rows: slice, raw: Raw) -> None:
        for few, part in _chunks(rows, raw):
            some = points.exact(part)
            divergences = _all_divergences(some, _sum_of_logs(some), centroids, centroid_logs)
            predictions[few] = _sure_nearest(divergences, some, centroids)
            scores[few] = with_largest((-np.sqrt(divergences)).astype(np.float32), predictions[few])

    wanted = [rows for rows in points.blocks if rows.start < n_rows]
    for _ in points.map_rows(work, wanted):
        pass
    return predictions, scores
