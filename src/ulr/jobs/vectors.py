"""Vectors and words of the documents that a classifier is fitted on.

Vectors are in memory or in a temporary file.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ulr.encoders import Encoder, OnTexts
from ulr.encoders.batching import batch_texts, batch_threads, in_batches
from ulr.encoders.protocol import checked_vectors
from ulr.pieces import SplitTexts
from ulr.refinement.blocks import run_ahead
from ulr.word_counts import WordCounter

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

_MEMORY_SHARE = 0.25


def encode_documents(
    encoder: Encoder,
    texts: Sequence[str],
    on_texts: OnTexts | None = None,
    most_bytes: float | None = None,
    *,
    with_words: bool = False,
    n_jobs: int | None = None,
) -> tuple[NDArray[np.float32], csr_matrix | None]:
    """Encode texts, and count their words.

    Parameters
    ----------
    encoder
        The encoder.
    texts
        The texts, at least one.
    on_texts
        Called after each batch with its number of texts.
    most_bytes
        Size of vectors that are kept in memory; larger ones are a memory map of a file without a
        name in the folder for temporary files. A quarter of the machine's memory by default.
    with_words
        Whether to count words.
    n_jobs
        Number of threads, where threads can share the encoder; every available core by default.

    Returns
    -------
    vectors, word_counts
        (n_texts, n_dims), and (n_texts, n_words) as of `count_words`, or None.
    """
    if most_bytes is None:
        most_bytes = _MEMORY_SHARE * _memory()
    vectors: NDArray[np.float32] | None = None
    counts, start = list["csr_matrix"](), 0
    for found, words in _encoded(encoder, texts, WordCounter() if with_words else None, n_jobs):
        if vectors is None:
            vectors = _empty((len(texts), found.shape[1]), most_bytes)
        vectors[start : start + len(found)] = found
        start += len(found)
        if words is not None:
            counts.append(words)
        if on_texts is not None:
            on_texts(len(found))
    assert vectors is not None
    return vectors, _stacked(counts) if counts else None


def _encoded(
    encoder: Encoder, texts: Sequence[str], counter: WordCounter | None, n_jobs: int | None
) -> Iterator[tuple[NDArray[np.float32], csr_matrix | None]]:
    """Vectors and word counts of batches, in order."""
    size, n_dims = batch_texts(encoder), None
    n_threads = min(batch_threads(encoder, n_jobs), -(-len(texts) // size))

    def encode(batch: list[str]) -> tuple[NDArray[np.float32], csr_matrix | None]:
        split = SplitTexts(batch, 1 if n_threads > 1 else None)
        vectors = checked_vectors(encoder, split, n_dims)
        return vectors, None if counter is None else counter(split)

    batches = in_batches(texts, size)
    with ThreadPoolExecutor(n_threads, thread_name_prefix="ulr") as pool:
        calls = (partial(encode, batch) for batch in batches)
        encoded = run_ahead(pool, calls, n_threads) if n_threads > 1 else map(encode, batches)
        for vectors, words in encoded:
            n_dims = vectors.shape[1]
            yield vectors, words


def _stacked(counts: list[csr_matrix]) -> csr_matrix:
    from scipy.sparse import vstack

    return vstack(counts, format="csr")


def _empty(shape: tuple[int, int], most_bytes: float) -> NDArray[np.float32]:
    if 4 * shape[0] * shape[1] <= most_bytes:
        return np.empty(shape, dtype=np.float32)
    with tempfile.TemporaryFile() as file:  # the map keeps its content
        mapped: np.memmap[Any, np.dtype[np.float32]] = np.memmap(file, np.float32, "w+", 0, shape)
        return mapped


def _memory() -> float:
    """Bytes of memory of the machine; infinite where that is not known."""
    try:
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, ValueError, OSError):
        return float("inf")
