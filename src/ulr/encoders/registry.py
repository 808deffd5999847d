"""Encoders by name, and what is to be known about each before it is loaded."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec

from ulr.encoders import onnx, static
from ulr.encoders.protocol import Encoder
from ulr.encoders.weights import PackagedFile
from ulr.errors import EncoderError


@dataclass(frozen=True)
class EncoderKind:
    """An encoder that can be asked for by name.

    Attributes
    ----------
    load
        Makes one.
    about
        What it is, in a few words.
    n_dims
        Dimensions of its vectors.
    megabytes
        Size of its weights.
    licence
        Of its weights.
    files
        The packaged files it needs.
    modules
        Modules it needs.
    """

    load: Callable[[], Encoder]
    about: str
    n_dims: int
    megabytes: int
    licence: str
    files: tuple[PackagedFile, ...]
    modules: tuple[str, ...] = ()

    @property
    def installed(self) -> bool:
        """Whether it can be loaded."""
        there = all(find_spec(module) is not None for module in self.modules)
        return there and all(file.installed() for file in self.files)

    @property
    def install(self) -> str:
        """The command that installs it."""
        return self.files[0].install


ENCODERS: dict[str, EncoderKind] = {
    "static": EncoderKind(
        static.StaticEncoder.embedded,
        "averaged token vectors; fast, the default",
        256,
        16,
        "MIT",
        static.FILES,
    ),
    "minilm": EncoderKind(
        onnx.OnnxEncoder.minilm,
        "all-MiniLM-L6-v2; slower and better",
        384,
        23,
        "Apache-2.0",
        onnx.FILES,
        ("onnxruntime",),
    ),
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
        return ENCODERS[spec].load()
    if isinstance(spec, type) or not isinstance(spec, Encoder):
        raise EncoderError(
            f"an encoder is a name or an object with encode(list of str) -> array; got {spec!r}."
        )
    return spec
