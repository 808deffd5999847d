"""Several wordings of the same labels, refined each and decided together.

Every set of labels is refined by itself and the scores of the sets are summed. Scores are linear in
the document for every distance but Jensen-Shannon, so the sum over any number of sets is one rule,
no larger than that of a single set, and serves documents old and new.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ulr.errors import ArrayError
from ulr.refine.centred import Rule
from ulr.refine.distances import Float, unit_rows
from ulr.refine.door import refine_many
from ulr.refine.points import Vectors
from ulr.refine.result import Refinement

_SETS_AT_A_TIME = 256


def refine_ensemble(
    documents: ArrayLike | Vectors,
    label_sets: Sequence[ArrayLike],
    *,
    distance: str = "cosine",
    known: ArrayLike | None = None,
    threads: int | None = None,
    on_set: Callable[[int], None] | None = None,
    **settings: Any,
) -> Refinement:
    """Refine every set of labels, and let the sum of their scores decide.

    Parameters
    ----------
    documents
        As in `refine`.
    label_sets
        Label vectors of each set, (n_labels, n_dims); a sequence that makes them when asked for
        keeps few of them in memory.
    distance, known, threads
        As in `refine`; any distance but ``jensen-shannon``.
    on_set
        Called after every set with the number of all.
    settings
        Further ones, as for `refine_many`.

    Returns
    -------
    Refinement
        Scores are means over the sets; with ``l2``, without the square of the document's length,
        which is the same for all labels. `unrefined` is what the sets say together before any
        refinement. Objectives are means over the sets, a set that has settled counting with its
        last; changes are sums.

    Notes
    -----
    A set that ``mixture`` gave back to the paper's refinement, because its names do not explain the
    clusters, has scores of another kind and no say, unless that is so for all sets.
    """
    if distance == "jensen-shannon":
        raise ArrayError("an ensemble needs vectors; use cosine, l2 or dot.")
    if not len(label_sets):
        raise ArrayError("an ensemble needs at least one set of labels; got none.")
    before, after, told = _Sum(), _Sum(), _Told()
    member, n_labels = None, 0
    for start in range(0, len(label_sets), _SETS_AT_A_TIME):
        some = [np.asarray(each) for each in label_sets[start : start + _SETS_AT_A_TIME]]
        members = refine_many(
            documents, some, distance=distance, known=known, threads=threads, **settings
        )
        for number, (labels, member) in enumerate(zip(some, members, strict=True), start):
            n_labels = n_labels or len(labels)
            if len(labels) != n_labels:
                raise ArrayError(
                    f"label_sets must have equally many labels; the first has {n_labels}, number "
                    f"{number} has {len(labels)}."
                )
            before.add(_rule(labels.astype(np.float64), distance))
            after.add(member.rule or _rule(member.centroids, distance), member.centroids)
            told.add(member)
            if on_set is not None:
                on_set(len(label_sets))
    assert member is not None
    rule = after.mean()
    predictions, scores = rule.decide(documents, threads)
    unrefined, _ = before.mean().decide(documents, threads)
    if known is not None:
        labelled = np.asarray(known)
        predictions = np.where(labelled >= 0, labelled, predictions).astype(np.intp)
    return Refinement(
        predictions=predictions,
        scores=scores,
        centroids=after.centroids,
        unrefined=unrefined,
        objective=told.objective / told.n_sets,
        changed=told.changed,
        kept=len(told.objective) - 1,
        converged=told.converged,
        n_zero_documents=member.n_zero_documents,
        method=member.method,
        distance=distance,
        rule=rule,
        n_sets=told.n_sets,
    )


def _rule(centroids: Float, distance: str) -> Rule:
    """The scores of some centroids as a rule."""
    nothing = np.zeros(len(centroids))
    if distance == "cosine":
        return Rule(np.zeros(centroids.shape[1]), unit_rows(centroids), nothing)
    if distance == "dot":
        return Rule(None, centroids, nothing)
    return Rule(None, 2.0 * centroids, -np.einsum("ij,ij->i", centroids, centroids))


class _Sum:
    """Rules added up, those of mixtures, which have a centre of their own, apart."""

    def __init__(self) -> None:
        self._sums: dict[bool, tuple[Float | None, Float, Float, Float]] = {}
        self._counts: dict[bool, int] = {}

    def add(self, rule: Rule, centroids: Float | None = None) -> None:
        """Add a rule, and the centroids it comes with."""
        of_mixture = rule.centre is not None and bool(rule.centre.any())
        centroids = rule.slopes if centroids is None else centroids
        if of_mixture in self._sums:
            _, slopes, offsets, others = self._sums[of_mixture]
            new = slopes + rule.slopes, offsets + rule.offsets, others + centroids
        else:
            new = rule.slopes, rule.offsets, centroids
        self._sums[of_mixture] = rule.centre, *new
        self._counts[of_mixture] = self._counts.get(of_mixture, 0) + 1

    def mean(self) -> Rule:
        """The mean rule: that of the mixtures where there are any."""
        kind = max(self._sums)
        centre, slopes, offsets, _ = self._sums[kind]
        return Rule(centre, slopes / self._counts[kind], offsets / self._counts[kind])

    @property
    def centroids(self) -> Float:
        """The mean of the centroids of the rules that count."""
        kind = max(self._sums)
        return self._sums[kind][3] / self._counts[kind]


@dataclass
class _Told:
    """What the refinements of the sets tell, added up pass by pass."""

    n_sets: int = 0
    converged: bool = True
    objective: Float = field(default_factory=lambda: np.zeros(0))
    changed: np.ndarray[Any, Any] = field(default_factory=lambda: np.zeros(0, dtype=np.intp))
    _settled: float = 0.0  # sum of the last objectives so far

    def add(self, member: Refinement) -> None:
        """Take in one set."""
        length = max(len(self.objective), member.n_iterations)
        more = length - len(self.objective)
        objective = np.append(self.objective, np.full(more, self._settled))
        self.changed = np.append(self.changed, np.zeros(more, dtype=np.intp))
        last = float(member.objective[-1])
        objective[: member.n_iterations] += member.objective
        objective[member.n_iterations :] += last
        self.objective = objective
        self.changed[: member.n_iterations] += member.changed
        self._settled += last
        self.converged &= member.converged
        self.n_sets += 1
