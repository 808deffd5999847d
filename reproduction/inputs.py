"""Inputs of the measurements: documents, encoders and their vectors."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from reproduction.cells import Key
from reproduction.datasets import ReproductionError
from reproduction.documents import Documents, read_documents
from reproduction.esa import EsaEncoder
from reproduction.experiments import AUGMENTED_TEXTS, CONCEPTS, SINGLE, WORDS
from ulr.encoders import ENCODERS, encode_texts, fingerprint, label_encoder, load_encoder
from ulr.files import atomic_file

Vectors = NDArray[np.float32]


@dataclass(frozen=True)
class Inputs:
    """Where the inputs of a run come from."""

    data: Path  # the folder of the datasets
    cache: Path  # a folder for vectors
    random_state: int = 1  # seed of random starts, labelled examples and samples
    single_sample: int | None = None  # most documents for a single encoder, which reads every pair
    extra_texts: int = AUGMENTED_TEXTS  # most unlabelled texts to add

    def documents(self, dataset: str, split: str = "test", at_most: int | None = None) -> Documents:
        """Documents of a dataset."""
        return _read(dataset, self.data, split, at_most, self.random_state)

    def test_documents(self, key: Key) -> Documents:
        """The test documents of a cell; for a single encoder possibly a sample."""
        at_most = self.single_sample if key.role == SINGLE else None
        return self.documents(key.dataset, at_most=at_most)

    def unlabelled_documents(self, key: Key) -> Documents:
        """The texts to add in Table 9."""
        return self.documents(key.dataset, "unlabelled", min(AUGMENTED_TEXTS, self.extra_texts))

    def vectors(self, name: str, texts: Sequence[str]) -> Vectors:
        """(n_texts, n_dims) vectors of texts."""
        encoder = _text_encoder(name)
        if isinstance(encoder, EsaEncoder):
            return encode_texts(encoder, texts)  # wide, and used once
        return self._cached([fingerprint(encoder), *texts], lambda: encode_texts(encoder, texts))

    def probabilities(self, name: str, labels: Sequence[str], texts: Sequence[str]) -> Vectors:
        """(n_texts, n_labels) probabilities of labels, from an encoder of pairs."""
        scorer = load(name)
        if not hasattr(scorer, "score"):
            raise ReproductionError(f"{name} encodes texts, but a scorer of pairs is needed.")

        def scores() -> Vectors:
            return np.asarray(scorer.score(list(texts), list(labels)), dtype=np.float32)

        key = [fingerprint(scorer), *labels, "", *texts]
        return softmax(self._cached(key, scores).astype(np.float64), axis=1).astype(np.float32)

    def _cached(self, key: Sequence[str], make: Any) -> Vectors:
        name = hashlib.sha256(json.dumps(key).encode()).hexdigest()[:32]
        path = self.cache / f"{name}.npy"
        if not path.exists():
            self.cache.mkdir(parents=True, exist_ok=True)
            with atomic_file(path) as file:
                np.save(file, make())
        return np.load(path)


def anchors(name: str, phrases: Sequence[str]) -> Vectors:
    """(n_phrases, n_dims) vectors of phrases of labels, each encoded once."""
    distinct = list(dict.fromkeys(phrases))
    vectors = encode_texts(label_encoder(_text_encoder(name)), distinct)
    for phrase, vector in zip(distinct, vectors, strict=True):
        if not vector.any():
            raise ReproductionError(f"{name} knows no word of the label {phrase!r}.")
    return vectors[[distinct.index(phrase) for phrase in phrases]]


@lru_cache(maxsize=8)
def _read(
    dataset: str, data: Path, split: str, at_most: int | None, random_state: int
) -> Documents:
    return read_documents(dataset, data, split, at_most=at_most, random_state=random_state)


@lru_cache(maxsize=1)  # a transformer is large
def load(name: str) -> Any:
    """The encoder with a name; ``esa:FILE`` is one of this package."""
    kind, _, rest = name.partition(":")
    return EsaEncoder(Path(rest)) if kind == "esa" else load_encoder(name)


def _text_encoder(name: str) -> Any:
    encoder = load(name)
    if not hasattr(encoder, "encode"):
        raise ReproductionError(f"{name} scores pairs, but an encoder of texts is needed.")
    return encoder


def is_stand_in(name: str, role: str) -> bool:
    """Whether an encoder is another one than the paper's."""
    kind, _, rest = name.partition(":")
    if role == WORDS:
        return not (kind == "glove" and "840B.300d" in Path(rest).name)
    # The paper uses all of Wikipedia; a corpus does not say what it is a part of.
    if role == CONCEPTS or kind not in ("hf", "cross"):
        return True
    return _json(Path(rest) / "config.json").get("model_type") != "roberta"


def description(name: str) -> str:
    """What an encoder is."""
    kind, _, rest = name.partition(":")
    if kind in ("hf", "cross"):
        config = _json(Path(rest) / "config.json")
        layers, dims = config.get("num_hidden_layers"), config.get("hidden_size")
        shape = f" of {layers} layers and {dims} dimensions" if layers and dims else ""
        return f"{config.get('model_type', 'a transformer')}{shape}"
    if kind == "esa":
        return f"{load(name).n_concepts:,} articles as concepts"
    return ENCODERS[kind].about if kind in ENCODERS else "several encoders, concatenated"


def _json(path: Path) -> dict[str, Any]:
    """The object of a JSON file; empty without one."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}
