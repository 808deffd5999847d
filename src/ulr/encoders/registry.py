"""Encoders by name."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from typing import TypeAlias

from ulr.encoders import static, universal, words
from ulr.encoders.cross import CrossEncoder, PairScorer
from ulr.encoders.downloads import is_downloaded, verified_folder
from ulr.encoders.esa import EsaEncoder
from ulr.encoders.joined import JoinedEncoder
from ulr.encoders.known_models import KNOWN_MODELS, KnownModel
from ulr.encoders.onnx import OnnxEncoder
from ulr.encoders.protocol import Encoder, OnProgress
from ulr.encoders.transformer import TransformerEncoder
from ulr.encoders.weights import PackagedFile, install_command
from ulr.errors import EncoderError

AnyEncoder: TypeAlias = Encoder | PairScorer

# By mean accuracy on six datasets, the best first; see docs/encoders.md.
BEST = (
    ("minilm", "bge-small", "use-multilingual"),
    ("minilm", "bge-small"),
    ("minilm", "use-multilingual"),
    ("bge-small",),
    ("static", "minilm"),
    ("static",),
)


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
    model
        Name of the known model that it is; it may be downloaded.
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
    model: str | None = None

    @property
    def installed(self) -> bool:
        """Whether all modules are installed, and all files are installed or downloaded."""
        if not all(find_spec(module) is not None for module in self.modules):
            return False
        if self.model is not None and is_downloaded(self.model):
            return True
        return all(file.installed() for file in self.files) and not self.needs_download

    @property
    def install(self) -> str | None:
        """The command that makes it available; None if nothing is missing."""
        if self.needs_download:
            missing = any(find_spec(module) is None for module in self.modules)
            first = f"{install_command('onnx')}, then " if missing else ""
            return f"{first}ulr encoders download {self.model}"
        if self.extra is not None:
            return install_command(self.extra)
        return self.files[0].install if self.files else None

    @property
    def needs_download(self) -> bool:
        """Whether it is only available after a download."""
        return self.model is not None and not self.files

    def specs(self, name: str) -> tuple[str, ...]:
        """The forms of its name, such as ``glove`` and ``glove:FILE``."""
        bare = (name,) if self.load else ()
        return (*bare, f"{name}:{self.source}") if self.load_from else bare


def _known_kind(name: str, model: KnownModel) -> EncoderKind:
    """The entry of a known model."""
    return EncoderKind(
        model.about,
        load=partial(_LOADERS[model.kind], name),
        n_dims=model.n_dims,
        megabytes=model.installed_megabytes or model.megabytes,
        licence=model.licence,
        languages=model.languages,
        files=model.installed,
        modules=() if model.kind == "model2vec" else ("onnxruntime",),
        extra=model.installed[0].extra if model.installed else None,
        model=name,
    )


def _load_model2vec(name: str) -> static.StaticEncoder:
    """A downloaded model2vec model."""
    model = KNOWN_MODELS[name]
    folder = verified_folder(name)
    encoder = static.StaticEncoder.from_folder(str(folder), model.max_tokens)
    encoder.spec, encoder.languages = name, model.languages
    return encoder


def _load_cross(name: str) -> CrossEncoder:
    """A downloaded scorer of pairs."""
    model = KNOWN_MODELS[name]
    encoder = CrossEncoder(verified_folder(name), max_tokens=model.max_tokens)
    encoder.spec, encoder.languages = name, model.languages
    return encoder


_LOADERS: dict[str, Callable[[str], AnyEncoder]] = {
    "onnx": OnnxEncoder.known,
    "cross": _load_cross,
    "model2vec": _load_model2vec,
}


def _load_best() -> AnyEncoder:
    """The most accurate combination of encoders that are available."""
    for names in BEST:
        if all(ENCODERS[name].installed for name in names):
            return load_encoder("+".join(names))
    raise EncoderError("no encoder is available; see 'ulr encoders'.")


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
    **{name: _known_kind(name, model) for name, model in KNOWN_MODELS.items()},
    "minilm-int8": EncoderKind(
        "minilm with 8-bit arithmetic: 1.5 times as fast, nearly as accurate",
        load=partial(OnnxEncoder.known, "minilm", int8=True),
        n_dims=384,
        megabytes=23,
        licence="Apache-2.0",
        languages=("en",),
        files=KNOWN_MODELS["minilm"].installed,
        modules=("onnxruntime", "onnx"),
        extra="minilm-int8",
        model="minilm",
    ),
    "onnx": EncoderKind(
        "any sentence encoder as ONNX on onnxruntime, configured by its own files",
        load_from=OnnxEncoder.from_folder,
        source="FOLDER_OR_NAME",
        modules=("onnxruntime",),
        extra="onnx",
    ),
    "use-multilingual": EncoderKind(
        "Universal Sentence Encoder in NumPy: 15 languages, faster than minilm",
        load=universal.UniversalEncoder.packaged,
        n_dims=512,
        megabytes=33,
        licence="Apache-2.0",
        languages=universal.LANGUAGES,
        files=universal.FILES,
        extra="multilingual",
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
        "a Hugging Face model that scores every label with every text, on PyTorch or as ONNX",
        load_from=CrossEncoder,
        source="FOLDER_OR_NAME",
    ),
    "best": EncoderKind(
        "the most accurate combination of what is available; see docs/encoders.md",
        load=_load_best,
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
        if name == "best":
            raise EncoderError(f"best is a combination itself and cannot be joined; got {spec!r}.")
        encoder = _load(name, on_progress)
        if not isinstance(encoder, Encoder):
            raise EncoderError(f"{name} scores pairs and has no vectors to join; got {spec!r}.")
        encoders.append(encoder)
        try:
            weights.append(float(weight) if star else 1.0)
        except ValueError:
            raise EncoderError(f"{weight!r} is not a weight; got {spec!r}.") from None
    return JoinedEncoder(encoders, weights)
