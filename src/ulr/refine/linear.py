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

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ulr.refine.assign import Assignment, moved_counts, moved_sums
from ulr.refine.distances import Float, LinearForm
from ulr.refine.scoring import ALWAYS, NEVER, ROUNDING, Doubt, LinearScorer, Raw, Rows, Single

_REMEMBERED_BYTES = 64 << 20  # of the slopes of earlier passes
MOST = 0.6  # share of the documents from which on picking them out does not pay
_TESTED_ROWS = 1 << 14  # rows whose bounds stay in the cache
_PICKED_ROWS = 1 << 12  # rows picked out for one thread
_MOST_PAIRS = 1 << 20  # of centroids, over all passes, that are worth comparing with each other


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
        self._forms: list[LinearForm] = []
        self._doubt = Doubt()

    def assign(self, centroids: Float) -> Assignment:
        """Give every document its nearest centroid."""
        form = self._scorer.form(centroids)
        self._forms.append(form)
        self._doubt.widen(form)
        vectors, second = form.slopes.astype(np.float32), len(self._forms) == 2
        if second:
            vectors = np.concatenate([vectors, self._middle.vector[None].astype(np.float32)])

        def work(rows: Rows, raw: Raw) -> _Outcome:
            products = self._scorer.products(raw, rows, vectors)
            if second:
                self._middle.measure(rows, products[-1])
                products = products[:-1]
            return self._take_in(raw, rows, products)

        doubted = self._could_change()
        outcomes: Iterator[_Outcome]
        if doubted is None or len(doubted) > MOST * self._points.n_rows:
            outcomes = self._points.map_rows(work)
        else:
            outcomes = self._points.map_picked(work, doubted, _PICKED_ROWS)
        return self._sum_up(outcomes)

    def _sum_up(self, outcomes: Iterable[_Outcome]) -> Assignment:
        """Put together what scoring the documents did."""
        first, moved, scored = len(self._forms) == 1, 0, 0
        for outcome in outcomes:
            moved += outcome.moved
            scored += outcome.scored
            self._counts += outcome.counts
            self._square_sum += outcome.square_sum
            self._sums += outcome.sums
        if first:
            self._middle.vector = self._sums.sum(axis=0) / max(1, self._n_free)
        return Assignment(
            predictions=self._predictions,
            sums=self._sums,
            counts=self._counts,
            total=self._total(self._forms[-1]),
            changed=0 if first else moved,
            skipped=self._points.n_rows - scored,
        )

    def _total(self, form: LinearForm) -> float:
        pull = float(np.einsum("ij,ij->", form.slopes, self._sums))
        if self._points.distance.name == "l2":
            return self._square_sum - pull + float(self._counts @ form.offsets)
        return (self._n_free if self._points.distance.name == "cosine" else 0.0) - pull

    def _could_change(self) -> NDArray[np.intp] | None:
        """The documents that have to be scored; None for all."""
        if len(self._forms) <= 2:
            # Nothing is known in the first pass, and next to nothing holds after the first update.
            return None
        bounds = _Bounds.since(self._forms, self._middle.vector)
        # On one thread: handing work so small from thread to thread takes longer than doing it.
        size = min(_TESTED_ROWS, self._points.picked_rows)
        starts = range(0, self._points.n_rows, size)
        return np.concatenate(
            [self._could_change_in(slice(start, start + size), bounds) for start in starts]
        )

    def _could_change_in(self, rows: slice, bounds: _Bounds) -> NDArray[np.intp]:
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
        numbers, each = suspects + rows.start, np.arange(len(suspects))
        then, own = self._scored_at[numbers], self._predictions[numbers]
        reach = reach[suspects]
        left = bounds.apart(then, own)
        left *= -reach
        left += bounds.shift.take(then, axis=1)
        distances = self._distances.take(numbers, axis=1)
        mine = distances[own, each] + bounds.shift[own, then]
        left += distances
        left[own, each] = NEVER
        least = left.min(axis=0)
        least -= mine
        could = (least <= doubt[suspects]) | (lead[suspects] < 0)
        # What is left of the lead of the others is their lead from now on.
        safe = numbers[~could]
        self._lead[safe] = least[~could]
        self._place[safe] = own[~could] + np.int32((len(self._forms) - 1) * self._n_centroids)
        return numbers[could]

    def _take_in(self, raw: Raw, rows: Rows, products: Single) -> _Outcome:
        """Take in the products of some documents with the slopes of this pass."""
        form, iteration = self._forms[-1], len(self._forms) - 1
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
        self._scored_at[rows] = iteration
        self._place[rows] = nearest + np.int32(iteration * self._n_centroids)
        return outcome

    def _moves(
        self,
        raw: Raw,
        moved: NDArray[np.intp],
        before: NDArray[np.int32],
        after: NDArray[np.int32],
    ) -> _Outcome:
        """What the moves of documents do to the clusters."""
        n, fresh = self._n_centroids, len(self._forms) == 1
        counts = moved_counts(None if fresh else before, after, n)
        square_sum, sums = 0.0, np.zeros((n, raw.shape[1]))
        for start in range(0, len(moved), self._scorer.few_rows):
            few = slice(start, start + self._scorer.few_rows)
            points = self._points.exact(raw[few] if len(moved) == len(raw) else raw[moved[few]])
            sums += moved_sums(points, None if fresh else before[few], after[few], n)
            if fresh and self._points.distance.name == "l2":
                square_sum += float(np.vdot(points, points))
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


