"""Classify the documents of a table: fit a classifier on them, write every row with its label."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from ulr.fitting import TextClassifier
from ulr.inputs import Setup
from ulr.jobs.documents import LabelledRows, Sample, Tally, read_documents
from ulr.jobs.output import Output, refuse_columns
from ulr.jobs.progress import CalibrationProgress, Listener, SetProgress, Silent
from ulr.jobs.reports import JobReport
from ulr.jobs.support import Support
from ulr.jobs.vectors import encode_documents
from ulr.model import Model
from ulr.tables import Added, Batch, Table

ADDED_COLUMNS: dict[str, type] = {"label": str, "confidence": float, "unrefined": str}


def classify_file(
    table: Table,
    columns: Sequence[str],
    classifier: TextClassifier,
    output: Output | None = None,
    listener: Listener | None = None,
    support: Support | None = None,
) -> JobReport:
    """Fit a classifier on the documents of a table, and write every row with its label.

    Of more documents than the classifier fits on, a seeded random sample is kept in memory; the
    others are classified while the output is written.

    Parameters
    ----------
    table
        The documents.
    columns
        The columns that make up a document.
    classifier
        The classifier; it is fitted afterwards.
    output
        Where to write. A file appears complete or not at all.
    listener
        Hears the progress, and can end the job by raising an exception.
    support
        Labelled examples and further texts to refine on.
    """
    started = time.perf_counter()
    output, listener = output or Output(), listener or Silent()
    output.refuse(table, [output.prefix + name for name in ADDED_COLUMNS])
    fitted = fit_table(table, columns, classifier, listener, support)
    tally = write_labels(
        fitted.table, fitted.rows(), classifier.model_, output, listener, refined=True
    )
    return replace(fitted.report(tally), seconds=time.perf_counter() - started, output=output.path)


@dataclass(frozen=True, eq=False)
class FittedTable:
    """A classifier that was fitted on the documents of a table.

    Attributes
    ----------
    table, columns
        The table, and the columns that make up a document.
    classifier
        The fitted classifier.
    sample
        The documents that it was fitted on.
    support
        Labelled examples and further texts that took part.
    truncated_before
        Texts that the encoder had truncated before the job; None where it does not count them.
    """

    table: Table
    columns: Sequence[str]
    classifier: TextClassifier
    sample: Sample
    support: Support
    truncated_before: int | None

    def rows(self) -> LabelledRows:
        """The rows of the table with predictions."""
        sample = self.sample
        predictions = self.classifier._fitted.rows(slice(len(sample.texts)))
        return LabelledRows(
            self.table,
            self.columns,
            self.classifier.model_,
            sample.n_rows,
            predictions,
            sample.rows,
        )

    def report(self, tally: Tally) -> JobReport:
        """What was done, without time and output."""
        classifier, refinement = self.classifier, self.classifier.refinement_
        phrasings, encoder = classifier.phrasings_, classifier.model_.encoder
        return replace(
            tally_report(tally, self.sample, classifier.model_, self.truncated_before),
            moved=tally.moved,
            moved_documents=tally.surest_moves,
            encoder=getattr(encoder, "spec", None) or type(encoder).__name__,
            method=refinement.method,
            method_reason=refinement.reason,
            iterations=refinement.n_iter,
            converged=refinement.converged,
            fitted_documents=refinement.n_fitted,
            diagnosis=classifier.diagnosis_,
            phrasings=None if phrasings is None else len(phrasings),
            possible_phrasings=None if phrasings is None else phrasings.n_possible,
            examples=len(self.support.examples),
            extra_texts=len(self.support.extra_texts),
            extra_labels=len(classifier.extra_labels_),
            malformed_lines=getattr(encoder, "malformed_lines", None),
        )


def fit_table(
    table: Table,
    columns: Sequence[str],
    classifier: TextClassifier,
    listener: Listener,
    support: Support | None = None,
) -> FittedTable:
    """Read the documents of a table and fit a classifier on them; see `classify_file`."""
    setup = classifier._resolve()
    table, sample = read_documents(
        table, columns, listener, classifier._fit_limit(setup.method), classifier.random_state
    )
    return fit_documents(table, columns, classifier, sample, listener, support, setup)


def fit_documents(
    table: Table,
    columns: Sequence[str],
    classifier: TextClassifier,
    sample: Sample,
    listener: Listener,
    support: Support | None = None,
    setup: Setup | None = None,
) -> FittedTable:
    """Fit a classifier on documents that were read from a table.

    Parameters
    ----------
    table, columns, classifier, listener, support
        As for `classify_file`.
    sample
        The documents.
    setup
        What `classifier._resolve` returned, if it was called before.
    """
    support, setup = support or Support(), setup or classifier._resolve()
    truncated_before = truncated_texts(setup.text_encoder)
    listener.stage("Encoding", len(sample.texts) + len(support.examples) + len(support.extra_texts))
    texts = [*sample.texts, *support.examples]
    known = [*[None] * len(sample.texts), *support.labels] if support.labels else None
    vectors, word_counts = encode_documents(
        setup.text_encoder,
        texts,
        listener.advance,
        with_words=setup.uses_words,
        n_jobs=classifier.n_jobs,
    )
    classifier._fit(
        texts,
        known,
        embeddings=vectors,
        word_counts=word_counts,
        setup=setup,
        extra=support.extra_texts or None,
        on_texts=listener.advance,
        on_pass=listener.passed,
        on_set=SetProgress(listener),
        on_calibration=CalibrationProgress(listener),
    )
    return FittedTable(table, columns, classifier, sample, support, truncated_before)


def write_labels(
    table: Table,
    rows: LabelledRows,
    model: Model,
    output: Output,
    listener: Listener,
    refined: bool,
) -> Tally:
    """Write the rows of a table with labels and confidence, and count the labels.

    Parameters
    ----------
    table, rows
        The table, and its rows with predictions.
    model
        The model that predicted them.
    output
        Where to write.
    listener
        Hears the progress.
    refined
        Whether to write the labels before refinement too.
    """
    names, tally = model.names, Tally(model, refined)
    added = {output.prefix + name: kind for name, kind in ADDED_COLUMNS.items()}
    if not refined:
        added.pop(output.prefix + "unrefined")

    def with_labels(batches: Iterable[Batch], last: bool) -> Iterator[tuple[Batch, Added]]:
        for batch, texts, predictions in rows.of(batches):
            tally.add(texts, predictions)
            values = [names[predictions.labels].tolist(), predictions.confidence.tolist()]
            if refined:
                values.append(names[predictions.unrefined].tolist())
            yield batch, dict(zip(added, values, strict=True))
            listener.advance(len(texts))
        if last:
            rows.finish()

    if output.path is not None:
        refuse_columns(table, list(added))
    listener.stage("Labelling" if output.path is None else "Writing", rows.n_rows)
    output.write(table, with_labels, added)
    return tally


def tally_report(
    tally: Tally, sample: Sample, model: Model, truncated_before: int | None
) -> JobReport:
    """The part of a report that predictions of a fitted model have too."""
    after = truncated_texts(model.text_encoder)
    return JobReport(
        documents=sample.n_rows,
        empty_documents=sample.n_empty,
        unknown_documents=max(0, tally.unlabelled - sample.n_empty),
        truncated_documents=None if after is None else after - (truncated_before or 0),
        labels=tally.counts(),
        without_label=tally.without_label,
        least_certain=tally.least_certain,
        seconds=0.0,
        output=None,
    )


def truncated_texts(encoder: object) -> int | None:
    """Texts that an encoder has truncated so far, if it counts them."""
    return getattr(encoder, "truncated", None)
