"""Scores for cosine, l2 and dot: float32 products, made sure of in float64.

Where two float32 scores are closer than rounding in a sum of products can put them apart, the
document is scored again in float64; so every label is the one that float64 gives.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ulr.refine import loops
from ulr.refine.assign import with_largest
from ulr.refine.distances import Float, LinearForm
from ulr.refine.points import Points, side_by_side
from ulr.refine.survey import Survey

ROUNDING = 2.0**-24  # of float32
_EXACT_BYTES = 4 << 20  # of float64 points worked on at a time
ALIGNED = 4  # vectors that are multiplied together; a few that are left over take as long
# Vectors up to which a BLAS, which copies the rows first, is slower than the compiled loops:
# so many, or one for so many dimensions.
_FEW_VECTORS, _FEW_TO_DIMS = 8, 32
# Going through centroids one by one is faster than argmin where each is one for many documents,
# and can be done in bytes.
_MANY_DOCUMENTS, _MOST_IN_BYTES = 75, 127

# Shares of its squared length below which the lead of a document may be lost when its squared
# distances are rounded, and its squared distance is not known well enough from float32 products.
_LEVEL, _VAGUE = 8 * ROUNDING, 1e-4

# Leads of documents that can never change, and of those that must be looked at again. Finite,
# so that they can be added to anything.
NEVER, ALWAYS = np.float32(1e37), np.float32(-1e35)

Single = NDArray[np.float32]
Rows = NDArray[np.intp] | slice
Raw = NDArray[np.floating]


@dataclass(frozen=True)
class Doubt:
    """How far apart two float32 distances of a document must be to be told apart.

    Attributes
    ----------
    per_length
        So far for every length of the document,
    always
        and so far anyway.
    """

    per_length: float
    always: float

    def of(self, lengths: Single) -> Single:
        """The doubt about documents of these lengths."""
        return lengths * np.float32(self.per_length) + np.float32(self.always)


def rounding_of_distances(n_dims: int) -> tuple[float, float]:
    """The doubt about distances for the length of a slope, times a document's, and for its offset.

    The bound on rounding in a sum of n_dims products, for both distances, and some more for what
    is done with the sums.
    """
    return (2 * (n_dims + 8) + 32) * ROUNDING, 32 * ROUNDING


class LinearScorer:
    """Scores blocks of documents against linear forms; remembers nothing but their lengths."""

    def __init__(self, points: Points, survey: Survey) -> None:
        self.points = points
        self.squares = survey.squares
        lengths = np.sqrt(survey.squares)
        self.scale: Single | None = None  # to unit length, where only the direction counts
        if points.distance.name == "cosine":
            self.scale = (1.0 / np.where(lengths > 0, lengths, 1.0)).astype(np.float32)
            lengths = lengths > 0
        self.lengths: Single = lengths.astype(np.float32)
        self.has_zero = bool((survey.squares == 0.0).any())
        self.few_rows = max(16, _EXACT_BYTES // (8 * points.n_dims))

    def form(self, centroids: Float) -> LinearForm:
        """Centroids in the linear form of the distance."""
        assert self.points.distance.form is not None
        return self.points.distance.form(np.ascontiguousarray(centroids))

    def products(self, raw: Raw, rows: Rows, vectors: Single) -> Single:
        """Products of vectors and points, (n_vectors, n).

        Parameters
        ----------
        raw, rows
            The documents, `side_by_side`, and which they are.
        vectors
            (n_vectors, n_dims).
        """
        n_vectors, lacking = len(vectors), -len(vectors) % ALIGNED
        if lacking:
            vectors = np.concatenate([vectors, np.zeros((lacking, vectors.shape[1]), np.float32)])
        few = max(_FEW_VECTORS, self.points.n_dims // _FEW_TO_DIMS)
        single = raw.dtype == np.float32
        if loops.compiled and loops.compiled.HAS_PRODUCTS and len(vectors) <= few and single:
            products = loops.compiled.products(raw, vectors)
        else:
            products = vectors @ raw.astype(np.float32, copy=False).T
        products = products[:n_vectors]
        if self.scale is not None:
            products *= self.scale[rows]
        return products

    def nearest(
        self, form: LinearForm, doubt: Doubt, products: Single, raw: Raw, rows: Rows
    ) -> tuple[NDArray[np.int32], Single]:
        """The nearest centroid by float32 distances, made sure of in float64, and its lead.

        Parameters
        ----------
        form, doubt
            The centroids.
        products
            (n_centroids, n) ``x · slope``; ``offset - x · slope`` from now on.
        raw, rows
            The documents, and which they are.
        """
        np.subtract(form.offsets.astype(np.float32)[:, None], products, out=products)
        nearest, lead = two_nearest(products)
        doubtful = np.flatnonzero(lead <= doubt.of(self.lengths[rows]))
        for start in range(0, len(doubtful), self.few_rows):
            few = doubtful[start : start + self.few_rows]
            nearest[few] = form.nearest(self.points.exact(raw[few]))
        # A doubtful lead counts as none at all, so that the document is looked at again.
        lead[doubtful] = ALWAYS
        return nearest, lead

    def score(self, centroids: Float, n_rows: int) -> tuple[NDArray[np.intp], Single]:
        """The nearest centroid of the first documents, and their scores to all of them."""
        answer = Scores(self, centroids, n_rows)
        vectors = answer.form.slopes.astype(np.float32)

        def work(rows: slice, raw: Raw) -> None:
            raw = side_by_side(raw)
            answer.take_in(raw, rows, self.products(raw, rows, vectors))

        wanted = [rows for rows in self.points.blocks if rows.start < n_rows]
        for _ in self.points.map_rows(work, wanted, alone=self.points.is_small):
            pass
        return answer.predictions, answer.scores


class Scores:
    """The answer for one set of centroids, filled block by block.

    Attributes
    ----------
    form
        The centroids.
    predictions, scores
        (n_rows,) and (n_rows, n_centroids).
    """

    def __init__(self, scorer: LinearScorer, centroids: Float, n_rows: int) -> None:
        self._scorer, self.form, self._centroids = scorer, scorer.form(centroids), centroids
        per_slope, per_offset = rounding_of_distances(centroids.shape[1])
        highest = float(np.abs(self.form.offsets).max())
        self._doubt = Doubt(per_slope * float(self.form.lengths.max()), per_offset * highest)
        self.predictions = np.empty(n_rows, dtype=np.intp)
        self.scores = np.empty((n_rows, len(centroids)), dtype=np.float32)

    def take_in(self, raw: Raw, rows: slice, products: Single) -> None:
        """Take in the products of a block with the slopes; what is in it is not needed again."""
        scorer, form, doubt, points = self._scorer, self.form, self._doubt, self._scorer.points
        predictions, scores = self.predictions[rows], self.scores[rows]
        offsets, squared = form.offsets.astype(np.float32), points.distance.name == "l2"
        if loops.compiled:
            unsure = loops.compiled.scores(
                products, offsets, scorer.lengths, scorer.squares, rows.start, squared,
                doubt.per_length, doubt.always, _LEVEL, _VAGUE, predictions, scores,
            )  # fmt: skip
        else:
            np.subtract(offsets[:, None], products, out=products)
            predictions[:], lead = two_nearest(products)
            is_unsure = lead <= doubt.of(scorer.lengths[rows])
            if squared:
                squares = scorer.squares[rows]
                products += squares.astype(np.float32)
                np.maximum(products, 0.0, out=products)
                is_unsure |= lead <= _LEVEL * squares
                is_unsure |= products.min(axis=0) < _VAGUE * squares
            np.negative(products.T, out=scores)
            unsure = np.flatnonzero(is_unsure)
        for start in range(0, len(unsure), scorer.few_rows):
            few = unsure[start : start + scorer.few_rows]
            exact = points.exact(raw[few])
            predictions[few] = form.nearest(exact)
            distances = points.distance.between(exact, self._centroids)
            its_scores = (points.distance.nearest_score - distances).astype(np.float32)
            scores[few] = with_largest(its_scores, predictions[few])


def two_nearest(distances: Single) -> tuple[NDArray[np.int32], Single]:
    """The nearest of the centroids, the first of equal ones, and its lead over the next.

    Parameters
    ----------
    distances
        (n_centroids, n).
    """
    n_centroids, n = distances.shape
    if n_centroids > min(n // _MANY_DOCUMENTS, _MOST_IN_BYTES):
        each = np.arange(n)
        places = distances.argmin(axis=0)
        best = distances[places, each]
        distances[places, each] = np.inf
        lead = distances.min(axis=0) - best
        distances[places, each] = best
        return places.astype(np.int32), lead
    best, second = distances[0].copy(), np.full(n, np.inf, dtype=np.float32)
    nearest, worse = np.zeros(n, dtype=np.int8), np.empty(n, dtype=np.float32)
    nearer = np.empty(n, dtype=bool)
    for label in range(1, n_centroids):
        candidate = distances[label]
        np.less(candidate, best, out=nearer)
        np.maximum(candidate, best, out=worse)
        np.minimum(second, worse, out=second)
        np.minimum(best, candidate, out=best)
        # Labels only rise here, and a product and a maximum of bytes are faster than a mask.
        np.maximum(nearest, nearer.view(np.int8) * np.int8(label), out=nearest)
    second -= best
    return nearest.astype(np.int32), second
