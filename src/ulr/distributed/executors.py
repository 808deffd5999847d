"""Workers of a job: this process, local processes or a Dask cluster, by `concurrent.futures`.

Order and repetition of tasks are the same for all of them, in `Workers.map`.
"""

from __future__ import annotations

import asyncio
import logging
import multiprocessing
import os
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    CancelledError,
    Future,
    ProcessPoolExecutor,
    wait,
)
from contextlib import contextmanager
from multiprocessing.connection import Connection
from typing import Any, Self
from weakref import WeakKeyDictionary

from ulr import __version__
from ulr.errors import ClusterError, require
from ulr.threads import available_cores, machine_memory

_MOST_ATTEMPTS = 3
_POLL_SECONDS = 1.0
_WORKER_SECONDS = 60
_WORKERS_PER_CORE = 4  # more of them only wait for each other
_WORKER_BYTES = 1 << 29  # that a process with the fast encoder takes

Task = Callable[..., Any]


class Workers:
    """Runs tasks one after the other in this process; subclasses have workers elsewhere.

    `threads` is the number of threads that a task may use, None to leave it to the process;
    `on_refused` is called with a sentence about every worker that cannot be used.
    """

    dashboard: str | None = None
    threads: int | None = None
    on_refused: Callable[[str], None] | None = None
    lost_errors: tuple[type[BaseException], ...] = (BrokenExecutor,)

    @property
    def n_workers(self) -> int:
        """Workers at the moment."""
        return 1

    @property
    def capacity(self) -> int:
        """Most tasks to have submitted at a time."""
        return self.n_workers

    def require(self, check: Task) -> None:
        """Use only workers on which a function raises no error; an error if there is none."""

    def submit(self, work: Task, *arguments: Any) -> Future[Any]:
        """Run a task; here at once, so that Ctrl-C ends it."""
        future: Future[Any] = Future()
        future.set_result(work(*arguments))
        return future

    def wait(self, futures: Collection[Future[Any]]) -> Collection[Future[Any]]:
        """Wait a while; returns the tasks that ended or were cancelled."""
        return wait(futures, return_when=FIRST_COMPLETED).done

    def close(self) -> None:
        """End the workers; tasks that still run are abandoned."""

    def map(self, work: Task, items: Iterable[Any], *common: Any) -> Iterator[Any]:
        """Results of ``work(item, *common)`` in the order of the items.

        Items are taken when a worker is free. A task whose worker died runs again, so `work` must do
        the same each time.
        """
        source, again = iter(enumerate(items)), deque[tuple[int, Any]]()
        running: dict[Future[Any], tuple[int, Any]] = {}
        losses: dict[int, int] = {}
        done: dict[int, Any] = {}
        position = 0
        while True:
            while len(running) < max(1, self.capacity):
                task = again.popleft() if again else next(source, None)
                if task is None:
                    break
                running[self.submit(work, task[1], *common)] = task
            if not running:
                return
            for future in self.wait(running):
                number, item = running.pop(future)
                if future.cancelled():
                    again.append((number, item))
                elif isinstance(future.exception(), self.lost_errors):
                    losses[number] = losses.get(number, 0) + 1
                    if losses[number] == _MOST_ATTEMPTS:
                        raise ClusterError(
                            f"{_MOST_ATTEMPTS} workers died at {getattr(item, 'name', item)}; they "
                            "may need more memory, or the file smaller parts."
                        )
                    again.append((number, item))
                else:
                    done[number] = future.result()
            while position in done:
                yield done.pop(position)
                position += 1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _LocalWorkers(Workers):
    """Processes of this machine, each with a pool of its own: a dead one breaks its whole pool."""

    def __init__(self, n_workers: int | None = None) -> None:
        if n_workers is not None and n_workers < 1:
            raise ClusterError(f"the number of workers must be positive; got {n_workers}.")
        self._n_workers = min(n_workers or available_cores(), _most_workers())
        self.threads = max(1, available_cores() // self._n_workers)
        self._context = multiprocessing.get_context("spawn")
        # All workers read from this pipe. It ends when this process closes it or is killed.
        self._end_of_driver, self._driver = self._context.Pipe(duplex=False)
        self._idle = [self._new_pool() for _ in range(self._n_workers)]
        self._busy: dict[Future[Any], ProcessPoolExecutor] = {}

    @property
    def n_workers(self) -> int:
        return self._n_workers

    def submit(self, work: Task, *arguments: Any) -> Future[Any]:
        while True:
            pool = self._idle.pop() if self._idle else self._new_pool()
            try:
                future = pool.submit(work, *arguments)
            except BrokenExecutor:  # its process died
                continue
            self._busy[future] = pool
            return future

    def _new_pool(self) -> ProcessPoolExecutor:
        arguments = (self._end_of_driver,)
        pool = ProcessPoolExecutor(1, self._context, _exit_with_driver, initargs=arguments)
        pool.submit(_do_nothing)  # the process starts now, beside the others
        return pool

    def wait(self, futures: Collection[Future[Any]]) -> Collection[Future[Any]]:
        ended = super().wait(futures)
        self._idle += map(self._busy.pop, ended)
        return ended

    def close(self) -> None:
        self._driver.close()
        for pool in (*self._idle, *self._busy.values()):
            pool.shutdown(cancel_futures=True)
        self._end_of_driver.close()


def _most_workers() -> int:
    """Local processes that the cores and the memory of this machine have use for."""
    by_memory = machine_memory() // _WORKER_BYTES
    return int(max(1, min(_WORKERS_PER_CORE * available_cores(), by_memory)))


def _exit_with_driver(driver: Connection) -> None:
    """Prepare a worker process: Ctrl-C reaches the driver, which ends this process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def wait_for_end() -> None:
        driver.poll(None)
        os._exit(1)

    threading.Thread(target=wait_for_end, daemon=True).start()


class _DaskWorkers(Workers):
    """Workers of a Dask cluster that pass a check, including those that join later.

    Every task is restricted to the workers that can be used when it is submitted. Dask repeats tasks
    of lost workers up to its own limit; a task whose workers are all lost would wait for ever, and
    is submitted again.
    """

    threads = 1  # a Dask worker runs as many tasks at a time as it has threads

    def __init__(self, address: str, timeout: float = 10) -> None:
        distributed = require("distributed", "dask", ClusterError)
        self.lost_errors = (distributed.KilledWorker,)
        self._address = address
        self._check: Task = _do_nothing
        self._fit, self._refused = set[str](), dict[str, str]()
        self._allowed = WeakKeyDictionary[Future[Any], frozenset[str]]()
        self._logger = logging.getLogger("distributed")
        self._level = self._logger.level
        self._logger.setLevel(logging.CRITICAL)  # a lost scheduler is one sentence, not a log
        try:
            if not address.startswith(
                "inproc:"
            ):  # a client of a wrong address complains at its end
                distributed.comm.addressing.get_address_host_port(address)
            self._client: Any = distributed.Client(address, timeout=timeout, set_as_default=False)
        except (OSError, ValueError) as error:
            self._logger.setLevel(self._level)
            raise ClusterError(f"there is no Dask scheduler at {address}: {error}.") from None
        try:
            self._client.wait_for_workers(1, timeout=_WORKER_SECONDS)
        except TimeoutError:
            self.close()
            raise ClusterError(
                f"the cluster at {address} has no worker; start one with: dask worker {address}"
            ) from None
        if "dashboard" in self._info().get("services", {}):
            self.dashboard = self._client.dashboard_link

    @property
    def n_workers(self) -> int:
        return len(self._workers())

    @property
    def capacity(self) -> int:
        """Two tasks for every thread, so that a worker need not wait for its next one."""
        return sum(2 * int(worker["nthreads"]) for worker in self._workers().values())

    def require(self, check: Task) -> None:
        self._check, self._fit, self._refused = check, set(), {}
        if not self._workers() and self._refused:
            reason = next(iter(self._refused.values()))
            raise ClusterError(f"no worker at {self._address} can be used: {reason}")

    def submit(self, work: Task, *arguments: Any) -> Future[Any]:
        deadline = time.monotonic() + _WORKER_SECONDS
        while not (allowed := frozenset(self._workers())):
            left = self._refused.keys() & self._info()["workers"].keys()
            if left and time.monotonic() > deadline:
                raise ClusterError(
                    f"all workers at {self._address} that could be used are lost, and "
                    f"{self._refused[min(left)]}"
                )
            time.sleep(_POLL_SECONDS)
        with self._connected():
            executor = self._client.get_executor(pure=False, workers=list(allowed))
            future: Future[Any] = executor.submit(work, *arguments)
        self._allowed[future] = allowed
        return future

    def wait(self, futures: Collection[Future[Any]]) -> Collection[Future[Any]]:
        """Wait a while; a task whose workers are all lost is cancelled."""
        with self._connected():
            ended = wait(futures, _POLL_SECONDS, FIRST_COMPLETED).done
        if ended:
            return ended
        workers = self._info()["workers"]
        return [
            future
            for future in futures
            if self._allowed[future].isdisjoint(workers) and future.cancel()
        ]

    def _info(self) -> Any:
        with self._connected():
            return self._client.scheduler_info(n_workers=-1)

    def _workers(self) -> dict[str, Any]:
        """The workers that can be used, by address; those that are new are checked."""
        workers: dict[str, Any] = self._info()["workers"]
        self._fit &= workers.keys()  # one that comes back may be another
        new = [each for each in workers if each not in self._fit and each not in self._refused]
        with self._connected():
            arguments = {"workers": new, "on_error": "return"}
            found = self._client.run(_run_check, self._check, **arguments) if new else {}
        for address, error in found.items():
            if error is None:
                self._fit.add(address)
            elif not isinstance(error, OSError):  # it has not left meanwhile
                if not isinstance(error, ClusterError):
                    error = (
                        f"it cannot run ulr {__version__}: {error}. Install the same version on "
                        "every worker and on the scheduler."
                    )
                self._refused[address] = f"the worker at {address} is refused: {error}"
                if self.on_refused is not None:
                    self.on_refused(self._refused[address])
        return {address: each for address, each in workers.items() if address in self._fit}

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
        self._client.close(timeout=5)
        self._logger.setLevel(self._level)


async def _run_check(check: Task) -> None:
    """Run a function in a thread of a worker, whose event loop must not wait for it."""
    await asyncio.to_thread(check)


def _do_nothing() -> None:
    """A task that only needs a worker which can import this package."""


def open_workers(cluster: str | None, n_workers: int | None = None) -> Workers:
    """Workers for ``local``, the address of a Dask scheduler, or None for this process alone."""
    if cluster is None:
        return Workers()
    if cluster == "local":
        return _LocalWorkers(n_workers)
    if n_workers is not None:
        raise ClusterError("the number of workers is that of the cluster; leave --workers out.")
    return _DaskWorkers(cluster)
