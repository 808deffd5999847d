"""CSV and TSV files.

Regular rows are split block by block, see `ulr.tables.csv_blocks`. All others are split here rather
than by the csv module, which limits the length of fields for the whole process and does not tell
what a row was read from; tests compare the rows of all three.
"""

from __future__ import annotations

import codecs
import csv
import io
import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, repeat
from typing import IO, Any

import numpy as np

from ulr.errors import TableError
from ulr.files import open_bytes
from ulr.tables.batch import BATCH_ROWS, Added, Batch, LazyRows, RowList
from ulr.tables.csv_blocks import CsvBlock, count_bytes, read_blocks, split_block
from ulr.tables.formats import Source, common_columns, scanned
from ulr.tables.text_io import open_text

_DELIMITERS = ",;\t|"
_SNIFFED_LINES = 20
_LONGEST_NAMING = 100  # bytes of a line that names the delimiter


class UnclosedQuoteError(ValueError):
    """A quoted field does not end."""


def delimiter_of(head: str) -> tuple[str, bool]:
    """The delimiter of a CSV file, and whether its first line names it (``sep=;``).

    The character that splits the first lines into equally many fields, at least two; a comma where
    there is none.
    """
    named = head.partition("\n")[0].strip(' "\r')
    if named.lower().startswith("sep=") and len(named) == 5:
        return named[4], True
    whole_lines = head.splitlines()[:_SNIFFED_LINES]
    if len(whole_lines) > 1 and not head.endswith("\n"):
        whole_lines = whole_lines[:-1]
    best = ",", 1
    for delimiter in _DELIMITERS:
        widths = _widths(whole_lines, delimiter)
        if widths and min(widths) == max(widths) > best[1]:
            best = delimiter, widths[0]
    if best[1] == 1:  # lines of unequal width: the most frequent character of the header
        counts = {each: whole_lines[0].count(each) for each in _DELIMITERS} if whole_lines else {}
        most = max(counts, key=lambda each: counts[each], default=",")
        if counts.get(most):
            return most, False
    return best[0], False


def _widths(lines: list[str], delimiter: str) -> list[int]:
    """Numbers of fields of the complete rows in some lines; none if they are not CSV."""
    rows = []
    try:
        for _, fields, _ in parse_rows(iter(lines), delimiter):
            rows.append(fields)
    except UnclosedQuoteError:  # a row that goes on in later lines
        pass
    except ValueError:
        return []
    return [len(row) for row in rows if row != [""]]


def parse_rows(lines: Iterator[str], delimiter: str) -> Iterator[tuple[int, list[str], str]]:
    """Rows of CSV text: the number of the first line, the fields, and the text without line end.

    Raises
    ------
    ValueError
        With the number of the line that a broken row begins on, and what is wrong.
    """
    number = 0
    for line in lines:
        number += 1
        if '"' not in line:
            text = line.rstrip("\r\n")
            yield number, text.split(delimiter), text
            continue
        first, parts = number, [line]
        fields: list[str] = []
        quoted: list[str] | None = None  # parts of a quoted field that is not closed yet
        position = 0
        while True:
            text = parts[-1]
            end = len(text.rstrip("\r\n"))
            while True:
                if quoted is None:
                    if text[position : position + 1] == '"':
                        quoted, position = [], position + 1
                    else:
                        stop = text.find(delimiter, position, end)
                        fields.append(text[position : end if stop < 0 else stop])
                        if stop < 0:
                            position = -1
                            break
                        position = stop + 1
                        continue
                stop = text.find('"', position)
                if stop < 0:
                    quoted.append(text[position:])
                    break
                if text[stop + 1 : stop + 2] == '"':
                    quoted.append(text[position : stop + 1])
                    position = stop + 2
                    continue
                quoted.append(text[position:stop])
                fields.append("".join(quoted))
                quoted, position = None, stop + 1
                if position >= end:
                    position = -1
                    break
                if text[position] != delimiter:
                    raise ValueError(
                        f"{first}: {delimiter!r} expected after the quote in {text[:40]!r}"
                    )
                position += 1
            if quoted is None:
                break
            more = next(lines, None)
            if more is None:
                raise UnclosedQuoteError(f"{first}: a quote is never closed")
            number += 1
            parts.append(more)
            position = 0
        yield first, fields, "".join(parts).rstrip("\r\n")


def _rows(
    source: Source, lines: Iterator[str], n_before: int = 0
) -> Iterator[tuple[int, list[str], str]]:
    """Rows of a file, of which some lines were read before."""
    try:
        for number, fields, raw in parse_rows(lines, source.delimiter):
            yield n_before + number, fields, raw
    except ValueError as error:
        if isinstance(error, UnicodeError):
            raise
        line, _, reason = str(error).partition(": ")
        raise TableError(
            f"{source.name}: the row that begins on line {n_before + int(line)} is broken: {reason}."
        ) from None


def _names_delimiter(source: Source, line: str) -> bool:
    """Whether the first line of a file names the delimiter."""
    return line.strip(' "\r\n').lower() == f"sep={source.delimiter}"


def columns(source: Source) -> list[str]:
    """The fields of the first row, or c1, c2, … without a header."""
    with open_text(source.path, source.encoding) as lines:
        rows = _rows(source, lines)
        filled = (
            fields
            for number, fields, raw in rows
            if raw and not (number == 1 and _names_delimiter(source, raw))
        )
        first = next(filled, [])
    return first if source.header else [f"c{i}" for i in range(1, len(first) + 1)]


