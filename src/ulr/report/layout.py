"""A map of documents: two coordinates for each vector, neighbours near each other.

The neighbour graph and the forces are those of UMAP (McInnes, Healy and Melville, 2018), with the
kernel ``1 / (1 + distance²)`` and full-batch steps, in NumPy and SciPy alone.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from ulr.threads import single_threaded_blas
from ulr.vectors import unit_rows

_NEIGHBOURS = 15
_STEPS = 150
_SHIFTS = 4  # each document is repelled by two others per shift
_BLOCK_ROWS = 512
_MOST_DIMS = 1024
_PLACED_BY = 15  # documents
_WIDTH = 3.0  # standard deviation of the start, in units of the kernel
_LONGEST_STEP = 4.0

Float = NDArray[np.float64]
Single = NDArray[np.float32]
Indices = NDArray[np.intp]


class Layout:
    """Places documents on a plane, and other vectors beside the documents nearest to them.

    Parameters
    ----------
    vectors
        (n_documents, n_dims), none of them zero.
    random_state
        Seed; the same vectors and seed give the same map.

    Attributes
    ----------
    positions
        (n_documents, 2), between 0 and 1; one scale for both axes.

    Examples
    --------
    >>> import numpy as np
    >>> vectors = np.random.default_rng(0).normal(size=(50, 8))
    >>> Layout(vectors).positions.shape
    (50, 2)
    """

    def __init__(self, vectors: NDArray[np.floating], random_state: int = 0) -> None:
        rows, rng = unit_rows(vectors), np.random.default_rng(random_state)
        self._centre, self._projection = rows.mean(axis=0), None
        if rows.shape[1] > _MOST_DIMS:
            self._projection = rng.standard_normal((rows.shape[1], _MOST_DIMS)).astype(np.float32)
        with single_threaded_blas():
            self._rows = self._transformed(rows)
            self.positions = _scaled(_embed(self._rows, rng))

    def places(self, vectors: NDArray[np.floating]) -> Float:
        """(n, 2) positions of other vectors: the most central of the documents nearest to each."""
        with single_threaded_blas():
            rows = self._transformed(unit_rows(vectors))
            nearest, _ = _nearest(rows, self._rows, min(_PLACED_BY, len(self._rows)))
        around = self.positions[nearest]
        distances = np.linalg.norm(around[:, :, None] - around[:, None], axis=3).sum(axis=2)
        return np.take_along_axis(around, distances.argmin(axis=1)[:, None, None], axis=1)[:, 0]

    def _transformed(self, rows: Float) -> Single:
        """Unit vectors after centring, of fewer dimensions where there are very many."""
        centred = (rows - self._centre).astype(np.float32)
        if self._projection is not None:
            centred = centred @ self._projection
        return unit_rows(centred).astype(np.float32)


def _embed(rows: Single, rng: np.random.Generator) -> Float:
    """Positions of unit vectors, in arbitrary units."""
    n = len(rows)
    if n < 3:
        return np.arange(2.0 * n).reshape(n, 2)
    # Documents are repelled by others at a distance in the list, which must not be sorted.
    order = rng.permutation(n)
    rows = rows[order]
    start = _principal_components(rows)
    start = start / np.maximum(start.std(axis=0), 1e-12) * _WIDTH
    start += rng.normal(scale=1e-3, size=start.shape)  # tells equal documents apart
    positions = np.empty((n, 2))
    positions[order] = _optimize(_neighbour_graph(rows), start, rng)
    return positions


def _nearest(queries: Single, rows: Single, count: int) -> tuple[Indices, Single]:
    """Indices and similarities, (n_queries, count), of the nearest rows, the nearest first."""
    indices = np.empty((len(queries), count), dtype=np.intp)
    similarities = np.empty((len(queries), count), dtype=np.float32)
    for first in range(0, len(queries), _BLOCK_ROWS):
        block = slice(first, first + _BLOCK_ROWS)
        products = queries[block] @ rows.T
        found = np.argpartition(products, -count, axis=1)[:, -count:]
        values = np.take_along_axis(products, found, axis=1)
        order = np.argsort(-values, axis=1, kind="stable")
        indices[block] = np.take_along_axis(found, order, axis=1)
        similarities[block] = np.take_along_axis(values, order, axis=1)
    return indices, similarities


def _neighbour_graph(rows: Single) -> csr_matrix:
    """UMAP's fuzzy graph: symmetric weights between 0 and 1."""
    n, count = len(rows), min(_NEIGHBOURS, len(rows) - 1)
    indices, similarities = _nearest(rows, rows, count + 1)
    # A document is its own neighbour; among equal documents it may not be the first one.
    other = indices != np.arange(n)[:, None]
    other[other.all(axis=1), -1] = False
    indices = indices[other].reshape(n, count)
    distances = np.sqrt(np.maximum(2 - 2 * similarities[other].reshape(n, count), 0))
    weights = _membership(distances)
    graph = csr_matrix(
        (weights.ravel(), indices.ravel(), np.arange(0, n * count + 1, count)), (n, n)
    )
    return (graph + graph.T - graph.multiply(graph.T)).tocsr()


