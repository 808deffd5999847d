"""Tables of documents: one file or several, opened once and read as often as needed."""

from __future__ import annotations

import contextlib
import glob
import gzip
import os
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any

from ulr.errors import TableError
from ulr.files import temporary_copy
from ulr.tables.batch import Batch
from ulr.tables.csv_files import delimiter_of
from ulr.tables.formats import (
    TEXT_FORMATS,
    Source,
    TableFormat,
    common_columns,
    format_of_content,
    format_of_name,
    reader_of,
    refuse_other_content,
    scanned,
)
from ulr.tables.json_files import first_columns
from ulr.tables.parquet_files import n_rows
from ulr.tables.text_io import HEAD_BYTES, encoding_of, not_in_encoding, read_head


@dataclass(frozen=True)
class Table:
    """Files of documents with the same columns, one below the other.

    Attributes
    ----------
    sources
        The files.
    columns
        Names of their columns; of JSON files, the keys of all records, or of the first ones until
        all are read, see `scanned` and `with_keys`.
    """

    sources: tuple[Source, ...]
    columns: tuple[str, ...]

    @property
    def name(self) -> str:
        """What messages call it."""
        if len(self.sources) == 1:
            return self.sources[0].name
        return f"{self.sources[0].name} and {len(self.sources) - 1} more"

    def batches(self) -> Iterator[Batch]:
        """The rows of all files, in order."""
        row = 0
        # The text of a row can only be copied into a file of one format and delimiter.
        mixed = len({(source.format, source.delimiter) for source in self.sources}) > 1
        for source in self.sources:
            last = 0
            for batch in source_batches(source):
                yield replace(
                    batch, first_row=row + batch.first_row, raw=None if mixed else batch.raw
                )
                last = batch.first_row + len(batch)
            row += last

    def estimated_rows(self) -> int | None:
        """About as many rows as the table has, to show progress; None if that is not known."""
        estimates = [estimated_rows(source) for source in self.sources]
        return None if None in estimates else sum(each or 0 for each in estimates)

    def texts(self, batch: Batch, columns: Sequence[str]) -> list[str]:
        """The document of each row: the given columns, joined by a space; empty for nulls."""
        return batch_texts(batch, columns, self.name)

    def scanned(self) -> Table:
        """The table with all columns; reads JSON files of which only the beginning was read."""
        if all(source.is_scanned for source in self.sources):
            return self
        sources = []
        for source in self.sources:
            with readable(source):
                sources += scanned([source])
        return Table(tuple(sources), common_columns(sources))

    def with_keys(self, keys: Iterable[str]) -> Table:
        """The table with all columns, given the keys of all records of its JSON files."""
        columns = tuple(dict.fromkeys([*self.columns, *keys]))
        sources = (
            source if source.is_scanned else replace(source, columns=columns, is_scanned=True)
            for source in self.sources
        )
        return Table(tuple(sources), columns)

    def check_columns(self, wanted: Iterable[str], option: str) -> None:
        """Refuse names of columns that the table does not have."""
        for name in wanted:
            columns = self.columns if name in self.columns else self.scanned().columns
            if name not in columns:
                raise TableError(
                    f"{self.name} has no column {name!r}; it has: {', '.join(columns)}. "
                    f"Choose one with {option}."
                )


def estimated_rows(source: Source) -> int | None:
    """About as many rows as a file has: those of a Parquet file, or by the length of first lines."""
    with readable(source):
        if source.format == "parquet":
            return n_rows(source)
        if source.format not in ("csv", "tsv", "jsonl", "txt"):
            return None
        with source.path.open("rb") as file:
            head, n_bytes = file.read(HEAD_BYTES), os.fstat(file.fileno()).st_size
    n_lines = head.count(b"\n")
    return n_bytes * n_lines // len(head) if n_lines and not head.startswith(b"\x1f\x8b") else None


def source_batches(source: Source) -> Iterator[Batch]:
    """The rows of one file."""
    with readable(source):
        yield from reader_of(source.format).batches(source)


def batch_texts(batch: Batch, columns: Sequence[str], name: str) -> list[str]:
    """The documents of a batch; see `Table.texts`. Numbers and dates count as text."""
    parts = [_text_values(batch, column, name) for column in columns]
    if len(parts) == 1:
        return parts[0]
    return [" ".join(part for part in row if part) for row in zip(*parts, strict=True)]


def _text_values(batch: Batch, column: str, name: str) -> list[str]:
    values = batch.column(column)
    if set(map(type, values)) == {str}:
        return values
    for place, value in enumerate(values):
        if isinstance(value, str):
            continue
        if isinstance(value, bytes | dict | list):
            raise TableError(
                f"{name} row {batch.first_row + place + 1}: column {column!r} holds "
                f"{str(value)[:60]!r}, not a text."
            )
        values[place] = "" if value is None else str(value)
    return values


