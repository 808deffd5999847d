"""Refinement by a mixture: clusters around the names, then Gaussians that share one covariance.

Documents are seen from their middle: what they all have in common says nothing about any label. In
that view every label starts as its name, gathers documents around the mean of its direction and
theirs, and then becomes a Gaussian whose mean is tied to that cluster. The covariance is one for
all labels, so the score of a document is linear in it, and new documents are scored alike.

    z = (u - m) / |u - m|           u: the document at length one, m: the mean of all u
    1. names      the nearest name, by cosine
    2. clusters   cos(z, ½ direction of the cluster + ½ name) + what centring took from the name
                  + weight · log size; a document does not vote for its own cluster
    3. Gaussians  log size - ½ (z - mean)' S⁻¹ (z - mean), by expectation and maximisation

Where the clusters found are not what the names say, the paper's refinement is the answer. The
constants are fixed for all data; `docs/refinement.md` tells where they come from.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ulr.refine.assign import moved_counts, moved_sums
from ulr.refine.centred import Rule, View, centred, single
from ulr.refine.distances import Float, unit_rows
from ulr.refine.engines import Engine, run
from ulr.refine.loop import Problem, Settings
from ulr.refine.result import Pass, Refinement
from ulr.refine.scoring import Single, two_nearest
from ulr.refine.survey import Survey

MOST_DIMS = 2048  # up to which a covariance of all dimensions is worked out
_FEW_ROWS = 1024
_MOST_SPREAD = 1 << 16  # documents whose spread is looked at; more would not tell more
_TINY = 1e-9


@dataclass(frozen=True)
class Constants:
    """What is fixed for all data.

    Attributes
    ----------
    anchor
        Weight of the name in a cluster's direction.
    restored
        Share that a name gets back of its closeness to the average document.
    size
        Weight of the logarithm of a label's size among clusters, in mean leads.
    own_share, few
        Documents added to the size of every label: a share of the mean size, and a few.
    shrink
        Of the covariance, towards a multiple of the identity, where there are many documents for
        a dimension.
    tie
        Weight that ties a Gaussian's mean to its cluster, in mean sizes.
    explained
        How far a name's documents must be above the others in likeness to it, in standard
        deviations and for the better half of the labels, for the clusters to be what names say.
    cluster_passes, gaussian_passes
        Most passes of each kind.
    settled
        Share of documents below which passes end.
    examples
        How many documents of known label weigh as much as the name.
    """

    anchor: float = 0.5
    restored: float = 0.7
    size: float = 0.2
    own_share: float = 0.1
    few: float = 40.0
    shrink: float = 0.4
    tie: float = 1.0
    explained: float = 0.95
    cluster_passes: int = 8
    gaussian_passes: int = 4
    settled: float = 1e-3
    examples: float = 2.0


def refine_mixture(
    problem: Problem, settings: Settings, engine: Engine, looked_at: Survey
) -> Refinement:
    """Refine by a mixture; the paper's refinement where the names do not explain the clusters."""
    if settings.max_iterations == 1 or len(problem.anchors) == 1:
        return run(problem, replace(settings, max_iterations=1), engine, looked_at)
    fit = _Fit(problem, settings, engine, looked_at, Constants())
    fit.cluster()
    fit.gaussians()
    if not fit.explained():
        return replace(run(problem, settings, engine, looked_at), method=settings.method)
    return fit.answer()


@dataclass
class _Sums:
    """Sizes of the clusters, (n,), and sums of what is in them, (n, n_dims)."""

    sizes: Float
    sums: Float

    @classmethod
    def none(cls, n: int, n_dims: int) -> _Sums:
        return cls(np.zeros(n), np.zeros((n, n_dims)))

    def add(self, other: _Sums) -> None:
        self.sizes += other.sizes
        self.sums += other.sums


