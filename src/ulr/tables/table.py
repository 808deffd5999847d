"""Tables of documents: one file or several, read as often as needed, and written with more columns."""

from __future__ import annotations

import contextlib
import gzip
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import IO, Any

from ulr.errors import TableError
from ulr.files import GZIP, atomic_file, file_system, is_remote, store_errors, temporary_copy
from ulr.tables.batch import Batch, Rows
from ulr.tables.formats import TableFormat, check_output_name, format_of_name, module_of
from ulr.tables.source import HEAD_BYTES, Source, check_same_columns, open_source, readable


class Table:
    """Files of documents with the same columns, one below the other."""

    def __init__(self, sources: Iterable[Source]) -> None:
        self.sources = tuple(sources)  # with all that is known about their columns so far

    @property
    def name(self) -> str:
        """What messages call it."""
        others = f" and {len(self.sources) - 1} more" if len(self.sources) > 1 else ""
        return self.sources[0].name + others

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns; of long JSON files the first keys, until they are read once."""
        return tuple(dict.fromkeys(chain.from_iterable(each.columns for each in self.sources)))

    def all_columns(self) -> tuple[str, ...]:
        """Names of the columns; reads JSON files that have not been read to their end."""
        for number, source in enumerate(self.sources):
            if not source.is_complete:
                with readable(source):
                    self._complete(number, module_of(source.format).columns(source))
        return self.columns

    def _complete(self, number: int, columns: Iterable[str]) -> None:
        """Remember the keys of all records of a file."""
        source = self.sources[number]
        columns = tuple(dict.fromkeys([*source.columns, *columns]))
        complete = replace(source, columns=columns, is_complete=True)
        self.sources = (*self.sources[:number], complete, *self.sources[number + 1 :])

    def batches(self) -> Iterator[Batch]:
        """The rows of all files, in order."""
        # The text of a row can only be copied into a file of one format and delimiter.
        mixed = len({(source.format, source.delimiter) for source in self.sources}) > 1
        for number, source in enumerate(self.sources):
            keys = dict.fromkeys(source.columns)
            with readable(source):
                for batch in module_of(source.format).batches(source):
                    if not source.is_complete:
                        found = set(chain.from_iterable(batch.records()))
                        if not found <= keys.keys():  # keeping the order takes twice the time
                            keys |= dict.fromkeys(chain.from_iterable(batch.records()))
                    yield replace(batch, raw=None) if mixed else batch
            if not source.is_complete:
                self._complete(number, keys)

    @property
    def notes(self) -> tuple[str, ...]:
        """What was decided from the content of files, one sentence each."""
        return tuple(chain.from_iterable(each.notes for each in self.sources))

    def files(self) -> list[Table]:
        """One table per file."""
        return [Table([source]) for source in self.sources]

    def estimated_rows(self) -> int | None:
        """About as many rows as the table has, to show progress; None if that is not known."""
        n_rows = 0
        for source in self.sources:
            with readable(source):
                if source.files:
                    n_rows += len(source.files)
                    continue
                if source.format == "parquet":
                    n_rows += module_of("parquet").n_rows(source)
                    continue
                system, path = file_system(source.path)
                n_bytes = system.size(path)
                with system.open(path, "rb") as file:
                    head = file.read(HEAD_BYTES)
            n_lines = head.count(b"\n")
            if source.format in ("json", "xlsx") or head.startswith(GZIP) or not n_lines:
                return None
            n_rows += n_bytes * n_lines // len(head)
        return n_rows

    def check_columns(self, wanted: Iterable[str], option: str) -> None:
        """Refuse names of columns that the table does not have."""
        for name in wanted:
            if name not in self.columns and name not in self.all_columns():
                raise TableError(
                    f"{self.name} has no column {name!r}; it has: {', '.join(self.columns)}. "
                    f"Choose one with {option}."
                )


@contextlib.contextmanager
def open_table(
    names: str | Sequence[str], how: TableFormat | None = None, stdin: IO[bytes] | None = None
) -> Iterator[Table]:
    """Files of documents as one table.

    `names` are paths of files or of folders of them, patterns such as ``texts/*.csv``, or addresses
    in an object store, such as ``s3://bucket/texts/*.csv``. Text formats may be gzipped. ``-`` is
    `stdin`. `how` is what names and content do not tell.
    """
    how = how or TableFormat()
    with contextlib.ExitStack() as stack:
        sources, documents = [], _whole_files(names, how)
        if documents:
            sources.append(module_of("txt").open_files(documents, how.encoding))
        for name in [names] if isinstance(names, str) else names:
            if name == "-":
                if stdin is None:
                    raise TableError("'-' is standard input, which is not available here.")
                copy = stack.enter_context(temporary_copy(stdin))
                sources.append(open_source("standard input", how, copy))
                continue
            for found in find_files(name):
                if found in documents:
                    continue
                path: str | Path = found
                if not is_remote(found) and not os.path.isfile(found):
                    with Path(found).open("rb") as pipe:  # it can be read once only
                        path = stack.enter_context(temporary_copy(pipe))
                sources.append(open_source(found, how, path))
        table = Table(sources)
        if not {source.format for source in sources} <= {"json", "jsonl"}:
            table.all_columns()  # all files need the same columns
        check_same_columns(table.sources)
        yield table


def _whole_files(names: str | Sequence[str], how: TableFormat) -> dict[str, None]:
    """The text files that are one document each: several ones, or those of a folder or pattern."""
    if how.lines:
        return {}
    found: dict[str, None] = {}
    several = False
    for name in [names] if isinstance(names, str) else names:
        if name == "-" or is_remote(name):
            continue
        files = find_files(name)
        texts = [each for each in files if (how.format or format_of_name(each)) == "txt"]
        several = several or (bool(texts) and files != [name])
        found |= dict.fromkeys(texts)
    return found if several or len(found) > 1 else {}


def find_files(name: str) -> list[str]:
    """The files that a path, a folder, a pattern or an address stands for, sorted by name."""
    if not name:
        raise TableError("the name of a file is empty.")
    system, path = file_system(name)
    with store_errors(name) if is_remote(name) else contextlib.nullcontext():
        if is_remote(name):
            system.invalidate_cache()
        if system.isdir(path):
            entries = {Path(each["name"]).name: each for each in system.ls(path, detail=True)}
            # Names that begin with _ or . are those of manifests and hidden files.
            found = sorted(
                f"{name.rstrip('/')}/{each}"
                for each, info in entries.items()
                if info["type"] == "file" and each[0] not in "_." and format_of_name(each)
            )
            if not found:
                raise TableError(
                    f"the folder {name} has no CSV, JSON, Excel, Parquet or text file."
                )
            return found
        if system.exists(path):
            return [name]
        found = sorted(each for each in system.glob(path) if system.isfile(each))
    if not found:
        raise TableError(f"there is no file {name}.")
    if is_remote(name):
        return [system.unstrip_protocol(each) for each in found]
    return found if os.path.isabs(name) else [os.path.relpath(each) for each in found]


def write_table(
    name: str,
    table: Table,
    rows: Rows,
    added: dict[str, type],
    stdout: IO[bytes] | None = None,
) -> None:
    """Write batches of a table with added columns: `str`, `float`, or `tuple` for several labels.

    The ending of the path or address says the format; ``-`` is standard output, in the format of
    the table's first file. A file appears when it is complete.
    """
    if name == "-":
        if stdout is None:
            raise TableError("'-' is standard output, which is not available here.")
        own = table.sources[0].format
        format_ = "jsonl" if own == "txt" else own
        module_of(format_).write(stdout, table, rows, added, format_)
        stdout.flush()
        return
    check_output_name(name)
    format_ = str(format_of_name(name))
    try:
        with atomic_file(name) as file:
            target: Any = contextlib.nullcontext(file)
            if name.lower().endswith(".gz"):
                target = gzip.GzipFile(fileobj=file, mode="wb", filename="", mtime=0)
            with target as opened:
                module_of(format_).write(opened, table, rows, added, format_)
    except OSError as error:
        raise TableError(f"{name} cannot be written: {error.strerror or error}.") from error
