"""Encoders by name."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TypeAlias

from ulr.encoders import onnx, static, words
from ulr.encoders.cross import CrossEncoder, PairScorer
from ulr.encoders.esa import EsaEncoder
from ulr.encoders.joined import JoinedEncoder
from ulr.encoders.protocol import Encoder, OnProgress
from ulr.encoders.transformer import TransformerEncoder
from ulr.encoders.weights import PackagedFile, install_command
from ulr.errors import EncoderError

AnyEncoder: TypeAlias = Encoder | PairScorer


@dataclass(frozen=True)
class EncoderKind:
    """A kind of encoder.

    Attributes
    ----------
    about
        A short description.
    load
        Loads the one from installed packages; None if there is none.
    load_from
        Loads one from the source after the name and a colon; None if there may be none.
    source
        What that source is, such as ``FILE``.
    reports_progress
        Whether `load_from` takes `on_progress`, because it may take a while the first time.
    n_dims, megabytes, licence, languages
        Of the packaged weights.
    files, modules
        Packaged files and modules that are needed.
    extra
        The extra of this package that installs them.
    """

    about: str
    load: Callable[[], AnyEncoder] | None = None
    load_from: Callable[..., AnyEncoder] | None = None
    source: str = ""
    reports_progress: bool = False
    n_dims: int | None = None
    megabytes: int | None = None
    licence: str | None = None
    languages: tuple[str, ...] = ()
    files: tuple[PackagedFile, ...] = ()
    modules: tuple[str, ...] = ()
    extra: str | None = None

    @property
    def installed(self) -> bool:
        """Whether all files and modules are installed."""
        has_modules = all(find_spec(module) is not None for module in self.modules)
        return has_modules and all(file.installed() for file in self.files)

    @property
    def install(self) -> str | None:
        """The command that installs it; None if there is nothing to install."""
        if self.extra is not None:
            return install_command(self.extra)
        return self.files[0].install if self.files else None

    def specs(self, name: str) -> tuple[str, ...]:
        """The forms of its name, such as ``glove`` and ``glove:FILE``."""
        bare = (name,) if self.load else ()
        return (*bare, f"{name}:{self.source}") if self.load_from else bare


ENCODERS: dict[str, EncoderKind] = {
    "static": EncoderKind(
        "averaged token vectors, the default and the fastest; or a model2vec folder",
        load=static.StaticEncoder.embedded,
        load_from=static.StaticEncoder.from_folder,
        source="FOLDER_OR_NAME",
        n_dims=256,
        megabytes=16,
        licence="MIT",
        languages=("en",),
        files=static.FILES,
    ),
    "minilm": EncoderKind(
        "all-MiniLM-L6-v2 on onnxruntime, slower and better; or a folder with model.onnx",
        load=onnx.OnnxEncoder.minilm,
        load_from=onnx.OnnxEncoder.from_folder,
        source="FOLDER_OR_NAME",
        n_dims=384,
        megabytes=23,
        licence="Apache-2.0",
        languages=("en",),
        files=onnx.FILES,
        modules=("onnxruntime",),
        extra="minilm",
    ),
    "minilm-int8": EncoderKind(
        "the same with 8-bit arithmetic: 1.5 times as fast, nearly as accurate",
        load=onnx.OnnxEncoder.minilm_int8,
        n_dims=384,
        megabytes=23,
        licence="Apache-2.0",
        languages=("en",),
        files=onnx.FILES,
        modules=("onnxruntime", "onnx"),
        extra="minilm-int8",
    ),
    "glove": EncoderKind(
        "averaged word vectors: GloVe 6B, or any GloVe, word2vec or fastText text file",
        load=words.WordEncoder.packaged,
        load_from=words.WordEncoder.from_file,
        source="FILE",
        reports_progress=True,
        n_dims=50,
        megabytes=80,
        licence="PDDL",
        languages=("en",),
        files=words.FILES,
        extra="glove",
    ),
    "hf": EncoderKind(
        "any Hugging Face encoder, with mean pooling",
        load_from=TransformerEncoder,
        source="FOLDER_OR_NAME",
        modules=("torch", "transformers"),
        extra="torch",
    ),
    "cross": EncoderKind(
        "a Hugging Face model that scores every label with every text",
        load_from=CrossEncoder,
        source="FOLDER_OR_NAME",
        modules=("torch", "transformers"),
        extra="torch",
    ),
    "esa": EncoderKind(
        "Explicit Semantic Analysis over your own corpus of titled articles",
        load_from=EsaEncoder,
        source="FILE",
        reports_progress=True,
    ),
}


def load_encoder(spec: str | AnyEncoder, on_progress: OnProgress | None = None) -> AnyEncoder:
    """Load an encoder by its name.

    Parameters
    ----------
    spec
        A name from `ENCODERS`, optionally with a colon and a file, folder or model name; or several
        of them joined by plus signs, such as ``static+minilm`` or ``static+2*minilm``. An object
        with ``encode(list of str) -> array`` is returned as it is.
    on_progress
        Called while a file is prepared, which some kinds need the first time, with the amount done
        and the total, or None if that is unknown.

    Examples
    --------
    >>> from ulr import load_encoder
    >>> load_encoder("static").encode(["a text", "another one"]).shape
    (2, 256)
    """
    if isinstance(spec, str):
        parts = re.split(r"\+(?=(?:[\d.]+\*)?(?:" + "|".join(ENCODERS) + r")(?:[:+]|$))", spec)
        return _load(spec, on_progress) if len(parts) == 1 else _join(parts, spec, on_progress)
    if isinstance(spec, type) or not isinstance(spec, Encoder | PairScorer):
        raise EncoderError(
            f"an encoder is a name or an object with encode(list of str) -> array; got {spec!r}."
        )
    return spec


def _load(spec: str, on_progress: OnProgress | None) -> AnyEncoder:
    name, colon, source = spec.partition(":")
    kind = ENCODERS.get(name)
    if kind is None:
        specs = [each for known, other in ENCODERS.items() for each in other.specs(known)]
        raise EncoderError(f"encoder must be one of {', '.join(specs)}; got {spec!r}.")
    if not colon and kind.load is not None:
        return kind.load()
    if source and kind.load_from is not None:
        options = {"on_progress": on_progress} if kind.reports_progress else {}
        return kind.load_from(source, **options)
    raise EncoderError(f"encoder must be {' or '.join(kind.specs(name))}; got {spec!r}.")


def _join(parts: list[str], spec: str, on_progress: OnProgress | None) -> JoinedEncoder:
    """Load encoders such as ``static`` or, with a weight, ``2*minilm``."""
    encoders, weights = [], []
    for part in parts:
        weight, star, name = part.rpartition("*") if part[:1].isdigit() else ("", "", part)
        encoder = _load(name, on_progress)
        if not isinstance(encoder, Encoder):
            raise EncoderError(f"{name} scores pairs and has no vectors to join; got {spec!r}.")
        encoders.append(encoder)
        try:
            weights.append(float(weight) if star else 1.0)
        except ValueError:
            raise EncoderError(f"{weight!r} is not a weight; got {spec!r}.") from None
    return JoinedEncoder(encoders, weights)
