"""Rows with further columns, in any format; a file appears when it is complete."""

from __future__ import annotations

import gzip
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import IO, Any

from ulr.errors import TableError
from ulr.files import atomic_file
from ulr.tables import csv_files, json_files
from ulr.tables.batch import Added, Batch
from ulr.tables.formats import Source, format_of_name, reader_of, unknown_ending

Rows = Iterable[tuple[Batch, Added]]


def write_table(
    name: str,
    sources: Sequence[Source],
    rows: Rows,
    added: dict[str, type],
    stdout: IO[bytes] | None = None,
) -> None:
    """Write rows with added columns.

    Parameters
    ----------
    name
        Path to write, whose ending says the format; ``-`` is standard output, in the format of the
        first source.
    sources
        The files that the rows were read from.
    rows
        Their rows, and the values of the added columns for them.
    added
        Names of the added columns, and their types, `str` or `float`.
    stdout
        What ``-`` is written to.
    """
    if name == "-":
        if stdout is None:
            raise TableError("'-' is standard output, which is not available here.")
        format_ = "jsonl" if sources[0].format == "txt" else sources[0].format
        _writer(format_, sources[0])(stdout, sources, rows, added)
        stdout.flush()
        return
    named = format_of_name(name)
    if named is None:
        raise TableError(unknown_ending(name))
    write = _writer(named, sources[0])
    try:
        with atomic_file(Path(name)) as file:
            if name.lower().endswith(".gz"):
                with gzip.GzipFile(fileobj=file, mode="wb", filename="", mtime=0) as packed:
                    write(packed, sources, rows, added)
            else:
                write(file, sources, rows, added)
    except OSError as error:
        raise TableError(f"{name} cannot be written: {error.strerror or error}.") from error


def _writer(format_: str, source: Source) -> Any:
    """The function that writes a format; a CSV file keeps the delimiter of its source."""
    if format_ in ("csv", "tsv"):
        own = source.delimiter if source.format == "csv" else ","
        return partial(csv_files.write, delimiter="\t" if format_ == "tsv" else own)
    if format_ == "json":
        return partial(json_files.write, array=True)
    return reader_of(format_).write
