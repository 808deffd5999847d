"""The encoder protocol, encoding in batches, and the checks on what an encoder returns."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Protocol, Self, SupportsIndex, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from ulr.encoders.pieces import SplitTexts
from ulr.errors import EncoderError
from ulr.progress import NO_PROGRESS, Progress
from ulr.threads import available_cores

_BATCH_TEXTS = 2048
_FIRST_TEXTS = 16  # of the first batch; later ones double
_MOST_THREADS = 4  # reading and writing do not keep up with more
_COUNTING = threading.Lock()


@runtime_checkable
class Encoder(Protocol):
    """Any object with this method, such as a sentence-transformers model.

    Optional attributes:

    - ``fingerprint`` (str): identifies the weights and settings; required by the vector cache
    - ``spec`` (str): the name from which `load_encoder` makes the same encoder
    - ``batch_texts`` (int): texts per call of `encode`
    - ``shared_by_threads`` (bool): whether several threads may call `encode` at the same time
    - ``truncated`` (int): texts that were truncated so far
    - ``languages`` (tuple of codes such as ``"en"``): languages that the encoder was made for
    - ``advice`` (str): how to get a better encoder, for the summary
    - ``label_encoder`` (an encoder): encodes the phrases of labels, where a model expects them in
      another form than documents
    """

    def encode(self, texts: list[str], /) -> Any:
        """Vectors of the texts, (n_texts, n_dims)."""
        ...


class CopiedByReference:
    """Base of encoders: copies, such as those of `sklearn.base.clone`, share the weights."""

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self


class ModelEncoder(CopiedByReference):
    """Base of encoders that have weights: pickled as the call that makes them again, if set."""

    spec: str | None = None
    languages: tuple[str, ...] | None = None
    truncated = 0
    _again: partial[Any] | None = None

    def _count_truncated(self, number: int) -> None:
        with _COUNTING:  # without it, threads would lose some of their additions
            self.truncated += number

    def __reduce_ex__(self, protocol: SupportsIndex) -> str | tuple[Any, ...]:
        if self._again is None:
            return super().__reduce_ex__(protocol)
        return self._again, (), {"spec": self.spec, "languages": self.languages}


class LabelEncoder(CopiedByReference):
    """Encodes the phrases of labels with an encoder's model, but a prompt of their own."""

    def __init__(self, encoder: Any, encode: Callable[[list[str]], Any], prompt: str) -> None:
        self.encode = encode
        self.fingerprint = f"{encoder.fingerprint}, label {prompt}"
        self.batch_texts = encoder.batch_texts


def check_vectors(
    encoder: Encoder, texts: list[str], n_dims: int | None = None
) -> NDArray[np.float32]:
    """Encode texts; refuse anything but float vectors, of `n_dims` dimensions if given."""
    encoded = encoder.encode(texts)
    expected = (
        f"{type(encoder).__name__}.encode must return float vectors of shape ({len(texts)}, "
        f"n_dims) for {len(texts)} texts"
    )
    try:
        vectors = np.asarray(encoded)
    except ValueError as error:
        raise EncoderError(f"{expected}; got vectors of different lengths.") from error
    if vectors.ndim != 2 or len(vectors) != len(texts) or vectors.dtype.kind != "f":
        raise EncoderError(f"{expected}; got shape {vectors.shape} of {vectors.dtype}.")
    if n_dims is not None and vectors.shape[1] != n_dims:
        raise EncoderError(
            f"{type(encoder).__name__}.encode returned vectors of {n_dims} dimensions, then of "
            f"{vectors.shape[1]}."
        )
    return vectors.astype(np.float32, copy=False)


def label_encoder(encoder: Encoder) -> Encoder:
    """What encodes the phrases of labels: the attribute of that name, otherwise the encoder."""
    return getattr(encoder, "label_encoder", None) or encoder


def fingerprint(encoder: object) -> str:
    """Identify an encoder: only vectors of equal fingerprints can be compared.

    It is the attribute `fingerprint` if there is one, otherwise the name of the class.
    """
    own = getattr(encoder, "fingerprint", None)
    if isinstance(own, str):
        return own
    kind = type(encoder)
    return f"{kind.__module__}.{kind.__qualname__}"


def encode_texts(
    encoder: Encoder, texts: Sequence[str], progress: Progress = NO_PROGRESS
) -> NDArray[np.float32]:
    """Vectors of texts in their order, (n_texts, n_dims); each distinct text is encoded once.

    `SplitTexts` are given as they are to an encoder that uses their pieces. `progress` advances by
    the number of texts after each batch.
    """
    if not len(texts):
        raise EncoderError("there are no texts to encode.")
    if isinstance(texts, SplitTexts) and getattr(encoder, "uses_pieces", False):
        return _encode_batches(encoder, texts, progress)
    numbers: dict[str, int] = {}
    rows = np.fromiter((numbers.setdefault(text, len(numbers)) for text in texts), np.intp)
    vectors = _encode_batches(encoder, list(numbers), progress)
    if len(vectors) == len(rows):
        return vectors
    progress.advance(len(rows) - len(vectors))
    return vectors[rows]


def _encode_batches(encoder: Encoder, texts: list[str], progress: Progress) -> NDArray[np.float32]:
    size = batch_texts(encoder)
    is_one = len(texts) <= size  # given as they are: they may be `SplitTexts`
    end = min(size, _FIRST_TEXTS)  # so that a slow encoder soon shows how long it takes
    first = check_vectors(encoder, texts if is_one else texts[:end])
    progress.advance(len(first))
    if is_one:
        return first
    vectors = np.empty((len(texts), first.shape[1]), dtype=np.float32)
    vectors[:end] = first
    while end < len(texts):
        start, end = end, min(2 * end, end + size)
        batch = texts[start:end]
        vectors[start:end] = check_vectors(encoder, batch, vectors.shape[1])
        progress.advance(len(batch))
    return vectors


def batch_texts(encoder: object) -> int:
    """Number of texts that an encoder is given per call."""
    return int(getattr(encoder, "batch_texts", _BATCH_TEXTS))


def batch_threads(encoder: object, n_jobs: int | None = None) -> int:
    """Number of threads that give an encoder batches at the same time."""
    if not getattr(encoder, "shared_by_threads", False):
        return 1
    return min(n_jobs or available_cores(), _MOST_THREADS)
