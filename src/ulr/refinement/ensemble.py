"""Ensembles: several sets of anchors for the same labels, refined separately, scores averaged.

Scores are linear for every vector distance, so the mean over any number of sets is one rule, no
larger than that of a single set. Word counts are not used.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ulr.errors import ArrayError
from ulr.refinement import validation
from ulr.refinement.api import refine_many, score_all
from ulr.refinement.blocks import EXCLUDED, VectorSource
from ulr.refinement.distances import DISTANCES
from ulr.refinement.products import Float
from ulr.refinement.result import Pass, Refinement
from ulr.refinement.rule import LinearRule, View, rule_of_centroids


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
        objective and the sum of the changes over the sets that are averaged.

    Notes
    -----
    Where the method fell back to another one for some of the sets, only those with the method of
    the majority are averaged: scores of different methods are not comparable.
    """
    if not DISTANCES[distance].linear:
        raise ArrayError("an ensemble needs vectors; use cosine, l2 or dot.")
    if not len(anchor_sets):
        raise ArrayError("an ensemble needs at least one set of anchors; got none.")
    initial = RuleMean()
    groups: dict[str, _Group] = {}
    checked = _EqualSets(anchor_sets)
    results = refine_many(
        documents, checked, distance=distance, known=known, n_jobs=n_jobs, **settings
    )
    for member in results:
        assert isinstance(member.rule, LinearRule)
        initial.add(_rule_of_anchors(checked.last, distance))
        groups.setdefault(member.method, _Group(member)).add(member)
        if on_set is not None:
            on_set(len(anchor_sets))
    group = max(groups.values(), key=lambda each: each.count)
    rule = group.rules.rule()
    initial_rule = initial.rule()
    (predictions, unrefined), scores = score_all(documents, [rule, initial_rule], n_jobs=n_jobs)
    if known is not None:
        labels = np.asarray(known)
        unrefined = np.where(labels == EXCLUDED, -1, unrefined)
        predictions = np.where(labels >= 0, labels, predictions)
        predictions = np.where(labels == EXCLUDED, -1, predictions)
    return replace(
        group.first,
        predictions=predictions.astype(np.intp),
        scores=scores,
        unrefined=unrefined.astype(np.intp),
        rule=rule,
        initial_rule=initial_rule,
        centroids=np.asarray(group.centroids) / group.count,
        trace=(trace := group.trace()),
        best_iteration=len(trace) - 1,
        converged=group.converged,
        n_sets=len(anchor_sets),
    )


def _rule_of_anchors(anchors: ArrayLike, distance: str) -> LinearRule:
    metric = DISTANCES[distance]
    vectors = validation.anchors("anchors", anchors, np.shape(anchors)[1], metric)
    return rule_of_centroids(vectors, metric)


class _EqualSets(Sequence[Any]):
    """The sets one by one, refusing one with another number of labels than the first."""

    def __init__(self, sets: Sequence[ArrayLike]) -> None:
        self._sets = sets
        self._n_labels = len(np.asarray(sets[0]))
        self.last: Any = None

    def __len__(self) -> int:
        return len(self._sets)

    def __getitem__(self, index: Any) -> Any:
        self.last = np.asarray(self._sets[index])
        if len(self.last) != self._n_labels:
            raise ArrayError(
                f"anchor_sets must have equally many labels; the first has {self._n_labels}, "
                f"number {index} has {len(self.last)}."
            )
        return self.last


@dataclass
class _Group:
    """Refinements of sets by the same method, added up."""

    first: Refinement
    converged: bool = True
    rules: RuleMean = field(default_factory=lambda: RuleMean())
    centroids: Float | float = 0.0
    traces: list[tuple[Pass, ...]] = field(default_factory=list)

    @property
    def count(self) -> int:
        """Number of sets."""
        return len(self.traces)

    def add(self, member: Refinement) -> None:
        """Add one set."""
        assert isinstance(member.rule, LinearRule)
        self.rules.add(member.rule)
        self.centroids = self.centroids + member.centroids
        self.converged &= member.converged
        self.traces.append(member.trace)

    def trace(self) -> tuple[Pass, ...]:
        """One entry per pass, over all sets; one that has finished has its last objective."""
        passes = []
        for number in range(max(map(len, self.traces))):
            active = [trace[number] for trace in self.traces if number < len(trace)]
            objectives = [trace[min(number, len(trace) - 1)].objective for trace in self.traces]
            changed, scored = (
                sum(getattr(each, n) for each in active) for n in ("changed", "scored")
            )
            passes.append(Pass(number, "ensemble", changed, float(np.mean(objectives)), scored))
        return tuple(passes)


class RuleMean:
    """Adds up rules, and gives the rule whose scores are the means of theirs.

    Views of the same transformation are merged, so the mean is no larger than one rule when all
    were fitted on the same documents.
    """

    def __init__(self) -> None:
        self._views: dict[tuple[bool, bytes], View] = {}
        self._offsets: Float | float = 0.0
        self._subtract_square = False
        self._count = 0

    def add(self, rule: LinearRule) -> None:
        """Add a rule without word weights."""
        for view in rule.views:
            key = view.normalize, b"" if view.centre is None else view.centre.tobytes()
            before = self._views.get(key)
            weights = view.weights if before is None else before.weights + view.weights
            self._views[key] = replace(view, weights=weights)
        self._offsets = self._offsets + rule.offsets
        self._subtract_square = rule.subtract_square
        self._count += 1

    def rule(self) -> LinearRule:
        """The mean of the rules so far."""
        views = tuple(
            replace(view, weights=view.weights / self._count) for view in self._views.values()
        )
        offsets = np.asarray(self._offsets) / self._count
        return LinearRule(views, offsets, self._subtract_square)
