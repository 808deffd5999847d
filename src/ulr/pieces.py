"""Texts split at spaces and line ends, and integers that are computed once per distinct piece.

Tokens and words never cross such a piece, so both are looked up piece by piece. Splitting and
numbering are done by Arrow, which releases Python's global lock.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import repeat
from typing import Any, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from ulr.cores import available_cores

SPACE = "▁"
MOST_TEXTS = 16_384  # to split at once: more texts share more pieces, which are looked up once
_FEWEST_TEXTS = 512  # of a thread
_MOST_CHARACTERS = 1 << 22
_MAX_PIECES = 500_000
_VALUES_PER_PIECE = 20

Result = TypeVar("Result")
Integers = NDArray[np.integer]
Ragged = tuple[NDArray[np.int32], NDArray[np.int64]]


def map_slices(work: Callable[[slice], Result], texts: Sequence[str]) -> list[Result]:
    """Results of a function of slices of texts, in order; threads share the slices."""
    most = texts.n_threads if isinstance(texts, SplitTexts) else None
    most = most or (available_cores() if len(texts) > _FEWEST_TEXTS else 1)
    slices = _in_slices(texts, min(MOST_TEXTS, max(_FEWEST_TEXTS, -(-len(texts) // most))))
    n_threads = min(most, len(slices))
    if n_threads < 2:
        return [work(rows) for rows in slices]
    with ThreadPoolExecutor(n_threads, thread_name_prefix="ulr") as pool:
        return list(pool.map(work, slices))


def _in_slices(texts: Sequence[str], size: int) -> list[slice]:
    """Slices of at most so many texts, and with some millions of characters at most if possible."""
    ends = np.cumsum(np.fromiter(map(len, texts), np.int64, count=len(texts)))
    slices, start = list[slice](), 0
    while start < len(texts):
        limit = _MOST_CHARACTERS + (ends[start - 1] if start else 0)
        end = min(start + size, max(start + 1, int(np.searchsorted(ends, limit, side="right"))))
        slices.append(slice(start, end))
        start = end
    return slices


@dataclass(frozen=True, eq=False)
class Pieces:
    """The pieces of some texts.

    Attributes
    ----------
    distinct
        The distinct pieces: a word with the spaces before it, or a line end. The beginning of a
        text counts as a space, and so does ``▁``.
    numbers
        (n_pieces,) index into `distinct` of every piece, one text after the other.
    counts
        (n_texts,) number of pieces of each text; an empty text has none.
    """

    distinct: list[str]
    numbers: NDArray[np.int32]
    counts: NDArray[np.int64]


class SplitTexts(list[str]):
    """A list of texts that keeps their pieces, for several users of them.

    Parameters
    ----------
    texts
        The texts; the list must not be changed.
    n_threads
        Threads that share the work on them; None for every available core.
    """

    def __init__(self, texts: Iterable[str], n_threads: int | None = None) -> None:
        super().__init__(texts)
        self.n_threads = n_threads
        self._pieces: dict[tuple[int, int], Pieces] = {}

    @overload  # type: ignore[override]
    def __getitem__(self, rows: int) -> str: ...
    @overload
    def __getitem__(self, rows: slice) -> list[str]: ...
    def __getitem__(self, rows: int | slice) -> str | list[str]:
        if isinstance(rows, slice) and rows.indices(len(self)) == (0, len(self), 1):
            return self
        return super().__getitem__(rows)

    def pieces(self, rows: slice) -> Pieces:
        """The pieces of some of the texts, split at the first call."""
        key = rows.start, rows.stop
        if key not in self._pieces:
            self._pieces[key] = split_pieces(self[rows])
        return self._pieces[key]


def pieces_of(texts: Sequence[str], rows: slice) -> Pieces:
    """The pieces of some texts, which `SplitTexts` keep."""
    return texts.pieces(rows) if isinstance(texts, SplitTexts) else split_pieces(texts[rows])


def split_pieces(texts: Sequence[str]) -> Pieces:
    """Split texts at spaces and line ends; lone surrogates are replaced."""
    import pyarrow as pa

    content, edges = _joined(texts)
    starts = _piece_starts(content, edges)
    # Pieces follow each other without a gap, so Arrow reads them where they are.
    offsets = pa.py_buffer(np.append(starts, len(content)))
    pieces = pa.LargeStringArray.from_buffers(len(starts), offsets, pa.py_buffer(content))
    numbered = pieces.dictionary_encode()
    counts = np.diff(np.searchsorted(starts, edges))
    return Pieces(numbered.dictionary.to_pylist(), _integers(numbered.indices), counts)


def _joined(texts: Sequence[str]) -> tuple[bytes, NDArray[np.int64]]:
    """All texts in UTF-8, a space before each that is not empty, and their edges, (n_texts + 1,)."""
    try:
        encoded = [f" {text}".encode() if text else b"" for text in texts]
    except UnicodeEncodeError:
        return _joined([replace_surrogates(text) for text in texts])
    content = b"".join(encoded)
    if SPACE.encode() in content:  # tokenizers write spaces so
        return _joined([text.replace(SPACE, " ") for text in texts])
    edges = np.zeros(len(encoded) + 1, dtype=np.int64)
    np.cumsum(np.fromiter(map(len, encoded), np.int64, count=len(encoded)), out=edges[1:])
    return content, edges


def _piece_starts(content: bytes, edges: NDArray[np.int64]) -> NDArray[np.int64]:
    """Where pieces begin: at the first of several spaces, and before and after a line end."""
    numbers = np.frombuffer(content, np.uint8)
    is_space = numbers == ord(" ")
    begins = is_space.copy()
    begins[1:] &= ~is_space[:-1]
    begins[edges[:-1][edges[:-1] < edges[-1]]] = True
    if b"\n" in content:
        is_line_end = numbers == ord("\n")
        begins |= is_line_end
        begins[1:] |= is_line_end[:-1]
    return np.flatnonzero(begins)


def _integers(array: Any) -> NDArray[Any]:
    """Values of an Arrow array without nulls; its own method would import pandas."""
    dtype = np.dtype(f"i{array.type.bit_width // 8}")
    return np.frombuffer(array.buffers()[1], dtype, len(array), array.offset * dtype.itemsize)


def replace_surrogates(text: str) -> str:
    """Replace lone surrogates, which half of an emoji leaves; they are no text."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


