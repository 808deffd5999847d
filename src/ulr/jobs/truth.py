"""True labels of the rows of a table. They report, never choose."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ulr.classifier import Predictions, Settings
from ulr.errors import LabelError, TableError
from ulr.jobs.result import Comparison, compare
from ulr.jobs.support import LabelMatching
from ulr.tables import Batch, Table


class TrueLabels:
    """True labels and predictions of all rows, collected batch by batch; none without a column."""

    def __init__(self, table: Table, column: str | None, settings: Settings) -> None:
        if column is not None:
            table.check_columns([column], "--truth")
        none = [] if settings.none_share is None else [settings.none_label]
        self._names = [*settings.label_set.names, *none]
        self._table, self._column = table, column
        self._matching = LabelMatching(self._names)
        self._index = {name: i for i, name in enumerate(self._names)} | {"": -1}
        self._found: list[int] = []
        self._predicted: list[tuple[NDArray[Any], ...]] = []

    def add(self, batch: Batch, predictions: Predictions) -> NDArray[np.intp] | None:
        """Add the next rows; their true labels, -1 where unknown, or None without a column."""
        if self._column is None:
            return None
        self._predicted.append((predictions.labels, predictions.unrefined, predictions.confidence))
        for place, value in enumerate(batch.column(self._column)):
            name = self._matching.find(value)
            if name is None:
                raise LabelError(
                    f"{batch.where(place)}: the true label {str(value)[:60]!r} is not a label; the "
                    f"labels are: {', '.join(self._names)}. In a label file, 'name: phrase' gives a "
                    "name other words to be encoded."
                )
            self._found.append(self._index[name])
        return np.array(self._found[-len(batch) :], dtype=np.intp)

    def compare(self, names: Sequence[str]) -> Comparison | None:
        """Compare with the predictions; None without a column."""
        if self._column is None:
            return None
        truth = np.array(self._found, dtype=np.intp)
        labels, unrefined, confidence = map(np.concatenate, zip(*self._predicted, strict=True))
        n_folded = self._matching.n_folded
        found = compare(truth, labels, unrefined, confidence, names, n_folded)
        if found is None:
            raise TableError(
                f"{self._table.name}: no row has a true label in column {self._column!r}."
            )
        return found
