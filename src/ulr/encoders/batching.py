"""Encoding in batches: a fixed number of texts per call, or texts of similar length together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray
from tokenizers import Encoding

from ulr.cores import available_cores
from ulr.encoders.protocol import Encoder, OnTexts, checked_vectors
from ulr.errors import EncoderError

_BATCH_TEXTS = 2048
_MOST_THREADS = 4  # reading and writing do not keep up with more


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
    return encode_batches(encoder, in_batches(texts, batch_texts(encoder)), on_texts)


def in_batches(texts: Sequence[str], size: int = _BATCH_TEXTS) -> Iterator[list[str]]:
    """Split texts into batches, of 2,048 by default."""
    for start in range(0, len(texts), size):
        some = texts[start : start + size]
        yield some if isinstance(some, list) else list(some)


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


def batch_threads(encoder: object, n_jobs: int | None = None) -> int:
    """Number of threads that give an encoder batches at the same time."""
    if not getattr(encoder, "shared_by_threads", False):
        return 1
    return min(n_jobs or available_cores(), _MOST_THREADS)


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


def padded_inputs(batch: Sequence[Encoding], pad: int) -> dict[str, NDArray[np.int64]]:
    """Inputs of a transformer for tokenized texts, padded to the longest, (n_texts, n_tokens).

    Parameters
    ----------
    batch
        Tokens of each text.
    pad
        Id of the token for padding.
    """
    shape = len(batch), max(len(each.ids) for each in batch)
    ids = np.full(shape, pad, dtype=np.int64)
    mask, types = np.zeros_like(ids), np.zeros_like(ids)
    for row, each in enumerate(batch):
        end = len(each.ids)
        ids[row, :end], mask[row, :end], types[row, :end] = each.ids, 1, each.type_ids
    return {"input_ids": ids, "attention_mask": mask, "token_type_ids": types}
