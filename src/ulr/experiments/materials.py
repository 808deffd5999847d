"""What measurements are made of: documents, encoders and vectors, each read or made once."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ulr.anchors import PhraseVectors
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
from ulr.experiments.plan import CONCEPTS, SINGLE, WORDS

Vectors = NDArray[np.float32]
OnPart = Callable[[int, int], None]  # how much of a cell is done, and of how much

_VECTORS_AT_HAND = 3
_JOINED = "several encoders as one"
_PACKAGED = {
    "static": "averaged token vectors of 256 dimensions, the embedded encoder",
    "minilm": "all-MiniLM-L6-v2, 384 dimensions, not trained on NatCat",
    "minilm-int8": "all-MiniLM-L6-v2 in eight bits, 384 dimensions, not trained on NatCat",
    "glove": "averaged word vectors: GloVe 6B with 50 dimensions",
}
_UNTRAINED = ("roberta-base", "FacebookAI/roberta-base")


@dataclass(frozen=True)
class Setting:
    """What a run is told.

    Attributes
    ----------
    data
        The folder of the datasets.
    cache
        The folder to keep vectors in.
    seed
        Of every draw: random starts, labelled examples, samples.
    single_sample
        Most documents for a single encoder, which reads every pair; None for all.
    extra_texts
        Most unlabelled texts that are added.
    """

    data: Path
    cache: Path
    seed: int = 1
    single_sample: int | None = None
    extra_texts: int = 100_000


class Materials:
    """Documents, encoders and vectors of a run.

    Parameters
    ----------
    setting
        What the run is told.
    on_part
        Called as the texts of a cell are encoded.
    load
        Makes an encoder of its name.
    """

    def __init__(
        self,
        setting: Setting,
        on_part: OnPart | None = None,
        load: Callable[[str], AnyEncoder] = load_encoder,
    ) -> None:
        self.setting = setting
        self._load = load
        self.on_part = on_part or (lambda done, total: None)
        self._documents: dict[tuple[str, str, int | None], Documents | InputError] = {}
        self._encoders: dict[str, AnyEncoder | InputError] = {}
        self._text_encoders: dict[str, Encoder] = {}
        self._vectors: dict[tuple[str, str], Vectors] = {}

    def documents(self, dataset: str, split: str = "test", at_most: int | None = None) -> Documents:
        """Documents of a dataset; the reason again where they could not be read before."""
        key = dataset, split, at_most
        if key not in self._documents:
            setting = self.setting
            try:
                self._documents[key] = read_documents(
                    dataset, setting.data, split, at_most=at_most, seed=setting.seed
                )
            except InputError as error:
                self._documents[key] = error
        return _value(self._documents[key])

    def tested(self, dataset: str, role: str) -> Documents:
        """The test documents, for a single encoder perhaps a sample of them."""
        return self.documents(
            dataset, at_most=self.setting.single_sample if role == SINGLE else None
        )

    def encoder(self, spec: str) -> AnyEncoder:
        """An encoder; the reason again where it could not be loaded before."""
        if spec not in self._encoders:
            # One at a time: a trained transformer is large.
            self._encoders = {key: e for key, e in self._encoders.items() if not _is_loaded(e)}
            self._text_encoders.clear()
            try:
                self._encoders[spec] = self._load(spec)
            except InputError as error:
                self._encoders[spec] = error
        return _value(self._encoders[spec])

    def text_encoder(self, spec: str) -> Encoder:
        """An encoder of texts, behind the cache."""
        encoder = self.encoder(spec)
        if not isinstance(encoder, Encoder):
            raise ExperimentError(f"{spec} scores pairs and gives texts no vectors.")
        if spec not in self._text_encoders:
            cache = self.setting.cache
            self._text_encoders[spec] = (
                encoder.cached(cache)
                if isinstance(encoder, JoinedEncoder)
                else CachedEncoder(encoder, cache)
            )
        return self._text_encoders[spec]

    def vectors(self, spec: str, texts: Sequence[str], key: str) -> Vectors:
        """(n_texts, n_dims) of texts that `key` tells from others."""
        if (spec, key) not in self._vectors:
            while len(self._vectors) >= _VECTORS_AT_HAND:
                del self._vectors[next(iter(self._vectors))]
            self._vectors[spec, key] = self._encoded(self.text_encoder(spec), texts)
        return self._vectors[spec, key]

    def phrases(self, spec: str, phrases: Sequence[str]) -> PhraseVectors:
        """Vectors of phrases, each encoded once."""
        owners = {phrase: f"label {phrase!r}" for phrase in phrases}
        return PhraseVectors(self.text_encoder(spec), owners)

    def probabilities(self, spec: str, names: Sequence[str], texts: Sequence[str]) -> Vectors:
        """(n_texts, n_labels) of labels that go by some names, from an encoder of pairs."""
        scorer = self.encoder(spec)
        if isinstance(scorer, Encoder):
            raise ExperimentError(f"{spec} encodes texts; a single encoder scores pairs.")
        scores = LabelScores(scorer, [[name] for name in names])
        return self._encoded(CachedEncoder(scores, self.setting.cache), texts)

    def _encoded(self, encoder: Encoder, texts: Sequence[str]) -> Vectors:
        done = 0

        def tell(count: int) -> None:
            nonlocal done
            done += count
            self.on_part(done, len(texts))

        return encode_texts(encoder, texts, tell)

    def fingerprint(self, spec: str) -> str:
        """What tells the encoder from others."""
        return fingerprint(self.encoder(spec))

    def stands_in(self, spec: str, role: str) -> bool:
        """Whether an encoder is another than the paper's."""
        name, _, rest = spec.partition(":")
        if role == WORDS:
            return not (name == "glove" and "840B.300d" in Path(rest).name)
        if role == CONCEPTS:
            # The paper's has all of Wikipedia; a corpus does not say what it is a part of.
            return True
        if name not in ("hf", "cross") or rest in _UNTRAINED:
            return True
        config = read_json(find_model(rest) / "config.json")
        return config.get("model_type") != "roberta"

    def description(self, spec: str) -> str:
        """What an encoder is, in words."""
        name, _, rest = spec.partition(":")
        if name in ("hf", "cross"):
            folder = find_model(rest)
            shape = _shape(read_json(folder / "config.json"))
            return f"{shape}, {_trained(read_json(folder / 'training.json'))}"
        if name == "esa":
            return f"{getattr(self.encoder(spec), 'n_concepts', 0):,} articles as concepts"
        if spec in _PACKAGED:
            return _PACKAGED[spec]
        return ENCODERS[name].about if name in ENCODERS else _JOINED


def _shape(config: dict[str, Any]) -> str:
    """What kind of transformer it is, and how large."""
    kind = config.get("model_type", "a transformer")
    layers, dims = config.get("num_hidden_layers"), config.get("hidden_size")
    return f"{kind} of {layers} layers and {dims} dimensions" if layers and dims else f"{kind}"


def _trained(training: dict[str, Any]) -> str:
    """What a model that `ulr` trained has learnt from."""
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


def _is_loaded(encoder: AnyEncoder | InputError) -> bool:
    return not isinstance(encoder, InputError)


def _value(kept: Any) -> Any:
    """What was kept, or the reason there is nothing, raised once more."""
    if isinstance(kept, InputError):
        raise type(kept)(str(kept))
    return kept


def check_spec(spec: str) -> None:
    """Say so now if an encoder's name is none, rather than in every row of the report."""
    match = re.match(r"(?:[\d.]+\*)?([^:+]*)", spec)
    if match is None or match[1] not in ENCODERS:
        raise EncoderError(f"encoder must be one of {', '.join(ENCODERS)}; got {spec!r}.")
