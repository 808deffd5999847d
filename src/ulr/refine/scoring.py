"""Scores for cosine, l2 and dot: float32 products, made sure of in float64.

Where two float32 scores are closer than rounding in a sum of products can put them apart, the
document is scored again in float64; so every label is the one that float64 gives.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ulr.refine.assign import with_largest
from ulr.refine.distances import Float, LinearForm
from ulr.refine.points import Points
from ulr.refine.survey import Survey

ROUNDING = 2.0**-24  # of float32
_EXACT_BYTES = 4 << 20  # of float64 points worked on at a time
_ALIGNED = 4  # vectors that BLAS multiplies together; a few that are left over take as long
# Going through centroids one by one is faster than argmin where each is one for many documents,
# and can be done in bytes.
_MANY_DOCUMENTS, _MOST_IN_BYTES = 75, 127

# Share of its squared length below which the squared distance of a document is not known well
# enough from float32 products.
_VAGUE = 1e-4
_NO_ROWS = np.empty(0, dtype=np.intp)

# Leads of documents that can never change, and of those that must be looked at again. Finite,
# so that they can be added to anything.
NEVER, ALWAYS = np.float32(1e37), np.float32(-1e35)

Single = NDArray[np.float32]
Rows = NDArray[np.intp] | slice
Raw = NDArray[np.floating]


def doubt_per_length(n_dims: int) -> float:
    """Doubt about two float32 distances, per length of the document and of the slope.

    The bound on rounding in a sum of n_dims products, for both, and some more for what is done
    with the sums.
    """
    return (2 * (n_dims + 8) + 32) * ROUNDING


class Doubt:
    """How far apart two float32 distances of a document must be to be told apart.

    Of the steepest and farthest centroids of all forms so far.
    """

    def __init__(self) -> None:
        self.per_length = self.always = 0.0

    def widen(self, form: LinearForm) -> None:
        """Take a form into account."""
        per_length = doubt_per_length(form.slopes.shape[1]) * float(form.lengths.max())
        self.per_length = max(self.per_length, per_length)
        self.always = max(self.always, 32 * ROUNDING * float(np.abs(form.offsets).max()))

    def of(self, lengths: Single) -> Single:
        """The doubt about documents of these lengths."""
        return lengths * np.float32(self.per_length) + np.float32(self.always)


class LinearScorer:
    """Scores blocks of documents against linear forms; remembers nothing but their lengths."""

    def __init__(self, points: Points, survey: Survey) -> None:
        self.points = points
        self.squares = survey.squares
        self._scale: Single | None = None
        lengths = np.sqrt(survey.squares)
        if points.distance.name == "cosine":
            self._scale = (1.0 / np.where(lengths > 0, lengths, 1.0)).astype(np.float32)
            lengths = lengths > 0
        self.lengths: Single = lengths.astype(np.float32)
        self.has_zero = bool((survey.squares == 0.0).any())
        self.few_rows = max(16, _EXACT_BYTES // (8 * points.n_dims))

    def form(self, centroids: Float) -> LinearForm:
        """Centroids in the linear form of the distance."""
        assert self.points.distance.form is not None
        return self.points.distance.form(centroids)

    def products(self, raw: Raw, rows: Rows, vectors: Single) -> Single:
        """Products of vectors and points, (n_vectors, n)."""
        n_vectors, lacking = len(vectors), -len(vectors) % _ALIGNED
        if lacking:
            vectors = np.concatenate([vectors, np.zeros((lacking, raw.shape[1]), np.float32)])
        products = (vectors @ raw.astype(np.float32, copy=False).T)[:n_vectors]
        if self._scale is not None:
            products *= self._scale[rows]
        return products

    def weighted(self, raw: Raw) -> tuple[Float, Float | None]:
        """Rows in float64, and by how much they are to be multiplied to be points, if at all."""
        rows = raw.astype(np.float64)
        if self._scale is None:
            return rows, None
        lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows))
        return rows, 1.0 / np.where(lengths > 0, lengths, 1.0)

    def nearest(
        self, form: LinearForm, doubt: Doubt, distances: Single, raw: Raw, rows: Rows
    ) -> tuple[NDArray[np.int32], Single]:
        """The nearest centroid by float32 distances, made sure of in float64, and its lead.

        Parameters
        ----------
        form, doubt
            The centroids.
        distances
            (n_centroids, n) ``offset - x · slope``.
        raw
            (n, n_dims) the documents.
        rows
            Which documents they are.
        """
        nearest, lead = two_nearest(distances)
        doubtful = np.flatnonzero(lead <= doubt.of(self.lengths[rows]))
        if len(doubtful):
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
            answer.take_in(raw, rows, self.products(raw, rows, vectors))

        wanted = [rows for rows in self.points.blocks if rows.start < n_rows]
        for _ in self.points.map_rows(work, wanted):
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
        self._scorer, self.form, self._doubt = scorer, scorer.form(centroids), Doubt()
        self._centroids = centroids
        self._doubt.widen(self.form)
        self.predictions = np.empty(n_rows, dtype=np.intp)
        self.scores = np.empty((n_rows, len(centroids)), dtype=np.float32)

    def take_in(self, raw: Raw, rows: slice, products: Single) -> None:
        """Take in the products of a block with the slopes; what is in it is not needed again."""
        scorer, offsets = self._scorer, self.form.offsets.astype(np.float32)[:, None]
        distances = np.subtract(offsets, products, out=products)
        nearest, lead = scorer.nearest(self.form, self._doubt, distances, raw, rows)
        self.predictions[rows] = nearest
        rounding: Float | float = 0.0
        vague = _NO_ROWS
        if scorer.points.distance.name == "l2":
            squares = scorer.squares[rows]
            rounding = 8 * ROUNDING * squares
            distances += squares.astype(np.float32)
            np.maximum(distances, 0.0, out=distances)
            vague = np.flatnonzero(distances.min(axis=0) < _VAGUE * squares)
        np.negative(distances.T, out=self.scores[rows])
        for start in range(0, len(vague), scorer.few_rows):
            # So far from the origin, and so near to a centroid, that float32 cannot say how near.
            few = vague[start : start + scorer.few_rows]
            points = scorer.points
            between = points.distance.between(points.exact(raw[few]), self._centroids)
            self.scores[few + rows.start] = -between
        # Rounding may have put the right label level with another, or behind it.
        level = np.union1d(np.flatnonzero(lead <= rounding), vague)
        numbers = level + rows.start
        self.scores[numbers] = with_largest(self.scores[numbers], nearest[level])


def two_nearest(distances: Single) -> tuple[NDArray[np.int32], Single]:
    """The nearest of the centroids, the first of equal ones, and its lead over the next.

    Parameters
    ----------
    distances
        (n_centroids, n), or (n_centroids, n_sets, n) with an answer for every set.
    """
    n_centroids, *shape = distances.shape
    n = distances[0].size
    if n_centroids > min(n // _MANY_DOCUMENTS, _MOST_IN_BYTES):
        flat, each = distances.reshape(n_centroids, n), np.arange(n)
        places = flat.argmin(axis=0)
        best = flat[places, each]
        flat[places, each] = np.inf
        lead = flat.min(axis=0) - best
        flat[places, each] = best
        return places.astype(np.int32).reshape(shape), lead.reshape(shape)
    best, second = distances[0].copy(), np.full(shape, np.inf, dtype=np.float32)
    nearest, worse = np.zeros(shape, dtype=np.int8), np.empty(shape, dtype=np.float32)
    nearer = np.empty(shape, dtype=bool)
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
