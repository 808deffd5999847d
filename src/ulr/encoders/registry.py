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
from ulr.encoders.joined import JoinedEncoder
from ulr.encoders.known_models import KNOWN_MODELS, KnownModel, is_available, model_files
from ulr.encoders.onnx import OnnxEncoder
from ulr.encoders.protocol import Encoder
from ulr.encoders.torch import TransformerEncoder
from ulr.encoders.weights import PackagedFile
from ulr.errors import EncoderError, install_command
from ulr.progress import NO_PROGRESS, Progress

AnyEncoder: TypeAlias = Encoder | PairScorer

# By mean accuracy on sixteen and more datasets, the best first; see docs/encoders.md.
STRONGEST = (
    ("mpnet", "use-multilingual"),
    ("mpnet", "minilm"),
    ("mpnet",),
    ("minilm", "bge-small", "use-multilingual"),
    ("minilm-int8", "use-multilingual"),  # as accurate as the next, and half the time
    ("minilm", "use-multilingual"),
    ("minilm", "bge-small"),
    ("static", "minilm"),
    ("static", "bge-small"),
    ("static", "use-multilingual"),
    ("static",),
)


@dataclass(frozen=True)
class EncoderKind:
    """A kind of encoder: one that has this name, or is made from a source after it and a colon."""

    about: str
    load: Callable[[], AnyEncoder] | None = None
    load_from: Callable[[str, Progress], AnyEncoder] | None = None
    source: str = ""  # what follows the colon, such as FILE
    n_dims: int | None = None
    megabytes: int | None = None
    licence: str | None = None
    languages: tuple[str, ...] = ()
    files: tuple[PackagedFile, ...] = ()
    modules: tuple[str, ...] = ()  # that are needed
    extra: str | None = None  # that installs the files and modules
    model: str | None = None  # its name as a known model, which may be downloaded

    @property
    def _lacks_modules(self) -> bool:
        return any(find_spec(module) is None for module in self.modules)

    @property
    def installed(self) -> bool:
        """Whether all modules are installed, and all files are installed or downloaded."""
        if self._lacks_modules:
            return False
        if self.model is not None:
            return is_available(self.model)
        return all(file.installed() for file in self.files)

    @property
    def scores_pairs(self) -> bool:
        """Whether a known model scores pairs of text and label, and has no vectors of texts."""
        return self.model is not None and KNOWN_MODELS[self.model].kind == "cross"

    @property
    def install(self) -> str | None:
        """The command that makes it available; None if nothing is missing."""
        if self.extra is not None:
            return install_command(self.extra)
        if self.model is None:
            return self.files[0].install if self.files else None
        first = f"{install_command('onnx')}, then " if self._lacks_modules else ""
        return f"{first}ulr encoders download {self.model}"

    def specs(self, name: str) -> tuple[str, ...]:
        """The forms of its name, such as ``glove`` and ``glove:FILE``."""
        bare = (name,) if self.load else ()
        return (*bare, f"{name}:{self.source}") if self.load_from else bare


def _load_known(name: str) -> AnyEncoder:
    """A known model, from installed packages or downloaded before."""
    model = KNOWN_MODELS[name]
    if model.kind == "onnx":
        return OnnxEncoder.known(name)
    folder = model_files(name)["tokenizer.json"].parent
    encoder: static.StaticEncoder | CrossEncoder | TransformerEncoder
    if model.kind == "model2vec":
        encoder = static.StaticEncoder.from_folder(str(folder), model.max_tokens)
    elif model.kind == "torch":
        encoder = TransformerEncoder(folder, max_tokens=model.max_tokens)
    else:
        encoder = CrossEncoder(folder, max_tokens=model.max_tokens)
    encoder.spec, encoder.languages = name, model.languages
    return encoder


def _load_strongest() -> AnyEncoder:
    """The most accurate combination of encoders that are available."""
    names = next(each for each in STRONGEST if all(ENCODERS[name].installed for name in each))
    encoder = load_encoder("+".join(names))
    if names == STRONGEST[-1]:
        encoder.advice = (  # type: ignore[union-attr]
            "Only the fast encoder 'static' is installed; a strong one is right more often: "
            f"{install_command('strong')}."
        )
    return encoder


_MODULES: dict[str, tuple[str, ...]] = {
    "onnx": ("onnxruntime",),
    "cross": ("onnxruntime",),
    "torch": ("torch", "sentence_transformers"),
    "model2vec": (),
}


def _extra_of(model: KnownModel) -> str | None:
    """The extra that installs the files of a known model."""
    files = model.installed if model.archive is None else model.archive.parts
    return files[0].extra if files else None


