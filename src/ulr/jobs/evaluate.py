"""Classify the documents of a table and compare the labels with true ones."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ulr.errors import LabelError, TableError
from ulr.fitting import TextClassifier
from ulr.jobs.classify import fit_table
from ulr.jobs.documents import Tally
from ulr.jobs.progress import Listener, Silent
from ulr.jobs.reports import EvaluationReport
from ulr.jobs.support import LabelMatching, Support
from ulr.metrics import calibration_error, evaluate
from ulr.tables import Batch, Table


def evaluate_file(
    table: Table,
    columns: Sequence[str],
    truth_column: str,
    classifier: TextClassifier,
    listener: Listener | None = None,
    support: Support | None = None,
) -> EvaluationReport:
    """Fit a classifier on the documents of a table and compare its labels with true ones.

    The true labels are read after the classifier is fitted, and only used for the figures. Other
    parameters are those of `classify_file`.

    Parameters
    ----------
    truth_column
        The column of true labels. Case and surrounding blanks do not matter; rows without a true
        label are in no figure.
    """
    started = time.perf_counter()
    listener = listener or Silent()
    table.check_columns([truth_column], "--truth")
    fitted = fit_table(table, columns, classifier, listener, support)
    model = classifier.model_
    names = [str(name) for name in model.names[:-1]]
    truth = TrueLabels(table, truth_column, names)
    tally, rows = Tally(model, refined=True), fitted.rows()
    labels, unrefined, confidence = [], [], []
    listener.stage("Labelling", rows.n_rows)
    for batch, texts, predictions in rows.of(table.batches()):
        tally.add(texts, predictions)
        truth.add(batch)
        labels.append(predictions.labels)
        unrefined.append(predictions.unrefined)
        confidence.append(predictions.confidence)
        listener.advance(len(texts))
    rows.finish()
    true = truth.indices()
    has = true >= 0
    after, before = np.concatenate(labels)[has], np.concatenate(unrefined)[has]
    return EvaluationReport(
        job=replace(fitted.report(tally), seconds=time.perf_counter() - started),
        before=evaluate(true[has], before, names),
        after=evaluate(true[has], after, names),
        calibration_error=calibration_error(after == true[has], np.concatenate(confidence)[has]),
        without_truth=int((~has).sum()),
        folded_truth=truth.n_folded,
    )


class TrueLabels:
    """True labels of the rows of a table, collected batch by batch.

    Parameters
    ----------
    table, column
        The table, and the column of true labels.
    names
        Names of the labels.
    """

    def __init__(self, table: Table, column: str, names: Sequence[str]) -> None:
        self._table, self._column, self._names = table, column, names
        self._matching = LabelMatching(names)
        self._index = {name: i for i, name in enumerate(names)} | {"": -1}
        self._found: list[int] = []

    @property
    def n_folded(self) -> int:
        """Rows whose true label equals a name only if case and blanks are ignored."""
        return self._matching.n_folded

    def add(self, batch: Batch) -> None:
        """Add the next rows."""
        for value in batch.column(self._column):
            name = self._matching.find(value)
            if name is None:
                raise LabelError(
                    f"{self._table.name} row {len(self._found) + 1}: the true label "
                    f"{str(value)[:60]!r} is not a label; the labels are: "
                    f"{', '.join(self._names)}. In a label file, 'name: phrase' gives a name other "
                    "words to be encoded."
                )
            self._found.append(self._index[name])

    def indices(self) -> np.ndarray[tuple[int], np.dtype[np.intp]]:
        """(n_rows,) index of each true label, -1 where there is none; refuses none at all."""
        indices = np.array(self._found, dtype=np.intp)
        if not (indices >= 0).any():
            raise TableError(
                f"{self._table.name}: no row has a true label in column {self._column!r}."
            )
        return indices