@dataclass(frozen=True, eq=False)
class _Bounds:
    """How far centroids have gone since each earlier pass.

    Attributes
    ----------
    shift
        (n_centroids, n_passes) as at the top of this file.
    drift
        (n_centroids, n_passes) likewise; of any two centroids together it is no less than how far
        they have moved apart.
    pairs
        (n_centroids, n_passes * n_centroids) how far they have indeed, each other one from each;
        None where there are too many.
    lowest, widest
        (n_passes * n_centroids,) the least shift of the others less one's own, and the farthest
        that another has moved apart.
    """

    shift: Single
    drift: Single
    pairs: Single | None
    lowest: Single
    widest: Single

    @classmethod
    def since(cls, forms: list[LinearForm], middle: Float) -> _Bounds:
        """Bounds between every earlier form that is remembered and the last one."""
        now, single, n = forms[-1], np.float32, len(forms[-1].offsets)
        shift, drift = np.zeros((2, len(forms), n))
        most = max(2, _REMEMBERED_BYTES // now.slopes.nbytes)
        remembered = max(1, len(forms) - most)
        change = np.stack([form.slopes for form in forms[remembered:]])
        np.subtract(now.slopes, change, out=change)
        shift[remembered:] = now.offsets - [form.offsets for form in forms[remembered:]]
        shift[remembered:] -= change @ middle
        change -= change.mean(axis=1, keepdims=True)
        squares = np.einsum("ijk,ijk->ij", change, change)
        drift[remembered:] = np.sqrt(squares) * (1.0 + 16 * ROUNDING)
        lowest = others(shift, np.minimum) - shift
        lowest[:remembered] = ALWAYS
        pairs = None
        if len(forms) * n * n > _MOST_PAIRS:
            widest = others(drift, np.maximum) + drift
        else:
            between = np.zeros((len(forms), n, n))
            both = squares[:, :, None] + squares[:, None, :]
            apart = both - 2.0 * np.matmul(change, change.transpose(0, 2, 1))
            between[remembered:] = np.sqrt(np.maximum(apart, 0.0) + 1e-13 * both)
            between *= 1.0 + 16 * ROUNDING
            widest = between.max(axis=2)
            pairs = np.ascontiguousarray(between.reshape(-1, n).T, dtype=single)
        return cls(
            shift=np.ascontiguousarray(shift.T, dtype=single),
            drift=np.ascontiguousarray(drift.T, dtype=single),
            pairs=pairs,
            lowest=lowest.astype(single).ravel(),
            widest=widest.astype(single).ravel(),
        )

    def apart(self, then: NDArray[np.int32], own: NDArray[np.int32]) -> Single:
        """How far, at most, each centroid has moved apart from some own ones since some passes."""
        if self.pairs is not None:
            return self.pairs.take(then * np.int32(len(self.shift)) + own, axis=1)
        return self.drift.take(then, axis=1) + self.drift[own, then]


def others(table: NDArray[np.floating], extreme: np.ufunc) -> NDArray[np.floating]:
    """For every place in the last axis of a table, the extreme of the other places."""
    sign = 1.0 if extreme is np.minimum else -1.0
    two = sign * np.partition(sign * table, 1, axis=-1)[..., :2]
    return np.where(table == two[..., :1], two[..., 1:], two[..., :1])
