"""The log of a run: a line of JSON for every step and for every validation."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from ulr.train.checkpoints import room_on_disk


class Log:
    """A file of JSON lines that can be cut back to where a checkpoint was made."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> Log:
        with room_on_disk(self._path):
            self._file = self._path.open("ab")
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def write(self, **figures: Any) -> None:
        """One line, on disk as soon as it is written."""
        with room_on_disk(self._path):
            self._file.write(json.dumps(figures).encode() + b"\n")
            self._file.flush()

    def size(self) -> int:
        """Bytes written so far, all of them safe on disk."""
        with room_on_disk(self._path):
            os.fsync(self._file.fileno())
        return self._path.stat().st_size

    def cut(self, size: int) -> None:
        """Forget what was written after the log had that size."""
        self._file.truncate(size)


def read_log(path: Path) -> list[dict[str, Any]]:
    """The lines of a log."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
