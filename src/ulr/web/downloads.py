"""Files of a result: table, labels, examples, model and report."""

from __future__ import annotations

import csv
import io
import re
import secrets
import tempfile
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Literal

from ulr.classifier import save
from ulr.errors import TableError
from ulr.jobs import Documents, Output, Sample, Tally, added_columns, label_rows, write_rows
from ulr.labels import as_label_set, labels_as_text
from ulr.progress import NO_PROGRESS
from ulr.report import report_predictions
from ulr.web.sessions import NONE, Run, Session

What = Literal["table", "labels", "examples", "model", "report"]
Format = Literal["csv", "tsv", "jsonl", "json", "xlsx", "parquet"]


def write_download(session: Session, run: Run, what: What, format_: Format) -> tuple[Path, str]:
    """Write a file into the folder of a session; its path, and the name to offer for it."""
    ending, write = _FILES[what]
    ending = ending.format(format=format_)
    path = session.folder / f"{secrets.token_hex(8)}-{ending}"
    try:
        write(session, run, path)
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    stem = re.sub(r"[^\w-]+", "-", session.name.split(".")[0]).strip("-") or "documents"
    return path, f"{stem}-{ending}"


def _write_table(session: Session, run: Run, path: Path) -> None:
    taken = set(session.table.columns)
    prefixes = ("ulr_", *(f"ulr{i}_" for i in range(2, 1_000)))
    settings = run.fitted.settings
    prefix = next(each for each in prefixes if taken.isdisjoint(added_columns(each, settings)))
    documents, texts = Documents(session.table, run.options.columns), run.corpus.documents.texts
    fitted = replace(run.fitted, predictions=session.corrected(run))
    output = Output(str(path), prefix)
    rows = label_rows(documents, fitted, Sample(len(texts), 0, 0, texts, None))
    write_rows(documents, rows, Tally(fitted), fitted, output, NO_PROGRESS, len(texts))


def _write_labels(session: Session, run: Run, path: Path) -> None:
    labels = labels_as_text(as_label_set(run.choices.phrases()), ".yaml")
    path.write_text(labels, encoding="utf-8")


def _write_examples(session: Session, run: Run, path: Path) -> None:
    choices = session.choices
    if not {*choices.corrections.values()} - {NONE}:
        raise TableError("no document has been corrected yet.")
    names, lines = choices.names(), io.StringIO()
    writer = csv.writer(lines)
    writer.writerow(["text", "label"])
    for row, label in sorted(choices.corrections.items()):
        if label == NONE:  # no example of a label
            continue
        writer.writerow([run.corpus.documents.texts[row], names[label]])
    path.write_bytes(lines.getvalue().encode("utf-8", "replace"))


def _write_model(session: Session, run: Run, path: Path) -> None:
    with tempfile.TemporaryDirectory(dir=session.folder) as folder:
        saved = Path(folder) / "model"
        save(run.fitted, saved)
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for file in sorted(saved.iterdir()):
                archive.write(file, f"model/{file.name}")


def _write_report(session: Session, run: Run, path: Path) -> None:
    report = report_predictions(
        run.fitted,
        run.corpus.documents.texts,
        session.corrected(run),
        run.corpus.documents.vectors,
        title=session.name,
        source=session.name,
        examples=run.result.examples,
        seconds=run.result.seconds,
    )
    report.write(path)


_FILES: dict[What, tuple[str, Callable[[Session, Run, Path], None]]] = {
    "table": ("labelled.{format}", _write_table),
    "labels": ("labels.yaml", _write_labels),
    "examples": ("examples.csv", _write_examples),
    "model": ("model.zip", _write_model),
    "report": ("report.html", _write_report),
}
