"""What a report shows beside the `Result` of the job, as plain values that can be written as JSON.

Labels are referred to by their position in `ReportData.labels`, and documents by their position in
`DocumentColumns`.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

from ulr.classifier import Explanation
from ulr.jobs import Result

Point = tuple[float, float]


@dataclass(frozen=True)
class LabelEntry:
    """One label; `ulr.jobs.Result` has its counts."""

    name: str
    phrases: tuple[str, ...]  # that describe it; none for the none label
    words: tuple[str, ...]  # that are more frequent in its documents than in others
    representative: tuple[int, ...]  # documents
    borderline: tuple[int, ...]  # documents
    anchor: Point | None  # of its name on the map; None for nowhere
    centroid: Point | None  # of the refined label


@dataclass(frozen=True)
class DocumentColumns:
    """The documents that are shown, one entry per document in each column."""

    row: list[int]  # in the input, from 1
    text: list[str]  # its beginning
    label: list[int]
    unrefined: list[int]  # label before refinement
    second: list[int]  # the second most probable label
    confidence: list[float]  # probability of the label
    second_confidence: list[float]
    x: list[float]  # place on the map, between 0 and 1
    y: list[float]  # grows downwards
    truth: list[int]  # true label, -1 where it is unknown


@dataclass(frozen=True, eq=False)
class ReportData:
    """Everything that a report shows."""

    title: str
    source: str  # name of the input; empty without one
    result: Result  # what the job did; its counts are of all documents
    labels: tuple[LabelEntry, ...]  # the none label last
    documents: DocumentColumns  # that are listed
    why: dict[int, Explanation]  # for typical and borderline documents, or some of them
    why_all: bool  # whether it is all of them
    least_of_label: int  # documents of each label that are listed, where there are as many
    trace: tuple[dict[str, Any], ...]  # of `ulr.refinement.Pass`; empty for a saved classifier
    best_iteration: int | None  # the pass that is the result
    seed: int
    date: str
    versions: dict[str, str]  # of packages

    @property
    def labelled(self) -> int:
        """Documents with a label."""
        return sum(map(sum, self.result.histogram))

    @property
    def sampled(self) -> bool:
        """Whether `documents` is a sample of the documents with a label."""
        return len(self.documents.row) < self.labelled

    @property
    def counts(self) -> list[tuple[int, int]]:
        """Documents of each of `labels` before and after refinement."""
        counts = [(each.before or 0, each.after) for each in self.result.labels]
        none = 0, self.labelled - sum(after for _, after in counts)  # it has no documents before
        return [*counts, none][: len(self.labels)]

    def as_dict(self) -> dict[str, Any]:
        """The data as plain values."""
        plain = asdict(replace(self, result=None))  # type: ignore[arg-type]
        return plain | {"result": self.result.as_dict()}
