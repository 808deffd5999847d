"""Counts of the words of texts, as a sparse matrix with hashed columns.

The refinement uses them as a second view of the documents, next to their vectors.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any
from zlib import crc32

import numpy as np

from ulr.pieces import PieceIntegers, Ragged, Vocabulary, map_slices, pieces_of

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

N_COLUMNS = 1 << 18
_find_words = re.compile(r"\w\w+").findall


class WordCounter:
    """Counts words; the words of each piece of text are found once. Threads may share it."""

    def __init__(self) -> None:
        self._words, self._vocabulary = PieceIntegers(_columns), Vocabulary()

    def __call__(self, texts: Sequence[str]) -> csr_matrix:
        """See `count_words`."""
        from scipy.sparse import csr_matrix

        vocabulary = self._vocabulary = self._vocabulary.renewed()
        found = map_slices(lambda rows: self._words(pieces_of(texts, rows, vocabulary)), texts)
        columns = np.concatenate([np.empty(0, np.int32), *(each for each, _ in found)])
        starts = np.append(
            0, np.cumsum(np.concatenate([np.zeros(0, np.int64), *(each for _, each in found)]))
        )
        ones = np.ones(len(columns), dtype=np.float32)
        counts = csr_matrix((ones, columns, starts), shape=(len(texts), N_COLUMNS))
        counts.sum_duplicates()
        return counts

    def __reduce__(self) -> tuple[Any, ...]:
        return WordCounter, ()


def _columns(pieces: list[str]) -> Ragged:
    """Columns of the words of pieces of text, and their number per piece."""
    found = [_find_words(piece.lower()) for piece in pieces]
    counts = np.fromiter(map(len, found), np.int64, count=len(found))
    hashes = (crc32(word.encode()) % N_COLUMNS for word in chain.from_iterable(found))
    return np.fromiter(hashes, np.int32, count=int(counts.sum())), counts


def count_words(texts: Sequence[str]) -> csr_matrix:
    """Count the lower-cased words of at least two letters or digits.

    Parameters
    ----------
    texts
        The documents.

    Returns
    -------
    (n_texts, N_COLUMNS) float32 counts.

    Examples
    --------
    >>> count_words(["To be, or not to be", ""]).sum(axis=1).tolist()
    [[6.0], [0.0]]
    """
    return WordCounter()(texts)
