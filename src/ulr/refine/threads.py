"""The threads that work on row blocks, beside the calling one."""

from __future__ import annotations

import functools
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from threadpoolctl import ThreadpoolController

Result = TypeVar("Result")
Item = TypeVar("Item")


def available_cores() -> int:
    """Cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@functools.cache
def blas() -> ThreadpoolController:
    """The BLAS libraries; looking for them takes longer than refining a small set of documents."""
    return ThreadpoolController()


@functools.cache
def workers(n: int) -> ThreadPoolExecutor:
    """So many threads, kept idle for the next refinement.

    Starting and ending one takes as long as a pass over some thousand documents.
    """
    return ThreadPoolExecutor(n, "ulr")


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=workers.cache_clear)  # threads are not forked


def in_order(
    pool: ThreadPoolExecutor,
    work: Callable[[Item], Result],
    items: Iterable[Item],
    ahead: int,
) -> Iterator[Result]:
    """`work` on items that are fetched as they are needed, results in the order of the items.

    Parameters
    ----------
    pool
        Whose threads do it, beside the calling one.
    work
        What to do.
    items
        On what.
    ahead
        Items fetched before the first result is asked for.
    """
    waiting: deque[tuple[Future[Result], Item]] = deque()

    def next_result() -> Result:
        # What no other thread has begun is done here, which is sooner than waking one. So is the
        # one after it, while the next result is on its way elsewhere.
        future, item = waiting.popleft()
        if future.cancel():
            return work(item)
        if not future.done():
            for place, (other, its_item) in enumerate(waiting):
                if other.cancel():
                    done: Future[Result] = Future()
                    done.set_result(work(its_item))
                    waiting[place] = (done, its_item)
                    break
        return future.result()

    try:
        for item in items:
            waiting.append((pool.submit(work, item), item))
            del item
            if len(waiting) > ahead:
                yield next_result()
        while waiting:
            yield next_result()
    finally:
        for future, _ in waiting:
            future.cancel()
