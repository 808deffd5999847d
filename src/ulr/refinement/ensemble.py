"""Ensembles: several sets of anchors for the same labels, refined separately, scores averaged.

Scores are linear for every vector distance, so the mean over any number of sets is one rule, no
larger than that of a single set. Word counts are not used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ulr.errors import ArrayError
from ulr.refinement.api import refine_many, score_all
from ulr.refinement.blocks import EXCLUDED, VectorSource
from ulr.refinement.distances import DISTANCES
from ulr.refinement.products import Float
from ulr.refinement.result import Pass, Refinement
from ulr.refinement.rule import LinearRule, Rule, View


def refine_ensemble(
    documents: ArrayLike | VectorSource,
    anchor_sets: Sequence[ArrayLike],
    *,
    distance: str = "cosine",
    known: ArrayLike | None = None,
    n_jobs: int | None = None,
    on_set: Callable[[int], None] | None = None,
    **settings: Any,
) -> Refinement:
    """Refine every set of anchors and predict by the mean of their scores.

    Parameters
    ----------
    documents
        As in `refine`.
    anchor_sets
        Anchors of each set, (n_labels, n_dims); a sequence that creates them on demand keeps few
        in memory.
    distance, known, n_jobs
        As in `refine`; any distance but ``jensen-shannon``.
    on_set
        Called after every set with the number of all sets.
    **settings
        Further arguments of `refine_many`.

    Returns
    -------
    Refinement
        `unrefined` is the prediction of the mean of the unrefined sets; the trace has the mean
        objective and the sum of the changes over the sets.
    """
    if not DISTANCES[distance].linear:
        raise ArrayError("an ensemble needs vectors; use cosine, l2 or dot.")
    if not len(anchor_sets):
        raise ArrayError("an ensemble needs at least one set of anchors; got none.")
    rule: LinearRule | None = None
    initial_rule: LinearRule | None = None
    centroids: Float | float = 0.0
    traces: list[tuple[Pass, ...]] = []
    shares, converged, collapsed = [], True, False
    for member in refine_many(
        documents,
        _equal_sets(anchor_sets),
        distance=distance,
        known=known,
        n_jobs=n_jobs,
        **settings,
    ):
        rule, initial_rule = _sum(rule, member.rule), _sum(initial_rule, member.initial_rule)
        centroids = centroids + member.centroids
        traces.append(member.trace)
        shares.append(member.share)
        converged &= member.converged
        collapsed |= member.collapsed
        if on_set is not None:
            on_set(len(anchor_sets))
    rule, initial_rule = (_divided(each, len(traces)) for each in (rule, initial_rule))
    (predictions, unrefined), scores = score_all(documents, [rule, initial_rule], n_jobs=n_jobs)
    if known is not None:
        labels = np.asarray(known)
        unrefined = np.where(labels == EXCLUDED, -1, unrefined)
        predictions = np.where(labels >= 0, labels, predictions)
        predictions = np.where(labels == EXCLUDED, -1, predictions)
    trace = _summarised(traces)
    # The method depends on the numbers of documents, labels and dimensions: it is that of any member.
    return replace(
        member,
        predictions=predictions.astype(np.intp),
        scores=scores,
        unrefined=unrefined.astype(np.intp),
        rule=rule,
        initial_rule=initial_rule,
        centroids=np.asarray(centroids) / len(traces),
        trace=trace,
        best_iteration=len(trace) - 1,
        converged=converged,
        share=float(np.mean(shares)),
        collapsed=collapsed,
        n_sets=len(traces),
    )


def _equal_sets(sets: Sequence[ArrayLike]) -> Iterator[NDArray[Any]]:
    """The sets one by one, refusing one with another number of labels than the first."""
    n_labels = None
    for number, each in enumerate(sets):
        anchors = np.asarray(each)
        n_labels = n_labels or len(anchors)
        if len(anchors) != n_labels:
            raise ArrayError(
                f"anchor_sets must have equally many labels; the first has {n_labels}, "
                f"number {number} has {len(anchors)}."
            )
        yield anchors


def _summarised(traces: Sequence[tuple[Pass, ...]]) -> tuple[Pass, ...]:
    """One entry per pass, over all sets; one that has finished has its last objective."""
    passes = []
    for number in range(max(map(len, traces))):
        active = [trace[number] for trace in traces if number < len(trace)]
        objective = np.mean([trace[min(number, len(trace) - 1)].objective for trace in traces])
        changed = sum(each.changed for each in active)
        scored = sum(each.scored for each in active)
        passes.append(Pass(number, "ensemble", changed, float(objective), scored))
    return tuple(passes)


def _sum(total: LinearRule | None, rule: Rule) -> LinearRule:
    """The sum of two rules without word weights.

    Views of the same transformation are merged, so the sum is no larger than one rule when all were
    fitted on the same documents.
    """
    assert isinstance(rule, LinearRule)
    total = total or LinearRule((), np.zeros(rule.n_labels))
    views = {_transformation(view): view for view in total.views}
    for view in rule.views:
        before = views.get(_transformation(view))
        weights = view.weights if before is None else before.weights + view.weights
        views[_transformation(view)] = replace(view, weights=weights)
    return LinearRule(tuple(views.values()), total.offsets + rule.offsets, rule.subtract_square)


def _transformation(view: View) -> tuple[bool, bytes]:
    return view.normalize, b"" if view.centre is None else view.centre.tobytes()


def _divided(rule: LinearRule | None, count: int) -> LinearRule:
    assert rule is not None
    views = tuple(replace(view, weights=view.weights / count) for view in rule.views)
    return replace(rule, views=views, offsets=rule.offsets / count)
