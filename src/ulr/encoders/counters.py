"""A counter that several threads may increase."""

from __future__ import annotations

import threading
from typing import Any


class Counter:
    """A number that threads add to; ``+=`` on an attribute loses some of their additions.

    Parameters
    ----------
    value
        The number to start from.
    """

    def __init__(self, value: int = 0) -> None:
        self._value = value
        self._lock = threading.Lock()

    @property
    def value(self) -> int:
        """The number so far."""
        return self._value

    def add(self, number: int) -> None:
        """Increase the value."""
        with self._lock:
            self._value += number

    def __reduce__(self) -> tuple[Any, ...]:
        return Counter, (self._value,)  # a lock cannot be pickled
