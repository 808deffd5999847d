r"""Blocks of regular CSV rows, split by NumPy at delimiters and line ends outside of quotes.

A block is regular if it is UTF-8, every quote begins or ends a field or is doubled inside of one,
every row has the same number of fields, and lines end with ``\n`` or ``\r\n``. For such rows the
result is that of `ulr.tables.csv_files.parse_rows`, which reads all others.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO

import numpy as np
from numpy.typing import NDArray

_BLOCK_BYTES, _MOST_BYTES = 1 << 22, 1 << 24
_QUOTE, _LINE_FEED, _RETURN = b'"\n\r'

Positions = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class CsvBlock:
    """Some rows of a block of bytes.

    Attributes
    ----------
    content
        The block.
    text
        The same, decoded, if all of it is ASCII; None otherwise.
    edges
        (n_rows, n_columns + 1) position before each field, and the end of the row.
    """

    content: bytes
    text: str | None
    edges: Positions

    def __len__(self) -> int:
        return len(self.edges)

    def __iter__(self) -> Iterator[list[str]]:
        columns = [self.column(place) for place in range(self.edges.shape[1] - 1)]
        return map(list, zip(*columns, strict=True))

    def __getitem__(self, rows: slice) -> CsvBlock:
        return CsvBlock(self.content, self.text, self.edges[rows])

    def column(self, place: int, /) -> list[str]:
        """The values of a column, without quotes around them."""
        starts, ends = self.edges[:, place] + 1, self.edges[:, place + 1]
        numbers = np.frombuffer(self.content, np.uint8)
        # A row at the end of the block may be empty, and begin behind the last byte.
        quoted = (ends > starts) & (numbers[np.minimum(starts, len(numbers) - 1)] == _QUOTE)
        pairs = zip((starts + quoted).tolist(), (ends - quoted).tolist(), strict=True)
        if self.text is not None:
            values = [self.text[start:end] for start, end in pairs]
        else:
            values = [self.content[start:end].decode() for start, end in pairs]
        if quoted.any() and b'""' in self.content:
            return [value.replace('""', '"') for value in values]
        return values

    def raw(self) -> list[bytes]:
        """The rows as they are in the file, without line ends."""
        starts, ends = (self.edges[:, 0] + 1).tolist(), self.edges[:, -1].tolist()
        return [self.content[start:end] for start, end in zip(starts, ends, strict=True)]


def read_blocks(file: IO[bytes]) -> Iterator[bytes]:
    """The content of a file in blocks that end with a line, and with a row unless it is long."""
    while block := file.read(_BLOCK_BYTES) + file.readline():
        is_open = count_bytes(block, b'"') % 2  # the last row goes on in later lines
        while is_open and len(block) < _MOST_BYTES and (more := file.readline()):
            block += more
            is_open ^= more.count(b'"') % 2
        yield block


def count_bytes(block: bytes, byte: bytes) -> int:
    """How often a byte occurs; faster than Python's method where that is often."""
    return int(np.count_nonzero(np.frombuffer(block, np.uint8) == ord(byte)))


def split_block(block: bytes, delimiter: str, n_columns: int) -> CsvBlock | None:
    """The rows of a block; None if it is not regular.

    Blank lines are left out where there are several columns.

    Raises
    ------
    UnicodeDecodeError
        If the block is not UTF-8.
    """
    text = block.decode()
    if not delimiter.isascii():
        return None
    if b"\r" in block and block.count(b"\r") != block.count(b"\r\n"):
        return None
    numbers = np.frombuffer(block, np.uint8)
    delimiters = np.flatnonzero(numbers == ord(delimiter))
    ends = np.flatnonzero(numbers == _LINE_FEED)
    if len(ends) == 0 or ends[-1] != len(block) - 1:
        ends = np.append(ends, len(block))
    if b'"' in block:
        quotes = np.flatnonzero(numbers == _QUOTE)
        if not _are_regular(quotes, numbers, ord(delimiter)):
            return None
        delimiters = delimiters[np.searchsorted(quotes, delimiters) % 2 == 0]
        ends = ends[np.searchsorted(quotes, ends) % 2 == 0]
    befores = np.append(-1, ends[:-1])
    ends = ends - ((ends > befores + 1) & (numbers[ends - 1] == _RETURN))
    if n_columns > 1:
        filled = ends > befores + 1
        befores, ends = befores[filled], ends[filled]
    if len(delimiters) != len(ends) * (n_columns - 1):
        return None
    inner = delimiters.reshape(len(ends), n_columns - 1)
    if n_columns > 1 and not ((inner[:, 0] > befores) & (inner[:, -1] < ends)).all():
        return None
    edges = np.column_stack([befores, inner, ends])
    return CsvBlock(block, text if len(text) == len(block) else None, edges)


def _are_regular(quotes: Positions, numbers: NDArray[np.uint8], delimiter: int) -> bool:
    """Whether quotes alternately begin and end fields, or are doubled inside of one."""
    if len(quotes) % 2:
        return False
    opening, closing = quotes[::2], quotes[1::2]
    before = np.where(opening > 0, numbers[opening - 1], _LINE_FEED)
    after = np.where(
        closing + 1 < len(numbers), numbers[np.minimum(closing + 1, len(numbers) - 1)], _LINE_FEED
    )
    begins = (before == delimiter) | (before == _LINE_FEED) | (before == _QUOTE)
    stops = (after == delimiter) | (after == _LINE_FEED) | (after == _RETURN) | (after == _QUOTE)
    return bool(begins.all() and stops.all())
