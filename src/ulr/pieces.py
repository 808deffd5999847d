"""Texts split at spaces and line ends, and integers that are computed once per distinct piece.

Tokens and words never cross such a piece, so both are looked up piece by piece. NumPy finds the
pieces and Arrow the distinct ones, without Python's global lock.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import repeat
from typing import Any, TypeVar, overload
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from ulr.cores import available_cores

SPACE = "▁"
MOST_TEXTS = 16_384  # to split at once: more texts share more pieces, which are looked up once
_FEWEST_TEXTS = 512  # of a thread
_MOST_CHARACTERS = 1 << 22
MAX_PIECES = 500_000
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
    """The pieces of some texts: words with the spaces before them, and line ends.

    The beginning of a text counts as a space, and so does ``▁``.

    Attributes
    ----------
    vocabulary
        Numbers the pieces.
    distinct
        (n_distinct,) numbers of the distinct pieces.
    places
        (n_pieces,) index into `distinct` of every piece, one text after the other.
    counts
        (n_texts,) number of pieces of each text; an empty text has none.
    """

    vocabulary: Vocabulary
    distinct: NDArray[np.int64]
    places: NDArray[np.int32]
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

    def pieces(self, rows: slice, vocabulary: Vocabulary) -> Pieces:
        """The pieces of some of the texts, split at the first call, with the vocabulary of that."""
        key = rows.start, rows.stop
        if key not in self._pieces:
            self._pieces[key] = split_pieces(self[rows], vocabulary)
        return self._pieces[key]


def pieces_of(texts: Sequence[str], rows: slice, vocabulary: Vocabulary) -> Pieces:
    """The pieces of some texts, which `SplitTexts` keep."""
    if isinstance(texts, SplitTexts):
        return texts.pieces(rows, vocabulary)
    return split_pieces(texts[rows], vocabulary)


def split_pieces(texts: Sequence[str], vocabulary: Vocabulary) -> Pieces:
    """Split texts at spaces and line ends; lone surrogates are replaced."""
    import pyarrow as pa

    content, edges = _joined(texts)
    starts = _piece_starts(content, edges)
    # Pieces follow each other without a gap, so Arrow reads them where they are.
    offsets = pa.py_buffer(np.append(starts, len(content)))
    pieces = pa.LargeStringArray.from_buffers(len(starts), offsets, pa.py_buffer(content))
    numbered = pieces.dictionary_encode()
    counts = np.diff(np.searchsorted(starts, edges))
    distinct = vocabulary.numbers(numbered.dictionary.to_pylist())
    return Pieces(vocabulary, distinct, _integers(numbered.indices), counts)


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


class Vocabulary:
    """Numbers of pieces in the order of their appearance, and integers computed once per piece.

    Threads may share it, and so may several `PieceIntegers`, which then look up a piece once.

    Parameters
    ----------
    max_pieces
        Most pieces to keep, and a twentieth of the integers; see `renewed`.

    Attributes
    ----------
    pieces
        The pieces by number, a line end first.
    """

    def __init__(self, max_pieces: int = MAX_PIECES) -> None:
        self.pieces = ["\n"]
        self._numbers = {"\n": 0}
        self._integers = WeakKeyDictionary[PieceIntegers, _Ragged]()
        self._max_pieces, self._n_integers = max_pieces, 0
        self._numbering, self._computing = threading.Lock(), threading.Lock()

    def renewed(self) -> Vocabulary:
        """The vocabulary, or an empty one in place of one that is too large."""
        is_full = max(len(self.pieces), self._n_integers / _VALUES_PER_PIECE) > self._max_pieces
        return Vocabulary(self._max_pieces) if is_full else self

    def numbers(self, pieces: list[str]) -> NDArray[np.int64]:
        """(n_pieces,) the number of each piece."""
        found = map(self._numbers.get, pieces, repeat(-1))
        numbers = np.fromiter(found, np.int64, count=len(pieces))
        if len(new := np.flatnonzero(numbers < 0)):
            with self._numbering:
                numbers[new] = [self._number(pieces[place]) for place in new.tolist()]
        return numbers

    def _number(self, piece: str) -> int:
        """Number of a piece that was unknown, unless another thread has just added it."""
        if piece not in self._numbers:
            self.pieces.append(piece)
            self._numbers[piece] = len(self.pieces) - 1
        return self._numbers[piece]

    def ragged(self, integers: PieceIntegers, n_pieces: int) -> _Ragged:
        """The integers of at least the first pieces."""
        known = self._integers.get(integers)
        if known is None or known.n_pieces < n_pieces:
            with self._computing:
                known = self._integers.get(integers) or integers.of_line_end
                if new := self.pieces[known.n_pieces :]:
                    known = known.extended(*integers.compute(new))
                self._integers[integers] = known
                self._n_integers = max(self._n_integers, known.n_values)
        return known


@dataclass(frozen=True, eq=False)
class _Ragged:
    """Integers of the first pieces of a vocabulary.

    Attributes
    ----------
    n_pieces, n_values
        Number of pieces, and of integers.
    starts, values
        The integers of piece i are ``values[starts[i] : starts[i + 1]]``. Both have space left at
        their end, where later ones are written.
    """

    n_pieces: int
    n_values: int
    starts: NDArray[np.int64]
    values: NDArray[np.int32]

    def extended(self, values: Integers, counts: Integers) -> _Ragged:
        """With the integers of further pieces."""
        n_pieces, n_values = self.n_pieces + len(counts), self.n_values + len(values)
        starts = _with_space(self.starts, n_pieces + 1)
        all_values = _with_space(self.values, n_values)
        starts[self.n_pieces + 1 : n_pieces + 1] = self.n_values + np.cumsum(counts)
        all_values[self.n_values : n_values] = values
        return _Ragged(n_pieces, n_values, starts, all_values)


class PieceIntegers:
    """Integers of texts, which are those of their pieces, one after the other.

    Parameters
    ----------
    compute
        Returns the integers of new pieces, none of them a line end, and how many each has.
    line_end
        The integers of a line end.
    """

    def __init__(
        self, compute: Callable[[list[str]], Ragged], line_end: Sequence[int] = ()
    ) -> None:
        self.compute = compute
        self._line_end = np.array(line_end, dtype=np.int32)

    @property
    def of_line_end(self) -> _Ragged:
        """The integers of the first piece of every vocabulary."""
        nothing = _Ragged(0, 0, np.zeros(1, np.int64), np.empty(0, np.int32))
        return nothing.extended(self._line_end, np.array([len(self._line_end)]))

    def __call__(self, pieces: Pieces) -> Ragged:
        """Integers of all texts, (n,), and their number per text, (n_texts,)."""
        numbers = pieces.distinct
        known = pieces.vocabulary.ragged(self, int(numbers.max(initial=0)) + 1)
        starts = known.starts[numbers]
        lengths = (known.starts[numbers + 1] - starts)[pieces.places]
        ends = np.append(0, np.cumsum(lengths))
        indices = np.repeat(starts[pieces.places] - ends[:-1], lengths)
        indices += np.arange(ends[-1])
        per_text = np.diff(ends[np.append(0, np.cumsum(pieces.counts))])
        return known.values[indices], per_text


def _with_space(array: NDArray[Any], size: int) -> NDArray[Any]:
    """The array, or a larger copy of it if it is smaller than `size`."""
    if size <= len(array):
        return array
    larger = np.empty(2 * size, dtype=array.dtype)
    larger[: len(array)] = array
    return larger
