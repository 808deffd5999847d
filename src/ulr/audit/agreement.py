"""How far many predictions for the same documents agree, counted a block of documents at a time.

Of a document, only the number of sets that give it each label matters: two sets drawn at random
agree on it with probability Σ n (n - 1) / (K (K - 1)). So nothing here compares pairs of sets.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ulr.audit.sweep import Labels, Sweep

Float = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Agreement:
    """What the predictions of many sets have in common.

    Attributes
    ----------
    of_documents
        (n_documents,) how often two sets agree on a document.
    of_labels
        (n_labels,) when a set gives a document this label, how often another does too; NaN for a
        label that no set gives.
    of_sets
        (n_sets,) how often each set agrees with another one.
    of_phrases
        (n_phrases,) the mean of that over the sets that have a phrase.
    explained
        (n_phrases,) share of all disagreement that goes with having this phrase rather than
        another one for its label; the phrases of a label add up to the share of its phrasing.
    sizes
        (n_sets, n_labels) share of the documents that each label gets.
    consensus
        (n_documents,) the label that most sets give, the first of equals.
    between
        (n_labels, n_labels) of all disagreements of two sets on a document, the share in which
        they give these two labels; symmetric, and the upper half adds up to one.
    """

    of_documents: NDArray[np.float32]
    of_labels: Float
    of_sets: Float
    of_phrases: Float
    explained: Float
    sizes: Float
    consensus: NDArray[np.intp]
    between: Float

    @property
    def mean(self) -> float:
        """How often two sets agree on a document."""
        return float(self.of_documents.mean(dtype=np.float64))


def count_agreement(sweep: Sweep, phase: str, has_phrase: NDArray[np.bool_]) -> Agreement:
    """Count how far the sets of a sweep agree.

    Parameters
    ----------
    sweep
        What the sets predict.
    phase
        ``before`` refinement or ``after`` it.
    has_phrase
        (n_phrases, n_sets) which sets have a phrase; every set has one phrase a label.
    """
    total = _Count(sweep, has_phrase)
    for rows, labels in sweep.blocks(phase):
        total.take_in(rows, labels)
    return total.agreement()


class _Count:
    def __init__(self, sweep: Sweep, has_phrase: NDArray[np.bool_]) -> None:
        n_sets, n_documents, n_labels = sweep.n_sets, sweep.n_documents, sweep.n_labels
        self._n_sets, self._n_documents = n_sets, n_documents
        self._has_phrase = has_phrase
        sets_with = has_phrase.sum(axis=1)
        self._mean_with = (has_phrase / sets_with[:, None]).astype(np.float32)
        self._share_with = sets_with / n_sets
        self._of_documents = np.empty(n_documents, dtype=np.float32)
        self._consensus = np.empty(n_documents, dtype=np.intp)
        self._of_sets = np.zeros(n_sets)
        self._sizes = np.zeros((n_sets, n_labels))
        self._together = np.zeros((n_labels, n_labels))
        self._apart = np.zeros(len(has_phrase))  # squared, of sets with a phrase from all sets

    def take_in(self, rows: slice, labels: Labels) -> None:
        """Count some documents."""
        n_labels = self._sizes.shape[1]
        counts = np.empty((n_labels, labels.shape[1]))
        for label in range(n_labels):
            given = labels == label
            counts[label] = given.sum(axis=0)
            self._sizes[:, label] += given.sum(axis=1)
            with_phrase = self._mean_with @ given.astype(np.float32)
            with_phrase -= (counts[label] / self._n_sets).astype(np.float32)
            self._apart += np.einsum("pd,pd->p", with_phrase, with_phrase, dtype=np.float64)
        others = counts - 1
        pairs = self._n_sets * (self._n_sets - 1)
        self._of_documents[rows] = (counts * others).sum(axis=0) / pairs
        self._consensus[rows] = counts.argmax(axis=0)
        self._together += counts @ counts.T
        self._together[np.diag_indices(n_labels)] -= counts.sum(axis=1)
        with_others = others[labels, np.arange(labels.shape[1])]
        self._of_sets += with_others.sum(axis=1) / (self._n_sets - 1)

    def agreement(self) -> Agreement:
        """What was counted."""
        of_sets = self._of_sets / self._n_documents
        same = self._together.diagonal()
        given = self._sizes.sum(axis=0) * (self._n_sets - 1)
        disagreements = self._together.sum() - same.sum()
        between = self._together - np.diag(same)
        # Two sets drawn with replacement disagree that often; it is what phrases can explain.
        spread = disagreements / self._n_sets**2
        with np.errstate(divide="ignore", invalid="ignore"):
            of_labels = np.where(given > 0, same / given, np.nan)
        return Agreement(
            of_documents=self._of_documents,
            of_labels=of_labels,
            of_sets=of_sets,
            of_phrases=(self._has_phrase * of_sets).sum(axis=1) / self._has_phrase.sum(axis=1),
            explained=self._share_with * self._apart / spread if spread else 0.0 * self._apart,
            sizes=self._sizes / self._n_documents,
            consensus=self._consensus,
            between=2.0 * between / disagreements if disagreements else between,
        )