def _membership(distances: Single) -> Float:
    """Weights of the neighbours of each document, which add up to log2 of their number."""
    beyond = np.maximum(distances - distances[:, :1], 0).astype(np.float64)
    target = np.log2(distances.shape[1]) if distances.shape[1] > 2 else 1.5
    low, high = np.full((len(distances), 1), 1e-4), np.full((len(distances), 1), 4.0)
    for _ in range(20):
        scale = (low + high) / 2
        too_wide = np.exp(-beyond / scale).sum(axis=1, keepdims=True) > target
        low, high = np.where(too_wide, low, scale), np.where(too_wide, scale, high)
    weights: Float = np.exp(-beyond / scale)
    return weights


def _principal_components(rows: Single) -> Float:
    """(n, 2) the first two principal components; zeros where there is only one dimension."""
    centred = rows - rows.mean(axis=0)
    _, axes = np.linalg.eigh(centred.T @ centred)
    components = np.zeros((len(rows), 2))
    components[:, : axes.shape[1]] = centred @ axes[:, :-3:-1]
    return components


def _optimize(graph: csr_matrix, start: Float, rng: np.random.Generator) -> Float:
    """Positions after steps along attraction by neighbours and repulsion by other documents."""
    n = len(start)
    edges = graph.tocoo()
    half = edges.row < edges.col
    tails, heads, weights = edges.row[half], edges.col[half], edges.data[half]
    degrees = np.asarray(graph.sum(axis=1)).ravel()
    x, y = start.T.copy()
    for step in range(_STEPS):
        across, down = x[tails] - x[heads], y[tails] - y[heads]
        pull = -4 * weights / (1 + across * across + down * down)
        forces = []
        for difference in (across, down):
            force = pull * difference
            forces.append(np.bincount(tails, force, n) - np.bincount(heads, force, n))
        for shift in rng.integers(1, n, _SHIFTS).tolist():
            across, down = x - np.roll(x, shift), y - np.roll(y, shift)
            squared = across * across + down * down
            push = 2 / ((0.01 + squared) * (1 + squared))
            for force, difference in zip(forces, (across, down), strict=True):
                one = np.clip(push * difference, -4, 4)
                force += degrees * (one - np.roll(one, -shift))
        length = np.sqrt(forces[0] ** 2 + forces[1] ** 2)
        rate = 0.5 * (1 - step / _STEPS) * np.minimum(1, _LONGEST_STEP / np.maximum(length, 1e-9))
        x, y = x + rate * forces[0], y + rate * forces[1]
    return np.stack([x, y], axis=1)


def _scaled(positions: Float) -> Float:
    """Positions between 0 and 1, with the same scale for both axes, in the middle."""
    if len(positions) == 0:
        return positions
    low, high = positions.min(axis=0), positions.max(axis=0)
    extent = float((high - low).max()) or 1.0
    return np.clip((positions - (low + high) / 2) / extent + 0.5, 0.0, 1.0)  # rounding
