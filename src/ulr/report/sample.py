"""A seeded sample of documents with their predictions, drawn in one pass over all of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from ulr.model import Predictions

MOST_DOCUMENTS = 5_000
_LEAST_OF_LABEL = 20

Indices = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Sample:
    """Some documents, in their order.

    Attributes
    ----------
    rows
        (n,) positions among all documents.
    texts
        The documents.
    predictions
        Their predictions.
    """

    rows: Indices
    texts: list[str]
    predictions: Predictions


class Sampler:
    """Draws a uniform sample that has some documents of every label, however rare.

    Every document gets a random key. The documents with the smallest keys of each label are kept,
    then those with the smallest keys of all.

    Parameters
    ----------
    n_labels
        Number of labels.
    random_state
        Seed.
    size
        Most documents.

    Attributes
    ----------
    least_of_label
        Documents of each label that are kept, where there are as many.
    n_seen
        Documents so far, without those that have no words.
    """

    def __init__(self, n_labels: int, random_state: int, size: int = MOST_DOCUMENTS) -> None:
        self.least_of_label = min(_LEAST_OF_LABEL, size // (2 * n_labels))
        self._size, self._n_labels = size, n_labels
        self._rng = np.random.default_rng(random_state)
        self._kept: list[tuple[NDArray[np.float64], Sample]] = []
        self._n_kept = self._n_added = self.n_seen = 0
        self._limit, self._label_limits = 1.0, np.ones(n_labels)

    def add(self, texts: Sequence[str], predictions: Predictions) -> None:
        """Add the next documents; those without words are left out."""
        keys = self._rng.random(len(texts))
        labelled = ~predictions.empty
        labels = np.maximum(predictions.labels, 0)
        taken = np.flatnonzero(
            labelled & ((keys <= self._limit) | (keys <= self._label_limits[labels]))
        )
        part = Sample(
            taken + self._n_added,
            [texts[i] for i in taken.tolist()],
            _select([predictions], taken),
        )
        self._kept.append((keys[taken], part))
        self._n_kept += len(taken)
        self._n_added += len(texts)
        self.n_seen += int(labelled.sum())
        if self._n_kept > 2 * self._size:
            self._prune()

    def finish(self) -> Sample:
        """The sample."""
        self._prune()
        return self._kept[0][1]

    def _prune(self) -> None:
        """Keep the documents that are in the sample so far."""
        keys = np.concatenate([each for each, _ in self._kept])
        parts = [part for _, part in self._kept]
        labels = np.concatenate([part.predictions.labels for part in parts])
        order = np.lexsort((keys, labels))
        starts = np.searchsorted(labels[order], np.arange(self._n_labels))
        rank = np.empty(len(keys), dtype=np.intp)
        rank[order] = np.arange(len(keys)) - starts[labels[order]]
        reserved = rank < self.least_of_label
        others = np.flatnonzero(~reserved)
        n_others = self._size - int(reserved.sum())
        drawn = others[np.argsort(keys[others], kind="stable")[:n_others]]
        if len(others) > n_others:
            self._limit = float(keys[drawn].max(initial=0.0))
            last = rank == self.least_of_label - 1
            # Without a limit, all documents of a label are still candidates.
            limits = np.full(self._n_labels, 1.0 if self.least_of_label else 0.0)
            limits[labels[last]] = keys[last]
            self._label_limits = limits
        kept = np.sort(np.concatenate([np.flatnonzero(reserved), drawn]))
        texts = [text for part in parts for text in part.texts]
        sample = Sample(
            np.concatenate([part.rows for part in parts])[kept],
            [texts[i] for i in kept.tolist()],
            _select([part.predictions for part in parts], kept),
        )
        self._kept, self._n_kept = [(keys[kept], sample)], len(kept)


def _select(parts: Sequence[Predictions], rows: Indices) -> Predictions:
    """Some of the predictions of consecutive documents."""
    return Predictions(
        *(
            np.concatenate([getattr(part, field.name) for part in parts])[rows]
            for field in fields(Predictions)
        )
    )
