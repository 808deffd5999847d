"""Several encoders as one: their unit vectors are concatenated, each with a weight."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ulr.encoders.cache import CachedEncoder
from ulr.encoders.protocol import (
    CopiedByReference,
    Encoder,
    batch_texts,
    check_vectors,
    fingerprint,
    label_encoder,
)
from ulr.errors import EncoderError
from ulr.vectors import unit_rows


class JoinedEncoder(CopiedByReference):
    """Encode texts with at least two encoders.

    The cosine of two joined vectors is the mean of the encoders' cosines with the given weights,
    equal by default.
    """

    def __init__(self, encoders: list[Encoder], weights: list[float] | None = None) -> None:
        weights = [1.0] * len(encoders) if weights is None else weights
        if len(encoders) < 2 or len(weights) != len(encoders):
            raise EncoderError(
                "joining needs at least two encoders and one weight for each; got "
                f"{len(encoders)} encoders and {len(weights)} weights."
            )
        if not all(np.isfinite(weight) and weight > 0 for weight in weights):
            raise EncoderError(f"weights of encoders must be positive numbers; got {weights}.")
        self._encoders, self.weights = encoders, weights
        shares = np.array(weights) / sum(weights)
        self._scales = np.sqrt(shares)
        self.fingerprint = " + ".join(
            f"{share:.6g} of ({fingerprint(each)})"
            for share, each in zip(shares, encoders, strict=True)
        )
        self.batch_texts = min(map(batch_texts, encoders))
        specs = [str(getattr(each, "spec", None) or "") for each in encoders]
        weighted = [
            spec if weight == 1.0 else f"{weight:g}*{spec}"
            for weight, spec in zip(weights, specs, strict=True)
        ]
        self.spec = "+".join(weighted) if all(specs) else None

    def cached(self, folder: str | Path) -> JoinedEncoder:
        """The same encoder with a cache for each part, so that parts are found on their own."""
        return JoinedEncoder([CachedEncoder(each, folder) for each in self._encoders], self.weights)

    @property
    def label_encoder(self) -> JoinedEncoder | None:
        """Encodes the phrases of labels; None if every part does so itself."""
        parts = [label_encoder(each) for each in self._encoders]
        if all(part is each for part, each in zip(parts, self._encoders, strict=True)):
            return None
        return JoinedEncoder(parts, self.weights)

    @property
    def truncated(self) -> int | None:
        """Texts truncated so far by the part that truncates most; None if a part has no count."""
        counts: list[Any] = [getattr(each, "truncated", None) for each in self._encoders]
        return None if None in counts else max(counts)

    @property
    def languages(self) -> tuple[str, ...] | None:
        """Languages that all parts were made for; None if a part's are unknown."""
        languages: list[Any] = [getattr(each, "languages", None) for each in self._encoders]
        if None in languages:
            return None
        return tuple(code for code in languages[0] if all(code in each for each in languages))

    def encode(self, texts: list[str], /) -> NDArray[np.float32]:
        """Vectors of the texts, (n_texts, n_dims of all encoders), of length one or zero."""
        parts = [
            scale * unit_rows(check_vectors(each, texts))
            for scale, each in zip(self._scales, self._encoders, strict=True)
        ]
        return np.concatenate(parts, axis=1).astype(np.float32)
