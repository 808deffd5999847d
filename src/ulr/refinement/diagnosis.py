"""Judges whether a refinement can be trusted, from how its labels fit their anchors.

No labelled document is used. docs/refinement.md has how often the warnings are right.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ulr.refinement.blocks import UNKNOWN, Block, Blocks
from ulr.refinement.centred import centre_of
from ulr.refinement.distances import unit_rows
from ulr.refinement.products import Float, Single, scores_by_label
from ulr.refinement.reliability import NearestInHalves
from ulr.refinement.result import Problem, Refinement
from ulr.refinement.rule import inverse_lengths

_SAMPLE, _SAMPLE_PER_LABEL = 2_048, 64
_LEAST_FIT = 0.7
_LEAST_RELIABILITY = 0.1
_LEAST_KEPT = 0.5
_SIZE_FACTOR = 3.0
_FEWEST_PER_LABEL = 10
_FEWEST_FITTED = 20
_LEAST_EXPECTED = 0.55
_LEAST_OVERTURNED = 0.05  # share of the documents
_MOST_NAMED = 5


@dataclass(frozen=True)
class LabelDiagnosis:
    """How one label came out of the refinement.

    Attributes
    ----------
    label
        Its name, or its number.
    before, after
        Documents with this label before and after the refinement.
    kept
        Share of the documents before that still have it; None without any.
    fit
        How far its documents are above the others in similarity to its name, in standard
        deviations; None without any documents.
    closest
        Another label whose name its documents are closer to than to its own; None without one.
    overturned
        Whether it may no longer mean what its name says: most of its documents left it while its
        size changed by a factor of three or more, or they are closest to another label's name.
    """

    label: str
    before: int
    after: int
    kept: float | None
    fit: float | None
    closest: str | None
    overturned: bool


@dataclass(frozen=True)
class Diagnosis:
    """Whether a refinement can be trusted.

    Attributes
    ----------
    documents, moved
        Documents with a label, and those that the refinement gave another one.
    fitted
        Documents that the labels were refined on.
    fit
        How well refined labels match their names, relative to the nearest names: about 1 where
        refinement keeps their meaning.
    reliability
        Agreement of the nearest labels in two halves of the dimensions, as Cohen's kappa: 0 where
        the names say nothing about the documents. None where it is not defined.
    labels
        One entry per label.
    expected_accuracy
        Mean confidence in the labels; None before calibration.
    notes
        Further warnings, about the texts and the names of the labels.
    refined
        Whether there was a refinement at all.
    """

    documents: int
    moved: int
    fitted: int
    fit: float
    reliability: float | None
    labels: tuple[LabelDiagnosis, ...]
    expected_accuracy: float | None = None
    notes: tuple[str, ...] = ()
    refined: bool = True

    @property
    def trusted(self) -> bool:
        """Whether nothing speaks against the refinement."""
        return not self._doubts()

    @property
    def warnings(self) -> tuple[str, ...]:
        """What speaks against the result, one sentence each, with what to do."""
        return (*self._doubts(), *self._cautions(), *self.notes)

    def named(self, names: Sequence[str]) -> Diagnosis:
        """The diagnosis with names of the labels in place of their numbers."""
        labels = tuple(
            replace(
                each,
                label=names[int(each.label)],
                closest=None if each.closest is None else names[int(each.closest)],
            )
            for each in self.labels
        )
        return replace(self, labels=labels)

    def as_dict(self) -> dict[str, Any]:
        """The diagnosis as plain values."""
        return asdict(self) | {"trusted": self.trusted, "warnings": list(self.warnings)}

    def _doubts(self) -> list[str]:
        """Reasons not to trust the refinement."""
        found = []
        if self.reliability is not None and self.reliability < _LEAST_RELIABILITY:
            found.append(
                "The names of the labels say little about these documents, so many labels may be "
                "wrong. Use names that say what the documents are about, another encoder (see 'ulr "
                "encoders'), or give some examples."
            )
        if self.refined and self.fit < _LEAST_FIT:
            found.append(
                f"The documents group along other lines than the labels: refined labels match their "
                f"names only {self.fit:.0%} as well as before. Compare with --method none, or use "
                "names that say what the documents are about."
            )
        return found + self._overturned(few=False)

    def _overturned(self, few: bool) -> list[str]:
        """The labels that were overturned, if they are those of few documents, or of many."""
        overturned = [each for each in self.labels if each.overturned and self.refined]
        concerned = max(sum(each.before for each in overturned), sum(e.after for e in overturned))
        if not overturned or few != (concerned < _LEAST_OVERTURNED * self.documents):
            return []
        return [
            f"{_listed([each.label for each in overturned])} may no longer mean what the name says; "
            "look at the documents of these labels, give them other words, or compare phrasings with "
            "'ulr audit'."
        ]

    def _cautions(self) -> list[str]:
        """What makes the result less certain."""
        found = self._overturned(few=True)
        expected = self.expected_accuracy
        if expected is not None and expected < _LEAST_EXPECTED:
            found.append(
                f"Only about {expected:.0%} of the labels are expected to be right; the names may not "
                "fit the documents, or another encoder may be needed (see 'ulr encoders')."
            )
        if self.documents < _FEWEST_PER_LABEL * len(self.labels):
            found.append(
                f"There are only {self.documents} documents for {len(self.labels)} labels; with "
                f"{_FEWEST_PER_LABEL} or more per label, refinement is more reliable."
            )
        if self.fitted < self.documents:
            share = self.fitted / self.documents
            rare = [each.label for each in self.labels if each.after * share < _FEWEST_FITTED]
            if rare:
                found.append(
                    f"{_listed(rare)} has fewer than {_FEWEST_FITTED} documents in the sample that "
                    "the labels were refined on; use a larger --fit-sample."
                )
        return found


def _listed(names: list[str]) -> str:
    shown = ", ".join(repr(name) for name in names[:_MOST_NAMED])
    more = len(names) - _MOST_NAMED
    return shown + (f" and {more} more" if more > 0 else "")


def can_diagnose(problem: Problem) -> bool:
    """Whether there are similarities of documents to the names of the labels."""
    if problem.distance.linear:
        return len(problem.anchors) > 0
    return np.array_equal(problem.anchors, np.eye(problem.n_labels))


def _similarities(documents: Single, lengths: Float, problem: Problem) -> Single:
    """(n_labels, n) cosines of documents with the names, or the probabilities that they are."""
    if not problem.distance.linear:
        return np.ascontiguousarray(documents.T)
    anchors = unit_rows(problem.anchors[: problem.n_labels]).astype(np.float32)
    return scores_by_label(anchors, documents) * inverse_lengths(lengths)


def _reliability(documents: Single, lengths: Float, problem: Problem) -> float | None:
    """Split-half reliability of the names on some documents."""
    if not problem.distance.linear or len(documents) == 0:
        return None
    mean = (documents * inverse_lengths(lengths)[:, None]).mean(axis=0, dtype=np.float64)
    centre = centre_of(mean)
    anchors = unit_rows(unit_rows(problem.anchors[: problem.n_labels]) - centre)
    step = NearestInHalves.of(anchors, centre)
    if step is None:
        return None
    known = np.full(len(documents), UNKNOWN, dtype=np.int32)
    return step(Block(0, documents, known, lengths), {})[1].kappa


def diagnose(blocks: Blocks, problem: Problem, refinement: Refinement) -> Diagnosis:
    """Diagnose a refinement."""
    predictions, unrefined = refinement.predictions, refinement.unrefined
    n_labels = problem.n_labels
    labelled = np.flatnonzero((predictions >= 0) & (unrefined >= 0))
    after, before = predictions[labelled], unrefined[labelled]
    most = max(_SAMPLE, _SAMPLE_PER_LABEL * n_labels)
    sample = np.sort(np.random.default_rng(problem.random_state).permutation(len(labelled))[:most])
    documents, lengths = blocks.gather(labelled[sample]), blocks.lengths[labelled[sample]]
    cosines = _similarities(documents, lengths, problem)
    some = slice(None, None, max(1, len(sample) // _SAMPLE))
    similarity = _standardised(cosines)
    sums = [_sums_by_label(similarity, labels[sample]) for labels in (before, after)]
    counts = [np.bincount(labels[sample], minlength=n_labels) for labels in (before, after)]
    fits = [contrasts(*each) for each in zip(sums, counts, strict=True)]
    closest = np.where(counts[1] > 0, sums[1].argmax(axis=0), np.arange(n_labels))
    kept = _kept(before, after, n_labels)
    sizes = [np.bincount(labels, minlength=n_labels) for labels in (before, after)]
    labels = tuple(
        LabelDiagnosis(
            label=str(label),
            before=int(sizes[0][label]),
            after=int(sizes[1][label]),
            kept=None if np.isnan(kept[label]) else float(kept[label]),
            fit=None if np.isnan(fits[1][label]) else float(fits[1][label]),
            closest=None if closest[label] == label else str(closest[label]),
            overturned=_overturned(kept[label], sizes[0][label], sizes[1][label])
            or bool(closest[label] != label),
        )
        for label in range(n_labels)
    )
    return Diagnosis(
        documents=len(labelled),
        moved=int(np.count_nonzero(after != before)),
        fitted=min(refinement.n_fitted, len(labelled)),
        fit=contrast(fits[1], counts[1]) / max(contrast(fits[0], counts[0]), 1e-9),
        reliability=_reliability(documents[some], lengths[some], problem),
        labels=labels,
        refined=refinement.n_iter > 1,
    )


def _kept(before: NDArray[np.integer], after: NDArray[np.integer], n_labels: int) -> Float:
    """(n_labels,) share of the documents of a label that still have it; NaN without any."""
    stayed = np.bincount(before[before == after], minlength=n_labels)
    with np.errstate(invalid="ignore", divide="ignore"):
        return stayed / np.bincount(before, minlength=n_labels)


def _overturned(kept: float, before: int, after: int) -> bool:
    """Whether most documents left a label while its size changed several times."""
    factor = max(after, 1) / max(before, 1)
    return bool(kept < _LEAST_KEPT and not 1 / _SIZE_FACTOR < factor < _SIZE_FACTOR)


def _standardised(cosines: Single) -> Float:
    """(n_labels, n) cosines with the names above the mean of all names, in standard deviations.

    They are standardised over the documents, so that a name that is close to every document is not
    preferred.
    """
    similarity = (cosines - cosines.mean(axis=0)).astype(np.float64)
    similarity -= similarity.mean(axis=1, keepdims=True)
    return similarity / (similarity.std(axis=1, keepdims=True) + 1e-9)


def _sums_by_label(similarity: Float, labels: NDArray[np.integer]) -> Float:
    """(n_names, n_labels) sum of the similarities of each label's documents to each name."""
    n_labels = len(similarity)
    return np.stack([np.bincount(labels, row, minlength=n_labels) for row in similarity])


def contrasts(sums: Float, counts: NDArray[np.integer]) -> Float:
    """(n_labels,) how far documents of a label are above the others in similarity to its name.

    In standard deviations; NaN for labels without documents, or with all of them.

    Parameters
    ----------
    sums
        As of `_sums_by_label`, of standardised similarities.
    counts
        (n_labels,) number of the documents.
    """
    others = counts.sum() - counts
    with np.errstate(invalid="ignore", divide="ignore"):
        found = np.diag(sums) / counts + np.diag(sums) / others
    return np.where((counts > 0) & (others > 0), found, np.nan)


def contrast(of_labels: Float, counts: NDArray[np.integer]) -> float:
    """Mean contrast of the better half of the labels that are not tiny.

    The better half, since a few names may be chosen badly.
    """
    large = counts > 0.1 * counts.sum() / len(counts)
    found = np.sort(of_labels[large & ~np.isnan(of_labels)])[::-1]
    better = found[: (len(found) + 1) // 2]
    return float(better.mean()) if len(better) else 0.0
