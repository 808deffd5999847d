"""A few thousand rows of a file: an Arrow batch, or records where Arrow would lose something."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from ulr.errors import TableError
from ulr.markup import plain_texts

if TYPE_CHECKING:
    import pyarrow as pa

Record = dict[str, Any]
Added = Mapping[str, Sequence[Any]]  # values of further columns, by name
Value = TypeVar("Value")

BATCH_ROWS = 16_384
MOST_LETTERS = 10_000_000  # of a document; the longest novels have fewer
_BATCH_LETTERS = 1 << 24


@dataclass(frozen=True, eq=False)
class Batch:
    """Some consecutive rows of a file.

    They are an Arrow batch; or records for JSON, whose rows have keys and nested values of their own,
    and for Excel, whose columns hold values of several types.
    """

    name: str  # of the file
    first_row: int  # rows of the file before them
    data: pa.RecordBatch | list[Record]
    raw: Any = field(default=None, repr=False)  # texts of the rows, to copy into the same format

    def __len__(self) -> int:
        return len(self.data)

    def where(self, place: int) -> str:
        """What messages call a row of the batch."""
        return f"{self.name} row {self.first_row + place + 1}"

    def row(self, place: int) -> Batch:
        """A batch of one of the rows."""
        own = slice(place, place + 1)
        data = self.data[own] if isinstance(self.data, list) else self.data.slice(place, 1)
        return Batch(self.name, self.first_row + place, data)

    def column(self, name: str) -> list[Any]:
        """The values of a column; None where a record has none."""
        if isinstance(self.data, list):
            return [record.get(name) for record in self.data]
        import pyarrow as pa

        values = self.data.column(name)
        try:
            return list(values.to_pylist())
        except (ValueError, OverflowError, KeyError) as error:  # dates that Python does not have
            reason = str(error)[:200].rstrip(".")
        try:
            return list(values.cast(pa.string()).to_pylist())
        except pa.ArrowException:
            raise TableError(
                f"a Parquet column of {values.type} has a value that cannot be read: {reason}."
            ) from None

    def records(self) -> list[Record]:
        """The rows as records, whatever they were read from."""
        if isinstance(self.data, list):
            return self.data
        names = self.data.schema.names
        rows = zip(*map(self.column, names), strict=True)
        return [dict(zip(names, row, strict=True)) for row in rows]

    def texts(self, columns: Sequence[str]) -> list[str]:
        """The document of each row: its columns, joined, without HTML; numbers and dates are text."""
        parts = []
        for column in columns:
            values = self.column(column)
            if set(map(type, values)) != {str}:
                for place, value in enumerate(values):
                    if isinstance(value, bytes | dict | list):
                        raise TableError(
                            f"{self.where(place)}: column {column!r} holds {str(value)[:60]!r}, not "
                            "a text."
                        )
                values = ["" if value is None else str(value) for value in values]
            parts.append(values)
        if len(parts) > 1:
            parts = [[" ".join(filter(None, row)) for row in zip(*parts, strict=True)]]
        if max(map(len, parts[0]), default=0) > MOST_LETTERS:
            place = next(i for i, text in enumerate(parts[0]) if len(text) > MOST_LETTERS)
            raise TableError(
                f"{self.where(place)}: a document of {len(parts[0][place]):,} letters; it can have "
                f"at most {MOST_LETTERS:,}."
            )
        return plain_texts(parts[0])


Rows = Iterable[tuple[Batch, Added]]  # what is written


def in_batches(rows: Iterable[tuple[Value, str]]) -> Iterator[tuple[list[Value], list[str]]]:
    """Values and the texts they were read from, in lists of limited length."""
    values, texts, n_letters = list[Value](), list[str](), 0
    for value, text in rows:
        values.append(value)
        texts.append(text)
        n_letters += len(text)
        if len(values) == BATCH_ROWS or n_letters > _BATCH_LETTERS:
            yield values, texts
            values, texts, n_letters = [], [], 0
    if values:
        yield values, texts


def as_cell(value: Any) -> Any:
    """A value for a format that has no nested ones and no null; those are JSON and nothing.

    Tuples are several labels, whose names are joined.
    """
    if isinstance(value, tuple):
        return "; ".join(value)
    if isinstance(value, dict | list):
        return json.dumps(value, ensure_ascii=False, default=str)
    return "" if value is None else value
