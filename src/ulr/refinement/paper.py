"""Unsupervised Label Refinement as in the paper: Algorithms 1 to 3 and their variants.

All variants are one loop: assign every document to its nearest centroid, then move each centroid to
a weighted mean of its cluster, its known documents and its anchor, until no label changes.

For linear distances, documents whose label cannot have changed are skipped (Hamerly's bound). The
lead of a document's label over the second best falls by at most

    shift + distance of the document from the mean document · movement

since it was last computed, where ``shift`` is the change of the score difference at the mean
document, and ``movement`` the length of the change of the difference of two weights. Results are
those of the plain loop in float64.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import get_args

import numpy as np
from numpy.typing import NDArray

from ulr.refinement import jensen_shannon, validation
from ulr.refinement.blocks import UNKNOWN, Block, Blocks, State, Summary
from ulr.refinement.distances import Distance, EmptyCluster, Keep, squared_lengths, unit_rows
from ulr.refinement.jensen_shannon import Clusters
from ulr.refinement.products import Float, Labels, grouped_sums, label_sums
from ulr.refinement.result import Fitted, Pass, Problem
from ulr.refinement.rule import JensenShannonRule, LinearRule, Rule, View, rule_of_centroids

_CHUNK_ROWS = 512
_ROUNDING = 2.0**-23


@dataclass(frozen=True)
class PaperOptions:
    """Options of the paper's method; None stands for the setting that belongs to the distance.

    Attributes
    ----------
    start
        ``labels``, or ``random``: centroids start at random documents, are plain cluster means, and
        are matched one-to-one to the anchors at the end.
    anchor_weight
        Share of the anchor in an updated centroid: 0.5, and 0 with ``jensen-shannon``.
    known_weight
        Share of the mean of the known documents in the rest, for labels that have any. With 0.5, a
        centroid is 1/4 cluster mean, 1/4 mean of known documents and 1/2 anchor.
    keep
        The result is the iteration with the ``lowest`` objective, or the ``last`` (the default with
        ``jensen-shannon``).
    empty_cluster
        An empty cluster takes the ``mean`` of all documents, or keeps its ``previous`` centroid
        (the default with ``jensen-shannon``).
    """

    start: str = "labels"
    anchor_weight: float | None = None
    known_weight: float = 0.5
    keep: Keep | None = None
    empty_cluster: EmptyCluster | None = None

    def validate(self, n_labels: int) -> None:
        """Refuse options that cannot be used."""
        validation.choice("start", self.start, ("labels", "random"))
        validation.share("anchor_weight", self.anchor_weight)
        validation.share("known_weight", self.known_weight)
        if self.keep is not None:
            validation.choice("keep", self.keep, get_args(Keep))
        if self.empty_cluster is not None:
            validation.choice("empty_cluster", self.empty_cluster, get_args(EmptyCluster))

    def applied_to(self, distance: Distance) -> Distance:
        """The distance with the settings that are given in place of its own."""
        names = ("anchor_weight", "keep", "empty_cluster")
        given = {name: getattr(self, name) for name in names if getattr(self, name) is not None}
        if self.start == "random":
            given["anchor_weight"] = 0.0
        return replace(distance, **given)


def fit_paper(blocks: Blocks, problem: Problem, options: PaperOptions) -> Fitted:
    """Refine the anchors as the paper does."""
    distance = options.applied_to(problem.distance)
    random_start = options.start == "random"
    start = _random_documents(blocks, problem) if random_start else problem.anchors
    update = _Update.of(blocks, start, distance, options.known_weight)
    passes = _LinearPasses(blocks, distance) if distance.linear else _SingleEncoderPasses(blocks)
    centroids = best = start
    sums, counts = np.zeros(start.shape), np.zeros(len(start))
    trace: list[Pass] = []
    best_iteration = 0
    while True:
        summary = passes.run(centroids)
        sums += summary.sums
        counts += summary.counts
        objective = passes.total(summary, sums, counts) / max(1.0, counts.sum())
        stage = "clusters" if trace else "nearest label"
        trace.append(Pass(len(trace), stage, summary.changed, objective, summary.scored))
        problem.report(trace[-1])
        if distance.keep == "last" or objective < trace[best_iteration].objective:
            best_iteration, best = len(trace) - 1, centroids
        converged = len(trace) > 1 and summary.changed == 0
        if converged or len(trace) == problem.max_iter:
            break
        centroids = update(sums, counts, centroids)
    chosen = slice(problem.n_labels)
    if random_start and len(problem.anchors):
        order = _match(problem.anchors, best, distance)
        start, best = start[order], best[order]
    return Fitted(
        rule=_rule(best[chosen], distance),
        initial_rule=_rule(start[chosen], distance),
        centroids=best[chosen],
        trace=tuple(trace),
        best_iteration=best_iteration,
        converged=converged,
    )


def fit_nearest(blocks: Blocks, problem: Problem, options: object) -> Fitted:
    """No refinement: the nearest anchor."""
    return fit_paper(blocks, replace(problem, max_iter=1), PaperOptions())


def _rule(centroids: Float, distance: Distance) -> Rule:
    if distance.linear:
        return rule_of_centroids(centroids, distance)
    return JensenShannonRule(centroids)


def _random_documents(blocks: Blocks, problem: Problem) -> Float:
    usable = np.flatnonzero(blocks.known[: problem.n_documents] == UNKNOWN)
    random = np.random.default_rng(problem.random_state)
    chosen = random.choice(usable, problem.n_labels, replace=False)
    documents = _points(blocks.gather(np.sort(chosen)), problem.distance)
    return documents[np.argsort(np.argsort(chosen))]


def _points(documents: NDArray[np.floating], distance: Distance) -> Float:
    """Documents in float64, as the distance compares them."""
    if not distance.linear:
        return jensen_shannon.distributions(documents)
    rows = documents.astype(np.float64)
    return unit_rows(rows) if distance.normalize else rows


def _match(anchors: Float, centroids: Float, distance: Distance) -> NDArray[np.intp]:
    """The centroid of each anchor, one-to-one, with the lowest total distance (Hungarian method)."""
    from scipy.optimize import linear_sum_assignment

    if distance.linear:
        rule = rule_of_centroids(centroids, distance)
        cost = -(rule.views[0].exact_scores(_points(anchors, distance)) + rule.offsets)
    else:
        cost = jensen_shannon.distances(anchors, centroids)
    return np.asarray(linear_sum_assignment(cost)[1], dtype=np.intp)


@dataclass(frozen=True, eq=False)
class _Update:
    """Computes the centroids of the next pass."""

    anchors: Float  # (n_centroids, n_dims)
    distance: Distance
    known_means: Float  # (n_centroids, n_dims) means of the known documents
    known_weights: Float  # (n_centroids, 1) their shares in the clusters

    @classmethod
    def of(cls, blocks: Blocks, anchors: Float, distance: Distance, known_weight: float) -> _Update:
        """The update with the known documents of some blocks."""
        sums, counts = np.zeros(anchors.shape), np.zeros(len(anchors))
        rows = np.flatnonzero(blocks.known >= 0)
        for start in range(0, len(rows), blocks.block_rows):
            some = rows[start : start + blocks.block_rows]
            labels = blocks.known[some]
            sums += label_sums(_points(blocks.gather(some), distance), labels, len(anchors))
            counts += np.bincount(labels, minlength=len(anchors))
        means = sums / np.maximum(counts, 1.0)[:, None]
        return cls(anchors, distance, means, np.where(counts > 0, known_weight, 0.0)[:, None])

    def __call__(self, sums: Float, counts: Float, centroids: Float) -> Float:
        """Weighted mean of cluster mean, mean of the known documents, and anchor."""
        means = sums / np.maximum(counts, 1.0)[:, None]
        if not self.distance.linear:  # subtracting what was added can leave a rounding error < 0
            means = np.maximum(means, 0.0)
        empty = counts == 0.0
        if empty.any():
            mean = sums.sum(axis=0) / max(1.0, counts.sum())
            means[empty] = centroids[empty] if self.distance.empty_cluster == "previous" else mean
        means = (1.0 - self.known_weights) * means + self.known_weights * self.known_means
        weight = self.distance.anchor_weight
        return means if weight == 0.0 else (1.0 - weight) * means + weight * self.anchors


class _SingleEncoderPasses:
    """Passes of Algorithm 2."""

    def __init__(self, blocks: Blocks) -> None:
        self._blocks = blocks
        self._previous: Float | None = None

    def run(self, centroids: Float) -> Clusters:
        """Assign every document."""
        movement = np.inf
        if self._previous is not None:
            movement = float(jensen_shannon.pairwise(self._previous, centroids).max())
        self._previous = centroids
        return self._blocks.run(jensen_shannon.Assign(centroids, movement))

    @staticmethod
    def total(summary: Clusters, sums: Float, counts: Float) -> float:
        """Sum of the distances of documents to their centroids."""
        return summary.total


class _LinearPasses:
    """Passes of Algorithms 1 and 3."""

    def __init__(self, blocks: Blocks, distance: Distance) -> None:
        self._blocks, self._distance = blocks, distance
        self._mean = np.zeros(blocks.n_dims)
        self._rule: LinearRule | None = None
        free = blocks.known == UNKNOWN
        self._square_total = float((blocks.lengths[free] ** 2).sum())

    def run(self, centroids: Float) -> Clusters:
        """Assign every document."""
        before = self._rule
        rule = replace(rule_of_centroids(centroids, self._distance), subtract_square=False)
        self._rule = rule
        if before is None:
            first = self._blocks.run(FirstAssign(rule))
            self._mean = first.sums.sum(axis=0) / max(1.0, first.counts.sum())
            self._blocks.run(Reach(self._mean, self._distance.normalize))
            return first
        shift, movement = _largest_changes(before, rule, self._mean)
        return self._blocks.run(Reassign(rule, shift, movement))

    def total(self, summary: Clusters, sums: Float, counts: Float) -> float:
        """Sum of the distances of documents to their centroids, from the sums of the clusters."""
        assert self._rule is not None
        scores = float((sums * self._rule.views[0].weights).sum() + counts @ self._rule.offsets)
        constant = {"cosine": float(counts.sum()), "l2": self._square_total, "dot": 0.0}
        return constant[self._distance.name] - scores


def _largest_changes(before: LinearRule, after: LinearRule, mean: Float) -> tuple[Float, Float]:
    """How far the lead of each label can have fallen.

    Returns shift and movement, both (n_labels,): at the mean document, and per unit of distance
    from it.
    """
    change = after.views[0].weights - before.views[0].weights
    at_mean = change @ mean + after.offsets - before.offsets
    squares = squared_lengths(change)
    between = squares[:, None] + squares - 2.0 * (change @ change.T)
    shift = at_mean[None, :] - at_mean[:, None]
    np.fill_diagonal(shift, -np.inf)
    rounding = 64 * np.finfo(float).eps * (1.0 + np.abs(at_mean).max() + squares.max())
    return shift.max(axis=1) + rounding, np.sqrt(np.maximum(between.max(axis=1), 0.0) + rounding)


def _changed_sums(
    block: Block, rows: NDArray[np.intp], before: Labels, after: Labels, rule: LinearRule
) -> tuple[Float, Float]:
    """Change of the sums and sizes of the clusters when some documents change their label."""
    n_labels = rule.n_labels
    sums = np.zeros((n_labels, block.documents.shape[1]))
    for start in range(0, len(rows), _CHUNK_ROWS):
        some = slice(start, start + _CHUNK_ROWS)
        documents = block.exact(rows[some], rule.views[0].normalize)
        sums += label_sums(documents, after[some], n_labels, before[some])
    counts = np.bincount(after, minlength=n_labels) - np.bincount(before, minlength=n_labels)
    return sums, counts.astype(float)


@dataclass(frozen=True, eq=False)
class FirstAssign:
    """Assigns every free document to its nearest centroid.

    State: labels, -1 for documents that take no part, and the lead of each label.
    """

    rule: LinearRule

    def __call__(self, block: Block, state: State) -> tuple[State, Clusters]:
        """State and summary of one block."""
        labels, _, lead = self.rule.label(block)
        fixed = block.known != UNKNOWN
        labels[fixed] = -1
        lead[fixed] = np.inf
        n_labels = self.rule.n_labels
        weights = np.ones(len(block))
        if self.rule.views[0].normalize:
            weights /= np.where(block.lengths > 0, block.lengths, 1.0)
        sums = grouped_sums(block.documents, weights, labels, n_labels)
        counts = np.bincount(labels[~fixed], minlength=n_labels).astype(float)
        new = {"labels": labels, "lead": lead}
        return new, Clusters(sums, counts, 0.0, 0, int(counts.sum()))


@dataclass(frozen=True, eq=False)
class Reach:
    """Adds the distance of every document from the mean document, rounded up, to the state."""

    mean: Float
    normalize: bool

    def __call__(self, block: Block, state: State) -> tuple[State, Summary]:
        """State of one block and an empty summary."""
        length = float(np.sqrt(self.mean @ self.mean))
        direction = self.mean / (length or 1.0)
        near, rounding = View(direction[None], self.normalize).scores(block.single, block.lengths)
        lengths = np.ones(len(block)) if self.normalize else block.lengths
        squares = lengths**2 - 2.0 * length * (near[0] - rounding) + length**2
        reach = np.sqrt(np.maximum(squares, 0.0)) * (1 + 4 * _ROUNDING)
        return {**state, "reach": reach.astype(np.float32)}, Summary()


@dataclass(frozen=True, eq=False)
class Reassign:
    """Assigns the documents whose label may have changed, by the rule of the new centroids."""

    rule: LinearRule
    shift: Float  # and movement: as of `_largest_changes`
    movement: Float

    def __call__(self, block: Block, state: State) -> tuple[State, Clusters]:
        """State and summary of one block; the state is that of `FirstAssign` and `Reach`."""
        labels, reach = state["labels"], state["reach"]
        fall = self.shift.astype(np.float32)[labels]
        fall += self.movement.astype(np.float32)[labels] * reach * np.float32(1 + 8 * _ROUNDING)
        lead = state["lead"] - fall - np.float32(4 * _ROUNDING) * np.abs(fall)
        unsure = np.flatnonzero(~(lead > 0.0))
        if len(unsure) == 0:
            nothing = np.zeros((self.rule.n_labels, 1))
            return {**state, "lead": lead}, Clusters(nothing, np.zeros(len(nothing)), 0.0, 0, 0)
        everything = 2 * len(unsure) > len(block)
        found, _, leads = self.rule.label(block, None if everything else unsure)
        if everything:
            found, leads = found[unsure], leads[unsure]
        lead[unsure] = leads
        moved = np.flatnonzero(found != labels[unsure])
        before, after = labels[unsure[moved]], found[moved]
        sums, counts = _changed_sums(block, unsure[moved], before, after, self.rule)
        labels = labels.copy()
        labels[unsure] = found
        new = {"labels": labels, "lead": lead, "reach": reach}
        return new, Clusters(sums, counts, 0.0, len(moved), len(unsure))
