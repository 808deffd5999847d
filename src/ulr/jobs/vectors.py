"""Vectors of the documents that a classifier is fitted on, in memory or in a temporary file."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ulr.encoders import Encoder, OnTexts
from ulr.encoders.batching import batch_texts, in_batches
from ulr.encoders.protocol import checked_vectors

_MEMORY_SHARE = 0.25


def encode_documents(
    encoder: Encoder,
    texts: Sequence[str],
    on_texts: OnTexts | None = None,
    most_bytes: float | None = None,
) -> NDArray[np.float32]:
    """Encode texts.

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

    Returns
    -------
    (n_texts, n_dims) vectors.
    """
    if most_bytes is None:
        most_bytes = _MEMORY_SHARE * _memory()
    vectors: NDArray[np.float32] | None = None
    start = 0
    for batch in in_batches(texts, batch_texts(encoder)):
        found = checked_vectors(encoder, batch, None if vectors is None else vectors.shape[1])
        if vectors is None:
            vectors = _empty((len(texts), found.shape[1]), most_bytes)
        vectors[start : start + len(batch)] = found
        start += len(batch)
        if on_texts is not None:
            on_texts(len(batch))
    assert vectors is not None
    return vectors


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
