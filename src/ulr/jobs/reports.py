"""What jobs report, for people and for programs."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

from ulr.metrics import Evaluation
from ulr.refinement import Diagnosis


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


@dataclass(frozen=True)
class JobReport:
    """What a job did.

    Attributes
    ----------
    documents, empty_documents, unknown_documents, truncated_documents
        Documents in all; without words; without a word that the encoder knows; cut to its limit.
    labels
        Documents of each label.
    without_label
        Documents that got the none label; None where there is none.
    seconds
        Wall time.
    output
        What was written.
    least_certain, moved_documents
        Some documents with the lowest confidence, and those moved with the highest.
    moved
        Documents whose label refinement changed.
    encoder, method, method_reason, iterations, converged, fitted_documents
        What was used; see `ulr.Refinement`.
    diagnosis
        Whether the refinement can be trusted.
    phrasings, possible_phrasings, examples, extra_texts, extra_labels
        Numbers of what took part beside documents and labels.
    malformed_lines
        Lines of a word-vector file that could not be read.
    """

    documents: int
    empty_documents: int
    labels: tuple[LabelCounts, ...]
    seconds: float
    output: str | None
    least_certain: tuple[ShownDocument, ...]
    unknown_documents: int = 0
    truncated_documents: int | None = None
    without_label: int | None = None
    moved: int | None = None
    moved_documents: tuple[ShownDocument, ...] = ()
    encoder: str | None = None
    method: str | None = None
    method_reason: str | None = None
    iterations: int | None = None
    converged: bool | None = None
    fitted_documents: int | None = None
    diagnosis: Diagnosis | None = None
    phrasings: int | None = None
    possible_phrasings: int | None = None
    examples: int = 0
    extra_texts: int = 0
    extra_labels: int = 0
    malformed_lines: int | None = None

    def as_dict(self) -> dict[str, Any]:
        """The report as plain values."""
        values = asdict(replace(self, diagnosis=None))
        values["diagnosis"] = None if self.diagnosis is None else self.diagnosis.as_dict()
        return values


@dataclass(frozen=True, eq=False)
class EvaluationReport:
    """Figures of a classified file whose true labels are known.

    Attributes
    ----------
    job
        What was done.
    before, after
        Figures of the labels before and after refinement.
    calibration_error
        Expected calibration error of the confidence after refinement.
    without_truth
        Rows without a true label, which are in no figure.
    folded_truth
        Rows whose true label equals a name but for case or blanks.
    """

    job: JobReport
    before: Evaluation
    after: Evaluation
    calibration_error: float
    without_truth: int
    folded_truth: int = 0

    def as_dict(self) -> dict[str, Any]:
        """The report as plain values."""
        return {
            "before": _figures(self.before),
            "after": _figures(self.after),
            "calibration_error": self.calibration_error,
            "documents_without_truth": self.without_truth,
            "truth_matched_ignoring_case": self.folded_truth,
            "classification": self.job.as_dict(),
        }


def _figures(evaluation: Evaluation) -> dict[str, Any]:
    figures = asdict(evaluation)
    figures["confusion"] = evaluation.confusion.tolist()
    return figures
