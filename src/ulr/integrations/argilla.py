"""Argilla: records with suggested labels, and the responses of people."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from ulr.errors import require
from ulr.integrations.corrections import Corrections, read_json
from ulr.integrations.labelled import LabelledTexts


def to_argilla(labelled: LabelledTexts, *, text: str = "text", label: str = "label") -> list[Any]:
    """Records whose labels are suggestions, for ``dataset.records.log(records)``.

    Parameters
    ----------
    labelled
        The texts.
    text, label
        The names of the text field and of the question, a ``LabelQuestion``, or a
        ``MultiLabelQuestion`` where texts have several labels.
    """
    argilla = require("argilla", "argilla")
    records = []
    rows = zip(labelled.texts, labelled.labels, labelled.confidence, strict=True)
    for number, (document, labels, confidence) in enumerate(rows):
        value = list(labels) if labelled.several else next(iter(labels), None)
        # A score belongs to one label: several labels of a suggestion have one each.
        score = None if labelled.several else confidence
        agent = labelled.model_version
        suggestions = [argilla.Suggestion(label, value, score=score, agent=agent)] if value else []
        record = argilla.Record(str(number), fields={text: document}, suggestions=suggestions)
        records.append(record)
    return records


def from_argilla(
    records: str | Path | Iterable[Any], *, text: str = "text", label: str = "label"
) -> Corrections:
    """The responses to records, or to those of a file that ``dataset.records.to_json`` wrote.

    Parameters
    ----------
    records
        Records, such as ``dataset.records(with_responses=True)``, or the path of a file. Drafts and
        discarded responses do not count; files do not tell them apart.
    text, label
        The names of the text field and of the question.
    """
    is_file = isinstance(records, str | Path)
    found = read_json(records) if isinstance(records, str | Path) else records
    answers = (_answer(each, text, label) for each in found)
    return Corrections.of(answers, str(records) if is_file else "the dataset")


def _answer(record: Any, text: str, label: str) -> tuple[str, Iterator[str]]:
    """The text of a record, of which a file has a dictionary, and the labels of its responses."""
    if isinstance(record, dict):
        responses = record["responses"].get(label, [])
        return record["fields"][text], _labels(each["value"] for each in responses)
    submitted = filter(_counts, record.responses[label])
    return record.fields[text], _labels(each.value for each in submitted)


def _counts(response: Any) -> bool:
    """Whether a response was submitted; one that has just been made has no status."""
    return getattr(response.status, "value", None) in (None, "submitted")


def _labels(values: Iterable[str | list[str] | None]) -> Iterator[str]:
    """The labels of responses, which have one or several."""
    for value in values:
        yield from [value] if isinstance(value, str) else value or []
