"""The documents of a refinement as row blocks, in memory or streamed from where they lie.

A block is the unit of work. Blocks depend on the documents only, never on the number of
threads, and their results are put together in order, so no sum depends on it either.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from ulr.refine.distances import Distance, Float
from ulr.refine.threads import Result, available_cores, blas, in_order, workers

_BLOCK_BYTES = 16 << 20
_READ_AHEAD = 2
_SMALL = 6 << 20  # numbers


@runtime_checkable
class Vectors(Protocol):
    """Rows of vectors that are sliced as needed: an array, or something that reads a file."""

    @property
    def shape(self) -> tuple[int, ...]:
        """(n_rows, n_dims)."""
        ...

    def __getitem__(self, rows: slice, /) -> Any:
        """The rows of a slice, as an array."""
        ...


def side_by_side(raw: NDArray[np.floating]) -> NDArray[np.floating]:
    """Rows in single or double precision, the numbers of a row side by side."""
    return raw if is_side_by_side(raw) else np.ascontiguousarray(raw, _precision(raw))


def is_side_by_side(raw: NDArray[np.floating]) -> bool:
    """Whether rows are what `side_by_side` makes of them."""
    return raw.dtype == _precision(raw) and raw.strides[1] == raw.itemsize


def _precision(raw: NDArray[np.floating]) -> np.dtype[Any]:
    return np.dtype(np.float32 if raw.itemsize <= 4 else np.float64)


class Points:
    """Documents to refine over: the user's rows, then any extra rows.

    Parameters
    ----------
    parts
        Rows of shape (n, n_dims), taken as one below the other without copying. Memory-mapped
        arrays and other `Vectors` are read ahead by a thread of their own.
    distance
        Decides what a point is: a unit vector, the row itself, a distribution.
    threads
        Row blocks worked on at the same time; None for every core.
    block_rows
        Rows of a block; None for a size that suits the caches.
    n_labels
        How many scores a document will have.

    Attributes
    ----------
    picked_rows
        Most rows to pick out at a time.
    """

    def __init__(
        self,
        parts: list[Vectors],
        distance: Distance,
        threads: int | None = None,
        block_rows: int | None = None,
        n_labels: int = 1,
    ) -> None:
        self._parts = parts
        self.distance = distance
        self.n_dims = int(parts[0].shape[1])
        self._widest = max(self.n_dims, n_labels)
        self.threads = threads or available_cores()
        self._offsets = np.cumsum([0, *(int(part.shape[0]) for part in parts)]).tolist()
        self.n_rows: int = self._offsets[-1]
        self._block_rows = block_rows
        self.blocks = self._cut(block_rows)
        self._streamed = not all(type(part) is np.ndarray for part in parts)
        self._pool: ThreadPoolExecutor | None = None

    def _cut(self, block_rows: int | None) -> list[slice]:
        """Row blocks, none across two parts; more than one where two threads are of use."""
        # A logarithm a coordinate makes smaller blocks worth a thread.
        size = _BLOCK_BYTES if self.distance.form else _BLOCK_BYTES // 16
        fitting = max(64, size // (4 * self._widest))
        self.picked_rows = block_rows or fitting
        if block_rows is None:
            block_rows = min(fitting, max(fitting // 4, -(-self.n_rows // 2)))
        return self.slices(block_rows)

    def slices(self, size: int) -> list[slice]:
        """All rows, so many at a time, never of two parts."""
        size = min(size, self._block_rows or size)
        parts = map(slice, self._offsets[:-1], self._offsets[1:])
        return [rows for part in parts for rows in _cut_up(part, size)]

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """Keep the worker threads at hand, and BLAS on one thread in each of them."""
        with blas().limit(limits=1, user_api="blas"):
            if self.threads == 1 or len(self.blocks) == 1:
                yield
                return
            # One thread less than asked for: the calling one works too.
            self._pool = workers(min(self.threads, len(self.blocks)) - 1)
            try:
                yield
            finally:
                self._pool = None

    @property
    def is_small(self) -> bool:
        """Whether a thread has read all rows in memory about as soon as another one is awake."""
        is_cut = self._streamed or self._block_rows is not None
        return self.n_rows * self.n_dims <= _SMALL and not is_cut

    @property
    def is_streamed(self) -> bool:
        """Whether rows are read from somewhere else than memory."""
        return self._streamed

    @contextmanager
    def by_one_thread(self) -> Iterator[None]:
        """Work on rows without the worker threads, for callers that have their own."""
        pool, self._pool = self._pool, None
        try:
            yield
        finally:
            self._pool = pool

    def raw(self, rows: slice) -> NDArray[np.floating]:
        """The rows of a block, as they were given."""
        part = int(np.searchsorted(self._offsets, rows.start, side="right")) - 1
        offset = self._offsets[part]
        return np.asarray(self._parts[part][rows.start - offset : rows.stop - offset])

    def exact(self, raw: NDArray[np.floating]) -> Float:
        """Raw rows as the distance compares them, in float64."""
        return self.distance.points(raw.astype(np.float64))

    def row(self, index: int) -> Float:
        """One point, (n_dims,)."""
        return self.exact(self.raw(slice(index, index + 1)))[0]

    def map_rows(
        self,
        work: Callable[[slice, NDArray[np.floating]], Result],
        blocks: Sequence[slice] | None = None,
        alone: bool = False,
    ) -> Iterator[Result]:
        """`work` on blocks and their raw rows, results in the order of the rows.

        Parameters
        ----------
        work
            What to do.
        blocks
            Slices of rows; None for all.
        alone
            Whether this thread does it without the others.
        """
        blocks = self.blocks if blocks is None else blocks
        loaded = self._read_ahead(blocks) if self._streamed else ((b, None) for b in blocks)

        def done(block: tuple[slice, NDArray[np.floating] | None]) -> Result:
            rows, raw = block
            return work(rows, self.raw(rows) if raw is None else raw)

        if self._pool is None or len(blocks) == 1 or alone:
            yield from map(done, loaded)
        else:
            yield from in_order(self._pool, done, loaded, self.threads)

    def _read_ahead(
        self, blocks: Iterable[slice]
    ) -> Iterator[tuple[slice, NDArray[np.floating] | None]]:
        """Blocks with their rows, read by a thread that stays a few blocks ahead."""
        buffer: queue.Queue[Any] = queue.Queue(_READ_AHEAD)
        stopped = threading.Event()

        def put(item: object) -> None:
            while not stopped.is_set():
                try:
                    buffer.put(item, timeout=0.1)
                    return
                except queue.Full:
                    continue

        def read() -> None:
            try:
                for rows in blocks:
                    if stopped.is_set():
                        return
                    put((rows, np.array(self.raw(rows))))
                put(None)
            except BaseException as error:
                put(error)

        reader = threading.Thread(target=read, name="ulr-reader", daemon=True)
        reader.start()
        try:
            while (item := buffer.get()) is not None:
                if isinstance(item, BaseException):
                    raise item
                yield item
        finally:
            stopped.set()
            reader.join()


def _cut_up(rows: slice, size: int) -> Iterator[slice]:
    """Rows, so many at a time."""
    for start in range(rows.start, rows.stop, size):
        yield slice(start, min(start + size, rows.stop))
