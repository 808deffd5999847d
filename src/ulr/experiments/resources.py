"""Documents, encoders and vectors of a run, each read or computed once."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ulr.encoders import (
    ENCODERS,
    AnyEncoder,
    CachedEncoder,
    Encoder,
    JoinedEncoder,
    LabelScores,
    encode_texts,
    fingerprint,
    load_encoder,
)
from ulr.encoders.pretrained import find_model, read_json
from ulr.errors import EncoderError, ExperimentError, InputError
from ulr.experiments.documents import Documents, read_documents
from ulr.experiments.paper import CONCEPTS, SINGLE, WORDS
from ulr.inputs import PhraseVectors

Embeddings = NDArray[np.float32]
OnPart = Callable[[int, int], None]  # units done of a cell, and their number

_CACHED_VECTORS = 3
_PACKAGED = {
    "static": "averaged token vectors of 256 dimensions, the embedded encoder",
    "minilm": "all-MiniLM-L6-v2, 384 dimensions, not trained on NatCat",
    "minilm-int8": "all-MiniLM-L6-v2 in eight bits, 384 dimensions, not trained on NatCat",
    "glove": "averaged word vectors: GloVe 6B with 50 dimensions",
}
_UNTRAINED = ("roberta-base", "FacebookAI/roberta-base")


@dataclass(frozen=True)
class RunSettings:
    """Settings of a run.

    Attributes
    ----------
    data
        The folder of the datasets.
    cache
        The folder of the vector cache.
    random_state
        Seed of random starts, labelled examples and samples.
    single_sample
        Most documents for a single encoder, which reads every pair; None for all.
    extra_texts
        Most unlabelled texts to add.
    """

    data: Path
    cache: Path
    random_state: int = 1
    single_sample: int | None = None
    extra_texts: int = 100_000


class Resources:
    """Documents, encoders and vectors of a run.

    Parameters
    ----------
    settings
        Settings of the run.
    on_part
        Called while the texts of a cell are encoded.
    load
        Loads an encoder by name.
    """

    def __init__(
        self,
        settings: RunSettings,
        on_part: OnPart | None = None,
        load: Callable[[str], AnyEncoder] = load_encoder,
    ) -> None:
        self.settings = settings
        self._load = load
        self.on_part = on_part or (lambda done, total: None)
        self._documents: dict[tuple[str, str, int | None], Documents | InputError] = {}
        self._encoders: dict[str, AnyEncoder | InputError] = {}
        self._vectors: dict[tuple[str, str], Embeddings] = {}

    def documents(self, dataset: str, split: str = "test", at_most: int | None = None) -> Documents:
        """Documents of a dataset; an error of an earlier attempt is raised again."""
        key, settings = (dataset, split, at_most), self.settings
        if key not in self._documents:
            self._documents[key] = _value_or_error(
                lambda: read_documents(
                    dataset,
                    settings.data,
                    split,
                    at_most=at_most,
                    random_state=settings.random_state,
                )
            )
        return _value(self._documents[key])

    def test_documents(self, dataset: str, role: str) -> Documents:
        """The test documents; for a single encoder possibly a sample."""
        at_most = self.settings.single_sample if role == SINGLE else None
        return self.documents(dataset, at_most=at_most)

    def encoder(self, name: str) -> AnyEncoder:
        """An encoder; an error of an earlier attempt is raised again."""
        if name not in self._encoders:
            # Only one encoder is kept in memory: a transformer is large.
            self._encoders = {
                key: each for key, each in self._encoders.items() if isinstance(each, InputError)
            }
            self._encoders[name] = _value_or_error(lambda: self._load(name))
        return _value(self._encoders[name])

    def vectors(self, name: str, texts: Sequence[str], key: str) -> Embeddings:
        """(n_texts, n_dims) vectors of texts; `key` identifies the texts."""
        if (name, key) not in self._vectors:
            while len(self._vectors) >= _CACHED_VECTORS:
                del self._vectors[next(iter(self._vectors))]
            self._vectors[name, key] = self._encode(self._text_encoder(name), texts)
        return self._vectors[name, key]

    def phrases(self, name: str, phrases: Sequence[str]) -> PhraseVectors:
        """Vectors of phrases."""
        owners = {phrase: f"label {phrase!r}" for phrase in phrases}
        return PhraseVectors(self._text_encoder(name), owners)

    def probabilities(self, name: str, labels: Sequence[str], texts: Sequence[str]) -> Embeddings:
        """(n_texts, n_labels) probabilities of labels, from an encoder of pairs."""
        scorer = self.encoder(name)
        if isinstance(scorer, Encoder):
            raise ExperimentError(f"{name} encodes texts, but a scorer of pairs is needed.")
        scores = LabelScores(scorer, [[label] for label in labels])
        return self._encode(CachedEncoder(scores, self.settings.cache), texts)

    def _text_encoder(self, name: str) -> Encoder:
        encoder = self.encoder(name)
        if not isinstance(encoder, Encoder):
            raise ExperimentError(f"{name} scores pairs, but an encoder of texts is needed.")
        if isinstance(encoder, JoinedEncoder):
            return encoder.cached(self.settings.cache)
        return CachedEncoder(encoder, self.settings.cache)

    def _encode(self, encoder: Encoder, texts: Sequence[str]) -> Embeddings:
        done = 0

        def on_texts(count: int) -> None:
            nonlocal done
            done += count
            self.on_part(done, len(texts))

        return encode_texts(encoder, texts, on_texts)

    def fingerprint(self, name: str) -> str:
        """The fingerprint of an encoder."""
        return fingerprint(self.encoder(name))

    def is_stand_in(self, name: str, role: str) -> bool:
        """Whether an encoder is another one than the paper's."""
        kind, _, rest = name.partition(":")
        if role == WORDS:
            return not (kind == "glove" and "840B.300d" in Path(rest).name)
        if role == CONCEPTS:
            # The paper uses all of Wikipedia; a corpus does not say what it is a part of.
            return True
        if kind not in ("hf", "cross") or rest in _UNTRAINED:
            return True
        config = read_json(find_model(rest) / "config.json")
        return config.get("model_type") != "roberta"

    def description(self, name: str) -> str:
        """What an encoder is."""
        kind, _, rest = name.partition(":")
        if kind in ("hf", "cross"):
            folder = find_model(rest)
            shape = _shape(read_json(folder / "config.json"))
            return f"{shape}, {_training(read_json(folder / 'training.json'))}"
        if kind == "esa":
            return f"{getattr(self.encoder(name), 'n_concepts', 0):,} articles as concepts"
        if name in _PACKAGED:
            return _PACKAGED[name]
        return ENCODERS[kind].about if kind in ENCODERS else "several encoders, concatenated"


