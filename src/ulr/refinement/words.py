"""Words as a second view: naive Bayes on tf-idf weights, trained on the posterior of the vectors.

Multinomial naive Bayes with soft labels is linear in the document, so its scores are added to those
of a rule as one weight per word and label.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ulr.errors import ArrayError
from ulr.refinement.blocks import EXCLUDED, UNKNOWN
from ulr.refinement.products import Float, Labels, Single, mean_lead

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

_FOLDS = 4
_SMOOTHING = 0.3
_MOST_WORDS = 20_000
_FEWEST_DOCUMENTS = 2
_MULTIPLIER_SAMPLE = 2_000
_LARGEST_WEIGHT = 1e4  # half precision has no number above 65,504
_MOST_MULTIPLIER = 32.0  # mean lead, in log odds
_LEAST_MULTIPLIER = 1e-2
_SIZE_STEPS = 5


@dataclass(frozen=True, eq=False)
class WordWeights:
    """Weights of words in the scores of labels."""

    columns: NDArray[np.int32]  # (n_words,) ascending columns of the word counts that are used
    idf: Single  # (n_words,) inverse document frequencies
    weights: Single  # (n_words, n_labels)
    offsets: Single  # (n_labels,) added to the scores

    def scores(self, counts: csr_matrix) -> Single:
        """Scores, (n_labels, n_documents), from counts, (n_documents, n_columns)."""
        weights = tf_idf(counts, self.columns, self.idf)
        return np.ascontiguousarray((weights @ self.weights + self.offsets).T)

    def select(self, labels: slice) -> WordWeights:
        """The weights of some of the labels."""
        return replace(self, weights=self.weights[:, labels], offsets=self.offsets[labels])

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Everything the weights consist of; float16 is exact enough to store them."""
        return {
            "words.columns": self.columns,
            "words.idf": self.idf.astype(np.float16),
            "words.weights": self.weights.astype(np.float16),
            "words.offsets": self.offsets,
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]], n_labels: int) -> WordWeights | None:
        """The weights that `arrays` described; None where there are none."""
        if "words.columns" not in arrays:
            return None
        columns = arrays["words.columns"].astype(np.int32)
        shapes = {"idf": columns.shape, "weights": (len(columns), n_labels), "offsets": (n_labels,)}
        found = {}
        for name, shape in shapes.items():
            found[name] = arrays.get(f"words.{name}", np.empty(0)).astype(np.float32)
            if found[name].shape != shape:
                raise ArrayError(
                    "word weights of a rule disagree on the number of words or labels."
                )
            if not np.isfinite(found[name]).all():
                raise ArrayError("the word weights of a rule must be finite numbers.")
        return cls(columns, **found)

    def rounded(self) -> WordWeights:
        """The weights as they are when they have been saved and loaded."""
        rounded = WordWeights.from_arrays(self.arrays(), self.weights.shape[1])
        assert rounded is not None
        return rounded


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """Words that are used; columns and inverse document frequencies as of `WordWeights`."""

    columns: NDArray[np.int32]
    idf: Single

    @classmethod
    def of(cls, counts: csr_matrix) -> Vocabulary:
        """The words in two documents or more, but in at most half of them."""
        n = counts.shape[0]
        frequencies = np.bincount(counts.indices, minlength=counts.shape[1])
        most = max(_FEWEST_DOCUMENTS, n / 2)
        columns = np.flatnonzero((frequencies >= _FEWEST_DOCUMENTS) & (frequencies <= most))
        return cls(columns.astype(np.int32), np.log(n / frequencies[columns]).astype(np.float32))

    def most_informative(
        self, counts: csr_matrix, shares: Single, most: int = _MOST_WORDS
    ) -> Vocabulary:
        """The words whose probability depends most on the label."""
        if len(self.columns) <= most:
            return self
        totals = label_totals(tf_idf(counts, self.columns, self.idf), shares)
        information = (totals * naive_bayes(totals, word_probabilities(totals))).sum(axis=1)
        best = np.sort(np.argpartition(-information, most)[:most])
        return Vocabulary(self.columns[best], self.idf[best])


