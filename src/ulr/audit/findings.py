"""What an audit finds: which phrasings agree, which phrase stands apart, which set to use."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ulr.audit.agreement import Agreement, count_agreement
from ulr.audit.sweep import Sweep
from ulr.labels import LabelSet
from ulr.phrasings import Phrasings

_SHOWN_PAIRS = 5
_FLIPPING = 10
# A label attracts almost nothing below a tenth of an equal share of the documents, and almost
# everything above half of them (nine tenths where there are two labels).
_ALMOST_NOTHING = 0.1
_ALMOST_EVERYTHING, _OF_EQUAL_SHARE = 0.5, 2.0


@dataclass(frozen=True)
class PhraseFinding:
    """A phrase: how often the sets that have it agree with another set, before and after."""

    phrase: str
    sets: int
    agreement_before: float
    agreement_after: float
    share_of_disagreement: float


@dataclass(frozen=True)
class LabelFinding:
    """A label: how stable it is, what its phrasing does, and how much it attracts.

    `agreement_…`: when a set gives a document this label, how often another set does too; None
    where no set ever gives it. `share_of_disagreement`: of the disagreement after refinement, how
    much goes with the phrasing of this label alone. `documents_…`: the share of the documents that
    it gets, in the mean over the sets; `least` and `most` over the sets, after refinement.
    """

    label: str
    agreement_before: float | None
    agreement_after: float | None
    share_of_disagreement: float
    documents_before: float
    documents_after: float
    least: float
    most: float
    attracts: str | None
    phrases: tuple[PhraseFinding, ...]


@dataclass(frozen=True)
class Competition:
    """Two labels that sets disagree about: their share of all disagreement after refinement."""

    first: str
    second: str
    share: float


@dataclass(frozen=True)
class SetFinding:
    """A set of names and how often it agrees with another set."""

    phrases: tuple[str, ...]
    agreement_before: float
    agreement_after: float
    accuracy_before: float | None = None
    accuracy_after: float | None = None


@dataclass(frozen=True)
class Recommendation:
    """A set to use, and why."""

    number: int
    phrases: tuple[str, ...]
    reason: str


@dataclass(frozen=True)
class AgainstTruth:
    """The accuracy of the sets, where the truth is known; it chooses nothing.

    `best` and `worst` are numbers of sets, by accuracy after refinement; `majority` is the label
    that most sets give.
    """

    documents: int
    mean_before: float
    mean_after: float
    improved: int
    best: int
    worst: int
    recommended_before: float
    recommended_after: float
    majority_before: float
    majority_after: float


@dataclass(frozen=True, eq=False)
class Audit:
    """Everything that the sets of names tell about a task.

    Attributes
    ----------
    agreement_before, agreement_after
        How often two sets agree on a document.
    unanimous_before, unanimous_after
        Share of the documents that all sets agree on.
    flipping
        Rows, from 0, of the documents that sets agree on least, the worst first.
    shares
        (n_flipping, n_labels) how many sets give each of them each label, as shares.
    """

    agreement_before: float
    agreement_after: float
    unanimous_before: float
    unanimous_after: float
    labels: tuple[LabelFinding, ...]
    competing: tuple[Competition, ...]
    sets: tuple[SetFinding, ...]
    recommendation: Recommendation
    flipping: NDArray[np.intp]
    shares: NDArray[np.float64]
    majority_before: NDArray[np.intp]
    majority_after: NDArray[np.intp]


def audit(sweep: Sweep, phrasings: Phrasings, label_set: LabelSet) -> Audit:
    """Look at how far the sets of a sweep agree.

    Parameters
    ----------
    sweep
        What they predict.
    phrasings
        What they are worded.
    label_set
        The labels, with every phrase of the phrasings.
    """
    columns = list(zip(*phrasings, strict=True))
    phrases = [(i, phrase) for i, label in enumerate(label_set) for phrase in label.phrases]
    has_phrase = np.array([[each == phrase for each in columns[i]] for i, phrase in phrases])
    before, after = (count_agreement(sweep, phase, has_phrase) for phase in ("before", "after"))
    flipping = np.argsort(after.of_documents, kind="stable")[:_FLIPPING]
    flipping = flipping[after.of_documents[flipping] < 1.0]
    return Audit(
        agreement_before=before.mean,
        agreement_after=after.mean,
        unanimous_before=float((before.of_documents >= 1.0).mean()),
        unanimous_after=float((after.of_documents >= 1.0).mean()),
        labels=_labels(label_set, phrases, has_phrase, before, after),
        competing=_competing(label_set, after),
        sets=tuple(
            SetFinding(each, float(b), float(a))
            for each, b, a in zip(phrasings, before.of_sets, after.of_sets, strict=True)
        ),
        recommendation=_recommend(phrasings, after),
        flipping=flipping,
        shares=_shares(sweep, flipping),
        majority_before=before.consensus,
        majority_after=after.consensus,
    )


def _labels(
    label_set: LabelSet,
    phrases: list[tuple[int, str]],
    has_phrase: NDArray[np.bool_],
    before: Agreement,
    after: Agreement,
) -> tuple[LabelFinding, ...]:
    found = []
    for i, label in enumerate(label_set):
        own = [p for p, (owner, _) in enumerate(phrases) if owner == i]
        sizes = after.sizes[:, i]
        found.append(
            LabelFinding(
                label=label.name,
                agreement_before=_number(before.of_labels[i]),
                agreement_after=_number(after.of_labels[i]),
                share_of_disagreement=float(after.explained[own].sum()) if len(own) > 1 else 0.0,
                documents_before=float(before.sizes[:, i].mean()),
                documents_after=float(sizes.mean()),
                least=float(sizes.min()),
                most=float(sizes.max()),
                attracts=_attracts(float(sizes.mean()), len(label_set)),
                phrases=tuple(
                    PhraseFinding(
                        phrases[p][1],
                        int(has_phrase[p].sum()),
                        float(before.of_phrases[p]),
                        float(after.of_phrases[p]),
                        float(after.explained[p]) if len(own) > 1 else 0.0,
                    )
                    for p in own
                ),
            )
        )
    return tuple(found)


def _number(value: np.float64) -> float | None:
    return None if np.isnan(value) else float(value)


def _attracts(share: float, n_labels: int) -> str | None:
    if share < _ALMOST_NOTHING / n_labels:
        return "almost nothing"
    if share > max(_ALMOST_EVERYTHING, min(_OF_EQUAL_SHARE / n_labels, 0.9)):
        return "almost everything"
    return None


def _competing(label_set: LabelSet, after: Agreement) -> tuple[Competition, ...]:
    names = label_set.names
    pairs = sorted(
        (
            (float(after.between[i, j]), i, j)
            for i in range(len(names))
            for j in range(i + 1, len(names))
            if after.between[i, j] > 0
        ),
        key=lambda pair: (-pair[0], pair[1:]),
    )
    return tuple(Competition(names[i], names[j], share) for share, i, j in pairs[:_SHOWN_PAIRS])


def _recommend(phrasings: Phrasings, after: Agreement) -> Recommendation:
    """The set in the middle of all: the one that agrees most with the others."""
    number = int(after.of_sets.argmax())
    return Recommendation(
        number + 1,
        phrasings.sets[number],
        f"refined, it agrees with the other sets on {after.of_sets[number]:.1%} of the documents, "
        f"more than any other; the mean over the sets is {after.of_sets.mean():.1%}",
    )


def _shares(sweep: Sweep, rows: NDArray[np.intp]) -> NDArray[np.float64]:
    """How many sets give some documents each label, after refinement, as shares."""
    shares = np.zeros((len(rows), sweep.n_labels))
    for block, labels in sweep.blocks("after"):
        for i in np.flatnonzero((rows >= block.start) & (rows < block.stop)):
            given = np.bincount(labels[:, rows[i] - block.start], minlength=sweep.n_labels)
            shares[i] = given / sweep.n_sets
    return shares


def compare_with_truth(
    found: Audit, sweep: Sweep, truth: NDArray[np.intp]
) -> tuple[AgainstTruth, tuple[SetFinding, ...]]:
    """How good each set is, where the truth is known, and what that comes to.

    Parameters
    ----------
    found
        The audit, which has been made without it.
    sweep
        What the sets predict.
    truth
        (n_documents,) the true label, -1 where it is not known; known for some.
    """
    has = truth >= 0
    right = {phase: np.zeros(sweep.n_sets) for phase in ("before", "after")}
    for phase, counts in right.items():
        for rows, labels in sweep.blocks(phase):
            counts += ((labels == truth[rows]) & has[rows]).sum(axis=1)
        counts /= has.sum()
    before, after = right["before"], right["after"]
    chosen = found.recommendation.number - 1
    sets = tuple(
        SetFinding(each.phrases, each.agreement_before, each.agreement_after, float(b), float(a))
        for each, b, a in zip(found.sets, before, after, strict=True)
    )
    return (
        AgainstTruth(
            documents=int(has.sum()),
            mean_before=float(before.mean()),
            mean_after=float(after.mean()),
            improved=int((after > before).sum()),
            best=int(after.argmax()) + 1,
            worst=int(after.argmin()) + 1,
            recommended_before=float(before[chosen]),
            recommended_after=float(after[chosen]),
            majority_before=float((found.majority_before == truth)[has].mean()),
            majority_after=float((found.majority_after == truth)[has].mean()),
        ),
        sets,
    )
