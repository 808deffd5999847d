"""From a problem and its settings to the answer: which passer is used, and what is made of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ulr.refine import divergence
from ulr.refine.assign import Passer, PlainPasser, with_largest
from ulr.refine.distances import Float
from ulr.refine.divergence import DivergencePasser
from ulr.refine.linear import LinearPasser
from ulr.refine.loop import Loop, Problem, Settings, Update
from ulr.refine.matching import match_one_to_one
from ulr.refine.points import Points
from ulr.refine.result import Refinement
from ulr.refine.scoring import LinearScorer
from ulr.refine.survey import Survey

# Lengths of documents and centroids between which float32 products neither overflow nor vanish.
_SHORTEST, _LONGEST = 1e-12, 1e12


class Engine(Protocol):
    """A way to go over the documents: passes for a loop, and scores for its answer."""

    def passer(self, known: NDArray[np.int32], n_centroids: int) -> Passer:
        """Something that does the passes of one loop."""
        ...

    def score(self, centroids: Float, n_rows: int) -> tuple[NDArray[np.intp], NDArray[np.float32]]:
        """The nearest centroid of the first documents, and their scores to all of them."""
        ...


@dataclass(frozen=True, eq=False)
class PlainEngine:
    """Every document against every centroid, in float64."""

    points: Points

    def passer(self, known: NDArray[np.int32], n_centroids: int) -> Passer:
        """The reference."""
        return PlainPasser(self.points, known)

    def score(self, centroids: Float, n_rows: int) -> tuple[NDArray[np.intp], NDArray[np.float32]]:
        """Scores in float64, rounded at the end."""
        distance = self.points.distance
        predictions = np.empty(n_rows, dtype=np.intp)
        scores = np.empty((n_rows, len(centroids)), dtype=np.float32)

        def work(rows: slice, raw: NDArray[np.floating]) -> None:
            for start in range(rows.start, rows.stop, 1024):
                few = slice(start, min(start + 1024, rows.stop))
                part = self.points.exact(raw[few.start - rows.start : few.stop - rows.start])
                predictions[few], distances = distance.nearest(part, centroids)
                scores[few] = distance.nearest_score - distances
                scores[few] = with_largest(scores[few], predictions[few])

        wanted = [rows for rows in self.points.blocks if rows.start < n_rows]
        for _ in self.points.map_rows(work, wanted):
            pass
        return predictions, scores


@dataclass(frozen=True, eq=False)
class DivergenceEngine:
    """Jensen-Shannon with shortcuts."""

    points: Points

    def passer(self, known: NDArray[np.int32], n_centroids: int) -> Passer:
        """Passes that skip what cannot change."""
        return DivergencePasser(self.points, known, n_centroids)

    def score(self, centroids: Float, n_rows: int) -> tuple[NDArray[np.intp], NDArray[np.float32]]:
        """Scores with one logarithm a coordinate."""
        return divergence.score(self.points, centroids, n_rows)


@dataclass(frozen=True, eq=False)
class LinearEngine:
    """Cosine, l2 and dot with shortcuts."""

    scorer: LinearScorer

    def passer(self, known: NDArray[np.int32], n_centroids: int) -> Passer:
        """Passes that skip what cannot change."""
        return LinearPasser(self.scorer, known, n_centroids)

    def score(self, centroids: Float, n_rows: int) -> tuple[NDArray[np.intp], NDArray[np.float32]]:
        """Scores in float32, the label made sure of in float64."""
        return self.scorer.score(centroids, n_rows)


def choose_engine(points: Points, survey: Survey, anchors: Float, shortcuts: bool) -> Engine:
    """The fastest engine that is safe for these numbers."""
    if not shortcuts:
        return PlainEngine(points)
    if points.distance.name == "jensen-shannon":
        return DivergenceEngine(points)
    squares = [survey.squares, np.einsum("ij,ij->i", anchors, anchors)]
    lengths = np.sqrt(np.concatenate([each[each > 0] for each in squares]))
    if len(lengths) and not (lengths.min() > _SHORTEST and lengths.max() < _LONGEST):
        return PlainEngine(points)
    return LinearEngine(LinearScorer(points, survey))


def run(problem: Problem, settings: Settings, engine: Engine, survey: Survey) -> Refinement:
    """Refine until no prediction changes, and give the pass that the settings ask for."""
    loop, update = Loop(problem, settings), Update([problem], settings)
    passer = engine.passer(problem.known, len(loop.start))
    while True:
        assignment = passer.assign(loop.centroids)
        loop.record(assignment)
        if loop.done:
            break
        sums, counts = assignment.sums[None], assignment.counts[None]
        loop.centroids = update(sums, counts, loop.centroids[None])[0]
    del passer, assignment
    return answer(problem, settings, engine, survey, loop)


def answer(
    problem: Problem, settings: Settings, engine: Engine, survey: Survey, loop: Loop
) -> Refinement:
    """Score the user's documents against the user's labels with the kept centroids."""
    order = np.arange(len(loop.start))
    if settings.random_start and len(problem.anchors):
        between = problem.points.distance.between(problem.anchors, loop.kept_centroids)
        order = match_one_to_one(between)
    own, n_documents = order[: problem.n_labels], problem.n_documents
    predictions, scores = engine.score(loop.kept_centroids[own], n_documents)
    if len(loop.start) == problem.n_labels and (problem.known < 0).all():
        unrefined = np.argsort(order)[loop.first_predictions[:n_documents]]
    else:  # the first pass had more than the user's labels to go by
        unrefined = engine.score(loop.start[own], n_documents)[0]
    return refinement(problem, settings, survey, loop, own, predictions, scores, unrefined)


def refinement(
    problem: Problem,
    settings: Settings,
    survey: Survey,
    loop: Loop,
    own: NDArray[np.intp],
    predictions: NDArray[np.intp],
    scores: NDArray[np.float32],
    unrefined: NDArray[np.intp],
) -> Refinement:
    """The result of a finished loop, from the scores of its kept centroids."""
    known = problem.known[: problem.n_documents]
    return Refinement(
        predictions=np.where(known >= 0, known, predictions).astype(np.intp),
        scores=scores,
        centroids=loop.kept_centroids[own],
        unrefined=unrefined,
        objective=np.array(loop.objective),
        changed=np.array(loop.changed, dtype=np.intp),
        kept=loop.kept,
        converged=loop.converged,
        n_zero_documents=survey.count_zero(problem.n_documents),
        method=settings.method,
        distance=problem.points.distance.name,
    )
