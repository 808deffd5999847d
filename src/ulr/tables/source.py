"""One file of documents: its format, encoding and columns, and what is wrong with a bad file."""

from __future__ import annotations

import contextlib
import gzip
import io
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO

from ulr.errors import TableError, UlrError
from ulr.files import is_remote, open_bytes, store_errors
from ulr.tables.formats import (
    TEXT_FORMATS,
    TableFormat,
    module_of,
    recognise_encoding,
    recognise_format,
)

HEAD_BYTES = 65_536


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
            encoding = how.encoding or recognise_encoding(head)
            if encoding.lower().replace("_", "-") in ("utf-8", "utf8"):
                encoding = "utf-8-sig"
            source = replace(source, encoding=encoding)
        module = module_of(source.format)
        if source.format in ("csv", "tsv"):
            sniffed, is_named = module.delimiter_of(head.decode(source.encoding, "replace"))
            default = "\t" if source.format == "tsv" and not is_named else sniffed
            source = replace(source, delimiter=how.delimiter or default)
        columns: list[str] = []
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
        if type(error).__module__ == "pyarrow.lib":
            reason = str(error)[:200]
            raise TableError(f"{source.name} cannot be read as Parquet: {reason}.") from None
        if isinstance(error, OSError) or is_remote(source.path):
            with store_errors(source.name):
                raise
        raise
