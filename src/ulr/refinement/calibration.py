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

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from ulr.progress import NO_PROGRESS, Progress
from ulr.refinement import constants
from ulr.refinement.api import METHODS, Task
from ulr.refinement.blocks import UNKNOWN, Blocks
from ulr.refinement.clusters import centre_of, centred
from ulr.refinement.distances import (
    Float,
    Labels,
    Rows,
    Single,
    inverse_lengths,
    mean_lead,
    scores_by_label,
)
from ulr.refinement.result import Refinement
from ulr.refinement.validation import check_array
from ulr.refinement.words import content_hashes, cross_fitted_scores, tf_idf, used_words
from ulr.threads import single_threaded_blas
from ulr.vectors import unit_rows

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

_ROWS = 256


def calibrate(
    documents: ArrayLike,
    anchors: ArrayLike,
    refinement: Refinement,
    *,
    known: ArrayLike | None = None,
    word_counts: csr_matrix | None = None,
    random_state: int = 0,
    progress: Progress = NO_PROGRESS,
    **settings: Any,
) -> float:
    """The temperature that scores are divided by before softmax makes them probabilities.

    Documents, anchors and settings are those of the refinement. The progress receives a stage
    ``Calibrating`` and every agreement.

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
    source = check_array("documents", documents)
    codes = np.full(len(source), UNKNOWN) if known is None else np.asarray(known)
    usable = np.flatnonzero((codes >= UNKNOWN) & (refinement.predictions >= 0))
    draw = np.random.default_rng(random_state).permutation(usable)
    rows = np.sort(draw[: constants.CALIBRATION_SAMPLE])
    free = codes[rows] == UNKNOWN
    scores = refinement.scores[rows[free]]
    if vectors.shape[1] < constants.FEWEST_DIMS or int(free.sum()) < constants.FEWEST_CALIBRATED:
        return mean_lead(scores) if len(scores) else 1.0
    # The method that was used may be another one than was asked for, with other options.
    accepted = {field.name for field in fields(METHODS[refinement.method].options)} - {"fit_sample"}
    again = {name: value for name, value in settings.items() if name in accepted}
    again |= {"method": refinement.method, "distance": refinement.distance, "n_jobs": 1}
    blocks = Blocks([source], n_jobs=settings.get("n_jobs"))
    sample = Sample(
        blocks.gather(rows),
        vectors,
        refinement.predictions[rows],
        codes[rows],
        again,
        settings.get("max_iter", 100),
        random_state,
        None if word_counts is None else word_counts[rows],
    )
    with single_threaded_blas(), ThreadPoolExecutor(blocks.n_jobs, "ulr") as pool:
        # The longest task comes first, so that none is left to do alone.
        tasks: list[Any] = [pool.submit(sample.neighbours), pool.submit(sample.words)]
        tasks += [pool.submit(sample.in_half, half) for half in (0, 1)]
        progress.stage("Calibrating", len(tasks), "agreements")
        lead = sample.lead()
        agreements: list[Any] = []
        for task in tasks:
            agreements.append(task.result())
            progress.advance(1)
    expected = expected_accuracy(len(usable), len(vectors), lead, *agreements)
    lowest = 1.0 / len(vectors) + 0.02
    return temperature(scores, float(np.clip(expected, lowest, constants.HIGHEST_EXPECTED)))


@dataclass(frozen=True, eq=False)
class Sample:
    """Some documents of a refinement, to be refined again in other ways."""

    documents: Single  # (n, n_dims)
    anchors: Float  # (n_labels, n_dims)
    predictions: Rows  # (n,) by the refinement of all documents
    codes: Labels  # (n,) known labels, see `Block.known`
    settings: dict[str, Any]  # as for `refine`
    max_iter: int = 100
    random_state: int = 0
    counts: csr_matrix | None = None  # (n, n_words)

    def lead(self) -> float:
        """Mean lead of the nearest anchor over the next, in standard deviations of the cosines."""
        anchors = unit_rows(self.anchors).astype(np.float32)
        cosines = scores_by_label(anchors, self.documents)
        cosines *= inverse_lengths(np.linalg.norm(self.documents, axis=1)).astype(np.float32)
        return mean_lead(cosines.T) / max(float(cosines.std(dtype=np.float64)), 1e-9)

    def in_half(self, half: int) -> float:
        """Agreement with a refinement in one half of the dimensions, after a random rotation."""
        from scipy.fft import dct

        n_dims = self.anchors.shape[1]
        draw = np.random.default_rng(self.random_state)
        # Signs, a cosine transform and a permutation are a fast orthogonal map without structure.
        signs, order = draw.choice([-1.0, 1.0], n_dims), draw.permutation(n_dims)
        axes = order[: n_dims // 2] if half == 0 else order[n_dims // 2 :]
        documents = dct(self.documents * signs.astype(np.float32), norm="ortho")[:, axes]
        anchors = dct(self.anchors * signs, norm="ortho")[:, axes]
        known = self.codes if (self.codes >= 0).any() else None
        documents = np.ascontiguousarray(documents, dtype=np.float32)
        task = Task(documents, known=known, **self.settings)
        again = task.refine(
            anchors, None, self.max_iter, self.random_state, one_block=True, diagnosed=False
        )
        return self._agreement(again.predictions)

    def neighbours(self) -> float:
        """Agreement with the vote of the ten nearest documents, of some documents."""
        n_labels, n_nearest = len(self.anchors), min(constants.NEIGHBOURS, len(self.documents) - 1)
        lengths = np.linalg.norm(self.documents, axis=1).astype(np.float64)
        mean = (self.documents * inverse_lengths(lengths)[:, None]).mean(axis=0)
        points = centred(self.documents, lengths, centre_of(mean))
        free = np.flatnonzero(self.codes == UNKNOWN)
        draw = np.random.default_rng(self.random_state)
        queries = draw.permutation(free)[: constants.QUERIES]
        agree = 0
        for start in range(0, len(queries), _ROWS):
            rows = queries[start : start + _ROWS]
            similarity = points[rows] @ points.T
            similarity[np.arange(len(rows)), rows] = -np.inf
            nearest = np.argpartition(similarity, -n_nearest, axis=1)[:, -n_nearest:]
            ballots = self.predictions[nearest] + n_labels * np.arange(len(rows))[:, None]
            votes = np.bincount(ballots.ravel(), minlength=n_labels * len(rows))
            winners = votes.reshape(len(rows), n_labels).argmax(axis=1)
            agree += int(np.count_nonzero(winners == self.predictions[rows]))
        return agree / len(queries)

    def words(self) -> float | None:
        """Agreement with naive Bayes on words; None without words, or with too many labels."""
        if self.counts is None:
            return None
        (columns, idf), n_labels = used_words(self.counts), len(self.anchors)
        if not 0 < len(columns) * n_labels <= constants.MOST_WORD_WEIGHTS:
            return None
        weights = tf_idf(self.counts, columns, idf)
        shares = np.eye(n_labels, dtype=np.float32)[self.predictions]
        scores = cross_fitted_scores(weights, shares, content_hashes(self.counts))
        log_prior = np.log(shares.mean(axis=0) + 1e-3)
        return self._agreement((constants.WORDS_SCALE * scores + log_prior).argmax(axis=1))

    def _agreement(self, labels: Rows) -> float:
        free = self.codes == UNKNOWN
        return float((labels == self.predictions)[free].mean())


def expected_accuracy(
    n_documents: int,
    n_labels: int,
    lead: float,
    neighbours: float,
    words: float | None,
    *halves: float,
) -> float:
    """The accuracy that is expected of a refinement, from what was found on a `Sample` of it."""
    from scipy.special import expit, logit

    found = np.clip([np.mean(halves), neighbours, words or 0.0], 0.01, 0.99)
    by_dimensions, by_neighbours, by_words = logit(found)
    per_label = n_documents / n_labels
    weight = per_label / constants.NEIGHBOURS_PER_LABEL
    by_documents = (weight * by_neighbours + by_dimensions) / (weight + 1.0)
    by_documents -= constants.NEIGHBOURS_ABOVE_WORDS
    if words is not None:
        weight = per_label / constants.WORDS_PER_LABEL
        by_documents = (weight * by_words + by_documents) / (weight + 1.0)
    few = constants.FEW_DOCUMENTS / (constants.FEW_DOCUMENTS + n_documents)
    expected = constants.DIMENSIONS_WEIGHT * by_dimensions
    expected += constants.DOCUMENTS_WEIGHT * by_documents
    expected += constants.LEAD_WEIGHT * np.log(lead)
    return float(expit(expected + few + constants.CONSTANT))


def temperature(scores: Single, expected: float) -> float:
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
