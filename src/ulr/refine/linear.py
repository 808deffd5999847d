"""Passes for cosine, l2 and dot that score only the documents whose label could change.

For these three, a centroid's distance is ``offset_c - x · slope_c`` plus something that is the
same for every centroid. A document scored in an earlier pass keeps its label if its lead over
every other centroid then is larger than anything that happened since can have taken from it:

    lead now  >=  lead then + shift_c - shift_a - |x - m| (drift_c + drift_a)

where a is its label, c any other, m a fixed vector in the middle of the documents, ``shift`` is
what a centroid's change does to the distance of m, and ``drift`` is the length of the change of
its slope, less the change that all slopes have in common, which takes nothing from any lead. With
few labels the length of the difference of two changes takes the place of the sum of their drifts.

Scores come from `ulr.refine.scoring`, so every label is the one that `PlainPasser` gives. Cluster
sums are float64 and touched only for documents that move; the objective follows from the sums.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import nullcontext
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ulr.refine.assign import Assignment, moved_counts, moved_sums
from ulr.refine.distances import Float, LinearForm
from ulr.refine.scoring import NEVER, ROUNDING, Doubt, LinearScorer, Raw, Rows, Single
from ulr.refine.trail import Bounds, Trail

MOST = 0.6  # share of the documents from which on picking them out does not pay
# Distances to look at in one go, and rows to look at and to pick out, that stay in the cache.
_LOOKED_AT, _LOOKED_AT_ROWS, _PICKED_ROWS = 1 << 20, 1 << 15, 1 << 12
# Handing work from thread to thread pays from so many rows looked at, one scored being many.
_WORTH_THREADS, _SCORED_TO_LOOKED_AT = 1 << 17, 32


class Middle:
    """A vector in the middle of the documents, and how far each document is from it.

    Attributes
    ----------
    vector
        (n_dims,).
    reach
        (n_rows,) distance of the points to it, rounded up.
    """

    def __init__(self, scorer: LinearScorer) -> None:
        self._scorer = scorer
        self.vector = np.zeros(scorer.points.n_dims)
        self.reach = np.empty(scorer.points.n_rows, dtype=np.float32)

    def measure(self, rows: Rows, products: Single) -> None:
        """Take in the products of some documents with the vector."""
        square = float(self.vector @ self.vector)
        lengths = self._scorer.lengths[rows].astype(np.float64)
        doubt = 4 * (len(self.vector) + 32) * ROUNDING * lengths * (lengths + square**0.5)
        squares = lengths * lengths - 2.0 * products + square
        self.reach[rows] = np.sqrt(np.maximum(squares, 0.0) + doubt) * (1 + 4 * ROUNDING)


class LinearPasser:
    """Does passes for one run of centroids, scoring only documents that could change.

    Parameters
    ----------
    scorer
        The documents.
    known
        (n_rows,) the label of each document, -1 where it is not known.
    n_centroids
        How many centroids there are.
    """

    def __init__(self, scorer: LinearScorer, known: NDArray[np.int32], n_centroids: int) -> None:
        self._scorer, self._points = scorer, scorer.points
        n = self._points.n_rows
        self._n_centroids = n_centroids
        self._free = known < 0
        self._all_free = bool(self._free.all())
        self._n_free = int(self._free.sum())
        self._square_sum = 0.0
        self._predictions = known.copy()
        self._distances = np.empty((n_centroids, n), dtype=np.float32)
        self._lead = np.empty(n, dtype=np.float32)
        self._scored_at = np.empty(n, dtype=np.int32)
        # When the lead was worked out and whose it is, as a place in a flat table.
        self._place = np.empty(n, dtype=np.int32)
        self._sums = np.zeros((n_centroids, self._points.n_dims))
        self._counts = np.zeros(n_centroids)
        self._middle = Middle(scorer)
        self._trail = Trail(n_centroids, self._points.n_dims)
        self._iteration = -1
        self._scored = 0  # documents, in the last pass
        self._doubt = Doubt()

    def assign(self, centroids: Float) -> Assignment:
        """Give every document its nearest centroid."""
        form = self._scorer.form(centroids)
        self._iteration += 1
        self._trail.add(form, self._middle.vector)
        self._doubt.widen(form)
        vectors, second = form.slopes.astype(np.float32), self._iteration == 1
        if second:
            vectors = np.concatenate([vectors, self._middle.vector[None].astype(np.float32)])

        def work(rows: Rows, raw: Raw) -> _Outcome:
            products = self._scorer.products(raw, rows, vectors)
            if second:
                self._middle.measure(rows, products[-1])
                products = products[:-1]
            return self._take_in(form, raw, rows, products)

        if self._iteration <= 1:
            # Nothing is known in the first pass, and next to nothing holds after the first update.
            return self._sum_up(form, self._points.map_rows(work))
        bounds = self._trail.bounds()

        def could_change(rows: slice) -> NDArray[np.intp]:
            return self._could_change(rows, bounds)

        looked_at = max(1, min(_LOOKED_AT_ROWS, _LOOKED_AT // self._n_centroids))
        little = self._points.n_rows + _SCORED_TO_LOOKED_AT * self._scored < _WORTH_THREADS
        with self._points.by_one_thread() if little else nullcontext():
            return self._sum_up(
                form, self._points.map_some(work, could_change, looked_at, _PICKED_ROWS, MOST)
            )

    def _sum_up(self, form: LinearForm, outcomes: Iterable[_Outcome]) -> Assignment:
        """Put together what scoring the documents did."""
        first, moved = self._iteration == 0, 0
        self._scored = 0
        for outcome in outcomes:
            moved += outcome.moved
            self._scored += outcome.scored
            self._counts += outcome.counts
            self._square_sum += outcome.square_sum
            self._sums += outcome.sums
        if first:
            self._middle.vector = self._sums.sum(axis=0) / max(1, self._n_free)
        return Assignment(
            predictions=self._predictions,
            sums=self._sums,
            counts=self._counts,
            total=self._total(form),
            changed=0 if first else moved,
            skipped=self._points.n_rows - self._scored,
        )

    def _total(self, form: LinearForm) -> float:
        pull = float(np.einsum("ij,ij->", form.slopes, self._sums))
        if self._points.distance.name == "l2":
            return self._square_sum - pull + float(self._counts @ form.offsets)
        return (self._n_free if self._points.distance.name == "cosine" else 0.0) - pull

    def _could_change(self, rows: slice, bounds: Bounds) -> NDArray[np.intp]:
        """Which documents have to be scored."""
        place, reach, lead = self._place[rows], self._middle.reach[rows], self._lead[rows]
        doubt = 2 * self._doubt.of(self._scorer.lengths[rows])
        lost = bounds.widest.take(place)
        lost *= reach
        lost -= bounds.lowest.take(place)
        lost += doubt
        suspects = np.flatnonzero(lost >= lead)
        if len(suspects) == 0:
            return suspects
        # The same with each other centroid's own change instead of the largest of all.
        numbers = suspects + rows.start
        then, own = self._scored_at.take(numbers), self._predictions.take(numbers)
        whose = then * np.int32(self._n_centroids) + own
        left = bounds.apart(then, own, whose)
        left *= -reach.take(suspects)
        left += bounds.shift.take(then, axis=1)
        left += self._distances.take(numbers, axis=1)
        least = left.min(axis=0)
        least -= self._distances.reshape(-1).take(numbers + own * np.intp(self._points.n_rows))
        least -= bounds.own_shift.take(whose)
        could = least <= doubt.take(suspects)
        could |= lead.take(suspects) < 0
        if bounds.forgotten:
            could |= then < bounds.forgotten
        # What is left of the lead of the others is their lead from now on.
        safe = np.flatnonzero(~could)
        numbers_safe = numbers.take(safe)
        self._lead[numbers_safe] = least.take(safe)
        self._place[numbers_safe] = own.take(safe) + np.int32(self._iteration * self._n_centroids)
        return numbers[could]

    def _take_in(self, form: LinearForm, raw: Raw, rows: Rows, products: Single) -> _Outcome:
        """Take in the products of some documents with the slopes of this pass."""
        distances = np.subtract(form.offsets.astype(np.float32)[:, None], products, out=products)
        nearest, lead = self._scorer.nearest(form, self._doubt, distances, raw, rows)
        before = self._predictions[rows]
        moving = nearest != before
        # What cannot change need never be looked at again: known documents, and zero ones where
        # they are equally far from everything.
        if not self._all_free:
            known = ~self._free[rows]
            lead[known] = NEVER
            moving &= self._free[rows]
            nearest[known] = before[known]
        if self._scorer.has_zero and not form.offsets.any():
            lead[self._scorer.lengths[rows] == 0.0] = NEVER
        moved = np.flatnonzero(moving)
        outcome = self._moves(raw, moved, before[moved], nearest[moved])
        self._distances[:, rows] = distances
        self._lead[rows] = lead
        self._predictions[rows] = nearest
        self._scored_at[rows] = self._iteration
        self._place[rows] = nearest + np.int32(self._iteration * self._n_centroids)
        return outcome

    def _moves(
        self,
        raw: Raw,
        moved: NDArray[np.intp],
        before: NDArray[np.int32],
        after: NDArray[np.int32],
    ) -> _Outcome:
        """What the moves of documents do to the clusters."""
        n, fresh = self._n_centroids, self._iteration == 0
        counts = moved_counts(None if fresh else before, after, n)
        square_sum, sums = 0.0, np.zeros((n, raw.shape[1]))
        for start in range(0, len(moved), self._scorer.few_rows):
            few = slice(start, start + self._scorer.few_rows)
            vectors, weights = self._scorer.weighted(
                raw[few] if len(moved) == len(raw) else raw[moved[few]]
            )
            sums += moved_sums(vectors, None if fresh else before[few], after[few], n, weights)
            if fresh and self._points.distance.name == "l2":
                square_sum += float(np.vdot(vectors, vectors))
        return _Outcome(sums, counts, square_sum, len(moved), len(raw))


@dataclass(frozen=True, eq=False)
class _Outcome:
    """What scoring some documents did.

    Attributes
    ----------
    sums, counts
        What is to be added to those of the clusters.
    square_sum
        In the first pass, the sum of the squared lengths of the documents.
    moved, scored
        Documents that changed their label, and that were scored.
    """

    sums: Float
    counts: Float
    square_sum: float
    moved: int
    scored: int
