"""Text files with one document per line and no header; their only column is ``text``."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from ulr.tables.batch import Batch, in_batches
from ulr.tables.source import Source, open_text


def columns(source: Source) -> list[str]:
    """One column, ``text``."""
    return ["text"]


def batches(source: Source) -> Iterator[Batch]:
    """The lines in batches; a blank line is an empty document."""
    start = 0
    with open_text(source) as file:
        lines = (line.rstrip("\r\n") for line in file)
        for texts, _ in in_batches((line, line) for line in lines):
            yield Batch(source.name, start, pa.record_batch({"text": pa.array(texts, pa.string())}))
            start += len(texts)
