"""Progress of long work: one protocol from the command line and the page down to every pass."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """Receives the progress of a job. An exception that a method raises cancels the job."""

    def stage(self, name: str, total: int | None = None, unit: str = "documents") -> None:
        """A stage begins; `total` is its number of units, where known."""
        ...

    def advance(self, count: int = 1) -> None:
        """Some units of the current stage are done."""
        ...


class NoProgress:
    """Ignores all progress."""

    def stage(self, name: str, total: int | None = None, unit: str = "documents") -> None:
        """Do nothing."""

    def advance(self, count: int = 1) -> None:
        """Do nothing."""


NO_PROGRESS = NoProgress()
