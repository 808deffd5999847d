"""Judges whether a refinement can be trusted, from how its labels fit their anchors.

No labelled document is used. docs/refinement.md has how often the warnings are right.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ulr.refinement.blocks import EXCLUDED, UNKNOWN, Block, Blocks
from ulr.refinement.centred import centre_of
from ulr.refinement.distances import unit_rows
from ulr.refinement.products import Float, Labels, Single, scores_by_label
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
_FEWEST_COMPARED = 20  # documents; the reliability of fewer is chance
_LEAST_EXPECTED = 0.55
_LEAST_OVERTURNED = 0.05  # share of the documents
_MOST_NAMED = 5


@dataclass(frozen=True)
class LabelDiagnosis:
    """How one label came out of the refinement.

    It is overturned if it may no longer mean what its name says: most of its documents left it, or it
    had none, while its size changed by a factor of three or more, or its documents are closest to
    another label's name.
    """

    label: str  # its name, or its number
    before: int  # documents with this label before the refinement
    after: int  # and after it
    kept: float | None  # share of the documents before that still have it; None without any
    fit: float | None  # how far its documents match its name above others, see `contrasts`
    closest: str | None  # another label whose name its documents are closer to; None without one
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
    refined, collapsed
        How far the labels were refined, and whether clusters collapsed; `share` and `collapsed` of
        `Refinement`.
    """

    documents: int
    moved: int
    fitted: int
    fit: float
    reliability: float | None
    labels: tuple[LabelDiagnosis, ...]
    expected_accuracy: float | None = None
    notes: tuple[str, ...] = ()
    refined: float = 1.0
    collapsed: bool = False

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
        if self.collapsed:
            found.append(
                "Refinement would have moved most documents to a few labels, so most keep the label of "
                "the nearest name. More specific names for the largest labels may help."
            )
        expected = self.expected_accuracy
        if expected is not None and expected < _LEAST_EXPECTED:
            found.append(
                f"Only about {expected:.0%} of the labels are expected to be right; the names may not "
                "fit the documents, or another encoder may be needed (see 'ulr encoders')."
            )
        if self.documents < _FEWEST_PER_LABEL * len(self.labels):
            found.append(
                f"{self.documents:,} is a small number of documents for {len(self.labels)} labels; with "
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


def _similarities(documents: Single, lengths: Float, problem: Problem) -> Single:
    """(n_labels, n) cosines of documents with the names, or the probabilities that they are."""
    if not problem.distance.linear:
        return np.ascontiguousarray(documents.T)
    anchors = unit_rows(problem.anchors[: problem.n_labels]).astype(np.float32)
    return scores_by_label(anchors, documents) * inverse_lengths(lengths)


def _reliability(documents: Single, lengths: Float, problem: Problem) -> float | None:
    """Split-half reliability of the names on some documents; None for a handful."""
    if not problem.distance.linear or len(documents) < _FEWEST_COMPARED:
        return None
    mean = (documents * inverse_lengths(lengths)[:, None]).mean(axis=0, dtype=np.float64)
    centre = centre_of(mean)
    anchors = unit_rows(unit_rows(problem.anchors[: problem.n_labels]) - centre)
    step = NearestInHalves.of(anchors, centre)
    if step is None:
        return None
    known = np.full(len(documents), UNKNOWN, dtype=np.int32)
    return step(Block(0, documents, known, lengths), {})[1].kappa


def diagnose(
    blocks: Blocks, known: Labels, problem: Problem, refinement: Refinement
) -> Diagnosis | None:
    """Diagnose a refinement; None where documents cannot be compared with the names of the labels.

    `known` has the labels that were used in the fit; excluded documents are not counted.
    """
    n_labels, anchors = problem.n_labels, problem.anchors
    named = len(anchors) if problem.distance.linear else np.array_equal(anchors, np.eye(n_labels))
    if not named:
        return None
    predictions, unrefined = refinement.predictions, refinement.unrefined
    fitted = known[: problem.n_documents] != EXCLUDED
    labelled = np.flatnonzero((predictions >= 0) & (unrefined >= 0) & fitted)
    after, before = predictions[labelled], unrefined[labelled]
    most = max(_SAMPLE, _SAMPLE_PER_LABEL * n_labels)
    sample = np.sort(np.random.default_rng(problem.random_state).permutation(len(labelled))[:most])
    documents, lengths = blocks.gather(labelled[sample]), blocks.lengths[labelled[sample]]
    some = slice(None, None, max(1, len(sample) // _SAMPLE))
    similarity = _standardised(_similarities(documents, lengths, problem))
    sums = [_sums_by_label(similarity, labels[sample]) for labels in (before, after)]
    counts = [np.bincount(labels[sample], minlength=n_labels) for labels in (before, after)]
    fits = [contrasts(*each) for each in zip(sums, counts, strict=True)]
    closest = np.where(counts[1] > 0, sums[1].argmax(axis=0), np.arange(n_labels))
    return Diagnosis(
        documents=len(labelled),
        moved=int(np.count_nonzero(after != before)),
        fitted=min(refinement.n_fitted, len(labelled)),
        fit=contrast(fits[1], counts[1]) / max(contrast(fits[0], counts[0]), 1e-9),
        reliability=_reliability(documents[some], lengths[some], problem),
        labels=tuple(_of_labels(before, after, fits[1], closest)),
        refined=refinement.share,
        collapsed=refinement.collapsed,
    )


def _of_labels(
    before: NDArray[np.intp], after: NDArray[np.intp], fits: Float, closest: NDArray[np.intp]
) -> Iterator[LabelDiagnosis]:
    n_labels = len(fits)
    stayed, *sizes = (
        np.bincount(labels, minlength=n_labels).tolist()
        for labels in (before[before == after], before, after)
    )
    for label, (n_before, n_after) in enumerate(zip(*sizes, strict=True)):
        kept = stayed[label] / n_before if n_before else None
        factor = max(n_after, 1) / max(n_before, 1)
        resized = not 1 / _SIZE_FACTOR < factor < _SIZE_FACTOR
        others = kept is None or kept < _LEAST_KEPT
        nearest_other = closest[label] != label
        yield LabelDiagnosis(
            label=str(label),
            before=n_before,
            after=n_after,
            kept=kept,
            fit=None if np.isnan(fits[label]) else float(fits[label]),
            closest=str(closest[label]) if nearest_other else None,
            overturned=bool(nearest_other or (others and resized)),
        )


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

    In standard deviations, from sums of standardised similarities by `_sums_by_label` and (n_labels,)
    numbers of documents; NaN for labels without documents, or with all of them.
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
