"""Encoders by name."""

from __future__ import annotations

from collections.abc import Callable

from ulr.encoders.protocol import Encoder
from ulr.encoders.static import StaticEncoder
from ulr.errors import EncoderError

ENCODERS: dict[str, Callable[[], Encoder]] = {
    "static": StaticEncoder.embedded,
}


def load_encoder(spec: str | Encoder) -> Encoder:
    """An encoder by its name, or the given one if it already is an encoder.

    Parameters
    ----------
    spec
        A name out of `ENCODERS`, or any object with ``encode(list of str) -> array``.
    """
    if isinstance(spec, str):
        if spec not in ENCODERS:
            raise EncoderError(f"encoder must be one of {', '.join(ENCODERS)}; got {spec!r}.")
        return ENCODERS[spec]()
    if isinstance(spec, type) or not isinstance(spec, Encoder):
        raise EncoderError(
            f"an encoder is a name or an object with encode(list of str) -> array; got {spec!r}."
        )
    return spec
