"""Background jobs: progress that can be asked for, and cancellation."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from threading import Event
from typing import Literal

from ulr.errors import UlrError

State = Literal["waiting", "running", "done", "failed", "cancelled"]
_log = logging.getLogger(__name__)


class Cancelled(Exception):
    """Raised inside a job that was cancelled."""


@dataclass(frozen=True)
class JobState:
    """How far a job is."""

    state: State = "waiting"
    stage: str = "Waiting"
    done: int = 0
    total: int | None = None  # units of the stage, where known
    unit: str = "documents"
    error: str | None = None  # one sentence if it failed


class Job:
    """One job: a `ulr.progress.Progress` that ends it after a cancellation."""

    def __init__(self) -> None:
        self.state = JobState()
        self._cancelled = Event()

    @property
    def is_active(self) -> bool:
        """Whether it is waiting or running."""
        return self.state.state in ("waiting", "running")

    def cancel(self) -> None:
        """End the job as soon as it next reports progress."""
        self._cancelled.set()

    def check(self) -> None:
        """Raise `Cancelled` if the job was cancelled."""
        if self._cancelled.is_set():
            raise Cancelled

    def stage(self, name: str, total: int | None = None, unit: str = "documents") -> None:
        """A stage begins."""
        self.check()
        self.state = JobState("running", name, 0, total, unit)

    def advance(self, count: int = 1) -> None:
        """Some units of the stage are done."""
        self.check()
        self.state = replace(self.state, done=self.state.done + count)

    def run(self, work: Callable[[Job], None]) -> None:
        """Do the work, and note how it ended."""
        state: State = "failed"
        error = None
        try:
            self.stage("Starting")
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
        self.state = replace(self.state, state=state, error=error)
