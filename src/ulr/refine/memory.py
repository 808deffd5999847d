"""What is remembered of every document from pass to pass, and what is decided by it.

These are the innermost loops. Where a compiler was at hand at installation they are those of
`_loops.pyx`; what is here in NumPy decides the same, for installations without one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ulr.refine import loops
from ulr.refine.assign import moved_counts, moved_sums
from ulr.refine.distances import EQUAL, Float, LinearForm
from ulr.refine.points import Some
from ulr.refine.scoring import ALWAYS, NEVER, Doubt, LinearScorer, Rows, Single
from ulr.refine.trail import Bounds


@dataclass(frozen=True, eq=False)
class Outcome:
    """What deciding about some documents did.

    Attributes
    ----------
    sums, counts
        (n_centroids, n_dims) and (n_centroids,): what is to be added to those of the clusters.
    moved
        How many documents changed their label.
    """

    sums: Float
    counts: Float
    moved: int


class Memory:
    """What one run of centroids remembers of every document.

    Parameters
    ----------
    scorer
        The documents.
    known
        (n_rows,) the label of each document, -1 where it is not known.
    n_centroids
        How many centroids there are.

    Attributes
    ----------
    predictions
        (n_rows,) the label; at first -1 where it is not known.
    """

    def __init__(self, scorer: LinearScorer, known: NDArray[np.int32], n_centroids: int) -> None:
        n = len(known)
        self._scorer = scorer
        free = known < 0
        self._free = None if free.all() else free
        self.predictions = known.copy()
        # Distances when a document was last scored, and in which pass that was; by how much the
        # label is ahead of all others at least, and as of which pass.
        self._distances = np.empty((n, n_centroids), dtype=np.float32)
        self._scored_at = np.empty(n, dtype=np.int32)
        self._lead = np.empty(n, dtype=np.float32)
        self._lead_at = np.empty(n, dtype=np.int32)

    def could_change(
        self, rows: slice, bounds: Bounds, reach: Single, doubt: Doubt
    ) -> NDArray[np.intp]:
        """The numbers of the documents whose label could be another one by now.

        Parameters
        ----------
        rows
            The documents to look at.
        bounds
            How far the centroids have gone.
        reach
            (n_rows,) how far every document is from the middle.
        doubt
            About distances.
        """
        lengths, at = self._scorer.lengths, len(bounds.shift) - 1
        if loops.compiled:
            return loops.compiled.could_change(
                self.predictions, self._distances, self._lead, self._scored_at, self._lead_at,
                rows.start, rows.stop, reach, lengths, doubt.per_length, doubt.always,
                bounds.lowest, bounds.widest, bounds.shift, bounds.drift, bounds.pairs,
                bounds.forgotten, at,
            )  # fmt: skip
        lead = self._lead[rows]
        place = self._lead_at[rows] * np.int32(self._distances.shape[1]) + self.predictions[rows]
        doubts = 2 * doubt.of(lengths[rows])
        lost = bounds.widest.take(place)
        lost *= reach[rows]
        lost -= bounds.lowest.take(place)
        lost += doubts
        suspects = np.flatnonzero(lost >= lead)
        if len(suspects) == 0:
            return suspects
        # The same with each other centroid's own change instead of the largest of all.
        numbers = suspects + rows.start
        then, own = self._scored_at.take(numbers), self.predictions.take(numbers)
        left = bounds.apart(then, own)
        left *= -reach.take(numbers)[:, None]
        left += bounds.shift[then]
        left += self._distances[numbers]
        left[np.arange(len(own)), own] = np.inf
        least = left.min(axis=1)
        least -= self._distances[numbers, own]
        least -= bounds.shift[then, own]
        could = least <= doubts.take(suspects)
        could |= lead.take(suspects) < 0
        could |= then < bounds.forgotten
        # What is left of the lead of the others is their lead from now on.
        safe = numbers[~could]
        self._lead[safe] = least[~could]
        self._lead_at[safe] = at
        return numbers[could]

    def settle(
        self, form: LinearForm, doubt: Doubt, at: int, rows: Rows, some: Some, products: Single
    ) -> Outcome:
        """Decide about some documents by their products with the slopes of a pass.

        Parameters
        ----------
        form, doubt
            The centroids of the pass.
        at
            The number of the pass.
        rows, some
            Which documents, and their rows.
        products
            (n_centroids, n) of the rows with the slopes.
        """
        scorer = self._scorer
        # What cannot change need never be looked at again: known documents, and zero ones where
        # they are equally far from everything.
        zero_stays = scorer.has_zero and not form.offsets.any()
        sums, counts = np.zeros(form.slopes.shape), np.zeros(len(form.slopes))
        if loops.compiled:
            numbers, start = (None, rows.start) if isinstance(rows, slice) else (rows, 0)
            free = None if self._free is None else self._free.view(np.uint8)
            n_moved = loops.compiled.settle(
                self.predictions, self._distances, self._lead, self._scored_at, self._lead_at,
                free, numbers, start, products, some.block, some.places,
                scorer.lengths, scorer.squares, scorer.unit, form.slopes, form.offsets,
                doubt.per_length, doubt.always, EQUAL, zero_stays, NEVER, ALWAYS, at, sums, counts,
            )  # fmt: skip
            return Outcome(sums, counts, n_moved)
        nearest, lead = scorer.nearest(form, doubt, products, some, rows)
        before = self.predictions[rows]
        if self._free is not None:
            known = ~self._free[rows]
            lead[known] = NEVER
            nearest[known] = before[known]
        if zero_stays:
            lead[scorer.lengths[rows] == 0.0] = NEVER
        moved = np.flatnonzero(nearest != before)
        new = before[moved] < 0  # documents that are in no cluster yet
        for few, leaving in ((moved[new], None), (moved[~new], before[moved[~new]])):
            counts += moved_counts(leaving, nearest[few], len(counts))
            for start in range(0, len(few), scorer.few_rows):
                part = slice(start, start + scorer.few_rows)
                points = self._scorer.points.exact(some[few[part]])
                left = None if leaving is None else leaving[part]
                sums += moved_sums(points, left, nearest[few[part]], len(counts))
        self.predictions[rows] = nearest
        self._distances[rows] = products.T
        self._lead[rows] = lead
        self._scored_at[rows] = self._lead_at[rows] = at
        return Outcome(sums, counts, len(moved))
