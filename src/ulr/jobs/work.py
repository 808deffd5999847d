"""The jobs themselves: everything that can be refused is refused before the long part."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ulr.classifier import DatalessClassifier
from ulr.encoders import in_batches
from ulr.errors import LabelError, TableError
from ulr.files import refuse_existing
from ulr.jobs.support import Support, label_name
from ulr.jobs.told import (
    EvaluationReport,
    JobReport,
    LabelCounts,
    Listener,
    Output,
    ShownDocument,
    Silent,
)
from ulr.metrics import calibration_error, evaluate
from ulr.tables import Batch, Table, format_of_name, unknown_ending, write_table

_SHOWN_DOCUMENTS = 5
_EXCERPT = 160


def classify_file(
    source: Table,
    columns: Sequence[str],
    classifier: DatalessClassifier,
    output: Output | None = None,
    listener: Listener | None = None,
    support: Support | None = None,
) -> JobReport:
    """Fit the classifier on a table's documents and write every row with its category.

    Parameters
    ----------
    source
        The documents.
    columns
        The columns that make up a document.
    classifier
        A classifier to fit; it is fitted afterwards.
    output
        Where to write. Nothing is written, and an older file kept, unless all goes well.
    listener
        Told how far it is.
    support
        Examples and further texts to refine on beside the documents.
    """
    support = support or Support()
    job = Job(source, columns, output, listener, ["label", "confidence", "unrefined"])
    encoder = classifier.encoder
    cut_before = 0 if isinstance(encoder, str) else _truncated(encoder)
    job.listener.stage("Encoding", job.n_rows + len(support))
    known = [*[None] * job.n_rows, *support.labels] if support.labels else None
    classifier.fit_batches(
        chain(job.texts(), in_batches(list(support.examples))),
        known,
        extra_batches=support.extra_texts(),
        on_texts=job.listener.advance,
        on_pass=job.listener.passed,
        on_set=SetsOf(job.listener),
    )
    refinement, wordings = classifier.refinement_, classifier.wordings_
    own = slice(job.n_rows)
    predictions, is_none = refinement.predictions[own], classifier.is_none_[own]
    outcome = _Outcome(
        _names(classifier),
        np.where(is_none, len(classifier.classes_), predictions),
        _confidence(classifier, predictions, refinement.scores[own]),
        refinement.unrefined[own],
    )
    report = job.finish(outcome, _difference(_truncated(classifier.text_encoder_), cut_before))
    return replace(
        report,
        iterations=refinement.n_iterations,
        kept_iteration=refinement.kept,
        converged=refinement.converged,
        unknown_documents=max(0, refinement.n_zero_documents - report.empty_documents),
        malformed_lines=getattr(classifier.encoder_, "malformed_lines", None),
        wordings=None if wordings is None else len(wordings),
        possible_wordings=None if wordings is None else wordings.n_possible,
        examples=len(support.examples),
        extra_texts=support.n_extra,
        extra_labels=len(classifier.extra_labels_),
    )


class SetsOf:
    """Tells a listener about the sets of an ensemble."""

    def __init__(self, listener: Listener) -> None:
        self._listener, self._begun = listener, False

    def __call__(self, total: int) -> None:
        """A set is done."""
        if not self._begun:
            self._listener.stage("Refining", total, "sets of names")
            self._begun = True
        self._listener.advance(1)


def predict_file(
    source: Table,
    columns: Sequence[str],
    classifier: DatalessClassifier,
    output: Output | None = None,
    listener: Listener | None = None,
) -> JobReport:
    """Classify a table's documents with a fitted classifier; as `classify_file`."""
    job = Job(source, columns, output, listener, ["label", "confidence"])
    cut_before = _truncated(classifier.text_encoder_)
    job.listener.stage("Encoding", job.n_rows)
    predictions, confidence = [], []
    for texts in job.texts():
        labels, scores, is_none = classifier.judge(texts)
        predictions.append(np.where(is_none, len(classifier.classes_), labels))
        confidence.append(_confidence(classifier, labels, scores))
        job.listener.advance(len(texts))
    outcome = _Outcome(
        _names(classifier), np.concatenate(predictions), np.concatenate(confidence), None
    )
    return job.finish(outcome, _difference(_truncated(classifier.text_encoder_), cut_before))