@contextlib.contextmanager
def open_table(
    names: str | Sequence[str], how: TableFormat | None = None, stdin: IO[bytes] | None = None
) -> Iterator[Table]:
    """Files of documents as one table.

    Parameters
    ----------
    names
        Paths of CSV, TSV, JSON, JSONL, Excel, Parquet or text files; of folders of them; or
        patterns such as ``texts/*.csv``. Text formats may be gzipped. ``-`` is standard input.
    how
        What names and content do not tell.
    stdin
        What ``-`` is read from.

    Raises
    ------
    TableError
        When a file is missing, empty or not what it is said to be.
    """
    how = how or TableFormat()
    wanted = [names] if isinstance(names, str) else list(names)
    with contextlib.ExitStack() as stack:
        sources = []
        for name in wanted:
            if name == "-":
                if stdin is None:
                    raise TableError("'-' is standard input, which is not available here.")
                path = stack.enter_context(temporary_copy(stdin))
                sources.append(open_source("standard input", path, how, scan=False))
                continue
            for path in find_files(name):
                shown = str(path)
                if not path.is_file():  # a pipe, which can be read once only
                    with path.open("rb") as pipe:
                        path = stack.enter_context(temporary_copy(pipe))
                sources.append(open_source(shown, path, how, scan=False))
        if not {source.format for source in sources} <= {"json", "jsonl"}:
            sources = scanned(sources)  # all files need the same columns
        yield Table(tuple(sources), common_columns(sources))


def find_files(name: str) -> list[Path]:
    """The files that a path, a folder or a pattern stands for, sorted by name."""
    if not name:
        raise TableError("the name of a file is empty.")
    path = Path(name)
    if path.is_dir():
        # Names that begin with _ or . are those of manifests and hidden files.
        visible = [each for each in path.iterdir() if not each.name.startswith(("_", "."))]
        found = sorted(each for each in visible if each.is_file() and format_of_name(each.name))
        if not found:
            raise TableError(f"the folder {name} has no CSV, JSON, Excel, Parquet or text file.")
        return found
    if path.exists():
        return [path]
    found = sorted(Path(each) for each in glob.glob(name) if Path(each).is_file())
    if not found:
        raise TableError(f"there is no file {name}.")
    return found


def open_source(name: str, path: Path, how: TableFormat, *, scan: bool = True) -> Source:
    """One file, its format, encoding, delimiter and columns recognised.

    Parameters
    ----------
    name
        What messages call it.
    path
        Where its bytes are.
    how
        What name and content do not tell.
    scan
        Whether a JSONL file is read for the keys of all records; otherwise only its beginning is.
    """
    blank = Source(name, path, how.format or "csv", how.encoding or "utf-8", header=how.header)
    with readable(blank):
        if path.stat().st_size == 0:
            raise TableError(f"{name} is empty.")
        head = read_head(path)
        named = how.format or format_of_name(name)
        if named is None:
            named = format_of_content(name, head)
        elif how.format is None or not head.startswith(b"<"):  # texts can be HTML, if they say so
            _refuse_mislabelled(name, named, head)
        source = replace(blank, format=named)
        if named in TEXT_FORMATS:
            encoding = how.encoding or encoding_of(head)
            if encoding.lower().replace("_", "-") in ("utf-8", "utf8"):
                encoding = "utf-8-sig"
            source = replace(source, encoding=encoding)
        if named in ("csv", "tsv"):
            sniffed = delimiter_of(head.decode(source.encoding, "replace"))
            default = "\t" if named == "tsv" and not sniffed[1] else sniffed[0]
            source = replace(source, delimiter=how.delimiter or default)
    columns: list[str] = []
    if named == "jsonl" and not scan and len(head) == HEAD_BYTES:
        columns = first_columns(source, head)
        source = replace(source, is_scanned=not columns)
    with readable(source):
        columns = columns or reader_of(named).columns(source)
    if not columns:
        raise TableError(f"{name} has no rows.")
    twice = sorted({each for each in columns if columns.count(each) > 1})
    if twice:
        raise TableError(f"{name} has more than one column {twice[0]!r}; rename one.")
    return replace(source, columns=tuple(columns))


def _refuse_mislabelled(name: str, named: str, head: bytes) -> None:
    """Refuse a binary file whose name says that it is something else."""
    if named != "xlsx" or not head.startswith(b"\xd0\xcf\x11\xe0"):  # .xls content can be read
        refuse_other_content(name, head)
    for beginning, ending in ((b"PK\x03\x04", ".xlsx"), (b"PAR1", ".parquet")):
        if head.startswith(beginning) and named != ending[1:]:
            raise TableError(
                f"{name} is not a {named} file but looks like {ending}; rename it, or add --format "
                f"{ending[1:]}."
            )


@contextlib.contextmanager
def readable(source: Source) -> Iterator[None]:
    """Turn what readers raise for a bad file into one sentence."""
    try:
        yield
    except UnicodeError as error:
        raise not_in_encoding(source.name, source.encoding, error) from None
    except (gzip.BadGzipFile, zlib.error, EOFError) as error:
        raise TableError(f"{source.name} is a damaged gzip file: {error}.") from None
    except OSError as error:
        raise TableError(f"{source.name} cannot be read: {error.strerror or error}.") from None
    except (ValueError, TypeError, KeyError) as error:
        if _from_arrow(error):
            raise _not_parquet(source, error) from None
        raise
    except Exception as error:
        if _from_arrow(error):
            raise _not_parquet(source, error) from None
        raise


def _from_arrow(error: Any) -> bool:
    return type(error).__module__ == "pyarrow.lib"


def _not_parquet(source: Source, error: Exception) -> TableError:
    return TableError(f"{source.name} cannot be read as Parquet: {str(error)[:200]}.")
