"""Text files with one document per line and no header; their only column is ``text``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import IO

from ulr.errors import TableError
from ulr.tables.batch import BATCH_ROWS, Added, Batch, RowList
from ulr.tables.formats import Source
from ulr.tables.text_io import open_text


def columns(source: Source) -> list[str]:
    """One column, ``text``."""
    return ["text"]


def batches(source: Source) -> Iterator[Batch]:
    """The lines in batches; a blank line is an empty document."""
    with open_text(source.path, source.encoding) as lines:
        start = 0
        while rows := RowList([line.rstrip("\r\n")] for line in islice(lines, BATCH_ROWS)):
            yield Batch(start, ("text",), rows)
            start += len(rows)


def write(
    file: IO[bytes],
    sources: Sequence[Source],
    rows: Iterable[tuple[Batch, Added]],
    added: dict[str, type],
) -> None:
    """A text file has no place for further columns."""
    raise TableError("a .txt file has no columns to write labels into; name a .csv or .jsonl file.")
