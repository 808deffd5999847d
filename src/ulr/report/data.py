"""What a report shows beside the `Result` of the job, as plain values that can be written as JSON.

Labels are referred to by their position in `ReportData.labels`, and documents by their position in
`DocumentColumns`.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

from ulr.jobs import Result

Point = tuple[float, float]


@dataclass(frozen=True)
class LabelEntry:
    """One label; `ulr.jobs.Result` has its counts.

    Attributes
    ----------
    name, phrases
        Its name, and the words it was described by; none for the none label.
    words
        Words that are more frequent in its documents than in others.
    representative, borderline
        Positions of documents.
    anchor, centroid
        Where its name and its refined label are on the map; None for nowhere.
    """

    name: str
    phrases: tuple[str, ...]
    words: tuple[str, ...]
    representative: tuple[int, ...]
    borderline: tuple[int, ...]
    anchor: Point | None
    centroid: Point | None


@dataclass(frozen=True)
class DocumentColumns:
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
        True label, -1 where it is unknown.
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


@dataclass(frozen=True, eq=False)
class ReportData:
    """Everything that a report shows.

    Attributes
    ----------
    title, source
        A title, and the name of the input; empty without one.
    result
        What the job did; its counts are of all documents.
    labels
        One entry per label, the none label last.
    documents, least_of_label
        The documents that are listed, and how many of each label there are at least, where there
        are as many.
    trace, best_iteration
        `ulr.refinement.Pass` as plain values, and the pass that is the result; empty and None for a
        saved classifier.
    seed, date, versions
        Seed of everything drawn, day of the report, versions of packages.
    """

    title: str
    source: str
    result: Result
    labels: tuple[LabelEntry, ...]
    documents: DocumentColumns
    least_of_label: int
    trace: tuple[dict[str, Any], ...]
    best_iteration: int | None
    seed: int
    date: str
    versions: dict[str, str]

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
