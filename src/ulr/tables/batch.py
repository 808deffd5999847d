"""A few thousand rows of a table, as they were read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from ulr.errors import TableError

if TYPE_CHECKING:
    import pyarrow as pa

Record = dict[str, Any]

BATCH_ROWS = 16_384


class Rows(Protocol):
    """Rows of values, all in the same order."""

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[list[Any]]: ...

    def column(self, place: int, /) -> list[Any]:
        """The values of a column, by its position."""
        ...


class RowList(list[list[Any]]):
    """Rows in a list."""

    def column(self, place: int, /) -> list[Any]:
        """The values of a column, by its position."""
        return [row[place] for row in self]


class LazyRows:
    """What rows were read from, made when it is asked for."""

    def __init__(self, make: Callable[[], list[bytes]]) -> None:
        self._make = make

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._make())


@dataclass(frozen=True, eq=False)
class Batch:
    """Some consecutive rows, in one of three forms.

    Attributes
    ----------
    first_row
        Number of rows before them.
    columns
        Names of the columns of `rows`.
    rows
        Values of each row, in the order of `columns`; None where records or a table are given.
    records
        Rows with keys of their own, as JSON has them; None in the other forms.
    table
        An Arrow table; None in the other forms.
    raw
        What each row was read from, for an output of the same format: text, or bytes in UTF-8. None
        without one.
    """

    first_row: int
    columns: Sequence[str] = ()
    rows: Rows | None = None
    records: list[Record] | None = None
    table: pa.Table | None = None
    raw: Iterable[Any] | None = field(default=None, repr=False)

    def __len__(self) -> int:
        if self.table is not None:
            return int(self.table.num_rows)
        return len(self.rows if self.rows is not None else self.records or ())

    def column(self, name: str) -> list[Any]:
        """The values of a column; None where a record has none."""
        if self.table is not None:
            return list(_python_values(self.table.column(name)))
        if self.records is not None:
            return [record.get(name) for record in self.records]
        return [] if self.rows is None else self.rows.column(list(self.columns).index(name))

    def as_records(self) -> list[Record]:
        """The rows as records, whatever they were read from."""
        if self.records is not None:
            return self.records
        if self.table is not None:
            names = self.table.column_names
            values = [_python_values(column) for column in self.table.columns]
            return [dict(zip(names, row, strict=True)) for row in zip(*values, strict=True)]
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows or ()]


Added = Mapping[str, Sequence[Any]]  # values of further columns, by name


def _python_values(column: pa.ChunkedArray) -> list[Any]:
    """Values of an Arrow column; as text where Python has no value for a date or a time."""
    import pyarrow as pa

    try:
        return list(column.to_pylist())
    except (ValueError, OverflowError, KeyError) as error:
        try:
            return list(column.cast(pa.string()).to_pylist())
        except pa.ArrowException:
            raise TableError(
                f"a Parquet column of {column.type} has a value that cannot be read: "
                f"{str(error)[:200].rstrip('.')}."
            ) from None
