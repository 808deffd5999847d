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
_FIRST_PASSES = 30  # that there is room for at first
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
        (n_runs, n_passes, n_centroids, n_centroids) how far they have indeed, or what is not
        sketched of them; None where there are too many.
    steps, least
        (n_runs, n_passes, n_centroids) the farthest that another has moved apart, and the least
        shift of the others less one's own; with all doubt, for whoever is too quick to tell.
    forgotten
        How many passes, the first ones, nothing is known of.
    """

    shift: Single
    drift: Single | None
    pairs: Single | None
    steps: Single
    least: Single
    forgotten: int

    def apart(self, run: int, then: NDArray[np.int32], own: NDArray[np.int32]) -> Single:
        """How far, at most, each centroid has moved apart from some own ones since some passes."""
        if self.pairs is not None:
            return self.pairs[run][then, own]
        assert self.drift is not None
        return self.drift[run][then] + self.drift[run][then, own][:, None]


class Trail:
    """The way that the centroids of some runs have gone: the slopes of as many passes as fit.

    Tables are of (n_runs, n_passes, ...).

    Parameters
    ----------
    n_runs, n_centroids, n_dims
        How many there are.
    n_coordinates
        How many a slope has in a sketch; 0 for none.
    """

    def __init__(self, n_runs: int, n_centroids: int, n_dims: int, n_coordinates: int = 0) -> None:
        self._n_passes = self._n_kept = 0
        self._n_centroids, self._n_dims = n_centroids, n_dims
        self._most = max(2, _REMEMBERED_BYTES // (8 * n_runs * n_centroids * n_dims))
        # Differences of few slopes are best found one by one, by the compiled loops. They are well
        # enough known in float32.
        self._is_direct = loops.compiled is not None and n_centroids <= loops.FEW_CENTROIDS
        shape, dtype = (n_runs, 0, n_centroids), np.float32 if self._is_direct else np.float64
        self._slopes = np.empty((*shape, n_dims), dtype)
        self._sketched = np.empty((*shape, n_coordinates), dtype)
        self._levels = np.empty(shape)
        # Of the slopes of a pass with each other.
        self._products = np.empty((*shape, n_centroids))
        self._longest = 0.0  # slope so far

    def add(
        self,
        runs: NDArray[np.intp],
        slopes: Float,
        levels: Float,
        longest: float,
        sketched: Float | None = None,
    ) -> None:
        """Remember the centroids of a pass of some runs.

        Parameters
        ----------
        runs
            (n,) which.
        slopes
            (n, n_centroids, n_dims).
        levels
            (n, n_centroids) distances of the middle of the documents.
        longest
            The length of the longest slope.
        sketched
            (n, n_centroids, n_coordinates) of the slopes.
        """
        self._n_passes += 1
        self._make_room(runs)
        place = self._n_kept
        self._n_kept += 1
        self._longest = max(self._longest, longest)
        self._levels[runs, place] = levels
        if sketched is not None:
            self._sketched[runs, place] = sketched
        if self._is_direct:
            self._slopes[runs, place] = slopes
            return
        # What all slopes have in common takes nothing from any lead, and products are better
        # known without it.
        own = slopes - slopes.sum(axis=1, keepdims=True) / self._n_centroids
        self._slopes[runs, place] = own
        if self._in_pairs:
            self._products[runs, place] = own @ own.transpose(0, 2, 1)

    def _make_room(self, runs: NDArray[np.intp]) -> None:
        """Room for one more pass; the oldest goes where there are too many."""
        names = ["_slopes", "_sketched", "_levels"]
        if self._in_pairs and not self._is_direct:
            names.append("_products")
        room = self._slopes.shape[1]
        if self._n_kept == self._most:
            self._n_kept -= 1
            for table in (getattr(self, name) for name in names):
                for run in runs:
                    table[run, : self._n_kept] = table[run, 1 : self._n_kept + 1]
        elif self._n_kept == room:
            for name in names:
                table = getattr(self, name)
                more = min(self._most, 2 * room + _FIRST_PASSES)
                larger = np.empty((len(table), more, *table.shape[2:]), table.dtype)
                for run in runs:
                    larger[run, : self._n_kept] = table[run]
                setattr(self, name, larger)

    @property
    def _in_pairs(self) -> bool:
        return self._is_direct or self._n_passes * self._n_centroids**2 <= _MOST_PAIRS

    def bounds(self, runs: NDArray[np.intp], per_reach: Single, always: Single) -> Bounds:
        """How far the centroids of some runs have gone since every pass, the last one included.

        Parameters
        ----------
        runs
            (n,) which.
        per_reach, always
            (n,) the doubt about the lead of a document.
        """
        n, forgotten = self._n_kept, self._n_passes - self._n_kept
        drift = pairs = None
        if self._is_direct:
            assert loops.compiled is not None
            shift, steps, least, pairs = loops.compiled.bounds(
                self._levels, self._slopes, self._sketched, runs, n, forgotten, self._longest,
                per_reach, always, ALWAYS,
            )  # fmt: skip
            return Bounds(shift, drift, pairs, steps, least, forgotten)
        levels = self._levels[runs, :n]
        shift = self._with_forgotten(levels[:, -1:] - levels)
        if self._in_pairs:
            pairs = self._with_forgotten(self._moved_apart(runs))
            steps = pairs.max(axis=3)
        else:
            drift = self._with_forgotten(self._moved(runs))
            steps = others(drift, np.maximum) + drift
        steps += per_reach[:, None, None]
        least = others(shift, np.minimum) - shift - always[:, None, None]
        least[:, :forgotten] = ALWAYS
        return Bounds(shift, drift, pairs, steps, least, forgotten)

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
        return 16 * (self._n_dims + 16) * 2.0**-52 * self._longest**2


def others(table: NDArray[np.floating], extreme: np.ufunc) -> NDArray[np.floating]:
    """For every place in the last axis of a table, the extreme of the other places."""
    sign = 1.0 if extreme is np.minimum else -1.0
    two = sign * np.partition(sign * table, 1, axis=-1)[..., :2]
    return np.where(table == two[..., :1], two[..., 1:], two[..., :1])
