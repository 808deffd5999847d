"""Encoding in batches: a fixed number of texts per call, or texts of similar length together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from ulr.encoders.protocol import Encoder, OnTexts, checked_vectors
from ulr.errors import EncoderError

_BATCH_TEXTS = 2048


def encode_texts(
    encoder: Encoder, texts: Sequence[str], on_texts: OnTexts | None = None
) -> NDArray[np.float32]:
    """Encode a list of texts in batches.

    Parameters
    ----------
    encoder
        The encoder.
    texts
        The texts.
    on_texts
        Called after each batch with its number of texts.

    Returns
    -------
    (n_texts, n_dims) vectors, in the order of the texts.
    """
    return encode_batches(encoder, in_batches(texts), on_texts)


def in_batches(texts: Sequence[str]) -> Iterator[list[str]]:
    """Split texts into batches of 2,048."""
    for start in range(0, len(texts), _BATCH_TEXTS):
        yield list(texts[start : start + _BATCH_TEXTS])


def encode_batches(
    encoder: Encoder, batches: Iterable[list[str]], on_texts: OnTexts | None = None
) -> NDArray[np.float32]:
    """Encode texts that arrive in batches; see `encode_texts`."""
    parts: list[NDArray[np.float32]] = []
    size = batch_texts(encoder)
    for batch in batches:
        for start in range(0, len(batch), size):
            texts = batch[start : start + size]
            parts.append(checked_vectors(encoder, texts, parts[0].shape[1] if parts else None))
            if on_texts is not None:
                on_texts(len(texts))
    if not parts:
        raise EncoderError("there are no texts to encode.")
    vectors = np.empty((sum(map(len, parts)), parts[0].shape[1]), dtype=np.float32)
    end = len(vectors)
    while parts:  # each part is freed once it is copied
        part = parts.pop()
        vectors[end - len(part) : end] = part
        end -= len(part)
    return vectors


def batch_texts(encoder: object) -> int:
    """Number of texts that an encoder is given per call."""
    return int(getattr(encoder, "batch_texts", _BATCH_TEXTS))


def batches_by_length(lengths: Sequence[int], batch_tokens: int) -> Iterator[NDArray[np.intp]]:
    """Group texts of similar length into batches, so that few tokens are padding.

    Parameters
    ----------
    lengths
        (n_texts,) number of tokens of each text.
    batch_tokens
        Most tokens of a batch, padding included; a longer text is a batch of its own.

    Yields
    ------
    (n_texts_in_batch,) indices into `lengths`, shortest texts first.
    """
    order = np.argsort(lengths, kind="stable")
    start = 0
    while start < len(order):
        end = start + 1
        while end < len(order) and lengths[order[end]] * (end + 1 - start) <= batch_tokens:
            end += 1
        yield order[start:end]
        start = end