def evaluate_file(
    source: Table,
    columns: Sequence[str],
    truth_column: str,
    classifier: DatalessClassifier,
    listener: Listener | None = None,
    support: Support | None = None,
) -> EvaluationReport:
    """Fit the classifier on a table's documents and compare with the truth of the rows.

    The truth is read when the predictions are done, and used for nothing else.
    """
    source.check_columns([truth_column], "--truth")
    report = classify_file(source, columns, classifier, None, listener, support)
    names = [str(name) for name in classifier.classes_]
    truth = read_truth(source, truth_column, names)
    has = truth >= 0
    if not has.any():
        raise TableError(f"{source.name}: column {truth_column!r} has no truth for any row.")
    refinement, own = classifier.refinement_, slice(len(truth))
    predictions, scores = refinement.predictions[own], refinement.scores[own]
    after = predictions[has]
    sure = _confidence(classifier, predictions, scores)[has]
    return EvaluationReport(
        job=report,
        before=evaluate(truth[has], refinement.unrefined[own][has], names),
        after=evaluate(truth[has], after, names),
        calibration_error=calibration_error(after == truth[has], sure),
        without_truth=int((~has).sum()),
    )


@dataclass(frozen=True, eq=False)
class _Outcome:
    """The categories of all rows."""

    names: NDArray[np.str_]
    predictions: NDArray[np.intp]
    confidence: NDArray[np.float64]
    unrefined: NDArray[np.intp] | None

    def columns(self, rows: slice) -> list[list[Any]]:
        values: list[list[Any]] = [
            self.names[self.predictions[rows]].tolist(),
            self.confidence[rows].tolist(),
        ]
        if self.unrefined is not None:
            values.append(self.names[self.unrefined[rows]].tolist())
        return values

    def least_certain(self) -> list[int]:
        return np.argsort(self.confidence, kind="stable")[:_SHOWN_DOCUMENTS].tolist()

    def moved(self) -> NDArray[np.intp]:
        """Rows whose label differs from the unrefined one, the surest first."""
        if self.unrefined is None:
            return np.empty(0, dtype=np.intp)
        rows = np.flatnonzero(self.predictions != self.unrefined)
        return rows[np.argsort(-self.confidence[rows], kind="stable")]

    def show(self, row: int, text: str) -> ShownDocument:
        unrefined = None if self.unrefined is None else str(self.names[self.unrefined[row]])
        label = str(self.names[self.predictions[row]])
        return ShownDocument(row + 1, text, label, unrefined, float(self.confidence[row]))

    def counts(self) -> tuple[LabelCounts, ...]:
        n = len(self.names)
        after = np.bincount(self.predictions, minlength=n).tolist()
        before: list[int | None] = [None] * n
        if self.unrefined is not None:
            before = np.bincount(self.unrefined, minlength=n).tolist()
        rows = zip(self.names, before, after, strict=True)
        return tuple(LabelCounts(str(name), b, a) for name, b, a in rows)


