"""The runner: every cell of the asked experiments, measured unless it is finished already."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

from ulr.errors import ExperimentError, InputError
from ulr.experiments.datasets import find_dataset
from ulr.experiments.materials import Materials, Setting, check_spec
from ulr.experiments.measure import MEASURES
from ulr.experiments.plan import (
    CONCEPTS,
    DUAL,
    FINE_TUNED,
    SINGLE,
    STUDIES,
    WORDS,
    Chosen,
    Encoders,
    Place,
    Study,
    places,
)
from ulr.experiments.results import Cell, Results

ALL = "all"
_ROLES = {"glove": WORDS, "cross": SINGLE, "esa": CONCEPTS}
_CORPUS = "concepts/wikipedia_articles.jsonl"
_MISSING = {
    SINGLE: "a single encoder trained on NatCat is not here; give one with --single cross:FOLDER",
    CONCEPTS: "a corpus of concepts is not here; give one with --concepts FILE",
    FINE_TUNED: "an encoder fine-tuned on the examples is not here; give one with --fine-tuned "
    "DATASET=hf:FOLDER",
}


class Listener(Protocol):
    """Told how far a run is."""

    def begin(self, place: Place, done: int, total: int) -> None:
        """A cell is begun, after so many of all."""

    def part(self, done: int, total: int) -> None:
        """So much of the cell is done."""


def find_studies(names: Iterable[str]) -> list[Study]:
    """The experiments of some ids, in the paper's order; ``all`` or none for all of them.

    Raises
    ------
    ExperimentError
        When there is none of that id.
    """
    asked = list(names)
    for name in asked:
        if name != ALL and name not in STUDIES:
            raise ExperimentError(
                f"an experiment must be one of {', '.join(STUDIES)}, or {ALL}; got {name!r}."
            )
    if not asked or ALL in asked:
        return list(STUDIES.values())
    return [study for name, study in STUDIES.items() if name in asked]


def check_data(folder: Path) -> None:
    """Say so now if there is no folder to read datasets from."""
    if not folder.is_dir():
        raise ExperimentError(
            f"there is no data folder {folder}; put the datasets into one and name it with "
            "--data DIR or ULR_DATA."
        )


def choose_encoders(
    specs: Iterable[str], data: Path, fine_tuned: Mapping[str, str] | None = None
) -> Encoders:
    """What to measure with: what was asked for, and for each other role what is at hand.

    Parameters
    ----------
    specs
        Names of encoders. ``glove``, ``cross`` and ``esa`` are for the tables of their kind, all
        others for those of the dual encoder. ``l2=NAME`` is for one distance only.
    data
        The folder of the datasets, where a corpus of concepts may lie.
    fine_tuned
        For datasets, an encoder that was fine-tuned on its thirty examples a label.
    """
    by_role: dict[str, list[Chosen]] = {DUAL: [], WORDS: [], SINGLE: [], CONCEPTS: []}
    for given in dict.fromkeys(specs):
        distance, equals, spec = given.partition("=")
        if not (equals and distance in ("cosine", "l2")):
            distance, spec = "", given
        check_spec(spec)
        role = _ROLES.get(spec.partition(":")[0], DUAL)
        by_role[role].append(Chosen(spec, distance or None))
    corpus = data / _CORPUS
    defaults = {DUAL: "static", WORDS: "glove"}
    if corpus.is_file():
        defaults[CONCEPTS] = f"esa:{corpus}"
    for role, spec in defaults.items():
        by_role[role] = by_role[role] or [Chosen(spec)]
    for dataset, spec in (fine_tuned or {}).items():
        find_dataset(dataset)
        check_spec(spec)
    return Encoders(by_role, dict(fine_tuned or {}))


def run(
    studies: Iterable[Study],
    encoders: Encoders,
    setting: Setting,
    results: Results,
    listener: Listener | None = None,
) -> list[Cell]:
    """Measure what is not finished, and write each cell as soon as it is.

    Returns
    -------
    The cells of these studies and encoders, measured now or before, or not run with the reason.
    """
    check_data(setting.data)
    materials = Materials(setting, listener.part if listener else None)
    wanted = places(studies, encoders)
    cells = []
    for done, place in enumerate(wanted):
        if listener is not None:
            listener.begin(place, done, len(wanted))
        cell = _cell(materials, place, results)
        results.add(cell)
        cells.append(cell)
    return cells


def _cell(materials: Materials, place: Place, results: Results) -> Cell:
    if not place.encoder:
        missing = FINE_TUNED if place.measure == FINE_TUNED else place.role
        return Cell(place, not_run=f"{_MISSING[missing]}.")
    try:
        identity = _identity(materials, place)
        finished = results.finished(place, identity)
        if finished is not None:
            return replace(finished, about=_about(materials, place))
        start = time.perf_counter()
        outcome = MEASURES[place.measure].run(materials, place)
        seconds = round(time.perf_counter() - start, 2)
    except InputError as error:
        # Where the folder lies is nothing to a reader, nor to the same report elsewhere.
        reason = str(error).replace(str(materials.setting.data), "the data folder")
        return Cell(place, not_run=reason)
    return Cell(place, identity, _about(materials, place), seconds=seconds, **_fields(outcome))


def _fields(outcome: Any) -> dict[str, Any]:
    return {name: getattr(outcome, name) for name in outcome.__dataclass_fields__}


def _identity(materials: Materials, place: Place) -> dict[str, Any]:
    measure = MEASURES[place.measure]
    return {
        "encoder": materials.fingerprint(place.encoder),
        "documents": materials.tested(place.dataset, place.role).fingerprint,
        "seed": materials.setting.seed,
        "version": measure.version,
        **measure.settings(materials, place),
    }


def _about(materials: Materials, place: Place) -> dict[str, Any]:
    documents = materials.tested(place.dataset, place.role)
    return {
        "encoder": materials.description(place.encoder),
        "stand_in": materials.stands_in(place.encoder, place.role),
        "documents": documents.note,
        "rows": documents.rows,
        "sample": documents.is_sample,
    }
