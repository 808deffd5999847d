"""Excel workbooks (.xlsx): the first sheet that is not empty."""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import date, datetime, time
from itertools import count
from typing import IO, Any

import xlsxwriter
from python_calamine import CalamineError, CalamineWorkbook

from ulr.errors import TableError
from ulr.files import open_bytes
from ulr.tables.batch import BATCH_ROWS, Batch, Rows, as_cell
from ulr.tables.source import Source
from ulr.tables.table import Table

_MOST_ROWS = 1_048_576
_MOST_CHARACTERS = 32_767  # of a cell


def _rows(source: Source) -> list[list[Any]]:
    with open_bytes(source.path) as file:
        try:
            workbook = CalamineWorkbook.from_filelike(file)
            for name in workbook.sheet_names:
                rows = workbook.get_sheet_by_name(name).to_python(skip_empty_area=True)
                if rows:
                    return rows
        except (CalamineError, OSError, ValueError) as error:
            raise TableError(
                f"{source.name} cannot be read as an Excel workbook: {str(error).rstrip('.')}; if it "
                "is another zip archive, extract it first."
            ) from None
    return []


def columns(source: Source) -> list[str]:
    """The cells of the first row, or c1, c2, … without a header."""
    first = next(iter(_rows(source)), [])
    named = [cell if source.header else "" for cell in first]
    return [str(cell) if cell != "" else f"c{i}" for i, cell in enumerate(named, 1)]


def batches(source: Source) -> Iterator[Batch]:
    """The rows in batches; empty cells are None, whole numbers are integers."""
    rows = _rows(source)[1 if source.header else 0 :]
    for start in range(0, len(rows), BATCH_ROWS):
        some = rows[start : start + BATCH_ROWS]
        records = [dict(zip(source.columns, map(_value, row), strict=True)) for row in some]
        yield Batch(source.name, start, records)


def _value(cell: Any) -> Any:
    if cell == "":
        return None
    if isinstance(cell, float) and cell.is_integer() and abs(cell) < 2**53:
        return int(cell)
    return cell


def write(file: IO[bytes], table: Table, rows: Rows, added: dict[str, type], format_: str) -> None:
    """Write one sheet."""
    names = table.all_columns()
    with xlsxwriter.Workbook(
        file,
        {
            "constant_memory": True,
            "strings_to_urls": False,
            "strings_to_formulas": False,
            "default_date_format": "yyyy-mm-dd hh:mm:ss",
        },
    ) as workbook:
        sheet = workbook.add_worksheet("ulr")
        sheet.write_row(0, 0, [*names, *added])
        numbers = count(1)
        for batch, values in rows:
            columns = [batch.column(name) for name in names] + [values[name] for name in added]
            for cells, row in zip(zip(*columns, strict=True), numbers, strict=False):
                if row == _MOST_ROWS:
                    raise TableError("an Excel sheet has at most 1,048,576 rows; write .csv.")
                for place, cell in enumerate(cells):
                    sheet.write(row, place, _excel_cell(cell, table.name, row))


def _excel_cell(value: Any, name: str, row: int) -> Any:
    """A value as Excel has it."""
    value = as_cell(value)
    if isinstance(value, str) and len(value) > _MOST_CHARACTERS:
        raise TableError(
            f"{name} row {row}: a cell of an Excel sheet has at most {_MOST_CHARACTERS:,} "
            "characters; write a .csv or .parquet file."
        )
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value.isoformat()
    # Excel has neither NaN nor infinity, and its numbers have no more digits than a float.
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, int) and abs(value) > 2**53:
        return str(value)
    return value if isinstance(value, str | int | float | date | time) else str(value)
