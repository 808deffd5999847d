"""Tasks on a Dask cluster, as plain futures: no actors, no scattered data, no pinned tasks."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager
from typing import Any

from ulr import __version__
from ulr.distributed.executors import Executor, Failed, Lost, Unfit
from ulr.errors import ClusterError

_POLL_SECONDS = 1.0
_FIRST_WORKER_SECONDS = _NEXT_WORKER_SECONDS = 60


class DaskExecutor(Executor):
    """Runs tasks on the workers of a Dask cluster, including those that join later.

    Dask repeats the tasks of lost workers up to its own limit; beyond that, they are submitted
    again. If all workers are lost, tasks wait for new ones.

    Once there is a worker that does not meet what is required, tasks are restricted to all the
    others. A restricted task would wait for ever when these are lost, so it is submitted again.

    Parameters
    ----------
    address
        Address of the scheduler, such as ``tcp://10.0.0.1:8786``.
    timeout
        Seconds to wait for it.
    """

    threads = 1  # a Dask worker runs as many tasks at a time as it has threads

    def __init__(self, address: str, timeout: float = 10) -> None:
        try:
            import distributed
        except ImportError:
            raise ClusterError(
                "'distributed' is not installed; install it with: pip install 'ulr[dask]'."
            ) from None
        self._dask: Any = distributed
        self._address = address
        self._tasks: dict[Any, tuple[int, frozenset[str] | None]] = {}
        self._check: Callable[[], Any] | None = None
        self._fit, self._refused = set[str](), dict[str, str]()
        self._logger = logging.getLogger("distributed")
        self._level = self._logger.level
        self._logger.setLevel(logging.CRITICAL)  # a lost scheduler is one sentence, not a log
        try:
            self._client = self._dask.Client(address, timeout=timeout, set_as_default=False)
        except (OSError, ValueError) as error:
            self._logger.setLevel(self._level)
            raise ClusterError(f"there is no Dask scheduler at {address}: {error}.") from None
        try:
            self._client.wait_for_workers(1, timeout=_FIRST_WORKER_SECONDS)
        except TimeoutError:
            self.close()
            raise ClusterError(
                f"the cluster at {address} has no worker; start one with: dask worker {address}"
            ) from None
        if "dashboard" in self._info().get("services", {}):
            self.dashboard = self._client.dashboard_link

    @property
    def n_workers(self) -> int:
        """Number of workers that can be used at the moment."""
        return len(self._workers())

    @property
    def capacity(self) -> int:
        """Two tasks for every thread, so that a worker need not wait for its next one."""
        return 2 * sum(worker["nthreads"] for worker in self._workers().values())

    def require(self, check: Callable[[], Any]) -> None:
        """Use only workers on which a function raises no exception."""
        self._check, self._fit, self._refused = check, set(), {}
        if not self._workers() and self._refused:
            raise ClusterError(
                f"no worker at {self._address} can be used: {next(iter(self._refused.values()))}"
            )

    def _info(self) -> Any:
        with self._connected():
            return self._client.scheduler_info(n_workers=-1)

    def _workers(self) -> dict[str, Any]:
        """The workers that can be used, by address; those that are new are checked."""
        workers: dict[str, Any] = self._info()["workers"]
        if self._check is None:
            return workers
        self._fit &= workers.keys()  # one that comes back may be another
        new = [each for each in workers if each not in self._fit and each not in self._refused]
        with self._connected():
            arguments = {"workers": new, "on_error": "return"}
            found = self._client.run(_run_check, self._check, **arguments) if new else {}
        for address, error in found.items():
            if error is None:
                self._fit.add(address)
            elif not isinstance(error, OSError):  # it has not left meanwhile
                self._refuse(address, error)
        return {address: each for address, each in workers.items() if address in self._fit}

    def _refuse(self, address: str, error: Exception) -> None:
        if not isinstance(error, ClusterError):
            error = ClusterError(
                f"it cannot run ulr {__version__}: {error}. Install the same version on every "
                "worker and on the scheduler."
            )
        self._refused[address] = f"the worker at {address} is refused: {error}"
        if self.on_refused is not None:
            self.on_refused(self._refused[address])

    def _start(self, number: int, work: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
        allowed = self._wait_for_fit_workers() if self._refused else None
        with self._connected():
            restriction = None if allowed is None else list(allowed)
            future = self._client.submit(work, *arguments, pure=False, workers=restriction)
        self._tasks[future] = number, allowed

    def _wait_for_fit_workers(self) -> frozenset[str]:
        deadline = time.monotonic() + _NEXT_WORKER_SECONDS
        while not (workers := frozenset(self._workers())):
            left = self._refused.keys() & self._info()["workers"].keys()
            if left and time.monotonic() > deadline:
                raise ClusterError(
                    f"all workers at {self._address} that could be used are lost, and "
                    f"{self._refused[min(left)]}"
                )
            time.sleep(_POLL_SECONDS)
        return workers

    def _collect(self) -> list[tuple[int, Any]]:
        with self._connected(), self._client.as_current():
            futures = list(self._tasks)
            try:
                self._dask.wait(futures, timeout=_POLL_SECONDS, return_when="FIRST_COMPLETED")
            except TimeoutError:
                return self._collect_stranded()
            ended = [future for future in futures if future.done()]
            return [self._outcome(future, *self._tasks.pop(future)) for future in ended]

    def _collect_stranded(self) -> list[tuple[int, Any]]:
        """Cancel tasks that are restricted to workers which are all lost."""
        restricted = [
            (future, number, allowed)
            for future, (number, allowed) in self._tasks.items()
            if allowed is not None
        ]
        workers = self._info()["workers"] if restricted else {}
        stranded = [each for each in restricted if each[2].isdisjoint(workers)]
        for future, *_ in stranded:
            del self._tasks[future]
            future.cancel()
        return [(number, Unfit()) for _, number, _ in stranded]

    def _outcome(self, future: Any, number: int, allowed: object) -> tuple[int, Any]:
        error = future.exception()
        if error is None:
            return number, future.result()
        if isinstance(error, self._dask.scheduler.KilledWorker):
            return number, Lost()
        self._workers()
        if allowed is None and self._refused:
            return number, Unfit()  # whatever the error is, it may be that of a refused worker
        return number, Failed(error)

    @contextmanager
    def _connected(self) -> Iterator[None]:
        """Turn what Dask raises without a scheduler into one sentence."""
        try:
            yield
            lost = self._client.status not in ("running", "newly-created")
        except (CancelledError, OSError, RuntimeError):
            lost = True
        if lost:
            raise ClusterError(
                f"the Dask scheduler at {self._address} is gone; run the same command again to go "
                "on."
            )

    def close(self) -> None:
        """Disconnect; the cluster goes on, without the tasks of this client."""
        self._client.close(timeout=5)
        self._logger.setLevel(self._level)


async def _run_check(check: Callable[[], Any]) -> None:
    """Run a function in a thread of a worker, whose event loop must not wait for it."""
    await asyncio.to_thread(check)