ENCODERS: dict[str, EncoderKind] = {
    "static": EncoderKind(
        "averaged token vectors, the fastest; or a model2vec folder",
        load=static.StaticEncoder.embedded,
        load_from=lambda source, progress: static.StaticEncoder.from_folder(source),
        source="FOLDER_OR_NAME",
        n_dims=256,
        megabytes=16,
        licence="MIT",
        languages=("en",),
        files=static.FILES,
    ),
    **{
        name: EncoderKind(
            model.about,
            load=partial(_load_known, name),
            n_dims=model.n_dims,
            megabytes=model.installed_megabytes or model.megabytes,
            licence=model.licence,
            languages=model.languages,
            modules=_MODULES[model.kind],
            extra=_extra_of(model),
            model=name,
        )
        for name, model in KNOWN_MODELS.items()
    },
    "minilm-int8": EncoderKind(
        "minilm with 8-bit arithmetic: 1.6 times as fast, nearly as accurate",
        load=partial(OnnxEncoder.known, "minilm", int8=True),
        n_dims=384,
        megabytes=23,
        licence="Apache-2.0",
        languages=("en",),
        modules=("onnxruntime",),
        extra="minilm",
        model="minilm",
    ),
    "onnx": EncoderKind(
        "any sentence encoder as ONNX on onnxruntime, configured by its own files",
        load_from=lambda source, progress: OnnxEncoder.from_folder(source),
        source="FOLDER_OR_NAME",
        modules=("onnxruntime",),
        extra="onnx",
    ),
    "use-multilingual": EncoderKind(
        "Universal Sentence Encoder in NumPy: 15 languages, faster than minilm",
        load=universal.UniversalEncoder,
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
        load_from=lambda source, progress: words.WordEncoder.from_file(source, progress=progress),
        source="FILE",
        n_dims=50,
        megabytes=80,
        licence="PDDL",
        languages=("en",),
        files=words.FILES,
        extra="glove",
    ),
    "hf": EncoderKind(
        "any sentence encoder of Hugging Face on PyTorch, configured by its own files",
        load_from=lambda source, progress: TransformerEncoder(source),
        source="FOLDER_OR_NAME",
        modules=("torch", "sentence_transformers"),
        extra="torch",
    ),
    "cross": EncoderKind(
        "a Hugging Face model that scores every label with every text, on PyTorch or as ONNX",
        load_from=lambda source, progress: CrossEncoder(source),
        source="FOLDER_OR_NAME",
    ),
    "auto": EncoderKind(
        "the default: the most accurate combination of what is available; see docs/encoders.md",
        load=_load_strongest,
    ),
}


def load_encoder(spec: str | AnyEncoder, progress: Progress = NO_PROGRESS) -> AnyEncoder:
    """Load an encoder by its name.

    Parameters
    ----------
    spec
        A name from `ENCODERS`, optionally with a colon and a file, folder or model name; or several
        of them joined by plus signs, such as ``static+minilm`` or ``static+2*minilm``. An object
        with ``encode(list of str) -> array`` is returned as it is.
    progress
        Receives the progress of preparing a file, which some kinds need the first time.

    Examples
    --------
    >>> from ulr import load_encoder
    >>> load_encoder("static").encode(["a text", "another one"]).shape
    (2, 256)
    """
    if isinstance(spec, str):
        parts = re.split(r"\+(?=(?:[\d.]+\*)?(?:" + "|".join(ENCODERS) + r")(?:[:+]|$))", spec)
        return _load(spec, progress) if len(parts) == 1 else _join(parts, spec, progress)
    if isinstance(spec, type) or not isinstance(spec, Encoder | PairScorer):
        raise EncoderError(
            f"an encoder is a name or an object with encode(list of str) -> array; got {spec!r}."
        )
    return spec


def _load(spec: str, progress: Progress) -> AnyEncoder:
    name, colon, source = spec.partition(":")
    kind = ENCODERS.get(name)
    if kind is None:
        specs = [each for known, other in ENCODERS.items() for each in other.specs(known)]
        raise EncoderError(f"encoder must be one of {', '.join(specs)}; got {spec!r}.")
    if not colon and kind.load is not None:
        return kind.load()
    if source and kind.load_from is not None:
        return kind.load_from(source, progress)
    raise EncoderError(f"encoder must be {' or '.join(kind.specs(name))}; got {spec!r}.")


def _join(parts: list[str], spec: str, progress: Progress) -> JoinedEncoder:
    """Load encoders such as ``static`` or, with a weight, ``2*minilm``."""
    encoders, weights = [], []
    for part in parts:
        weight, _, name = part.rpartition("*") if part[:1].isdigit() else ("1", "", part)
        if name == "auto":
            raise EncoderError(f"auto is a combination itself and cannot be joined; got {spec!r}.")
        encoder = _load(name, progress)
        if not isinstance(encoder, Encoder):
            raise EncoderError(f"{name} scores pairs and has no vectors to join; got {spec!r}.")
        encoders.append(encoder)
        try:
            weights.append(float(weight))
        except ValueError:
            raise EncoderError(f"{weight!r} is not a weight; got {spec!r}.") from None
    return JoinedEncoder(encoders, weights)
