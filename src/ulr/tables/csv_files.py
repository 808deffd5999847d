"""CSV and TSV files: regular blocks of rows are read by pyarrow, the others by the csv module.

pyarrow silently reads ``"a" b`` as ``a b``, and all that follows an unclosed quote as one field. So
quotes are checked before, and a block that is irregular in any way is left to the strict csv module,
which names the broken row.
"""

from __future__ import annotations

import codecs
import csv
import io
from collections.abc import Iterable, Iterator
from functools import cache, partial
from itertools import chain, islice, tee
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from ulr.errors import TableError
from ulr.files import open_bytes
from ulr.tables.batch import BATCH_ROWS, MOST_LETTERS, Batch, Rows, as_cell
from ulr.tables.content import UNCLOSED
from ulr.tables.source import MOST_LINE_BYTES, Source, check_line, lines_of, open_text
from ulr.tables.table import Table

_BLOCK_BYTES, _MOST_BYTES = 1 << 20, 1 << 22
_QUOTE, _LINE_FEED, _RETURN = b'"\n\r'
_BLANK = ("\n", "\r\n", "\r")

# Of the whole process; the module has no other, and its default of 128 KiB is short.
csv.field_size_limit(MOST_LETTERS)
# Arrow's own handler of Ctrl-C, of the whole process too, loses 2 of 85 signals. Blocks are short,
# so that Python's handler is soon called.
pa.enable_signal_handlers(False)


def columns(source: Source) -> list[str]:
    """The fields of the first row, or c1, c2, … without a header."""
    fields, _, _ = _beginning(source)
    return fields if source.header else [f"c{i + 1}" for i in range(len(fields))]


def _beginning(source: Source) -> tuple[list[str], int, int]:
    """The first row, and the lines and bytes, as UTF-8, before the rows of values."""
    n_lines = n_bytes = 0
    with open_text(source) as file:
        for number, last, fields, text in _rows(source, lines_of(source, file)):
            names_delimiter = text.strip(' "\r\n').lower() == f"sep={source.delimiter}"
            is_skipped = text in _BLANK or (number == 1 and names_delimiter)
            if source.header or (number == 1 and names_delimiter):
                n_lines, n_bytes = last, n_bytes + len(text.encode())
            if not is_skipped:
                return fields, n_lines, n_bytes
    return [], n_lines, n_bytes


def batches(source: Source) -> Iterator[Batch]:
    """The rows in batches of text, with what each was read from."""
    _, n_lines, n_bytes = _beginning(source)
    start = 0
    with open_bytes(source.path) as file:
        if source.encoding != "utf-8-sig":
            stream = pa.PythonFile(file, "r")
            file = io.BufferedReader(pa.transcoding_input_stream(stream, source.encoding, "utf-8"))
        elif file.read(len(codecs.BOM_UTF8)) != codecs.BOM_UTF8:
            file.seek(0)
        file.read(n_bytes)
        for block in _row_blocks(source, file):
            if (found := _by_pyarrow(source, block)) is not None:
                data, texts = found
                n_lines += _count(block, _LINE_FEED)
            else:
                further = map(bytes.decode, iter(partial(_line, source, file), b""))
                data, texts, n_lines = _by_csv_module(source, block.decode(), further, n_lines)
            for row in range(0, len(data), BATCH_ROWS):
                some = data.slice(row, BATCH_ROWS)
                yield Batch(source.name, start, some, texts.slice(row, BATCH_ROWS))
                start += len(some)


def _line(source: Source, file: IO[bytes]) -> bytes:
    line = file.readline(MOST_LINE_BYTES)
    check_line(source, line)
    return line


def _row_blocks(source: Source, file: IO[bytes]) -> Iterator[bytes]:
    """The content of a file in blocks that end with a line, and with a row unless it is long."""
    block, n_quotes = b"", 0
    while lines := file.read(_BLOCK_BYTES) + _line(source, file):
        block += lines
        n_quotes += _count(lines, _QUOTE)
        if n_quotes % 2 == 0 or len(block) >= _MOST_BYTES:
            yield block
            block, n_quotes = b"", 0
    if block:
        yield block


def _count(block: bytes, byte: int) -> int:
    """How often a byte occurs; faster than Python's method where that is often."""
    return int(np.count_nonzero(np.frombuffer(block, np.uint8) == byte))


def _by_pyarrow(source: Source, block: bytes) -> tuple[pa.RecordBatch, pa.Array] | None:
    """Fields and texts of the rows of a block; None if it is not regular."""
    texts = _row_texts(block, source.delimiter)
    if texts is None:
        return None
    several = len(source.columns) > 1
    try:
        table = pa.csv.read_csv(
            pa.BufferReader(block),
            read_options=pa.csv.ReadOptions(
                use_threads=False, block_size=len(block) + 1, column_names=source.columns
            ),
            # A blank line is a row only where an empty field could not be written otherwise.
            parse_options=pa.csv.ParseOptions(
                delimiter=source.delimiter, newlines_in_values=True, ignore_empty_lines=several
            ),
            convert_options=pa.csv.ConvertOptions(
                column_types=dict.fromkeys(source.columns, pa.string())
            ),
        )
    except pa.ArrowInvalid:  # rows of another length, or not UTF-8
        return None
    if several and len(texts) > len(table):
        texts = texts.filter(pc.invert(pc.is_in(texts, pa.array(_BLANK))))
    if len(texts) != len(table) or not len(table):
        return None
    return table.combine_chunks().to_batches()[0], texts


