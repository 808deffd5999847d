"""Unsupervised Label Refinement as in the paper: Algorithms 1 to 3 and their variants.

All variants are one loop: assign every document to its nearest centroid, then move each centroid to
a weighted mean of its cluster, its known documents and its anchor, until no label changes.

Documents whose label cannot have changed are skipped (Hamerly's bound). For linear distances, the
lead of a document's label over the second best falls by at most

    shift + distance of the document from the mean document · movement

since it was last computed, where ``shift`` is the change of the score difference at the mean
document, and ``movement`` the length of the change of the difference of two weights. The
Jensen-Shannon distance is a metric: a document keeps its label while the distance to its centroid is
below a lower bound of its distance to every other one, which falls by the largest movement of any.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import get_args

import numpy as np
from numpy.typing import NDArray

from ulr.errors import ParameterError
from ulr.refinement.blocks import UNKNOWN, Block, Blocks, State, Summary
from ulr.refinement.distances import (
    Distance,
    EmptyCluster,
    Float,
    Keep,
    Rows,
    cached_rows,
    distributions,
    inverse_lengths,
    jensen_shannon_distances,
    label_sums,
    paired_distances,
    scores_by_label,
    two_best,
)
from ulr.refinement.result import Fitted, LinearRule, Pass, Problem, rule_of_centroids
from ulr.refinement.validation import check_choice
from ulr.vectors import squared_lengths, unit_rows

_ROUNDING = 1e-6  # bounds that are computed in two ways differ by less


@dataclass(frozen=True)
class PaperOptions:
    """Options of the paper's method; None stands for the setting that belongs to the distance."""

    # ``labels``, or ``random``: centroids start at random documents, are plain cluster means, and are
    # matched one-to-one to the anchors at the end.
    start: str = "labels"
    anchor_weight: float | None = None  # share of the anchor in an updated centroid
    # Share of the mean of the known documents in the rest, for labels that have any. With 0.5, a
    # centroid is 1/4 cluster mean, 1/4 mean of known documents and 1/2 anchor.
    known_weight: float = 0.5
    # The result is the iteration with the ``lowest`` objective, or the ``last``.
    keep: Keep | None = None
    # An empty cluster takes the ``mean`` of all documents, or keeps its ``previous`` centroid.
    empty_cluster: EmptyCluster | None = None

    def __post_init__(self) -> None:
        check_choice("start", self.start, ("labels", "random"))
        for name, allowed in (("keep", Keep), ("empty_cluster", EmptyCluster)):
            if getattr(self, name) is not None:
                check_choice(name, getattr(self, name), get_args(allowed))
        for name in ("anchor_weight", "known_weight"):
            value = getattr(self, name)
            if value is not None and not 0.0 <= value <= 1.0:
                raise ParameterError(name, f"must be between 0 and 1; got {value!r}.")


def fit_paper(blocks: Blocks, problem: Problem, options: PaperOptions) -> Fitted:
    """Refine the anchors as the paper does."""
    random_start = options.start == "random"
    names = ("anchor_weight", "keep", "empty_cluster")
    given = {name: getattr(options, name) for name in names if getattr(options, name) is not None}
    given |= {"anchor_weight": 0.0} if random_start else {}
    distance = replace(problem.distance, **given)
    start = _random_documents(blocks, problem) if random_start else problem.anchors
    known_means, known_weights = _known_means(blocks, start, distance, options.known_weight)
    free = blocks.known == UNKNOWN
    n_free, squares = int(np.count_nonzero(free)), float((blocks.lengths[free] ** 2).sum())
    problem.progress.stage("Refining", 1 if problem.max_iter == 1 else None, "passes")
    centroids = best = start
    sums, counts = np.zeros(start.shape), np.zeros(len(start))
    mean = np.zeros(blocks.n_dims)
    step: Assign | AssignDistributions | None = None
    trace: list[Pass] = []
    best_iteration = 0
    while True:
        step = _next_step(step, centroids, distance, mean)
        summary = blocks.run(step)
        sums += summary.sums
        counts += summary.sizes
        objective = summary.objective / max(1, n_free)
        if isinstance(step, Assign):  # from the sums of the clusters
            scores = float((sums * step.rule.views[0].weights).sum() + counts @ step.rule.offsets)
            constant = {"cosine": n_free, "l2": squares, "dot": 0.0}[distance.name]
            objective = (constant - scores) / max(1, n_free)
        stage = "clusters" if trace else "nearest label"
        trace.append(Pass(len(trace), stage, summary.changed, objective, summary.scored))
        problem.progress.advance(1)
        if distance.keep == "last" or objective < trace[best_iteration].objective:
            best_iteration, best = len(trace) - 1, centroids
        converged = len(trace) > 1 and summary.changed == 0
        if converged or len(trace) == problem.max_iter:
            break
        mean = sums.sum(axis=0) / max(1.0, counts.sum())
        means = sums / np.maximum(counts, 1.0)[:, None]
        if not distance.linear:  # subtracting what was added can leave a rounding error below zero
            means = np.maximum(means, 0.0)
        empty = counts == 0.0
        means[empty] = centroids[empty] if distance.empty_cluster == "previous" else mean
        means = (1.0 - known_weights) * means + known_weights * known_means
        centroids = (1.0 - distance.anchor_weight) * means + distance.anchor_weight * start
    if random_start and len(problem.anchors):
        order = _match(problem.anchors, best, distance)
        start, best = start[order], best[order]
    chosen = slice(problem.n_labels)
    return Fitted(
        rule=rule_of_centroids(best[chosen], distance),
        initial_rule=rule_of_centroids(start[chosen], distance),
        centroids=best[chosen],
        trace=tuple(trace),
        best_iteration=best_iteration,
        converged=converged,
        method=problem.method,
        n_fitted=int(np.count_nonzero(blocks.known >= UNKNOWN)),
        share=1.0 if len(trace) > 1 else 0.0,
    )


