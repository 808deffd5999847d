"""Hugging Face `datasets`: predictions as further columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ulr.classifier import Fitted
from ulr.errors import TableError, require
from ulr.integrations.labelled import LabelledTexts

if TYPE_CHECKING:
    from ulr import ZeroShotClassifier

_BATCH_TEXTS = 4096  # of a dataset that is streamed


def label_dataset(
    clf: ZeroShotClassifier | Fitted, dataset: Any, column: str = "text", *, prefix: str = "ulr_"
) -> Any:
    """A dataset with the labels of its texts, in the columns ``ulr_label`` and ``ulr_confidence``.

    Parameters
    ----------
    clf
        A fitted or loaded classifier.
    dataset
        A ``Dataset``, an ``IterableDataset``, or a dictionary of them. One that is streamed stays so:
        its texts are classified when they are read.
    column
        The column of the texts.
    prefix
        Beginning of the names of the added columns; ``ulr_labels`` is a list, for several labels a
        text.
    """
    datasets = require("datasets", "datasets")
    if isinstance(dataset, dict):
        parts = {
            name: label_dataset(clf, part, column, prefix=prefix) for name, part in dataset.items()
        }
        return type(dataset)(parts)
    names = dataset.column_names or ()  # None for some that are streamed
    if names and column not in names:
        raise TableError(f"the dataset has no column {column!r}; it has: {', '.join(names)}.")
    for name in (f"{prefix}{each}" for each in ("label", "confidence", "labels")):
        if name in names:
            raise TableError(f"the dataset already has a column {name!r}; choose another prefix.")

    def added(texts: Any) -> dict[str, list[Any]]:
        found = LabelledTexts.of(clf, texts)
        values: dict[str, list[Any]] = {
            "label": [next(iter(labels), "") for labels in found.labels],
            "confidence": found.confidence,
        }
        if found.several:
            values["labels"] = [list(labels) for labels in found.labels]
        return {prefix + name: each for name, each in values.items()}

    if isinstance(dataset, datasets.IterableDataset):
        return dataset.map(lambda rows: added(rows[column]), batched=True, batch_size=_BATCH_TEXTS)
    for name, values in added(dataset[column]).items():
        dataset = dataset.add_column(name, values)
    return dataset
