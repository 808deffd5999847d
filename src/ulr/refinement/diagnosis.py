"""Judges whether a refinement can be trusted, from how its labels fit their anchors.

No labelled document is used. docs/refinement.md has how often the warnings are right.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ulr.refinement import constants
from ulr.refinement.blocks import Block, Blocks
from ulr.refinement.clusters import NearestInHalves, centre_of, centred, mean_kappa
from ulr.refinement.distances import Float, Rows, inverse_lengths, scores_by_label
from ulr.refinement.result import Problem, Refinement
from ulr.vectors import unit_rows

_MOST_NAMED = 5
_DOUBTS = ("unreliable", "regrouped", "overturned", "expected_accuracy")


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
    fit: float | None  # how far its documents match its name above others, in standard deviations
    closest: str | None  # another label whose name its documents are closer to; None without one
    overturned: bool


@dataclass(frozen=True)
class Diagnosis:
    """Whether a refinement can be trusted."""

    documents: int  # with a label
    moved: int  # of these, those that the refinement gave another one
    fitted: int  # documents that the labels were refined on
    # How well refined labels match their names, relative to the nearest names: about 1 where
    # refinement keeps their meaning.
    fit: float
    # Agreement of the nearest labels in two halves of the dimensions, as Cohen's kappa: 0 where the
    # names say nothing about the documents. None where it is not defined.
    reliability: float | None
    labels: tuple[LabelDiagnosis, ...]
    expected_accuracy: float | None = None  # mean confidence in the labels; None before calibration
    notes: tuple[str, ...] = ()  # further warnings, about the texts and the names of the labels
    refined: float = 1.0  # how far, as `Refinement.share`
    collapsed: bool = False  # as `Refinement.collapsed`

    @property
    def trusted(self) -> bool:
        """Whether nothing speaks against the refinement."""
        return not any(kind in self.problems for kind in _DOUBTS)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What speaks against the result, one sentence each, with what to do."""
        return (*self.problems.values(), *self.notes)

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

    @property
    def problems(self) -> dict[str, str]:
        """A sentence for each kind of problem that was found.

        Kinds are ``unreliable`` names, documents ``regrouped`` along other lines, ``overturned``
        labels and a low ``expected_accuracy``; and, which is no reason to distrust the result,
        ``few_overturned`` documents, ``collapsed`` clusters, ``few_documents`` and labels that are
        ``rare`` in the fit.
        """
        found = {}
        if self.reliability is not None and self.reliability < constants.LEAST_RELIABILITY:
            found["unreliable"] = (
                "The names of the labels say little about these documents, so many labels may be "
                "wrong. Use names that say what the documents are about, another encoder, or give "
                "some examples."
            )
        if self.refined and self.fit < constants.LEAST_FIT:
            found["regrouped"] = (
                f"The documents group along other lines than the labels: refined labels match their "
                f"names only {self.fit:.0%} as well as before. Compare with the labels without "
                "refinement, or use names that say what the documents are about."
            )
        overturned = [each for each in self.labels if each.overturned and self.refined]
        if overturned:
            sizes = sum(each.before for each in overturned), sum(each.after for each in overturned)
            few = max(sizes) < constants.LEAST_OVERTURNED * self.documents
            found["few_overturned" if few else "overturned"] = (
                f"{_listed([each.label for each in overturned])} may no longer mean what the name "
                "says; look at the documents of these labels, give them other words, or compare "
                "several phrasings."
            )
        if self.collapsed:
            found["collapsed"] = (
                "Refinement would have moved most documents to a few labels, so most keep the label of "
                "the nearest name. More specific names for the largest labels may help."
            )
        expected = self.expected_accuracy
        if expected is not None and expected < constants.LEAST_EXPECTED:
            found["expected_accuracy"] = (
                f"Only about {expected:.0%} of the labels are expected to be right; the names may not "
                "fit the documents, or another encoder may be needed."
            )
        if self.documents < constants.FEWEST_DOCUMENTS_PER_LABEL * len(self.labels):
            found["few_documents"] = (
                f"{self.documents:,} is a small number of documents for {len(self.labels)} labels; with "
                f"{constants.FEWEST_DOCUMENTS_PER_LABEL} or more per label, refinement is more reliable."
            )
        share = self.fitted / max(self.documents, 1)
        rare = [each.label for each in self.labels if each.after * share < constants.FEWEST_FITTED]
        if self.fitted < self.documents and rare:
            found["rare"] = (
                f"{_listed(rare)} has fewer than {constants.FEWEST_FITTED} documents in the sample "
                "that the labels were refined on; a larger sample may help."
            )
        return found


