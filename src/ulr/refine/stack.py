"""Passes for many sets of labels over the same documents: one matrix product for all of them.

A document is scored again for every set as soon as its label could change in one of them, by the
inequality at the top of `ulr.refine.linear`. ``drift`` is here the length of the way that a slope
has gone, so that nothing but the last slopes need be remembered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
from numpy.typing import NDArray

from ulr.refine.assign import Assignment, moved_counts
from ulr.refine.distances import Float, first_nearest
from ulr.refine.linear import MOST, Middle
from ulr.refine.scoring import (
    ALWAYS,
    NEVER,
    ROUNDING,
    LinearScorer,
    Raw,
    Rows,
    Single,
    doubt_per_length,
    two_nearest,
)
from ulr.refine.trail import others

_PICKED_ROWS = 1024
_PAIRS_AT_A_TIME = 1 << 16
_EXACT_PAIRS = 256

# Sums and counts to be added to the clusters, documents moved in each set, documents scored.
_Moves = tuple[Float, Float, NDArray[np.intp], int]


class Stack:
    """Passes for many sets of equally many labels; arrays are (n_sets, ..., n_rows)."""

    def __init__(self, scorer: LinearScorer, n_sets: int, n_labels: int) -> None:
        self._scorer, self._points = scorer, scorer.points
        n = self._points.n_rows
        self._middle = Middle(scorer)
        self._predictions = np.zeros((n_sets, n), dtype=np.int32)
        self._distances = np.empty((n_sets, n_labels, n), dtype=np.float32)
        self._lead = np.empty((n_sets, n), dtype=np.float32)
        self._scored_at = np.zeros((n_sets, n), dtype=np.int32)
        self._lead_at = np.zeros((n_sets, n), dtype=np.int32)
        self._sums = np.zeros((n_sets, n_labels, self._points.n_dims))
        self._counts = np.zeros((n_sets, n_labels))
        self._square_sum = self._exact_square_sum() if scorer.points.distance.name == "l2" else 0.0
        self._per_length = np.zeros(n_sets, dtype=np.float32)
        self._always = np.zeros(n_sets, dtype=np.float32)
        # Of every pass: the distance of the middle, and the way that slopes have gone so far.
        self._levels: list[Float] = []
        self._ways: list[Float] = []
        self._slopes: Float = np.zeros_like(self._sums)
        self._offsets: Float = np.zeros((n_sets, n_labels))

    def _exact_square_sum(self) -> float:
        def work(_: slice, raw: Raw) -> float:
            points = self._points.exact(raw)
            return float(np.vdot(points, points))

        return sum(self._points.map_rows(work))

    def keep(self, sets: NDArray[np.intp]) -> None:
        """Go on with some of the sets only."""
        for name in (
            "_predictions", "_distances", "_lead", "_scored_at", "_lead_at", "_sums", "_counts",
            "_per_length", "_always", "_slopes", "_offsets",
        ):  # fmt: skip
            setattr(self, name, getattr(self, name)[sets])
        self._levels = [level[sets] for level in self._levels]
        self._ways = [way[sets] for way in self._ways]

    def assign(self, centroids: Float) -> list[Assignment]:
        """Give every document its nearest centroid in every set, (n_sets, n_labels, n_dims)."""
        self._aim(centroids)
        iteration = len(self._levels) - 1
        vectors = self._slopes.reshape(-1, self._points.n_dims).astype(np.float32)
        if iteration == 1:
            vectors = np.concatenate([vectors, self._middle.vector[None].astype(np.float32)])
        changed = np.zeros(len(centroids), dtype=np.intp)
        scored = 0

        def work(rows: Rows, raw: Raw) -> _Moves:
            products = self._scorer.products(raw, rows, vectors)
            if iteration == 1:
                self._middle.measure(rows, products[-1])
                products = products[:-1]
            return self._take_in(rows, raw, products.reshape(*self._distances.shape[:2], -1))

        for sums, counts, moved, n in self._map(work):
            self._sums += sums
            self._counts += counts
            changed += moved
            scored += n
        if iteration == 0:
            self._middle.vector = self._sums[0].sum(axis=0) / self._points.n_rows
            self._remember_level()
        skipped = self._points.n_rows - scored
        return [
            Assignment(
                self._predictions[i],
                self._sums[i],
                self._counts[i],
                total,
                0 if iteration == 0 else int(changed[i]),
                skipped,
            )
            for i, total in enumerate(self._totals().tolist())
        ]

    def _aim(self, centroids: Float) -> None:
        """Make ready for the centroids of a pass."""
        flat = self._scorer.form(centroids.reshape(-1, centroids.shape[2]))
        slopes = flat.slopes.reshape(centroids.shape)
        offsets = flat.offsets.reshape(centroids.shape[:2])
        way = np.zeros(centroids.shape[:2])
        if self._ways:
            change = slopes - self._slopes
            change -= change.mean(axis=1, keepdims=True)
            way = self._ways[-1] + np.sqrt(np.einsum("kcd,kcd->kc", change, change)) * (1 + 1e-6)
        self._slopes, self._offsets = slopes, offsets
        self._ways.append(way)
        self._remember_level()
        steepest = np.sqrt(np.einsum("kcd,kcd->kc", slopes, slopes).max(axis=1))
        per_length = doubt_per_length(centroids.shape[2]) * steepest
        self._per_length = np.maximum(self._per_length, per_length).astype(np.float32)
        always = 32 * ROUNDING * np.abs(offsets).max(axis=1)
        self._always = np.maximum(self._always, always).astype(np.float32)

    def _remember_level(self) -> None:
        """The distance of the middle to every centroid; again once there is a middle."""
        del self._levels[len(self._ways) - 1 :]
        self._levels.append(self._offsets - self._slopes @ self._middle.vector)

    def _totals(self) -> Float:
        pull = np.einsum("kcd,kcd->k", self._slopes, self._sums)
        if self._points.distance.name == "l2":
            return self._square_sum - pull + np.einsum("kc,kc->k", self._counts, self._offsets)
        return (self._points.n_rows if self._points.distance.name == "cosine" else 0.0) - pull

    def _map(self, work: Callable[[Rows, Raw], _Moves]) -> Iterable[_Moves]:
        """`work` on the documents that could change."""
        if len(self._levels) <= 2:
            return self._points.map_rows(work)
        numbers = np.flatnonzero(self._could_change())
        if len(numbers) > MOST * self._points.n_rows:
            return self._points.map_rows(work)
        return self._points.map_picked(work, numbers, _PICKED_ROWS)

    def _could_change(self) -> NDArray[np.bool_]:
        """Which documents could change their label in some set."""
        n_sets, n_labels, n = self._distances.shape
        shift = (self._levels[-1] - np.stack(self._levels)).astype(np.float32)
        drift = (self._ways[-1] - np.stack(self._ways) + 1e-12).astype(np.float32)
        lowest = (others(shift, np.minimum) - shift).astype(np.float32)
        widest = (others(drift, np.maximum) + drift).astype(np.float32)
        could = np.zeros(n, dtype=bool)
        size = max(1, _PAIRS_AT_A_TIME // n)

        def look(start: int) -> None:
            sets = np.arange(start, min(n_sets, start + size))
            place = self._lead_at[sets] * np.int32(n_sets * n_labels) + self._predictions[sets]
            place += (sets * n_labels).astype(np.int32)[:, None]
            doubt = self._doubt(sets, self._scorer.lengths)
            doubt *= 2
            lost = widest.take(place)
            lost *= self._middle.reach
            lost -= lowest.take(place)
            lost += doubt
            # A document that is scored anyway, for another set, need not be looked at.
            suspect, document = np.nonzero((lost >= self._lead[sets]) & ~could)
            if len(suspect) == 0:
                return
            left = self._left(suspect + start, document, shift, drift)
            changes = left <= doubt[suspect, document]
            changes |= self._lead[suspect + start, document] < 0
            could[document[changes]] = True
            safe = ~changes
            pairs = suspect[safe] + start, document[safe]
            self._lead[pairs] = left[safe]
            self._lead_at[pairs] = len(self._levels) - 1

        self._points.map_items(look, range(0, n_sets, size))
        return could

    def _left(
        self, which: NDArray[np.intp], document: NDArray[np.intp], shift: Single, drift: Single
    ) -> Single:
        """What is left at least of the leads of some documents in some sets."""
        n_sets, n_labels, n = self._distances.shape
        # Flat places: taking by these is several times as fast as by two or three indices.
        pair, each = which * n + document, np.arange(len(document))
        own = self._predictions.reshape(-1).take(pair).astype(np.intp)
        at = self._scored_at.reshape(-1).take(pair) * n_sets + which
        reach = self._middle.reach.take(document)
        labels = np.arange(n_labels)[:, None]
        left = self._distances.reshape(-1).take(pair + (which * (n_labels - 1) + labels) * n)
        mine, own_place = at * n_labels + own, own * len(each) + each
        nearest = left.reshape(-1).take(own_place)
        nearest += shift.reshape(-1).take(mine)
        nearest += reach * drift.reshape(-1).take(mine)
        left += shift.reshape(-1, n_labels).T.take(at, axis=1)
        left -= reach * drift.reshape(-1, n_labels).T.take(at, axis=1)
        left.reshape(-1)[own_place] = NEVER
        return left.min(axis=0) - nearest

    def _doubt(self, sets: NDArray[np.intp] | slice, lengths: Single) -> Single:
        return np.multiply.outer(self._per_length[sets], lengths) + self._always[sets][:, None]

    def _take_in(self, rows: Rows, raw: Raw, products: Single) -> _Moves:
        """Take in the products of some documents with all slopes; what moves do to the clusters."""
        iteration = len(self._levels) - 1
        offsets = self._offsets.astype(np.float32)[:, :, None]
        distances = np.subtract(offsets, products, out=products)
        nearest, lead = two_nearest(distances.transpose(1, 0, 2))
        lengths = self._scorer.lengths[rows]
        which, place = np.nonzero(lead <= self._doubt(slice(None), lengths))
        if len(which):
            nearest[which, place] = self._exactly_nearest(raw, which, place)
            lead[which, place] = ALWAYS
        if self._scorer.has_zero and self._points.distance.name != "l2":
            lead[:, lengths == 0.0] = NEVER
        moves = self._moves(rows, raw, nearest)
        self._distances[:, :, rows] = distances
        self._lead[:, rows] = lead
        self._predictions[:, rows] = nearest
        self._scored_at[:, rows] = self._lead_at[:, rows] = iteration
        return moves

    def _exactly_nearest(
        self, raw: Raw, which: NDArray[np.intp], place: NDArray[np.intp]
    ) -> NDArray[np.intp]:
        """The nearest centroid of some documents in some sets, in float64."""
        nearest = np.empty(len(which), dtype=np.intp)
        for start in range(0, len(which), _EXACT_PAIRS):
            few = slice(start, start + _EXACT_PAIRS)
            slopes, offsets = self._slopes[which[few]], self._offsets[which[few]]
            points = self._points.exact(raw[place[few]])
            compared = offsets - np.einsum("pcd,pd->pc", slopes, points)
            lengths = np.sqrt(np.einsum("pcd,pcd->pc", slopes, slopes))
            lengths *= np.sqrt(np.einsum("pd,pd->p", points, points))[:, None]
            nearest[few] = first_nearest(compared, lengths, offsets)
        return nearest

    def _moves(self, rows: Rows, raw: Raw, nearest: NDArray[np.int32]) -> _Moves:
        """What documents that move add to the sums and counts, and how many move in each set."""
        from scipy.sparse import csr_array

        n_sets, n_labels, _ = self._distances.shape
        first = len(self._levels) == 1
        # In the first pass the documents come from nowhere into the first set, and what the next
        # set adds is only what it does otherwise: sets of one task agree about most documents.
        before = (
            np.concatenate([nearest[:1], nearest[:-1]]) if first else self._predictions[:, rows]
        )
        which, place = np.nonzero(nearest != before)
        after, left = nearest[which, place], before[which, place]
        documents, position = np.unique(place, return_inverse=True)
        if first:
            documents = position = np.arange(len(raw))
            position = np.concatenate([documents, place])
            entering = np.concatenate([nearest[0], which * n_labels + after])
        else:
            entering = which * n_labels + after
        leaving = which * n_labels + left
        counts = moved_counts(leaving, entering, n_sets * n_labels)
        sums = np.zeros((n_sets * n_labels, raw.shape[1]))
        if len(entering):
            signs = np.concatenate([np.ones(len(entering)), -np.ones(len(leaving))])
            columns = np.concatenate([position, position[len(position) - len(leaving) :]])
            clusters = np.concatenate([entering, leaving])
            shape = (n_sets * n_labels, len(documents))
            points, weights = self._scorer.weighted(
                raw if len(documents) == len(raw) else raw[documents]
            )
            if weights is not None:
                signs *= weights[columns]
            moves = csr_array((signs, (clusters, columns)), shape=shape)
            sums = np.asarray(moves @ points)
        by_set = sums.reshape(n_sets, n_labels, -1), counts.reshape(n_sets, n_labels)
        if first:
            by_set = by_set[0].cumsum(axis=0), by_set[1].cumsum(axis=0)
        return *by_set, np.bincount(which, minlength=n_sets), len(raw)
