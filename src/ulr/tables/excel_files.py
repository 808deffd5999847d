"""Excel workbooks (.xlsx): the first sheet that is not empty."""

from __future__ import annotations

import datetime
import json
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from typing import IO, Any

from ulr.errors import TableError
from ulr.tables.batch import BATCH_ROWS, Added, Batch, RowList
from ulr.tables.formats import Source, common_columns, scanned

_MOST_ROWS = 1_048_576
_MOST_CHARACTERS = 32_767  # of a cell


def _rows(source: Source) -> list[list[Any]]:
    from python_calamine import CalamineError, CalamineWorkbook, PasswordError

    try:
        workbook = CalamineWorkbook.from_path(str(source.path))
        for name in workbook.sheet_names:
            rows = workbook.get_sheet_by_name(name).to_python(skip_empty_area=True)
            if rows:
                return rows
    except PasswordError:
        raise TableError(f"{source.name} has a password; save a copy without one.") from None
    except (CalamineError, OSError, ValueError) as error:
        _refuse_other_archives(source)
        raise TableError(f"{source.name} cannot be read as an Excel workbook: {error}.") from None
    return []


def _refuse_other_archives(source: Source) -> None:
    """Name what a zip archive is that holds no workbook."""
    if not zipfile.is_zipfile(source.path):
        return
    with zipfile.ZipFile(source.path) as archive:
        names = archive.namelist()
    if any(name.startswith("word/") for name in names):
        what = "a Word document"
    elif any(name.startswith("ppt/") for name in names):
        what = "a PowerPoint presentation"
    else:
        what = "a zip archive; extract it first"
    raise TableError(f"{source.name} is {what}; a CSV, Excel, JSON or Parquet file is needed.")


def columns(source: Source) -> list[str]:
    """The cells of the first row, or c1, c2, … without a header."""
    rows = _rows(source)
    if not rows:
        return []
    if not source.header:
        return [f"c{i}" for i in range(1, len(rows[0]) + 1)]
    return [str(cell) if cell != "" else f"c{i}" for i, cell in enumerate(rows[0], 1)]


def batches(source: Source) -> Iterator[Batch]:
    """The rows in batches; empty cells are None, whole numbers are integers."""
    rows = _rows(source)[1 if source.header else 0 :]
    for start in range(0, len(rows), BATCH_ROWS):
        some = rows[start : start + BATCH_ROWS]
        values = RowList([_value(cell) for cell in row] for row in some)
        yield Batch(start, source.columns, values)


def _value(cell: Any) -> Any:
    if cell == "":
        return None
    if isinstance(cell, float) and cell.is_integer() and abs(cell) < 2**53:
        return int(cell)
    return cell


def write(
    file: IO[bytes],
    sources: Sequence[Source],
    rows: Iterable[tuple[Batch, Added]],
    added: dict[str, type],
) -> None:
    """Write one sheet; see `FormatReader.write`."""
    import xlsxwriter

    names = common_columns(scanned(sources))

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
        row = 1
        for batch, values in rows:
            more = zip(*values.values(), strict=True)
            for record, tail in zip(batch.as_records(), more, strict=True):
                if row == _MOST_ROWS:
                    raise TableError("an Excel sheet has at most 1,048,576 rows; write .csv.")
                cells = [*(record.get(name) for name in names), *tail]
                for place, cell in enumerate(cells):
                    sheet.write(row, place, _cell(cell, sources[0].name, row))
                row += 1


def _cell(value: Any, name: str, row: int) -> Any:
    """A value as Excel has it."""
    if isinstance(value, dict | list):
        value = json.dumps(value, ensure_ascii=False, default=str)
    if isinstance(value, str) and len(value) > _MOST_CHARACTERS:
        raise TableError(
            f"{name} row {row}: a cell of an Excel sheet has at most {_MOST_CHARACTERS:,} "
            "characters; write a .csv or .parquet file."
        )
    if isinstance(value, datetime.datetime) and value.tzinfo is not None:
        return value.isoformat()
    if value is None or isinstance(
        value, str | bool | int | float | datetime.datetime | datetime.date | datetime.time
    ):
        if isinstance(value, float) and (value != value or abs(value) == float("inf")):
            return str(value)
        if type(value) is int and abs(value) > 2**53:  # Excel's numbers have no more digits
            return str(value)
        return value
    return str(value)
