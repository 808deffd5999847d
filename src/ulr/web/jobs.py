"""Background jobs: a few threads, progress that can be asked for, and cancellation."""

from __future__ import annotations

import logging
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from threading import Event
from typing import Literal

from ulr.errors import UlrError
from ulr.refinement import Pass

State = Literal["waiting", "running", "done", "failed", "cancelled"]
_log = logging.getLogger(__name__)


class Cancelled(Exception):
    """Raised inside a job that was cancelled."""


@dataclass(frozen=True)
class Progress:
    """How far a job is.

    Attributes
    ----------
    state
        What it is doing.
    stage, done, total, unit
        Name of the stage, units done, all units (None if unknown), and what they are.
    error
        One sentence if it failed.
    """

    state: State = "waiting"
    stage: str = "Waiting"
    done: int = 0
    total: int | None = None
    unit: str = "documents"
    error: str | None = None


class Job:
    """One job; a `ulr.jobs.Listener` that ends the job when it was cancelled."""

    def __init__(self) -> None:
        self.progress = Progress()
        self._cancelled = Event()

    @property
    def is_active(self) -> bool:
        """Whether it is waiting or running."""
        return self.progress.state in ("waiting", "running")

    def cancel(self) -> None:
        """End the job as soon as it next reports progress."""
        self._cancelled.set()

    def check(self) -> None:
        """Raise `Cancelled` if the job was cancelled."""
        if self._cancelled.is_set():
            raise Cancelled

    def stage(self, name: str, total: int | None, unit: str = "documents") -> None:
        """A stage begins."""
        self.check()
        self.progress = Progress("running", name, 0, total, unit)

    def advance(self, count: int) -> None:
        """Some units of the stage are done."""
        self.check()
        self.progress = replace(self.progress, done=self.progress.done + count)

    def passed(self, done: Pass) -> None:
        """A pass of the refinement is done."""
        self.advance(1)

    def run(self, work: Callable[[Job], None]) -> None:
        """Do the work, and note how it ended."""
        state: State = "failed"
        error = None
        try:
            self.check()
            work(self)
            state = "done"
        except Cancelled:
            state = "cancelled"
        except UlrError as problem:
            error = str(problem)
        except MemoryError:
            error = "there is not enough memory for this."
        except Exception:
            _log.exception("a job failed")
            error = "something went wrong on the server; its log has the details."
        self.progress = replace(self.progress, state=state, error=error)


class Jobs:
    """A pool of threads for jobs."""

    def __init__(self, workers: int) -> None:
        self._pool = ThreadPoolExecutor(workers, thread_name_prefix="ulr-job")
        self._running: dict[Job, Future[None]] = {}

    def start(self, job: Job, work: Callable[[Job], None]) -> None:
        """Run a job when a thread is free."""
        future = self._pool.submit(job.run, work)
        self._running[job] = future
        future.add_done_callback(lambda _: self._running.pop(job, None))

    def close(self) -> None:
        """Cancel all jobs and wait until they have ended."""
        for job in list(self._running):
            job.cancel()
        self._pool.shutdown()
