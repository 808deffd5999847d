"""The results file: one JSON line per finished cell, which is never changed."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO, Any

from ulr.errors import ExperimentError
from ulr.experiments.plan import CellKey


@dataclass(frozen=True)
class Cell:
    """One measurement, or the reason why there is none.

    Attributes
    ----------
    key
        What was measured.
    identity
        What else determines the figures: fingerprints of the encoder and the documents, the seed,
        and the versions of the measurement and of the method. A cell with the same key and
        identity is not measured again.
    about
        Description of the encoder and the documents for the report.
    values
        Accuracies in percent, by name.
    improved
        Number of cases in which refinement helped, and of all cases, where there are several.
    before, after
        Of a sweep: number of correct documents for every set of names.
    not_run
        Why it was not measured; empty where it was.
    seconds
        Duration of the measurement.
    """

    key: CellKey
    identity: Mapping[str, Any] = field(default_factory=dict)
    about: Mapping[str, Any] = field(default_factory=dict)
    values: Mapping[str, float] = field(default_factory=dict)
    improved: tuple[int, int] | None = None
    before: tuple[int, ...] = ()
    after: tuple[int, ...] = ()
    not_run: str = ""
    seconds: float = 0.0

    def as_dict(self) -> dict[str, Any]:
        """The cell for JSON, without empty fields."""
        content = asdict(self)
        key: dict[str, Any] = content.pop("key")
        return key | {name: value for name, value in content.items() if value}

    def as_line(self) -> str:
        """The cell as one line of JSON."""
        return json.dumps(self.as_dict())

    @classmethod
    def of_line(cls, line: str) -> Cell:
        """The cell of a line of `as_line`."""
        content = json.loads(line)
        key = CellKey(*(content.pop(name) for name in CellKey.__dataclass_fields__))
        for name in ("improved", "before", "after"):
            if name in content:
                content[name] = tuple(content[name])
        return cls(key, **content)


class Results:
    """The cells of a results file, to which further ones are added.

    An incomplete last line, of a killed process, is removed. The file is locked against other
    processes.

    Parameters
    ----------
    path
        The file, created if there is none.

    Raises
    ------
    ExperimentError
        When a line is not a cell, or another process has the file open.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._latest: dict[CellKey, Cell] = {}
        self._measured: dict[str, Cell] = {}
        self._file = path.open("ab+", buffering=0)
        try:
            _lock(self._file, path)
            for cell in _read(self._file, path):
                self._store(cell)
        except BaseException:
            self._file.close()
            raise

    def __enter__(self) -> Results:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    @property
    def cells(self) -> list[Cell]:
        """The latest cell of every key."""
        return list(self._latest.values())

    def find(self, key: CellKey, identity: Mapping[str, Any]) -> Cell | None:
        """The measured cell with a key and identity, if there is one."""
        return self._measured.get(_index(key, identity))

    def add(self, cell: Cell) -> None:
        """Write a cell, unless it equals the latest one of its key.

        A reason why a cell was not run never replaces figures.
        """
        latest = self._latest.get(cell.key)
        if latest == cell or (cell.not_run and latest is not None and not latest.not_run):
            return
        self._file.write(cell.as_line().encode() + b"\n")
        os.fsync(self._file.fileno())
        self._store(cell)

    def _store(self, cell: Cell) -> None:
        self._latest[cell.key] = cell
        if not cell.not_run:
            self._measured[_index(cell.key, cell.identity)] = cell


def _index(key: CellKey, identity: Mapping[str, Any]) -> str:
    return json.dumps([asdict(key), identity], sort_keys=True)


def _lock(file: IO[bytes], path: Path) -> None:
    """Lock the file until it is closed, where the system can."""
    try:
        import fcntl
    except ImportError:
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise ExperimentError(
            f"another 'ulr reproduce' is writing {path}; wait for it, or choose another folder "
            "with --out."
        ) from None


def _read(file: IO[bytes], path: Path) -> Iterable[Cell]:
    """The cells of a file; an incomplete last line is removed."""
    file.seek(0)
    content = file.read()
    complete = content.rfind(b"\n") + 1
    if complete < len(content):
        file.truncate(complete)
    for number, line in enumerate(content[:complete].splitlines(), 1):
        try:
            yield Cell.of_line(line.decode())
        except (ValueError, KeyError, TypeError, AttributeError):
            raise ExperimentError(
                f"{path} line {number} is not a result of 'ulr reproduce'; remove the line, or "
                "choose another folder with --out."
            ) from None
