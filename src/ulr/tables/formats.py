"""The formats of tables: which there are, and how to recognise them by name or content."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from ulr.errors import TableError

_OLD_OFFICE = b"\xd0\xcf\x11\xe0"
# Beginnings of files that are often given by mistake, and their names.
_OTHER_CONTENT = {
    b"%PDF": "a PDF document",
    _OLD_OFFICE: "an old Excel or Word file (.xls, .doc); save it as .xlsx or .csv",
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
_BINARY_TABLES = {b"PK\x03\x04": "xlsx", b"PAR1": "parquet"}
_BOMS = {b"\xef\xbb\xbf": "utf-8-sig", b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}
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
_MODULES = {"tsv": "csv", "jsonl": "json", "xlsx": "excel", "txt": "text"}


@dataclass(frozen=True)
class TableFormat:
    """How a file is read; what is None is recognised from its name and content."""

    format: str | None = None  # one of FORMAT_NAMES
    encoding: str | None = None  # of text formats: UTF-8, or UTF-16 where the file begins like it
    delimiter: str | None = None  # of CSV files
    header: bool = True  # whether a CSV or Excel file has a row of column names
    sheet: str | None = None  # of an Excel workbook: the first one that is not empty
    lines: bool = False  # whether lines are documents also where there are several text files

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


def module_of(format_: str) -> Any:
    """The module that reads and writes a format.

    It has ``columns(source)``, names of the columns; ``batches(source)``, the rows in order; and
    ``write(file, table, rows, added, format_)``, see `ulr.tables.write_table`.
    """
    return import_module(f"ulr.tables.{_MODULES.get(format_, format_)}_files")


def format_of_name(name: str) -> str | None:
    """The format that a file name stands for, if any; ``.gz`` may follow a text format's ending."""
    path = Path(name)
    if path.suffix.lower() != ".gz":
        return _ENDINGS.get(path.suffix.lower())
    inner = _ENDINGS.get(Path(path.stem).suffix.lower())
    return inner if inner in TEXT_FORMATS else None


def check_output_name(name: str) -> None:
    """Refuse an output whose name stands for no format; a text file has no columns."""
    if format_of_name(name) in (None, "txt"):
        endings = ", ".join(ending for ending in _ENDINGS if ending != ".txt")
        raise TableError(
            f"{name}: the ending must be one of {endings}; .gz may follow that of a text format."
        )


def recognise_format(name: str, given: str | None, head: bytes) -> str:
    """The format as given, by name, or by the first bytes; those of anything else are refused."""
    named = given or format_of_name(name)
    content = next((each for mark, each in _BINARY_TABLES.items() if head.startswith(mark)), None)
    if content is not None:
        if named not in (content, None):
            raise TableError(
                f"{name} is not a {named} file but looks like .{content}; rename it, or add "
                f"--format {content}."
            )
        return content
    for mark, what in _OTHER_CONTENT.items():
        # The workbook reader knows .xls; and texts can be HTML, if the format is given.
        allowed = named == "xlsx" if mark == _OLD_OFFICE else given and mark.startswith(b"<")
        if head[: len(mark)].lower() == mark.lower() and not allowed:
            raise TableError(f"{name} is {what}; a CSV, Excel, JSON or Parquet file is needed.")
    if named is not None:
        return named
    start = head.lstrip(b"\xef\xbb\xbf \t\r\n")
    if start.startswith((b"{", b"[")):
        return "jsonl" if start.startswith(b"{") else "json"
    first = head.split(b"\n")[0]
    return "tsv" if b"\t" in first and b"," not in first else "csv"


def has_mark(head: bytes) -> bool:
    """Whether a file begins with a byte order mark."""
    return any(map(head.startswith, _BOMS))


def recognise_encoding(head: bytes) -> str:
    """UTF-8, or UTF-16 where a file begins like it; other encodings must be named."""
    for mark, encoding in _BOMS.items():
        if head.startswith(mark):
            return encoding
    # Text of mostly Latin letters in UTF-16 has a zero byte in every second place.
    for encoding, place in (("utf-16-le", 1), ("utf-16-be", 0)):
        zeros = head[place::2]
        if len(zeros) > 3 and zeros.count(0) > 0.6 * len(zeros):
            return encoding
    return "utf-8"
