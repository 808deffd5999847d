"""Counts of the words of texts, as a sparse matrix with hashed columns.

The refinement uses them as a second view of the documents, next to their vectors.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import chain
from typing import TYPE_CHECKING
from zlib import crc32

import numpy as np

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

N_COLUMNS = 1 << 18
_find_words = re.compile(r"\w\w+").findall


class _Columns(dict[str, int]):
    """Column of each word: a hash that is the same in every process."""

    def __missing__(self, word: str) -> int:
        column = self[word] = crc32(word.encode("utf-8", "surrogatepass")) % N_COLUMNS
        return column


def count_words(texts: Iterable[str]) -> csr_matrix:
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
    from scipy.sparse import csr_matrix

    columns = _Columns()
    found = [[columns[word] for word in _find_words(text.lower())] for text in texts]
    starts = np.cumsum([0, *map(len, found)])
    indices = np.fromiter(chain.from_iterable(found), dtype=np.int32, count=int(starts[-1]))
    ones = np.ones(len(indices), dtype=np.float32)
    counts = csr_matrix((ones, indices, starts), shape=(len(found), N_COLUMNS))
    counts.sum_duplicates()
    return counts
