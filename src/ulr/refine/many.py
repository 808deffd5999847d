"""Many label sets over the same documents, refined together.

All sets of a group share the passes; those that have converged drop out. Each result is the one
that refining the set alone gives: where float32 cannot decide, float64 does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import groupby

import numpy as np

from ulr.refine import loops
from ulr.refine.distances import Float
from ulr.refine.engines import Engine, LinearEngine, refinement, run
from ulr.refine.linear import SharedPasses
from ulr.refine.loop import Loop, Problem, Settings, Update
from ulr.refine.points import Points, side_by_side
from ulr.refine.result import Refinement
from ulr.refine.scoring import LinearScorer, Raw, Scores
from ulr.refine.sketch import Sketch, sketch
from ulr.refine.survey import Survey
from ulr.refine.threads import Item, Result, in_order

_GROUP_BYTES = 256 << 20  # of what is remembered about the documents for the sets of a group
_MOST_SETS = 32
_LARGEST_SIDE_BY_SIDE = 1 << 22  # scores of a problem that others may run beside


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
    for n_labels, alike in groupby(problems, key=lambda problem: problem.n_labels):
        rest, points = list(alike), problems[0].points
        memory = problems[0].n_documents * (8 * n_labels + 32)
        size = max(1, min(_MOST_SETS, _GROUP_BYTES // memory))
        n_groups = -(-len(rest) // size)
        size = -(-len(rest) // n_groups)
        groups = [rest[start : start + size] for start in range(0, len(rest), size)]
        scorer, its_sketch = engine.scorer, None
        if loops.do_all_of_a_pass(n_labels):
            its_sketch = sketch(points, [problem.anchors for problem in rest])

        def refined(
            group: Sequence[Problem],
            scorer: LinearScorer = scorer,
            its_sketch: Sketch | None = its_sketch,
        ) -> list[Refinement]:
            return list(_refine_group(group, settings, scorer, its_sketch, survey))

        for results in _side_by_side(points, refined, groups, _GROUP_BYTES // (size * memory)):
            yield from results


def run_each(
    solve: Callable[[Problem, Settings, Engine, Survey], Refinement],
    problems: Sequence[Problem],
    settings: Settings,
    engine: Engine,
    survey: Survey,
) -> Iterator[Refinement]:
    """Solve every problem by itself, several at a time where they are small.

    Parameters
    ----------
    solve
        What to do with each.
    problems
        Problems over the same points, in the midst of `Points.at_work`.
    settings, engine, survey
        As for `run_many`.
    """
    points = problems[0].points

    def solved(problem: Problem) -> Refinement:
        return solve(problem, settings, engine, survey)

    small = points.n_rows * len(problems[0].anchors) <= _LARGEST_SIDE_BY_SIDE
    return _side_by_side(points, solved, problems, points.threads if small else 1)


def _side_by_side(
    points: Points, solve: Callable[[Item], Result], items: Sequence[Item], at_most: int
) -> Iterator[Result]:
    """Solve each of some problems, several at a time, a thread taking one whole.

    Small problems are over too soon for threads to share one.
    """
    at_once = min(at_most, points.threads, len(items))
    if at_once < 2 or points.is_streamed:
        yield from map(solve, items)
        return
    with points.by_one_thread(), ThreadPoolExecutor(at_once - 1) as pool:
        yield from in_order(pool, solve, items, at_once)


def _refine_group(
    problems: Sequence[Problem],
    settings: Settings,
    scorer: LinearScorer,
    its_sketch: Sketch | None,
    survey: Survey,
) -> Iterator[Refinement]:
    runs = [Loop(problem, settings) for problem in problems]
    known, n_labels = problems[0].known, problems[0].n_labels
    passes = SharedPasses(scorer, known, len(runs), n_labels, its_sketch)
    update, running = Update(problems, settings), runs
    centroids = np.stack([loop.centroids for loop in runs])
    while True:
        assignments = passes.assign(centroids)
        for loop, assignment in zip(running, assignments, strict=True):
            loop.record(assignment)
        going_on = [i for i, loop in enumerate(running) if not loop.done]
        if len(going_on) < len(running):
            passes.keep(going_on)
            update.keep(going_on)
            running, centroids = [running[i] for i in going_on], centroids[going_on]
        if not running:
            break
        centroids = update(*passes.clusters, centroids)
        for loop, its_centroids in zip(running, centroids, strict=True):
            loop.centroids = its_centroids
    del passes, assignments
    n_documents = problems[0].n_documents
    answers = _final_scores(scorer, [loop.kept_centroids for loop in runs], n_documents)
    for problem, loop, answer in zip(problems, runs, answers, strict=True):
        own, first = np.arange(problem.n_labels), loop.first_predictions.astype(np.intp)
        predictions, scores = answer.predictions, answer.scores
        yield refinement(problem, settings, survey, loop, own, predictions, scores, first)


def _final_scores(scorer: LinearScorer, centroids: list[Float], n_rows: int) -> list[Scores]:
    """The scores of all sets, by one matrix product a block."""
    answers = [Scores(scorer, each, n_rows) for each in centroids]
    vectors = np.concatenate([answer.form.slopes for answer in answers]).astype(np.float32)

    def work(rows: slice, raw: Raw) -> None:
        raw = side_by_side(raw)
        products = scorer.products(raw, rows, vectors)
        for answer, own in zip(answers, np.split(products, len(answers)), strict=True):
            answer.take_in(raw, rows, own)

    for _ in scorer.points.map_rows(work):
        pass
    return answers
