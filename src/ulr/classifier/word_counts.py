"""Counts of the words of texts, as a sparse matrix with hashed columns.

The refinement uses them as a second view of the documents, next to their vectors.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import chain
from typing import TYPE_CHECKING
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from ulr.encoders import PieceMemo

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

N_COLUMNS = 1 << 18
_find_words = re.compile(r"\w\w+").findall


class WordCounter:
    """Counts words; the words of each piece of text are found once. Threads may share it."""

    def __init__(self) -> None:
        self._memo = PieceMemo(_columns)

    def __call__(self, texts: Sequence[str]) -> csr_matrix:
        """See `count_words`."""
        from scipy.sparse import csr_matrix

        columns, counts = self._memo(texts)
        ones = np.ones(len(columns), dtype=np.float32)
        starts = np.append(0, np.cumsum(counts))
        matrix = csr_matrix((ones, columns, starts), shape=(len(texts), N_COLUMNS))
        matrix.sum_duplicates()
        return matrix


def _columns(pieces: list[str]) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Columns of the words of pieces of text, and their number per piece."""
    found = [_find_words(piece.lower()) for piece in pieces]
    counts = np.fromiter(map(len, found), np.int64, count=len(found))
    hashes = (crc32(word.encode()) % N_COLUMNS for word in chain.from_iterable(found))
    return np.fromiter(hashes, np.int32, count=int(counts.sum())), counts


def count_words(texts: Sequence[str]) -> csr_matrix:
    """Count the lower-cased words of at least two letters or digits, (n_texts, N_COLUMNS).

    Examples
    --------
    >>> count_words(["To be, or not to be", ""]).sum(axis=1).tolist()
    [[6.0], [0.0]]
    """
    return WordCounter()(texts)
