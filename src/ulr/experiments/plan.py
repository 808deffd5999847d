"""The paper's experiments as data: which measurement every row of its tables is.

A measurement is made once and may serve several tables: the sweep over label names is Table 6,
Figure 2 and the best names. What is printed is `paper`'s part, how to measure `measure`'s.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ulr.encoders import ENCODERS
from ulr.experiments.datasets import DATASETS
from ulr.experiments.paper import AVERAGE, EXPERIMENTS, Experiment
from ulr.experiments.wordings import all_wordings

# What an encoder is used as. The paper has one classifier for each.
DUAL, WORDS, SINGLE, CONCEPTS = "dual", "words", "single", "concepts"

_ROLES = (DUAL, WORDS, CONCEPTS, SINGLE)  # in the order of the run
# A sweep takes minutes, and augmented text encodes more documents than all the rest.
_LAST = ("sweep", "augmented text")

MAIN = "main"
FINE_TUNED = "fine-tuned"


# What distances are called where people read.
DISTANCE_NAMES = {"cosine": "cosine", "l2": "L2", "js": "Jensen–Shannon"}


@dataclass(frozen=True)
class Line:
    """A row of a table, for every distance and encoder.

    Attributes
    ----------
    shown
        What it is called.
    measure, value
        The measurement it comes from, and which of its values it is.
    step
        The step of the paper that it is compared with; none for a row that is ours alone.
    distances
        Those that it is measured with; None for all of the table.
    """

    shown: str
    measure: str
    value: str
    step: str = ""
    distances: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Study:
    """How an experiment of the paper is measured.

    Attributes
    ----------
    id
        That of the experiment in `paper.EXPERIMENTS`.
    role
        What its encoders are used as.
    distances
        In the order of the report.
    lines
        Its rows.
    remark
        Where ours differs from the paper's by design.
    """

    id: str
    role: str
    distances: tuple[str, ...]
    lines: tuple[Line, ...]
    remark: str = ""

    @property
    def experiment(self) -> Experiment:
        """What the paper prints."""
        return EXPERIMENTS[self.id]

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that are measured, without the average."""
        return tuple(column for column in self.experiment.columns if column != AVERAGE)

    @property
    def measures(self) -> tuple[str, ...]:
        """The measurements it needs of the paper, each once."""
        needed = [line.measure for line in self.lines if line.measure not in OURS]
        return tuple(dict.fromkeys(needed))


