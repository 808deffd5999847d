"""Reads a workbook in a process of its own; run as a script by `ulr.tables.excel_files`.

A damaged or hostile workbook can make the reader ask for terabytes, which ends the process that
reads it. Arguments: the folder of python_calamine, what is wanted (see `MODES`), and a sheet. The
workbook is standard input; the answer, or a text that says what is wrong, is written by pickle.
"""

from __future__ import annotations

import io
import pickle
import sys
from typing import Any

Sheet = tuple[str, list[list[Any]]]
# Of memory: a large workbook needs 30 times the bytes of its file; of time: 1 MB needs a second.
_LEAST_MEMORY, _MEMORY_PER_BYTE = 2 << 30, 60
_LEAST_SECONDS, _BYTES_PER_SECOND = 20, 100_000


def main() -> None:
    """Answer one question about a workbook."""
    sys.path.append(sys.argv[1])
    content = sys.stdin.buffer.read()
    _limit(len(content))
    answer: Any
    try:
        from python_calamine import CalamineWorkbook

        book = CalamineWorkbook.from_filelike(io.BytesIO(content))
        answer = MODES[sys.argv[2]](book, sys.argv[3])
    except BaseException as error:  # a panic of the reader is no Exception
        answer = str(error) or type(error).__name__
    writer = pickle.Pickler(sys.stdout.buffer, 5)
    writer.fast = True  # equal cells are not looked for
    writer.dump(answer)


def _limit(n_bytes: int) -> None:
    try:
        import resource
    except ImportError:  # Windows
        return
    for kind, limit in (
        (resource.RLIMIT_AS, _LEAST_MEMORY + _MEMORY_PER_BYTE * n_bytes),
        (resource.RLIMIT_CPU, _LEAST_SECONDS + n_bytes // _BYTES_PER_SECOND),
        (resource.RLIMIT_CORE, 0),
    ):
        _, most = resource.getrlimit(kind)
        if most == resource.RLIM_INFINITY or limit < most:
            resource.setrlimit(kind, (limit, most))


def _names(book: Any) -> list[str]:
    """Names of the sheets with cells; charts have none."""
    return [each.name for each in book.sheets_metadata if "WorkSheet" in str(each.typ)]


def sheets(book: Any, _: str) -> list[Sheet]:
    """The sheets that are not empty, each with its first row."""
    found = ((name, book.get_sheet_by_name(name)) for name in _names(book))
    rows = ((name, sheet.to_python(skip_empty_area=True, nrows=1)) for name, sheet in found)
    return [(name, first) for name, first in rows if first]


def rows(book: Any, name: str) -> list[list[Any]]:
    """The rows of a sheet from its first cell on."""
    return list(book.get_sheet_by_name(name).to_python(skip_empty_area=True))


def others(book: Any, name: str) -> list[Sheet]:
    """All sheets in their order; none of the rows of the one that is named."""
    found = (each for each in _names(book))
    return [
        (
            each,
            [] if each == name else book.get_sheet_by_name(each).to_python(skip_empty_area=False),
        )
        for each in found
    ]


MODES = {"sheets": sheets, "rows": rows, "others": others}

if __name__ == "__main__":
    main()
