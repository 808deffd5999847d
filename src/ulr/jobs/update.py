"""Update a model with the documents of a table: read, sample, compare, adapt, label, write."""

from __future__ import annotations

import time
from dataclasses import replace

from ulr.classifier import Drift, Fitted, share_to_read
from ulr.classifier import update as update_classifier
from ulr.jobs.classify import truncated_texts, write_rows
from ulr.jobs.documents import Documents, draw_sample, label_rows
from ulr.jobs.output import Output
from ulr.jobs.result import Result, Tally
from ulr.progress import NO_PROGRESS, Progress

_COMPARED = 50_000  # documents; the error of a share of so many is below 0.3 points


def update(
    documents: Documents,
    fitted: Fitted,
    output: Output | None = None,
    progress: Progress = NO_PROGRESS,
) -> tuple[Fitted, Drift, Result]:
    """Adapt a saved classifier to the documents of a table, and label them with it.

    Of more than 50,000 documents, a sample is compared with those that the classifier was fitted
    on; the others are labelled while the output is written.
    """
    started, output = time.perf_counter(), output or Output()
    output.check(documents.table, fitted.settings, refined=False)
    n_truncated = truncated_texts(fitted.settings.encoder)
    sample = draw_sample(documents, _COMPARED, fitted.settings.random_state, progress)
    fitted, drift = update_classifier(fitted, sample.texts, progress, n_words=sample.n_words)
    fitted = replace(fitted, strong_share=share_to_read(fitted.settings, sample.n_words))
    tally = Tally(fitted, refined=False)
    rows = label_rows(documents, fitted, sample)
    write_rows(documents, rows, tally, fitted, output, progress, sample.n_rows)
    result = tally.result(
        sample.n_empty,
        truncated_documents=truncated_texts(fitted.settings.encoder, n_truncated),
        seconds=time.perf_counter() - started,
        output=output.path,
    )
    return fitted, drift, result
