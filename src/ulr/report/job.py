"""Reports on the documents of a table, and on a list of texts."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ulr.encoders import encode_texts
from ulr.inputs import known_labels
from ulr.jobs import JobReport, Listener, Output, Silent, Support, TrueLabels
from ulr.jobs.classify import fit_table, write_labels
from ulr.jobs.documents import LabelledRows
from ulr.model import Predictions
from ulr.report.collect import Collector
from ulr.report.render import Report
from ulr.tables import Batch, Table

if TYPE_CHECKING:
    from ulr.fitting import TextClassifier

_ADDED = ("label", "confidence", "unrefined")


def report_file(
    table: Table,
    columns: Sequence[str],
    classifier: TextClassifier,
    output: Output | None = None,
    listener: Listener | None = None,
    support: Support | None = None,
    *,
    truth_column: str | None = None,
) -> tuple[Report, JobReport]:
    """Fit a classifier on the documents of a table, as `ulr.jobs.classify_file`, and report on it.

    Parameters
    ----------
    table, columns, classifier, output, listener, support
        As in `ulr.jobs.classify_file`.
    truth_column
        A column of true labels, only used for figures.
    """
    started = time.perf_counter()
    output, listener = output or Output(), listener or Silent()
    if truth_column is not None:
        table.check_columns([truth_column], "--truth")
    output.refuse(table, [output.prefix + name for name in _ADDED] if output.path else [])
    fitted = fit_table(table, columns, classifier, listener, support)
    model = classifier.model_
    names = model.names[:-1].tolist()
    truth = None if truth_column is None else TrueLabels(table, truth_column, names)
    collector = Collector(model, classifier.random_state, with_truth=truth is not None)
    rows = _CollectedRows(fitted.rows(), collector, truth)
    tally = write_labels(fitted.table, rows, model, output, listener, refined=True)
    seconds = time.perf_counter() - started
    job = replace(fitted.report(tally), seconds=seconds, output=output.path)
    listener.stage("Drawing", None)
    name = Path(table.name).name
    data = collector.finish(
        classifier,
        title=name,
        source=name,
        seconds=seconds,
        notes=_notes(job),
        truth=None if truth is None else truth.indices(),
        on_texts=listener.advance,
    )
    return Report(data), job


def _notes(job: JobReport) -> list[str]:
    """Sentences about what took part beside documents and labels."""
    notes = []
    for count, what in (
        (job.phrasings, "phrasings were refined and their scores averaged"),
        (job.examples, "labelled examples took part"),
        (job.extra_texts, "further texts took part in the refinement"),
        (job.extra_labels, "further labels took part in the refinement"),
        (job.truncated_documents, "documents were truncated by the encoder"),
    ):
        if count:
            notes.append(f"{count:,} {what}.")
    return notes


def report_texts(
    classifier: TextClassifier,
    texts: list[str],
    *,
    truth: Iterable[Any] | None = None,
    title: str = "Classified texts",
) -> Report:
    """A report on texts and their labels by a fitted classifier.

    Parameters
    ----------
    classifier
        The fitted classifier.
    texts
        The documents, usually the fitted ones.
    truth
        True labels, None where unknown; only used for figures.
    title
        Title of the report.
    """
    started = time.perf_counter()
    model = classifier.model_
    known = None
    if truth is not None:
        known = known_labels(truth, model.label_set.names, len(texts))[0].astype(np.intp)
    vectors = encode_texts(model.text_encoder, texts)
    collector = Collector(model, classifier.random_state, with_truth=known is not None)
    collector.add(texts, model.predict(texts, vectors))
    seconds = time.perf_counter() - started
    return Report(
        collector.finish(classifier, title=title, seconds=seconds, vectors=vectors, truth=known)
    )


def report_sample(
    classifier: TextClassifier,
    texts: list[str],
    rows: Sequence[int],
    job: JobReport,
    *,
    title: str,
    listener: Listener | None = None,
) -> Report:
    """A report on a sample of the documents of a job.

    Parameters
    ----------
    classifier
        The fitted classifier; if it was loaded, the report has no passes.
    texts, rows
        Documents, and their positions among all.
    job
        What the job did.
    title
        Title of the report.
    listener
        Hears the progress.
    """
    listener = listener or Silent()
    listener.stage("Drawing", None)
    model = classifier.model_
    collector = Collector(model, classifier.random_state)
    collector.add(texts, model.predict(texts))
    data = collector.finish(
        classifier,
        title=title,
        source=title,
        seconds=job.seconds,
        notes=_notes(job),
        on_texts=listener.advance,
    )
    sampled_from = job.documents if len(texts) < job.documents else None
    data = replace(
        data,
        run=replace(data.run, fitted=job.fitted_documents, sampled_from=sampled_from),
        diagnosis=None if job.diagnosis is None else job.diagnosis.as_dict(),
        documents=replace(
            data.documents, row=[int(rows[row - 1]) + 1 for row in data.documents.row]
        ),
    )
    return Report(data)


class _CollectedRows(LabelledRows):
    """The rows of a table with predictions, which a collector sees as they are read."""

    def __init__(self, rows: LabelledRows, collector: Collector, truth: TrueLabels | None) -> None:
        self._labelled_rows, self._collector, self._truth = rows, collector, truth
        self.n_rows = rows.n_rows

    def of(self, batches: Iterable[Batch]) -> Iterator[tuple[Batch, list[str], Predictions]]:
        """The next batches of the table, their documents and predictions."""
        for batch, texts, predictions in self._labelled_rows.of(batches):
            self._collector.add(texts, predictions)
            if self._truth is not None:
                self._truth.add(batch)
            yield batch, texts, predictions

    def finish(self) -> None:
        """Refuse a table that has more or fewer rows than when it was first read."""
        self._labelled_rows.finish()
