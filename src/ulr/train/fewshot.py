"""Few labelled examples: a dual encoder trained on them further, then labels refined with them."""

from __future__ import annotations

import contextlib
import json
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from ulr.classifier import DatalessClassifier
from ulr.errors import TrainingError
from ulr.labels import as_label_set
from ulr.train.estimate import estimate
from ulr.train.losses import OBJECTIVES
from ulr.train.models import DUAL
from ulr.train.run import train
from ulr.train.settings import OnPlan, OnProgress, Plan, Settings, TrainingReport
from ulr.train.sources import Source

PER_CLASS, EPOCHS = 30, 3

Item = TypeVar("Item")


@dataclass(frozen=True)
class Examples:
    """Labelled texts.

    Attributes
    ----------
    texts
        The texts.
    labels
        The name of the label of each.
    """

    texts: list[str]
    labels: list[str]


def draw_examples(
    texts: Iterable[str],
    labels: Iterable[str | None],
    names: Sequence[str],
    per_class: int = PER_CLASS,
    seed: int = 1,
) -> Examples:
    """Draw so many labelled texts of every class; all of a class that has fewer.

    Parameters
    ----------
    texts, labels
        The texts and their labels, in any order and of any number; None where there is no label.
        Empty texts are passed over.
    names
        The labels that are wanted.
    per_class
        Texts a class.
    seed
        Decides which.
    """
    pairs = zip(texts, labels, strict=True)
    kept = draw_by_class((each for each in pairs if each[0].strip()), names, per_class, seed)
    if lacking := [name for name in names if not kept[name]]:
        raise TrainingError(f"there is no example of {', '.join(lacking)}.")
    return Examples(
        [text for name in names for text in kept[name]],
        [name for name in names for _ in kept[name]],
    )


def draw_by_class(
    items: Iterable[tuple[Item, str | None]], names: Sequence[str], per_class: int, seed: int
) -> dict[str, list[Item]]:
    """Draw so many items of every class, each as likely as any other; few are in memory at once.

    Parameters
    ----------
    items
        Anything, each with the name of its class; None where there is none.
    names, per_class, seed
        As for `draw_examples`.
    """
    if per_class < 1:
        raise TrainingError(f"per_class must be at least 1; got {per_class}.")
    kept: dict[str, list[Item]] = {name: [] for name in names}
    met = dict.fromkeys(names, 0)
    rng = np.random.default_rng((seed, 5))
    for item, label in items:
        if label is None:
            continue
        if label not in kept:
            raise TrainingError(
                f"an example has the label {label!r}; the labels are: {', '.join(names)}."
            )
        # A reservoir: every item of a class is equally likely to stay.
        met[label] += 1
        if len(kept[label]) < per_class:
            kept[label].append(item)
        elif (place := int(rng.integers(met[label]))) < per_class:
            kept[label][place] = item
    return kept


def few_shot(
    base: str | Path,
    labels: Any,
    examples: Examples,
    output: str | Path,
    settings: Settings | None = None,
    *,
    epochs: int = EPOCHS,
    resume: bool = False,
    force: bool = False,
    on_plan: OnPlan | None = None,
    on_progress: OnProgress | None = None,
) -> TrainingReport:
    """Train a dual encoder further on a few labelled texts, against all other labels.

    Parameters
    ----------
    base
        The encoder to begin with, as `train` writes it.
    labels
        As for `DatalessClassifier`; of a label with several phrases, one is drawn each time.
    examples
        The labelled texts.
    output
        Folder for the encoder.
    settings
        How it is trained; None for the objective and length that the base was trained with. Every
        other label is a negative, and no text is held out, whatever the settings say.
    epochs
        How often every text is used.
    resume, force, on_plan, on_progress
        As for `train`.
    """
    with _as_pairs(labels, examples, settings or settings_of(base), epochs) as (pairs, chosen):
        return train(
            base,
            [pairs],
            output,
            chosen,
            resume=resume,
            force=force,
            on_plan=on_plan,
            on_progress=on_progress,
        )


def estimate_few_shot(
    base: str | Path,
    labels: Any,
    examples: Examples,
    settings: Settings | None = None,
    *,
    epochs: int = EPOCHS,
) -> Plan:
    """What `few_shot` would do with the same arguments, and how long it would take."""
    with _as_pairs(labels, examples, settings or settings_of(base), epochs) as (pairs, chosen):
        return estimate(base, [pairs], chosen)


@contextlib.contextmanager
def _as_pairs(
    labels: Any, examples: Examples, settings: Settings, epochs: int
) -> Iterator[tuple[Source, Settings]]:
    """The examples as a source of pairs, and the settings that make all other labels negatives."""
    if epochs < 1:
        raise TrainingError(f"epochs must be at least 1; got {epochs}.")
    if settings.objective not in DUAL:
        raise TrainingError(
            f"few-shot training is for dual encoders, with {' or '.join(DUAL)}; got "
            f"{settings.objective!r}."
        )
    label_set = as_label_set(labels)
    phrases = dict(zip(label_set.names, label_set.phrases(), strict=True))
    chosen = replace(
        settings,
        n_instances=epochs * len(examples.texts),
        n_negatives=max(1, sum(map(len, phrases.values())) - 1),
        n_held_out=0,
        as_words=False,
    )
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "examples.jsonl"
        with file.open("w", encoding="utf-8") as out:
            for text, name in zip(examples.texts, examples.labels, strict=True):
                out.write(json.dumps({"text": text, "label": phrases[name]}) + "\n")
        yield Source((str(file),), category_column="label", negatives="uniform"), chosen


def settings_of(base: str | Path) -> Settings:
    """The objective and the length that an encoder was trained with; the paper's for others."""
    try:
        told = json.loads((Path(base) / "training.json").read_text(encoding="utf-8"))
        settings = told["plan"]["settings"]
        return Settings(objective=settings["objective"], max_tokens=settings["max_tokens"])
    except (OSError, ValueError, KeyError, TypeError):
        return Settings()


def refine_with_examples(
    encoder: str | Path,
    labels: Any,
    examples: Examples,
    texts: Sequence[str],
    *,
    objective: str = "dot",
    **settings: Any,
) -> DatalessClassifier:
    """Algorithm 3: refine the labels on unlabelled texts, the examples kept in their clusters.

    Parameters
    ----------
    encoder
        The folder of a dual encoder.
    labels, examples
        As for `few_shot`.
    texts
        The unlabelled texts.
    objective
        What the encoder was trained with; it decides the distance.
    settings
        Further ones of `DatalessClassifier`.

    Returns
    -------
    The fitted classifier. The texts come first in its `refinement_`, the examples after them.
    """
    chosen = {"method": "ulr", "distance": OBJECTIVES[objective].distance} | settings
    classifier = DatalessClassifier(labels, encoder=f"hf:{encoder}", **chosen)
    known = [None] * len(texts) + examples.labels
    return classifier.fit([*texts, *examples.texts], known)
