"""Executors run a function over items: in this process, in local processes, or on a cluster.

An engine starts tasks and collects their results. Order, repetition of lost tasks and limits are
the same for every engine and are implemented once, in `Executor.map`.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from multiprocessing import connection
from multiprocessing.process import BaseProcess
from typing import Any, Self

from ulr.cores import available_cores
from ulr.errors import ClusterError

_MOST_ATTEMPTS = 4


class Lost:
    """Outcome of a task whose worker died."""


class Unfit:
    """Outcome of a task that began on a worker which cannot do it."""


@dataclass(frozen=True)
class Failed:
    """Outcome of a task that raised an exception."""

    error: Exception


class Executor(ABC):
    """Runs a function over items, each at least once.

    Attributes
    ----------
    dashboard
        Address of a page about the cluster; None without one.
    threads
        Number of threads that a task may use; None to leave that to the process.
    on_refused
        Called with a sentence about every worker that is refused.
    """

    dashboard: str | None = None
    threads: int | None = None
    on_refused: Callable[[str], None] | None = None

    @property
    @abstractmethod
    def n_workers(self) -> int:
        """Number of workers at the moment."""

    @property
    def capacity(self) -> int:
        """Most tasks to have started at a time."""
        return self.n_workers

    @abstractmethod
    def _start(self, number: int, work: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
        """Start a task."""

    @abstractmethod
    def _collect(self) -> list[tuple[int, Any]]:
        """Wait a while for tasks; returns the number and the outcome of those that ended."""

    def require(self, check: Callable[[], Any]) -> None:  # noqa: B027 - here every process is fit
        """Use only workers on which a function raises no exception.

        Raises
        ------
        ClusterError
            When there is no such worker.
        """

    def close(self) -> None:  # noqa: B027 - not every engine has something to stop
        """Stop what this executor started; tasks that still run are abandoned."""

    def map(
        self,
        work: Callable[..., Any],
        items: Iterable[Any],
        *common: Any,
        on_result: Callable[[Any], None] | None = None,
    ) -> Iterator[Any]:
        """Call ``work(item, *common)`` for every item, and yield the results in order.

        A task whose worker dies is run again, so `work` must give the same result each time.

        Parameters
        ----------
        work
            A function of a module.
        items
            The items; they are taken one by one, when a worker is free.
        common
            Further arguments, small since they are sent with every item.
        on_result
            Called with every result as soon as it is there, in no particular order.

        Raises
        ------
        ClusterError
            When an item was lost too often, or the cluster cannot be reached.
        """
        source = enumerate(items)
        again: deque[tuple[int, Any]] = deque()
        started: dict[int, Any] = {}
        losses: dict[int, int] = {}
        done: dict[int, Any] = {}
        position = 0
        while True:
            for _ in range(max(1, self.capacity) - len(started)):
                number, item = again.popleft() if again else next(source, (-1, None))
                if number < 0:
                    break
                started[number] = item
                self._start(number, work, (item, *common))
            if not started:
                return
            for number, outcome in self._collect():
                item = started.pop(number)
                if isinstance(outcome, Failed):
                    raise outcome.error
                if isinstance(outcome, Unfit):
                    again.append((number, item))
                    continue
                if isinstance(outcome, Lost):
                    losses[number] = losses.get(number, 0) + 1
                    if losses[number] == _MOST_ATTEMPTS:
                        raise ClusterError(
                            f"{_MOST_ATTEMPTS} workers died at {getattr(item, 'name', item)}; "
                            "they may need more memory, or the file smaller parts."
                        )
                    again.append((number, item))
                    continue
                if on_result is not None:
                    on_result(outcome)
                done[number] = outcome
            while position in done:
                yield done.pop(position)
                position += 1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class SerialExecutor(Executor):
    """Runs tasks one after the other in this process."""

    @property
    def n_workers(self) -> int:
        """One."""
        return 1

    def _start(self, number: int, work: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
        self._task = number, work, arguments

    def _collect(self) -> list[tuple[int, Any]]:
        number, work, arguments = self._task
        return [(number, work(*arguments))]


class ProcessExecutor(Executor):
    """Runs tasks in processes of this machine; a dead process is replaced.

    The processes of `concurrent.futures` are not used: one dead process ends all of them, and they
    stay behind if this process is killed.

    Parameters
    ----------
    n_workers
        Number of processes; None for one per core.
    """

    def __init__(self, n_workers: int | None = None) -> None:
        if n_workers is not None and n_workers < 1:
            raise ClusterError(f"the number of workers must be positive; got {n_workers}.")
        self._n_workers = n_workers or available_cores()
        self.threads = max(1, available_cores() // self._n_workers)
        self._idle = [_Process() for _ in range(self._n_workers)]
        self._busy: dict[connection.Connection, tuple[int, _Process]] = {}

    @property
    def n_workers(self) -> int:
        """Number of processes."""
        return self._n_workers

    @property
    def pids(self) -> list[int]:
        """Process ids of the workers, those with a task first."""
        processes = [process for _, process in self._busy.values()] + self._idle
        return [process.pid for process in processes]

    def _start(self, number: int, work: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
        while True:
            process = self._idle.pop() if self._idle else _Process()
            try:
                process.connection.send((work, arguments))
            except OSError:  # it died while it was idle
                process.stop()
                continue
            self._busy[process.connection] = number, process
            return

    def _collect(self) -> list[tuple[int, Any]]:
        ended = []
        for ready in connection.wait(list(self._busy)):
            number, process = self._busy.pop(ready)  # type: ignore[call-overload]
            try:
                ended.append((number, process.connection.recv()))
                self._idle.append(process)
            except (EOFError, OSError):
                process.stop()
                ended.append((number, Lost()))
        return ended

    def close(self) -> None:
        """End the processes."""
        for process in [*self._idle, *(process for _, process in self._busy.values())]:
            process.stop()
        self._idle, self._busy = [], {}


class _Process:
    """A worker process, and the connection to it."""

    def __init__(self) -> None:
        context = multiprocessing.get_context("spawn")
        self.connection, other = context.Pipe()
        self._process: BaseProcess = context.Process(target=_serve, args=(other,), daemon=True)
        self._process.start()
        other.close()
        self.pid = self._process.pid or 0

    def stop(self) -> None:
        self.connection.close()
        self._process.kill()
        self._process.join()


def _serve(tasks: connection.Connection) -> None:
    """Run tasks until the driver closes the connection or dies."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the driver, which ends this
    threading.Thread(target=_exit_with_parent, daemon=True).start()
    with contextlib.suppress(EOFError, OSError):
        while True:
            work, arguments = tasks.recv()
            try:
                outcome = work(*arguments)
            except Exception as error:
                outcome = Failed(error)
            tasks.send(outcome)


def _exit_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
    os._exit(1)


def open_executor(cluster: str, n_workers: int | None = None) -> Executor:
    """The executor for ``local`` or for the address of a Dask scheduler.

    Parameters
    ----------
    cluster
        ``local``, or an address such as ``tcp://10.0.0.1:8786``.
    n_workers
        Number of local processes.
    """
    if cluster == "local":
        return ProcessExecutor(n_workers)
    from ulr.distributed.dask import DaskExecutor

    if n_workers is not None:
        raise ClusterError("the number of workers is that of the cluster; leave --workers out.")
    return DaskExecutor(cluster)
