"""The way that centroids have gone, and how far apart it can have brought any two of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ulr.refine.distances import Float, LinearForm
from ulr.refine.scoring import ALWAYS, ROUNDING, Single

_REMEMBERED_BYTES = 64 << 20  # of the slopes of earlier passes
_MOST_PAIRS = 1 << 20  # of centroids, over all passes, that are worth comparing with each other
_COME_NEAR = np.float32(-1e20)


@dataclass(frozen=True, eq=False)
class Bounds:
    """How far centroids have gone since each earlier pass.

    Attributes
    ----------
    shift
        (n_centroids, n_passes) as at the top of `ulr.refine.linear`.
    own_shift
        (n_passes * n_centroids,) the same.
    drift
        (n_centroids, n_passes) likewise; of any two centroids together it is no less than how far
        they have moved apart. None where that itself is known.
    pairs
        (n_centroids, n_passes * n_centroids) how far they have indeed, each other one from each;
        None where there are too many.
    lowest, widest
        (n_passes * n_centroids,) the least shift of the others less one's own, and the farthest
        that another has moved apart.
    forgotten
        How many passes, the first ones, nothing is known of.
    """

    shift: Single
    own_shift: Single
    drift: Single | None
    pairs: Single | None
    lowest: Single
    widest: Single
    forgotten: int

    def apart(
        self, then: NDArray[np.int32], own: NDArray[np.int32], whose: NDArray[np.int32]
    ) -> Single:
        """How far, at most, each centroid has moved apart from some own ones since some passes.

        The own one itself counts as one that has come near, so that it is never in the way.
        """
        if self.pairs is not None:
            return self.pairs.take(whose, axis=1)
        assert self.drift is not None
        far = self.drift.take(then, axis=1) + self.drift[own, then]
        far[own, np.arange(len(own))] = _COME_NEAR
        return far


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


class Trail:
    """The way that centroids have gone: the slopes of as many passes as fit.

    Slopes are kept less what those of a pass have in common.
    """

    def __init__(self, n_centroids: int, n_dims: int) -> None:
        self._n_passes = 0
        self._n_centroids = n_centroids
        most = max(2, _REMEMBERED_BYTES // (8 * n_centroids * n_dims))
        self._slopes = _Latest(most, (n_centroids, n_dims))
        self._levels = _Latest(most, (n_centroids,))  # distances of the middle
        self._products = _Latest(most, (n_centroids, n_centroids))  # of the slopes of a pass
        self._longest = 0.0  # slope so far, squared

    def add(self, form: LinearForm, middle: Float) -> None:
        """Remember the centroids of a pass."""
        self._n_passes += 1
        slopes = form.slopes - form.slopes.sum(axis=0) / self._n_centroids
        self._slopes.add(slopes)
        self._levels.add(form.offsets - form.slopes @ middle)
        if self._in_pairs:
            products = slopes @ slopes.T
            self._products.add(products)
            self._longest = max(self._longest, float(products.diagonal().max()))

    @property
    def _in_pairs(self) -> bool:
        return self._n_passes * self._n_centroids**2 <= _MOST_PAIRS

    def bounds(self) -> Bounds:
        """How far the centroids have gone since every pass, the last one included."""
        levels, n = self._levels.rows, self._n_centroids
        forgotten = self._n_passes - len(levels)
        shift = self._of_all_passes(levels[-1] - levels)
        lowest = others(shift, np.minimum) - shift
        lowest[:forgotten] = ALWAYS
        drift = pairs = None
        if self._in_pairs:
            between = self._of_all_passes(self._moved_apart())
            widest = between.max(axis=2)
            between[:, range(n), range(n)] = _COME_NEAR
            pairs = np.ascontiguousarray(between.reshape(-1, n).T, dtype=np.float32)
        else:
            moved = self._of_all_passes(self._moved())
            widest = others(moved, np.maximum) + moved
            drift = np.ascontiguousarray(moved.T, dtype=np.float32)
        return Bounds(
            shift=np.ascontiguousarray(shift.T, dtype=np.float32),
            own_shift=shift.astype(np.float32).ravel(),
            drift=drift,
            pairs=pairs,
            lowest=lowest.astype(np.float32).ravel(),
            widest=widest.astype(np.float32).ravel(),
            forgotten=forgotten,
        )

    def _of_all_passes(self, remembered: Float) -> Float:
        """A table of the passes that are remembered, with zeros for the others before it."""
        forgotten = self._n_passes - len(remembered)
        if forgotten == 0:
            return remembered
        return np.concatenate([np.zeros((forgotten, *remembered.shape[1:])), remembered])

    def _moved(self) -> Float:
        """How far each slope is from where it was, rounded up."""
        change = self._slopes.rows[-1] - self._slopes.rows
        return np.sqrt(np.einsum("pcd,pcd->pc", change, change)) * (1.0 + 16 * ROUNDING)

    def _moved_apart(self) -> Float:
        """How far each two slopes have moved apart, rounded up.

        From products of slopes, which takes half as long as from their differences. A product is
        off by no more than its rounding, and sixteen of them make a distance: that is added.
        """
        slopes, products = self._slopes.rows, self._products.rows
        n, n_dims = slopes.shape[1:]
        since = (slopes.reshape(-1, n_dims) @ slopes[-1].T).reshape(-1, n, n)
        # Products of the changes of two slopes, and from these the distances of the changes.
        apart = since + since.transpose(0, 2, 1)
        np.subtract(products, apart, out=apart)
        apart += products[-1]
        squares = np.einsum("pcc->pc", apart).copy()
        apart *= -2.0
        apart += squares[:, :, None]
        apart += squares[:, None, :]
        np.maximum(apart, 0.0, out=apart)
        apart += 16 * (n_dims + 16) * 2.0**-52 * self._longest
        np.sqrt(apart, out=apart)
        apart *= 1.0 + 16 * ROUNDING
        return apart


def others(table: NDArray[np.floating], extreme: np.ufunc) -> NDArray[np.floating]:
    """For every place in the last axis of a table, the extreme of the other places."""
    sign = 1.0 if extreme is np.minimum else -1.0
    two = sign * np.partition(sign * table, 1, axis=-1)[..., :2]
    return np.where(table == two[..., :1], two[..., 1:], two[..., :1])
