"""The documents of a refinement as row blocks: raw rows in any float type, float64 when used.

A block is the unit of work; a shard is a run of blocks whose sums are added up in order by one
thread. Both depend on the documents and the block size only, never on the number of threads,
so neither does any sum.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from ulr.refine.distances import Distance, Float

_BLOCK_BYTES = 1 << 20
_MAX_SHARDS = 32

Rows = NDArray[np.floating]
Result = TypeVar("Result")


def available_cores() -> int:
    """Cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class Points:
    """Documents to refine over: the user's rows, then any extra rows.

    Parameters
    ----------
    parts
        Arrays of shape (n, n_dims), taken as one below the other without copying.
    distance
        Decides what a point is: a unit vector, the row itself, a distribution.
    threads
        Row blocks worked on at the same time; None for every core.
    block_rows
        Rows of a block; None for about a megabyte of float64.
    """

    def __init__(
        self, parts: list[Rows], distance: Distance, threads: int | None, block_rows: int | None
    ) -> None:
        self.parts = parts
        self.distance = distance
        self.n_dims = parts[0].shape[1]
        self.threads = threads or available_cores()
        self._block_rows = block_rows or max(64, _BLOCK_BYTES // (8 * self.n_dims))
        self._offsets = np.cumsum([0, *(len(part) for part in parts)]).tolist()
        self.n_rows: int = self._offsets[-1]

    def row(self, index: int) -> Float:
        """One point, (n_dims,)."""
        part = int(np.searchsorted(self._offsets, index, side="right")) - 1
        raw = self.parts[part][index - self._offsets[part]]
        return self.distance.points(raw.astype(np.float64)[None])[0]

    def block(self, rows: slice) -> Float:
        """The points of a row block, as float64."""
        part = int(np.searchsorted(self._offsets, rows.start, side="right")) - 1
        offset = self._offsets[part]
        raw = self.parts[part][rows.start - offset : rows.stop - offset]
        return self.distance.points(raw.astype(np.float64))

    def shards(self) -> list[list[slice]]:
        """The row blocks, none across two parts, in a bounded number of consecutive groups."""
        blocks = [
            slice(start, min(start + self._block_rows, end))
            for begin, end in zip(self._offsets, self._offsets[1:], strict=False)
            for start in range(begin, end, self._block_rows)
        ]
        size = -(-len(blocks) // _MAX_SHARDS)
        return [blocks[i : i + size] for i in range(0, len(blocks), size)]

    def map_shards(self, work: Callable[[list[slice]], Result]) -> Iterator[Result]:
        """`work` done on every shard, on all threads, its results in the order of the rows."""
        shards = self.shards()
        with threadpool_limits(limits=1, user_api="blas"):
            if self.threads == 1 or len(shards) == 1:
                yield from map(work, shards)
                return
            with ThreadPoolExecutor(self.threads) as pool:
                yield from pool.map(work, shards)
