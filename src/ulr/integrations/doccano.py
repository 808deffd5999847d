"""doccano: lines of JSON with a text and its labels, in both directions."""

from __future__ import annotations

from pathlib import Path

from ulr.integrations.corrections import Corrections, read_json, write_json
from ulr.integrations.labelled import LabelledTexts


def to_doccano(labelled: LabelledTexts, path: str | Path, *, overwrite: bool = False) -> None:
    """Write texts and labels as JSONL, to import into a project of text classification.

    doccano has no suggestions in files: it takes the labels for annotations.
    """
    rows = zip(labelled.texts, labelled.labels, labelled.confidence, strict=True)
    lines = [
        {"text": text, "label": list(labels), "ulr_confidence": confidence}
        for text, labels, confidence in rows
    ]
    write_json(path, lines, lines=True, overwrite=overwrite)


def from_doccano(path: str | Path) -> Corrections:
    """Read an export of a project in the format JSONL."""
    answers = ((each["text"], each.get("label", [])) for each in read_json(path))
    return Corrections.of(answers, str(path))