def batches(source: Source) -> Iterator[Batch]:
    """The rows in batches, with what each was read from."""
    if source.encoding not in ("utf-8", "utf-8-sig"):
        with open_text(source.path, source.encoding) as lines:
            yield from _careful_batches(source, lines)
        return
    with open_bytes(source.path) as file:
        blocks = read_blocks(file)
        start = n_lines = 0
        for block in blocks:
            first = n_lines == 0
            rows = _regular_rows(source, block, first)
            if rows is None:
                rest = io.TextIOWrapper(file, encoding="utf-8", newline="")
                text = block.decode("utf-8-sig" if first else "utf-8")
                remaining = chain(io.StringIO(text, newline=""), rest)
                yield from _careful_batches(source, remaining, start, n_lines)
                return
            n_lines += count_bytes(block, b"\n")
            for row in range(0, len(rows), BATCH_ROWS):
                some = rows[row : row + BATCH_ROWS]
                yield Batch(start, source.columns, some, raw=LazyRows(some.raw))
                start += len(some)


def _regular_rows(source: Source, block: bytes, first: bool) -> CsvBlock | None:
    """The rows of a block without the header; None if they are not regular."""
    if not first:
        return split_block(block, source.delimiter, len(source.columns))
    block = block.removeprefix(codecs.BOM_UTF8)
    line, _, rest = block.partition(b"\n")
    if len(line) < _LONGEST_NAMING and _names_delimiter(source, line.decode()):
        block = rest
    rows = split_block(block, source.delimiter, len(source.columns))
    if rows is None or not source.header:
        return rows
    filled = np.flatnonzero(rows.edges[:, -1] > rows.edges[:, 0] + 1)
    return rows[int(filled[0]) + 1 :] if len(filled) else None


def _careful_batches(
    source: Source, lines: Iterator[str], start: int = 0, n_lines: int = 0
) -> Iterator[Batch]:
    """The rows of lines of text in batches; so many rows and lines were read before."""
    width = len(source.columns)
    header_read = not source.header or n_lines > 0
    rows, raws = RowList(), list[bytes]()
    for number, fields, raw in _rows(source, lines, n_lines):
        if number == 1 and _names_delimiter(source, raw):
            continue
        if not header_read:
            header_read = bool(raw)
            continue
        # A blank line is a row only where an empty field could not be written otherwise.
        if not raw and width > 1:
            continue
        if len(fields) != width:
            raise TableError(
                f"{source.name} line {number} has {len(fields)} fields, but {width} were expected: "
                f"{', '.join(source.columns)}."
            )
        rows.append(fields)
        raws.append(raw.encode())
        if len(rows) == BATCH_ROWS:
            yield Batch(start, source.columns, rows, raw=raws)
            start, rows, raws = start + len(rows), RowList(), []
    if rows:
        yield Batch(start, source.columns, rows, raw=raws)


def write(
    file: IO[bytes],
    sources: Sequence[Source],
    rows: Iterable[tuple[Batch, Added]],
    added: dict[str, type],
    delimiter: str | None = None,
) -> None:
    """Write CSV; see `FormatReader.write`. Rows read from CSV are copied as they are."""
    source, names = sources[0], common_columns(scanned(sources))
    delimiter = delimiter or source.delimiter
    copied = source.format in ("csv", "tsv") and source.delimiter == delimiter
    if source.header or not copied:
        _write_rows(file, [[*names, *added]], delimiter)
    cells = {name: _Cells(delimiter) for name in added}
    for batch, values in rows:
        if copied and batch.raw is not None:
            # An empty raw row is one empty field, which must be quoted beside others.
            own = [raw or b'""' for raw in batch.raw]
            columns = (map(cells[name].__getitem__, each) for name, each in values.items())
            parts = zip(own, *columns, repeat(b"\n", len(own)), strict=True)
            file.write(b"".join(chain.from_iterable(parts)))
        else:
            _write_rows(
                file,
                (
                    [*(_cell(record.get(name)) for name in names), *more]
                    for record, more in zip(
                        batch.as_records(), zip(*values.values(), strict=True), strict=True
                    )
                ),
                delimiter,
            )


class _Cells(dict[Any, bytes]):
    """Values of an added column as CSV, each after a delimiter; few of them are distinct."""

    def __init__(self, delimiter: str) -> None:
        self._delimiter = delimiter

    def __missing__(self, value: Any) -> bytes:
        buffer = io.StringIO()
        csv.writer(buffer, delimiter=self._delimiter, lineterminator="\n").writerow(["", value])
        self[value] = buffer.getvalue()[:-1].encode()
        return self[value]


def _write_rows(file: IO[bytes], rows: Iterable[Iterable[Any]], delimiter: str) -> None:
    buffer = io.StringIO()
    # With both characters in the line end, the writer quotes fields that have either of them.
    writer = csv.writer(buffer, delimiter=delimiter, lineterminator="\r\n")
    for row in rows:
        writer.writerow(row)
        text = buffer.getvalue().removesuffix("\r\n")
        file.write(f"{text}\n".encode())
        buffer.seek(0)
        buffer.truncate()


def _cell(value: Any) -> Any:
    if isinstance(value, dict | list):
        return json.dumps(value, ensure_ascii=False, default=str)
    return value
