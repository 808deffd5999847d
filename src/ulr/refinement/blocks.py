"""Documents as row blocks, and passes over them.

A pass applies one `Step` to every block. A step is a small immutable value: it maps a block and the
per-document state of that block to a new state and a `Summary`. Summaries are added in block order
and block boundaries depend on the documents only, so results do not depend on the thread count.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, fields
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ulr.refinement.distances import Float, Labels, Rows, Single
from ulr.threads import available_cores, run_ahead

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

    from ulr.refinement.result import Rule

UNKNOWN, EXCLUDED = -1, -2
# Few large blocks are faster than many small ones; few documents are faster on one thread.
_ONE_BLOCK, _BLOCK_NUMBERS = 1 << 22, 1 << 23
_MOST_ROWS = 16_384  # scores of many labels need memory too
_MOST_SCORES = 1 << 22  # of a block; a step has about ten arrays of them at once

State = Mapping[str, NDArray[Any]]


@dataclass(frozen=True, eq=False)
class Block:
    """Some consecutive documents."""

    start: int  # position of the first one
    documents: NDArray[np.floating]  # (n, n_dims) as given
    known: Labels  # (n,) label index, `UNKNOWN`, or `EXCLUDED` for documents that take no part
    lengths: Float  # (n,) Euclidean lengths
    words: csr_matrix | None = None  # (n, n_words) counts; None without texts

    @property
    def single(self) -> Single:
        """The documents as contiguous float32 rows."""
        return np.ascontiguousarray(self.documents, dtype=np.float32)

    def take(self, rows: Rows) -> Block:
        """Some of the documents, by position in the block, without their words."""
        return Block(self.start, self.documents[rows], self.known[rows], self.lengths[rows])


@dataclass(frozen=True, eq=False)
class Summary:
    """Sums over the documents of one or several blocks; what a step does not measure stays 0."""

    sizes: Any = 0.0  # (n_labels,) documents, or their shares, of each label
    sums: Any = 0.0  # (n_labels, n_dims) of these documents
    objective: float = 0.0  # what the method minimises
    changed: int = 0  # documents whose label is another one than in the pass before
    scored: int = 0  # documents that were compared with all labels
    lead: float = 0.0  # leads of the best score over the second
    differing: int = 0  # documents whose label is not the nearest anchor
    counts: Any = 0.0  # (n_labels,) documents by their best label, without size prior
    total: Any = 0.0  # (n_dims,) all documents
    products: Any = 0.0  # (n_dims, n_dims) products of all pairs of dimensions
    agreeing: Any = 0.0  # (n_splits,) documents of the same label in both halves of a split

    def __add__(self, other: Summary) -> Summary:
        return Summary(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))


# A pass over the documents, block by block: a frozen, picklable dataclass of small arrays.
Step = Callable[[Block, State], tuple[State, Summary]]


class Blocks:
    """Documents in blocks, with the state of each block between passes."""

    def __init__(
        self,
        parts: Sequence[NDArray[np.floating]],  # one below the other; no block has rows of two
        known: Labels | None = None,  # (n_documents,) see `Block.known`; all unknown by default
        lengths: Float | None = None,  # (n_documents,) zeros by default, before they are measured
        words: csr_matrix | None = None,  # (n_documents, n_words) counts, where there are texts
        *,
        n_jobs: int | None = None,  # number of threads; every available core by default
        block_rows: int | None = None,  # chosen from the number of dimensions and labels by default
        n_labels: int = 1,
    ) -> None:
        self.parts = list(parts)
        self.n_dims = int(parts[0].shape[1])
        self._offsets = np.cumsum([0, *(len(part) for part in parts)]).tolist()
        self.n_documents = n = self._offsets[-1]
        self.known = np.full(n, UNKNOWN, dtype=np.int32) if known is None else known
        self.lengths = np.zeros(n) if lengths is None else lengths
        self.words = words
        self.n_jobs = n_jobs or available_cores()
        most_rows = max(1, min(_MOST_ROWS, _MOST_SCORES // n_labels))
        if block_rows is None and n * self.n_dims <= _ONE_BLOCK:
            block_rows = min(max(n, 1), most_rows)
        elif block_rows is None:
            copied = any(part.dtype != np.float32 for part in parts)
            most = _BLOCK_NUMBERS // 2 if copied else _BLOCK_NUMBERS
            n_blocks = 2  # a power of two of equal blocks gives threads equal work
            while n * self.n_dims > n_blocks * most or n > n_blocks * most_rows:
                n_blocks *= 2
            block_rows = -(-n // n_blocks)
        self.block_rows = block_rows
        self._slices = [
            slice(start, min(start + block_rows, last))
            for first, last in pairwise(self._offsets)
            for start in range(first, last, block_rows)
        ]
        self.n_blocks = len(self._slices)
        self._states: list[State] = [{} for _ in self._slices]

    def run(self, step: Step) -> Summary:
        """Apply a step to every block, keep the new states, and add the summaries."""
        n_threads = min(self.n_jobs, self.n_blocks)
        total: Summary | None = None
        blocks = map(self._block, self._slices)
        with ExitStack() as stack:
            results: Iterable[tuple[State, Summary]] = map(step, blocks, self._states)
            if n_threads > 1:
                pool = stack.enter_context(ThreadPoolExecutor(n_threads, thread_name_prefix="ulr"))
                calls = map(partial, [step] * self.n_blocks, blocks, self._states)
                results = run_ahead(pool, calls, 2 * n_threads)
            for number, (state, summary) in enumerate(results):
                self._states[number] = state  # the old one is not kept until the pass is over
                total = summary if total is None else total + summary
        assert total is not None
        return total

    def clear_states(self) -> None:
        """Forget the per-document state, which is large with many labels."""
        self._states = [{} for _ in self._slices]

    def score_all(
        self, rules: Sequence[Rule], n_documents: int | None = None
    ) -> tuple[list[Labels], Single]:
        """Labels of the first documents by each of some rules, and the scores of the first rule."""
        n = self.n_documents if n_documents is None else n_documents
        labels = [np.empty(n, dtype=np.int32) for _ in rules]
        scores = np.empty((n, rules[0].n_labels), dtype=np.float32)

        def apply(block: Block, state: State) -> tuple[State, Summary]:
            rows = slice(block.start, block.start + len(block.known))
            if block.start < n:
                labels[0][rows], scores[rows] = rules[0].apply(block)
                for found, rule in zip(labels[1:], rules[1:], strict=True):
                    found[rows] = rule.apply(block)[0]
            return state, Summary()

        self.run(apply)
        return labels, scores

    def gather(self, rows: Rows) -> Single:
        """Some documents by ascending position, as float32, (n, n_dims); not to be changed."""
        if len(rows) == len(self.parts[0]) == self.n_documents:
            return np.ascontiguousarray(self.parts[0], dtype=np.float32)
        gathered = np.empty((len(rows), self.n_dims), dtype=np.float32)
        for part, (first, last) in zip(self.parts, pairwise(self._offsets), strict=True):
            low, high = np.searchsorted(rows, [first, last])
            gathered[low:high] = part[rows[low:high] - first]
        return gathered

    def _block(self, rows: slice) -> Block:
        number = bisect_right(self._offsets, rows.start) - 1
        first = self._offsets[number]
        documents = np.asarray(self.parts[number][rows.start - first : rows.stop - first])
        words = None if self.words is None else self.words[rows]
        return Block(rows.start, documents, self.known[rows], self.lengths[rows], words)
