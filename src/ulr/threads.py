"""Cores and memory of the machine, bounded look-ahead, and BLAS on the calling thread only."""

from __future__ import annotations

import os
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from typing import Any, TypeVar

Result = TypeVar("Result")


def available_cores() -> int:
    """Cores available to this process, at least one.

    The CPU affinity of the process, the CPU quota of its container (cgroup) and the environment
    variable ``LOKY_MAX_CPU_COUNT`` are respected.
    """
    import joblib  # on use: ``import ulr`` stays light

    return int(joblib.cpu_count())


def machine_memory() -> float:
    """Bytes of memory of this machine; infinite where the system does not say."""
    try:
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, ValueError, OSError):
        return float("inf")


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


class _BlasLimit:
    """Counts its users, so that the last of several concurrent ones restores the old limit.

    Since version 3.8, threadpoolctl ignores a limit of OpenBLAS that is set or restored by another
    thread than the first one that ever set a limit, so control is taken before each of both.
    """

    def __init__(self) -> None:
        self._lock, self._users = threading.Lock(), 0
        self._libraries: Any = None
        self._with_scipy = False
        self._limiter: Any = None

    def _find_libraries(self) -> None:
        """Find the libraries with threads, again only when SciPy has loaded a BLAS of its own.

        That takes longer than to classify a text, and so does the import of `scipy.linalg`.
        """
        with_scipy = "scipy.linalg" in sys.modules
        if self._libraries is None or with_scipy != self._with_scipy:
            from threadpoolctl import ThreadpoolController

            self._libraries, self._with_scipy = ThreadpoolController(), with_scipy

    @contextmanager
    def __call__(self) -> Iterator[None]:
        with self._lock:
            if self._users == 0:
                _release_blas()
                self._find_libraries()
                self._limiter = self._libraries.limit(limits=1, user_api="blas")
            self._users += 1
        try:
            yield
        finally:
            with self._lock:
                self._users -= 1
                if self._users == 0:
                    _release_blas()
                    self._limiter.restore_original_limits()
                    _release_blas()


def _release_blas() -> None:
    """Let any thread set the limit of OpenBLAS."""
    import threadpoolctl

    release = getattr(threadpoolctl.OpenBLASController, "clear_controlling_thread", None)
    if release is not None:
        release(force=True)


# Blocks of rows are spread over threads; BLAS threads on top of them were disastrous on loaded
# machines (docs/performance.md).
single_threaded_blas = _BlasLimit()
