"""Suggest changes to the labels for the documents of a table: read, sample, fit, suggest, write."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ulr.classifier import Settings, Suggestions, resolve
from ulr.classifier import suggest as suggest_labels
from ulr.errors import LabelError
from ulr.files import atomic_file, check_destination
from ulr.jobs.classify import fit_sample
from ulr.jobs.documents import Documents, draw_sample
from ulr.jobs.result import excerpt
from ulr.jobs.support import NO_SUPPORT, Support
from ulr.labels import LABEL_FILE_ENDINGS, LabelSet, labels_as_text
from ulr.progress import NO_PROGRESS, Progress

_MOST_DOCUMENTS = 20_000  # to fit on; the suggestions are found on a sample of them


@dataclass(frozen=True)
class ShownText:
    """A document that is shown: its row in the table, from 1, and the beginning of its text."""

    row: int
    text: str


@dataclass(frozen=True)
class SuggestJob:
    """Suggestions for the labels of a table; positions of documents are rows, from 0.

    Attributes
    ----------
    suggestions
        What was found.
    rows
        Rows of the table, of which a sample was examined.
    texts
        The documents that are shown, by their position.
    """

    suggestions: Suggestions
    rows: int
    texts: dict[int, ShownText]

    def as_dict(self) -> dict[str, Any]:
        """All values for programs, with the rows and texts of the documents that are shown."""
        found = self.suggestions.as_dict()
        for missing in found["missing"]:
            missing["documents"] = self._shown(missing["documents"])
            del missing["members"]  # as many as there are documents
        for split in found["split"]:
            split["documents"] = [self._shown(each) for each in split["documents"]]
        return {"rows": self.rows, **found}

    def _shown(self, positions: tuple[int, ...]) -> list[dict[str, Any]]:
        return [vars(self.texts[position]) for position in positions]


def suggest(
    documents: Documents,
    settings: Settings,
    progress: Progress = NO_PROGRESS,
    *,
    support: Support = NO_SUPPORT,
) -> SuggestJob:
    """Fit a classifier on the documents of a table, or a sample, and suggest changes of its labels.

    Parameters
    ----------
    documents
        The documents.
    settings
        The parameters of the classifier.
    progress
        Receives the progress, and can cancel the job.
    support
        Labelled examples and further texts to fit on.
    """
    settings = resolve(settings, progress)
    most = min(settings.fit_limit or _MOST_DOCUMENTS, _MOST_DOCUMENTS)
    sample = draw_sample(documents, most, settings.random_state, progress)
    fitted = fit_sample(sample, settings, progress, support)
    found = suggest_labels(fitted, None, progress)
    assert fitted.documents is not None
    texts = {}
    for position in _shown_positions(found):
        text = excerpt(fitted.documents.texts[position])
        # Examples, which follow the documents, have no row.
        is_row = position < len(sample.texts)
        row = position if sample.rows is None or not is_row else int(sample.rows[position])
        texts[position] = ShownText(row + 1 if is_row else 0, text)
    return SuggestJob(found, sample.n_rows, texts)


def _shown_positions(found: Suggestions) -> set[int]:
    shown = {position for each in found.missing for position in each.documents}
    return shown.union(*(half for each in found.split for half in each.documents))


def check_labels_path(path: str, force: bool) -> None:
    """Refuse a label file that could not be written; called before the long part of a job."""
    if Path(path).suffix.lower() not in LABEL_FILE_ENDINGS:
        raise LabelError(
            f"{path!r} is no name of a label file; it must end in: {', '.join(LABEL_FILE_ENDINGS)}."
        )
    check_destination(Path(path), force, LabelError, "--force")


def write_labels(labels: LabelSet, path: str) -> None:
    """Write a label file that is read back as these labels; its ending is its format."""
    content = labels_as_text(labels, Path(path).suffix.lower())
    with atomic_file(path) as file:
        file.write(content.encode())
