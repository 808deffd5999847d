"""Tasks on a Dask cluster, as plain futures: no actors, no scattered data, no pinned tasks."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager
from typing import Any

from ulr import __version__
from ulr.distributed.executors import Executor, Failed, Lost
from ulr.errors import ClusterError

_POLL_SECONDS = 1.0
_FIRST_WORKER_SECONDS = 60


class DaskExecutor(Executor):
    """Runs tasks on the workers of a Dask cluster, including those that join later.

    Dask repeats the tasks of lost workers up to its own limit; beyond that, they are submitted
    again. If all workers are lost, tasks wait for new ones.

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
        self._address, self._numbers = address, dict[Any, int]()
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
        """Number of workers at the moment."""
        return len(self._info()["workers"])

    @property
    def capacity(self) -> int:
        """Two tasks for every thread, so that a worker need not wait for its next one."""
        return 2 * sum(worker["nthreads"] for worker in self._info()["workers"].values())

    def _info(self) -> Any:
        with self._connected():
            return self._client.scheduler_info(n_workers=-1)

    def _start(self, number: int, work: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
        with self._connected():
            self._numbers[self._client.submit(work, *arguments, pure=False)] = number

    def _collect(self) -> list[tuple[int, Any]]:
        with self._connected(), self._client.as_current():
            futures = list(self._numbers)
            try:
                self._dask.wait(futures, timeout=_POLL_SECONDS, return_when="FIRST_COMPLETED")
            except TimeoutError:
                return []
            ended = [future for future in futures if future.done()]
            return [(self._numbers.pop(future), self._outcome(future)) for future in ended]

    def _outcome(self, future: Any) -> Any:
        error = future.exception()
        if error is None:
            return future.result()
        if isinstance(error, self._dask.scheduler.KilledWorker):
            return Lost()
        if isinstance(error, ImportError | AttributeError):
            error = ClusterError(
                f"a worker cannot run ulr {__version__}: {error}. Install the same version on "
                "every worker and on the scheduler."
            )
        return Failed(error)

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
