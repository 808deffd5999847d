"""True labels of the rows of a table. They report, never choose."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ulr.classifier import Predictions, Settings
from ulr.errors import TableError
from ulr.jobs.result import Comparison, compare
from ulr.jobs.support import LabelMatching
from ulr.tables import Batch, Table


class TrueLabels:
    """True labels and predictions of all rows, collected batch by batch."""

    def __init__(self, table: Table, column: str, settings: Settings) -> None:
        table.check_columns([column], "--truth")
        none = [] if settings.none_share is None else [settings.none_label]
        self._table, self._column = table, column
        self._names = [*settings.label_set.names, *none]
        self._matching = LabelMatching(self._names)
        self._index = {name: i for i, name in enumerate(self._names)} | {"": -1}
        self._found: list[int] = []
        self._predicted: list[tuple[NDArray[Any], ...]] = []

    def add(self, batch: Batch, predictions: Predictions) -> NDArray[np.intp]:
        """Add the next rows; their true labels, -1 where unknown."""
        self._predicted.append((predictions.labels, predictions.unrefined, predictions.confidence))
        for place, value in enumerate(batch.column(self._column)):
            name = self._matching.name_of(value, batch.where(place))
            self._found.append(self._index[name])
        return np.array(self._found[-len(batch) :], dtype=np.intp)

    def compare(self) -> Comparison:
        """Compare the true labels with the predictions."""
        truth = np.array(self._found, dtype=np.intp)
        labels, unrefined, confidence = map(np.concatenate, zip(*self._predicted, strict=True))
        n_folded = self._matching.n_folded
        found = compare(truth, labels, unrefined, confidence, self._names, n_folded)
        if found is None:
            raise TableError(
                f"{self._table.name}: no row has a true label in column {self._column!r}."
            )
        return found
