"""What the fitted documents were like, which is saved with a model to compare later ones with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from ulr.refinement import Rule
from ulr.vectors import unit_rows

if TYPE_CHECKING:
    from ulr.classifier.model import Predictions

LEVELS = 101  # quantiles of the similarity
# Documents of the reference, or so many per label: the sums of more change no quantile noticeably.
_BLOCK_NUMBERS = 1 << 20  # documents times labels that probabilities are computed of at once
_SAMPLE, _SAMPLE_PER_LABEL = 2_048, 32

Floats = NDArray[np.float64]
Rows = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Reference:
    """Statistics of the fitted documents, or of later ones after an update.

    Attributes
    ----------
    counts
        (n_labels + 1,) documents of each label, and those with none of them.
    shares
        (n_labels,) mean probability of each label, to which the rule is calibrated.
    centroids
        (n_labels, n_dims) mean unit vector of the documents of a label; zero without any.
    levels
        (101,) quantiles of the cosine of a document with the mean of the others of its label.
    n_compared
        Documents that the quantiles are of.
    confidence
        Mean confidence.
    known_words
        Mean share of the words of a document that the rule has weights of; None without words.
    """

    counts: Floats
    shares: Floats
    centroids: Floats
    levels: Floats
    n_compared: int
    confidence: float
    known_words: float | None

    def unlike(self, vectors: Any, labels: Rows, share: float) -> NDArray[np.bool_]:
        """(n,) whether documents are less similar to their label than a share of the fitted ones."""
        units, centroids = unit_rows(np.asarray(vectors)), unit_rows(self.centroids)
        similarity = np.einsum("ij,ij->i", units, centroids[labels])
        level = np.interp(share, np.linspace(0, 1, LEVELS), self.levels)
        # A label without fitted documents has nothing to be similar to.
        return np.asarray((similarity < level) & centroids[labels].any(axis=1))


def describe_documents(
    predictions: Predictions,  # of all documents
    labels: Rows,  # (n,) of those whose vectors are given, -1 for documents without a label
    vectors: Any,  # (n, n_dims)
    counts: csr_matrix | None,  # (n, n_words)
    rule: Rule,
    random_state: int,
) -> Reference:
    """The statistics of classified documents, of which some have vectors."""
    n_labels, most = rule.n_labels, max(_SAMPLE, _SAMPLE_PER_LABEL * rule.n_labels)
    labelled = np.flatnonzero((labels >= 0) & (labels < n_labels))
    some = np.sort(np.random.default_rng(random_state).permutation(labelled)[:most])
    own, units = labels[some], unit_rows(np.asarray(vectors[some], dtype=np.float32))
    members = csr_matrix((np.ones(len(own)), (own, np.arange(len(own)))), (n_labels, len(own)))
    sums = members @ units
    sizes = np.bincount(own, minlength=n_labels)
    # Without the document itself: otherwise fitted documents are more similar than later ones.
    others = sums[own] - units
    similarity = np.einsum("ij,ij->i", unit_rows(others), units)
    similarity = similarity[sizes[own] > 1]
    levels = np.quantile(similarity, np.linspace(0, 1, LEVELS)) if len(similarity) else [0.0]
    return Reference(
        label_counts(predictions, n_labels),
        mean_shares(predictions, n_labels),
        sums / np.maximum(sizes, 1)[:, None],
        np.broadcast_to(np.asarray(levels, dtype=np.float64), LEVELS),
        len(similarity),
        mean_confidence(predictions),
        share_of_known_words(None if counts is None else counts[some], rule),
    )


def label_counts(predictions: Predictions, n_labels: int) -> Floats:
    """(n_labels + 1,) documents of each label, and with none of them; not those without words."""
    labels = predictions.labels[~predictions.empty]
    return np.bincount(labels, minlength=n_labels + 1).astype(np.float64)


def label_shares(predictions: Predictions, n_labels: int) -> Floats:
    """(n, n_labels) probabilities of the labels without the none label, of documents with words."""
    found = predictions.probabilities[~predictions.empty, :n_labels]
    return np.asarray(found / np.maximum(found.sum(axis=1, keepdims=True), 1e-12))


def mean_shares(predictions: Predictions, n_labels: int) -> Floats:
    """(n_labels,) mean of `label_shares`, by blocks: all of many labels need much memory."""
    step = max(1, _BLOCK_NUMBERS // n_labels)
    blocks = (
        label_shares(predictions.rows(slice(start, start + step)), n_labels).sum(axis=0)
        for start in range(0, len(predictions.labels), step)
    )
    total = np.sum(list(blocks), axis=0)
    return np.asarray(total / np.count_nonzero(~predictions.empty))


def mean_confidence(predictions: Predictions) -> float:
    """Mean confidence of the documents with words."""
    return float(predictions.confidence[~predictions.empty].mean())


def share_of_known_words(counts: csr_matrix | None, rule: Rule) -> float | None:
    """Mean share of the different words of a document that the rule has weights of."""
    words = getattr(rule, "words", None)
    if counts is None or words is None or not counts.nnz:
        return None
    has_weight = np.zeros(counts.shape[1], dtype=bool)
    has_weight[words.columns] = True
    known = has_weight[counts.indices]
    found = np.add.reduceat(np.append(known, False), counts.indptr[:-1].clip(max=counts.nnz))
    lengths = np.diff(counts.indptr)
    return float((found[lengths > 0] / lengths[lengths > 0]).mean())
