"""Encoders by name, and what is to be known about each before it is loaded."""

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
from ulr.encoders.weights import PackagedFile
from ulr.errors import EncoderError

AnyEncoder: TypeAlias = Encoder | PairScorer


@dataclass(frozen=True)
class EncoderKind:
    """A kind of encoder that can be asked for by name.

    Attributes
    ----------
    about
        What it is, in a few words.
    load
        Makes the one that comes in a package; None where there is none.
    load_from
        Makes one of what follows the name and a colon; None where nothing may follow.
    follows
        What that is.
    prepares
        Whether that is prepared first, which may take a while; `load_from` takes `on_progress`
        then.
    n_dims, megabytes, licence
        Of the packaged weights.
    files, modules
        The packaged files and the modules it needs.
    extra
        The extra of this package that brings them.
    """

    about: str
    load: Callable[[], AnyEncoder] | None = None
    load_from: Callable[..., AnyEncoder] | None = None
    follows: str = ""
    prepares: bool = False
    n_dims: int | None = None
    megabytes: int | None = None
    licence: str | None = None
    files: tuple[PackagedFile, ...] = ()
    modules: tuple[str, ...] = ()
    extra: str | None = None

    @property
    def installed(self) -> bool:
        """Whether it can be loaded, the packaged one where there is one."""
        there = all(find_spec(module) is not None for module in self.modules)
        return there and all(file.installed() for file in self.files)

    @property
    def install(self) -> str | None:
        """The command that installs it; None where there is nothing to install."""
        if self.extra is None:
            return self.files[0].install if self.files else None
        return f"pip install 'ulr[{self.extra}]'"

    def ways(self, name: str) -> tuple[str, ...]:
        """How it can be asked for by its name."""
        bare = (name,) if self.load else ()
        return (*bare, f"{name}:{self.follows}") if self.load_from else bare


ENCODERS: dict[str, EncoderKind] = {
    "static": EncoderKind(
        "averaged token vectors, the default and the fastest; or a model2vec folder",
        load=static.StaticEncoder.embedded,
        load_from=static.StaticEncoder.from_folder,
        follows="FOLDER_OR_NAME",
        n_dims=256,
        megabytes=16,
        licence="MIT",
        files=static.FILES,
    ),
    "minilm": EncoderKind(
        "all-MiniLM-L6-v2 on onnxruntime, slower and better; or a folder with model.onnx",
        load=onnx.OnnxEncoder.minilm,
        load_from=onnx.OnnxEncoder.from_folder,
        follows="FOLDER_OR_NAME",
        n_dims=384,
        megabytes=23,
        licence="Apache-2.0",
        files=onnx.FILES,
        modules=("onnxruntime",),
        extra="minilm",
    ),
    "minilm-int8": EncoderKind(
        "the same in eight bits: half as fast again, nearly as good",
        load=onnx.OnnxEncoder.minilm_int8,
        n_dims=384,
        megabytes=23,
        licence="Apache-2.0",
        files=onnx.FILES,
        modules=("onnxruntime", "onnx"),
        extra="minilm-int8",
    ),
    "glove": EncoderKind(
        "averaged word vectors: GloVe 6B, or any GloVe, word2vec or fastText file of text",
        load=words.WordEncoder.packaged,
        load_from=words.WordEncoder.from_file,
        follows="FILE",
        prepares=True,
        n_dims=50,
        megabytes=80,
        licence="PDDL",
        files=words.FILES,
        extra="glove",
    ),
    "hf": EncoderKind(
        "any Hugging Face encoder, its hidden states averaged",
        load_from=TransformerEncoder,
        follows="FOLDER_OR_NAME",
        modules=("torch", "transformers"),
        extra="torch",
    ),
    "cross": EncoderKind(
        "a Hugging Face model that scores every label with every text",
        load_from=CrossEncoder,
        follows="FOLDER_OR_NAME",
        modules=("torch", "transformers"),
        extra="torch",
    ),
    "esa": EncoderKind(
        "Explicit Semantic Analysis over your own corpus of titled articles",
        load_from=EsaEncoder.from_file,
        follows="FILE",
        prepares=True,
    ),
}


def load_encoder(spec: str | AnyEncoder, on_progress: OnProgress | None = None) -> AnyEncoder:
    """An encoder by its name, or the given one if it already is an encoder.

    Parameters
    ----------
    spec
        A name out of `ENCODERS`, perhaps with a colon and a file, folder or model name behind it;
        several with a plus between them, as in ``static+minilm`` or ``static+2*minilm``; or any
        object with ``encode(list of str) -> array``.
    on_progress
        Called while a file is prepared, as only some kinds need: how much of it is done, and of
        how much where that is known.
    """
    if isinstance(spec, str):
        parts = re.split(r"\+(?=(?:[\d.]+\*)?(?:" + "|".join(ENCODERS) + r")(?:[:+]|$))", spec)
        if len(parts) > 1:
            return _joined(parts, spec, on_progress)
        return _load(spec, on_progress)
    if isinstance(spec, type) or not isinstance(spec, Encoder | PairScorer):
        raise EncoderError(
            f"an encoder is a name or an object with encode(list of str) -> array; got {spec!r}."
        )
    return spec


def _load(spec: str, on_progress: OnProgress | None) -> AnyEncoder:
    name, colon, rest = spec.partition(":")
    kind = ENCODERS.get(name)
    if kind is None:
        ways = [way for each, known in ENCODERS.items() for way in known.ways(each)]
        raise EncoderError(f"encoder must be one of {', '.join(ways)}; got {spec!r}.")
    if not colon and kind.load is not None:
        return kind.load()
    if rest and kind.load_from is not None:
        return kind.load_from(rest, **({"on_progress": on_progress} if kind.prepares else {}))
    raise EncoderError(f"encoder must be {' or '.join(kind.ways(name))}; got {spec!r}.")


def _joined(parts: list[str], spec: str, on_progress: OnProgress | None) -> JoinedEncoder:
    """Encoders with a plus between them, each perhaps with a weight: ``static+2*minilm``."""
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
            raise EncoderError(f"{weight!r} is no weight of an encoder; got {spec!r}.") from None
    return JoinedEncoder(encoders, weights)
