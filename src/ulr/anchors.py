"""From the words of labels to the vectors that a refinement starts at."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import overload

import numpy as np
from numpy.typing import NDArray

from ulr.encoders import Encoder, encode_texts
from ulr.errors import LabelError
from ulr.labels import LabelSet, in_template
from ulr.refine.distances import unit_rows
from ulr.wordings import Wordings

Vector = NDArray[np.float32]


class PhraseVectors:
    """The vectors of phrases, each encoded once, inside the template if there is one.

    Parameters
    ----------
    encoder
        What turns phrases into vectors.
    owners
        The phrases, and what each belongs to, for the error below.
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
        self._vectors = dict(zip(owners, encode_texts(encoder, texts), strict=True))
        for phrase, vector in self._vectors.items():
            if not vector.any():
                raise LabelError(
                    f"{owners[phrase]}: the encoder knows no word of {phrase!r}; use other words."
                )

    def of(self, phrases: Iterable[str]) -> Vector:
        """(n, n_dims) vectors of some of them."""
        return np.stack([self._vectors[phrase] for phrase in phrases])

    def averages(self, label_set: LabelSet) -> Vector:
        """One vector a label: its phrase's, or the mean of its phrases' unit vectors."""
        rows = []
        for label in label_set:
            own = self.of(label.phrases)
            rows.append(own[0] if len(own) == 1 else unit_rows(own.astype(np.float64)).mean(axis=0))
        return np.stack(rows).astype(np.float32)


class WordingVectors(Sequence[Vector]):
    """The label vectors of each wording, (n_labels, n_dims), made when asked for."""

    def __init__(self, vectors: PhraseVectors, wordings: Wordings) -> None:
        self._vectors, self._sets = vectors, wordings.sets

    def __len__(self) -> int:
        return len(self._sets)

    @overload
    def __getitem__(self, index: int) -> Vector: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Vector]: ...
    def __getitem__(self, index: int | slice) -> Vector | Sequence[Vector]:
        if isinstance(index, slice):
            return [self._vectors.of(each) for each in self._sets[index]]
        return self._vectors.of(self._sets[index])


def label_vectors(encoder: Encoder, label_set: LabelSet, template: str | None = None) -> Vector:
    """One vector a label, (n_labels, n_dims); see `PhraseVectors.averages`."""
    return PhraseVectors(encoder, owners_of_phrases(label_set), template).averages(label_set)


def owners_of_phrases(label_set: LabelSet) -> dict[str, str]:
    """Every phrase of some labels, and the label it belongs to."""
    return {phrase: f"label {label.name!r}" for label in label_set for phrase in label.phrases}