class Job:
    """One table on its way from documents to categories.

    Everything that can be refused is refused here, before the long part: a bad output name, a
    taken column, a broken row at the end of the file.
    """

    def __init__(
        self,
        source: Table,
        columns: Sequence[str],
        output: Output | None,
        listener: Listener | None,
        added: list[str],
    ) -> None:
        self.source, self._columns = source, columns
        self.listener: Listener = listener or Silent()
        self._started = time.perf_counter()
        self._output = output or Output()
        self._added = [self._output.prefix + name for name in added]
        self._check_output()
        self.n_rows, self._n_empty = self._read_through()

    def texts(self) -> Iterator[list[str]]:
        """The documents, batch by batch."""
        for batch in self.source.batches():
            yield self.source.texts(batch, self._columns)

    def excerpts(self, wanted: Sequence[int]) -> dict[int, str]:
        """The beginnings of the documents in some rows, counted from 0."""
        found: dict[int, str] = {}
        row = 0
        for texts in self.texts():
            found |= {i: excerpt(texts[i - row]) for i in wanted if row <= i < row + len(texts)}
            row += len(texts)
        return found

    def finish(self, outcome: _Outcome, truncated: int | None) -> JobReport:
        """Write the rows, pick the documents worth a look, report."""
        least_certain, moved = outcome.least_certain(), outcome.moved()
        surest_moved = moved[:_SHOWN_DOCUMENTS].tolist()
        excerpts = dict.fromkeys([*least_certain, *surest_moved], "")
        rows = self._rows_with_categories(outcome, excerpts)
        self.listener.stage("Writing" if self._output.path else "Looking", self.n_rows)
        if self._output.path is None:
            for _ in rows:
                pass
        else:
            kinds = dict(zip(self._added, (str, float, str), strict=False))
            write_table(self._output.path, self.source, rows, kinds)
        return JobReport(
            documents=self.n_rows,
            empty_documents=self._n_empty,
            truncated_documents=truncated,
            labels=outcome.counts(),
            seconds=time.perf_counter() - self._started,
            output=self._output.path,
            least_certain=tuple(outcome.show(row, excerpts[row]) for row in least_certain),
            moved=None if outcome.unrefined is None else len(moved),
            moved_documents=tuple(outcome.show(row, excerpts[row]) for row in surest_moved),
        )

    def _check_output(self) -> None:
        path = self._output.path
        for name in self._added:
            if name in self.source.columns:
                raise TableError(
                    f"{self.source.name} already has a column {name!r}; choose another beginning "
                    "for the added columns with --prefix."
                )
        if path is None or path == "-":
            return
        if format_of_name(path) is None:
            raise TableError(unknown_ending(path))
        if Path(path).is_dir():
            raise TableError(f"{path} is a folder; name a file to write.")
        refuse_existing(Path(path), self._output.force, TableError, "--force")

    def _read_through(self) -> tuple[int, int]:
        """Count the rows and the empty documents, and meet any broken row before the long part."""
        self.listener.stage("Reading", None)
        n_rows = n_empty = 0
        for texts in self.texts():
            n_rows += len(texts)
            n_empty += sum(not text.strip() for text in texts)
            self.listener.advance(len(texts))
        if n_rows == 0:
            raise TableError(f"{self.source.name} has no rows.")
        return n_rows, n_empty

    def _rows_with_categories(self, outcome: _Outcome, excerpts: dict[int, str]) -> Iterator[Batch]:
        """The table's rows with the added columns; texts of the wanted rows on the way."""
        row = 0
        for batch in self.source.batches():
            rows = slice(row, row + len(batch))
            wanted = [each for each in excerpts if rows.start <= each < rows.stop]
            if wanted:
                texts = self.source.texts(batch, self._columns)
                excerpts.update({each: excerpt(texts[each - row]) for each in wanted})
            values = outcome.columns(rows)
            row = rows.stop
            if row > self.n_rows:
                break
            yield batch.with_columns(dict(zip(self._added, values, strict=True)))
            self.listener.advance(len(batch))
        if row != self.n_rows:
            raise TableError(f"{self.source.name} changed while it was being read.")


def read_truth(source: Table, column: str, names: list[str]) -> NDArray[np.intp]:
    """Index of the true label of each row, -1 where there is none."""
    index = {name: i for i, name in enumerate(names)}
    truth: list[int] = []
    for batch in source.batches():
        for offset, value in enumerate(batch.column(column)):
            name = label_name(value)
            if name and name not in index:
                raise LabelError(
                    f"{source.name} row {batch.first_row + offset + 1}: the truth {name!r} is not "
                    f"a label; the labels are: {', '.join(names)}. A label file can give "
                    "a name other words to encode: 'name: phrase'."
                )
            truth.append(index[name] if name else -1)
    return np.array(truth, dtype=np.intp)


def _names(classifier: DatalessClassifier) -> NDArray[np.str_]:
    """The names of the labels, and of none of them where that can be the answer."""
    if classifier.none_threshold_ is None:
        return np.asarray(classifier.classes_)
    return np.append(classifier.classes_, classifier.none_label)


def _confidence(
    classifier: DatalessClassifier, predictions: NDArray[np.intp], scores: NDArray[np.float32]
) -> NDArray[np.float64]:
    """Probability of each predicted label, to four decimals, a few rows at a time."""
    confidence = np.empty(len(predictions))
    for start in range(0, len(predictions), 8192):
        rows = slice(start, start + 8192)
        probabilities = classifier.probabilities(scores[rows])
        confidence[rows] = np.take_along_axis(probabilities, predictions[rows, None], axis=1)[:, 0]
    return confidence.round(4)


def excerpt(text: str) -> str:
    """The beginning of a text, on one line."""
    text = " ".join(text.split())
    return text if len(text) <= _EXCERPT else text[: _EXCERPT - 1].rstrip() + "…"


def _truncated(encoder: object) -> int | None:
    """How many texts an encoder has cut, if it says."""
    return getattr(encoder, "truncated", None)


def _difference(after: int | None, before: int | None) -> int | None:
    return None if after is None else after - (before or 0)
