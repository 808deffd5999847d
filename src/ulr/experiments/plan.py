"""The measurements of a run: which cells of the tables, in which order, with which encoders."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ulr.encoders import ENCODERS
from ulr.experiments.datasets import DATASETS
from ulr.experiments.paper import CLASSIFIERS, FINE_TUNED, Experiment, Line
from ulr.experiments.phrasings import all_phrasings

_ROLES = list(CLASSIFIERS)  # in the order of a run
# The slowest measurements run last.
_LAST = ("sweep", "augmented text")

MAIN = "main"
DISTANCE_NAMES = {"cosine": "cosine", "l2": "L2", "js": "Jensen–Shannon"}


@dataclass(frozen=True, order=True)
class CellKey:
    """A measurement: everything about it that a user chooses.

    Attributes
    ----------
    measure
        One of `measure.MEASURES`.
    role
        Role of the encoder.
    encoder
        Its name, as for `load_encoder`; empty where there is none for the role.
    dataset, names
        The dataset, and its label names: ``main`` or, of Table 1, ``set 1``.
    distance
        ``cosine``, ``l2`` or ``js``.
    """

    measure: str
    role: str
    encoder: str
    dataset: str
    names: str
    distance: str


@dataclass(frozen=True)
class EncoderChoice:
    """The name of an encoder, and the only distance it is used with; None for all."""

    name: str
    distance: str | None = None


@dataclass(frozen=True)
class Encoders:
    """The encoders of a run.

    Attributes
    ----------
    by_role
        Encoders for each role.
    fine_tuned
        For each dataset, an encoder that was fine-tuned on thirty examples per label.
    """

    by_role: Mapping[str, Sequence[EncoderChoice]]
    fine_tuned: Mapping[str, str] = field(default_factory=dict)


def cell_key(
    experiment: Experiment, line: Line, column: str, distance: str, encoder: str
) -> CellKey:
    """The measurement of a cell of a table."""
    dataset, names = (column, MAIN) if column in DATASETS else ("agnews", column)
    return CellKey(line.measure, experiment.role, encoder, dataset, names, distance)


def cell_keys(experiments: Iterable[Experiment], encoders: Encoders) -> list[CellKey]:
    """All measurements of some experiments, once each: slow ones last, then by encoder."""
    found: dict[CellKey, tuple[int, int]] = {}
    for experiment in experiments:
        for distance, line in experiment.rows():
            for column in experiment.measured_columns:
                for rank, encoder in _encoders_of(encoders, experiment, line, column, distance):
                    found.setdefault(cell_key(experiment, line, column, distance, encoder), rank)
    return sorted(found, key=lambda key: (*_lateness(key), found[key], _order(key)))


def _encoders_of(
    encoders: Encoders, experiment: Experiment, line: Line, column: str, distance: str
) -> Iterator[tuple[tuple[int, int], str]]:
    """The encoders of a cell, after their rank in the order; an empty name for none."""
    if line.measure == FINE_TUNED:
        yield (len(_ROLES), 0), encoders.fine_tuned.get(column, "")
        return
    chosen = encoders.by_role.get(experiment.role, ()) or [EncoderChoice("")]
    for number, each in enumerate(chosen):
        if each.distance in (None, distance):
            yield (_ROLES.index(experiment.role), number), each.name


def _lateness(key: CellKey) -> tuple[int, int]:
    late = 1 + _LAST.index(key.measure) if key.measure in _LAST else 0
    return late, len(all_phrasings(key.dataset)) if key.measure == "sweep" else 0


def _order(key: CellKey) -> tuple[int, str, str, str]:
    return list(DATASETS).index(key.dataset), key.names, key.measure, key.distance


def short_name(encoder: str) -> str:
    """An encoder's name without the folders of its files."""
    name, _, rest = encoder.partition(":")
    return f"{name}:{Path(rest).name}" if rest else name


def encoder_order(encoder: str) -> tuple[int, str]:
    """Sorting key of encoders in a report: by kind, then by name."""
    kinds = list(ENCODERS)
    kind = encoder.partition("+")[0].partition(":")[0]
    return kinds.index(kind) if kind in kinds else len(kinds), encoder