def tf_idf(counts: csr_matrix, columns: NDArray[np.int32], idf: Single) -> csr_matrix:
    """Logarithmic tf-idf of some words, rows scaled to length one, (n_documents, n_words)."""
    from scipy.sparse import csr_matrix

    place = np.full(counts.shape[1], -1, dtype=np.int32)
    place[columns] = np.arange(len(columns), dtype=np.int32)
    found = place[counts.indices]
    kept = found >= 0
    starts = np.concatenate([[0], np.cumsum(kept)])[counts.indptr]
    indices = found[kept]
    values = (1.0 + np.log(counts.data[kept])) * idf[indices]
    rows = np.repeat(np.arange(counts.shape[0]), np.diff(starts))
    lengths = np.sqrt(np.bincount(rows, values.astype(np.float64) ** 2, counts.shape[0]))
    values = values / np.maximum(lengths, 1e-9)[rows]
    shape = counts.shape[0], len(columns)
    return csr_matrix((values.astype(np.float32), indices, starts), shape=shape)


def naive_bayes(totals: Float, overall: Float) -> Single:
    """Log ratio of each word's probability in a label to its overall one, (n_words, n_labels).

    From (n_words, n_labels) sums of tf-idf weights and (n_words,) overall probabilities.
    """
    added = _SMOOTHING * totals.sum() / totals.shape[1]
    if added <= 0.0:
        return np.zeros(totals.shape, dtype=np.float32)
    probabilities = (totals + added * overall[:, None]) / (totals.sum(axis=0) + added)
    return np.log(probabilities / overall[:, None]).astype(np.float32)


def cross_fitted_scores(weights: csr_matrix, shares: Single, folds: NDArray[np.integer]) -> Single:
    """Naive Bayes scores, (n, n_labels), of documents that it was not trained on.

    It is trained on (n, n_words) tf-idf weights and (n, n_labels) shares of the other folds.
    """
    rows = [np.flatnonzero(folds == number) for number in range(_FOLDS)]
    totals = [label_totals(weights[some], shares[some]) for some in rows]
    total = np.sum(totals, axis=0)
    overall = word_probabilities(total)
    scores = np.zeros(shares.shape, dtype=np.float32)
    for some, own in zip(rows, totals, strict=True):
        scores[some] = weights[some] @ naive_bayes(total - own, overall)
    return scores


def content_hashes(counts: csr_matrix) -> NDArray[np.uint64]:
    """(n,) a hash of the words of each document.

    Folds and samples that are drawn by it do not depend on the order of the documents, and equal
    documents share a fold.
    """
    key = (counts.indices.astype(np.uint64) + 1) * np.uint64(0x9E3779B97F4A7C15)
    key = (key ^ (key >> np.uint64(29))) * counts.data.astype(np.uint64)
    ends = np.concatenate([[np.uint64(0)], np.cumsum(key, dtype=np.uint64)])
    return ends[counts.indptr[1:]] - ends[counts.indptr[:-1]]


def folds_of(hashes: NDArray[np.uint64]) -> NDArray[np.int8]:
    """(n,) fold of each document."""
    return ((hashes >> np.uint64(32)) % np.uint64(_FOLDS)).astype(np.int8)


def label_totals(weights: csr_matrix, shares: Single) -> Float:
    """(n_words, n_labels) sums of tf-idf weights by label."""
    return np.asarray(weights.T @ shares, dtype=np.float64)


def word_probabilities(totals: Float) -> Float:
    """(n_words,) overall probability of each word."""
    overall = totals.sum(axis=1) + 1e-9
    return overall / overall.sum()