class _Fit:
    """One refinement by mixture: what is known about documents and labels between passes."""

    def __init__(
        self,
        problem: Problem,
        settings: Settings,
        engine: Engine,
        looked_at: Survey,
        constants: Constants,
    ) -> None:
        self._problem, self._settings, self._engine = problem, settings, engine
        self._survey, self._constants = looked_at, constants
        self._points, self._known = problem.points, problem.known
        self._n_labels, self._n_dims = problem.anchors.shape
        self._names = unit_rows(problem.anchors)
        self._n = max(1, int(np.count_nonzero(looked_at.squares)))
        self._view = View(self._points, looked_at, self._mean())
        centre = self._view.centre
        away = self._names - centre
        self._far = float(np.sqrt(np.einsum("ij,ij->i", away, away)).mean())
        self._anchors = unit_rows(away)
        self._with_names = np.empty((self._n_labels, self._points.n_rows), dtype=np.float32)
        self._stretch = np.empty(self._points.n_rows, dtype=np.float32)
        self._pull = np.empty(self._points.n_rows, dtype=np.float32)
        first, _ = engine.score(problem.anchors, self._points.n_rows)
        self._unrefined = first
        self._labels = np.where(self._known >= 0, self._known, first).astype(np.int32)
        self._objective: list[float] = []
        self._changed: list[int] = []
        self._join_examples()
        self._begin()

    def _mean(self) -> Float:
        """The mean of the documents at length one."""
        flat = View(self._points, self._survey, np.zeros(self._n_dims))

        def work(rows: slice, raw: NDArray[np.floating]) -> Float:
            return (flat.inverse[rows] @ raw.astype(np.float32, copy=False)).astype(np.float64)

        total = np.zeros(self._n_dims)
        for each in self._points.map_rows(work):
            total += each
        return total / self._n

    def _begin(self) -> None:
        """The clusters of the names, the spread of the documents and the lead of the names."""
        centre = self._view.centre
        vectors = np.concatenate([self._anchors, centre[None]]).astype(np.float32)
        whole = self._n_dims <= MOST_DIMS
        every = -(-self._points.n_rows // _MOST_SPREAD)

        def work(rows: slice, raw: NDArray[np.floating]) -> tuple[_Sums, Any, float, float]:
            raw = raw.astype(np.float32, copy=False)
            products = vectors @ raw.T
            stretch, pull = self._view.scales(rows, products[-1])
            self._stretch[rows], self._pull[rows] = stretch, pull
            seen = self._view.seen(products[:-1], stretch, pull, self._anchors)
            self._with_names[:, rows] = seen
            distances = np.sum(1.0 / pull[pull > 0], dtype=np.float64)
            moments: Any = 0.0 if whole else float(np.count_nonzero(pull))
            labels, sums = self._labels[rows], np.zeros((self._n_labels, self._n_dims))
            for start in range(0, len(raw), _FEW_ROWS):
                few = slice(start, start + _FEW_ROWS)
                z = raw[few] * stretch[few, None]
                z -= np.multiply.outer(pull[few], centre.astype(np.float32))
                if whole:
                    some = z[-(rows.start + start) % every :: every]
                    moments = moments + every * (some.T @ some)
                sums += moved_sums(z.astype(np.float64), None, labels[few], self._n_labels)
            sizes = moved_counts(None, labels[pull > 0], self._n_labels)
            lead = float(two_nearest(-seen)[1].sum(dtype=np.float64))
            return _Sums(sizes, sums), moments, float(distances), lead

        self._clusters = _Sums.none(self._n_labels, self._n_dims)
        self._moments: Any = 0.0  # a matrix, or its trace alone
        distance = lead = 0.0
        for sums, moments, distances, leads in self._points.map_rows(work):
            self._clusters.add(sums)
            self._moments = self._moments + moments
            distance += distances
            lead += leads
        self._spread = max(distance / self._n, _TINY)
        self._lead = lead / self._n
        self._tell(0, 1.0 - self._lead)

    def _join_examples(self) -> None:
        """Documents whose label is known take part in what a label is looked for by."""
        numbers = np.flatnonzero(self._known >= 0)
        if len(numbers) == 0:
            return
        examples = _Sums.none(self._n_labels, self._n_dims)
        for number in numbers.tolist():
            z = centred(self._points.row(number)[None], self._view.centre)[0]
            examples.sums[self._known[number]] += z
            examples.sizes[self._known[number]] += 1.0
        weight = examples.sizes[:, None] / self._constants.examples
        self._anchors = unit_rows(self._anchors + weight * unit_rows(examples.sums))

    def _tell(self, changed: int, objective: float) -> None:
        """Record a pass."""
        self._objective.append(objective)
        self._changed.append(changed)
        if self._settings.on_pass is not None:
            self._settings.on_pass(Pass(len(self._objective) - 1, changed, objective, 0))

    def _log_sizes(self, sizes: Float) -> Float:
        """Logarithms of the labels' shares: estimated, equal or given."""
        prior, constants = self._settings.prior, self._constants
        if not isinstance(prior, str):
            return np.asarray(np.log(prior))
        if prior == "balanced":
            return np.zeros(self._n_labels)
        added = constants.own_share * self._n / self._n_labels + constants.few
        return np.asarray(np.log((sizes + added) / (sizes.sum() + added * self._n_labels)))

    def _returned(self) -> Float:
        """What centring took from each name, by its closeness to the average document."""
        if isinstance(self._settings.prior, str) and self._settings.prior == "balanced":
            return np.zeros(self._n_labels)
        close = self._names @ self._view.centre
        close -= close.mean()
        return np.asarray(self._constants.restored * close / (self._spread * self._far))

    def _most_passes(self, wanted: int, left_for_later: int) -> int:
        return min(wanted, self._settings.max_iterations - len(self._objective) - left_for_later)

    def cluster(self) -> None:
        """Gather documents around the names and each other."""
        for _ in range(self._most_passes(self._constants.cluster_passes, 1)):
            if self._cluster_pass() < self._constants.settled * self._points.n_rows:
                break
        del self._with_names

    def _cluster_pass(self) -> int:
        """One pass: every document to its closest cluster; how many moved."""
        weight, clusters = self._constants.anchor, self._clusters
        lengths = np.sqrt(np.einsum("ij,ij->i", clusters.sums, clusters.sums))
        directions = clusters.sums / np.maximum(lengths, _TINY)[:, None]
        filled = (clusters.sizes > 0) & (lengths > 1e-6)
        own = np.where(filled, 1.0 - weight, 0.0)
        between = np.einsum("ij,ij->i", directions, self._anchors)
        norms = np.sqrt(np.maximum(own**2 + weight**2 + 2 * own * weight * between, _TINY))
        rule = _ClusterRule(
            weight=weight,
            shares=single(own / norms),
            name_shares=single(weight / norms),
            bias=single(
                weight * self._returned() / norms
                + self._constants.size * self._lead * self._log_sizes(clusters.sizes)
            ),
            lengths=lengths,
            between=between,
            alone=clusters.sizes <= 1,
        )
        vectors = single(directions)

        def work(rows: slice, raw: NDArray[np.floating]) -> tuple[_Sums, int, float, float]:
            products = vectors @ raw.astype(np.float32, copy=False).T
            stretch, pull = self._stretch[rows], self._pull[rows]
            seen = self._view.seen(products, stretch, pull, directions)
            before = self._labels[rows]
            scores = rule.scores(seen, self._with_names[:, rows], before)
            scores[:, pull == 0.0] = 0.0
            lead = float(two_nearest(-scores)[1].sum(dtype=np.float64))
            scores += rule.bias[:, None]
            after = self._pinned(scores.argmax(axis=0).astype(np.int32), rows)
            moved = np.flatnonzero(after != before)
            best = float(scores[after, np.arange(len(after))].sum(dtype=np.float64))
            change = self._moves(raw, rows.start + moved, moved, before[moved], after[moved])
            self._labels[rows] = after
            return change, len(moved), lead, best

        moved, lead, best = 0, 0.0, 0.0
        for change, count, leads, bests in self._points.map_rows(work):
            self._clusters.add(change)
            moved += count
            lead += leads
            best += bests
        self._lead = lead / self._n
        self._tell(moved, 1.0 - best / self._n)
        return moved

    def _pinned(self, labels: NDArray[np.int32], rows: slice) -> NDArray[np.int32]:
        known = self._known[rows]
        return np.where(known >= 0, known, labels)

    def _moves(
        self,
        raw: NDArray[np.floating],
        numbers: NDArray[np.intp],
        places: NDArray[np.intp],
        before: NDArray[np.int32],
        after: NDArray[np.int32],
    ) -> _Sums:
        """What documents that move do to the clusters."""
        change, centre = _Sums.none(self._n_labels, self._n_dims), self._view.centre
        for start in range(0, len(numbers), _FEW_ROWS):
            few = slice(start, start + _FEW_ROWS)
            z = raw[places[few]].astype(np.float64)
            z *= self._stretch[numbers[few], None]
            z -= np.multiply.outer(self._pull[numbers[few]].astype(np.float64), centre)
            change.sums += moved_sums(z, before[few], after[few], self._n_labels)
        real = self._pull[numbers] > 0.0
        change.sizes += moved_counts(before[real], after[real], self._n_labels)
        return change

    def gaussians(self) -> None:
        """Turn the clusters into Gaussians that share a covariance."""
        clusters, constants = self._clusters, self._constants
        tied = clusters.sums / np.maximum(clusters.sizes, _TINY)[:, None]
        tied[clusters.sizes < 0.5] = 0.0
        for _ in range(max(1, self._most_passes(constants.gaussian_passes, 0))):
            self._aim(tied)
            if self._gaussian_pass() < constants.settled * self._points.n_rows:
                break

    def _aim(self, tied: Float) -> None:
        """The slopes and offsets of the next pass."""
        clusters, constants = self._clusters, self._constants
        strength = constants.tie * self._n / self._n_labels
        means = (clusters.sums + strength * tied) / (clusters.sizes[:, None] + strength)
        self._means = means
        cross = clusters.sums.T @ means if self._n_dims <= MOST_DIMS else None
        if cross is None:
            inside = float(
                np.einsum("cd,cd->", means * clusters.sizes[:, None] - 2 * clusters.sums, means)
            )
            variance = (float(self._moments) + inside) / (self._n * self._n_dims)
            slopes = means / max(variance, _TINY)
        else:
            spread = self._moments - cross - cross.T + (means * clusters.sizes[:, None]).T @ means
            spread /= self._n
            variance = max(float(np.trace(spread)) / self._n_dims, _TINY)
            # The fewer the documents for a dimension, the less their covariance says of new ones.
            shrink = (constants.shrink * self._n + self._n_dims) / (self._n + self._n_dims)
            spread *= 1.0 - shrink
            spread[np.diag_indices(self._n_dims)] += shrink * variance
            slopes = np.linalg.solve(spread, means.T).T
        offsets = self._log_sizes(clusters.sizes) - 0.5 * np.einsum("cd,cd->c", means, slopes)
        self._slopes, self._offsets = np.ascontiguousarray(slopes), offsets

    def _gaussian_pass(self) -> int:
        """One pass: how likely every label is for every document; how many moved."""
        vectors, offsets = single(self._slopes), single(self._offsets)
        centre = self._view.centre

        def work(rows: slice, raw: NDArray[np.floating]) -> tuple[_Sums, int, float]:
            raw = raw.astype(np.float32, copy=False)
            stretch, pull = self._stretch[rows], self._pull[rows]
            scores = self._view.seen(vectors @ raw.T, stretch, pull, self._slopes)
            scores += offsets[:, None]
            labels = scores.argmax(axis=0).astype(np.int32)
            scores -= scores.max(axis=0)
            shares = np.exp(scores, out=scores)
            total = shares.sum(axis=0)
            shares /= total
            surprise = float(np.log(total).sum(dtype=np.float64))
            self._pin_shares(shares, rows)
            shares[:, pull == 0.0] = 0.0
            sums = ((shares * stretch) @ raw).astype(np.float64)
            sums -= np.multiply.outer((shares @ pull).astype(np.float64), centre)
            moved = int(np.count_nonzero(labels != self._labels[rows]))
            self._labels[rows] = labels
            return _Sums(shares.sum(axis=1, dtype=np.float64), sums), moved, surprise

        clusters, moved, surprise = _Sums.none(self._n_labels, self._n_dims), 0, 0.0
        for sums, count, each in self._points.map_rows(work):
            clusters.add(sums)
            moved += count
            surprise += each
        self._clusters = clusters
        self._tell(moved, surprise / self._n)
        return moved

    def _pin_shares(self, shares: Single, rows: slice) -> None:
        known = self._known[rows]
        if (pinned := np.flatnonzero(known >= 0)).size:
            shares[:, pinned] = 0.0
            shares[known[pinned], pinned] = 1.0

    def explained(self) -> bool:
        """Whether the documents of a name are more like it than the others are.

        On average over the better half of the labels: some names may be badly chosen, not most.
        """
        names = self._names - self._names.mean(axis=0)
        total = self._clusters.sums.sum(axis=0)
        if self._n_dims <= MOST_DIMS:
            squares = np.einsum("cd,de,ce->c", names, self._moments / self._n, names, optimize=True)
        else:
            lengths = np.einsum("cd,cd->c", names, names)
            squares = lengths * float(self._moments) / (self._n * self._n_dims)
        deviation = np.sqrt(np.maximum(squares - (names @ total / self._n) ** 2, 1e-12))
        own, sizes = np.einsum("cd,cd->c", names, self._clusters.sums), self._clusters.sizes
        rest = names @ total - own
        gap = own / np.maximum(sizes, _TINY) - rest / np.maximum(self._n - sizes, _TINY)
        counted = (sizes > 0.1 * self._n / self._n_labels) & (sizes < self._n)
        clear = np.sort((gap / deviation)[counted])[::-1]
        better = clear[: (len(clear) + 1) // 2]
        return len(better) == 0 or float(better.mean()) >= self._constants.explained

    def answer(self) -> Refinement:
        """The mixture among the user's own labels, and what it says of the user's documents."""
        problem, n = self._problem, self._problem.n_documents
        own = slice(0, problem.n_labels)
        rule = Rule(self._view.centre, self._slopes[own], self._offsets[own])
        predictions, scores = rule.decide_points(self._points, self._survey, n)
        unrefined = self._unrefined[:n]
        if self._n_labels > problem.n_labels:  # extra labels took part in the first pass
            unrefined = self._engine.score(problem.anchors[own], n)[0]
        known = self._known[:n]
        return Refinement(
            predictions=np.where(known >= 0, known, predictions).astype(np.intp),
            scores=scores,
            centroids=self._view.centre + self._spread * self._means[own],
            unrefined=unrefined,
            objective=np.array(self._objective),
            changed=np.array(self._changed, dtype=np.intp),
            kept=len(self._objective) - 1,
            converged=True,
            n_zero_documents=self._survey.count_zero(n),
            method=self._settings.method,
            distance=self._points.distance.name,
            rule=rule,
        )


@dataclass(frozen=True, eq=False)
class _ClusterRule:
    """What a document is compared with in a pass over clusters; a number a label each.

    Attributes
    ----------
    weight
        Of the name.
    shares, name_shares
        What the cosine with the cluster and with the name count for.
    bias
        What is added for the label itself.
    lengths
        Of the sum of each cluster.
    between
        Cosine of each cluster and its name.
    alone
        Whether there is no more than one document in it.
    """

    weight: float
    shares: Single
    name_shares: Single
    bias: Single
    lengths: Float
    between: Float
    alone: NDArray[np.bool_]

    def scores(self, cosines: Single, names: Single, own: NDArray[np.int32]) -> Single:
        """Scores of documents, (n_labels, n); of its own cluster a document is no part.

        Parameters
        ----------
        cosines, names
            (n_labels, n) with the directions of clusters, and with the names.
        own
            (n,) the cluster each document is in.
        """
        scores = cosines * self.shares[:, None] + names * self.name_shares[:, None]
        each = np.arange(len(own))
        length, name = self.lengths[own], names[own, each].astype(np.float64)
        with_sum = cosines[own, each] * length
        left = np.sqrt(np.maximum(length**2 - 2.0 * with_sum + 1.0, 1e-6))
        rest = 1.0 - self.weight
        towards = 2.0 * self.weight * rest * (self.between[own] * length - name) / left
        norm = np.sqrt(np.maximum(rest**2 + self.weight**2 + towards, 1e-6))
        without = (rest * (with_sum - 1.0) / left + self.weight * name) / norm
        scores[own, each] = np.where(self.alone[own], name, without)
        return scores
