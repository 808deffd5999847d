"""Classify the documents of a table with a fitted model."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

from ulr.jobs.classify import tally_report, truncated_texts, write_labels
from ulr.jobs.documents import LabelledRows, read_documents
from ulr.jobs.output import Output
from ulr.jobs.progress import Listener, Silent
from ulr.jobs.reports import JobReport
from ulr.model import Model
from ulr.tables import Table


def predict_file(
    table: Table,
    columns: Sequence[str],
    model: Model,
    output: Output | None = None,
    listener: Listener | None = None,
) -> JobReport:
    """Write every row of a table with the label that a fitted model predicts.

    The table is read once to validate it, then a batch at a time, so memory does not grow with its
    size. Parameters are those of `classify_file`.
    """
    started = time.perf_counter()
    output, listener = output or Output(), listener or Silent()
    output.refuse(table, [output.prefix + name for name in ("label", "confidence")])
    table, sample = read_documents(table, columns, listener, 0, 0)
    before = truncated_texts(model.text_encoder)
    rows = LabelledRows(table, columns, model, sample.n_rows)
    tally = write_labels(table, rows, model, output, listener, refined=False)
    report = tally_report(tally, sample, model, before)
    return replace(report, seconds=time.perf_counter() - started, output=output.path)
