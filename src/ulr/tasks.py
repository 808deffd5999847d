"""From what a classifier was given to what a refinement needs: labels, encoder and vectors."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ulr.anchors import PhraseVectors, WordingVectors, owners_of_phrases
from ulr.encoders import (
    AnyEncoder,
    CachedEncoder,
    Encoder,
    JoinedEncoder,
    LabelScores,
    OnTexts,
    encode_batches,
    load_encoder,
)
from ulr.errors import ArrayError, LabelError, TextError
from ulr.labels import LabelSet, as_label_set, extra_labels
from ulr.refine import choose_method
from ulr.wordings import Wordings, as_wordings


class Asked(Protocol):
    """The arguments of a classifier, as they were given; `DatalessClassifier` describes them."""

    labels: Any
    encoder: str | AnyEncoder
    method: str
    distance: str
    prior: Any
    template: str | None
    wordings: Any
    sample: int | None
    extra_labels: Any
    seed: int
    max_iterations: int
    threads: int | None
    cache: str | Path | None
    none_share: float | None
    none_label: str


@dataclass(frozen=True)
class Task:
    """What the arguments come to, checked.

    Attributes
    ----------
    labels
        The labels, with every phrase that is encoded for them.
    wordings
        The sets of an ensemble; None without one.
    extra_labels
        Names that take part and are never predicted.
    encoder
        The encoder.
    distance
        The distance to use with it.
    text_encoder
        What texts go through to become points: the encoder, or its scores of the labels, behind
        the cache where there is one.
    """

    labels: LabelSet
    wordings: Wordings | None
    extra_labels: tuple[str, ...]
    encoder: AnyEncoder
    distance: str
    text_encoder: Encoder

    @property
    def encodes_pairs(self) -> bool:
        """Whether texts become probabilities of the labels rather than vectors."""
        return not isinstance(self.encoder, Encoder)


@dataclass(frozen=True, eq=False)
class Vectors:
    """What a refinement starts from.

    Attributes
    ----------
    documents
        (n_texts, n_dims).
    known
        (n_texts,) label of each text, -1 where it is not known; None where none is.
    anchors
        (n_labels, n_dims) one vector a label; None where a label starts as certainty of itself.
    sets
        The vectors of each wording; None without an ensemble.
    extra_documents, extra_labels
        (n, n_dims) what else takes part; None where nothing does.
    settings
        How to refine, for `ulr.refine.refine`.
    """

    documents: NDArray[np.float32]
    known: NDArray[np.intp] | None
    anchors: NDArray[np.float32] | None
    sets: WordingVectors | None
    extra_documents: NDArray[np.float32] | None
    extra_labels: NDArray[np.float32] | None
    settings: dict[str, Any]

    @property
    def beside(self) -> dict[str, Any]:
        """What is beside documents and labels, for `ulr.refine.refine`."""
        return {
            "known": self.known,
            "extra_documents": self.extra_documents,
            "extra_labels": self.extra_labels,
        }


def prepare(asked: Asked) -> Task:
    """What the arguments come to.

    Raises
    ------
    InputError
        When they do not go together.
    """
    choose_method(asked.method, "cosine" if asked.distance == "auto" else asked.distance)
    labels = as_label_set(asked.labels)
    _check_none(asked, labels)
    wordings = as_wordings(asked.wordings, labels, sample=asked.sample, seed=asked.seed)
    if wordings is not None:
        labels = wordings.phrases(labels)
    extra = () if asked.extra_labels is None else extra_labels(asked.extra_labels, labels)
    encoder = load_encoder(asked.encoder)
    if not isinstance(encoder, Encoder) and (wordings is not None or extra):
        raise LabelError(
            "an ensemble of wordings and extra labels need an encoder of texts; this one "
            "scores pairs of text and label. Leave them out, or choose another encoder."
        )
    return Task(
        labels,
        wordings,
        extra,
        encoder,
        _distance_for(asked.distance, encoder),
        _text_encoder(asked, encoder, labels),
    )


def encode(
    task: Task,
    asked: Asked,
    batches: Iterable[list[str]],
    y: Iterable[Any] | None,
    extra_batches: Iterable[list[str]] | None,
    on_texts: OnTexts | None,
) -> Vectors:
    """Texts and labels as vectors; as for `DatalessClassifier.fit_batches`."""
    anchors = sets = extra = extra_documents = None
    if not task.encodes_pairs:
        owners = owners_of_phrases(task.labels)
        owners |= {name: f"extra label {name!r}" for name in task.extra_labels}
        vectors = PhraseVectors(task.text_encoder, owners, asked.template)
        anchors = vectors.averages(task.labels)
        sets = None if task.wordings is None else WordingVectors(vectors, task.wordings)
        extra = vectors.of(task.extra_labels) if task.extra_labels else None
    known = None if y is None else _known_labels(y, task.labels)
    if asked.none_share is not None and known is not None and (known >= 0).all():
        raise ArrayError("none_share is of the texts whose label is not known; there are none.")
    documents = encode_batches(task.text_encoder, batches, on_texts)
    if known is not None and len(known) != len(documents):
        raise LabelError(
            f"y must have one label a text, None (or -1) where it is unknown; got "
            f"{len(known)} for {len(documents)} texts."
        )
    if extra_batches is not None:
        extra_documents = encode_batches(task.text_encoder, extra_batches, on_texts)
    settings = {
        "distance": task.distance,
        "method": asked.method,
        "prior": asked.prior,
        "max_iterations": asked.max_iterations,
        "threads": asked.threads,
    }
    return Vectors(documents, known, anchors, sets, extra_documents, extra, settings)


def _distance_for(distance: str, encoder: AnyEncoder) -> str:
    """The distance to use, if it is one for what the encoder gives."""
    pairs = not isinstance(encoder, Encoder)
    if distance == "auto":
        return "jensen-shannon" if pairs else "cosine"
    if pairs and distance != "jensen-shannon":
        raise ArrayError(
            f"distance {distance!r} compares vectors, and this encoder gives "
            "probabilities of labels; use jensen-shannon or auto."
        )
    if not pairs and distance == "jensen-shannon":
        raise ArrayError(
            "distance 'jensen-shannon' compares probabilities of labels, which encoders of "
            "texts do not give; use cosine, l2 or dot."
        )
    return distance


def _text_encoder(asked: Asked, encoder: AnyEncoder, label_set: LabelSet) -> Encoder:
    if not isinstance(encoder, Encoder):
        encoder = LabelScores(encoder, label_set.phrases(asked.template))
    if asked.cache is None:
        return encoder
    if isinstance(encoder, JoinedEncoder):
        return encoder.cached(asked.cache)
    return CachedEncoder(encoder, asked.cache)


def _check_none(asked: Asked, label_set: LabelSet) -> None:
    if asked.none_share is None:
        return
    if not isinstance(asked.none_share, int | float) or not 0 < asked.none_share < 1:
        raise ArrayError(f"none_share must be between 0 and 1; got {asked.none_share!r}.")
    if asked.none_label in label_set.names:
        raise LabelError(f"{asked.none_label!r} is one of the labels; choose another none_label.")


def as_texts(texts: Iterable[Any]) -> list[str]:
    """Documents as a list of texts, from a list, an array or a Series; None and NaN are empty."""
    if isinstance(texts, str):
        raise TextError("texts must be a list of texts; got one text. Put it in a list.")
    shape = getattr(texts, "shape", None)
    if shape is not None and len(shape) != 1:
        raise TextError(f"texts must be a one-dimensional list of texts; got shape {shape}.")
    if not isinstance(texts, Iterable):
        raise TextError(f"texts must be a list of texts; got {type(texts).__name__}.")
    documents = ["" if _missing(text) else text for text in texts]
    for index, text in enumerate(documents):
        if not isinstance(text, str):
            raise TextError(f"texts must be texts; number {index} is {text!r}.")
    if not documents:
        raise TextError("there are no texts; at least one is needed.")
    return [str(text) for text in documents]


def _missing(value: Any) -> bool:
    """Whether a value is None, NaN or pandas.NA, which is neither equal to itself nor unequal."""
    if value is None or isinstance(value, str):
        return value is None
    same = value == value
    return same is value or (isinstance(same, bool | np.bool_) and not same)


def _known_labels(y: Iterable[Any], label_set: LabelSet) -> NDArray[np.intp]:
    """Label index of each text, -1 where it is not known."""
    shape = getattr(y, "shape", None)
    if isinstance(y, str) or not isinstance(y, Iterable) or (shape and len(shape) != 1):
        found = f"shape {shape}" if shape else type(y).__name__
        raise LabelError(f"y must be a list of labels, None (or -1) where unknown; got {found}.")
    index = {name: i for i, name in enumerate(label_set.names)}
    known = []
    for place, label in enumerate(y):
        if _missing(label) or (not isinstance(label, str) and label == -1):
            known.append(-1)
        elif str(label) in index:
            known.append(index[str(label)])
        else:
            raise LabelError(
                f"y must be label names, and None (or -1) where unknown; number {place} is "
                f"{label!r}. The labels are: {', '.join(label_set.names)}."
            )
    return np.array(known, dtype=np.intp)
