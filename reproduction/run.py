"""Runs experiments: measures every cell that is not in the results yet."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from reproduction.cells import Cell, EncoderChoice, Key, Results, keys_of
from reproduction.datasets import ReproductionError, find_dataset
from reproduction.experiments import (
    CONCEPTS,
    DUAL,
    FINE_TUNED,
    SINGLE,
    WORDS,
    Experiment,
)
from reproduction.inputs import Inputs, description, is_stand_in
from reproduction.measure import MEASURES, identity
from ulr.encoders import ENCODERS
from ulr.errors import InputError

_ROLES = {"glove": WORDS, "cross": SINGLE, "cross-minilm": SINGLE, "esa": CONCEPTS}
_CORPUS = "concepts/wikipedia_articles.jsonl"
_MISSING = {
    SINGLE: "a single encoder trained on NatCat is missing; add one with --single cross:FOLDER.",
    CONCEPTS: "a corpus of concepts is missing; add one with --concepts FILE.",
    FINE_TUNED: "an encoder fine-tuned on the examples is missing; add one with --fine-tuned "
    "DATASET=hf:FOLDER.",
}


def choose_encoders(
    names: Iterable[str], data: Path, fine_tuned: Sequence[str] = ()
) -> list[EncoderChoice]:
    """The encoders of a run: the given ones, and defaults for roles without one.

    ``glove``, ``cross`` and ``esa`` are for the tables of their kind, all others for those of the
    dual encoder. ``l2=NAME`` is for one distance only, and ``DATASET=NAME`` in `fine_tuned` for one
    dataset.
    """
    chosen = []
    for given in dict.fromkeys(names):
        distance, equals, name = given.partition("=")
        if not (equals and distance in ("cosine", "l2")):
            distance, name = "", given
        _check_encoder_name(name)
        role = _ROLES.get(name.partition(":")[0], DUAL)
        chosen.append(EncoderChoice(role, name, distance))
    defaults = {DUAL: "static", WORDS: "glove"}
    if (data / _CORPUS).is_file():
        defaults[CONCEPTS] = f"esa:{data / _CORPUS}"
    given_roles = {choice.role for choice in chosen}
    chosen += [EncoderChoice(*each) for each in defaults.items() if each[0] not in given_roles]
    for given in fine_tuned:
        dataset, _, name = given.partition("=")
        if not name:
            raise ReproductionError(f"--fine-tuned must be DATASET=hf:FOLDER; got {given!r}.")
        _check_encoder_name(name)
        chosen.append(EncoderChoice(FINE_TUNED, name, dataset=find_dataset(dataset).name))
    return chosen


def _check_encoder_name(name: str) -> None:
    known = [*ENCODERS, "esa"]
    match = re.match(r"(?:[\d.]+\*)?([^:+]*)", name)
    if match is None or match[1] not in known:
        raise ReproductionError(f"encoder must be one of {', '.join(known)}; got {name!r}.")


def run(
    experiments: Iterable[Experiment],
    encoders: Sequence[EncoderChoice],
    inputs: Inputs,
    results: Results,
    on_cell: Callable[[Cell, int, int], None] = lambda *_: None,
) -> list[Cell]:
    """Measure the cells that are not in the results, and add each as soon as it is done.

    `on_cell` is called with every cell, its number and the number of all.
    """
    keys = keys_of(experiments, encoders)
    cells = []
    for number, key in enumerate(keys, 1):
        cell = _cell(inputs, key, results)
        results.add(cell)
        cells.append(cell)
        on_cell(cell, number, len(keys))
    return cells


def _cell(inputs: Inputs, key: Key, results: Results) -> Cell:
    if not key.encoder:
        missing = FINE_TUNED if key.measure == FINE_TUNED else key.role
        return Cell(key, not_run=_MISSING[missing])
    try:
        determined_by = identity(inputs, key)
        if finished := results.find(key, determined_by):
            return replace(finished, about=_about(inputs, key))
        start = time.perf_counter()
        measured = MEASURES[key.measure](inputs, key)
        seconds = round(time.perf_counter() - start, 2)
    except InputError as error:
        # The report must not depend on where the data folder is.
        return Cell(key, not_run=str(error).replace(str(inputs.data), "the data folder"))
    return Cell(key, determined_by, _about(inputs, key), *measured, seconds=seconds)


def _about(inputs: Inputs, key: Key) -> dict[str, Any]:
    documents = inputs.test_documents(key)
    about: dict[str, Any] = {
        "encoder": description(key.encoder),
        "stand_in": is_stand_in(key.encoder, key.role),
        "documents": documents.note,
        "rows": documents.rows,
        "sample": documents.is_sample,
    }
    if key.measure == "augmented text":
        about["extra_texts"] = inputs.unlabelled_documents(key).rows
    return about
