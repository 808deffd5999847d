"""What an encoder is, and how texts go through one: in batches, checked, into one array."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from ulr.errors import EncoderError

_BATCH_TEXTS = 2048

OnTexts = Callable[[int], None]
OnProgress = Callable[[int, int | None], None]  # how much is done, and of how much where known


@runtime_checkable
class Encoder(Protocol):
    """Anything with this one method; a sentence-transformers model is one as it is."""

    def encode(self, texts: list[str], /) -> Any:
        """Vectors of the texts, (n_texts, n_dims)."""
        ...


def encode_texts(
    encoder: Encoder, texts: Sequence[str], on_texts: OnTexts | None = None
) -> NDArray[np.float32]:
    """Encode a list of texts.

    Parameters
    ----------
    encoder
        The encoder.
    texts
        The texts.
    on_texts
        Called with the number of texts of every finished batch.

    Returns
    -------
    (n_texts, n_dims) vectors, in the order of the texts.
    """
    return encode_batches(encoder, in_batches(texts), on_texts)


def in_batches(texts: Sequence[str]) -> Iterator[list[str]]:
    """The texts, a few thousand at a time."""
    for start in range(0, len(texts), _BATCH_TEXTS):
        yield list(texts[start : start + _BATCH_TEXTS])


def encode_batches(
    encoder: Encoder, batches: Iterable[list[str]], on_texts: OnTexts | None = None
) -> NDArray[np.float32]:
    """Encode texts that arrive batch by batch; as `encode_texts`."""
    parts: list[NDArray[np.float32]] = []
    size = texts_at_a_time(encoder)
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
    while parts:  # each part is let go as soon as it is copied
        part = parts.pop()
        vectors[end - len(part) : end] = part
        end -= len(part)
    return vectors


def texts_at_a_time(encoder: Encoder) -> int:
    """How many texts an encoder is given in one go."""
    return int(getattr(encoder, "texts_at_a_time", _BATCH_TEXTS))


def checked_vectors(
    encoder: Encoder, texts: list[str], n_dims: int | None = None
) -> NDArray[np.float32]:
    """What an encoder makes of some texts, if it is vectors, of as many dimensions as expected."""
    given = encoder.encode(texts)
    name = type(encoder).__name__
    try:
        vectors = np.asarray(given)
    except ValueError as error:
        raise EncoderError(
            f"{name}.encode must give float vectors of shape ({len(texts)}, n_dims) for "
            f"{len(texts)} texts; got vectors of different lengths."
        ) from error
    if vectors.ndim != 2 or len(vectors) != len(texts) or vectors.dtype.kind != "f":
        raise EncoderError(
            f"{name}.encode must give float vectors of shape ({len(texts)}, n_dims) for "
            f"{len(texts)} texts; got shape {vectors.shape} of {vectors.dtype}."
        )
    if n_dims is not None and vectors.shape[1] != n_dims:
        raise EncoderError(
            f"{name}.encode gave vectors of {n_dims} dimensions, then of {vectors.shape[1]}."
        )
    return vectors.astype(np.float32, copy=False)


def fingerprint(encoder: object) -> str:
    """What tells an encoder from others whose vectors cannot be compared with its own.

    Encoders of this package have a `fingerprint`; others are known by their class alone.
    """
    own = getattr(encoder, "fingerprint", None)
    if isinstance(own, str):
        return own
    kind = type(encoder)
    return f"{kind.__module__}.{kind.__qualname__}"
