"""A seeded sample of documents with their predictions, drawn in one pass over all of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ulr.classifier import Predictions

MOST_DOCUMENTS = 5_000
_LEAST_OF_LABEL = 20

Indices = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Drawn:
    """Some documents: positions among all, texts, predictions, true labels (-1 where unknown)."""

    rows: Indices
    texts: list[str]
    predictions: Predictions
    truth: Indices


class Sampler:
    """Draws a uniform sample that has some documents of every label, however rare.

    Every document gets a random key. The documents with the smallest keys of each label are kept,
    then those with the smallest keys of all, which is the same for any batches.
    """

    def __init__(self, random_state: int, size: int = MOST_DOCUMENTS) -> None:
        self._size, self._rng = size, np.random.default_rng(random_state)
        self._keys, self._n_added = np.empty(0), 0
        self.drawn: Drawn  # in their order; there from the first documents on
        self.least_of_label = 0  # documents of each label that are kept, where there are as many

    def add(
        self,
        texts: Sequence[str],
        predictions: Predictions,
        truth: Indices | None = None,
        rows: Sequence[int] | None = None,
    ) -> None:
        """Add the next documents; those without words are left out."""
        if not self._n_added:
            none = np.empty(0, dtype=np.intp)
            n_labels = predictions.rows(none).probabilities.shape[1]
            self.least_of_label = min(_LEAST_OF_LABEL, self._size // (2 * n_labels))
            self.drawn = Drawn(none, [], predictions.rows(none), none)
        if truth is None:
            truth = np.full(len(texts), -1, dtype=np.intp)
        drawn, n_drawn = self.drawn, len(self.drawn.rows)
        new = np.flatnonzero(~predictions.empty)
        keys = np.concatenate([self._keys, self._rng.random(len(texts))[new]])
        labels = np.concatenate([drawn.predictions.labels, predictions.labels[new]])
        kept = self._smallest(keys, labels)
        old, new = kept[kept < n_drawn], new[kept[kept >= n_drawn] - n_drawn]
        places = new + self._n_added if rows is None else np.asarray(rows, dtype=np.intp)[new]
        self._keys, self._n_added = keys[kept], self._n_added + len(texts)
        self.drawn = Drawn(
            np.concatenate([drawn.rows[old], places]),
            [drawn.texts[i] for i in old.tolist()] + [texts[i] for i in new.tolist()],
            drawn.predictions.rows(old).merged(predictions.rows(new), kept < n_drawn),
            np.concatenate([drawn.truth[old], truth[new]]),
        )

    def _smallest(self, keys: NDArray[np.float64], labels: Indices) -> Indices:
        """Positions of the documents that are in the sample so far, in their order."""
        order = np.lexsort((keys, labels))
        in_order = labels[order]
        rank = np.arange(len(order)) - np.searchsorted(in_order, in_order)
        is_reserved = rank < self.least_of_label
        reserved, others = order[is_reserved], order[~is_reserved]
        rest = others[np.argsort(keys[others])[: self._size - len(reserved)]]
        return np.sort(np.concatenate([reserved, rest]))
