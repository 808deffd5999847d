"""Documents as row blocks, and passes over them.

A pass applies one `Step` to every block. A step is a small immutable value: it maps a block and the
per-document state of that block to a new state and a `Summary`. Summaries are added in block order
and block boundaries depend on the documents only, so results do not depend on the thread count.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Generic, Protocol, Self, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from ulr.cores import available_cores
from ulr.errors import ArrayError
from ulr.refinement.products import Float, Labels, Single

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

    from ulr.refinement.rule import Rule

UNKNOWN, EXCLUDED = -1, -2
_BLOCK_NUMBERS = 1 << 21
_FEWEST_ROWS, _MOST_ROWS = 64, 16_384

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
    """Some consecutive documents.

    Attributes
    ----------
    start
        Position of the first one.
    documents
        (n, n_dims) as given, of any floating type.
    known
        (n,) label index, `UNKNOWN` where it is not known, `EXCLUDED` for documents that take no
        part and get no label.
    lengths
        (n,) Euclidean length of each document.
    words
        (n, n_words) sparse word counts; None without texts.
    """

    start: int
    documents: NDArray[np.floating]
    known: Labels
    lengths: Float
    words: csr_matrix | None = None

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


SummaryType = TypeVar("SummaryType", bound=Summary, covariant=True)


class Step(Protocol, Generic[SummaryType]):
    """One pass over the documents: a frozen, picklable dataclass of small arrays."""

    def __call__(self, block: Block, state: State) -> tuple[State, SummaryType]:
        """New state and summary of one block."""
        ...


class Blocks:
    """Documents in blocks, with the state of each block between passes.

    Use it as a context manager: it owns a pool of threads.

    Parameters
    ----------
    parts
        Sources of rows, one below the other; no block contains rows of two of them.
    known
        (n_documents,) label codes, see `Block.known`; all unknown by default.
    lengths
        (n_documents,) Euclidean lengths; zeros by default, before they are measured.
    words
        (n_documents, n_words) sparse word counts, where there are texts.
    rows
        Positions of the documents to use, ascending; all by default.
    n_jobs
        Number of threads; every available core by default.
    block_rows
        Documents of a block; chosen from the number of dimensions by default.
    """

    def __init__(
        self,
        parts: Sequence[VectorSource],
        known: Labels | None = None,
        lengths: Float | None = None,
        words: csr_matrix | None = None,
        *,
        rows: NDArray[np.intp] | None = None,
        n_jobs: int | None = None,
        block_rows: int | None = None,
    ) -> None:
        self.parts = list(parts)
        self.n_dims = int(parts[0].shape[1])
        self._offsets = np.cumsum([0, *(int(part.shape[0]) for part in parts)])
        n_total = int(self._offsets[-1])
        self.known = np.full(n_total, UNKNOWN, dtype=np.int32) if known is None else known
        self.lengths = np.zeros(n_total) if lengths is None else lengths
        self.words = words
        self.rows = rows
        self.n_jobs = n_jobs or available_cores()
        self.block_rows = block_rows or min(
            _MOST_ROWS, max(_FEWEST_ROWS, _BLOCK_NUMBERS // self.n_dims)
        )
        self.n_documents = n_total if rows is None else len(rows)
        self._slices = list(self._cut())
        self.states: list[State] = [{} for _ in self._slices]
        self._pool: ThreadPoolExecutor | None = None

    def _cut(self) -> Iterator[slice]:
        """Slices of positions (or of `rows`), none across two parts."""
        edges = self._offsets
        if self.rows is not None:
            edges = np.searchsorted(self.rows, edges)
        for first, last in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
            for start in range(first, last, self.block_rows):
                yield slice(start, min(start + self.block_rows, last))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def restart(self, known: Labels) -> None:
        """Forget the state, for another refinement of the same documents."""
        self.known = known
        self.states = [{} for _ in self._slices]

    def close(self) -> None:
        """Stop the threads; the blocks can still be used, and start them again."""
        if self._pool is not None:
            self._pool.shutdown()
            self._pool = None

    @property
    def codes(self) -> Labels:
        """(n_documents,) label codes of the documents in use, see `Block.known`."""
        return self.known if self.rows is None else self.known[self.rows]

    @property
    def counts(self) -> csr_matrix | None:
        """Word counts of the documents in use."""
        if self.words is None or self.rows is None:
            return self.words
        return self.words[self.rows]

    def subset(self, rows: NDArray[np.intp]) -> Blocks:
        """Blocks of some of the documents, given by ascending positions.

        Rows of an array are gathered block by block; those of a file are read once.
        """
        if all(isinstance(part, np.ndarray) for part in self.parts):
            return Blocks(
                self.parts, self.known, self.lengths, self.words, rows=rows, n_jobs=self.n_jobs
            )
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
        if total is None:
            raise ArrayError("there are no documents.")
        return total

    def score(self, rule: Rule, n_documents: int | None = None) -> tuple[Labels, Single]:
        """Labels (n,) and scores (n, n_labels) of the first documents by a rule."""
        n = self.n_documents if n_documents is None else n_documents
        labels = np.empty(n, dtype=np.int32)
        scores = np.empty((n, rule.n_labels), dtype=np.float32)

        def apply(block: Block, _: State) -> None:
            end = block.start + len(block)
            if block.start < n:
                labels[block.start : end], scores[block.start : end] = rule.apply(block)

        for _ in self._map(apply):
            pass
        return labels, scores

    def predict(self, rule: Rule, n_documents: int) -> Labels:
        """As `score`, without keeping the scores."""
        labels = np.empty(n_documents, dtype=np.int32)

        def apply(block: Block, _: State) -> None:
            if block.start < n_documents:
                labels[block.start : block.start + len(block)] = rule.apply(block)[0]

        for _ in self._map(apply):
            pass
        return labels

    def gather(self, rows: NDArray[np.intp]) -> Single:
        """Some documents by ascending position, as float32, (n, n_dims); not to be changed."""
        first = self.parts[0]
        if (
            isinstance(first, np.ndarray)
            and first.dtype == np.float32
            and len(rows) == len(first) == len(self.known)
        ):
            return first
        if self.rows is not None:
            rows = self.rows[rows]
        gathered = np.empty((len(rows), self.n_dims), dtype=np.float32)
        edges = np.searchsorted(rows, self._offsets)
        for part, offset, begin, end in zip(
            self.parts, self._offsets[:-1], edges[:-1], edges[1:], strict=True
        ):
            wanted = rows[begin:end] - offset
            if isinstance(part, np.ndarray):
                gathered[begin:end] = part[wanted]
                continue
            for start in range(0, int(part.shape[0]), self.block_rows):
                low, high = np.searchsorted(wanted, [start, start + self.block_rows])
                if low < high:
                    block = np.asarray(part[start : start + self.block_rows])
                    gathered[begin + low : begin + high] = block[wanted[low:high] - start]
        return gathered

    def _load(self, rows: slice) -> Block:
        positions = rows if self.rows is None else self.rows[rows]
        first = rows.start if self.rows is None else int(self.rows[rows.start])
        part = int(np.searchsorted(self._offsets, first, side="right")) - 1
        offset = int(self._offsets[part])
        if isinstance(positions, slice):
            local: Any = slice(rows.start - offset, rows.stop - offset)
        else:
            local = positions - offset
        documents = np.asarray(self.parts[part][local])
        words = None if self.words is None else self.words[positions]
        return Block(rows.start, documents, self.known[positions], self.lengths[positions], words)

    def _map(self, work: Callable[[Block, State], Result]) -> Iterator[Result]:
        """`work` on every block and its state, results in block order.

        Sources other than arrays are read by the calling thread, in order and ahead of the work.
        """
        # Waking a thread takes as long as a pass over one or two blocks.
        n_threads = min(self.n_jobs, len(self._slices) // 2)
        if n_threads <= 1:
            for rows, state in zip(self._slices, self.states, strict=True):
                yield work(self._load(rows), state)
            return
        if self._pool is None:
            self._pool = ThreadPoolExecutor(n_threads, thread_name_prefix="ulr")
        in_memory = all(isinstance(part, np.ndarray) for part in self.parts)

        def load_and_work(rows: slice, state: State) -> Result:
            return work(self._load(rows), state)

        pending: deque[Future[Result]] = deque()
        try:
            for rows, state in zip(self._slices, self.states, strict=True):
                if in_memory:
                    pending.append(self._pool.submit(load_and_work, rows, state))
                else:
                    pending.append(self._pool.submit(work, self._load(rows), state))
                if len(pending) > 2 * n_threads:
                    yield pending.popleft().result()
            while pending:
                yield pending.popleft().result()
        finally:
            for future in pending:
                future.cancel()
