"""The one loop behind every variant of the paper: assign, record, update, until nothing changes.

It trusts what it is given; `ulr.refine.refine` checks it at the door. How a pass is done, and
how fast, is a `Passer`'s.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ulr.refine.assign import Assignment
from ulr.refine.distances import EmptyCluster, Float, Keep
from ulr.refine.points import Points
from ulr.refine.result import OnPass, Pass


@dataclass(frozen=True, eq=False)
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
    known: NDArray[np.int32]


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
    prior: str | Float = "estimate"


class Loop:
    """One run of refinement: holds the centroids of the next pass, takes in what it found.

    Attributes
    ----------
    start, centroids
        (n_centroids, n_dims) of the first pass, and of the next one.
    objective, changed
        Of every pass so far.
    kept, kept_centroids
        The pass that is the answer so far.
    first_predictions
        Of the first pass.
    done, converged
        Whether there is no next pass, and whether that is because nothing changed.
    """

    def __init__(self, problem: Problem, settings: Settings) -> None:
        self._settings = settings
        self.start: Float = problem.anchors
        if settings.random_start:
            self.start = _random_documents(problem, settings)
        self.centroids = self.kept_centroids = self.start
        self.objective: list[float] = []
        self.changed: list[int] = []
        self.kept = 0
        self.done = self.converged = False

    def record(self, assignment: Assignment) -> None:
        """Take in a pass over the documents."""
        iteration, settings = len(self.objective), self._settings
        self.objective.append(assignment.total / max(1.0, assignment.counts.sum()))
        self.changed.append(assignment.changed)
        if settings.on_pass is not None:
            done = Pass(iteration, assignment.changed, self.objective[-1], assignment.skipped)
            settings.on_pass(done)
        last = settings.keep == "last"
        if iteration == 0 or last or self.objective[-1] < self.objective[self.kept]:
            self.kept, self.kept_centroids = iteration, self.centroids
        if iteration == 0:
            self.first_predictions = assignment.predictions.copy()
        self.converged = iteration > 0 and assignment.changed == 0
        self.done = self.converged or len(self.objective) == settings.max_iterations


class Update:
    """Works out the centroids of the next pass, of several runs at a time.

    Parameters
    ----------
    problems
        Of the runs; nothing or the same is known in all of them.
    settings
        How to refine each.
    """

    def __init__(self, problems: Sequence[Problem], settings: Settings) -> None:
        self._stays = settings.empty_cluster == "previous"
        self._known = _known_means(problems[0], settings)
        self._others = 1.0
        self._own: Float | None = None
        if not settings.random_start and settings.anchor_weight > 0.0:
            self._others = 1.0 - settings.anchor_weight
            self._own = settings.anchor_weight * np.stack([each.anchors for each in problems])

    def keep(self, places: Sequence[int]) -> None:
        """Go on with some of the runs only."""
        if self._own is not None:
            self._own = self._own[places]

    def __call__(self, sums: Float, counts: Float, centroids: Float) -> Float:
        """The next centroids: cluster mean, mean of the known documents and anchor, weighted.

        Parameters
        ----------
        sums, counts
            (n_runs, n_centroids, n_dims) and (n_runs, n_centroids), of the clusters.
        centroids
            Of this pass.
        """
        means = sums / np.maximum(counts, 1.0)[..., None]
        for empty in np.argwhere(counts == 0.0):
            run, cluster = empty
            mean = sums[run].sum(axis=0) / max(1.0, counts[run].sum())
            means[run, cluster] = centroids[run, cluster] if self._stays else mean
        if self._known is not None:
            weight, known_means = self._known
            means = (1.0 - weight) * means + weight * known_means
        if self._own is not None:
            means *= self._others
            means += self._own
        return means


def _known_means(problem: Problem, settings: Settings) -> tuple[Float, Float] | None:
    """Weight of the documents known to have each label, 0 where there are none, and their mean."""
    numbers = np.flatnonzero(problem.known >= 0)
    if len(numbers) == 0:
        return None
    sums = np.zeros_like(problem.anchors)
    for index in numbers:
        sums[problem.known[index]] += problem.points.row(int(index))
    counts = np.bincount(problem.known[numbers], minlength=len(sums))[:, None]
    return np.where(counts > 0, settings.known_weight, 0.0), sums / np.maximum(counts, 1)


def _random_documents(problem: Problem, settings: Settings) -> Float:
    choice = np.random.default_rng(settings.seed).choice(
        problem.n_documents, problem.n_labels, replace=False
    )
    return np.stack([problem.points.row(int(index)) for index in choice])
