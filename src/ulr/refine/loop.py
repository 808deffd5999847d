"""The one loop behind every variant of the paper: assign, record, update, until nothing changes.

It trusts what it is given; `ulr.refine.refine` checks it at the door.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ulr.refine.assign import Assignment, assign, score
from ulr.refine.distances import EmptyCluster, Float, Keep
from ulr.refine.matching import match_one_to_one
from ulr.refine.points import Points
from ulr.refine.result import OnPass, Pass, Refinement


@dataclass(frozen=True)
class Problem:
    """What to refine.

    Attributes
    ----------
    points
        The user's documents, then any extra ones.
    anchors
        (n_labels + n_extra_labels, n_dims) label vectors, the user's first; with a random start
        (n_labels, n_dims) vectors to name the clusters by, or none, (0, n_dims).
    n_documents, n_labels
        How many of the points and of the centroids are the user's own.
    known
        (n_points,) the label of a document, -1 where it is not known.
    """

    points: Points
    anchors: Float
    n_documents: int
    n_labels: int
    known: NDArray[np.intp]


@dataclass(frozen=True)
class Settings:
    """How to refine; `ulr.refine.refine` explains each."""

    method: str
    max_iterations: int
    anchor_weight: float
    known_weight: float
    keep: Keep
    empty_cluster: EmptyCluster
    random_start: bool
    seed: int
    on_pass: OnPass | None


def run(problem: Problem, settings: Settings) -> Refinement:
    """Refine until no prediction changes, and give the iteration that the settings ask for."""
    update = _Update(problem, settings)
    centroids = _random_documents(problem, settings) if settings.random_start else problem.anchors
    objective: list[float] = []
    changed: list[int] = []
    kept, kept_centroids = 0, centroids
    previous: NDArray[np.intp] | None = None
    converged = False
    for iteration in range(settings.max_iterations):
        assignment = assign(problem.points, centroids, problem.known)
        objective.append(assignment.total / max(1.0, assignment.counts.sum()))
        moved = 0 if previous is None else int((assignment.predictions != previous).sum())
        changed.append(moved)
        if settings.on_pass is not None:
            settings.on_pass(Pass(iteration, moved, objective[-1]))
        if settings.keep == "last" or objective[-1] < objective[kept]:
            kept, kept_centroids = iteration, centroids
        if previous is not None and moved == 0:
            converged = True
            break
        previous = assignment.predictions
        centroids = update(assignment, centroids)
    return _answer(problem, settings, kept_centroids, objective, changed, kept, converged)


class _Update:
    """The next centroids: cluster mean, mean of the known documents and anchor, weighted."""

    def __init__(self, problem: Problem, settings: Settings) -> None:
        self._anchors = problem.anchors
        self._empty_cluster = settings.empty_cluster
        self._anchor_weight = 0.0 if settings.random_start else settings.anchor_weight
        self._mean = _mean(problem.points)
        self._known_means, known_counts = _known_means(problem)
        self._known_weight = np.where(known_counts > 0, settings.known_weight, 0.0)[:, None]

    def __call__(self, assignment: Assignment, centroids: Float) -> Float:
        counts = assignment.counts[:, None]
        standing_in = self._mean if self._empty_cluster == "mean" else centroids
        means = np.where(counts > 0, assignment.sums / np.maximum(counts, 1.0), standing_in)
        if self._known_weight.any():
            means = (1.0 - self._known_weight) * means + self._known_weight * self._known_means
        if self._anchor_weight == 0.0:
            return means
        return (1.0 - self._anchor_weight) * means + self._anchor_weight * self._anchors


def _mean(points: Points) -> Float:
    def work(blocks: list[slice]) -> Float:
        return np.sum([points.block(rows).sum(axis=0) for rows in blocks], axis=0)

    return np.sum(list(points.map_shards(work)), axis=0) / points.n_rows


def _known_means(problem: Problem) -> tuple[Float, NDArray[np.intp]]:
    """Mean of the documents known to have each label, and how many there are."""
    n_centroids = max(len(problem.anchors), problem.n_labels)
    sums = np.zeros((n_centroids, problem.points.n_dims))
    for index in np.flatnonzero(problem.known >= 0):
        sums[problem.known[index]] += problem.points.row(int(index))
    counts = np.bincount(problem.known[problem.known >= 0], minlength=n_centroids)
    return sums / np.maximum(counts, 1)[:, None], counts


def _random_documents(problem: Problem, settings: Settings) -> Float:
    choice = np.random.default_rng(settings.seed).choice(
        problem.n_documents, problem.n_labels, replace=False
    )
    return np.stack([problem.points.row(int(index)) for index in choice])


def _answer(
    problem: Problem,
    settings: Settings,
    centroids: Float,
    objective: list[float],
    changed: list[int],
    kept: int,
    converged: bool,
) -> Refinement:
    """Score the user's documents against the user's labels with the kept centroids."""
    points, own = problem.points, slice(0, problem.n_labels)
    start = _random_documents(problem, settings) if settings.random_start else problem.anchors
    if settings.random_start and len(problem.anchors):
        order = match_one_to_one(points.distance.between(problem.anchors, centroids))
        centroids, start = centroids[order], start[order]
    predictions, scores = score(points, centroids[own], problem.n_documents)
    unrefined = predictions if kept == 0 else score(points, start[own], problem.n_documents)[0]
    known = problem.known[: problem.n_documents]
    return Refinement(
        predictions=np.where(known >= 0, known, predictions),
        scores=scores,
        centroids=centroids[own],
        unrefined=unrefined,
        objective=np.array(objective),
        changed=np.array(changed, dtype=np.intp),
        kept=kept,
        converged=converged,
        n_zero_documents=_zero_documents(problem),
        method=settings.method,
        distance=points.distance.name,
    )


def _zero_documents(problem: Problem) -> int:
    points = problem.points

    def work(blocks: list[slice]) -> int:
        inside = [rows for rows in blocks if rows.start < problem.n_documents]
        return sum(int((~points.block(rows).any(axis=1)).sum()) for rows in inside)

    return sum(points.map_shards(work))
