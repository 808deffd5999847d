"""The way that centroids have gone, and how far apart it can have brought any two of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ulr.refine import loops
from ulr.refine.distances import Float
from ulr.refine.scoring import ALWAYS, ROUNDING, Single

_REMEMBERED_BYTES = 64 << 20  # of the slopes of earlier passes
_WIDENING = 1.0 + 16 * ROUNDING  # more than rounding to float32 takes away
_MOST_PAIRS = 1 << 20  # of centroids, over all passes, that are worth comparing with each other


@dataclass(frozen=True, eq=False)
class Bounds:
    """How far centroids have gone since each earlier pass.

    Attributes
    ----------
    shift
        (n_passes, n_centroids) as at the top of `ulr.refine.linear`.
    drift
        (n_passes, n_centroids) likewise; of any two centroids together it is no less than how far
        they have moved apart. None where that itself is known.
    pairs
        (n_passes, n_centroids, n_centroids) how far they have indeed; None where there are too
        many.
    lowest, widest
        (n_passes, n_centroids) the least shift of the others less one's own, and the farthest that
        another has moved apart.
    forgotten
        How many passes, the first ones, nothing is known of.
    """

    shift: Single
    drift: Single | None
    pairs: Single | None
    lowest: Single
    widest: Single
    forgotten: int

    def apart(self, then: NDArray[np.int32], own: NDArray[np.int32]) -> Single:
        """How far, at most, each centroid has moved apart from some own ones since some passes."""
        if self.pairs is not None:
            return self.pairs[then, own]
        assert self.drift is not None
        return self.drift[then] + self.drift[then, own][:, None]


class _Latest:
    """Arrays of one shape, the latest of those that were added, as rows of one table."""

    def __init__(self, most: int, shape: tuple[int, ...]) -> None:
        self._most, self._n = most, 0
        self._table = np.empty((0, *shape))

    @property
    def rows(self) -> Float:
        """The table, the latest row last."""
        return self._table[: self._n]

    def add(self, row: Float) -> None:
        """Add a row; the oldest goes where there are too many."""
        if self._n == self._most:
            self._table[:-1] = self._table[1:]
            self._n -= 1
        elif self._n == len(self._table):
            larger = np.empty((min(self._most, 2 * self._n + 2), *row.shape))
            larger[: self._n] = self._table
            self._table = larger
        self._table[self._n] = row
        self._n += 1

    def keep(self, places: Sequence[int]) -> None:
        """Keep some places of the first axis of the arrays only."""
        self._table = self._table.take(places, axis=1)


class Trail:
    """The way that the centroids of some runs have gone: the slopes of as many passes as fit.

    Slopes are kept less what those of a pass have in common, in a table of (n_passes, n_centroids,
    n_dims) for each run; other tables are of (n_passes, n_runs, ...).
    """

    def __init__(self, n_runs: int, n_centroids: int, n_dims: int) -> None:
        self._n_passes = 0
        self._n_centroids, self._n_dims = n_centroids, n_dims
        most = max(2, _REMEMBERED_BYTES // (8 * n_runs * n_centroids * n_dims))
        self._slopes = [_Latest(most, (n_centroids, n_dims)) for _ in range(n_runs)]
        self._levels = _Latest(most, (n_runs, n_centroids))  # distances of the middle
        # Of the slopes of a pass with each other.
        self._products = _Latest(most, (n_runs, n_centroids, n_centroids))
        self._longest = 0.0  # slope so far, squared

    def keep(self, runs: Sequence[int]) -> None:
        """Go on with some of the runs only."""
        self._slopes = [self._slopes[run] for run in runs]
        self._levels.keep(runs)
        self._products.keep(runs)

    def add(self, slopes: Float, offsets: Float, middle: Float) -> None:
        """Remember the centroids of a pass, (n_runs, n_centroids, n_dims)."""
        self._n_passes += 1
        own = slopes - slopes.sum(axis=1, keepdims=True) / self._n_centroids
        for table, of_run in zip(self._slopes, own, strict=True):
            table.add(of_run)
        self._levels.add(offsets - slopes @ middle)
        if self._in_pairs:
            products = own @ own.transpose(0, 2, 1)
            self._products.add(products)
            self._longest = max(self._longest, float(products.max()))

    @property
    def _in_pairs(self) -> bool:
        return self._n_passes * self._n_centroids**2 <= _MOST_PAIRS

    def bounds(self) -> list[Bounds]:
        """How far the centroids of each run have gone since every pass, the last one included."""
        levels = self._levels.rows
        forgotten = self._n_passes - len(levels)
        drift = pairs = None
        if loops.compiled and self._in_pairs and not forgotten:
            shift, lowest, widest, pairs = loops.compiled.bounds(
                levels, self._since(), self._products.rows, self._slack, _WIDENING
            )
        else:
            shift = self._by_run(levels[-1] - levels)
            lowest = others(shift, np.minimum) - shift
            lowest[:, :forgotten] = ALWAYS
            if self._in_pairs:
                pairs = self._by_run(self._moved_apart())
                widest = pairs.max(axis=3)
            else:
                drift = self._by_run(self._moved())
                widest = others(drift, np.maximum) + drift
        return [
            Bounds(
                shift[run],
                None if drift is None else drift[run],
                None if pairs is None else pairs[run],
                lowest[run],
                widest[run],
                forgotten,
            )
            for run in range(len(shift))
        ]

    def _by_run(self, remembered: Float) -> Single:
        """A table of the passes that are remembered, zeros for those before, by run first."""
        forgotten = self._n_passes - len(remembered)
        earlier = np.zeros((forgotten, *remembered.shape[1:]))
        table = np.concatenate([earlier, remembered]).astype(np.float32)
        return np.ascontiguousarray(table.swapaxes(0, 1))

    def _moved(self) -> Float:
        """How far each slope is from where it was, rounded up."""
        changes = [slopes.rows[-1] - slopes.rows for slopes in self._slopes]
        squares = [np.einsum("pcd,pcd->pc", change, change) for change in changes]
        return np.sqrt(np.stack(squares, axis=1)) * _WIDENING

    def _moved_apart(self) -> Float:
        """How far each two slopes have moved apart, rounded up.

        From products of slopes, which takes half as long as from their differences.
        """
        since, products = self._since(), self._products.rows
        # Products of the changes of two slopes, and from these the distances of the changes.
        apart = since + since.swapaxes(2, 3)
        np.subtract(products, apart, out=apart)
        apart += products[-1]
        squares = np.einsum("pkcc->pkc", apart).copy()
        apart *= -2.0
        apart += squares[..., None]
        apart += squares[..., None, :]
        np.maximum(apart, 0.0, out=apart)
        apart += self._slack
        np.sqrt(apart, out=apart)
        apart *= _WIDENING
        return apart

    def _since(self) -> Float:
        """Products of all slopes with the last, (n_passes, n_runs, n_centroids, n_centroids)."""
        n = self._n_centroids
        of_runs = [
            (slopes.rows.reshape(-1, self._n_dims) @ slopes.rows[-1].T).reshape(-1, 1, n, n)
            for slopes in self._slopes
        ]
        return of_runs[0] if len(of_runs) == 1 else np.concatenate(of_runs, axis=1)

    @property
    def _slack(self) -> float:
        """How far off a square made of sixteen rounded products of slopes can be."""
        return 16 * (self._n_dims + 16) * 2.0**-52 * self._longest


def others(table: NDArray[np.floating], extreme: np.ufunc) -> NDArray[np.floating]:
    """For every place in the last axis of a table, the extreme of the other places."""
    sign = 1.0 if extreme is np.minimum else -1.0
    two = sign * np.partition(sign * table, 1, axis=-1)[..., :2]
    return np.where(table == two[..., :1], two[..., 1:], two[..., :1])
