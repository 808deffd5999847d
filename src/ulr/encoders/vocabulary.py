"""Words and a vector for each, found without a Python object per word."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from ulr.errors import EncoderError

_HASH_BASE = np.uint64(0x9E3779B97F4A7C15)
_HASHED_WORDS = 1 << 17


class Vocabulary:
    """Words and their rows, found by hash and compared letter by letter; no object per word.

    Parameters
    ----------
    letters
        (n_letters,) the UTF-8 bytes of all words in a row.
    offsets
        (n_words + 1,) where each word begins, and where the last one ends.
    hashes
        (n_distinct,) the hashes of the words, ascending.
    rows
        (n_distinct,) the row of the word of each hash.
    """

    def __init__(
        self,
        letters: NDArray[np.uint8],
        offsets: NDArray[np.int64],
        hashes: NDArray[np.uint64],
        rows: NDArray[np.int32],
    ) -> None:
        self._letters, self._offsets = letters, offsets
        self._hashes, self._rows = hashes, rows

    @classmethod
    def of(cls, words: Iterable[str]) -> Self:
        """The vocabulary of some words; of a word given twice the first row counts."""
        return cls.of_letters(*packed_words([word.encode() for word in words]))

    @classmethod
    def of_letters(cls, letters: NDArray[np.uint8], offsets: NDArray[np.int64]) -> Self:
        """The vocabulary of words that lie in a row, as the class describes them."""
        return cls(letters, offsets, *index_of_words(letters, offsets))

    def __len__(self) -> int:
        return len(self._offsets) - 1

    def __getitem__(self, row: int) -> str:
        return _word(self._letters, self._offsets, row).decode()

    @property
    def duplicates(self) -> int:
        """Rows whose word has an earlier row; they are never found."""
        return len(self) - len(self._rows)

    def rows(self, words: Sequence[str]) -> NDArray[np.int64]:
        """The row of each word, (n_words,), -1 for those that are not there."""
        asked = [word.encode() for word in words]
        hashes = _hashes(*packed_words(asked))
        places = np.searchsorted(self._hashes, hashes)
        found = np.full(len(asked), -1, dtype=np.int64)
        left = np.arange(len(asked))
        while len(left):  # more than once only where two words share a hash
            left = left[places[left] < len(self._hashes)]
            left = left[self._hashes[places[left]] == hashes[left]]
            rows = self._rows[places[left]]
            pairs = zip(left.tolist(), rows.tolist(), strict=True)
            same = [_word(self._letters, self._offsets, row) == asked[i] for i, row in pairs]
            is_same = np.array(same, dtype=bool)
            found[left[is_same]] = rows[is_same]
            left = left[~is_same]
            places[left] += 1
        return found


def packed_words(words: list[bytes]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Words as letters in a row, and the offsets of each."""
    lengths = np.fromiter(map(len, words), np.int64, count=len(words))
    return np.frombuffer(b"".join(words), dtype=np.uint8), np.append(0, np.cumsum(lengths))


def _word(letters: NDArray[np.uint8], offsets: NDArray[np.int64], row: int) -> bytes:
    return letters[offsets[row] : offsets[row + 1]].tobytes()


def _hashes(letters: NDArray[np.uint8], offsets: NDArray[np.int64]) -> NDArray[np.uint64]:
    """The hash of each word, (n_words,): a polynomial of its bytes, the same on every machine."""
    hashes = np.zeros(len(offsets) - 1, dtype=np.uint64)
    longest = int(np.diff(offsets).max(initial=0))
    powers = np.cumprod(np.full(longest, _HASH_BASE), dtype=np.uint64)
    for first in range(0, len(hashes), _HASHED_WORDS):
        bounds = offsets[first : first + _HASHED_WORDS + 1].astype(np.int64)
        lengths, starts = np.diff(bounds), bounds[:-1] - bounds[0]
        places = np.arange(bounds[-1] - bounds[0]) - np.repeat(starts, lengths)
        terms = (letters[bounds[0] : bounds[-1]] + np.uint64(1)) * powers[places]
        filled = np.flatnonzero(lengths)  # reduceat would give an empty word the next one's letter
        if len(filled):
            hashes[first + filled] = np.add.reduceat(terms, starts[filled])
    return hashes


def index_of_words(
    letters: NDArray[np.uint8], offsets: NDArray[np.int64]
) -> tuple[NDArray[np.uint64], NDArray[np.int32]]:
    """Ascending hashes and the rows that have them, of every word its first row only."""
    hashes = _hashes(letters, offsets)
    order = np.argsort(hashes, kind="stable").astype(np.int32)
    hashes = hashes[order]
    kept = np.ones(len(order), dtype=bool)
    alike: set[bytes] = set()
    for place in (np.flatnonzero(hashes[1:] == hashes[:-1]) + 1).tolist():
        if place == 1 or hashes[place - 2] != hashes[place]:
            alike = {_word(letters, offsets, order[place - 1])}
        word = _word(letters, offsets, order[place])
        kept[place] = word not in alike
        alike.add(word)
    return hashes[kept], order[kept]


@dataclass(frozen=True)
class WordVectors:
    """Words and a vector for each.

    Attributes
    ----------
    vocabulary
        The words.
    matrix
        (n_words, n_dims) their vectors.
    sha256
        Hash of the words and vectors, in hexadecimal.
    malformed_lines
        Lines of the file that were left out.
    replaced_words
        Words of the file that were not UTF-8, and have replacement characters instead.
    """

    vocabulary: Vocabulary
    matrix: NDArray[np.float32]
    sha256: str
    malformed_lines: int = 0
    replaced_words: int = 0

    @classmethod
    def of(cls, words: Sequence[str], matrix: NDArray[np.float32]) -> Self:
        """Words and vectors that are in memory."""
        matrix = np.ascontiguousarray(matrix, dtype=np.float32)
        if matrix.ndim != 2 or len(matrix) != len(words) or not len(words):
            raise EncoderError(
                f"words need one vector each, (n_words, n_dims), and there must be at least one; "
                f"got {len(words)} words and vectors of shape {matrix.shape}."
            )
        digest = hashlib.sha256("\n".join(words).encode())
        digest.update(matrix.tobytes())
        return cls(Vocabulary.of(words), matrix, digest.hexdigest())

    @property
    def duplicate_words(self) -> int:
        """Words that came again; their first vector counts."""
        return self.vocabulary.duplicates
