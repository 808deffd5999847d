"""Confidence without labelled documents: temperature scaling to an expected accuracy.

Scores are divided by a temperature such that the mean confidence equals the accuracy that is
expected. That is estimated on a random sample of the documents, from how clearly the nearest anchors
lead, and from agreements:

- dimensions: how often refinements in one half of the dimensions give the same label as in all;
- neighbours: how often the vote of the nearest documents is a document's own label;
- words, where there are texts: how often naive Bayes, trained on the labels of other documents,
  gives a document its own label.

The log odds of the expected accuracy are a linear function of the log odds of agreements and of the
logarithm of the lead, the same for every method; docs/refinement.md has how it was chosen and how far
it is off.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ulr.refinement import validation
from ulr.refinement.api import refine_many
from ulr.refinement.blocks import UNKNOWN, Blocks, VectorSource
from ulr.refinement.centred import centre_of
from ulr.refinement.distances import unit_rows
from ulr.refinement.methods import METHODS
from ulr.refinement.products import Float, Labels, Single, mean_lead, scores_by_label
from ulr.refinement.result import Refinement
from ulr.refinement.rule import inverse_lengths
from ulr.refinement.words import (
    Vocabulary,
    content_hashes,
    cross_fitted_scores,
    folds_of,
    tf_idf,
)

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

_SAMPLE = 3_000
_FEWEST_DIMS, _FEWEST_DOCUMENTS = 8, 20
_QUERIES, _NEIGHBOURS = 1_000, 10
_ROWS = 256
_HIGHEST = 0.99
# Factor of naive Bayes scores beside the log prior; rows of tf-idf weights have length one.
_WORDS_SCALE = 8.0
_MOST_WORD_WEIGHTS = 1 << 22  # words times labels; with more, words are not used
# The log odds of the expected accuracy are a weighted sum.
_DIMENSIONS_WEIGHT, _DOCUMENTS_WEIGHT, _LEAD_WEIGHT, _CONSTANT = 0.4, 0.8, 0.6, -0.7
_NEIGHBOURS_ABOVE_WORDS = 0.5  # log odds by which neighbours agree more often than words
# Documents per label at which an agreement has half of the weight, and its substitute the other.
_NEIGHBOURS_PER_LABEL, _WORDS_PER_LABEL = 1.0, 40.0
_FEW_DOCUMENTS = 200  # with few documents, agreements are lower at the same accuracy


def calibrate(
    documents: ArrayLike | VectorSource,
    anchors: ArrayLike,
    refinement: Refinement,
    *,
    known: ArrayLike | None = None,
    word_counts: csr_matrix | None = None,
    random_state: int = 0,
    on_step: Callable[[int, int], None] | None = None,
    **settings: Any,
) -> float:
    """The temperature that scores are divided by before softmax makes them probabilities.

    Parameters
    ----------
    documents, anchors
        (n_documents, n_dims) and (n_labels, n_dims) as refined.
    refinement
        Their refinement.
    known, word_counts, random_state, **settings
        As in `refine`; method and distance are those of the refinement.
    on_step
        Called at the beginning and after each agreement with the number of agreements that are
        measured and of all.

    Examples
    --------
    >>> import numpy as np
    >>> from ulr.refinement import calibrate, refine
    >>> documents = np.random.default_rng(0).normal(size=(300, 16))
    >>> refinement = refine(documents, documents[:3])
    >>> calibrate(documents, documents[:3], refinement) > 0
    True
    """
    vectors = np.asarray(anchors, dtype=np.float64)
    source = validation.vector_source("documents", documents)
    n, n_dims = int(source.shape[0]), vectors.shape[1]
    codes = np.full(n, UNKNOWN) if known is None else np.asarray(known)
    usable = np.flatnonzero((codes >= UNKNOWN) & (refinement.predictions >= 0))
    rows = np.sort(np.random.default_rng(random_state).permutation(usable)[:_SAMPLE])
    free = codes[rows] == UNKNOWN
    scores = refinement.scores[rows[free]]
    if n_dims < _FEWEST_DIMS or int(free.sum()) < _FEWEST_DOCUMENTS:
        return mean_lead(scores) if len(scores) else 1.0
    with Blocks([source], n_jobs=settings.get("n_jobs")) as blocks:
        gathered = blocks.gather(rows)
        n_jobs = blocks.n_jobs
    # The method that was used may be another one than was asked for, with other options.
    accepted = {"max_iter", *(field.name for field in fields(METHODS[refinement.method].options))}
    again: dict[str, Any] = {
        name: settings[name] for name in accepted - {"fit_sample"} if name in settings
    }
    again |= {"method": refinement.method, "distance": refinement.distance}
    again |= {"random_state": random_state, "n_jobs": 1}
    counts = None if word_counts is None else word_counts[rows]
    sample = _Sample(gathered, vectors, refinement.predictions[rows], codes[rows], again, counts)
    n_used = len(usable)
    expected = _expected_accuracy(sample, n_used, n_jobs, on_step or (lambda done, total: None))
    return _temperature(scores, float(np.clip(expected, 1.0 / len(vectors) + 0.02, _HIGHEST)))


@dataclass(frozen=True, eq=False)
class _Sample:
    """Some documents of a refinement, to be refined again in other ways."""

    documents: Single  # (n, n_dims)
    anchors: Float  # (n_labels, n_dims)
    predictions: NDArray[np.intp]  # (n,) by the refinement of all documents
    codes: Labels  # (n,) known labels, see `Block.known`
    settings: dict[str, Any]  # as for `refine`
    counts: csr_matrix | None = None  # (n, n_words)

    def lead(self) -> float:
        """Mean lead of the nearest anchor over the next, in standard deviations of the cosines."""
        anchors = unit_rows(self.anchors).astype(np.float32)
        cosines = scores_by_label(anchors, self.documents)
        cosines *= inverse_lengths(np.linalg.norm(self.documents, axis=1))
        return mean_lead(cosines.T) / max(float(cosines.std(dtype=np.float64)), 1e-9)

    def in_half(self, half: int) -> float:
        """Agreement with a refinement in one half of the dimensions, after a random rotation."""
        from scipy.fft import dct

        n_dims = self.anchors.shape[1]
        draw = np.random.default_rng(self.settings["random_state"])
        # Signs, a cosine transform and a permutation are a fast orthogonal map without structure.
        signs, order = draw.choice([-1.0, 1.0], n_dims), draw.permutation(n_dims)
        axes = order[: n_dims // 2] if half == 0 else order[n_dims // 2 :]
        documents = dct(self.documents * signs.astype(np.float32), norm="ortho")[:, axes]
        anchors = dct(self.anchors * signs, norm="ortho")[:, axes]
        known = self.codes if (self.codes >= 0).any() else None
        documents = np.ascontiguousarray(documents, dtype=np.float32)
        [again] = refine_many(documents, [anchors], known=known, **self.settings)
        return self._agreement(again.predictions)

    def neighbours(self) -> float:
        """Agreement with the vote of the ten nearest documents."""
        points = unit_rows(self.documents.astype(np.float64))
        points = unit_rows(points - centre_of(points.mean(axis=0)))
        free = np.flatnonzero(self.codes == UNKNOWN)
        queries = np.random.default_rng(self.settings["random_state"]).permutation(free)[:_QUERIES]
        agree = np.concatenate(list(self._votes_agree(points.astype(np.float32), queries)))
        return float(agree.mean())

    def words(self) -> float | None:
        """Agreement with naive Bayes on words; None without words, or with too many labels."""
        if self.counts is None:
            return None
        vocabulary, n_labels = Vocabulary.of(self.counts), len(self.anchors)
        if not 0 < len(vocabulary.columns) * n_labels <= _MOST_WORD_WEIGHTS:
            return None
        weights = tf_idf(self.counts, vocabulary.columns, vocabulary.idf)
        shares = np.zeros((len(self.predictions), n_labels), dtype=np.float32)
        shares[np.arange(len(shares)), self.predictions] = 1.0
        scores = cross_fitted_scores(weights, shares, folds_of(content_hashes(self.counts)))
        log_prior = np.log(shares.mean(axis=0) + 1e-3)
        return self._agreement((_WORDS_SCALE * scores + log_prior).argmax(axis=1))

    def _agreement(self, labels: NDArray[np.intp]) -> float:
        free = self.codes == UNKNOWN
        return float((labels == self.predictions)[free].mean())

    def _votes_agree(
        self, points: Single, queries: NDArray[np.intp]
    ) -> Iterator[NDArray[np.bool_]]:
        """Whether the vote of the nearest documents is the label of each of some documents."""
        n_labels = len(self.anchors)
        n_nearest = min(_NEIGHBOURS, len(points) - 1)
        for start in range(0, len(queries), _ROWS):
            rows = queries[start : start + _ROWS]
            similarity = scores_by_label(points[rows], points)
            similarity[np.arange(len(rows)), rows] = -np.inf
            nearest = np.argpartition(similarity, -n_nearest, axis=1)[:, -n_nearest:]
            ballots = self.predictions[nearest] + n_labels * np.arange(len(rows))[:, None]
            votes = np.bincount(ballots.ravel(), minlength=n_labels * len(rows))
            winners = votes.reshape(len(rows), n_labels).argmax(axis=1)
            yield winners == self.predictions[rows]


def _expected_accuracy(
    sample: _Sample, n_documents: int, n_jobs: int, on_step: Callable[[int, int], None]
) -> float:
    from scipy.special import expit, logit

    def log_odds(agreement: float) -> float:
        return float(logit(np.clip(agreement, 0.01, 0.99)))

    with ThreadPoolExecutor(n_jobs, thread_name_prefix="ulr") as pool:
        # The longest task comes first, so that none is left to do alone.
        tasks: list[Future[Any]] = [pool.submit(sample.neighbours), pool.submit(sample.words)]
        tasks += [pool.submit(sample.in_half, half) for half in (0, 1)]
        on_step(0, len(tasks))
        lead = sample.lead()
        for number, task in enumerate(tasks, 1):
            task.result()
            on_step(number, len(tasks))
    by_neighbours, by_words, *in_halves = (task.result() for task in tasks)
    per_label = n_documents / len(sample.anchors)
    dimensions = log_odds(float(np.mean(in_halves)))
    documents = _weighted_mean(
        log_odds(by_neighbours), dimensions, per_label / _NEIGHBOURS_PER_LABEL
    )
    documents -= _NEIGHBOURS_ABOVE_WORDS
    if by_words is not None:
        documents = _weighted_mean(log_odds(by_words), documents, per_label / _WORDS_PER_LABEL)
    few = _FEW_DOCUMENTS / (_FEW_DOCUMENTS + n_documents)
    expected = _DIMENSIONS_WEIGHT * dimensions + _DOCUMENTS_WEIGHT * documents
    expected += _LEAD_WEIGHT * np.log(lead)
    return float(expit(expected + few + _CONSTANT))


def _weighted_mean(value: float, substitute: float, weight: float) -> float:
    return (weight * value + substitute) / (weight + 1.0)


def _temperature(scores: Single, expected: float) -> float:
    """The temperature at which the mean confidence is the expected accuracy."""
    from scipy.optimize import brentq

    unit = mean_lead(scores)
    behind = (scores - scores.max(axis=1, keepdims=True)).astype(np.float64) / unit

    def excess(exponent: float) -> float:
        confidence = 1.0 / np.exp(2.0**-exponent * behind).sum(axis=1)
        return float(confidence.mean()) - expected

    low, high = -12.0, 12.0
    if excess(low) < 0:
        return unit * 2.0**low
    if excess(high) > 0:
        return unit * 2.0**high
    return float(unit * 2.0 ** brentq(excess, low, high, xtol=1e-4))
