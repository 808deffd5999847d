"""Results as JSON lines: a line a cell, written when it is finished and never changed."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO, Any

from ulr.errors import ExperimentError
from ulr.experiments.plan import Place


@dataclass(frozen=True)
class Cell:
    """One measurement, or why there is none.

    Attributes
    ----------
    place
        Where it belongs.
    identity
        What else decides its figures: fingerprints of the encoder and the documents, the seed, the
        version of the measurement and its settings. With the same, it is not measured again.
    about
        What a reader should know: what the encoder is and whether it stands in for the paper's, how
        much of the dataset the documents are.
    values
        Accuracies in percent, by name.
    improved
        In how many cases refinement helped, and of how many, where there are several.
    before, after
        Of a sweep: documents that are right, for every set of names.
    not_run
        Why it was not measured; empty where it was.
    seconds
        How long it took.
    """

    place: Place
    identity: Mapping[str, Any] = field(default_factory=dict)
    about: Mapping[str, Any] = field(default_factory=dict)
    values: Mapping[str, float] = field(default_factory=dict)
    improved: tuple[int, int] | None = None
    before: tuple[int, ...] = ()
    after: tuple[int, ...] = ()
    not_run: str = ""
    seconds: float = 0.0

    def as_line(self) -> str:
        """The cell in JSON, on one line, without what it has nothing of."""
        content = asdict(self)
        place = content.pop("place")
        return json.dumps(place | {key: value for key, value in content.items() if value})

    @classmethod
    def of_line(cls, line: str) -> Cell:
        """A cell of what `as_line` gave."""
        content = json.loads(line)
        place = Place(*(content.pop(name) for name in Place.__dataclass_fields__))
        for name in ("improved", "before", "after"):
            if name in content:
                content[name] = tuple(content[name])
        return cls(place, **content)


class Results:
    """The cells of a file, and where further ones are written.

    A last line that a killed process did not finish is taken away; what other lines hold is kept.
    Only one process at a time may have the file open.

    Parameters
    ----------
    path
        The file, made where there is none.

    Raises
    ------
    ExperimentError
        When a line other than the last is no cell, or another process has the file open.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._latest: dict[Place, Cell] = {}
        self._finished: dict[str, Cell] = {}
        self._file = path.open("ab+", buffering=0)
        try:
            _lock(self._file, path)
            for cell in _read(self._file, path):
                self._take(cell)
        except BaseException:
            self._file.close()
            raise

    def __enter__(self) -> Results:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    @property
    def cells(self) -> list[Cell]:
        """The latest cell of every place."""
        return list(self._latest.values())

    def finished(self, place: Place, identity: Mapping[str, Any]) -> Cell | None:
        """The cell of a place that was measured under the same identity, if there is one."""
        return self._finished.get(_key(place, identity))

    def add(self, cell: Cell) -> None:
        """Write a cell to the disk, unless it is what its place holds already.

        A reason not to run never takes the place of figures.
        """
        latest = self._latest.get(cell.place)
        if latest == cell or (cell.not_run and latest is not None and not latest.not_run):
            return
        self._file.write(cell.as_line().encode() + b"\n")
        os.fsync(self._file.fileno())
        self._take(cell)

    def _take(self, cell: Cell) -> None:
        self._latest[cell.place] = cell
        if not cell.not_run:
            self._finished[_key(cell.place, cell.identity)] = cell


def _key(place: Place, identity: Mapping[str, Any]) -> str:
    return json.dumps([asdict(place), identity], sort_keys=True)


def _lock(file: IO[bytes], path: Path) -> None:
    """Keep other processes out until the file is closed, where the system can."""
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
    """The cells of a file, after its torn end, if it has one, is taken away."""
    file.seek(0)
    content = file.read()
    whole = content.rfind(b"\n") + 1
    if whole < len(content):
        file.truncate(whole)
    for number, line in enumerate(content[:whole].splitlines(), 1):
        try:
            yield Cell.of_line(line.decode())
        except (ValueError, KeyError, TypeError, AttributeError):
            raise ExperimentError(
                f"{path} line {number} is not a result of 'ulr reproduce'; remove the line, or "
                "choose another folder with --out."
            ) from None