def _listed(names: list[str]) -> str:
    shown = ", ".join(repr(name) for name in names[:_MOST_NAMED])
    more = len(names) - _MOST_NAMED
    return shown + (f" and {more} more" if more > 0 else "")


def diagnose(blocks: Blocks, problem: Problem, refinement: Refinement) -> Diagnosis | None:
    """Diagnose a refinement; None where documents cannot be compared with the names of the labels."""
    n_labels, anchors = problem.n_labels, problem.anchors
    linear = problem.distance.linear
    if not (len(anchors) if linear else np.array_equal(anchors, np.eye(n_labels))):
        return None
    predictions, unrefined = refinement.predictions, refinement.unrefined
    labelled = np.flatnonzero((predictions >= 0) & (unrefined >= 0))
    after, before = predictions[labelled], unrefined[labelled]
    per_label = min(constants.DIAGNOSED_PER_LABEL * n_labels, constants.MOST_SCORES // n_labels)
    most = max(constants.DIAGNOSED, per_label)
    sample = np.sort(np.random.default_rng(problem.random_state).permutation(len(labelled))[:most])
    documents, lengths = blocks.gather(labelled[sample]), blocks.lengths[labelled[sample]]
    similarity, reliability = documents.T, None
    if linear:
        names, inverse = unit_rows(anchors[:n_labels]), inverse_lengths(lengths)
        similarity = scores_by_label(names.astype(np.float32), documents)
        similarity *= inverse.astype(np.float32)
        some = slice(None, None, max(1, len(sample) // constants.DIAGNOSED))
        documents, lengths = documents[some], lengths[some]
        mean = (documents * inverse[some, None]).mean(axis=0, dtype=np.float64)
        centre = centre_of(mean)
        step = NearestInHalves.of(unit_rows(names - centre))
        if step is not None and len(documents) >= constants.FEWEST_COMPARED:
            block = Block(0, documents, blocks.known[labelled[sample]][some], lengths)
            state = {"centred": centred(documents, lengths, centre)}
            reliability = mean_kappa(step(block, state)[1])
    fits, closest = match_names(similarity, after[sample])
    counts = [np.bincount(labels[sample], minlength=n_labels) for labels in (before, after)]
    fit_before = mean_match(match_names(similarity, before[sample])[0], counts[0])
    return Diagnosis(
        documents=len(labelled),
        moved=int(np.count_nonzero(after != before)),
        fitted=min(refinement.n_fitted, len(labelled)),
        fit=mean_match(fits, counts[1]) / max(fit_before, 1e-9),
        reliability=reliability,
        labels=tuple(_of_labels(before, after, fits, closest)),
        refined=refinement.share,
        collapsed=refinement.collapsed,
    )


def _of_labels(before: Rows, after: Rows, fits: Float, closest: Rows) -> Iterator[LabelDiagnosis]:
    n_labels = len(fits)
    stayed, *sizes = (
        np.bincount(labels, minlength=n_labels).tolist()
        for labels in (before[before == after], before, after)
    )
    for label, (n_before, n_after) in enumerate(zip(*sizes, strict=True)):
        kept = stayed[label] / n_before if n_before else None
        factor = max(n_after, 1) / max(n_before, 1)
        resized = not 1 / constants.SIZE_FACTOR < factor < constants.SIZE_FACTOR
        others = kept is None or kept < constants.LEAST_KEPT
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


def match_names(similarity: NDArray[np.floating], labels: Rows) -> tuple[Float, Rows]:
    """How far documents of each label match its name above the others, and the name they match best.

    From similarities, (n_labels, n), which are standardised over the documents, so that a name that is
    close to every document is not preferred. NaN for labels without documents, or with all of them.
    """
    n_labels = len(similarity)
    mean, sums = similarity.mean(axis=0), np.empty((n_labels, n_labels))
    for label, row in enumerate(similarity):  # one at a time: all in double precision are large
        above = (row - mean).astype(np.float64)
        above -= above.mean()
        above /= above.std() + 1e-9
        sums[label] = np.bincount(labels, above, minlength=n_labels)
    counts = np.bincount(labels, minlength=n_labels)
    others, own = counts.sum() - counts, np.diag(sums)
    with np.errstate(invalid="ignore", divide="ignore"):
        found = own / counts + own / others
    closest = np.where(counts > 0, sums.argmax(axis=0), np.arange(n_labels))
    return np.where((counts > 0) & (others > 0), found, np.nan), closest


def mean_match(matches: Float, counts: NDArray[np.integer]) -> float:
    """Mean of the better half of the labels that are not tiny, since a few names may be bad."""
    large = counts > 0.1 * counts.sum() / len(counts)
    found = np.sort(matches[large & ~np.isnan(matches)])[::-1]
    better = found[: (len(found) + 1) // 2]
    return float(better.mean()) if len(better) else 0.0
