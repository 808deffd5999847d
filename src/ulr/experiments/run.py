"""Runs experiments: measures every cell that is not in the results yet."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

from ulr.errors import ExperimentError, InputError
from ulr.experiments.datasets import find_dataset
from ulr.experiments.measure import MEASURES
from ulr.experiments.paper import CONCEPTS, DUAL, EXPERIMENTS, FINE_TUNED, SINGLE, WORDS, Experiment
from ulr.experiments.plan import CellKey, EncoderChoice, Encoders, cell_keys, short_name
from ulr.experiments.resources import Resources, RunSettings, check_encoder_name
from ulr.experiments.results import Cell, Results

ALL = "all"
_ROLES = {"glove": WORDS, "cross": SINGLE, "cross-minilm": SINGLE, "esa": CONCEPTS}
_CORPUS = "concepts/wikipedia_articles.jsonl"
_MISSING = {
    SINGLE: "a single encoder trained on NatCat is missing; add one with --single cross:FOLDER",
    CONCEPTS: "a corpus of concepts is missing; add one with --concepts FILE",
    FINE_TUNED: "an encoder fine-tuned on the examples is missing; add one with --fine-tuned "
    "DATASET=hf:FOLDER",
}


class CellListener(Protocol):
    """Receives the progress of a run; an exception that a method raises ends the run."""

    def stage(self, name: str, total: int | None, unit: str = ...) -> None:
        """The run begins, with `total` cells."""

    def advance(self, count: int) -> None:
        """Some cells are done."""

    def note(self, text: str) -> None:
        """Description of the current cell, and how much of it is done."""


def find_experiments(names: Iterable[str]) -> list[Experiment]:
    """The experiments of some ids, in the paper's order; all of them for ``all`` or none."""
    asked = list(names)
    for name in asked:
        if name != ALL and name not in EXPERIMENTS:
            raise ExperimentError(
                f"experiment must be one of {', '.join(EXPERIMENTS)}, or {ALL}; got {name!r}."
            )
    if not asked or ALL in asked:
        return list(EXPERIMENTS.values())
    return [experiment for name, experiment in EXPERIMENTS.items() if name in asked]


def check_data(folder: Path) -> None:
    """Refuse a data folder that does not exist."""
    if not folder.is_dir():
        raise ExperimentError(
            f"there is no data folder {folder}; put the datasets into one and name it with "
            "--data DIR or ULR_DATA."
        )


def choose_encoders(
    names: Iterable[str], data: Path, fine_tuned: Mapping[str, str] | None = None
) -> Encoders:
    """The encoders of a run: the given ones, and defaults for roles without one.

    Parameters
    ----------
    names
        Names of encoders. ``glove``, ``cross`` and ``esa`` are for the tables of their kind, all
        others for those of the dual encoder. ``l2=NAME`` is for one distance only.
    data
        The folder of the datasets, which may hold a corpus of concepts.
    fine_tuned
        For each dataset, an encoder that was fine-tuned on thirty examples per label.
    """
    by_role: dict[str, list[EncoderChoice]] = {DUAL: [], WORDS: [], SINGLE: [], CONCEPTS: []}
    for given in dict.fromkeys(names):
        distance, equals, name = given.partition("=")
        if not (equals and distance in ("cosine", "l2")):
            distance, name = "", given
        check_encoder_name(name)
        role = _ROLES.get(name.partition(":")[0], DUAL)
        by_role[role].append(EncoderChoice(name, distance or None))
    defaults = {DUAL: "static", WORDS: "glove"}
    if (data / _CORPUS).is_file():
        defaults[CONCEPTS] = f"esa:{data / _CORPUS}"
    for role, name in defaults.items():
        by_role[role] = by_role[role] or [EncoderChoice(name)]
    for dataset, name in (fine_tuned or {}).items():
        find_dataset(dataset)
        check_encoder_name(name)
    return Encoders(by_role, dict(fine_tuned or {}))


def run(
    experiments: Iterable[Experiment],
    encoders: Encoders,
    settings: RunSettings,
    results: Results,
    listener: CellListener | None = None,
) -> list[Cell]:
    """Measure the cells that are not in the results, and add each as soon as it is done.

    Returns
    -------
    The cells of the experiments and encoders: measured now or before, or not run, with the reason.
    """
    check_data(settings.data)
    keys = cell_keys(experiments, encoders)
    resources = Resources(settings)
    if listener is not None:
        listener.stage("Measuring", len(keys), "cells")
    cells = []
    for key in keys:
        if listener is not None:
            resources.on_part = _part_notes(listener, key)
        cell = _cell(resources, key, results)
        results.add(cell)
        cells.append(cell)
        if listener is not None:
            listener.advance(1)
    return cells


def _part_notes(listener: CellListener, key: CellKey) -> Any:
    title = f"{key.measure}, {key.dataset}, {key.distance}, {short_name(key.encoder)}"
    listener.note(title)
    return lambda done, total: listener.note(f"{title}: {done:,} of {total:,}")


def _cell(resources: Resources, key: CellKey, results: Results) -> Cell:
    if not key.encoder:
        missing = FINE_TUNED if key.measure == FINE_TUNED else key.role
        return Cell(key, not_run=f"{_MISSING[missing]}.")
    measure = MEASURES[key.measure]
    try:
        identity = measure.identity(resources, key)
        finished = results.find(key, identity)
        if finished is not None:
            return replace(finished, about=_about(resources, key))
        start = time.perf_counter()
        measured = measure.run(resources, key)
        seconds = round(time.perf_counter() - start, 2)
    except InputError as error:
        # The report must not depend on where the data folder is.
        reason = str(error).replace(str(resources.settings.data), "the data folder")
        return Cell(key, not_run=reason)
    return Cell(key, identity, _about(resources, key), seconds=seconds, **vars(measured))


def _about(resources: Resources, key: CellKey) -> dict[str, Any]:
    documents = resources.test_documents(key.dataset, key.role)
    return {
        "encoder": resources.description(key.encoder),
        "stand_in": resources.is_stand_in(key.encoder, key.role),
        "documents": documents.note,
        "rows": documents.rows,
        "sample": documents.is_sample,
    }
