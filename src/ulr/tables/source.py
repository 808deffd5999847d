"""One file of documents: its format, encoding and columns, and what is wrong with a bad file."""

from __future__ import annotations

import contextlib
import gzip
import io
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import IO

from ulr.errors import TableError, UlrError
from ulr.files import is_remote, open_bytes, store_errors
from ulr.tables.content import Content, delimiter_of, recognise_content
from ulr.tables.formats import (
    TEXT_FORMATS,
    TableFormat,
    format_of_name,
    has_mark,
    module_of,
    recognise_encoding,
    recognise_format,
)

HEAD_BYTES = 65_536
_SHOWN = 60
MOST_LINE_BYTES = 1 << 26  # of a line; a file without line ends would fill the memory


@dataclass(frozen=True)
class Source:
    """One file of documents, its format recognised."""

    name: str  # what messages call it
    path: str  # of its bytes, or the address of a file in an object store
    format: str  # one of FORMAT_NAMES
    encoding: str = "utf-8"
    delimiter: str = ","
    header: bool = True
    columns: tuple[str, ...] = ()
    is_complete: bool = True  # otherwise, the columns are the keys of the first JSON records
    has_mark: bool = False  # whether a text file begins with a byte order mark
    line_end: str = "\n"
    sheet: str = ""  # of a workbook
    files: tuple[str, ...] = ()  # text files that are one document each, in the folder `path`
    notes: tuple[str, ...] = ()  # what was decided from the content, one sentence each


def open_source(
    name: str, how: TableFormat | None = None, path: str | Path | None = None
) -> Source:
    """One file, recognised; `name` is for messages, and also its path or address unless given."""
    how, path = how or TableFormat(), str(path or name)
    source = Source(name, path, how.format or "csv", how.encoding or "utf-8", header=how.header)
    with readable(source):
        with open_bytes(path) as file:
            head = file.read(HEAD_BYTES)
        if not head:
            raise TableError(f"{name} is empty.")
        source = replace(source, format=recognise_format(name, how.format, head))
        if source.format in TEXT_FORMATS:
            source = _recognise_text(source, how, head)
        module = module_of(source.format)
        if source.format == "xlsx":
            source = module.choose_sheet(source, how.sheet)
        columns = list(source.columns)
        if source.format == "jsonl" and len(head) == HEAD_BYTES:
            columns = module.first_columns(source, head)
            source = replace(source, is_complete=not columns)
    with readable(source):
        columns = columns or module.columns(source)
    if not columns:
        raise TableError(f"{name} has no rows.")
    twice = sorted({each for each in columns if columns.count(each) > 1})
    if twice:
        raise TableError(f"{name} has more than one column {twice[0]!r}; rename one.")
    return replace(source, columns=tuple(columns))


def _recognise_text(source: Source, how: TableFormat, head: bytes) -> Source:
    """A text file with all that its beginning tells."""
    encoding = how.encoding or recognise_encoding(head)
    if encoding.lower().replace("_", "-") in ("utf-8", "utf8"):
        encoding = "utf-8-sig"
    line_end = "\r\n" if b"\n" in head and head.partition(b"\n")[0].endswith(b"\r") else "\n"
    source = replace(source, encoding=encoding, line_end=line_end, has_mark=has_mark(head))
    if source.format not in ("csv", "tsv", "txt"):
        return source
    text = head.decode(encoding, "replace").removeprefix("\ufeff")
    sniffed, is_named = delimiter_of(text)
    default = "\t" if source.format == "tsv" and not is_named else sniffed
    source = replace(source, delimiter=how.delimiter or default)
    if how.delimiter or is_named or (how.format and source.format == "txt"):
        return source
    content = recognise_content(text, source.delimiter)
    if how.format or format_of_name(source.name):
        return replace(source, notes=_doubts(source, content))
    return _decided(source, content)


def _doubts(source: Source, content: Content) -> tuple[str, ...]:
    """What the content of a file with a telling name makes doubtful."""
    if source.format == "txt":
        if not (content.is_table and content.has_names and source.delimiter in content.first):
            return ()
        doubt = "looks like a table, but every line is read as a document; --format csv reads it"
    elif (
        source.header and content.is_table > content.has_names and source.delimiter in content.first
    ):
        first = content.first[:_SHOWN]
        doubt = f"begins with {first!r}, read as names of columns; --no-header if it is a document"
    else:
        return ()
    return (f"{source.name} {doubt}.",)


def _decided(source: Source, content: Content) -> Source:
    """A file whose name says nothing: a table or documents by line, with or without names."""
    if not content.is_table and (source.header or source.delimiter in content.first):
        note = f"{source.name} is read as text, one document per line; --format csv for a table."
        return replace(source, format="txt", notes=(note,))
    if not source.header:
        return source
    what = "the first row has the names of the columns; --no-header if it has not"
    if not content.has_names:
        what = "its columns are c1, c2, …; --format csv if the first row has their names"
    note = f"{source.name} is read as {source.format.upper()}: {what}; --format txt for text."
    return replace(source, header=content.has_names, notes=(note,))


def check_same_columns(sources: Sequence[Source]) -> None:
    """Refuse files that do not go together; JSON files may have different keys."""
    first, keyed = sources[0], {"json", "jsonl"}
    for source in sources[1:]:
        if source.columns != first.columns and not {source.format, first.format} <= keyed:
            raise TableError(
                f"{source.name} has the columns {', '.join(source.columns)}, but {first.name} has "
                f"{', '.join(first.columns)}; files of one run need the same columns."
            )


@contextlib.contextmanager
def open_text(source: Source) -> Iterator[IO[str]]:
    """Content of a text file; line ends are kept as they are."""
    with open_bytes(source.path) as raw:
        yield io.TextIOWrapper(raw, encoding=source.encoding, newline="")


def check_line(source: Source, line: str | bytes) -> None:
    """Refuse a line that was cut at the limit."""
    if len(line) >= MOST_LINE_BYTES:
        raise TableError(
            f"{source.name} has a line of more than {MOST_LINE_BYTES >> 20} MB, which is no text to "
            "classify."
        )


def lines_of(source: Source, file: IO[str]) -> Iterator[str]:
    """The lines of a text file, of bounded length."""
    for line in iter(partial(file.readline, MOST_LINE_BYTES), ""):
        if len(line) >= MOST_LINE_BYTES:
            check_line(source, line)
        yield line


@contextlib.contextmanager
def readable(source: Source) -> Iterator[None]:
    """Turn what readers raise for a bad file into one sentence."""
    try:
        yield
    except UlrError:
        raise
    except UnicodeError as error:
        reason = str(error)
        if isinstance(error, UnicodeDecodeError):
            reason = f"byte 0x{error.object[error.start]:02x} is not valid"
        raise TableError(
            f"{source.name} is not {source.encoding.upper().removesuffix('-SIG')}: {reason}. Files "
            "of Windows and old Excel are often in cp1252: add --encoding cp1252; or save the file "
            "as UTF-8."
        ) from None
    except (gzip.BadGzipFile, zlib.error, EOFError) as error:
        raise TableError(f"{source.name} is a damaged gzip file: {error}.") from None
    except Exception as error:
        # For damaged metadata, pyarrow raises an OSError without a number.
        is_damaged = source.format == "parquet" and getattr(error, "errno", 0) is None
        if is_damaged or type(error).__module__ == "pyarrow.lib":
            reason = str(error)[:200].rstrip(" .")
            raise TableError(f"{source.name} cannot be read as Parquet: {reason}.") from None
        if isinstance(error, OSError) or is_remote(source.path):
            with store_errors(source.name):
                raise
        raise
