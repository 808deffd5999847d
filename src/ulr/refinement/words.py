"""Words as a second view: naive Bayes on tf-idf weights, trained on the posterior of the vectors.

Multinomial naive Bayes with soft labels is linear in the document, so its scores are added to those
of a rule as one weight per word and label.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ulr.errors import ArrayError
from ulr.refinement import constants
from ulr.refinement.blocks import EXCLUDED, UNKNOWN
from ulr.refinement.distances import Float, Labels, Rows, Single, positive_mean, two_best

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix


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


def used_words(counts: csr_matrix, at_most: int | None = None) -> tuple[NDArray[np.int32], Single]:
    """Columns and inverse document frequencies of the words in two to half of the documents.

    Of more than `at_most`, these are the most frequent words.
    """
    n = counts.shape[0]
    frequencies = np.bincount(counts.indices, minlength=counts.shape[1])
    most = max(constants.FEWEST_WITH_WORD, n / 2)
    columns = np.flatnonzero((frequencies >= constants.FEWEST_WITH_WORD) & (frequencies <= most))
    if at_most is not None and len(columns) > at_most:
        columns = np.sort(columns[np.argsort(-frequencies[columns], kind="stable")[:at_most]])
    return columns.astype(np.int32), np.log(n / frequencies[columns]).astype(np.float32)


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


def naive_bayes(totals: Float, everything: Float) -> Single:
    """(n_words, n_labels) log ratio of a word's probability in a label to that in all documents."""
    overall = everything.sum(axis=1) + 1e-9
    overall /= overall.sum()
    added = constants.SMOOTHING * totals.sum() / totals.shape[1]
    if added <= 0.0:
        return np.zeros(totals.shape, dtype=np.float32)
    ratio = totals + added * overall[:, None]  # in place: with many labels, each copy is large
    ratio /= totals.sum(axis=0) + added
    ratio /= overall[:, None]
    return np.log(ratio, out=ratio).astype(np.float32)


@dataclass(frozen=True, eq=False)
class Fold:
    """Some documents, and naive Bayes trained on all others."""

    rows: Rows
    weights: csr_matrix  # (n_rows, n_words) tf-idf
    table: Single  # (n_words, n_labels)

    def scores(self) -> Single:
        """(n_rows, n_labels) of the documents."""
        return np.asarray(self.weights @ self.table)


def cross_fitted(
    weights: csr_matrix, shares_of: Callable[[Rows], Single], hashes: NDArray[np.uint64]
) -> list[Fold]:
    """Naive Bayes from tf-idf weights and shares of other folds, which are computed fold by fold."""
    folds = (hashes >> np.uint64(32)) % np.uint64(constants.FOLDS)
    rows = [np.flatnonzero(folds == number) for number in range(constants.FOLDS)]
    totals = [weights[some].T @ shares_of(some) for some in rows]
    total = np.zeros(totals[0].shape)
    for own in totals:
        total += own
    return [
        Fold(some, weights[some], naive_bayes(total - own, total))
        for some, own in zip(rows, totals, strict=True)
    ]


def cross_fitted_scores(weights: csr_matrix, shares: Single, hashes: NDArray[np.uint64]) -> Single:
    """Naive Bayes scores, (n, n_labels), trained on tf-idf weights and shares of other folds."""
    scores = np.zeros(shares.shape, dtype=np.float32)
    for fold in cross_fitted(weights, shares.__getitem__, hashes):
        scores[fold.rows] = fold.scores()
    return scores


def content_hashes(counts: csr_matrix) -> NDArray[np.uint64]:
    """(n,) hashes of words: folds drawn by them depend on no order, and equal documents share one."""
    key = (counts.indices.astype(np.uint64) + 1) * np.uint64(0x9E3779B97F4A7C15)
    key = (key ^ (key >> np.uint64(29))) * counts.data.astype(np.uint64)
    ends = np.concatenate([[np.uint64(0)], np.cumsum(key, dtype=np.uint64)])
    return ends[counts.indptr[1:]] - ends[counts.indptr[:-1]]


