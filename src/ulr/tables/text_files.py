"""Text files: one document per line in the column ``text``, or several files of one document each."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import replace

import pyarrow as pa

from ulr.errors import TableError
from ulr.files import open_bytes
from ulr.tables.batch import MOST_LETTERS, Batch, in_batches
from ulr.tables.formats import recognise_encoding, recognise_format
from ulr.tables.source import HEAD_BYTES, Source, lines_of, open_text, readable


def open_files(names: Iterable[str], encoding: str | None) -> Source:
    """Text files as one table: each is a document, and the column ``file`` has its name."""
    paths = [os.path.abspath(name.removeprefix("file://")) for name in names]
    folder = os.path.commonpath([os.path.dirname(path) for path in paths])
    note = (
        f"each of the {len(paths):,} text files is one document, with its name in the column 'file'; "
        "--lines if each line is one."
    )
    name = os.path.relpath(folder)
    return Source(
        folder if name.startswith(".") else name,
        folder,
        "txt",
        encoding or "",
        columns=("file", "text"),
        files=tuple(os.path.relpath(path, folder) for path in paths),
        notes=(note,),
    )


def columns(source: Source) -> list[str]:
    """One column, ``text``."""
    return ["text"]


def batches(source: Source) -> Iterator[Batch]:
    """The lines in batches; a blank line is an empty document."""
    if source.files:
        yield from _file_batches(source)
        return
    start = 0
    with open_text(source) as file:
        lines = (line.rstrip("\r\n") for line in lines_of(source, file))
        for texts, _ in in_batches((line, line) for line in lines):
            yield Batch(source.name, start, pa.record_batch({"text": pa.array(texts, pa.string())}))
            start += len(texts)


def _file_batches(source: Source) -> Iterator[Batch]:
    start = 0
    documents = ((name, _document(source, name)) for name in source.files)
    for paths, texts in in_batches(documents):
        names = [
            os.fsencode(path).decode("utf-8", "replace") for path in paths
        ]  # any bytes can be one
        columns = {"file": pa.array(names, pa.string()), "text": pa.array(texts, pa.string())}
        yield Batch(source.name, start, pa.record_batch(columns))
        start += len(names)


def _document(source: Source, name: str) -> str:
    """The content of a file; an empty file is an empty document."""
    path = f"{source.path}/{name}"
    one = replace(source, name=path, path=path)
    with readable(one), open_bytes(path) as file:
        head = file.read(HEAD_BYTES)
        recognise_format(path, "txt", head)
        content = head + file.read(4 * MOST_LETTERS)
    one = replace(one, encoding=source.encoding or recognise_encoding(head))
    with readable(one):
        text = content.decode(one.encoding).removeprefix("\ufeff")
    if len(text) > MOST_LETTERS:
        raise TableError(
            f"{path} has more than {MOST_LETTERS:,} letters, the most of a document; --lines if each "
            "line is one."
        )
    return "\n".join(text.split("\r\n")).rstrip("\n")
