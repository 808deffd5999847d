"""Documents in: CSV, TSV, JSONL and Parquet, read batch by batch, as often as needed.

Parquet goes through pyarrow. CSV and JSONL go through Python's own readers: a field of any length,
an unclosed quote and a nested value are where pyarrow's text readers stop, stay silent or change
the data.
"""

from __future__ import annotations

import codecs
import contextlib
import csv
import gzip
import io
import json
import shutil
import sys
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from ulr.errors import TableError
from ulr.files import scratch_file

if TYPE_CHECKING:
    import pyarrow as pa

FORMATS = ("csv", "tsv", "jsonl", "parquet")
ENDINGS = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".parquet": "parquet",
    ".pq": "parquet",
}
_BATCH_ROWS = 2048

Record = dict[str, Any]


class Batch:
    """A few thousand rows, as an Arrow table (Parquet) or as records (the text formats)."""

    def __init__(
        self, first_row: int, records: list[Record] | None, table: pa.Table | None
    ) -> None:
        self.first_row = first_row
        self.table = table
        self._records = records

    def __len__(self) -> int:
        return len(self.records) if self.table is None else self.table.num_rows

    @cached_property
    def records(self) -> list[Record]:
        """The rows as records, whatever they were read from."""
        if self.table is None:
            return self._records or []
        try:
            return list(self.table.to_pylist())
        except (ValueError, OverflowError):
            # A time that Python has no value for: nanoseconds, or after the year 9999.
            return list(_times_as_text(self.table).to_pylist())

    def column(self, name: str) -> list[Any]:
        """The values of a column; None where a record has none."""
        if self.table is not None:
            values: list[Any] = self.table.column(name).to_pylist()
            return values
        return [record.get(name) for record in self.records]

    def with_columns(self, added: dict[str, Sequence[Any]]) -> Batch:
        """The same rows with further columns at the end."""
        if self.table is not None:
            table = self.table
            for name, values in added.items():
                table = table.append_column(name, [list(values)])
            return Batch(self.first_row, None, table)
        rows = zip(*added.values(), strict=True)
        records = [
            record | dict(zip(added, values, strict=True))
            for record, values in zip(self.records, rows, strict=True)
        ]
        return Batch(self.first_row, records, None)


def _times_as_text(table: pa.Table) -> pa.Table:
    import pyarrow as pa

    schema = pa.schema(
        [(f.name, pa.string() if pa.types.is_temporal(f.type) else f.type) for f in table.schema]
    )
    return table.cast(schema)


@dataclass(frozen=True)
class TableFormat:
    """How a file is to be read; what is None is told from its name or content."""

    format: str | None = None
    encoding: str = "utf-8"
    delimiter: str | None = None
    header: bool = True

    def __post_init__(self) -> None:
        if self.format is not None and self.format not in FORMATS:
            raise TableError(f"format must be one of {', '.join(FORMATS)}; got {self.format!r}.")
        if self.delimiter is not None and (len(self.delimiter) != 1 or self.delimiter in '"\r\n'):
            raise TableError(
                f"a delimiter is one character, no quote and no line break; got {self.delimiter!r}."
            )
        try:
            "".encode(self.encoding)
        except (LookupError, ValueError):
            raise TableError(
                f"there is no encoding {self.encoding!r}; try utf-8, latin-1 or cp1252."
            ) from None


