"""Several encoders as one: their unit vectors side by side, each with a weight."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ulr.encoders.cache import CachedEncoder
from ulr.encoders.protocol import Encoder, checked_vectors, fingerprint, texts_at_a_time
from ulr.errors import EncoderError
from ulr.refine.distances import unit_rows


class JoinedEncoder:
    """The cosine of two joined vectors is the weighted mean of the encoders' cosines.

    Parameters
    ----------
    encoders
        At least two encoders of texts.
    weights
        What the cosine of each counts for; equal by default.
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
        self.texts_at_a_time = min(map(texts_at_a_time, encoders))
        specs = [str(getattr(each, "spec", None) or "") for each in encoders]
        named = [
            spec if weight == 1.0 else f"{weight:g}*{spec}"
            for weight, spec in zip(weights, specs, strict=True)
        ]
        self.spec = "+".join(named) if all(specs) else None

    def cached(self, folder: str | Path) -> JoinedEncoder:
        """The same with a cache before each encoder, which others may share."""
        return JoinedEncoder([CachedEncoder(each, folder) for each in self._encoders], self.weights)

    @property
    def truncated(self) -> int | None:
        """Texts cut so far by the encoder that cuts most; None where one does not say."""
        cut = [getattr(each, "truncated", None) for each in self._encoders]
        known = [count for count in cut if count is not None]
        return max(known) if len(known) == len(cut) else None

    def encode(self, texts: list[str], /) -> NDArray[np.float32]:
        """Vectors of the texts, (n_texts, n_dims of all encoders), of length one or zero."""
        parts: list[NDArray[Any]] = [
            scale * unit_rows(checked_vectors(each, texts).astype(np.float64))
            for scale, each in zip(self._scales, self._encoders, strict=True)
        ]
        return np.concatenate(parts, axis=1).astype(np.float32)