def _shape(config: dict[str, Any]) -> str:
    """Kind and size of a transformer."""
    kind = config.get("model_type", "a transformer")
    layers, dims = config.get("num_hidden_layers"), config.get("hidden_size")
    return f"{kind} of {layers} layers and {dims} dimensions" if layers and dims else f"{kind}"


def _training(training: dict[str, Any]) -> str:
    """Training data of a model that `ulr` trained."""
    try:
        settings, sources = training["plan"]["settings"], training["plan"]["sources"]
        files = ", ".join(
            files[0] if len(files) == 1 else f"{files[0]} … {files[-1]}"
            for files in (each["files"] for each in sources)
        )
        return (
            f"trained on {settings['n_instances']:,} instances of {files} "
            f"(objective {settings['objective']})"
        )
    except (KeyError, TypeError, ValueError, IndexError):
        return "training unknown"


def _value_or_error(make: Callable[[], Any]) -> Any:
    try:
        return make()
    except InputError as error:
        return error


def _value(value: Any) -> Any:
    if isinstance(value, InputError):
        raise type(value)(str(value))
    return value


def check_encoder_name(name: str) -> None:
    """Refuse a name that is no encoder's."""
    match = re.match(r"(?:[\d.]+\*)?([^:+]*)", name)
    if match is None or match[1] not in ENCODERS:
        raise EncoderError(f"encoder must be one of {', '.join(ENCODERS)}; got {name!r}.")
