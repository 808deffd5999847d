"""Many label sets over the same documents, refined together.

The first two passes and the last scores are done for a group of sets with one matrix product a
block; in between, where each set has few documents left to look at, the sets are refined side
by side, one a thread. Each result is the one that refining the set alone gives.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from ulr.refine.assign import Assignment
from ulr.refine.engines import Engine, LinearEngine, refinement, run
from ulr.refine.linear import LinearPasser, LinearScorer, Middle, Outcome, Raw, Scores
from ulr.refine.loop import Loop, Problem, Settings
from ulr.refine.result import Refinement
from ulr.refine.survey import Survey

_GROUP_BYTES = 256 << 20  # of what is remembered about the documents for the sets of a group
_MOST_SETS = 64

Single = NDArray[np.float32]


def run_many(
    problems: Sequence[Problem], settings: Settings, engine: Engine, survey: Survey
) -> Iterator[Refinement]:
    """Refine every problem; they differ in their anchors only.

    Parameters
    ----------
    problems
        Problems over the same points, with nothing known and nothing extra.
    settings
        How to refine each.
    engine, survey
        Of the points.
    """
    if not isinstance(engine, LinearEngine):
        for problem in problems:
            yield run(problem, settings, engine, survey)
        return
    widest = max(problem.n_labels for problem in problems)
    memory = problems[0].n_documents * (8 * widest + 32)
    size = max(1, min(_MOST_SETS, _GROUP_BYTES // memory))
    for start in range(0, len(problems), size):
        yield from _Group(problems[start : start + size], settings, engine.scorer, survey).run()


class _Group:
    """Label sets that are refined at the same time."""

    def __init__(
        self,
        problems: Sequence[Problem],
        settings: Settings,
        scorer: LinearScorer,
        survey: Survey,
    ) -> None:
        self._problems, self._settings, self._survey = problems, settings, survey
        self._points = scorer.points
        self._scorer = scorer.on_one_thread()
        self._middle = Middle(self._scorer)
        self._loops = [Loop(problem, settings) for problem in problems]
        self._passers = [
            LinearPasser(self._scorer, self._middle, problem.known, problem.n_labels)
            for problem in problems
        ]

    def run(self) -> list[Refinement]:
        """Refine all sets."""
        self._together(self._first_pass)
        if not all(loop.done for loop in self._loops):
            self._together(self._second_pass)
        self._points.map_any(self._go_on, range(len(self._loops)))
        return self._answers()

    def _together(self, one_pass: Callable[[], list[list[Outcome]]]) -> None:
        """Do one pass for all sets at once, and let every loop take it in."""
        for loop, passer in zip(self._loops, self._passers, strict=True):
            passer.begin(loop.centroids)
        for loop, passer, outcomes in zip(
            self._loops, self._passers, zip(*one_pass(), strict=True), strict=True
        ):
            loop.take_in(passer.end(outcomes))

    def _first_pass(self) -> list[list[Outcome]]:
        # Sets of one task share most of their labels: each is multiplied once. And most
        # documents have the label that the set before gave them.
        vectors, inverse = np.unique(self._stack(), axis=0, return_inverse=True)
        places = np.split(inverse.ravel(), self._edges())

        def work(rows: slice, raw: Raw) -> list[Outcome]:
            products = self._scorer.products(raw, rows, vectors)
            outcomes: list[Outcome] = []
            for passer, own in zip(self._passers, places, strict=True):
                same = outcomes and len(outcomes[-1].counts) == len(own)
                like = outcomes[-1] if same else None
                outcomes.append(passer.take_in(raw, rows, products[own], like))
            return outcomes

        return list(self._points.map_rows(work))

    def _second_pass(self) -> list[list[Outcome]]:
        vectors = np.concatenate([self._stack(), self._middle.vector[None].astype(np.float32)])

        def work(rows: slice, raw: Raw) -> list[Outcome]:
            products = self._scorer.products(raw, rows, vectors)
            self._middle.measure(rows, products[-1])
            parts = np.split(products[:-1], self._edges())
            return [
                p.take_in(raw, rows, part) for p, part in zip(self._passers, parts, strict=True)
            ]

        return list(self._points.map_rows(work))

    def _stack(self) -> Single:
        """Slopes of all sets, one below the other."""
        return np.concatenate(
            [self._scorer.form(loop.centroids).slopes for loop in self._loops]
        ).astype(np.float32)

    def _edges(self) -> NDArray[np.intp]:
        return np.cumsum([len(loop.centroids) for loop in self._loops])[:-1]

    def _go_on(self, index: int) -> None:
        """The rest of the passes of one set."""
        loop, passer = self._loops[index], self._passers[index]
        while not loop.done:
            assignment: Assignment = passer.assign(loop.centroids)
            loop.take_in(assignment)

    def _answers(self) -> list[Refinement]:
        """The kept scores of all sets."""
        self._passers.clear()
        n_documents = self._problems[0].n_documents
        answers = [Scores(self._scorer, loop.kept_centroids, n_documents) for loop in self._loops]
        vectors = np.concatenate([answer.form.slopes for answer in answers]).astype(np.float32)

        def work(rows: slice, raw: Raw) -> None:
            products = self._scorer.products(raw, rows, vectors)
            for answer, part in zip(answers, np.split(products, self._edges()), strict=True):
                answer.take_in(raw, rows, part)

        for _ in self._points.map_rows(work):
            pass
        return [
            refinement(
                problem,
                self._settings,
                self._survey,
                loop,
                np.arange(problem.n_labels),
                answer.predictions,
                answer.scores,
                loop.first_predictions.astype(np.intp),
            )
            for problem, loop, answer in zip(self._problems, self._loops, answers, strict=True)
        ]
