"""Documents in few dimensions, to bound what centroids can have come to mean for them.

In an orthonormal basis of the directions in which documents and labels differ most, what a change
of a slope does to a distance is the product of few coordinates, which is cheap, and a rest

    (x - m) · change  =  coordinates of x · coordinates of the change  +  rest of x · rest of change

of which only the second part must be bounded, by the product of two short lengths. Where many sets
of labels go over the same documents, they share the coordinates of the documents.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from ulr.refine.distances import Float
from ulr.refine.points import Points
from ulr.refine.scoring import ROUNDING, Raw, Single

_MOST_LABELS, _DOCUMENT_DIRECTIONS = 32, 32
_DIMS_TO_DIRECTIONS = 8  # dimensions that there should be for each direction of documents
_WHOLE = 8  # numbers of a row of coordinates that are multiplied together
_SAMPLE = 1024  # documents whose directions are looked for
_MOST_BYTES = 64 << 20  # of coordinates
_FEWEST_CENTROIDS = 2.0  # in all sets, for each coordinate

_Vectors = TypeVar("_Vectors", Float, Single)


@dataclass(frozen=True, eq=False)
class Sketch:
    """Documents in few dimensions.

    Attributes
    ----------
    middle
        (n_dims,) a vector in the middle of the documents.
    basis
        (n_coordinates, n_dims) orthonormal.
    coordinates
        (n_rows, n_coordinates) of the documents less the middle.
    reach, rest
        (n_rows,) how far documents are from the middle, and from their sketch, rounded up.
    """

    middle: Float
    basis: Float
    coordinates: Single
    reach: Single
    rest: Single


def sketch(points: Points, label_sets: Sequence[Float]) -> Sketch | None:
    """Documents in the directions of some labels and the main ones of their own.

    None where it would not pay.

    Parameters
    ----------
    points
        The documents.
    label_sets
        Of vectors, (n_labels, n_dims), which the documents are going to be compared with.
    """
    labels = distinct(np.concatenate(label_sets))[0]
    labels = labels[:: -(-len(labels) // _MOST_LABELS)]  # if there are too many, from all over them
    n_own = min(_DOCUMENT_DIRECTIONS, points.n_dims // _DIMS_TO_DIRECTIONS)
    n_own += -(len(labels) + n_own) % _WHOLE
    n_coordinates = len(labels) + n_own
    if (
        points.is_streamed
        or sum(map(len, label_sets)) < _FEWEST_CENTROIDS * n_coordinates
        or 4 * points.n_rows * n_coordinates > _MOST_BYTES
        or 2 * n_coordinates > points.n_dims
    ):
        return None
    step = -(-points.n_rows // _SAMPLE)
    sample = np.concatenate([points.exact(points.raw(rows)[::step]) for rows in points.blocks])
    middle = sample.mean(axis=0)
    directions = np.concatenate([labels, _main_directions(sample - middle, n_own)])
    basis = np.ascontiguousarray(np.linalg.qr(directions.T)[0].T)
    return _of(points, middle, basis)


def distinct(vectors: _Vectors) -> tuple[_Vectors, NDArray[np.intp]]:
    """The different ones of some vectors, and the place of each among them."""
    places: dict[bytes, int] = {}
    own = np.array([places.setdefault(vector.tobytes(), len(places)) for vector in vectors])
    return vectors[np.unique(own, return_index=True)[1]], own


def _main_directions(sample: Float, n: int) -> Float:
    """About the directions in which a sample varies most, (n, n_dims)."""
    some = np.random.default_rng(0).standard_normal((sample.shape[1], n))
    for _ in range(2):
        some = np.linalg.qr(sample.T @ (sample @ some))[0]
    return some.T


def _of(points: Points, middle: Float, basis: Float) -> Sketch:
    coordinates = np.empty((points.n_rows, len(basis)), dtype=np.float32)
    reach, rest = np.empty((2, points.n_rows), dtype=np.float32)
    rounding, nearly = (points.n_dims + 32) * 2.0**-50, 2.0**-45 * float(np.abs(middle).sum())
    few_rows = max(16, (1 << 20) // points.n_dims)

    def work(rows: slice, raw: Raw) -> None:
        for start in range(rows.start, rows.stop, few_rows):
            few = slice(start, min(start + few_rows, rows.stop))
            apart = points.exact(raw[few.start - rows.start : few.stop - rows.start]) - middle
            own = apart @ basis.T
            squares = np.einsum("ij,ij->i", apart, apart)
            left = squares - np.einsum("ij,ij->i", own, own)
            coordinates[few] = own
            np.maximum(left, 0.0, out=left)
            reach[few] = (np.sqrt(squares) + nearly) * (1 + 4 * ROUNDING)
            rest[few] = (np.sqrt(left + rounding * squares) + nearly) * (1 + 4 * ROUNDING)

    for _ in points.map_rows(work):
        pass
    return Sketch(middle, basis, coordinates, reach, rest)
