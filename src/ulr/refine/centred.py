"""Documents as seen from their middle, and the rule that gives them a label there.

How the rule is found is left to `ulr.refine.mixture`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ulr.errors import ArrayError
from ulr.refine import checks
from ulr.refine.distances import DISTANCES, Float, first_nearest, unit_rows
from ulr.refine.points import Points, Vectors
from ulr.refine.scoring import ROUNDING, Single, two_nearest
from ulr.refine.survey import Survey, survey

_FEW_ROWS = 1024


@dataclass(frozen=True, eq=False)
class Rule:
    """A rule that scores documents, old and new: what a mixture or an ensemble has learnt.

    Attributes
    ----------
    centre
        (n_dims,) where documents at length one are looked at from, before they are brought to
        length one again; None for documents as they are.
    slopes, offsets
        (n_labels, n_dims) and (n_labels,): the score of a document is ``z · slope + offset``.
    """

    centre: Float | None
    slopes: Float
    offsets: Float

    def decide(
        self, documents: ArrayLike | Vectors, threads: int | None = None
    ) -> tuple[NDArray[np.intp], Single]:
        """The label and the scores of documents, (n,) and (n, n_labels); larger is likelier."""
        rows = checks.rows("documents", documents)
        if rows.shape[1] != self.slopes.shape[1]:
            raise ArrayError(
                f"documents must have n_dims={self.slopes.shape[1]}, as those that the labels were "
                f"refined on; got {rows.shape[1]}."
            )
        distance = DISTANCES["dot" if self.centre is None else "cosine"]
        points = Points([rows], distance, threads, n_labels=len(self.slopes))
        with points.at_work():
            return self.decide_points(points, survey(points), points.n_rows)

    def decide_points(
        self, points: Points, looked_at: Survey, n_rows: int
    ) -> tuple[NDArray[np.intp], Single]:
        """As `decide`, of the first of some points."""
        labels = np.empty(n_rows, dtype=np.intp)
        scores = np.empty((n_rows, len(self.slopes)), dtype=np.float32)
        view = View(points, looked_at, self.centre)
        vectors = np.concatenate([self.slopes, view.centre[None]]).astype(np.float32)
        steepest = float(np.sqrt(np.einsum("ij,ij->i", self.slopes, self.slopes).max()))
        doubt = np.float32(8 * (points.n_dims + 64) * ROUNDING * steepest)
        always = np.float32(32 * ROUNDING * np.abs(self.offsets).max())

        def work(rows: slice, raw: NDArray[np.floating]) -> None:
            products = vectors @ raw.astype(np.float32, copy=False).T
            stretch, pull = view.scales(rows, products[-1])
            found = view.seen(products[:-1], stretch, pull, self.slopes)
            found += self.offsets.astype(np.float32)[:, None]
            nearest, lead = two_nearest(-found)
            unsure = np.flatnonzero(lead <= doubt * view.reach(rows, pull) + always)
            for start in range(0, len(unsure), _FEW_ROWS):
                few = unsure[start : start + _FEW_ROWS]
                nearest[few] = self._exactly(points, raw[few])
            labels[rows] = nearest
            scores[rows] = found.T
            # Rounding may have put the right label level with another, or behind it.
            wrong = unsure[scores[rows.start + unsure].argmax(axis=1) != nearest[unsure]]
            largest = scores[rows.start + wrong].max(axis=1)
            scores[rows.start + wrong, nearest[wrong]] = np.nextafter(largest, np.float32(np.inf))

        wanted = [rows for rows in points.blocks if rows.start < n_rows]
        for _ in points.map_rows(work, wanted):
            pass
        return labels, scores

    def _exactly(self, points: Points, raw: NDArray[np.floating]) -> NDArray[np.intp]:
        """The label of some documents, in float64; the first of equally likely ones."""
        z = points.exact(raw)
        if self.centre is not None:
            z = centred(z, self.centre)
        lengths = np.sqrt(np.einsum("ij,ij->i", self.slopes, self.slopes))
        lengths = np.multiply.outer(np.maximum(1.0, np.sqrt(np.einsum("ij,ij->i", z, z))), lengths)
        compared = -(np.einsum("id,cd->ic", z, self.slopes) + self.offsets)
        return first_nearest(compared, lengths, self.offsets)


class View:
    """Documents as seen from somewhere, without any of them being made.

    ``z · w = stretch (x · w) - pull (centre · w)``; both are zero for a zero document. Without a
    centre, z is x.
    """

    def __init__(self, points: Points, looked_at: Survey, centre: Float | None) -> None:
        self._lengths = np.sqrt(looked_at.squares)
        self.is_zero = self._lengths == 0.0
        self.inverse = single(~self.is_zero / np.where(self.is_zero, 1.0, self._lengths))
        self.points, self._as_they_are = points, centre is None
        self.centre = np.zeros(points.n_dims) if centre is None else centre
        self._square = float(self.centre @ self.centre)

    def scales(self, rows: slice, products: Single) -> tuple[Single, Single]:
        """Stretch and pull of some documents, from their products with the centre."""
        inverse = self.inverse[rows]
        if self._as_they_are:
            return np.ones_like(inverse), np.zeros_like(inverse)
        squares = 1.0 - 2.0 * (inverse * products).astype(np.float64) + self._square
        pull = single(1.0 / np.sqrt(np.maximum(squares, 1e-12)))
        pull[self.is_zero[rows]] = 0.0
        return inverse * pull, pull

    def reach(self, rows: slice, pull: Single) -> Single:
        """How far rounding goes with some documents, for slopes of length one."""
        return single(self._lengths[rows]) if self._as_they_are else 1.0 + pull

    def seen(self, products: Single, stretch: Single, pull: Single, vectors: Float) -> Single:
        """Products of z with some vectors, (n_vectors, n), from those of the documents."""
        products *= stretch
        products -= np.multiply.outer((vectors @ self.centre).astype(np.float32), pull)
        return products


def centred(points: Float, centre: Float) -> Float:
    """Documents at length one as seen from the centre; zero ones stay zero."""
    z = unit_rows(points - centre)
    z[~points.any(axis=1)] = 0.0
    return z


def single(values: Float) -> Single:
    """Values as float32."""
    return np.asarray(values, dtype=np.float32)
