"""`Result`: what a job did, the one schema of summary, ``--json``, report and page; `Tally` fills it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ulr.classifier import Advice, Fitted, Predictions
from ulr.metrics import (
    Evaluation,
    ReliabilityBin,
    calibration_error,
    evaluate,
    reliability,
)
from ulr.refinement import Diagnosis

_SHOWN = 5
_EXCERPT = 160
_MOST_PAIRS = 2_000
_BINS = 20

Indices = NDArray[np.intp]
Pairs = tuple[tuple[int, int, int], ...]


@dataclass(frozen=True)
class ShownDocument:
    """A document worth a look; rows are counted from 1."""

    row: int
    text: str
    label: str
    unrefined: str | None
    confidence: float


@dataclass(frozen=True)
class LabelCounts:
    """Documents of a label before and after refinement."""

    label: str
    before: int | None
    after: int


@dataclass(frozen=True, eq=False)
class Comparison:
    """Comparison of all predictions with true labels, which only report."""

    documents: int  # with a true label
    without_truth: int  # documents without one, which are in no figure
    folded_truth: int  # documents whose true label equals a name but for case or blanks
    other_truth: int  # documents with a true value that is no label
    other_values: tuple[str, ...]  # the most frequent of these values
    before: Evaluation  # of the labels before refinement
    after: Evaluation
    calibration_error: float  # expected calibration error of the confidence after refinement
    reliability: tuple[ReliabilityBin, ...]  # accuracy in intervals of that confidence


@dataclass(frozen=True, eq=False)
class Result:
    """What a job did; fields are None where they do not apply, such as `moved` for a saved model."""

    documents: int
    empty_documents: int  # without words
    unknown_documents: int  # without a word that the encoder knows
    truncated_documents: int | None  # cut to the encoder's limit
    student_documents: int  # that a student labelled, and the encoder did not read
    labels: tuple[LabelCounts, ...]
    without_label: int | None  # documents that got the none label
    moved: int | None  # documents whose label refinement changed
    # (label before, label after, documents), the largest first, without documents that have no
    # words; labels by position, the none label last.
    flows: Pairs
    # Documents of 20 equal intervals of confidence, with the same and another label than before.
    histogram: tuple[tuple[int, int], ...]
    least_certain: tuple[ShownDocument, ...]
    moved_documents: tuple[ShownDocument, ...]  # those with the highest confidence
    encoder: str
    method: str
    distance: str
    method_reason: str | None = None  # this and the next three as in `ulr.Refinement`
    iterations: int | None = None
    converged: bool | None = None
    fitted_documents: int | None = None
    diagnosis: Diagnosis | None = None
    examples: int = 0  # numbers of what took part beside documents and labels
    extra_texts: int = 0
    extra_labels: int = 0
    malformed_lines: int | None = None  # of a word-vector file
    comparison: Comparison | None = None  # with true labels
    advice: Advice | None = None  # what an adviser was asked, and what that changed
    seconds: float = 0.0
    output: str | None = None

    def as_dict(self) -> dict[str, Any]:
        """The result as plain values."""
        values = asdict(replace(self, diagnosis=None))
        values["diagnosis"] = None if self.diagnosis is None else self.diagnosis.as_dict()
        for figures in ("before", "after"):
            if values["comparison"] is not None:
                confusion = values["comparison"][figures]["confusion"]
                values["comparison"][figures]["confusion"] = confusion.tolist()
        return values


class Tally:
    """Counts labels, and keeps some documents worth a look, over all documents of a job."""

    def __init__(self, fitted: Fitted, *, refined: bool = True) -> None:
        self._fitted, self._names = fitted, fitted.names
        self.refined = refined  # whether there are labels before refinement
        self._flows: Counter[tuple[int, int]] = Counter()
        self._histogram = np.zeros((_BINS, 2), dtype=np.intp)
        self._unlabelled = self._by_student = 0
        self._certain: list[ShownDocument] = []
        self._doubtful: list[ShownDocument] = []
        self._row = 0

    def add(self, texts: Sequence[str], predictions: Predictions) -> None:
        """Add the next documents."""
        confidence, first_row = predictions.confidence, self._row
        self._row += len(texts)
        self._unlabelled += int(predictions.empty.sum())
        self._by_student += int(predictions.by_student.sum())
        has = np.flatnonzero(~predictions.empty)
        after, before = predictions.labels[has], predictions.unrefined[has]
        n = len(self._names)
        codes, counts = np.unique(before * n + after, return_counts=True)
        for code, count in zip(codes.tolist(), counts.tolist(), strict=True):
            self._flows[divmod(code, n)] += count
        places = np.minimum((confidence[has] * _BINS).astype(np.intp), _BINS - 1)
        np.add.at(self._histogram, (places, (before != after).astype(np.intp)), 1)
        labelled = has[after < self._fitted.n_labels]
        doubtful = labelled[np.argsort(confidence[labelled], kind="stable")[:_SHOWN]]
        moved = labelled[predictions.labels[labelled] != predictions.unrefined[labelled]]
        certain = moved[np.argsort(-confidence[moved], kind="stable")[:_SHOWN]]

        def show(row: int) -> ShownDocument:
            unrefined = str(self._names[predictions.unrefined[row]]) if self.refined else None
            name, text = str(self._names[predictions.labels[row]]), excerpt(texts[row])
            return ShownDocument(first_row + row + 1, text, name, unrefined, float(confidence[row]))

        self._show(map(show, doubtful.tolist()), map(show, certain.tolist()))

    def _show(self, doubtful: Iterable[ShownDocument], certain: Iterable[ShownDocument]) -> None:
        """Keep the best of the documents so far and further ones."""
        self._doubtful += doubtful
        self._doubtful.sort(key=lambda each: (each.confidence, each.row))
        self._certain += certain
        self._certain.sort(key=lambda each: (-each.confidence, each.row))
        del self._doubtful[_SHOWN:], self._certain[_SHOWN:]

    def as_dict(self) -> dict[str, Any]:
        """The counts and documents as plain values, for `add_counts` in another process."""
        return {
            "documents": self._row,
            "unlabelled": self._unlabelled,
            "by_student": self._by_student,
            "flows": [[*pair, count] for pair, count in self._flows.items()],
            "histogram": self._histogram.tolist(),
            "shown": {
                "doubtful": [asdict(each) for each in self._doubtful],
                "certain": [asdict(each) for each in self._certain],
            },
        }

    def add_counts(self, counts: dict[str, Any]) -> None:
        """Add the next documents, given what `as_dict` of their tally returned."""
        shown = {
            name: [
                replace(ShownDocument(**each), row=self._row + each["row"]) for each in documents
            ]
            for name, documents in counts["shown"].items()
        }
        self._show(**shown)
        self._flows.update({(before, after): count for before, after, count in counts["flows"]})
        self._histogram += np.array(counts["histogram"], dtype=np.intp)
        self._unlabelled += counts["unlabelled"]
        self._by_student += counts["by_student"]
        self._row += counts["documents"]

    def result(self, n_empty: int, **about: Any) -> Result:
        """The result so far; `about` are its fields that the predictions do not tell."""
        fitted, refinement = self._fitted, self._fitted.refinement
        n_names, n_labels = len(self._names) - 1, self._fitted.n_labels
        flows = np.zeros((n_names, n_names), dtype=np.intp)
        for pair, count in self._flows.items():
            flows[pair] += count
        before, after = flows.sum(axis=1).tolist(), flows.sum(axis=0).tolist()
        stayed = int(np.trace(flows[:, :n_labels]))
        return Result(
            documents=self._row,
            empty_documents=n_empty,
            unknown_documents=max(0, self._unlabelled - n_empty),
            student_documents=self._by_student,
            labels=tuple(
                LabelCounts(str(name), before[i] if self.refined else None, after[i])
                for i, name in enumerate(self._names[:n_labels])
            ),
            without_label=None if fitted.none is None else after[n_labels] + self._unlabelled,
            moved=int(flows[:, :n_labels].sum()) - stayed if self.refined else None,
            flows=sorted_pairs(self._flows)[:_MOST_PAIRS],
            histogram=tuple((stayed, moved) for stayed, moved in self._histogram.tolist()),
            least_certain=tuple(self._doubtful),
            moved_documents=tuple(self._certain) if self.refined else (),
            encoder=fitted.encoder_name,
            method=fitted.settings.method,
            distance=fitted.settings.distance,
            method_reason=None if refinement is None else refinement.reason,
            iterations=None if refinement is None else refinement.n_iter,
            converged=None if refinement is None else refinement.converged,
            fitted_documents=None if refinement is None else refinement.n_fitted,
            diagnosis=fitted.diagnosis,
            advice=fitted.advice,
            extra_labels=len(fitted.settings.extra_labels or ()),
            malformed_lines=getattr(fitted.settings.encoder, "malformed_lines", None),
            **{"truncated_documents": None, **about},
        )


def compare(
    truth: Indices,
    labels: Indices,
    unrefined: Indices,
    confidence: NDArray[np.float64],
    names: Sequence[str],
    n_folded: int = 0,
    others: Counter[str] | None = None,
) -> Comparison | None:
    """Compare predictions with true labels, -1 where unknown; None where no document has one."""
    known = truth >= 0
    if not known.any():
        return None
    true, labels = truth[known], labels[known]
    return Comparison(
        documents=len(true),
        without_truth=int((~known).sum()),
        folded_truth=n_folded,
        other_truth=0 if others is None else others.total(),
        other_values=tuple(v[:_EXCERPT] for v, _ in (others or Counter()).most_common(_SHOWN)),
        before=evaluate(true, unrefined[known], names),
        after=evaluate(true, labels, names),
        calibration_error=calibration_error(labels == true, confidence[known]),
        reliability=reliability(labels == true, confidence[known]),
    )


def sorted_pairs(counts: dict[tuple[int, int], int]) -> Pairs:
    """Counts of pairs of labels, the largest first."""
    pairs = ((one, other, count) for (one, other), count in counts.items())
    return tuple(sorted(pairs, key=lambda pair: (-pair[2], pair[0], pair[1])))


def excerpt(text: str, most: int = _EXCERPT) -> str:
    """The beginning of a text, on one line."""
    text = " ".join(text[: 4 * most].split())
    return text if len(text) <= most else text[: most - 1].rstrip() + "…"
