"""Classify the documents of a table: read, sample, encode, fit, label, write."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ulr.classifier import (
    Fitted,
    Predictions,
    Settings,
    advise,
    explain,
    fit,
    place,
    resolve,
    share_to_read,
    teach,
)
from ulr.jobs.documents import Documents, Labelled, draw_sample, label_rows
from ulr.jobs.output import Output, added_columns
from ulr.jobs.result import Result, Tally
from ulr.jobs.sample import Sample
from ulr.jobs.support import NO_SUPPORT, Support
from ulr.jobs.truth import TrueLabels, TrueLabelSets
from ulr.progress import NO_PROGRESS, Progress
from ulr.tables import Added, Batch

_TAUGHT = 50_000  # documents that a student of a saved model is fitted on

Collect = Callable[[list[str], Predictions, NDArray[np.intp] | None], None]


def classify(
    documents: Documents,
    settings: Settings,
    output: Output | None = None,
    progress: Progress = NO_PROGRESS,
    *,
    support: Support = NO_SUPPORT,
    truth_column: str | None = None,
    collect: Collect | None = None,
) -> tuple[Fitted, Result]:
    """Fit a classifier on the documents of a table, and write every row with its label.

    Of more documents than the classifier fits on, a sample is kept in memory; the others are
    classified while the output is written.

    Parameters
    ----------
    documents
        The documents.
    settings
        The parameters of the classifier.
    output
        Where to write; nowhere by default. A file appears complete or not at all.
    progress
        Receives the progress, and can cancel the job.
    support
        Labelled examples and further texts to fit on.
    truth_column
        A column of true labels. They are only used for figures, after the fit.
    collect
        Called with the texts of every batch, their predictions, and their true labels if any.
    """
    started = time.perf_counter()
    output, settings = output or Output(), resolve(settings, progress)
    output.check(documents.table, settings)
    truth: TrueLabels | TrueLabelSets | None = None
    if truth_column is not None:
        kind = TrueLabelSets if settings.multilabel else TrueLabels
        truth = kind(documents.table, truth_column, settings)
    n_truncated = truncated_texts(settings.encoder)
    fitted, sample = fit_documents(documents, settings, progress, support)
    if collect is None:  # their memory is free while the rows are labelled
        fitted = replace(fitted, documents=None, inputs=None)
    tally, rows = Tally(fitted), label_rows(documents, fitted, sample)
    if truth is not None or collect is not None:
        rows = _observed(rows, fitted, truth, collect)
    write_rows(documents, rows, tally, fitted, output, progress, sample.n_rows)
    return fitted, tally.result(
        sample.n_empty,
        truncated_documents=truncated_texts(settings.encoder, n_truncated),
        examples=len(support.examples),
        extra_texts=len(support.extra_texts),
        **_comparison(truth),
        seconds=time.perf_counter() - started,
        output=output.path,
    )


def fit_documents(
    documents: Documents, settings: Settings, progress: Progress, support: Support = NO_SUPPORT
) -> tuple[Fitted, Sample]:
    """Fit a classifier on the documents of a table, or a sample of them, with its adviser if any."""
    sample = draw_sample(documents, settings.fit_limit, settings.random_state, progress)
    return advise(fit_sample(sample, settings, progress, support), progress), sample


def fit_sample(sample: Sample, settings: Settings, progress: Progress, support: Support) -> Fitted:
    """Fit a classifier on a sample of a table, and on what supports it."""
    return fit(
        [*sample.texts, *support.examples],
        settings,
        progress,
        y=[*[None] * len(sample.texts), *support.labels] if support.labels else None,
        extra_texts=support.extra_texts,
        n_words=sample.n_words,
    )


def predict(
    documents: Documents,
    fitted: Fitted,
    output: Output | None = None,
    progress: Progress = NO_PROGRESS,
) -> Result:
    """Write every row of a table with the label that a saved classifier predicts.

    The table is read once to validate it, then a batch at a time, so that memory does not grow with
    its size.
    """
    started, output = time.perf_counter(), output or Output()
    output.check(documents.table, fitted.settings, refined=False)
    n_truncated = truncated_texts(fitted.settings.encoder)
    # Texts are kept for a student, which labels most of many texts in place of a slow encoder.
    most = _TAUGHT if fitted.settings.may_sample and fitted.student is None else 0
    sample = draw_sample(documents, most, fitted.settings.random_state, progress)
    if most:
        fitted = teach(fitted, sample.texts, sample.n_words, progress)
    else:
        fitted = replace(fitted, strong_share=share_to_read(fitted.settings, sample.n_words))
    sample = replace(sample, texts=[], rows=None)
    tally = Tally(fitted, refined=False)
    rows = label_rows(documents, fitted, sample)
    write_rows(documents, rows, tally, fitted, output, progress, sample.n_rows)
    return tally.result(
        sample.n_empty,
        truncated_documents=truncated_texts(fitted.settings.encoder, n_truncated),
        seconds=time.perf_counter() - started,
        output=output.path,
    )


def write_rows(
    documents: Documents,
    rows: Iterable[Labelled],
    tally: Tally,
    fitted: Fitted,
    output: Output,
    progress: Progress,
    n_rows: int,
) -> None:
    """Write rows with label, confidence and what else the output has, and count them."""
    names = fitted.names
    columns = added_columns(output.prefix, fitted.settings, tally.refined, output.explain)

    def with_labels() -> Iterator[tuple[Batch, Added]]:
        for batch, texts, predictions in rows:
            placement = place(fitted, predictions)
            tally.add(texts, predictions, placement)
            values: list[Any] = [
                names[predictions.labels].tolist(),
                predictions.confidence.tolist(),
            ]
            if placement is not None:
                values = [placement.paths, placement.confidence]
            if tally.refined:
                values.append(names[predictions.unrefined].tolist())
            if output.explain:
                values.append(_words_for_labels(fitted, texts, predictions))
            if placement is not None:
                values += map(placement.level, range(placement.tree.depth))
            if fitted.chances is not None:
                values.append(fitted.chances.names(predictions, names))
            yield batch, dict(zip(columns, values, strict=True))
            progress.advance(len(texts))

    progress.stage("Labelling" if output.path is None else "Writing", n_rows)
    output.write(documents.table, with_labels(), columns)


def _words_for_labels(fitted: Fitted, texts: list[str], predictions: Predictions) -> list[str]:
    """The words that spoke for the label of each text, separated by blanks."""
    found = explain(fitted, texts, predictions=predictions)
    return [" ".join(each.word for each in text.for_label) for text in found]


def _comparison(truth: TrueLabels | TrueLabelSets | None) -> dict[str, Any]:
    if isinstance(truth, TrueLabelSets):
        return {"multilabel": truth.compare()}
    return {"comparison": None if truth is None else truth.compare()}


def _observed(
    rows: Iterable[Labelled],
    fitted: Fitted,
    truth: TrueLabels | TrueLabelSets | None,
    collect: Collect | None,
) -> Iterator[Labelled]:
    """The rows, after their predictions were compared with true labels and collected."""
    for batch, texts, predictions in rows:
        true = None if truth is None else truth.add(batch, fitted, predictions)
        if collect is not None:
            collect(texts, predictions, true)
        yield batch, texts, predictions


def truncated_texts(encoder: object, before: int | None = 0) -> int | None:
    """Texts that an encoder has truncated since; None if it does not count them."""
    count = getattr(encoder, "truncated", None)
    return None if count is None else count - (before or 0)
