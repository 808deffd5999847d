"""Progress of a job: listeners that hear it, and may cancel the job by raising an exception."""

from __future__ import annotations

from typing import Protocol

from ulr.refinement import Pass


class Listener(Protocol):
    """Hears how a job proceeds. An exception that a method raises ends the job."""

    def stage(self, name: str, total: int | None, unit: str = "documents") -> None:
        """A stage begins; `total` is its number of documents or other units, where known."""
        ...

    def advance(self, count: int) -> None:
        """Some units of the stage are done."""
        ...

    def passed(self, done: Pass) -> None:
        """A pass of the refinement is done."""
        ...


class Silent:
    """A listener that does nothing."""

    def stage(self, name: str, total: int | None, unit: str = "documents") -> None:
        """Do nothing."""

    def advance(self, count: int) -> None:
        """Do nothing."""

    def passed(self, done: Pass) -> None:
        """Do nothing."""


class SetProgress:
    """Reports the sets of an ensemble to a listener."""

    def __init__(self, listener: Listener) -> None:
        self._listener, self._started = listener, False

    def __call__(self, total: int) -> None:
        """One set is done."""
        if not self._started:
            self._listener.stage("Refining", total, "phrasings")
            self._started = True
        self._listener.advance(1)


class CalibrationProgress:
    """Reports the agreements of a calibration to a listener."""

    def __init__(self, listener: Listener) -> None:
        self._listener = listener

    def __call__(self, done: int, total: int) -> None:
        """The calibration begins, or one agreement is measured."""
        if done:
            self._listener.advance(1)
        else:
            self._listener.stage("Calibrating", total, "agreements")
