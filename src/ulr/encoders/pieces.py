"""Texts split at spaces and line ends, and integers that are computed once per distinct piece.

Tokens and words never cross such a piece, so both are looked up piece by piece. NumPy finds the
pieces and Arrow the distinct ones, without Python's global lock.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import pairwise, repeat
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from ulr.threads import available_cores

SPACE = "▁"
MOST_TEXTS = 16_384  # to split at once: more texts share more pieces, which are looked up once
_FEWEST_TEXTS = 512  # of a thread
_MOST_CHARACTERS = 1 << 22
_FEW_PIECES = 1000  # which Python splits before Arrow is loaded
_MAX_PIECES = 500_000
_VALUES_PER_PIECE = 20

Result = TypeVar("Result")
Numbers = NDArray[np.int64]
Ragged = tuple[NDArray[np.int32], Numbers]


class Pieces(NamedTuple):
    """The pieces of some texts: words with the spaces before them, and line ends.

    The beginning of a text counts as a space, and so does ``▁``.
    """

    distinct: list[str]
    places: NDArray[np.int32]  # index into `distinct` of every piece, one text after the other
    counts: NDArray[np.int64]  # number of pieces of each text; an empty text has none


class SplitTexts(list[str]):
    """A list of texts that keeps their pieces, for several users of them; it must not change.

    `n_threads` threads share the work on them; None for every available core.
    """

    def __init__(self, texts: Iterable[str], n_threads: int | None = None) -> None:
        super().__init__(texts)
        self.n_threads = n_threads
        self._pieces: dict[tuple[int, int], Pieces] = {}
        self._numbers: dict[tuple[int, int], tuple[_Table, Numbers]] = {}

    def pieces(self, rows: slice) -> Pieces:
        """The pieces of some of the texts, split at the first call."""
        key = rows.start, rows.stop
        if key not in self._pieces:
            self._pieces[key] = _split(self[rows])
        return self._pieces[key]

    def numbers(self, rows: slice, table: _Table, memo: PieceMemo) -> Numbers:
        """Numbers of these pieces in a table; of a second table, those of the first say most."""
        key, distinct = (rows.start, rows.stop), self.pieces(rows).distinct
        if key not in self._numbers:
            self._numbers[key] = table, memo.find(table, distinct)
        first, numbers = self._numbers[key]
        if first is table:
            return numbers
        translation = table.translation(first, int(numbers.max(initial=0)) + 1)
        found = translation[numbers]
        if len(unknown := np.flatnonzero(found < 0)):
            found[unknown] = memo.find(table, [distinct[place] for place in unknown.tolist()])
            translation[numbers[unknown]] = found[unknown]
        return found


class PieceMemo:
    """Integers of texts, which are those of their pieces, computed once per distinct piece.

    `compute` returns the integers of some pieces, none of them a line end, and how many each has.
    Above `max_pieces` pieces, or 20 integers for each of them, all are forgotten. Threads may
    share it.
    """

    def __init__(
        self,
        compute: Callable[[list[str]], Ragged],
        line_end: Sequence[int] = (),
        max_pieces: int = _MAX_PIECES,
    ) -> None:
        self._compute, self._line_end, self._max_pieces = compute, line_end, max_pieces
        self._table = _Table(line_end)
        self._lock = threading.Lock()

    def __call__(self, texts: Sequence[str]) -> Ragged:
        """Integers of all texts, (n,), and their number per text, (n_texts,)."""
        found = map_slices(partial(self.of_slice, texts), texts)
        values, counts = zip(*found, strict=True) if found else ((), ())
        return (
            np.concatenate([np.empty(0, np.int32), *values]),
            np.concatenate([np.empty(0, np.int64), *counts]),
        )

    def of_slice(self, texts: Sequence[str], rows: slice) -> Ragged:
        """Integers of some of the texts; `SplitTexts` keep their pieces for the next user."""
        table = self._table
        if max(len(table.numbers), table.n_values / _VALUES_PER_PIECE) > self._max_pieces:
            table = self._table = _Table(self._line_end)
        if isinstance(texts, SplitTexts):
            pieces, numbers = texts.pieces(rows), texts.numbers(rows, table, self)
        else:
            pieces = _split(texts[rows])
            numbers = self.find(table, pieces.distinct)
        starts = table.starts[numbers]
        lengths = (table.starts[numbers + 1] - starts)[pieces.places]
        ends = np.append(0, np.cumsum(lengths))
        indices = np.repeat(starts[pieces.places] - ends[:-1], lengths)
        indices += np.arange(ends[-1])
        per_text = np.diff(ends[np.append(0, np.cumsum(pieces.counts))])
        return table.values[indices], per_text

    def find(self, table: _Table, pieces: list[str]) -> Numbers:
        """Numbers of distinct pieces in a table, to which new ones are added."""
        numbers = np.fromiter(map(table.numbers.get, pieces, repeat(-1)), np.int64, len(pieces))
        if len(unknown := np.flatnonzero(numbers < 0)):
            missing = [pieces[place] for place in unknown.tolist()]
            with self._lock:
                if new := [piece for piece in missing if piece not in table.numbers]:
                    table.add(new, *self._compute(new))
            numbers[unknown] = [table.numbers[piece] for piece in missing]
        return numbers

    def __reduce__(self) -> tuple[Any, ...]:
        return PieceMemo, (self._compute, self._line_end, self._max_pieces)


class _Table:
    """Numbers of pieces; the integers of piece i are ``values[starts[i] : starts[i + 1]]``.

    Threads may read it while one adds to it: arrays have space left at their end, where later
    integers are written before their pieces get numbers.
    """

    def __init__(self, line_end: Sequence[int]) -> None:
        self.numbers = {"\n": 0}
        self.n_values = len(line_end)
        self.starts = np.array([0, len(line_end)], dtype=np.int64)
        self.values = np.array(line_end, dtype=np.int32)
        self._translation: tuple[_Table, Numbers] | None = None

    def translation(self, other: _Table, size: int) -> Numbers:
        """Numbers of at least `size` pieces of another table, the last one asked for; -1 if unknown.

        A thread that writes into an array that another one has replaced writes in vain, no more.
        """
        last, known = self._translation or (None, np.empty(0, np.int64))
        if last is not other:
            known = np.empty(0, np.int64)
        if len(known) < size:
            known = np.concatenate([known, np.full(2 * size - len(known), -1)])
            self._translation = other, known
        return known

    def add(self, pieces: list[str], values: NDArray[np.int32], counts: NDArray[np.int64]) -> None:
        """Add the integers of new pieces."""
        first, n_values = len(self.numbers), self.n_values + len(values)
        end = first + len(pieces)
        if end >= len(self.starts):
            self.starts = np.concatenate([self.starts, np.empty(2 * end, np.int64)])
        self.starts[first + 1 : end + 1] = self.n_values + np.cumsum(counts)
        if n_values > len(self.values):
            self.values = np.concatenate([self.values, np.empty(2 * n_values, np.int32)])
        self.values[self.n_values : n_values] = values
        self.n_values = n_values
        self.numbers.update(zip(pieces, range(first, end), strict=True))


def map_slices(work: Callable[[slice], Result], texts: Sequence[str]) -> list[Result]:
    """Results of a function of slices of texts, in order; threads share the slices.

    A slice has some millions of characters at most, if it has more than one text.
    """
    most = texts.n_threads if isinstance(texts, SplitTexts) else None
    most = most or (available_cores() if len(texts) > _FEWEST_TEXTS else 1)
    size = min(MOST_TEXTS, max(_FEWEST_TEXTS, -(-len(texts) // most)))
    ends = np.cumsum(np.fromiter(map(len, texts), np.int64, count=len(texts)))
    slices, start = list[slice](), 0
    while start < len(texts):
        limit = _MOST_CHARACTERS + (ends[start - 1] if start else 0)
        end = min(start + size, max(start + 1, int(np.searchsorted(ends, limit, side="right"))))
        slices.append(slice(start, end))
        start = end
    n_threads = min(most, len(slices))
    if n_threads < 2:
        return list(map(work, slices))
    with ThreadPoolExecutor(n_threads, thread_name_prefix="ulr") as pool:
        return list(pool.map(work, slices))


def _split(texts: Sequence[str]) -> Pieces:
    """Split texts at spaces and line ends; lone surrogates are replaced."""
    try:
        encoded = [f" {text}".encode() if text else b"" for text in texts]
    except UnicodeEncodeError:
        return _split([replace_surrogates(text) for text in texts])
    content = b"".join(encoded)
    if SPACE.encode() in content:  # tokenizers write spaces so
        return _split([text.replace(SPACE, " ") for text in texts])
    lengths = np.fromiter(map(len, encoded), np.int64, count=len(encoded))
    edges = np.append(0, np.cumsum(lengths))
    # Pieces begin at the first of several spaces, and before and after a line end.
    numbers = np.frombuffer(content, np.uint8)
    is_space = numbers == ord(" ")
    begins = is_space.copy()
    begins[1:] &= ~is_space[:-1]
    begins[edges[:-1][edges[:-1] < edges[-1]]] = True
    if b"\n" in content:
        is_line_end = numbers == ord("\n")
        begins |= is_line_end
        begins[1:] |= is_line_end[:-1]
    starts = np.flatnonzero(begins)
    counts = np.diff(np.searchsorted(starts, edges))
    if len(starts) < _FEW_PIECES:
        bounds = pairwise([*starts.tolist(), len(content)])
        some = [content[begin:end].decode() for begin, end in bounds]
        numbers_of = {piece: number for number, piece in enumerate(dict.fromkeys(some))}
        places = np.fromiter(map(numbers_of.__getitem__, some), np.int32, count=len(some))
        return Pieces(list(numbers_of), places, counts)
    import pyarrow as pa

    # They follow each other without a gap, so Arrow reads them where they are.
    offsets = pa.py_buffer(np.append(starts, len(content)))
    pieces = pa.LargeStringArray.from_buffers(len(starts), offsets, pa.py_buffer(content))
    numbered = pieces.dictionary_encode()
    # The array's own conversion to NumPy would import pandas.
    places = np.frombuffer(numbered.indices.buffers()[1], np.int32, len(starts))
    return Pieces(numbered.dictionary.to_pylist(), places, counts)


def replace_surrogates(text: str) -> str:
    """Replace lone surrogates, which half of an emoji leaves; they are no text."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
