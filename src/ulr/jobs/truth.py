"""True labels of the rows of a table. They report, never choose."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ulr.classifier import Predictions, Settings
from ulr.errors import TableError
from ulr.jobs.result import Comparison, compare
from ulr.jobs.support import LabelMatching
from ulr.labels import shown
from ulr.tables import Batch, Table

_SHOWN = 3


class TrueLabels:
    """True labels and predictions of all rows, collected batch by batch."""

    def __init__(self, table: Table, column: str, settings: Settings) -> None:
        table.check_columns([column], "--truth")
        none = [] if settings.none_share is None else [settings.none_label]
        self._table, self._column = table, column
        self._names = [*settings.label_set.names, *none]
        self._matching = LabelMatching(self._names)
        self._index = {name: i for i, name in enumerate(self._names)} | {"": -1}
        # Where documents may get the none label, it is right for what belongs to no other label.
        self._no_label = self._index[none[0]] if none else -1
        self._others: Counter[str] = Counter()
        self._found: list[int] = []
        self._predicted: list[tuple[NDArray[Any], ...]] = []

    def add(self, batch: Batch, predictions: Predictions) -> NDArray[np.intp]:
        """Add the next rows; their true labels, -1 where unknown."""
        self._predicted.append((predictions.labels, predictions.unrefined, predictions.confidence))
        for value in batch.column(self._column):
            name = self._matching.find(value)
            if name is None:  # documents that belong to no label are normal
                self._others["" if value is None else str(value)] += 1
            self._found.append(self._no_label if name is None else self._index[name])
        return np.array(self._found[-len(batch) :], dtype=np.intp)

    def compare(self) -> Comparison:
        """Compare the true labels with the predictions."""
        truth = np.array(self._found, dtype=np.intp)
        labels, unrefined, confidence = map(np.concatenate, zip(*self._predicted, strict=True))
        if len(self._matching.names_found) < 1:
            values = ", ".join(shown(value) for value, _ in self._others.most_common(_SHOWN))
            raise TableError(
                f"{self._table.name}: no row has a true label in column {self._column!r}"
                + (f"; it has {values}, and the labels are " if values else ", and the labels are ")
                + f"{', '.join(self._names)}."
            )
        figures = self._names, self._matching.n_folded, self._others
        found = compare(truth, labels, unrefined, confidence, *figures)
        assert found is not None
        return found
