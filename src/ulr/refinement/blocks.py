"""Documents as row blocks, and passes over them.

A pass applies one `Step` to every block. A step is a small immutable value: it maps a block and the
per-document state of that block to a new state and a `Summary`. Summaries are added in block order
and block boundaries depend on the documents only, so results do not depend on the thread count.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from dataclasses import dataclass, fields
from functools import partial
from itertools import pairwise, starmap
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from ulr.cores import available_cores
from ulr.refinement.products import Float, Labels, Single

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

    from ulr.refinement.rule import Rule

UNKNOWN, EXCLUDED, UNFITTED = -1, -2, -3
_ONE_BLOCK, _BLOCK_NUMBERS = 1 << 22, 1 << 23
_MOST_ROWS = 16_384  # scores of many labels need memory too

Result = TypeVar("Result")
State = Mapping[str, NDArray[Any]]


@runtime_checkable
class VectorSource(Protocol):
    """Rows of vectors that can be sliced: an array, a memory map or a reader of a file."""

    @property
    def shape(self) -> tuple[int, ...]:
        """(n_rows, n_dims)."""
        ...

    def __getitem__(self, rows: slice, /) -> Any:
        """The rows of a slice, as an array."""
        ...


@dataclass(frozen=True, eq=False)
class Block:
    """Some consecutive documents."""

    start: int  # position of the first one
    documents: NDArray[np.floating]  # (n, n_dims) as given
    known: Labels  # (n,) label index, `UNKNOWN`, or `EXCLUDED` for documents that take no part
    lengths: Float  # (n,) Euclidean lengths
    words: csr_matrix | None = None  # (n, n_words) counts; None without texts

    def __len__(self) -> int:
        return len(self.known)

    @property
    def single(self) -> Single:
        """The documents as contiguous float32 rows."""
        return np.ascontiguousarray(self.documents, dtype=np.float32)

    def exact(self, rows: NDArray[np.intp] | slice, normalize: bool) -> Float:
        """Some documents in float64, scaled to length one if `normalize`."""
        documents = self.documents[rows].astype(np.float64)
        if normalize:
            lengths = self.lengths[rows]
            documents /= np.where(lengths > 0, lengths, 1.0)[:, None]
        return documents


@dataclass(frozen=True)
class Summary:
    """What a step reports of one block; summaries of several blocks are added field by field."""

    def __add__(self, other: Self) -> Self:
        return type(self)(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))


SummaryType = TypeVar("SummaryType", bound=Summary)
# A pass over the documents, block by block: a frozen, picklable dataclass of small arrays.
Step = Callable[[Block, State], tuple[State, SummaryType]]


class Blocks:
    """Documents in blocks, with the state of each block between passes.

    Use it as a context manager: it owns a pool of threads.
    """

    def __init__(
        self,
        parts: Sequence[VectorSource],  # one below the other; no block has rows of two of them
        known: Labels | None = None,  # (n_documents,) see `Block.known`; all unknown by default
        lengths: Float | None = None,  # (n_documents,) zeros by default, before they are measured
        words: csr_matrix | None = None,  # (n_documents, n_words) counts, where there are texts
        *,
        n_jobs: int | None = None,  # number of threads; every available core by default
        block_rows: int | None = None,  # chosen from the number of dimensions by default
    ) -> None:
        self.parts = list(parts)
        self.n_dims = int(parts[0].shape[1])
        self._offsets = np.cumsum([0, *(int(part.shape[0]) for part in parts)]).tolist()
        self.n_documents = n = self._offsets[-1]
        self.known = np.full(n, UNKNOWN, dtype=np.int32) if known is None else known
        self.lengths = np.zeros(n) if lengths is None else lengths
        self.words = words
        self.n_jobs = n_jobs or available_cores()
        copied = any(getattr(part, "dtype", None) != np.float32 for part in parts)
        self.block_rows = block_rows or _block_rows(n, self.n_dims, copied)
        self._slices = [
            slice(start, min(start + self.block_rows, last))
            for first, last in pairwise(self._offsets)
            for start in range(first, last, self.block_rows)
        ]
        self.states: list[State] = [{} for _ in self._slices]
        self._pool: ThreadPoolExecutor | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._pool is not None:
            self._pool.shutdown()
            self._pool = None

    def restarted(self, known: Labels, one_block: bool = False) -> Self:
        """The same documents without state, for a refinement with some known labels.

        With `one_block`, every part is one block, and one thread does everything.
        """
        n_jobs = 1 if one_block else self.n_jobs
        rows = self.n_documents if one_block else self.block_rows
        return type(self)(
            self.parts, known, self.lengths, self.words, n_jobs=n_jobs, block_rows=rows
        )

    @property
    def n_blocks(self) -> int:
        """Number of blocks."""
        return len(self._slices)

    @property
    def in_memory(self) -> bool:
        """Whether the documents are arrays, which threads can read at the same time."""
        return all(isinstance(part, np.ndarray) for part in self.parts)

    def subset(self, rows: NDArray[np.intp]) -> Blocks:
        """Blocks of a copy of some of the documents, given by ascending positions."""
        words = None if self.words is None else self.words[rows]
        return Blocks(
            [self.gather(rows)], self.known[rows], self.lengths[rows], words, n_jobs=self.n_jobs
        )

    def state(self, name: str) -> NDArray[Any]:
        """One array of the state, of all documents; they are its last axis."""
        return np.concatenate([state[name] for state in self.states], axis=-1)

    def run(self, step: Step[SummaryType]) -> SummaryType:
        """Apply a step to every block, keep the new states, and add the summaries."""
        total: SummaryType | None = None
        states: list[State] = []
        for state, summary in self._map(step):
            states.append(state)
            total = summary if total is None else total + summary
        self.states = states
        assert total is not None
        return total

    def score(self, rule: Rule) -> tuple[Labels, Single]:
        """Labels (n,) and scores (n, n_labels) of all documents by a rule."""
        [labels], scores = self.score_all([rule])
        return labels, scores

    def score_all(
        self, rules: Sequence[Rule], n_documents: int | None = None
    ) -> tuple[list[Labels], Single]:
        """Labels of the first documents by each of some rules, and the scores of the first rule."""
        n = self.n_documents if n_documents is None else n_documents
        labels = [np.empty(n, dtype=np.int32) for _ in rules]
        scores = np.empty((n, rules[0].n_labels), dtype=np.float32)

        def apply(block: Block, _: State) -> None:
            rows = slice(block.start, block.start + len(block))
            if block.start < n:
                labels[0][rows], scores[rows] = rules[0].apply(block)
                for found, rule in zip(labels[1:], rules[1:], strict=True):
                    found[rows] = rule.apply(block)[0]

        for _ in self._map(apply):
            pass
        return labels, scores

    def gather(self, rows: NDArray[np.intp]) -> Single:
        """Some documents by ascending position, as float32, (n, n_dims); not to be changed."""
        first = self.parts[0]
        if (
            isinstance(first, np.ndarray)
            and first.dtype == np.float32
            and len(rows) == len(first) == len(self.known)
        ):
            return first
        gathered = np.empty((len(rows), self.n_dims), dtype=np.float32)
        for block in self._slices:
            low, high = np.searchsorted(rows, [block.start, block.stop])
            if low < high:
                gathered[low:high] = self._read(block)[rows[low:high] - block.start]
        return gathered

    def _read(self, rows: slice) -> NDArray[np.floating]:
        """The documents of one block."""
        number = bisect_right(self._offsets, rows.start) - 1
        offset = self._offsets[number]
        return np.asarray(self.parts[number][rows.start - offset : rows.stop - offset])

    def _load(self, rows: slice) -> Block:
        words = None if self.words is None else self.words[rows]
        return Block(rows.start, self._read(rows), self.known[rows], self.lengths[rows], words)

    def _map(self, work: Callable[[Block, State], Result]) -> Iterator[Result]:
        """`work` on every block and its state, results in block order.

        Sources other than arrays are read by the calling thread, in order and ahead of the work.
        """

        def load_and_work(rows: slice, state: State) -> Result:
            return work(self._load(rows), state)

        blocks = zip(self._slices, self.states, strict=True)
        n_threads = min(self.n_jobs, self.n_blocks)
        if n_threads == 1:
            yield from starmap(load_and_work, blocks)
            return
        if self._pool is None:
            self._pool = ThreadPoolExecutor(n_threads, thread_name_prefix="ulr")
        calls: Iterator[Callable[[], Result]]
        if self.in_memory:
            calls = (partial(load_and_work, rows, state) for rows, state in blocks)
        else:
            calls = (partial(work, self._load(rows), state) for rows, state in blocks)
        yield from run_ahead(self._pool, calls, 2 * n_threads)


def _block_rows(n_documents: int, n_dims: int, copied: bool) -> int:
    """Rows of a block, which are half as many where they are copied to become float32.

    There is a power of two of equal blocks, so that threads have equal work. Few large blocks are
    faster than many small ones, and a few documents are faster on one thread.
    """
    if n_documents * n_dims <= _ONE_BLOCK:
        return min(max(n_documents, 1), _MOST_ROWS)
    most = _BLOCK_NUMBERS // 2 if copied else _BLOCK_NUMBERS
    n_blocks = 2
    while n_documents * n_dims > n_blocks * most or n_documents > n_blocks * _MOST_ROWS:
        n_blocks *= 2
    return -(-n_documents // n_blocks)


def run_ahead(pool: Executor, calls: Iterable[Callable[[], Result]], most: int) -> Iterator[Result]:
    """Results of calls in their order; at most some calls are made ahead of their use."""
    pending: deque[Future[Result]] = deque()
    try:
        for call in calls:
            pending.append(pool.submit(call))
            if len(pending) > most:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()
    finally:
        for future in pending:
            future.cancel()