def fit_words(
    counts: csr_matrix,
    scores: Single,
    codes: Labels,
    log_sizes: Float,
    factor: float,
    keep_sizes: float = 0.0,
) -> WordWeights | None:
    """Weights of words whose scores are added to those of a rule.

    Naive Bayes is trained on the posterior of the rule, and its scores of documents that it was not
    trained on are added with the multiplier that best explains that posterior. The weights are then
    trained on the posterior of both. None where words say nothing.

    Parameters
    ----------
    counts
        (n, n_columns) word counts.
    scores
        (n, n_labels) of the rule.
    codes
        (n,) known labels, see `Block.known`.
    log_sizes
        (n_labels,) the log prior that is part of the scores.
    factor
        Factor of the weights.
    keep_sizes
        Share of the change of the labels' sizes by words that the offsets undo. Naive Bayes prefers
        small labels where the sizes are skewed, since few documents hardly change the overall
        probabilities of words that it starts from.
    """
    used = np.flatnonzero(codes != EXCLUDED)
    if len(used) < len(codes):
        counts, scores, codes = counts[used], scores[used], codes[used]
    posterior = _posterior(scores, codes)
    vocabulary = Vocabulary.of(counts).most_informative(counts, posterior)
    weights = tf_idf(counts, vocabulary.columns, vocabulary.idf)
    hashes = content_hashes(counts)
    from_words = cross_fitted_scores(weights, posterior, folds_of(hashes))
    sample = np.argsort(hashes, kind="stable")[:_MULTIPLIER_SAMPLE]
    multiplier = _multiplier(from_words, posterior, log_sizes, sample)
    if multiplier < _LEAST_MULTIPLIER:
        return None
    weight = np.float32(factor * multiplier)
    both = scores + weight * from_words
    offsets = np.zeros(scores.shape[1], dtype=np.float32)
    if keep_sizes > 0.0:
        wanted = posterior[sample].sum(axis=0)
        found = keep_sizes * _size_offsets(both[sample], codes[sample], wanted)
        offsets = found.astype(np.float32)
    totals = label_totals(weights, _posterior(both + offsets, codes))
    table = weight * naive_bayes(totals, word_probabilities(totals))
    if not np.abs(table).max(initial=0.0) < _LARGEST_WEIGHT:
        return None
    return WordWeights(vocabulary.columns, vocabulary.idf, table, offsets).rounded()


def _size_offsets(scores: Single, codes: Labels, wanted: Single) -> Float:
    """(n_labels,) offsets of scores with which the labels have the wanted sizes."""
    offsets = np.zeros(len(wanted))
    for _ in range(_SIZE_STEPS):
        sizes = _posterior(scores + offsets.astype(np.float32), codes).sum(axis=0)
        offsets += np.log((wanted + 1.0) / (sizes + 1.0))
    return offsets


def _posterior(scores: Single, codes: Labels) -> Single:
    """(n, n_labels) softmax of scores; certainty of known labels, zeros for excluded documents."""
    posterior = np.exp(scores - scores.max(axis=1, keepdims=True))
    posterior /= posterior.sum(axis=1, keepdims=True)
    posterior[codes != UNKNOWN] = 0.0
    known = np.flatnonzero(codes >= 0)
    posterior[known, codes[known]] = 1.0
    return posterior


def _multiplier(
    scores: Single, posterior: Single, log_sizes: Float, rows: NDArray[np.intp]
) -> float:
    """Factor of scores whose softmax, with the log prior, is closest to a posterior in some rows."""
    from scipy.optimize import minimize_scalar
    from scipy.special import logsumexp

    lead = mean_lead(scores)
    sample, target = scores[rows] / np.float64(lead), posterior[rows].astype(np.float64)

    def cross_entropy(multiplier: float) -> float:
        logits = multiplier * sample + log_sizes
        return float(
            (target.sum(axis=1) * logsumexp(logits, axis=1)).sum() - (target * logits).sum()
        )

    found = minimize_scalar(
        cross_entropy, bounds=(0.0, _MOST_MULTIPLIER), method="bounded", options={"xatol": 0.01}
    )
    return float(found.x) / lead
