"""Inputs of a refinement from the arguments of a classifier: labels, encoder, vectors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ulr.encoders import (
    AnyEncoder,
    CachedEncoder,
    Encoder,
    JoinedEncoder,
    LabelScores,
    OnTexts,
    encode_texts,
    label_encoder,
    load_encoder,
)
from ulr.errors import ArrayError, LabelError, TextError
from ulr.labels import LabelSet, as_label_set, in_template, shown
from ulr.labels import extra_labels as as_extra_labels
from ulr.phrasings import Phrasings, as_phrasings
from ulr.refinement import DISTANCES, EXCLUDED, METHODS, UNFITTED, UNKNOWN, choose_method
from ulr.refinement.distances import unit_rows
from ulr.texts import empty_texts, in_other_languages, is_empty, is_missing
from ulr.word_counts import count_words

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

Vectors = NDArray[np.float32]
_FEWEST_PER_LABEL = 5  # texts to refine on without those in other languages


@dataclass(frozen=True)
class Setup:
    """Validated arguments of a classifier.

    Attributes
    ----------
    labels
        The labels, with every phrase that is encoded for them.
    phrasings
        The sets of an ensemble; None without one.
    extra_labels
        Names that take part in the refinement and are never predicted.
    encoder
        The encoder.
    text_encoder
        Encodes texts: the encoder, or its scores of the labels, behind the cache if there is one.
    method, distance
        With ``auto`` resolved.
    template
        A sentence around every phrase, or None.
    """

    labels: LabelSet
    phrasings: Phrasings | None
    extra_labels: tuple[str, ...]
    encoder: AnyEncoder
    text_encoder: Encoder
    method: str
    distance: str
    template: str | None

    @property
    def scores_pairs(self) -> bool:
        """Whether texts become scores of the labels rather than vectors of their own."""
        return not isinstance(self.encoder, Encoder)

    @property
    def uses_words(self) -> bool:
        """Whether the words of the texts take part in the refinement."""
        return METHODS[self.method].uses_words and self.phrasings is None


def resolve(
    labels: Any,
    *,
    encoder: str | AnyEncoder,
    method: str,
    distance: str,
    template: str | None,
    phrasings: Any,
    sample: int | None,
    random_state: int,
    extra_labels: Any,
    cache: str | Path | None,
) -> Setup:
    """Validate the arguments of a classifier; `DatalessClassifier` describes them."""
    if distance != "auto":
        choose_method(method, distance)
    label_set = as_label_set(labels)
    sets = as_phrasings(phrasings, label_set, sample=sample, random_state=random_state)
    if sets is not None:
        label_set = sets.phrases(label_set)
    extra = () if extra_labels is None else as_extra_labels(extra_labels, label_set)
    loaded = load_encoder(encoder)
    pairs = not isinstance(loaded, Encoder)
    if pairs and (sets is not None or extra):
        raise LabelError(
            "an ensemble of phrasings and extra labels need an encoder of texts; this one scores "
            "pairs of text and label. Leave them out, or choose another encoder."
        )
    used_distance = _choose_distance(distance, method, pairs, len(label_set))
    return Setup(
        labels=label_set,
        phrasings=sets,
        extra_labels=extra,
        encoder=loaded,
        text_encoder=cached_text_encoder(
            loaded, label_set, template, cache, probabilities=not DISTANCES[used_distance].linear
        ),
        method=choose_method(method, used_distance),
        distance=used_distance,
        template=template,
    )


def _choose_distance(distance: str, method: str, pairs: bool, n_labels: int) -> str:
    """The distance that ``auto`` stands for; refuses what does not suit the encoder.

    Scores of pairs are compared as probabilities by methods that can do so, as in the paper, and
    else as log ratios, by their cosine. Log ratios of two labels have only one direction, so that
    the default is not used for them.
    """
    if distance == "auto":
        if not pairs:
            return "cosine"
        distances = METHODS[choose_method(method, "cosine")].distances
        as_probabilities = "jensen-shannon" in distances or (method == "auto" and n_labels == 2)
        return "jensen-shannon" if as_probabilities else "cosine"
    if pairs and distance not in ("cosine", "jensen-shannon"):
        raise ArrayError(
            f"distance {distance!r} compares vectors, but this encoder scores pairs of text and "
            "label; use cosine, jensen-shannon or auto."
        )
    if not pairs and distance == "jensen-shannon":
        raise ArrayError(
            "distance 'jensen-shannon' compares probabilities of labels, but this encoder returns "
            "vectors; use cosine, l2 or dot."
        )
    return distance


def cached_text_encoder(
    encoder: AnyEncoder,
    labels: LabelSet,
    template: str | None,
    cache: str | Path | None,
    *,
    probabilities: bool,
) -> Encoder:
    """What encodes texts: the encoder, or its scores of the labels, behind a cache if given.

    `probabilities` is as in `LabelScores`, for encoders that score pairs.
    """
    if not isinstance(encoder, Encoder):
        encoder = LabelScores(encoder, labels.phrases(template), probabilities)
    if cache is None:
        return encoder
    if isinstance(encoder, JoinedEncoder):
        return encoder.cached(cache)
    return CachedEncoder(encoder, cache)


@dataclass(frozen=True, eq=False)
class Inputs:
    """Encoded inputs of a refinement.

    Attributes
    ----------
    documents
        (n_texts, n_dims).
    known
        (n_texts,) label index of each text, -1 where it is unknown, -2 for empty texts, -3 for
        texts in a language that the encoder was not made for.
    anchors
        (n_labels, n_dims) one vector per label; None where a label starts as its own certainty.
    anchor_sets
        The anchors of every set of an ensemble; None without one.
    extra_documents, extra_anchors
        (n, n_dims) further documents and labels that take part; None without any.
    word_counts
        (n_texts, n_words) sparse counts; None where the method does not use them.
    """

    documents: Vectors
    known: NDArray[np.int32]
    anchors: Vectors | None
    anchor_sets: AnchorSets | None = None
    extra_documents: Vectors | None = None
    extra_anchors: Vectors | None = None
    word_counts: csr_matrix | None = None

    @property
    def others(self) -> dict[str, Any]:
        """Everything next to documents and anchors, as arguments of `refine`."""
        return {
            "known": self.known,
            "extra_documents": self.extra_documents,
            "extra_anchors": self.extra_anchors,
        }


def encode_inputs(
    setup: Setup,
    texts: Sequence[str],
    known: NDArray[np.int32] | None = None,
    *,
    extra_texts: Sequence[str] | None = None,
    embeddings: ArrayLike | None = None,
    label_embeddings: ArrayLike | None = None,
    word_counts: csr_matrix | None = None,
    on_texts: OnTexts | None = None,
) -> Inputs:
    """Encode labels and texts.

    Parameters
    ----------
    setup
        The arguments of the classifier.
    texts
        The documents.
    known
        (n_texts,) label index of each text, -1 where it is unknown.
    extra_texts
        Further texts to refine on.
    embeddings, label_embeddings
        Vectors of the texts and of the labels, in their order; encoded where not given.
    word_counts
        Words of the texts, as of `count_words`; counted where not given.
    on_texts
        Called with the number of texts of every encoded batch.
    """
    anchors = anchor_sets = extra_anchors = extra_documents = None
    if label_embeddings is not None:
        if setup.scores_pairs or setup.phrasings is not None or setup.extra_labels:
            raise ArrayError(
                "label_embeddings give one vector per label; they cannot be combined with an "
                "ensemble of phrasings, extra labels or an encoder that scores pairs."
            )
        anchors = given_vectors("label_embeddings", label_embeddings, len(setup.labels))
    elif setup.scores_pairs:
        if DISTANCES[setup.distance].linear:
            n_labels = len(setup.labels)
            anchors = (np.eye(n_labels) - 1 / n_labels).astype(np.float32)
    else:
        vectors = PhraseVectors.of_setup(setup)
        anchors = vectors.averages(setup.labels)
        if setup.phrasings is not None:
            anchor_sets = AnchorSets(vectors, setup.phrasings)
        if setup.extra_labels:
            extra_anchors = vectors.of(setup.extra_labels)
    if embeddings is None:
        documents = encode_texts(setup.text_encoder, texts, on_texts)
    else:
        documents = given_vectors("embeddings", embeddings, len(texts))
    codes = np.full(len(texts), UNKNOWN, dtype=np.int32) if known is None else known.copy()
    empty = empty_texts(texts)
    if empty.all():
        raise TextError("all texts are empty; at least one with words is needed.")
    codes[empty & (codes < 0)] = EXCLUDED
    # Vectors of languages that the encoder does not know form clusters by language, not by label.
    languages = getattr(setup.encoder, "languages", None)
    foreign = (codes == UNKNOWN) & in_other_languages(texts, languages)
    n_others = np.count_nonzero((codes >= UNKNOWN) & ~foreign)
    if n_others >= _FEWEST_PER_LABEL * len(setup.labels):
        codes[foreign] = UNFITTED
    if extra_texts is not None:
        kept = [text for text in extra_texts if not is_empty(text)]
        if kept:
            extra_documents = encode_texts(setup.text_encoder, kept, on_texts)
    if word_counts is None and setup.uses_words:
        word_counts = count_words(texts)
    return Inputs(
        documents, codes, anchors, anchor_sets, extra_documents, extra_anchors, word_counts
    )


def given_vectors(name: str, given: ArrayLike, n_rows: int) -> Vectors:
    """Vectors from the user, one row per text or label."""
    try:
        vectors = np.asarray(given)
    except ValueError:
        raise ArrayError(f"{name} must be rows of equal length.") from None
    if vectors.ndim != 2 or len(vectors) != n_rows or vectors.dtype.kind not in "fiu":
        raise ArrayError(
            f"{name} must be numbers of shape ({n_rows}, n_dims); got shape {vectors.shape} of "
            f"{vectors.dtype}."
        )
    return vectors if vectors.dtype.kind == "f" else vectors.astype(np.float32)


class PhraseVectors:
    """Vectors of phrases, each encoded once, inside the template if there is one.

    Parameters
    ----------
    encoder
        Encodes the phrases.
    owners
        The phrases, and what each belongs to, for error messages.
    template
        A sentence with ``{}`` where the phrase goes.

    Raises
    ------
    LabelError
        When the encoder knows no word of a phrase.
    """

    def __init__(
        self, encoder: Encoder, owners: Mapping[str, str], template: str | None = None
    ) -> None:
        texts = [in_template(phrase, template) for phrase in owners]
        vectors = encode_texts(label_encoder(encoder), texts)
        self._vectors = dict(zip(owners, vectors, strict=True))
        for phrase, vector in self._vectors.items():
            if not vector.any():
                raise LabelError(
                    f"{owners[phrase]}: the encoder knows no word of {phrase!r}; use other words."
                )

    @classmethod
    def of_setup(cls, setup: Setup) -> PhraseVectors:
        """The vectors of all labels and extra labels."""
        owners = {
            phrase: f"label {label.name!r}" for label in setup.labels for phrase in label.phrases
        }
        owners |= {name: f"extra label {name!r}" for name in setup.extra_labels}
        return cls(setup.text_encoder, owners, setup.template)

    def of(self, phrases: Iterable[str]) -> Vectors:
        """(n, n_dims) vectors of some phrases."""
        return np.stack([self._vectors[phrase] for phrase in phrases])

    def averages(self, label_set: LabelSet) -> Vectors:
        """One anchor per label: the vector of its phrase, or the mean of their unit vectors."""
        rows = []
        for label in label_set:
            own = self.of(label.phrases)
            rows.append(own[0] if len(own) == 1 else unit_rows(own.astype(np.float64)).mean(axis=0))
        return np.stack(rows).astype(np.float32)


class AnchorSets(Sequence[Vectors]):
    """The anchors of every set of an ensemble, (n_labels, n_dims), created on demand."""

    def __init__(self, vectors: PhraseVectors, phrasings: Phrasings) -> None:
        self._vectors, self._sets = vectors, phrasings.sets

    def __len__(self) -> int:
        return len(self._sets)

    @overload
    def __getitem__(self, index: int) -> Vectors: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Vectors]: ...
    def __getitem__(self, index: int | slice) -> Vectors | Sequence[Vectors]:
        if isinstance(index, slice):
            return [self._vectors.of(each) for each in self._sets[index]]
        return self._vectors.of(self._sets[index])


def known_labels(y: Any, names: Sequence[str], n_texts: int) -> tuple[NDArray[np.int32], bool]:
    """Label index of each text, -1 where it is unknown, and whether labels are integers.

    Integers are positions in the sorted names, as scikit-learn's LabelEncoder gives them.
    """
    shape = getattr(y, "shape", None)
    if isinstance(y, str) or not isinstance(y, Iterable) or (shape and len(shape) != 1):
        found = f"shape {shape}" if shape else type(y).__name__
        raise LabelError(f"y must be a list of labels, None (or -1) where unknown; got {found}.")
    values = list(_python_values(y))
    if len(values) != n_texts:
        raise LabelError(
            "y must have one label per text, None (or -1) where it is unknown; got "
            f"{len(values)} for {n_texts} texts."
        )
    index: dict[Any, int] = {name: i for i, name in enumerate(names)}
    in_order = sorted(names)
    integers = any(_is_integer(value) and value >= 0 for value in values)
    known = np.full(n_texts, UNKNOWN, dtype=np.int32)
    for place, value in enumerate(values):
        if is_missing(value) or (not isinstance(value, str) and value == -1):
            continue
        if _is_integer(value) and 0 <= value < len(names):
            known[place] = index[in_order[int(value)]]
        elif not integers and str(value) in index:
            known[place] = index[str(value)]
        else:
            raise LabelError(
                f"y must be label names, and None (or -1) where unknown; number {place} is "
                f"{shown(value)}. The labels are: {', '.join(names)}."
            )
    return known, integers


def _python_values(y: Iterable[Any]) -> Iterator[Any]:
    if hasattr(y, "to_pylist"):
        y = y.to_pylist()
    return iter(y)


def _is_integer(value: Any) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)
