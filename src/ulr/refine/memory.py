"""What is remembered of every document from pass to pass, and what is decided by it.

These are the innermost loops. Where a compiler was at hand at installation they are those of
`_loops.pyx`; what is here in NumPy decides the same, for installations without one.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ulr.refine import loops
from ulr.refine.assign import moved_counts, moved_sums
from ulr.refine.distances import EQUAL, Float, LinearForm
from ulr.refine.scoring import (
    ALIGNED,
    ALWAYS,
    NEVER,
    ROUNDING,
    Doubt,
    LinearScorer,
    Raw,
    Rows,
    Single,
)
from ulr.refine.sketch import Sketch
from ulr.refine.trail import Bounds


@dataclass(frozen=True, eq=False)
class Target:
    """The centroids of a pass in the runs that go on.

    Attributes
    ----------
    iteration
        The number of the pass.
    runs
        (n,) which runs go on.
    slopes, offsets, lengths
        (n, n_centroids, n_dims) and (n, n_centroids) twice: their centroids in linear form, and
        the lengths of the slopes.
    vectors
        The slopes, `aligned`.
    sketched
        The coordinates of the slopes in the sketch of the documents, `aligned`, where there is
        one.
    doubts
        (4, n) what makes the doubt about distances, of this pass and of those before: for every
        length of a document and anyway; and about what has become of them, for its reach and
        anyway.
    bounds
        How far their centroids have gone; None where documents are to be scored anyway.
    """

    iteration: int
    runs: NDArray[np.intp]
    slopes: Float
    offsets: Float
    lengths: Float
    vectors: Single
    sketched: Single | None
    doubts: Single
    bounds: Bounds | None

    def form(self, place: int) -> LinearForm:
        """The centroids of one of the runs."""
        return LinearForm(self.slopes[place], self.offsets[place])

    def doubt(self, place: int) -> Doubt:
        """The doubt about distances in one of the runs."""
        return Doubt(float(self.doubts[0, place]), float(self.doubts[1, place]))

    @cached_property
    def compiled(self) -> Any:
        """The same for the compiled loops."""
        assert loops.compiled is not None
        return loops.compiled.Target(
            self.iteration, self.runs, self.slopes, self.offsets, self.lengths, self.vectors,
            self.sketched, self.doubts, self.bounds,
        )  # fmt: skip


def aligned(vectors: Float) -> Single:
    """Vectors of some runs, rounded; as many of each as are multiplied together, zeros last."""
    lacking = -vectors.shape[1] % ALIGNED
    rounded = vectors.astype(np.float32)
    return np.pad(rounded, ((0, 0), (0, lacking), (0, 0))) if lacking else rounded


class Memory:
    """What some runs of centroids remember of every document.

    Parameters
    ----------
    scorer
        The documents.
    known
        (n_rows,) the label of each document, -1 where it is not known.
    n_runs, n_centroids
        How many runs there are, and centroids of each.
    sketch
        The documents in few dimensions, for the compiled loops.

    Attributes
    ----------
    predictions
        (n_runs, n_rows) the label; at first -1 where it is not known.
    """

    def __init__(
        self,
        scorer: LinearScorer,
        known: NDArray[np.int32],
        n_runs: int,
        n_centroids: int,
        sketch: Sketch | None = None,
    ) -> None:
        shape = (n_runs, len(known))
        self._scorer, self._sketch = scorer, sketch
        free = known < 0
        self._free = None if free.all() else free
        self.predictions = np.tile(known, (n_runs, 1))
        # How far every document is, at most, from the middle of all.
        self._reach = sketch.reach if sketch else np.empty(len(known), dtype=np.float32)
        # Distances when a document was last scored, less those of its sketch where there is one,
        # and in which pass that was; by how much the label is ahead of all others at least, and
        # the place of the pass of which that is, and of the label, in the tables of `Bounds`.
        self._distances = np.empty((*shape, n_centroids), dtype=np.float32)
        self._scored_at = np.empty(shape, dtype=np.int32)
        self._lead = np.empty(shape, dtype=np.float32)
        self._lead_place = np.empty(shape, dtype=np.int32)
        # What cannot change need never be looked at again: known documents, and zero ones where
        # they are always equally far from everything.
        self._zero_stays = scorer.has_zero and scorer.points.distance.name != "l2"

    @cached_property
    def compiled(self) -> Any:
        """The same for the compiled loops."""
        assert loops.compiled is not None
        free = None if self._free is None else self._free.view(np.uint8)
        sketch = self._sketch
        rest, coordinates = (sketch.rest, sketch.coordinates) if sketch else (None, None)
        return loops.compiled.Documents(
            self.predictions, self._distances, self._lead, self._scored_at, self._lead_place, free,
            self._scorer.lengths, self._scorer.scale, self._scorer.squares, self._reach,
            rest, coordinates, self._zero_stays, NEVER, ALWAYS, EQUAL,
        )  # fmt: skip

    def measure(self, middle: Float, rows: Rows, products: Single) -> None:
        """Remember how far some documents are from the middle, by their products with it."""
        square, lengths = float(middle @ middle), self._scorer.lengths[rows].astype(np.float64)
        doubt = 4 * (len(middle) + 32) * ROUNDING * lengths * (lengths + square**0.5)
        squares = lengths * lengths - 2.0 * products + square
        self._reach[rows] = np.sqrt(np.maximum(squares, 0.0) + doubt) * (1 + 4 * ROUNDING)

    def could_change(self, target: Target, place: int, rows: slice) -> NDArray[np.intp]:
        """The numbers of the documents whose label could be another one by now.

        Parameters
        ----------
        target, place
            The centroids, and which of their runs.
        rows
            The documents to look at.
        """
        if loops.compiled:
            return loops.compiled.could_change(
                self.compiled, target.compiled, place, rows.start, rows.stop
            )
        bounds, run = target.bounds, target.runs[place]
        assert bounds is not None
        predictions, distances = self.predictions[run], self._distances[run]
        lead, reach = self._lead[run, rows], self._reach
        at = self._lead_place[run, rows]
        lost = bounds.steps[place].take(at)
        lost *= reach[rows]
        lost -= bounds.least[place].take(at)
        suspects = np.flatnonzero(lost >= lead)
        if len(suspects) == 0:
            return suspects
        # The same with each other centroid's own change instead of the largest of all.
        numbers, shift = suspects + rows.start, bounds.shift[place]
        then, own = self._scored_at[run].take(numbers), predictions.take(numbers)
        left = bounds.apart(place, then, own)
        left *= -reach.take(numbers)[:, None]
        left += shift[then]
        left += distances[numbers]
        left[np.arange(len(own)), own] = np.inf
        least = left.min(axis=1)
        least -= distances[numbers, own]
        least -= shift[then, own]
        doubts = 2 * target.doubt(place).of(self._scorer.lengths[numbers])
        could = least <= doubts + target.doubts[3, place]
        could |= lead.take(suspects) < 0
        could |= then < bounds.forgotten
        # What is left of the lead of the others is their lead from now on.
        safe = numbers[~could]
        self._lead[run, safe] = least[~could]
        self._lead_place[run, safe] = target.iteration * distances.shape[1] + predictions[safe]
        return numbers[could]

    def settle(
        self,
        target: Target,
        place: int,
        rows: Rows,
        raw: Raw,
        products: Single,
        sums: Float,
        counts: Float,
    ) -> int:
        """Decide about some documents by their products with the slopes of a pass.

        Parameters
        ----------
        target, place
            The centroids, and which of their runs.
        rows, raw
            Which documents, and what they are, `side_by_side`.
        products
            (n_centroids, n) of the rows with the slopes; not needed again.
        sums, counts
            (n_centroids, n_dims) and (n_centroids,): of the clusters; what changes is added.

        Returns
        -------
        int
            How many documents changed their label.
        """
        if loops.compiled:
            numbers = np.arange(rows.start, rows.stop) if isinstance(rows, slice) else rows
            return loops.compiled.settle(
                self.compiled, target.compiled, place, numbers, products, raw, sums, counts
            )
        scorer, run = self._scorer, target.runs[place]
        form, doubt = target.form(place), target.doubt(place)
        nearest, lead = scorer.nearest(form, doubt, products, raw, rows)
        before = self.predictions[run, rows]
        if self._free is not None:
            known = ~self._free[rows]
            lead[known] = NEVER
            nearest[known] = before[known]
        if self._zero_stays:
            lead[scorer.lengths[rows] == 0.0] = NEVER
        moved = np.flatnonzero(nearest != before)
        new = before[moved] < 0  # documents that are in no cluster yet
        for few, leaving in ((moved[new], None), (moved[~new], before[moved[~new]])):
            counts += moved_counts(leaving, nearest[few], len(counts))
            for start in range(0, len(few), scorer.few_rows):
                part = slice(start, start + scorer.few_rows)
                points = self._scorer.points.exact(raw[few[part]])
                left = None if leaving is None else leaving[part]
                sums += moved_sums(points, left, nearest[few[part]], len(counts))
        self.predictions[run, rows] = nearest
        self._distances[run, rows] = products.T
        self._lead[run, rows] = lead
        self._scored_at[run, rows] = target.iteration
        self._lead_place[run, rows] = target.iteration * len(products) + nearest
        return len(moved)