@dataclass(frozen=True, order=True)
class Place:
    """Where a measurement belongs: everything about it that a person chooses.

    Attributes
    ----------
    measure
        One of `measure.MEASURES`.
    role
        What the encoder is used as.
    encoder
        Its name, as `load_encoder` takes it; empty where there is none for the role.
    dataset, names
        The dataset, and which of the paper's names its labels go by: ``main`` or ``set 1``.
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
class Chosen:
    """An encoder that was asked for.

    Attributes
    ----------
    spec
        Its name.
    distance
        The only distance it is for; None for all.
    """

    spec: str
    distance: str | None = None


@dataclass(frozen=True)
class Encoders:
    """The encoders of a run.

    Attributes
    ----------
    by_role
        For each role, those to measure with.
    fine_tuned
        For datasets, the encoder that was fine-tuned on thirty examples a label.
    """

    by_role: Mapping[str, Sequence[Chosen]]
    fine_tuned: Mapping[str, str] = field(default_factory=dict)


_MIXTURE = Line("mixture (`ulr`'s default, not the paper's)", "mixture", "mixture", "", ("cosine",))
_BY_NAME = Line("by name", "names", "baseline", "baseline")
_REFINED = Line("+ ULR", "names", "ulr", "ulr")
_NAMES = (_BY_NAME, _REFINED)
_BOTH = ("cosine", "l2")
_SWEPT = (
    Line("mean by name", "sweep", "baseline", "baseline"),
    Line("mean + ULR", "sweep", "ulr", "ulr"),
    Line("improved", "sweep", "improved", "improved"),
)

# Measurements that are no part of the paper, and that a table is whole without.
OURS = ("mixture", "pinned examples")

STUDIES: dict[str, Study] = {
    each.id: each
    for each in (
        Study(
            "table-1",
            DUAL,
            ("l2", "cosine"),
            (*_NAMES, _MIXTURE),
            "The paper prints L2 alone; cosine is beside it.",
        ),
        Study("table-2", WORDS, _BOTH, (*_NAMES, _MIXTURE)),
        Study("table-3", DUAL, _BOTH, (*_NAMES, _MIXTURE)),
        Study(
            "table-4",
            SINGLE,
            ("js",),
            (
                Line("by name", "pairs", "baseline", "baseline"),
                Line("+ ULR", "pairs", "ulr", "ulr"),
            ),
        ),
        Study(
            "table-5",
            DUAL,
            _BOTH,
            (
                Line("ensemble by name", "ensemble", "baseline", "baseline"),
                Line("ensemble + ULR", "ensemble", "ulr", "ulr"),
            ),
        ),
        Study("table-6", DUAL, _BOTH, _SWEPT),
        Study(
            "table-7",
            DUAL,
            _BOTH,
            (
                Line("mean of random centroids", "random starts", "baseline", "baseline"),
                Line("mean after k-means", "random starts", "ulr", "ulr"),
                Line("improved", "random starts", "improved", "improved"),
            ),
            "One-to-one accuracy names the clusters by the truth, as in the paper. Our centroids "
            "start at random documents; the paper does not say where its own start.",
        ),
        Study(
            "table-8",
            DUAL,
            ("cosine",),
            (
                _BY_NAME,
                Line("30 examples pinned, encoder not fine-tuned", "pinned examples", "ulr"),
                Line("+ 30 examples, fine-tuned", FINE_TUNED, "baseline", "labelled"),
                Line("+ 30 examples, fine-tuned + ULR", FINE_TUNED, "ulr", "ulr"),
            ),
            "The examples are drawn from the training set with the seed. The row of pinned "
            "examples is Algorithm 3 alone, which the paper does not print.",
        ),
        Study(
            "table-9",
            DUAL,
            _BOTH,
            (
                *_NAMES,
                Line(
                    "+ augmented categories",
                    "augmented categories",
                    "ulr",
                    "augmented categories",
                ),
                Line("+ augmented text", "augmented text", "ulr", "augmented text"),
            ),
        ),
        Study("figure-2", DUAL, _BOTH, (Line("gain", "sweep", "gain"),)),
        Study("esa", CONCEPTS, ("cosine",), _NAMES),
        Study(
            "oracle",
            DUAL,
            _BOTH,
            (Line("best names, an oracle", "sweep", "best", "best"),),
            "An oracle: the truth chooses the names. It is here because the paper prints it; but "
            "for the naming of clusters in Table 7, nothing else in this report is chosen so.",
        ),
    )
}


def find_place(study: Study, line: Line, column: str, distance: str, encoder: str) -> Place:
    """Where the figure of a table's row, column, distance and encoder is measured."""
    dataset, names = (column, MAIN) if column in DATASETS else ("agnews", column)
    return Place(line.measure, study.role, encoder, dataset, names, distance)


def places(studies: Iterable[Study], encoders: Encoders) -> list[Place]:
    """All that the studies need, each once: what takes longest at the end, else by encoder."""
    found: dict[Place, tuple[int, int]] = {}
    for study in studies:
        for line in study.lines:
            for column in study.columns:
                for distance in study.distances:
                    if line.distances is not None and distance not in line.distances:
                        continue
                    for rank, encoder in _chosen(encoders, study, line, column, distance):
                        found.setdefault(find_place(study, line, column, distance, encoder), rank)
    return sorted(found, key=lambda place: (*_lateness(place), found[place], _order(place)))


def _chosen(
    encoders: Encoders, study: Study, line: Line, column: str, distance: str
) -> Iterator[tuple[tuple[int, int], str]]:
    """The encoders of a cell and where they stand in the order; an empty name for none."""
    if line.measure == FINE_TUNED:
        yield (len(_ROLES), 0), encoders.fine_tuned.get(column, "")
        return
    given = encoders.by_role.get(study.role, ()) or [Chosen("")]
    for number, each in enumerate(given):
        if each.distance in (None, distance):
            yield (_ROLES.index(study.role), number), each.spec


def _lateness(place: Place) -> tuple[int, int]:
    late = 1 + _LAST.index(place.measure) if place.measure in _LAST else 0
    return late, len(all_wordings(place.dataset)) if place.measure == "sweep" else 0


def _order(place: Place) -> tuple[int, str, str, str]:
    return list(DATASETS).index(place.dataset), place.names, place.measure, place.distance


def short_name(encoder: str) -> str:
    """An encoder's name without the folders that its files lie in."""
    name, _, rest = encoder.partition(":")
    return f"{name}:{Path(rest).name}" if rest else name


def encoder_order(encoder: str) -> tuple[int, str]:
    """Where an encoder stands in a report: by its kind, then by its name."""
    kinds = list(ENCODERS)
    kind = encoder.partition("+")[0].partition(":")[0]
    return kinds.index(kind) if kind in kinds else len(kinds), encoder
