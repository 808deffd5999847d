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

Several runs of centroids, of several sets of labels, can go over the same documents together: a
document is scored for all of them, by one matrix product, as soon as its label could change in one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ulr.refine.assign import Assignment
from ulr.refine.distances import Float, LinearForm
from ulr.refine.memory import Memory, Outcome
from ulr.refine.points import Some
from ulr.refine.scoring import ROUNDING, Doubt, LinearScorer, Rows, Single, doubts
from ulr.refine.threads import Result
from ulr.refine.trail import Bounds, Trail

_MOST = 0.6  # share of the documents from which on picking them out does not pay
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
        self._passes = SharedPasses(scorer, known, 1, n_centroids)

    def assign(self, centroids: Float) -> Assignment:
        """Give every document its nearest centroid."""
        return self._passes.assign(centroids[None])[0]


class SharedPasses:
    """Does passes for several runs of equally many centroids at the same time; as `LinearPasser`.

    Parameters
    ----------
    scorer
        The documents.
    known
        (n_rows,) the label of each document, the same for all runs.
    n_runs, n_centroids
        How many runs, and centroids of each, there are.
    """

    def __init__(
        self, scorer: LinearScorer, known: NDArray[np.int32], n_runs: int, n_centroids: int
    ) -> None:
        self._scorer, self._points = scorer, scorer.points
        self._n_free = int((known < 0).sum())
        self._square_sum = float(scorer.squares[known < 0].sum())
        self._memories = [Memory(scorer, known, n_centroids) for _ in range(n_runs)]
        self._sums = np.zeros((n_runs, n_centroids, self._points.n_dims))
        self._counts = np.zeros((n_runs, n_centroids))
        self._per_length, self._always = np.zeros(n_runs), np.zeros(n_runs)
        self._middle = Middle(scorer)
        self._trail = Trail(n_runs, n_centroids, self._points.n_dims)
        self._iteration = -1
        self._scored = 0  # documents, in the last pass

    def keep(self, runs: Sequence[int]) -> None:
        """Go on with some of the runs only."""
        self._memories = [self._memories[run] for run in runs]
        for name in ("_sums", "_counts", "_per_length", "_always"):
            setattr(self, name, getattr(self, name)[runs])
        self._trail.keep(runs)

    def assign(self, centroids: Float) -> list[Assignment]:
        """Give every document its nearest centroid in every run, (n_runs, n_centroids, n_dims)."""
        self._iteration += 1
        runs = self._aim(centroids)
        flat = self._slopes.reshape(-1, self._points.n_dims)
        if self._iteration == 1:
            flat = np.concatenate([flat, self._middle.vector[None]])
        vectors = flat.astype(np.float32)

        def work(rows: Rows, some: Some) -> tuple[list[Outcome], int]:
            products, some = self._scorer.products(some, rows, vectors)
            if self._iteration == 1:
                self._middle.measure(rows, products[-1])
            return self._settle(runs, rows, some, products), len(some)

        changed, scored = [0] * len(runs), 0
        for outcomes, n in self._map(work, runs):
            scored += n
            for i, outcome in enumerate(outcomes):
                self._sums[i] += outcome.sums
                self._counts[i] += outcome.counts
                changed[i] += outcome.moved
        self._scored = scored
        if self._iteration == 0:
            changed = [0] * len(runs)
            self._middle.vector = self._sums[0].sum(axis=0) / max(1, self._n_free)
        totals, skipped = self._totals().tolist(), self._points.n_rows - scored
        return [
            Assignment(
                run.memory.predictions, self._sums[i], self._counts[i], totals[i], changed[i],
                skipped,
            )
            for i, run in enumerate(runs)
        ]  # fmt: skip

    def _aim(self, centroids: Float) -> list[_Run]:
        """Make ready for the centroids of a pass."""
        form = self._scorer.form(centroids.reshape(-1, centroids.shape[2]))
        self._slopes = form.slopes.reshape(centroids.shape)
        self._offsets = form.offsets.reshape(centroids.shape[:2])
        self._trail.add(self._slopes, self._offsets, self._middle.vector)
        # Distances that are remembered may be of any pass so far.
        per_length, always = doubts(self._slopes, self._offsets)
        self._per_length = np.maximum(self._per_length, per_length)
        self._always = np.maximum(self._always, always)
        bounds = self._trail.bounds() if self._iteration > 1 else [None] * len(centroids)
        forms = map(LinearForm, self._slopes, self._offsets)
        about = map(Doubt, self._per_length.tolist(), self._always.tolist())
        return list(map(_Run, self._memories, forms, about, bounds))

    def _map(self, work: Callable[[Rows, Some], Result], runs: Sequence[_Run]) -> Iterator[Result]:
        """`work` on the documents that could change."""
        points = self._points
        if self._iteration <= 1:
            # Nothing is known in the first pass, and next to nothing holds after the first update.
            yield from points.map_rows(lambda rows, raw: work(rows, Some(raw)))
            return

        def could_change(rows: slice) -> NDArray[np.intp]:
            if len(runs) == 1:
                return runs[0].could_change(rows, self._middle.reach)
            could = np.zeros(rows.stop - rows.start, dtype=bool)
            for run in runs:
                could[run.could_change(rows, self._middle.reach) - rows.start] = True
            return np.flatnonzero(could) + rows.start

        looked_at = max(1, min(_LOOKED_AT_ROWS, _LOOKED_AT // self._sums.shape[1]))
        little = points.n_rows + _SCORED_TO_LOOKED_AT * self._scored < _WORTH_THREADS
        with points.by_one_thread() if little else nullcontext():
            yield from points.map_some(work, could_change, looked_at, _PICKED_ROWS, _MOST)

    def _settle(
        self, runs: Sequence[_Run], rows: Rows, some: Some, products: Single
    ) -> list[Outcome]:
        """Decide about some documents in every run, by their products with all slopes."""
        outcomes: list[Outcome] = []
        n_centroids = self._sums.shape[1]
        for i, run in enumerate(runs):
            # At first all runs will put most documents into the same clusters. So a run begins
            # where the one before it has got to, and only what it does otherwise is summed up.
            like = outcomes[-1] if self._iteration == 0 and i > 0 else None
            if like is not None:
                run.memory.predictions[rows] = runs[i - 1].memory.predictions[rows]
            own = products[i * n_centroids : (i + 1) * n_centroids]
            outcome = run.memory.settle(run.form, run.doubt, self._iteration, rows, some, own)
            if like is not None:
                outcome.sums[...] += like.sums
                outcome.counts[...] += like.counts
            outcomes.append(outcome)
        return outcomes

    def _totals(self) -> Float:
        """The sum of the distances of the documents to their centroids, in every run."""
        distance = self._points.distance.name
        pull = np.einsum("kcd,kcd->k", self._slopes, self._sums)
        if distance == "l2":
            return self._square_sum - pull + np.einsum("kc,kc->k", self._counts, self._offsets)
        return (self._n_free if distance == "cosine" else 0.0) - pull


@dataclass(frozen=True, eq=False)
class _Run:
    """One run in one pass: its memory, its centroids, and how far they have gone."""

    memory: Memory
    form: LinearForm
    doubt: Doubt
    bounds: Bounds | None

    def could_change(self, rows: slice, reach: Single) -> NDArray[np.intp]:
        """The numbers of the documents whose label could be another one by now."""
        assert self.bounds is not None
        return self.memory.could_change(rows, self.bounds, reach, self.doubt)
