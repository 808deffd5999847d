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

Several runs of centroids, of several sets of labels, can go over the same documents together, so
that these need be fetched from memory once for all of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ulr.refine import loops
from ulr.refine.assign import Assignment
from ulr.refine.distances import Float, LinearForm
from ulr.refine.memory import Memory, Target, aligned
from ulr.refine.points import is_side_by_side, side_by_side
from ulr.refine.scoring import (
    ALIGNED,
    ROUNDING,
    LinearScorer,
    Raw,
    Single,
    rounding_of_distances,
)
from ulr.refine.sketch import Sketch, distinct
from ulr.refine.trail import Trail

# Distances to look at in one go, and rows to look at and to pick out, that stay in the cache.
_LOOKED_AT, _LOOKED_AT_ROWS, _PICKED_ROWS = 1 << 20, 1 << 15, 1 << 12
# Handing work from thread to thread pays from so many rows looked at, one scored being many.
_WORTH_THREADS, _SCORED_TO_LOOKED_AT = 1 << 17, 32


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


@dataclass(frozen=True, eq=False)
class _Part:
    """What a pass did to some documents.

    Attributes
    ----------
    sums, counts
        (n_runs, n_centroids, n_dims) and (n_runs, n_centroids): to be added to the clusters'.
    moved, scored
        (n_runs,) how many documents changed their label, and how many were scored.
    """

    sums: Float
    counts: Float
    moved: NDArray[np.intp]
    scored: NDArray[np.intp]


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
    sketch
        The documents in few dimensions, where there is such.
    """

    def __init__(
        self,
        scorer: LinearScorer,
        known: NDArray[np.int32],
        n_runs: int,
        n_centroids: int,
        sketch: Sketch | None = None,
    ) -> None:
        self._scorer, self._points = scorer, scorer.points
        self._n_free = int((known < 0).sum())
        self._square_sum = float(scorer.squares[known < 0].sum())
        self._sketch, n_dims = sketch, self._points.n_dims
        self._memory = Memory(scorer, known, n_runs, n_centroids, sketch)
        self._trail = Trail(n_runs, n_centroids, n_dims, len(sketch.basis) if sketch else 0)
        # Of the documents; known from the beginning, or after the first pass.
        self._middle = sketch.middle if sketch else np.zeros(n_dims)
        # What doubt there is about distances for the longest slope and the highest offset; and
        # about what has become of them since, for the longest slope, from sums of products of
        # coordinates for two centroids then and now, and for the highest level.
        per_reach = 8 * (len(sketch.basis) + 16) * ROUNDING if sketch else 0.0
        of_change = (per_reach, 16 * ROUNDING)
        self._factors = np.array([*rounding_of_distances(n_dims), *of_change])
        self._iteration = -1
        self._scored = 0  # documents, in the last pass
        # Of the runs that go on.
        self._runs = np.arange(n_runs)
        self._sums = np.zeros((n_runs, n_centroids, self._points.n_dims))
        self._counts = np.zeros((n_runs, n_centroids))
        # The doubt about distances in any pass so far, as in `Target`.
        self._doubts = np.zeros((4, n_runs), dtype=np.float32)

    def keep(self, places: Sequence[int]) -> None:
        """Go on with some of the runs only."""
        for name in ("_runs", "_sums", "_counts"):
            setattr(self, name, getattr(self, name)[places])
        self._doubts = self._doubts.take(places, axis=1)

    @property
    def clusters(self) -> tuple[Float, Float]:
        """Sums and counts of the clusters after the last pass, of all runs that go on."""
        return self._sums, self._counts

    def assign(self, centroids: Float) -> list[Assignment]:
        """Give every document its nearest centroid in every run, (n_runs, n_centroids, n_dims)."""
        self._iteration += 1
        target = self._aim(centroids)
        changed = np.zeros(len(target.runs), dtype=np.intp)
        scored = np.zeros(len(target.runs), dtype=np.intp)
        for part in self._parts(target):
            self._sums += part.sums
            self._counts += part.counts
            changed += part.moved
            scored += part.scored
        self._scored = int(scored.sum())
        if self._iteration == 0:
            changed[:] = 0
        if self._iteration == 0 and self._sketch is None:
            self._middle = self._sums[0].sum(axis=0) / max(1, self._n_free)
        totals, skipped = self._totals(target), self._points.n_rows - scored
        return [
            Assignment(self._memory.predictions[run], *of_run)
            for run, *of_run in zip(
                target.runs, self._sums, self._counts, totals.tolist(), changed.tolist(),
                skipped.tolist(), strict=True,
            )
        ]  # fmt: skip

    def _aim(self, centroids: Float) -> Target:
        """Make ready for the centroids of a pass."""
        flat = self._scorer.form(centroids.reshape(-1, centroids.shape[2]))
        lengths, levels, vectors = self._measure(flat)
        slopes, offsets = flat.slopes.reshape(centroids.shape), flat.offsets.reshape(levels.shape)
        coordinates = sketched = None
        if self._sketch is not None:
            coordinates = (flat.slopes @ self._sketch.basis.T).reshape(*levels.shape, -1)
            sketched = aligned(coordinates)
        self._trail.add(self._runs, slopes, levels, float(lengths.max()), coordinates)
        bounds = None
        # Nothing is known in the first pass, and without a sketch next to nothing holds after the
        # first update.
        if self._iteration > (1 if sketched is None else 0):
            per_length, always, per_reach, of_change = self._doubts
            # No document is longer than the middle and its reach.
            longest = np.float32(np.linalg.norm(self._middle) * (1 + 4 * ROUNDING))
            always = 2 * (always + per_length * longest) + of_change
            bounds = self._trail.bounds(self._runs, 2 * per_length + per_reach, always)
        return Target(
            self._iteration, self._runs, slopes, offsets, lengths, vectors, sketched,
            self._doubts, bounds,
        )  # fmt: skip

    def _measure(self, flat: LinearForm) -> tuple[Float, Float, Single]:
        """Lengths of slopes, (n_runs, n_centroids), distances of the middle; and slopes, aligned.

        Takes note of the doubt about distances. Those that are remembered may be of any pass so
        far.
        """
        if loops.compiled:
            return loops.compiled.aim(
                flat.slopes, flat.offsets, self._middle, self._factors, self._doubts
            )
        shape, n_dims = self._counts.shape, self._points.n_dims
        lengths, offsets = flat.lengths.reshape(shape), flat.offsets.reshape(shape)
        levels = offsets - (flat.slopes @ self._middle).reshape(shape)
        longest = lengths.max(axis=1)
        of_pass = [longest, np.abs(offsets).max(axis=1), longest, np.abs(levels).max(axis=1)]
        np.maximum(self._doubts, self._factors[:, None] * of_pass, out=self._doubts)
        return lengths, levels, aligned(flat.slopes.reshape(*shape, n_dims))

    def _parts(self, target: Target) -> Iterator[_Part]:
        """Do the pass; the outcomes for the documents part by part."""
        points, memory = self._points, self._memory

        def work(rows: slice, raw: Raw) -> _Part:
            part = _Part(
                np.zeros(target.slopes.shape),
                np.zeros(target.offsets.shape),
                np.zeros(len(target.runs), dtype=np.intp),
                np.zeros(len(target.runs), dtype=np.intp),
            )
            if self._is_compiled_for(target, raw):
                self._advance(target, rows, raw, part)
            elif target.bounds is None:
                self._score_all(target, rows, side_by_side(raw), part)
            else:
                self._score_some(target, rows, raw, part)
            return part

        looks = points.n_rows * len(target.runs)
        little = looks + _SCORED_TO_LOOKED_AT * self._scored < _WORTH_THREADS
        alone = points.is_small or (little and target.bounds is not None)
        if target.bounds is None and not alone:
            blocks = points.blocks
        elif points.is_streamed:
            everywhere = range(len(target.runs))
            blocks = [
                rows
                for rows in points.blocks
                if any(len(memory.could_change(target, place, rows)) for place in everywhere)
            ]
        else:
            size = points.n_rows if alone else -(-points.n_rows // 2)
            most = max(1, _LOOKED_AT // self._sums.shape[1])
            blocks = points.slices(min(size, _LOOKED_AT_ROWS, most))
        yield from points.map_rows(work, blocks, alone)

    def _is_compiled_for(self, target: Target, raw: Raw) -> bool:
        """Whether the compiled loops do all of a pass at once."""
        # Sets of labels have many of them in common at first, which are multiplied only once.
        in_common = self._iteration == 0 and len(target.runs) > 1
        few = loops.do_all_of_a_pass(target.slopes.shape[1])
        return few and is_side_by_side(raw) and not in_common

    def _advance(self, target: Target, rows: slice, raw: Raw, part: _Part) -> None:
        assert loops.compiled is not None
        middle = None
        if self._iteration == 1 and self._sketch is None:
            middle = np.zeros((ALIGNED, len(self._middle)), dtype=np.float32)
            middle[0] = self._middle
        loops.compiled.advance(
            self._memory.compiled, target.compiled, raw, rows.start, middle,
            self._middle @ self._middle, part.sums, part.counts, part.moved, part.scored,
        )  # fmt: skip

    def _score_all(self, target: Target, rows: slice, raw: Raw, part: _Part) -> None:
        """Score all of some documents for all runs by one product, and decide about them."""
        n_runs, n_centroids, n_dims = target.slopes.shape
        flat, memory = target.vectors[:, :n_centroids].reshape(-1, n_dims), self._memory
        vectors, places = distinct(flat) if self._iteration == 0 else (flat, np.arange(len(flat)))
        if self._iteration == 1:
            vectors = np.concatenate([vectors, self._middle.astype(np.float32)[None]])
        products = self._scorer.products(raw, rows, vectors)
        if self._iteration == 1:
            memory.measure(self._middle, rows, products[-1])
        part.scored[:] = len(raw)
        for place, own in enumerate(places.reshape(n_runs, n_centroids)):
            sums, counts = part.sums[place], part.counts[place]
            if self._iteration == 0 and place > 0:
                # At first all runs will put most documents into the same clusters. So a run begins
                # where the one before it has got to, and only what it does otherwise is summed up.
                run, before = target.runs[place], target.runs[place - 1]
                memory.predictions[run, rows] = memory.predictions[before, rows]
                sums[...], counts[...] = part.sums[place - 1], part.counts[place - 1]
            part.moved[place] = memory.settle(target, place, rows, raw, products[own], sums, counts)

    def _score_some(self, target: Target, rows: slice, raw: Raw, part: _Part) -> None:
        """Score those of some documents that could change, and decide about them."""
        n_centroids = target.slopes.shape[1]
        size = min(_PICKED_ROWS, self._points.picked_rows)
        for place in range(len(target.runs)):
            numbers = self._memory.could_change(target, place, rows)
            for start in range(0, len(numbers), size):
                few = numbers[start : start + size]
                own = side_by_side(raw.take(few - rows.start, axis=0))
                vectors = target.vectors[place, :n_centroids]
                part.moved[place] += self._memory.settle(
                    target, place, few, own, self._scorer.products(own, few, vectors),
                    part.sums[place], part.counts[place],
                )  # fmt: skip
            part.scored[place] = len(numbers)

    def _totals(self, target: Target) -> Float:
        """The sum of the distances of the documents to their centroids, in every run."""
        distance = self._points.distance.name
        pull = np.einsum("kcd,kcd->k", target.slopes, self._sums)
        if distance == "l2":
            return self._square_sum - pull + np.einsum("kc,kc->k", self._counts, target.offsets)
        return (self._n_free if distance == "cosine" else 0.0) - pull
