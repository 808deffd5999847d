"""The way that centroids have gone, and how far apart it can have brought any two of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ulr.refine import loops
from ulr.refine.distances import Float
from ulr.refine.scoring import ALWAYS, ROUNDING, Single

_REMEMBERED_BYTES = 64 << 20  # of the slopes of earlier passes
_WIDENING = 1.0 + 16 * ROUNDING  # more than rounding to float32 takes away
_FIRST_PASSES = 14  # that there is room for at first
_FEW_CENTROIDS = 16  # that a BLAS is not worth calling for
_MOST_PAIRS = 1 << 20  # of centroids, over all passes, that are worth comparing with each other


@dataclass(frozen=True, eq=False)
class Bounds:
    """How far the centroids of some runs have gone since each earlier pass.

    Attributes
    ----------
    shift
        (n_runs, n_passes, n_centroids) as at the top of `ulr.refine.linear`.
    drift
        (n_runs, n_passes, n_centroids) likewise; of any two centroids together it is no less than
        how far they have moved apart. None where that itself is known.
    pairs
        (n_runs, n_passes, n_centroids, n_centroids) how far they have indeed; None where there are
        too many.
    lowest, widest
        (n_runs, n_passes, n_centroids) the least shift of the others less one's own, and the
        farthest that another has moved apart.
    forgotten
        How many passes, the first ones, nothing is known of.
    """

    shift: Single
    drift: Single | None
    pairs: Single | None
    lowest: Single
    widest: Single
    forgotten: int

    def apart(self, run: int, then: NDArray[np.int32], own: NDArray[np.int32]) -> Single:
        """How far, at most, each centroid has moved apart from some own ones since some passes."""
        if self.pairs is not None:
            return self.pairs[run][then, own]
        assert self.drift is not None
        return self.drift[run][then] + self.drift[run][then, own][:, None]


class Trail:
    """The way that the centroids of some runs have gone: the slopes of as many passes as fit.

    Slopes are kept less what those of a pass have in common. Tables are of (n_runs, n_passes, ...).
    """

    def __init__(self, n_runs: int, n_centroids: int, n_dims: int) -> None:
        self._n_passes = self._n_kept = 0
        self._n_centroids, self._n_dims = n_centroids, n_dims
        self._most = max(2, _REMEMBERED_BYTES // (8 * n_runs * n_centroids * n_dims))
        self._slopes = np.empty((n_runs, 0, n_centroids, n_dims))
        self._levels = np.empty((n_runs, 0, n_centroids))  # distances of the middle
        # Of the slopes of a pass with each other.
        self._products = np.empty((n_runs, 0, n_centroids, n_centroids))
        self._longest = 0.0  # slope so far, squared

    def add(self, runs: NDArray[np.intp], slopes: Float, offsets: Float, middle: Float) -> None:
        """Remember the centroids of a pass of some runs, (n, n_centroids, n_dims)."""
        self._n_passes += 1
        self._make_room(runs)
        place, in_pairs = self._n_kept, self._in_pairs
        self._n_kept += 1
        if loops.compiled:
            products = self._products if in_pairs else None
            longest = loops.compiled.add_to_trail(
                slopes, offsets, middle, runs, place, self._slopes, self._levels, products
            )
            self._longest = max(self._longest, longest)
            return
        own = slopes - slopes.sum(axis=1, keepdims=True) / self._n_centroids
        self._slopes[runs, place] = own
        self._levels[runs, place] = offsets - slopes @ middle
        if in_pairs:
            products = own @ own.transpose(0, 2, 1)
            self._products[runs, place] = products
            self._longest = max(self._longest, float(products.max()))

    def _make_room(self, runs: NDArray[np.intp]) -> None:
        """Room for one more pass; the oldest goes where there are too many."""
        tables = [self._slopes, self._levels]
        if self._in_pairs:
            tables.append(self._products)
        room = self._slopes.shape[1]
        if self._n_kept == self._most:
            self._n_kept -= 1
            for table in tables:
                for run in runs:
                    table[run, : self._n_kept] = table[run, 1 : self._n_kept + 1]
        elif self._n_kept == room:
            room = min(self._most, 2 * room + _FIRST_PASSES)
            larger = [np.empty((len(each), room, *each.shape[2:])) for each in tables]
            for table, new in zip(tables, larger, strict=True):
                for run in runs:
                    new[run, : self._n_kept] = table[run]
            self._slopes, self._levels = larger[:2]
            if self._in_pairs:
                self._products = larger[2]

    @property
    def _in_pairs(self) -> bool:
        return self._n_passes * self._n_centroids**2 <= _MOST_PAIRS

    def bounds(self, runs: NDArray[np.intp]) -> Bounds:
        """How far the centroids of some runs have gone since every pass, the last one included."""
        n, forgotten = self._n_kept, self._n_passes - self._n_kept
        drift = pairs = None
        if loops.compiled and self._in_pairs and not forgotten:
            since = self._since(runs) if self._n_centroids > _FEW_CENTROIDS else None
            shift, lowest, widest, pairs = loops.compiled.bounds(
                self._levels, self._slopes, self._products, runs, n, since, self._slack, _WIDENING
            )
            return Bounds(shift, drift, pairs, lowest, widest, forgotten)
        levels = self._levels[runs, :n]
        shift = self._with_forgotten(levels[:, -1:] - levels)
        lowest = others(shift, np.minimum) - shift
        lowest[:, :forgotten] = ALWAYS
        if self._in_pairs:
            pairs = self._with_forgotten(self._moved_apart(runs))
            widest = pairs.max(axis=3)
        else:
            drift = self._with_forgotten(self._moved(runs))
            widest = others(drift, np.maximum) + drift
        return Bounds(shift, drift, pairs, lowest, widest, forgotten)

    def _with_forgotten(self, remembered: Float) -> Single:
        """A table of the passes that are remembered, zeros for those before."""
        n_runs, n_remembered = remembered.shape[:2]
        earlier = np.zeros((n_runs, self._n_passes - n_remembered, *remembered.shape[2:]))
        return np.concatenate([earlier, remembered], axis=1).astype(np.float32)

    def _moved(self, runs: NDArray[np.intp]) -> Float:
        """How far each slope is from where it was, rounded up."""
        of_runs = [self._slopes[run, : self._n_kept] for run in runs]
        changes = [slopes[-1] - slopes for slopes in of_runs]
        squares = [np.einsum("pcd,pcd->pc", change, change) for change in changes]
        return np.sqrt(np.stack(squares)) * _WIDENING

    def _moved_apart(self, runs: NDArray[np.intp]) -> Float:
        """How far each two slopes have moved apart, rounded up.

        From products of slopes, which takes half as long as from their differences.
        """
        since, products = self._since(runs), self._products[runs, : self._n_kept]
        # Products of the changes of two slopes, and from these the distances of the changes.
        apart = since + since.swapaxes(2, 3)
        np.subtract(products, apart, out=apart)
        apart += products[:, -1:]
        squares = np.einsum("kpcc->kpc", apart).copy()
        apart *= -2.0
        apart += squares[..., None]
        apart += squares[..., None, :]
        np.maximum(apart, 0.0, out=apart)
        apart += self._slack
        np.sqrt(apart, out=apart)
        apart *= _WIDENING
        return apart

    def _since(self, runs: NDArray[np.intp]) -> Float:
        """Products of all slopes with the last, (n_runs, n_passes, n_centroids, n_centroids)."""
        n, n_centroids = self._n_kept, self._n_centroids
        since = np.empty((len(runs), n, n_centroids, n_centroids))
        for place, run in enumerate(runs):
            flat = self._slopes[run, :n].reshape(-1, self._n_dims)
            np.matmul(flat, flat[-n_centroids:].T, out=since[place].reshape(-1, n_centroids))
        return since

    @property
    def _slack(self) -> float:
        """How far off a square made of sixteen rounded products of slopes can be."""
        return 16 * (self._n_dims + 16) * 2.0**-52 * self._longest


def others(table: NDArray[np.floating], extreme: np.ufunc) -> NDArray[np.floating]:
    """For every place in the last axis of a table, the extreme of the other places."""
    sign = 1.0 if extreme is np.minimum else -1.0
    two = sign * np.partition(sign * table, 1, axis=-1)[..., :2]
    return np.where(table == two[..., :1], two[..., 1:], two[..., :1])
