"""True labels of the rows of a table. They report, never choose."""

from __future__ import annotations

import json
from collections import Counter
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ulr.classifier import Fitted, Predictions, Settings, place
from ulr.errors import TableError
from ulr.jobs.result import Comparison, compare, level_figures
from ulr.jobs.support import LabelMatching
from ulr.label_files import shown
from ulr.metrics import MultilabelFigures, evaluate_sets
from ulr.tables import Batch, Table

_SHOWN = 3


class TrueLabelSets:
    """Several true labels and predictions of all rows, collected batch by batch.

    A cell is a list, a list as JSON, or names with ``;`` between them.
    """

    def __init__(self, table: Table, column: str, settings: Settings) -> None:
        table.check_columns([column], "--truth")
        self._table, self._column = table, column
        names = settings.label_set.names
        self._matching = LabelMatching(names)
        self._index = {name: i for i, name in enumerate(names)}
        self._true: list[NDArray[np.bool_]] = []
        self._assigned: list[NDArray[np.bool_]] = []

    def add(self, batch: Batch, fitted: Fitted, predictions: Predictions) -> NDArray[np.intp]:
        """Add the next rows; one of their true labels, -1 where they have none."""
        assert fitted.chances is not None
        true = np.zeros((len(batch), len(self._index)), dtype=bool)
        for row, cell in enumerate(batch.column(self._column)):
            for value in _names_in(cell):
                name = self._matching.name_of(value, batch.where(row))
                if name:
                    true[row, self._index[name]] = True
        self._true.append(true)
        self._assigned.append(fitted.chances.assigned(predictions))
        return np.where(true.any(axis=1), true.argmax(axis=1), -1)

    def compare(self) -> MultilabelFigures:
        """Compare the true labels with the predictions, where there are any."""
        true, assigned = np.concatenate(self._true), np.concatenate(self._assigned)
        known = true.any(axis=1)
        if not known.any():
            raise TableError(
                f"{self._table.name}: no row has a true label in column {self._column!r}."
            )
        return evaluate_sets(true[known], assigned[known])


def _names_in(cell: object) -> list[object]:
    """The names in a cell of true labels."""
    if isinstance(cell, str) and cell.lstrip().startswith("["):
        with suppress(ValueError):
            cell = json.loads(cell)
    if isinstance(cell, str):
        return list(cell.split(";"))
    return list(cell) if isinstance(cell, list | tuple) else [cell]


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
        self._tree = settings.label_set.tree
        self._nodes: list[NDArray[np.intp]] = []

    def add(self, batch: Batch, fitted: Fitted, predictions: Predictions) -> NDArray[np.intp]:
        """Add the next rows; their true labels, -1 where unknown."""
        if (placement := place(fitted, predictions)) is not None:
            self._nodes.append(placement.nodes)
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
        if self._tree is None:
            return found
        levels = level_figures(self._tree, truth, np.concatenate(self._nodes))
        return replace(found, levels=tuple(levels))