def fit_words(
    counts: csr_matrix,  # (n, n_columns)
    scores: Single,  # (n, n_labels) of the rule; changed in place
    codes: Labels,  # (n,) known labels, see `Block.known`
    log_sizes: Float,  # (n_labels,) the log prior that is part of the scores
    factor: float,  # of the weights
    keep_sizes: float = 0.0,  # share of the change of the labels' sizes that offsets undo
) -> WordWeights | None:
    """Weights of words whose scores are added to those of a rule; None where words say nothing.

    Naive Bayes is trained on the posterior of the rule, and its scores of documents that it was not
    trained on are added with the multiplier that best explains that posterior. The weights are then
    trained on the posterior of both. Naive Bayes prefers small labels where sizes are skewed, since
    few documents hardly change the overall probabilities that it starts from: hence `keep_sizes`.
    """
    used = np.flatnonzero(codes != EXCLUDED)
    if len(used) < len(codes):
        counts, scores, codes = counts[used], scores[used], codes[used]
    n_labels = scores.shape[1]

    def posterior_of(rows: Rows | slice) -> Single:
        return _posterior(scores[rows], codes[rows])

    columns, idf = used_words(counts, constants.MOST_COUNTED_WEIGHTS // n_labels)
    weights = tf_idf(counts, columns, idf)
    most = min(constants.MOST_WORDS, constants.MOST_KEPT_WEIGHTS // n_labels)
    if len(columns) > most:
        totals = _totals(weights, posterior_of, n_labels)
        totals *= naive_bayes(totals, totals)
        information = totals.sum(axis=1)
        del totals
        best = np.sort(np.argpartition(-information, most)[:most])
        columns, idf = columns[best], idf[best]
        weights = tf_idf(counts, columns, idf)
    hashes = content_hashes(counts)
    sample = np.argsort(hashes, kind="stable")[: constants.MULTIPLIER_SAMPLE]
    target = posterior_of(sample)
    folds = cross_fitted(weights, posterior_of, hashes)
    multiplier = _multiplier(folds, target, log_sizes, sample)
    if multiplier < constants.LEAST_MULTIPLIER:
        return None
    weight = np.float32(factor * multiplier)
    for fold in folds:  # again, rather than keeping the scores of all
        scores[fold.rows] += weight * fold.scores()
    offsets = np.zeros(n_labels, dtype=np.float32)
    if keep_sizes > 0.0:
        wanted, found = target.sum(axis=0), np.zeros(len(offsets))
        for _ in range(constants.SIZE_STEPS):
            shifted = scores[sample] + found.astype(np.float32)
            sizes = _posterior(shifted, codes[sample]).sum(axis=0)
            found += np.log((wanted + 1.0) / (sizes + 1.0))
        offsets = (keep_sizes * found).astype(np.float32)
    scores += offsets
    totals = _totals(weights, posterior_of, n_labels)
    table = weight * naive_bayes(totals, totals)
    if not np.abs(table).max(initial=0.0) < constants.LARGEST_WEIGHT:
        return None
    # As when saved and loaded.
    idf, table = (each.astype(np.float16).astype(np.float32) for each in (idf, table))
    return WordWeights(columns, idf, table, offsets)


def _totals(weights: csr_matrix, shares_of: Callable[[slice], Single], n_labels: int) -> Float:
    """(n_words, n_labels) tf-idf weights of the documents, by their shares."""
    n, step = weights.shape[0], max(1, constants.MOST_SCORES // n_labels)
    totals = np.zeros((weights.shape[1], n_labels))
    for start in range(0, n, step):
        rows = slice(start, min(start + step, n))
        own = weights if step >= n else weights[rows]
        totals += own.T @ shares_of(rows)
    return totals


def _posterior(scores: Single, codes: Labels) -> Single:
    """(n, n_labels) softmax of scores; certainty of known labels, zeros for excluded documents."""
    posterior = scores - scores.max(axis=1, keepdims=True)
    np.exp(posterior, out=posterior)
    posterior /= posterior.sum(axis=1, keepdims=True)
    posterior[codes != UNKNOWN] = 0.0
    known = np.flatnonzero(codes >= 0)
    posterior[known, codes[known]] = 1.0
    return posterior


def _multiplier(folds: list[Fold], posterior: Single, log_sizes: Float, rows: Rows) -> float:
    """Factor of scores whose softmax, with the log prior, is closest to a posterior of some rows."""
    from scipy.optimize import minimize_scalar
    from scipy.special import logsumexp

    leads = np.empty(sum(len(fold.rows) for fold in folds), dtype=np.float32)
    chosen = np.empty(posterior.shape, dtype=np.float32)
    places = np.full(len(leads), -1, dtype=np.intp)
    places[rows] = np.arange(len(rows))
    for fold in folds:
        scores, place = fold.scores(), places[fold.rows]
        _, best, second = two_best(scores.T)
        leads[fold.rows] = best - second
        chosen[place[place >= 0]] = scores[place >= 0]
    lead = positive_mean(leads)
    sample, target = chosen / np.float64(lead), posterior.astype(np.float64)

    def cross_entropy(multiplier: float) -> float:
        logits = multiplier * sample + log_sizes
        return float(
            (target.sum(axis=1) * logsumexp(logits, axis=1)).sum() - (target * logits).sum()
        )

    found = minimize_scalar(
        cross_entropy,
        bounds=(0.0, constants.MOST_MULTIPLIER),
        method="bounded",
        options={"xatol": 0.01},
    )
    return float(found.x) / lead
