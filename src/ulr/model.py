"""A fitted model: everything that is needed to classify new texts, and nothing else."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ulr.encoders import AnyEncoder, Encoder, encode_texts
from ulr.encoders.batching import batch_texts
from ulr.encoders.protocol import checked_vectors
from ulr.labels import LabelSet
from ulr.pieces import SplitTexts
from ulr.refinement import Rule, score_all
from ulr.refinement.distances import unit_rows
from ulr.texts import empty_texts
from ulr.word_counts import WordCounter

_CHUNK_ROWS = 4096
_CERTAIN = 50.0  # log odds

Vectors = NDArray[np.float32]
Indices = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Predictions:
    """Labels of some texts.

    Attributes
    ----------
    labels
        (n_texts,) label index in the order of the label set; `n_labels` for the none label, -1 for
        texts without a label.
    scores
        (n_texts, n_labels) by the rule; larger is closer.
    probabilities
        (n_texts, n_labels), or one column more with a none label; equal where there is no label.
    unrefined
        (n_texts,) label index before refinement, -1 without one.
    empty
        (n_texts,) texts without words, which get the none label or none at all.
    """

    labels: Indices
    scores: NDArray[np.float32]
    probabilities: NDArray[np.float64]
    unrefined: Indices
    empty: NDArray[np.bool_]

    @cached_property
    def confidence(self) -> NDArray[np.float64]:
        """(n_texts,) probability of each label, to four decimals; 0 for empty texts."""
        chosen = np.take_along_axis(
            self.probabilities, np.maximum(self.labels, 0)[:, None], axis=1
        )[:, 0]
        return np.where(self.empty, 0.0, chosen).round(4)

    def rows(self, rows: slice) -> Predictions:
        """Predictions of some of the texts."""
        return Predictions(*(getattr(self, field.name)[rows] for field in fields(self)))

    def merged(self, others: Predictions, own: NDArray[np.bool_]) -> Predictions:
        """Predictions of these texts, where `own` is true, and of others, in this order."""
        arrays = []
        for each in fields(self):
            mine, other = getattr(self, each.name), getattr(others, each.name)
            merged = np.empty((len(own), *mine.shape[1:]), dtype=mine.dtype)
            merged[own], merged[~own] = mine, other
            arrays.append(merged)
        return Predictions(*arrays)


@dataclass(frozen=True)
class NoneLabel:
    """Rejection of texts that are not similar enough to the name of their label.

    Attributes
    ----------
    name
        What is predicted for them.
    threshold
        Similarity below which a text is rejected.
    scale
        Difference of similarities that makes rejection e times as probable.
    """

    name: str
    threshold: float
    scale: float


@dataclass(frozen=True, eq=False)
class Model:
    """Classifies texts by a rule.

    Attributes
    ----------
    label_set
        The labels, in the order given.
    encoder
        The encoder, or a scorer of pairs of text and label.
    text_encoder
        Encodes texts: the encoder, or its probabilities of the labels, possibly behind a cache.
    rule, initial_rule
        Score texts with the refined labels, and with those before refinement.
    temperature
        Scores are divided by it before they become probabilities.
    anchors
        (n_labels, n_dims) unit vectors of the names; None where pairs are scored.
    none
        The none label; None without one.
    n_jobs
        Number of threads.
    """

    label_set: LabelSet
    encoder: AnyEncoder = field(repr=False)
    text_encoder: Encoder = field(repr=False)
    rule: Rule = field(repr=False)
    initial_rule: Rule = field(repr=False)
    temperature: float
    anchors: NDArray[np.float64] | None = field(default=None, repr=False)
    none: NoneLabel | None = None
    n_jobs: int | None = None

    @property
    def n_labels(self) -> int:
        """Number of labels, without the none label."""
        return len(self.label_set)

    @cached_property
    def names(self) -> NDArray[np.str_]:
        """Names by index, with the none label; the last one, reached by -1, is empty."""
        none = [] if self.none is None else [self.none.name]
        return np.array([*self.label_set.names, *none, ""])

    @cached_property
    def _word_counter(self) -> WordCounter:
        return WordCounter()

    @property
    def uses_words(self) -> bool:
        """Whether the rule has weights of words."""
        return getattr(self.rule, "words", None) is not None

    def predict(
        self, texts: list[str], vectors: Vectors | None = None, n_threads: int | None = None
    ) -> Predictions:
        """Classify texts.

        Parameters
        ----------
        texts
            The documents.
        vectors
            (n_texts, n_dims) their vectors; they are encoded if not given.
        n_threads
            Number of threads; None for those of the model and every available core to encode.
        """
        n_jobs = n_threads or self.n_jobs
        texts = SplitTexts(texts, n_threads)
        if vectors is None:
            is_one_batch = len(texts) <= batch_texts(self.text_encoder)
            encode = checked_vectors if is_one_batch else encode_texts  # which copies every batch
            vectors = encode(self.text_encoder, texts)
        counts = self._word_counter(texts) if self.uses_words else None
        rules = [self.rule, self.initial_rule]
        (labels, unrefined), scores = score_all(vectors, rules, word_counts=counts, n_jobs=n_jobs)
        without = (labels < 0) | empty_texts(texts)
        return self.decide(
            np.where(without, -1, labels), scores, np.where(without, -1, unrefined), vectors
        )

    def decide(
        self,
        labels: Indices,
        scores: NDArray[np.float32],
        unrefined: Indices,
        vectors: Any,
        known: NDArray[np.bool_] | None = None,
    ) -> Predictions:
        """Probabilities of labels and scores, and rejection where there is a none label.

        Parameters
        ----------
        labels, unrefined
            (n,) after and before refinement, -1 for texts without a label.
        scores
            (n, n_labels) by the rule.
        vectors
            (n, n_dims) of the texts; only used with a none label.
        known
            (n,) texts of known label, which are not rejected.
        """
        empty = labels < 0
        logits = scores.astype(np.float64) / self.temperature
        logits[empty] = 0.0
        if self.none is not None:
            own = np.maximum(labels, 0)
            excess = (self.none.threshold - self.similarity(vectors, own)) / self.none.scale
            if known is not None:
                excess = np.where(known, -_CERTAIN, excess)
            best = np.take_along_axis(logits, own[:, None], axis=1)[:, 0]
            logits = np.column_stack([logits, np.where(empty, _CERTAIN, best + excess)])
            labels = np.where(empty | (excess > 0), self.n_labels, labels)
        return Predictions(
            labels.astype(np.intp), scores, _softmax(logits), unrefined.astype(np.intp), empty
        )

    def similarity(self, vectors: Any, labels: Indices) -> NDArray[np.float64]:
        """Cosine of each text with the name of a label; a probability where pairs are scored."""
        if self.anchors is None:
            return np.asarray(vectors)[np.arange(len(labels)), labels].astype(np.float64)
        similarity = np.empty(len(labels))
        for start in range(0, len(labels), _CHUNK_ROWS):
            rows = slice(start, start + _CHUNK_ROWS)
            texts = unit_rows(np.asarray(vectors[rows], dtype=np.float64))
            similarity[rows] = np.einsum("ij,ij->i", texts, self.anchors[labels[rows]])
        return similarity

    def with_n_jobs(self, n_jobs: int | None) -> Model:
        """The same model with another number of threads."""
        return replace(self, n_jobs=n_jobs)


def _softmax(logits: NDArray[np.float64]) -> NDArray[np.float64]:
    exponentials = np.exp(logits - logits.max(axis=1, keepdims=True))
    return exponentials / exponentials.sum(axis=1, keepdims=True)