def _row_texts(block: bytes, delimiter: str) -> pa.Array | None:
    """The rows of a block with their line ends; None if its quotes or line ends are irregular."""
    if not delimiter.isascii() or block.startswith(codecs.BOM_UTF8):
        return None
    numbers = np.frombuffer(block, np.uint8)
    if b"\r" in block:
        returns = np.flatnonzero(numbers == _RETURN)
        if returns[-1] == len(block) - 1 or (numbers[returns + 1] != _LINE_FEED).any():
            return None
    ends = np.flatnonzero(numbers == _LINE_FEED) + 1
    if b'"' in block:
        # Quotes must alternately begin and end fields, or be doubled inside of one.
        quotes = np.flatnonzero(numbers == _QUOTE)
        if len(quotes) % 2:
            return None
        around = np.pad(numbers, 1, constant_values=_LINE_FEED)
        before, after = around[quotes[::2]], around[quotes[1::2] + 2]
        bounds = [ord(delimiter), _LINE_FEED, _QUOTE]
        if not (np.isin(before, bounds).all() and np.isin(after, [*bounds, _RETURN]).all()):
            return None
        ends = ends[np.searchsorted(quotes, ends) % 2 == 0]
    if len(ends) == 0 or ends[-1] != len(block):
        ends = np.append(ends, len(block))
    offsets = np.append(0, ends).astype(np.int32)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(block)]
    return pa.Array.from_buffers(pa.string(), len(ends), buffers)


def _by_csv_module(
    source: Source, block: str, further: Iterator[str], n_before: int
) -> tuple[pa.RecordBatch, pa.Array, int]:
    """Fields and texts of the rows of a block, and their last line; the last row may go on."""
    lines = list(io.StringIO(block, newline=""))
    width, rows, texts = len(source.columns), list[list[str]](), list[str]()
    end_of_block = n_lines = n_before + len(lines)
    for number, n_lines, fields, text in _rows(source, chain(lines, further), n_before):
        if text not in _BLANK or width == 1:
            if len(fields) != width:
                raise TableError(
                    f"{source.name} line {number} has {len(fields)} fields, but {width} were "
                    f"expected: {', '.join(source.columns)}."
                )
            rows.append(fields)
            texts.append(text)
        if n_lines >= end_of_block:
            break
    values = zip(*rows, strict=True) if rows else [()] * width
    arrays = [pa.array(column, pa.string()) for column in values]
    data = pa.RecordBatch.from_arrays(arrays, list(source.columns))
    return data, pa.array(texts, pa.string()), n_lines


def _rows(
    source: Source, lines: Iterable[str], n_before: int = 0
) -> Iterator[tuple[int, int, list[str], str]]:
    """Rows of some lines: the numbers of the first and last line, the fields, and the text."""
    given, again = tee(lines)
    reader = csv.reader(given, delimiter=source.delimiter, strict=True)
    start = 0
    try:
        for fields in reader:
            end = reader.line_num
            text = "".join(islice(again, end - start))
            yield n_before + start + 1, n_before + end, fields or [""], text
            start = end
    except csv.Error as error:
        reason = "a quote is never closed" if str(error) == UNCLOSED else str(error)
        if "field limit" in reason:
            reason = f"a field has more than {MOST_LETTERS:,} letters, the most of a document"
        raise TableError(
            f"{source.name}: the row that begins on line {n_before + start + 1} is broken: {reason}."
        ) from None


def write(file: IO[bytes], table: Table, rows: Rows, added: dict[str, type], format_: str) -> None:
    """Write CSV; the text of rows that were read from CSV is copied as it is."""
    source, names = table.sources[0], table.all_columns()
    delimiter = source.delimiter if source.format == format_ == "csv" else ","
    if format_ == "tsv":
        delimiter = "\t"
    copied = source.format in ("csv", "tsv") and source.delimiter == delimiter
    field = partial(_field, delimiter=delimiter)
    is_csv = source.format in ("csv", "tsv")  # whose mark tells Excel the encoding
    file.write(codecs.BOM_UTF8 if is_csv and source.has_mark else b"")
    line_end = source.line_end if is_csv else "\n"
    if source.header or not copied:
        header = delimiter.join(map(field, [*names, *added]))
        file.write(f"{header}{line_end}".encode())
    added_field = cache(field)  # few values are distinct
    for batch, values in rows:
        if copied and batch.raw is not None:
            # An empty text is one empty field, which must be quoted beside others.
            cells: list[Iterable[str]] = [
                (text.rstrip("\r\n") or '""' for text in batch.raw.to_pylist())
            ]
        else:
            cells = [map(field, batch.column(name)) for name in names]
        further = (map(added_field, values[name]) for name in added)
        lines = map(delimiter.join, zip(*cells, *further, strict=True))
        file.write(line_end.join([*lines, ""]).encode())


def _field(value: Any, delimiter: str) -> str:
    """A value as CSV, in quotes where it needs them."""
    text = str(as_cell(value))
    if '"' in text or delimiter in text or "\n" in text or "\r" in text:
        doubled = text.replace('"', '""')
        return f'"{doubled}"'
    return text
