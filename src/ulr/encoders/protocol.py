"""The encoder protocol, and the checks on what an encoder returns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from ulr.errors import EncoderError

OnTexts = Callable[[int], None]
OnProgress = Callable[[int, int | None], None]  # amount done, and the total where it is known


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
    - ``knows_word`` (callable from str to bool): whether a word is in the vocabulary as a whole
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


def checked_vectors(
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
