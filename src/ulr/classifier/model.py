"""A fitted classifier without scikit-learn: everything that is needed to classify new texts."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ulr.classifier.encoding import (
    EncodedTexts,
    FitInputs,
    Vectors,
    share_to_read,
    text_encoder,
    words_to_read,
)
from ulr.classifier.settings import Settings
from ulr.classifier.texts import empty_texts
from ulr.classifier.word_counts import WordCounter
from ulr.encoders import Encoder, SplitTexts, encode_texts
from ulr.markup import readable_texts
from ulr.refinement import Diagnosis, Refinement, Rule, score_all
from ulr.vectors import unit_rows

if TYPE_CHECKING:
    from ulr.classifier.advice import Advice
    from ulr.classifier.multilabel import LabelChances
    from ulr.classifier.reference import Reference

_CHUNK_ROWS, _CHUNK_NUMBERS = 4096, 1 << 20
_CERTAIN = 50.0  # log odds
CONFIDENCE_LEVELS = 101  # quantiles of a student's confidence

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
    unrefined
        (n_texts,) label index before refinement, -1 without one.
    empty
        (n_texts,) texts without words, which get the none label or none at all.
    by_student
        (n_texts,) texts that the student labelled, which the strong encoder did not read.
    temperature
        (n_texts,) what scores are divided by before they become probabilities.
    none_logits
        (n_texts, 1) what the none label has in place of these; (n_texts, 0) without a none label.
    """

    labels: Indices
    scores: NDArray[np.float32]
    unrefined: Indices
    empty: NDArray[np.bool_]
    by_student: NDArray[np.bool_]
    temperature: NDArray[np.float64]
    none_logits: NDArray[np.float64]

    @cached_property
    def probabilities(self) -> NDArray[np.float64]:
        """(n_texts, n_labels), or one column more with a none label; equal where there is no label.

        They are computed when they are asked for: of many labels they are the largest array of all.
        """
        logits = self.scores.astype(np.float64)
        logits /= self.temperature[:, None]
        logits[self.empty] = 0.0
        if self.none_logits.shape[1]:
            logits = np.column_stack([logits, self.none_logits])
        logits -= logits.max(axis=1, keepdims=True)
        exponentials = np.exp(logits, out=logits)
        exponentials /= exponentials.sum(axis=1, keepdims=True)
        return exponentials

    @cached_property
    def confidence(self) -> NDArray[np.float64]:
        """(n_texts,) probability of each label, to four decimals; 0 for empty texts."""
        chosen, step = np.zeros(len(self.labels)), max(1, _CHUNK_NUMBERS // self.scores.shape[1])
        for start in range(0, len(chosen), step):
            rows = slice(start, start + step)
            own = np.maximum(self.labels[rows], 0)[:, None]
            chosen[rows] = np.take_along_axis(self.rows(rows).probabilities, own, axis=1)[:, 0]
        return np.where(self.empty, 0.0, chosen).round(4)

    def rows(self, rows: slice | Indices) -> Predictions:
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
    """Rejection of texts that are not similar enough to the name of their label."""

    name: str
    threshold: float  # similarity below which a text is rejected
    scale: float  # difference of similarities that makes rejection e times as probable


@dataclass(frozen=True, eq=False)
class Fitted:
    """A fitted classifier: `fit` makes one, and so does `load`.

    Attributes
    ----------
    settings
        The parameters, with the encoder loaded, and the method and distance that were used.
    rule, initial_rule
        Score texts with the refined labels, and with those before refinement.
    temperature
        Scores are divided by it before they become probabilities.
    anchors
        (n_labels, n_dims) unit vectors of the names; None where pairs are scored as probabilities.
    n_iter
        Passes over the fitted texts.
    integer_classes
        Whether known labels were given as integers, so that classes are integers too.
    none
        The none label; None without one.
    student, levels
        A classifier by the fast encoder that labels most of many texts, and quantiles of its
        confidence, below which the encoder reads a text; see docs/encoders.md.
    strong_share
        Share of the texts of the job that the encoder reads, beside the fitted sample.
    reference
        Statistics of the fitted texts, which `ulr.classifier.update` compares later ones with.
    refinement, predictions, diagnosis
        Of the fitted texts; None in a classifier that was loaded. There is no diagnosis of an
        encoder that scores pairs as probabilities.
    chances
        The chance of every label on its own, ``LabelChances``; None for one
        label a text.
    documents, known
        The fitted texts with their vectors, and their known labels: (n_texts,) codes of
        `ulr.refine`. None in a classifier that was loaded, or fitted by a job on files.
    advice
        What an adviser was asked, and what its answers changed; None without one.
    inputs
        What the fit was given beside these, for `refit`; None in a classifier that was loaded.
    """

    settings: Settings = field(repr=False)
    rule: Rule = field(repr=False)
    initial_rule: Rule = field(repr=False)
    temperature: float
    anchors: NDArray[np.float64] | None = field(repr=False)
    n_iter: int
    integer_classes: bool = False
    none: NoneLabel | None = None
    chances: LabelChances | None = field(default=None, repr=False)
    student: Fitted | None = field(default=None, repr=False)
    levels: tuple[float, ...] = field(default=(), repr=False)
    strong_share: float = 1.0
    reference: Reference | None = field(default=None, repr=False)
    refinement: Refinement | None = field(default=None, repr=False)
    predictions: Predictions | None = field(default=None, repr=False)
    diagnosis: Diagnosis | None = field(default=None, repr=False)
    documents: EncodedTexts | None = field(default=None, repr=False)
    known: NDArray[np.int32] | None = field(default=None, repr=False)
    inputs: FitInputs | None = field(default=None, repr=False)
    advice: Advice | None = field(default=None, repr=False)

    @property
    def n_labels(self) -> int:
        """Number of labels, without the none label."""
        return len(self.settings.labels)

    @cached_property
    def names(self) -> NDArray[np.str_]:
        """Names by index, with the none label; the last one, reached by -1, is empty."""
        none = [] if self.none is None else [self.none.name]
        return np.array([*self.settings.label_set.names, *none, ""])

    @cached_property
    def text_encoder(self) -> Encoder:
        """Encodes texts: the encoder, or its scores of the labels, possibly behind a cache."""
        return text_encoder(self.settings)

    @property
    def encoder_name(self) -> str:
        """Name of the encoder, or of its class if it is an object of the user."""
        encoder = self.settings.encoder
        return getattr(encoder, "spec", None) or type(encoder).__name__

    @property
    def centroids(self) -> NDArray[np.float64] | None:
        """(n_labels, n_dims) the refined labels among the texts; None after loading."""
        return None if self.refinement is None else self.refinement.centroids

    @cached_property
    def _word_counter(self) -> WordCounter:
        return WordCounter()

    @property
    def fast(self) -> Fitted:
        """The classifier that can read all of many texts: the student, if there is one."""
        return self.student or self

    def predict(
        self,
        texts: list[str],
        vectors: Vectors | None = None,
        n_threads: int | None = None,
        strong_share: float | None = None,
    ) -> Predictions:
        """Classify texts.

        Parameters
        ----------
        texts
            The documents.
        vectors
            (n_texts, n_dims) their vectors; they are encoded if not given.
        n_threads
            Number of threads; by default that of the settings, and every available core to encode.
        strong_share
            Share of the texts that the encoder reads, if there is a student; by default as many as
            it can read in about a minute.
        """
        if self.student is not None and vectors is None:
            if strong_share is None:
                strong_share = share_to_read(self.settings, words_to_read(texts))
            if strong_share < 1.0:
                return self._predict_by_student(texts, n_threads, strong_share)
        read = SplitTexts(readable_texts(texts), n_threads)
        if vectors is None:
            vectors = encode_texts(self.text_encoder, read)
        uses_words = getattr(self.rule, "words", None) is not None
        counts = self._word_counter(read) if uses_words else None
        rules, n_jobs = [self.rule, self.initial_rule], n_threads or self.settings.n_jobs
        (labels, unrefined), scores = score_all(vectors, rules, word_counts=counts, n_jobs=n_jobs)
        without = (labels < 0) | empty_texts(texts)
        return self.decide(
            np.where(without, -1, labels), scores, np.where(without, -1, unrefined), vectors
        )

    def _predict_by_student(
        self, texts: list[str], n_threads: int | None, share: float
    ) -> Predictions:
        """Classify texts with the student, and those that it is least sure of with the encoder."""
        assert self.student is not None
        found = self.student.predict(texts, n_threads=n_threads)
        found = replace(found, by_student=np.ones(len(texts), dtype=bool))
        unsure = self.is_unsure(found, share)
        if not unsure.any():
            return found
        again = self.predict(
            [texts[i] for i in np.flatnonzero(unsure).tolist()],
            n_threads=n_threads,
            strong_share=1.0,
        )
        return again.merged(found.rows(np.flatnonzero(~unsure)), unsure)

    def is_unsure(self, predictions: Predictions, share: float) -> NDArray[np.bool_]:
        """(n_texts,) whether the student's confidence is among the lowest, of a share of the texts."""
        if share <= 0.0:
            return np.zeros(len(predictions.labels), dtype=bool)
        threshold = np.interp(share, np.linspace(0, 1, CONFIDENCE_LEVELS), self.levels)
        return (predictions.confidence < threshold) & ~predictions.empty

    def decide(
        self,
        labels: Indices,
        scores: NDArray[np.float32],
        unrefined: Indices,
        vectors: Any,
        known: NDArray[np.bool_] | None = None,
        by_student: bool = False,
    ) -> Predictions:
        """Probabilities of scores, and rejection where there is a none label, but not of known texts."""
        empty = labels < 0
        none_logits = np.empty((len(labels), 0))
        if self.none is not None:
            own = np.maximum(labels, 0)
            excess = (self.none.threshold - self.similarity(vectors, own)) / self.none.scale
            if known is not None:
                excess = np.where(known, -_CERTAIN, excess)
            best = np.take_along_axis(scores, own[:, None], axis=1)[:, 0].astype(np.float64)
            best /= self.temperature
            none_logits = np.where(empty, _CERTAIN, best + excess)[:, None]
            labels = np.where(empty | (excess > 0), self.n_labels, labels)
        return Predictions(
            labels.astype(np.intp),
            scores,
            unrefined.astype(np.intp),
            empty,
            np.full(len(labels), by_student),
            np.full(len(labels), self.temperature),
            none_logits,
        )

    def similarity(self, vectors: Any, labels: Indices) -> NDArray[np.float64]:
        """Cosine of each text with the name of a label; a probability where pairs are scored."""
        if self.anchors is None:
            return np.asarray(vectors)[np.arange(len(labels)), labels].astype(np.float64)
        similarity = np.empty(len(labels))
        for start in range(0, len(labels), _CHUNK_ROWS):
            rows = slice(start, start + _CHUNK_ROWS)
            texts = unit_rows(np.asarray(vectors[rows]))
            similarity[rows] = np.einsum("ij,ij->i", texts, self.anchors[labels[rows]])
        return similarity

    def with_settings(self, **changes: Any) -> Fitted:
        """The same classifier with other settings that do not concern the fit, such as `n_jobs`."""
        return replace(self, settings=replace(self.settings, **changes))