@dataclass(frozen=True)
class Table:
    """A file of documents that can be read as often as needed.

    Attributes
    ----------
    name
        What messages call it.
    path
        Where its bytes are.
    how
        Its format, settled.
    columns
        Names of its columns, in order. For JSONL, the keys of all its records.
    """

    name: str
    path: Path
    how: TableFormat
    columns: list[str] = field(default_factory=list)

    @property
    def format(self) -> str:
        """One of `FORMATS`."""
        return self.how.format or "csv"

    def batches(self) -> Iterator[Batch]:
        """The rows, in order."""
        with _readable(self.name, self.how.encoding):
            if self.format == "parquet":
                yield from self._parquet_batches()
            else:
                yield from self._record_batches()

    def texts(self, batch: Batch, columns: Sequence[str]) -> list[str]:
        """The document of each row: the given columns, joined by a space; empty for nulls."""
        parts = [self._text_values(batch, column) for column in columns]
        if len(parts) == 1:
            return parts[0]
        return [" ".join(part for part in row if part) for row in zip(*parts, strict=True)]

    def check_columns(self, wanted: Iterable[str], option: str) -> None:
        """Refuse names of columns that the file does not have."""
        for name in wanted:
            if name not in self.columns:
                raise TableError(
                    f"{self.name} has no column {name!r}; it has: {', '.join(self.columns)}. "
                    f"Choose one with {option}."
                )

    def _text_values(self, batch: Batch, column: str) -> list[str]:
        values = batch.column(column)
        for offset, value in enumerate(values):
            if value is not None and not isinstance(value, str):
                raise TableError(
                    f"{self.name} row {batch.first_row + offset + 1}: column {column!r} holds "
                    f"{value!r}, not a text."
                )
        return [value or "" for value in values]

    def _parquet_batches(self) -> Iterator[Batch]:
        import pyarrow as pa
        import pyarrow.parquet as pq

        with pq.ParquetFile(self.path) as file:
            row = 0
            for part in file.iter_batches(batch_size=_BATCH_ROWS):
                yield Batch(row, None, pa.Table.from_batches([part]))
                row += part.num_rows

    def _record_batches(self) -> Iterator[Batch]:
        with _open_text(self.path, self.how.encoding) as lines:
            if self.format == "jsonl":
                records = _json_records(lines, self.name)
            else:
                records = _csv_records(lines, self.name, self.how, self.columns)
            row = 0
            chunk: list[Record] = []
            for record in records:
                chunk.append(record)
                if len(chunk) == _BATCH_ROWS:
                    yield Batch(row, chunk, None)
                    row += len(chunk)
                    chunk = []
            if chunk:
                yield Batch(row, chunk, None)


@contextlib.contextmanager
def open_table(name: str, how: TableFormat | None = None) -> Iterator[Table]:
    """A file of documents; ``-`` is standard input.

    Parameters
    ----------
    name
        Path of a CSV, TSV, JSONL or Parquet file; the text formats may be gzipped.
    how
        What its name and content do not tell.

    Raises
    ------
    TableError
        When it is missing, empty or not what it is said to be.
    """
    how = how or TableFormat()
    with contextlib.ExitStack() as stack:
        path, shown = Path(name), "standard input" if name == "-" else name
        with _readable(shown, how.encoding):
            if name == "-":
                path = stack.enter_context(_kept(sys.stdin.buffer))
            elif not path.exists():
                raise TableError(f"there is no file {name}.")
            elif path.is_dir():
                raise TableError(f"{name} is a folder; a file of documents is needed.")
            elif not path.is_file():
                with path.open("rb") as pipe:
                    path = stack.enter_context(_kept(pipe))
            how = replace(how, format=how.format or _format_of(path))
            table = Table(shown, path, how)
            table = replace(table, columns=_columns(table))
        yield table


def format_of_name(name: str) -> str | None:
    """The format that a file name stands for, if any."""
    path = Path(name)
    if path.suffix.lower() != ".gz":
        return ENDINGS.get(path.suffix.lower())
    inner = ENDINGS.get(Path(path.stem).suffix.lower())
    return None if inner == "parquet" else inner


def unknown_ending(name: str) -> str:
    """What to tell about a name that stands for no format."""
    return (
        f"{name}: the ending must be one of {', '.join(ENDINGS)}; .gz may follow a text format's."
    )


def _format_of(path: Path) -> str:
    named = format_of_name(path.name)
    if named is not None:
        return named
    with _open_bytes(path) as file:
        head = file.read(4096).lstrip(b"\xef\xbb\xbf \t\r\n")
    if head.startswith(b"PAR1"):
        return "parquet"
    if head.startswith(b"{"):
        return "jsonl"
    return "tsv" if b"\t" in head.split(b"\n")[0] and b"," not in head.split(b"\n")[0] else "csv"


def _columns(table: Table) -> list[str]:
    if table.path.stat().st_size == 0:
        raise TableError(f"{table.name} is empty.")
    if table.format == "parquet":
        import pyarrow.parquet as pq

        columns = [str(name) for name in pq.read_schema(table.path).names]
    else:
        with _open_text(table.path, table.how.encoding) as lines:
            if table.format == "jsonl":
                records = _json_records(lines, table.name)
                columns = list(dict.fromkeys(key for record in records for key in record))
            else:
                columns = _csv_columns(lines, table.name, table.how)
    if not columns:
        raise TableError(f"{table.name} has no rows.")
    twice = sorted({name for name in columns if columns.count(name) > 1})
    if twice:
        raise TableError(f"{table.name} has more than one column {twice[0]!r}; rename one.")
    return columns