def fit_nearest(blocks: Blocks, problem: Problem, options: object = None) -> Fitted:
    """No refinement: the nearest anchor."""
    return fit_paper(blocks, replace(problem, max_iter=1), PaperOptions())


def _random_documents(blocks: Blocks, problem: Problem) -> Float:
    usable = np.flatnonzero(blocks.known[: problem.n_documents] == UNKNOWN)
    random = np.random.default_rng(problem.random_state)
    chosen = random.choice(usable, problem.n_labels, replace=False)
    documents = _points(blocks.gather(np.sort(chosen)), problem.distance)
    return documents[np.argsort(np.argsort(chosen))]


def _points(documents: NDArray[np.floating], distance: Distance) -> Float:
    """Documents in float64, as the distance compares them."""
    if not distance.linear:
        return distributions(documents)
    rows = documents.astype(np.float64)
    return unit_rows(rows) if distance.normalize else rows


def _known_means(
    blocks: Blocks, anchors: Float, distance: Distance, weight: float
) -> tuple[Float, Float]:
    """Means of the known documents of each label, and their shares in the clusters."""
    sums, counts = np.zeros(anchors.shape), np.zeros(len(anchors))
    rows = np.flatnonzero(blocks.known >= 0)
    for start in range(0, len(rows), blocks.block_rows):
        some = rows[start : start + blocks.block_rows]
        labels, points = blocks.known[some], _points(blocks.gather(some), distance)
        sums += label_sums(points, np.ones(len(some)), labels, len(anchors))
        counts += np.bincount(labels, minlength=len(anchors))
    means = sums / np.maximum(counts, 1.0)[:, None]
    return means, np.where(counts > 0, weight, 0.0)[:, None]


def _match(anchors: Float, centroids: Float, distance: Distance) -> Rows:
    """The centroid of each anchor, one-to-one, with the lowest total distance (Hungarian method)."""
    from scipy.optimize import linear_sum_assignment

    if distance.linear:
        rule = rule_of_centroids(centroids, distance)
        assert isinstance(rule, LinearRule)
        cost = -(_points(anchors, distance) @ rule.views[0].weights.T + rule.offsets)
    else:
        cost = jensen_shannon_distances(anchors, centroids)
    return np.asarray(linear_sum_assignment(cost)[1], dtype=np.intp)


def _next_step(
    before: Assign | AssignDistributions | None, centroids: Float, distance: Distance, mean: Float
) -> Assign | AssignDistributions:
    """The assignment to new centroids, with the bounds on what can have changed."""
    if not distance.linear:
        movement = np.inf
        if isinstance(before, AssignDistributions):
            movement = float(paired_distances(before.centroids, centroids).max())
        return AssignDistributions(centroids, movement)
    rule = rule_of_centroids(centroids, distance)
    assert isinstance(rule, LinearRule)
    rule = replace(rule, subtract_square=False)
    if not isinstance(before, Assign):
        return Assign(rule, mean, np.zeros(len(centroids)), np.zeros(len(centroids)))
    change = rule.views[0].weights - before.rule.views[0].weights
    at_mean = change @ mean + rule.offsets - before.rule.offsets
    squares = squared_lengths(change)
    between = squares[:, None] + squares - 2.0 * (change @ change.T)
    shift = at_mean[None, :] - at_mean[:, None]
    np.fill_diagonal(shift, -np.inf)
    movements = np.sqrt(np.maximum(between.max(axis=1), 0.0))
    return Assign(rule, mean, shift.max(axis=1), movements)


