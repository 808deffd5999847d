"""Cells of the tables: which there are, and the file that keeps what was measured."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from reproduction.datasets import DATASETS, ReproductionError
from reproduction.experiments import FINE_TUNED, Experiment, Line
from ulr.encoders import ENCODERS

MAIN = "main"
_LAST = ("sweep", "augmented text")  # the slowest measurements run last


class Key(NamedTuple):
    """A measurement: everything about it that a user chooses."""

    measure: str
    role: str  # of the encoder
    encoder: str  # its name; empty where there is none for the role
    dataset: str
    names: str  # ``main`` or, of Table 1, ``set 1``
    distance: str


class EncoderChoice(NamedTuple):
    """An encoder of a run, with the only distance or dataset it is for; empty for all."""

    role: str  # or `FINE_TUNED`, for one dataset
    name: str
    distance: str = ""
    dataset: str = ""


@dataclass(frozen=True)
class Cell:
    """One measurement, or the reason why there is none."""

    key: Key
    # What else determines the figures: a cell of equal key and identity is not measured again.
    identity: dict[str, Any] = field(default_factory=dict)
    about: dict[str, Any] = field(default_factory=dict)  # encoder and documents, for the report
    values: dict[str, float] = field(default_factory=dict)  # accuracies in percent
    # Of sweeps and random starts: number of correct documents in every case.
    before: Sequence[int] = ()
    after: Sequence[int] = ()
    not_run: str = ""  # why it was not measured
    seconds: float = 0.0

    @property
    def improved(self) -> tuple[int, int]:
        """The number of cases in which refinement helped, and of all cases."""
        return sum(a > b for a, b in zip(self.after, self.before, strict=True)), len(self.before)


def key_of(experiment: Experiment, line: Line, column: str, distance: str, encoder: str) -> Key:
    """The measurement of a cell of a table."""
    dataset, names = (column, MAIN) if column in DATASETS else ("agnews", column)
    return Key(line.measure, experiment.role, encoder, dataset, names, distance)


def keys_of(experiments: Iterable[Experiment], encoders: Sequence[EncoderChoice]) -> list[Key]:
    """All measurements of some experiments, once each: slow ones last, then by encoder."""
    keys = {
        key_of(experiment, line, column, distance, encoder)
        for experiment in experiments
        for distance, line in experiment.rows()
        for column in experiment.measured_columns
        for encoder in _encoders_of(experiment, line, column, distance, encoders)
    }
    rank = {choice.name: number for number, choice in enumerate(encoders)}

    def order(key: Key) -> tuple[Any, ...]:
        late = 1 + _LAST.index(key.measure) if key.measure in _LAST else 0
        return late, rank.get(key.encoder, len(rank)), list(DATASETS).index(key.dataset), key

    return sorted(keys, key=order)


def _encoders_of(
    experiment: Experiment,
    line: Line,
    column: str,
    distance: str,
    encoders: Sequence[EncoderChoice],
) -> list[str]:
    """Names of the encoders of a cell; an empty one if none was chosen."""
    role = FINE_TUNED if line.measure == FINE_TUNED else experiment.role
    own = [each for each in encoders if each.role == role and each.dataset in ("", column)]
    return [each.name for each in own if each.distance in ("", distance)] if own else [""]


def short_name(encoder: str) -> str:
    """An encoder's name without the folders of its files."""
    name, _, rest = encoder.partition(":")
    return f"{name}:{Path(rest).name}" if rest else name


def encoder_order(encoder: str) -> tuple[int, str]:
    """Sorting key of encoders in a report: by kind, then by name."""
    kind = encoder.partition("+")[0].partition(":")[0]
    return [*ENCODERS, kind].index(kind), encoder


class Results:
    """The cells of a file of JSON lines, the latest of every key; lines are only added."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.latest: dict[Key, Cell] = {}
        content = path.read_bytes() if path.exists() else b""
        complete = content.rfind(b"\n") + 1  # a killed run may leave part of a line
        for number, line in enumerate(content[:complete].splitlines(), 1):
            try:
                fields = json.loads(line)
                cell = Cell(Key(*(fields.pop(name) for name in Key._fields)), **fields)
            except (ValueError, KeyError, TypeError, AttributeError):
                raise ReproductionError(
                    f"{path} line {number} is not a result of the reproduction; remove the line, "
                    "or choose another folder with --out."
                ) from None
            self.latest[cell.key] = cell
        if complete < len(content):
            os.truncate(path, complete)

    def find(self, key: Key, identity: dict[str, Any]) -> Cell | None:
        """The measured cell of a key, if nothing that determines its figures has changed."""
        cell = self.latest.get(key)
        return cell if cell and not cell.not_run and cell.identity == identity else None

    def add(self, cell: Cell) -> None:
        """Write a new cell; a reason why one was not run never replaces figures."""
        latest = self.latest.get(cell.key)
        if cell == latest or (cell.not_run and latest and not latest.not_run):
            return
        fields = {name: value for name, value in asdict(cell).items() if value and name != "key"}
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(cell.key._asdict() | fields) + "\n")
        self.latest[cell.key] = cell