class PieceMemo:
    """Integers of texts, which are those of their pieces, one after the other.

    The integers of each distinct piece are computed once. Threads may share it.

    Parameters
    ----------
    compute
        Returns the integers of new pieces, none of them with a line end, and how many each has.
    line_end
        The integers of a line end.
    max_pieces
        Most pieces that are remembered; with more, all are forgotten.
    """

    def __init__(
        self,
        compute: Callable[[list[str]], Ragged],
        line_end: Sequence[int] = (),
        max_pieces: int = _MAX_PIECES,
    ) -> None:
        self._compute, self._max_pieces = compute, max_pieces
        self._line_end = np.array(line_end, dtype=np.int32)
        self._memo = self._new_memo()

    def __call__(self, pieces: Pieces) -> Ragged:
        """Integers of all texts, (n,), and their number per text, (n_texts,)."""
        memo = self._memo  # another thread may replace it
        found = map(memo.numbers.get, pieces.distinct, repeat(-1))
        numbers = np.fromiter(found, np.int64, count=len(pieces.distinct))
        if len(new := np.flatnonzero(numbers < 0)):
            unknown = [pieces.distinct[place] for place in new.tolist()]
            numbers[new] = memo.add(unknown, *self._compute(unknown))
        all_starts, all_values = memo.arrays  # read after the numbers, so that it has all of them
        starts = all_starts[numbers]
        lengths = (all_starts[numbers + 1] - starts)[pieces.numbers]
        ends = np.append(0, np.cumsum(lengths))
        indices = np.repeat(starts[pieces.numbers] - ends[:-1], lengths)
        indices += np.arange(ends[-1])
        per_text = np.diff(ends[np.append(0, np.cumsum(pieces.counts))])
        if memo.is_larger(self._max_pieces):
            self._memo = self._new_memo()
        return all_values[indices], per_text

    def _new_memo(self) -> _Memo:
        memo = _Memo()
        memo.add(["\n"], self._line_end, np.array([len(self._line_end)]))
        return memo


class _Memo:
    """Integers of pieces of text; pieces are only added.

    Threads read without a lock: a piece is numbered after its integers are in `arrays`, and a
    number means the same in all later `arrays`.

    Attributes
    ----------
    numbers
        The number of each piece.
    arrays
        Starts and integers; those of piece i are from ``starts[i]`` to ``starts[i + 1]``. Both have
        space left at their end, and are replaced by larger ones when it is used up.
    """

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}
        self.arrays = np.zeros(1024, dtype=np.int64), np.empty(4096, dtype=np.int32)
        self._n_pieces = self._n_values = 0
        self._lock = threading.Lock()

    def is_larger(self, max_pieces: int) -> bool:
        """Whether there are more pieces than that, or too many integers."""
        return self._n_pieces > max_pieces or self._n_values > _VALUES_PER_PIECE * max_pieces

    def add(self, pieces: list[str], values: Integers, counts: Integers) -> NDArray[np.int64]:
        """Append pieces, and return their numbers.

        One that another thread has added meanwhile gets a second number.
        """
        with self._lock:
            first, start = self._n_pieces, self._n_values
            self._n_pieces += len(pieces)
            self._n_values += len(values)
            starts = _with_space(self.arrays[0], self._n_pieces + 1)
            known = _with_space(self.arrays[1], self._n_values)
            starts[first + 1 : self._n_pieces + 1] = start + np.cumsum(counts)
            known[start : self._n_values] = values
            self.arrays = starts, known
            self.numbers.update(zip(pieces, range(first, self._n_pieces), strict=True))
            return np.arange(first, self._n_pieces)


def _with_space(array: NDArray[Any], size: int) -> NDArray[Any]:
    """The array, or a larger copy of it if it is smaller than `size`."""
    if size <= len(array):
        return array
    larger = np.empty(2 * size, dtype=array.dtype)
    larger[: len(array)] = array
    return larger
