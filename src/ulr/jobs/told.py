"""What jobs are told and tell: where to write, how it is going, and what was done."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Protocol

from ulr.metrics import Evaluation
from ulr.refine import Pass


class Listener(Protocol):
    """Hears how a job is going."""

    def stage(self, name: str, total: int | None, unit: str = "documents") -> None:
        """A stage begins; `total` is how many documents or others it has, where known."""
        ...

    def advance(self, count: int) -> None:
        """Some of the stage are done."""
        ...

    def passed(self, done: Pass) -> None:
        """A pass of the refinement is done."""
        ...


class Silent:
    """A `Listener` that says nothing."""

    def stage(self, name: str, total: int | None, unit: str = "documents") -> None:
        """Nothing."""

    def advance(self, count: int) -> None:
        """Nothing."""

    def passed(self, done: Pass) -> None:
        """Nothing."""


@dataclass(frozen=True)
class Output:
    """Where and how predictions are written; to nowhere without a path."""

    path: str | None = None
    prefix: str = "ulr_"
    force: bool = False


@dataclass(frozen=True)
class ShownDocument:
    """A document worth a look."""

    row: int
    text: str
    label: str
    unrefined: str | None
    confidence: float


@dataclass(frozen=True)
class LabelCounts:
    """How many documents a label got, without and with refinement."""

    label: str
    before: int | None
    after: int


@dataclass(frozen=True)
class JobReport:
    """What a job did, for people and for programs."""

    documents: int
    empty_documents: int
    truncated_documents: int | None
    labels: tuple[LabelCounts, ...]
    seconds: float
    output: str | None
    least_certain: tuple[ShownDocument, ...]
    moved: int | None = None
    moved_documents: tuple[ShownDocument, ...] = ()
    iterations: int | None = None
    kept_iteration: int | None = None
    converged: bool | None = None
    unknown_documents: int | None = None
    malformed_lines: int | None = None
    wordings: int | None = None
    possible_wordings: int | None = None
    examples: int = 0
    extra_texts: int = 0
    extra_labels: int = 0

    def as_dict(self) -> dict[str, Any]:
        """The report as plain values."""
        return asdict(self)


@dataclass(frozen=True, eq=False)
class EvaluationReport:
    """The figures of a classified file whose truth is known."""

    job: JobReport
    before: Evaluation
    after: Evaluation
    calibration_error: float
    without_truth: int

    def as_dict(self) -> dict[str, Any]:
        """The report as plain values."""
        return {
            "before": _figures(self.before),
            "after": _figures(self.after),
            "calibration_error": self.calibration_error,
            "documents_without_truth": self.without_truth,
            "classification": self.job.as_dict(),
        }


def _figures(evaluation: Evaluation) -> dict[str, Any]:
    figures = asdict(evaluation)
    figures["confusion"] = evaluation.confusion.tolist()
    return figures
