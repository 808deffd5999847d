"""What a report shows, as plain values that can be written as JSON.

Labels are referred to by their position in `ReportData.labels`, and documents by their position in
`Documents`. Counts of pairs of labels are (row, column, count), the largest first.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from ulr.metrics import LabelFigures

Point = tuple[float, float]
Pairs = tuple[tuple[int, int, int], ...]


@dataclass(frozen=True)
class Run:
    """What was run.

    Attributes
    ----------
    title, source
        A title, and the name of the input; empty without one.
    encoder, method, method_reason, distance
        What was used, and why the method is not the one that was asked for.
    documents, without_words, moved
        Documents in all, those that got no label because they have no known words, and those whose
        label refinement changed.
    fitted, best_iteration, converged
        Documents that the labels were refined on, the pass that is the result, and whether the
        passes converged; None for a saved classifier.
    seconds
        Wall time of the classification.
    seed, date, versions, notes
        Seed of everything drawn, day of the report, versions of packages, further sentences.
    sampled_from
        Number of documents that those of the report are a sample of; None if they are all.
    """

    title: str
    source: str
    encoder: str
    method: str
    method_reason: str | None
    distance: str
    documents: int
    without_words: int
    moved: int
    fitted: int | None
    best_iteration: int | None
    converged: bool | None
    seconds: float
    seed: int
    date: str
    versions: dict[str, str]
    notes: tuple[str, ...]
    sampled_from: int | None = None


@dataclass(frozen=True)
class LabelEntry:
    """One label.

    Attributes
    ----------
    name, phrases
        Its name, and the words it was described by; none for the none label.
    before, after
        Documents before and after refinement.
    words
        Words that are more frequent in its documents than in others.
    representative, borderline
        Positions of documents.
    anchor, centroid
        Where its name and its refined label are on the map; None for nowhere.
    """

    name: str
    phrases: tuple[str, ...]
    before: int
    after: int
    words: tuple[str, ...]
    representative: tuple[int, ...]
    borderline: tuple[int, ...]
    anchor: Point | None
    centroid: Point | None


@dataclass(frozen=True)
class Documents:
    """The documents that are shown, one entry per document in each column.

    Attributes
    ----------
    row
        Row in the input, from 1.
    text
        Its beginning.
    label, unrefined, second
        Label after and before refinement, and the second most probable label.
    confidence, second_confidence
        Probabilities of `label` and `second`.
    x, y
        Place on the map, between 0 and 1; y grows downwards.
    truth
        True label, -1 where it is unknown; empty without any.
    """

    row: list[int]
    text: list[str]
    label: list[int]
    unrefined: list[int]
    second: list[int]
    confidence: list[float]
    second_confidence: list[float]
    x: list[float]
    y: list[float]
    truth: list[int]


@dataclass(frozen=True)
class Bin:
    """Documents of an interval of confidence, with the same and another label than before."""

    low: float
    high: float
    stayed: int
    moved: int


@dataclass(frozen=True)
class ReliabilityBin:
    """Mean confidence and accuracy of the documents of an interval of confidence."""

    low: float
    high: float
    documents: int
    confidence: float
    accuracy: float


@dataclass(frozen=True)
class Comparison:
    """Comparison with true labels.

    Attributes
    ----------
    documents
        Documents with a true label.
    accuracy, macro_f1
        Before and after refinement.
    calibration_error
        Expected calibration error of the confidence.
    figures, figures_before
        Figures by label.
    reliability
        Accuracy by confidence.
    confusion, confusion_before
        Pairs of true and predicted label.
    """

    documents: int
    accuracy: tuple[float, float]
    macro_f1: tuple[float, float]
    calibration_error: float
    figures: tuple[LabelFigures, ...]
    figures_before: tuple[LabelFigures, ...]
    reliability: tuple[ReliabilityBin, ...]
    confusion: Pairs
    confusion_before: Pairs


@dataclass(frozen=True)
class ReportData:
    """Everything that a report shows.

    Attributes
    ----------
    diagnosis
        `ulr.refinement.Diagnosis` as plain values; None without one.
    flows, flows_left_out
        Pairs of labels before and after refinement, and documents of pairs that are not listed.
    trace
        `ulr.refinement.Pass` as plain values.
    sampled, least_of_label
        Whether `documents` is a sample of the documents with a label, and how many documents of
        each label it has at least, where there are as many.
    """

    run: Run
    diagnosis: dict[str, Any] | None
    labels: tuple[LabelEntry, ...]
    flows: Pairs
    flows_left_out: int
    histogram: tuple[Bin, ...]
    trace: tuple[dict[str, Any], ...]
    documents: Documents
    sampled: bool
    least_of_label: int
    comparison: Comparison | None

    def as_dict(self) -> dict[str, Any]:
        """The data as plain values."""
        return asdict(self)
