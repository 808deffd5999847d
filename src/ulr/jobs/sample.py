"""The one sampler: documents with the smallest seeded hashes of their text (bottom-k).

Such a sample depends neither on the order of the documents nor on the files they are in, and samples
of several partitions merge into the sample of all.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

LARGEST_HASH = (1 << 64) - 1
_SHARE_OF_TEXT = 100  # one text is at most a hundredth of a sample


@dataclass(frozen=True, eq=False)
class Sample:
    """Documents of a table after the first reading."""

    n_rows: int  # documents in all
    n_empty: int  # documents without words
    n_words: int  # of all documents, as far as an encoder reads them
    texts: list[str]  # all documents, or a sample of them in their order
    rows: NDArray[np.intp] | None  # (n_texts,) their positions; None for all documents


class HashSample:
    """The texts with the smallest hashes: a sample that depends on the texts alone.

    Equal texts have the same hash, so that all copies of a text would be drawn or none. One text is
    therefore at most a hundredth of the sample; otherwise a frequent one whose hash is small would
    be all of it. Copies could be drawn one by one only by their order or their number in all files,
    but the sample must not depend on the first, and the second is not known while they are read.

    `limit` is the largest hash that is still kept; it may be given, and falls while texts are added.
    """

    def __init__(self, most: int | None, random_state: int, limit: int = LARGEST_HASH) -> None:
        self._most, self._key = most, str(random_state).encode()
        self._texts: list[str] = []
        self._rows: list[int] = []
        self._hashes: list[int] = []
        self.limit = limit

    def add(self, rows: Sequence[int], texts: list[str]) -> None:
        """Add documents and their positions, in order."""
        whole = self.limit == LARGEST_HASH and not self._hashes
        if self._most is None or (whole and len(self._texts) + len(texts) <= self._most):
            self._texts += texts
            self._rows += rows
            return
        self._hash()
        hashes = text_hashes(texts, self._key)
        kept = np.flatnonzero(hashes <= self.limit)
        self._texts += [texts[place] for place in kept.tolist()]
        self._rows += [rows[place] for place in kept.tolist()]
        self._hashes += hashes[kept].tolist()
        if len(self._texts) > 2 * self._most:
            self._prune()

    def _hash(self) -> None:
        if not self._hashes:
            self._hashes = text_hashes(self._texts, self._key).tolist()

    def _prune(self) -> None:
        """Keep the texts that are in the sample so far."""
        if self._most is None:
            return
        hashes = np.array(self._hashes, dtype=np.uint64)
        order = np.argsort(hashes, kind="stable")
        first = np.searchsorted(hashes[order], hashes[order])
        few = order[np.arange(len(order)) - first < max(1, self._most // _SHARE_OF_TEXT)]
        if len(few) >= self._most:
            few = few[: self._most]
            self.limit = int(hashes[few].max(initial=0))
        kept = np.sort(few).tolist()
        self._texts = [self._texts[i] for i in kept]
        self._rows = [self._rows[i] for i in kept]
        self._hashes = [self._hashes[i] for i in kept]

    def finish(self, n_rows: int, n_empty: int, n_words: int) -> Sample:
        """The sample of so many documents, of which some are empty, and of their words."""
        if self._most is not None and n_rows > self._most:
            self._hash()
            self._prune()
        rows = None if len(self._rows) == n_rows else np.array(self._rows, dtype=np.intp)
        return Sample(n_rows, n_empty, n_words, self._texts, rows)


def text_hashes(texts: Iterable[str], key: bytes) -> NDArray[np.uint64]:
    """(n_texts,) a seeded hash of each text."""
    seeded, digests = blake2b(digest_size=8, key=key), []
    for text in texts:
        text_hash = seeded.copy()  # takes half as long as another one with the key
        text_hash.update(text.encode("utf-8", "surrogatepass"))
        digests.append(text_hash.digest())
    return np.frombuffer(b"".join(digests), ">u8").astype(np.uint64)
