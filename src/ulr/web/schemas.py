"""What the routes of the API take and return."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BaseModel, Field

from ulr.report import DocumentColumns, LabelEntry
from ulr.web.encoders import EncoderChoice
from ulr.web.jobs import JobState
from ulr.web.sessions import SessionLabel

_TEXT = Field(max_length=100_000)


class Problem(BaseModel):
    """An error."""

    error: str = Field(description="One sentence: what was wrong and what would work.")


class Limits(BaseModel):
    """Limits of the server."""

    upload_bytes: int
    rows: int
    labels: int
    phrases: int
    texts: int


class Status(BaseModel):
    """The server."""

    version: str
    encoder: str
    encoders: list[EncoderChoice] = Field(description="That a run may use, its own first.")
    predicts: bool = Field(description="Whether /api/predict has a model.")
    labels: list[str] = Field(description="Labels of that model.")
    limits: Limits


class LabelInput(BaseModel):
    """A label as it is given."""

    id: int | None = Field(None, description="Of a label that is kept or renamed; none if new.")
    name: str = Field(min_length=1, max_length=200)
    phrases: list[Annotated[str, Field(max_length=500)]] = Field(
        [], description="Words that describe it; the name if there are none."
    )


class LabelText(BaseModel):
    """A label file or a pasted list."""

    text: str = Field(max_length=200_000, description="Content of the file, or the list.")
    name: str | None = Field(
        None, max_length=300, description="Name of the file, whose ending tells its format."
    )


class NamedLabel(BaseModel):
    """A label that was read."""

    name: str
    phrases: list[str]


class Labels(BaseModel):
    """Labels that were read, in their order."""

    labels: list[NamedLabel]


class Correction(BaseModel):
    """A document that was given a label, or none of these."""

    row: int
    label: str


class SessionInfo(BaseModel):
    """The state of a session."""

    id: str
    name: str
    rows: int
    columns: list[str]
    preview: list[list[str]] = Field(description="The first rows.")
    text_columns: list[str] = Field(description="The chosen columns, or a suggestion.")
    labels: list[SessionLabel]
    suggested_labels: list[str]
    encoder: str | None = Field(description="Of the latest run; null before the first.")
    none_share: float | None = Field(description="Of the latest run.")
    corrections: list[Correction]
    result: int | None = Field(description="Number of the latest result.")
    outdated: bool = Field(description="Whether labels or corrections changed since the result.")
    can_undo: bool
    job: JobState | None


class RunInput(BaseModel):
    """What to classify."""

    columns: list[str] = Field(max_length=100, description="Text columns; joined by a space.")
    labels: list[LabelInput]
    encoder: str | None = Field(None, description="One of the status; the server's own if null.")
    none_share: float | None = Field(
        None, gt=0, lt=1, description="Share of the documents that get none of the labels."
    )


class CorrectionInput(BaseModel):
    """A label for documents."""

    rows: list[int] = Field(min_length=1, max_length=10_000, description="From 1.")
    label: str | None = Field(
        description="Name of a label, or 'none of these'; null takes the correction back."
    )


@dataclass(frozen=True)
class ViewLabel(LabelEntry):
    """A label of a result; documents are positions in the list of documents."""

    id: int | None  # null for the label of documents that are none of these


class View(BaseModel):
    """A result: at most 5,000 documents, and counts over all."""

    number: int
    columns: list[str]
    result: dict[str, Any] = Field(description="As ``ulr classify --json`` prints it.")
    labels: list[ViewLabel]
    documents: DocumentColumns = Field(description="By column; labels and rows as in a report.")
    corrections: list[tuple[int, str]] = Field(description="Rows and labels that took part.")
    previous: list[str | None] = Field(description="Label in the result before, if another.")
    changes: list[tuple[str, str, int]] = Field(description="Label before, now, documents.")
    next: list[int] = Field(description="Documents to check next.")


class MissingLabel(BaseModel):
    """A group of documents that no label explains."""

    name: str = Field(description="Proposed for the group, from its own words.")
    size: int
    words: list[str] = Field(description="Characteristic words of the group.")
    rows: list[int] = Field(description="Of typical documents.")
    texts: list[str] = Field(description="Beginnings of these documents.")
    labels: list[tuple[str, float]] = Field(description="That the group has now, with shares.")
    better_name_for: str | None = Field(description="A label that has this group already.")


class Suggested(BaseModel):
    """What the documents say about the labels of a result."""

    number: int = Field(description="Of the result.")
    examined: int = Field(description="Documents, a sample of many.")
    missing: list[MissingLabel]
    merge: list[tuple[str, str]] = Field(description="Labels that compete for documents.")
    split: list[tuple[str, list[str], list[str]]] = Field(
        description="Labels that hold two groups, with characteristic words of both."
    )
    phrases: dict[str, list[str]] = Field(description="Further phrases for some labels.")


class Document(BaseModel):
    """One document."""

    row: int
    text: str
    probabilities: dict[str, float]


class PredictInput(BaseModel):
    """One text or several."""

    texts: Annotated[str, _TEXT] | list[Annotated[str, _TEXT]]


class Prediction(BaseModel):
    """The label of a text; null for a text without known words."""

    label: str | None
    confidence: float
    unrefined: str | None


class Predicted(BaseModel):
    """Labels of texts, in their order."""

    predictions: list[Prediction]
