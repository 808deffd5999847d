"""Excel workbooks (.xlsx): one sheet is read; the others are copied into a labelled workbook."""

from __future__ import annotations

import contextlib
import math
import pickle
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import date, datetime, time
from pathlib import Path
from typing import IO, Any

import python_calamine
import xlsxwriter

from ulr.errors import TableError
from ulr.files import open_bytes, temporary_folder
from ulr.tables import excel_process
from ulr.tables.batch import BATCH_ROWS, Batch, Rows, as_cell
from ulr.tables.source import Source
from ulr.tables.table import Table

_MOST_ROWS = 1_048_576
_MOST_CHARACTERS = 32_767  # of a cell


def choose_sheet(source: Source, name: str | None) -> Source:
    """The sheet of a name, or the first one that is not empty, with its columns."""
    sheets: dict[str, list[list[Any]]] = dict(_ask(source, "sheets"))
    if name is not None and name not in sheets:
        raise TableError(
            f"{source.name} has no sheet {name!r} with cells; it has: {', '.join(sheets)}. Choose "
            "one with --sheet."
        )
    chosen = next(iter(sheets), "") if name is None else name
    first = sheets.get(chosen, [[]])[0]
    named = [cell if source.header else "" for cell in first]
    columns = [str(cell) if cell != "" else f"c{i}" for i, cell in enumerate(named, 1)]
    others = ", ".join(repr(each) for each in sheets if each != chosen)
    note = f"{source.name}: the sheet {chosen!r} is read; --sheet reads another: {others}."
    notes = (note,) if others and name is None else ()
    return replace(source, sheet=chosen, columns=tuple(columns), notes=notes)


def _ask(source: Source, what: str) -> Any:
    """The answer of `ulr.tables.excel_process` about a workbook."""
    packages = str(Path(python_calamine.__file__).parents[1])
    command = [sys.executable, "-I", "-S", excel_process.__file__, packages, what, source.sheet]
    with open_bytes(source.path) as file:
        run = subprocess.run(command, input=file.read(), capture_output=True, check=False)
    reason = "it is damaged, or its sheets are too large"
    if run.returncode == 0:
        answer = pickle.loads(run.stdout)  # of our own process
        if not isinstance(answer, str):
            return answer
        reason = answer.rstrip(".")
    raise TableError(
        f"{source.name} cannot be read as an Excel workbook: {reason}; if it is another zip archive, "
        "extract it first."
    )


def columns(source: Source) -> list[str]:
    """The cells of the first row, or c1, c2, … without a header."""
    return list(source.columns)


def batches(source: Source) -> Iterator[Batch]:
    """The rows in batches; empty cells are None, whole numbers are integers."""
    rows = _ask(source, "rows")[1 if source.header else 0 :]
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
    """Write one sheet, and the values of the other sheets of a single workbook."""
    source, names = table.sources[0], table.all_columns()
    sheets: list[tuple[str, list[list[Any]]]] = [("ulr", [])]
    if len(table.sources) == 1 and source.format == "xlsx":
        sheets = _ask(source, "others")
    with temporary_folder() as folder:
        options = {
            "constant_memory": True,
            "strings_to_urls": False,
            "strings_to_formulas": False,
            "default_date_format": "yyyy-mm-dd hh:mm:ss",
            "tmpdir": str(folder),
        }
        package = _Package(file)
        workbook = xlsxwriter.Workbook(package, options)
        try:
            for name, other_rows in sheets:
                sheet = _new_sheet(workbook, name)
                if name == source.sheet or len(sheets) == 1:
                    sheet.write_row(0, 0, [*names, *added])
                    for row, cells in enumerate(_cells(names, rows), 1):
                        _write_row(sheet, row, cells, table.name)
                for row, cells in enumerate(other_rows):
                    _write_row(sheet, row, cells, f"{table.name} sheet {name!r}")
            workbook.close()
        except BaseException as error:
            package.discard()
            _close_sheets(workbook)
            if isinstance(error, xlsxwriter.exceptions.FileCreateError):  # a full disk
                raise error.args[0] from None
            raise


def _cells(names: Sequence[str], rows: Rows) -> Iterator[Iterable[Any]]:
    """The cells of each row with those of the added columns."""
    for batch, values in rows:
        columns = [*map(batch.column, names), *values.values()]
        yield from zip(*columns, strict=True)


def _new_sheet(workbook: Any, name: str) -> Any:
    """A sheet of a name; of another one where other programs allow names that Excel does not."""
    try:
        return workbook.add_worksheet(name)
    except xlsxwriter.exceptions.XlsxWriterException:
        return workbook.add_worksheet()


def _write_row(sheet: Any, row: int, cells: Iterable[Any], name: str) -> None:
    if row == _MOST_ROWS:
        raise TableError("an Excel sheet has at most 1,048,576 rows; write .csv.")
    for place, cell in enumerate(cells):
        sheet.write(row, place, _excel_cell(cell, name, row))


class _Package:
    """The file of a workbook, whose end is discarded after an error.

    The archive writes its end when Python frees it, and prints an error where the disk is full.
    """

    def __init__(self, file: IO[bytes]) -> None:
        self._file: IO[bytes] | None = file

    def __getattr__(self, name: str) -> Any:
        # Not a file in memory, which can be freed before the archive.
        return (lambda *_: 0) if self._file is None else getattr(self._file, name)

    def discard(self) -> None:
        self._file = None


def _close_sheets(workbook: Any) -> None:
    """Close the temporary files of a workbook, for the same reason."""
    workbook.fileclosed = 1
    for sheet in workbook.worksheets():
        with contextlib.suppress(OSError, AttributeError):
            sheet.row_data_fh.close()


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
