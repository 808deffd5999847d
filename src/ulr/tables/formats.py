"""The formats of tables: which there are, and how to recognise them by name or content."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Protocol

from ulr.errors import TableError
from ulr.tables.batch import Added, Batch

# Beginnings of files that are often given by mistake, and their names.
_OTHER_CONTENT = {
    b"%PDF": "a PDF document",
    b"\xd0\xcf\x11\xe0": "an old Excel or Word file (.xls, .doc); save it as .xlsx or .csv",
    b"\x89PNG": "a PNG picture",
    b"\xff\xd8\xff": "a JPEG picture",
    b"GIF8": "a GIF picture",
    b"7z\xbc\xaf": "a 7z archive",
    b"Rar!": "a RAR archive",
    b"BZh": "a bzip2 file; decompress it first",
    b"\xfd7zXZ": "an xz file; decompress it first",
    b"\x28\xb5\x2f\xfd": "a zstd file; decompress it first",
    b"SQLite format 3": "a SQLite database",
    b"ARROW1": "an Arrow (Feather) file; save it as Parquet",
    b"\x80\x04\x95": "a pickle, which is never loaded",
    b"\x7fELF": "a program",
    b"<!doctype html": "a web page",
    b"<html": "a web page",
    b"<?xml": "an XML file",
}


@dataclass(frozen=True)
class TableFormat:
    """How a file is read; what is None is recognised from its name and content.

    Attributes
    ----------
    format
        One of `FORMAT_NAMES`.
    encoding
        Of text formats; UTF-8, or UTF-16 where the file begins like it.
    delimiter
        Of CSV files.
    header
        Whether a CSV or Excel file has a row of column names.
    """

    format: str | None = None
    encoding: str | None = None
    delimiter: str | None = None
    header: bool = True

    def __post_init__(self) -> None:
        if self.format is not None and self.format not in FORMAT_NAMES:
            raise TableError(
                f"format must be one of {', '.join(FORMAT_NAMES)}; got {self.format!r}."
            )
        if self.delimiter is not None and (len(self.delimiter) != 1 or self.delimiter in '"\r\n'):
            raise TableError(
                "delimiter must be one character, neither a quote nor a line break; got "
                f"{self.delimiter!r}."
            )
        try:
            "".encode(self.encoding or "utf-8")
        except (LookupError, ValueError):
            raise TableError(
                f"there is no encoding {self.encoding!r}; try utf-8, cp1252 or latin-1."
            ) from None


@dataclass(frozen=True)
class Source:
    """One file of documents, its format recognised.

    Attributes
    ----------
    name
        What messages call it.
    path
        Where its bytes are.
    format
        One of `FORMAT_NAMES`.
    encoding, delimiter, header
        As of `TableFormat`, recognised.
    columns
        Names of its columns; for JSON, the keys of all records.
    is_scanned
        Whether that is so; otherwise they are the keys of the first records of a JSON file.
    """

    name: str
    path: Path
    format: str
    encoding: str = "utf-8"
    delimiter: str = ","
    header: bool = True
    columns: tuple[str, ...] = field(default=())
    is_scanned: bool = True


class FormatReader(Protocol):
    """A module that reads and writes one format."""

    def columns(self, source: Source) -> list[str]:
        """Names of the columns."""
        ...

    def batches(self, source: Source) -> Iterator[Batch]:
        """The rows, in order."""
        ...

    def write(
        self,
        file: IO[bytes],
        sources: Sequence[Source],
        rows: Iterable[tuple[Batch, Added]],
        added: dict[str, type],
    ) -> None:
        """Write rows with further columns.

        Parameters
        ----------
        file
            To write to.
        sources
            The files that the rows were read from.
        rows
            Batches, and the values of the added columns for each.
        added
            Names and types, `str` or `float`, of the added columns.
        """
        ...


def common_columns(sources: Sequence[Source]) -> tuple[str, ...]:
    """The columns of several files; refuses files that do not go together."""
    first = sources[0]
    keyed = ("json", "jsonl")
    for source in sources[1:]:
        if source.columns != first.columns and not (
            source.format in keyed and first.format in keyed
        ):
            raise TableError(
                f"{source.name} has the columns {', '.join(source.columns)}, but {first.name} has "
                f"{', '.join(first.columns)}; files of one run need the same columns."
            )
    return tuple(dict.fromkeys(name for source in sources for name in source.columns))


def scanned(sources: Sequence[Source]) -> list[Source]:
    """The files with all their columns; reads JSON files of which only the beginning was read."""
    return [
        source
        if source.is_scanned
        else replace(
            source, columns=tuple(reader_of(source.format).columns(source)), is_scanned=True
        )
        for source in sources
    ]


_ENDINGS = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "json",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".xlsx": "xlsx",
    ".txt": "txt",
}
FORMAT_NAMES = tuple(dict.fromkeys(_ENDINGS.values()))
TEXT_FORMATS = ("csv", "tsv", "jsonl", "json", "txt")


def reader_of(format_: str) -> FormatReader:
    """The module of a format."""
    from ulr.tables import csv_files, excel_files, json_files, parquet_files, text_files

    modules: dict[str, object] = {
        "csv": csv_files,
        "tsv": csv_files,
        "jsonl": json_files,
        "json": json_files,
        "parquet": parquet_files,
        "xlsx": excel_files,
        "txt": text_files,
    }
    return modules[format_]  # type: ignore[return-value]


def format_of_name(name: str) -> str | None:
    """The format that a file name stands for, if any; ``.gz`` may follow a text format's ending."""
    path = Path(name)
    if path.suffix.lower() != ".gz":
        return _ENDINGS.get(path.suffix.lower())
    inner = _ENDINGS.get(Path(path.stem).suffix.lower())
    return inner if inner in TEXT_FORMATS else None


def unknown_ending(name: str) -> str:
    """The message for an output whose name stands for no format; .txt has no columns."""
    endings = ", ".join(ending for ending in _ENDINGS if ending != ".txt")
    return f"{name}: the ending must be one of {endings}; .gz may follow that of a text format."


def format_of_content(name: str, head: bytes) -> str:
    """The format that a file's first bytes, decompressed, look like.

    Raises
    ------
    TableError
        When they are those of something else, such as a picture.
    """
    if head.startswith(b"PAR1"):
        return "parquet"
    if head.startswith(b"PK\x03\x04"):
        return "xlsx"
    refuse_other_content(name, head)
    start = head.lstrip(b"\xef\xbb\xbf \t\r\n")
    if start.startswith(b"{"):
        return "jsonl"
    if start.startswith(b"["):
        return "json"
    first = head.split(b"\n")[0]
    return "tsv" if b"\t" in first and b"," not in first else "csv"


def refuse_other_content(name: str, head: bytes) -> None:
    """Refuse a file whose first bytes are those of something that is no table."""
    for beginning, what in _OTHER_CONTENT.items():
        if head[: len(beginning)].lower() == beginning.lower():
            raise TableError(f"{name} is {what}; a CSV, Excel, JSON or Parquet file is needed.")