def _csv_rows(lines: IO[str], name: str, how: TableFormat) -> Iterator[tuple[int, list[str]]]:
    """Rows of a CSV or TSV file, each with the line it begins on; blank lines as empty rows."""
    delimiter = how.delimiter or ("\t" if how.format == "tsv" else ",")
    # The limit is the csv module's own, and the only way to let a long document through.
    csv.field_size_limit(sys.maxsize)
    reader = csv.reader(lines, delimiter=delimiter, strict=True)
    line = 1
    try:
        for row in reader:
            yield line, row
            line = reader.line_num + 1
    except csv.Error as error:
        raise TableError(
            f"{name}: the row that begins on line {line} is broken: {error}."
        ) from None


def _csv_columns(lines: IO[str], name: str, how: TableFormat) -> list[str]:
    first = next((row for _, row in _csv_rows(lines, name, how) if row), [])
    return first if how.header else [f"c{i}" for i in range(1, len(first) + 1)]


def _csv_records(
    lines: IO[str], name: str, how: TableFormat, columns: list[str]
) -> Iterator[Record]:
    header_seen = not how.header
    for line, row in _csv_rows(lines, name, how):
        if not header_seen:
            header_seen = bool(row)
            continue
        if not row:
            # A blank line is a row only where an empty field could not be written otherwise.
            if len(columns) > 1:
                continue
            row = [""]
        if len(row) != len(columns):
            raise TableError(
                f"{name} line {line} has {len(row)} fields, but {len(columns)} were expected: "
                f"{', '.join(columns)}."
            )
        yield dict(zip(columns, row, strict=True))


def _json_records(lines: IO[str], name: str) -> Iterator[Record]:
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
            if "\\u" in line:  # half a surrogate pair can be escaped, but is no text
                json.dumps(record, ensure_ascii=False).encode()
        except (ValueError, RecursionError) as error:
            reason = error.msg if isinstance(error, json.JSONDecodeError) else error
            raise TableError(f"{name} line {number} is not JSON: {reason}.") from None
        if not isinstance(record, dict):
            raise TableError(
                f"{name} line {number} must be a JSON object; got {line.strip()[:40]}."
            )
        yield record


@contextlib.contextmanager
def _kept(stream: IO[bytes]) -> Iterator[Path]:
    """What comes through a pipe, as a file: it is read more than once."""
    with scratch_file() as (file, path):
        shutil.copyfileobj(stream, file)
        file.flush()
        yield path


@contextlib.contextmanager
def _open_bytes(path: Path) -> Iterator[IO[bytes]]:
    with path.open("rb") as raw:
        compressed = raw.read(2) == b"\x1f\x8b"
        raw.seek(0)
        if compressed:
            with gzip.open(raw) as file:
                yield file  # type: ignore[misc]
        else:
            yield raw


@contextlib.contextmanager
def _open_text(path: Path, encoding: str) -> Iterator[IO[str]]:
    utf8 = codecs.lookup(encoding).name == "utf-8"
    with _open_bytes(path) as raw:
        yield io.TextIOWrapper(raw, encoding="utf-8-sig" if utf8 else encoding, newline="")


@contextlib.contextmanager
def _readable(name: str, encoding: str) -> Iterator[None]:
    """Turn what the readers raise for a bad file into one sentence."""
    try:
        yield
    except UnicodeError as error:
        reason = str(error)
        if isinstance(error, UnicodeDecodeError):
            reason = f"byte 0x{error.object[error.start]:02x} cannot be read"
        raise TableError(
            f"{name} is not {encoding.upper()}: {reason}; say which encoding it has, e.g. "
            "--encoding latin-1."
        ) from None
    except (gzip.BadGzipFile, zlib.error, EOFError) as error:
        raise TableError(f"{name} is a damaged gzip file: {error}.") from None
    except OSError as error:
        raise TableError(f"{name} cannot be read: {error.strerror or error}.") from None
    except Exception as error:
        if type(error).__module__ == "pyarrow.lib":
            raise TableError(f"{name} cannot be read as Parquet: {error}.") from None
        raise