@dataclass(frozen=True, eq=False)
class Assign:
    """Assigns documents to the nearest centroid by a linear distance, where their label may change.

    State: labels, -1 for documents that take no part; the lead of each label over the second best;
    and, from the second pass on, reach, the distance from the mean document.
    """

    rule: LinearRule
    mean: Float  # (n_dims,) of all documents; not used in the first pass, and so for the next
    shift: Float  # (n_labels,) largest fall of the lead at the mean document
    movement: Float  # (n_labels,) and per unit of distance from it

    def __call__(self, block: Block, state: State) -> tuple[State, Summary]:
        """State and summary of one block."""
        n_labels, normalize = self.rule.n_labels, self.rule.views[0].normalize
        weights = inverse_lengths(block.lengths) if normalize else np.ones(len(block.known))
        if not state:
            labels, best, second = two_best(self.rule.scores(block))
            fixed = block.known != UNKNOWN
            labels[fixed] = -1
            counts = np.bincount(labels[~fixed], minlength=n_labels).astype(float)
            sums = label_sums(block.documents, weights, labels, n_labels)
            new = {"labels": labels, "lead": np.where(fixed, np.inf, best - second)}
            return new, Summary(counts, sums, scored=int(counts.sum()))
        labels, reach = state["labels"], state.get("reach")
        if reach is None:
            reach = self._reach(block, weights)
        fall = self.shift.astype(reach.dtype)[labels]
        fall += self.movement.astype(reach.dtype)[labels] * reach
        lead = state["lead"] - fall
        unsure = np.flatnonzero(lead <= 0.0)
        many = 2 * len(unsure) > len(block.known)
        scores = self.rule.scores(block if many else block.take(unsure))
        rows = unsure if many else np.arange(len(unsure))
        found, best, second = (each[rows] for each in two_best(scores))
        before, lead[unsure] = labels[unsure], best - second
        # Rounding must not move documents to and fro between centroids that are equally close.
        rounding = 4 * np.finfo(scores.dtype).eps * np.abs(best).max(initial=0.0)
        found = np.where(best - scores[before, rows] <= rounding, before, found)
        moved, after = unsure[found != before], found[found != before]
        documents, weights = block.documents[moved], weights[moved]
        sums = label_sums(documents, weights, after, n_labels)
        sums -= label_sums(documents, weights, labels[moved], n_labels)
        counts = np.bincount(after, minlength=n_labels).astype(float)
        counts -= np.bincount(labels[moved], minlength=n_labels)
        labels = labels.copy()
        labels[unsure] = found
        new = {"labels": labels, "lead": lead, "reach": reach}
        return new, Summary(counts, sums, changed=len(moved), scored=len(unsure))

    def _reach(self, block: Block, weights: Float) -> NDArray[np.floating]:
        """Distance of every document from the mean document, rounded up."""
        near = scores_by_label(self.mean.astype(np.float32)[None], block.single)[0] * weights
        squares = (block.lengths * weights) ** 2 - 2.0 * near + self.mean @ self.mean
        return (np.sqrt(np.maximum(squares, 0.0)) * (1 + _ROUNDING)).astype(np.float32)


@dataclass(frozen=True, eq=False)
class AssignDistributions:
    """Assigns every document to its nearest centroid by the Jensen-Shannon distance.

    State: labels, and lower bounds of the distances to all other centroids.
    """

    centroids: Float  # (n_centroids, n_dims)
    movement: float  # largest one since the last pass; infinite in the first

    def __call__(self, block: Block, state: State) -> tuple[State, Summary]:
        """State and summary of one block."""
        n, k = len(block.known), len(self.centroids)
        free = block.known == UNKNOWN
        before = state["labels"] if state else np.full(n, -1, dtype=np.int32)
        labels = before.copy()
        lower = state["lower"] - self.movement if state else np.zeros(n)
        sums, total, scored = np.zeros((k, block.documents.shape[1])), 0.0, 0
        for rows in cached_rows(n, block.documents.shape[1]):
            points = distributions(block.documents[rows])
            own = np.zeros(len(points))
            if state:
                own = paired_distances(points, self.centroids[np.maximum(before[rows], 0)])
            unsure = np.flatnonzero(free[rows] & ~(own + _ROUNDING < lower[rows]))
            if len(unsure):
                found = jensen_shannon_distances(points[unsure], self.centroids)
                own[unsure] = found.min(axis=1)
                nearest = found.argmin(axis=1)
                found[np.arange(len(unsure)), nearest] = np.inf
                labels[rows.start + unsure] = nearest
                lower[rows.start + unsure] = found.min(axis=1)
            moved = np.flatnonzero(labels[rows] != before[rows])
            weights = np.ones(len(moved))
            sums += label_sums(points[moved], weights, labels[rows][moved], k)
            sums -= label_sums(points[moved], weights, before[rows][moved], k)
            total += float(own[free[rows]].sum())
            scored += len(unsure)
        counts = np.bincount(labels[free], minlength=k).astype(float)
        changed = 0
        if state:
            counts -= np.bincount(before[free], minlength=k)
            changed = int(np.count_nonzero(labels != before))
        new = {"labels": labels, "lower": lower}
        return new, Summary(counts, sums, objective=total, changed=changed, scored=scored)
