"""Files of a result: table, labels, examples, model and report."""

from __future__ import annotations

import csv
import io
import re
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import yaml

from ulr.errors import TableError
from ulr.jobs import Output, Silent
from ulr.jobs.classify import write_labels
from ulr.jobs.documents import LabelledRows
from ulr.report import Report
from ulr.report.collect import Collector
from ulr.web.sessions import Result, Session

What = Literal["table", "labels", "examples", "model", "report"]
Format = Literal["csv", "tsv", "jsonl", "json", "xlsx", "parquet"]


def write_download(
    session: Session, result: Result, what: What, format_: Format
) -> tuple[Path, str]:
    """Write a file into the folder of a session.

    Parameters
    ----------
    session, result
        The session, and its result to write.
    what
        Which file.
    format_
        Format of a table.

    Returns
    -------
    Path of the file, and the name to offer for it.
    """
    with tempfile.NamedTemporaryFile(dir=session.folder, delete=False) as file:
        path = Path(file.name)
    stem = re.sub(r"[^\w-]+", "-", session.name.split(".")[0]).strip("-") or "documents"
    endings = {
        "table": f"labelled.{format_}",
        "labels": "labels.yaml",
        "examples": "examples.csv",
        "model": "model.zip",
        "report": "report.html",
    }
    if what == "table":
        path.unlink()
        path = path.with_suffix(f".{format_}")
        _write_table(session, result, path)
    else:
        _WRITERS[what](session, result, path)
    return path, f"{stem}-{endings[what]}"


def _write_table(session: Session, result: Result, path: Path) -> None:
    model = result.classifier.model_
    taken = set(session.table.columns)
    prefix = next(
        p for i in range(2, 1_000) if not _clashes(p := f"ulr{'' if i == 2 else i}_", taken)
    )
    rows = LabelledRows(
        session.table,
        result.corpus.columns,
        model,
        session.n_rows,
        session.corrected(result),
    )
    write_labels(session.table, rows, model, Output(str(path), prefix), Silent(), refined=True)


def _clashes(prefix: str, taken: set[str]) -> bool:
    return any(prefix + name in taken for name in ("label", "confidence", "unrefined"))


def _write_labels(session: Session, result: Result, path: Path) -> None:
    labels = {label.name: list(label.phrases) for label in result.choices.labels}
    path.write_text(yaml.safe_dump(labels, allow_unicode=True, sort_keys=False), encoding="utf-8")


def _write_examples(session: Session, result: Result, path: Path) -> None:
    choices = session.choices
    if not choices.corrections:
        raise TableError("no document has been corrected yet.")
    names, lines = choices.names(), io.StringIO()
    writer = csv.writer(lines)
    writer.writerow(["text", "label"])
    for row, label in sorted(choices.corrections.items()):
        writer.writerow([result.corpus.texts[row], names[label]])
    path.write_bytes(lines.getvalue().encode("utf-8", "replace"))


def _write_model(session: Session, result: Result, path: Path) -> None:
    with tempfile.TemporaryDirectory(dir=session.folder) as folder:
        saved = Path(folder) / "model"
        result.classifier.save(saved)
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for file in sorted(saved.iterdir()):
                archive.write(file, f"model/{file.name}")


def _write_report(session: Session, result: Result, path: Path) -> None:
    classifier, corpus = result.classifier, result.corpus
    collector = Collector(classifier.model_, classifier.random_state)
    collector.add(corpus.texts, session.corrected(result))
    n_examples = len(result.choices.corrections)
    data = collector.finish(
        classifier,
        title=session.name,
        source=session.name,
        seconds=result.seconds,
        notes=[f"{n_examples:,} labelled examples took part."] if n_examples else [],
        vectors=corpus.vectors,
    )
    Report(data).write(path)


_WRITERS: dict[str, Callable[[Session, Result, Path], None]] = {
    "labels": _write_labels,
    "examples": _write_examples,
    "model": _write_model,
    "report": _write_report,
}
