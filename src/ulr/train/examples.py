"""Few labelled examples: fine-tune a dual encoder on them, then refine the labels with them."""

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
from ulr.sampling import Reservoir
from ulr.texts import is_empty
from ulr.train.losses import DUAL_OBJECTIVES, OBJECTIVES
from ulr.train.run import estimate, train
from ulr.train.settings import TrainingPlan, TrainingReport, TrainingSettings
from ulr.train.sources import PairSource

PER_LABEL, EPOCHS = 30, 3

Item = TypeVar("Item")


@dataclass(frozen=True)
class Examples:
    """Texts, and the name of the label of each."""

    texts: list[str]
    labels: list[str]


def draw_examples(
    texts: Iterable[str],
    labels: Iterable[str | None],
    names: Sequence[str],
    per_label: int = PER_LABEL,
    random_state: int = 1,
) -> Examples:
    """Draw examples of every label uniformly; all of a label that has fewer.

    Parameters
    ----------
    texts, labels
        Texts with their labels, None where a text has none; these and empty texts are ignored.
    names
        The labels.
    per_label
        Examples per label.
    random_state
        Seed of the draw.
    """
    pairs = zip(texts, labels, strict=True)
    drawn = draw_by_label(
        (pair for pair in pairs if not is_empty(pair[0])), names, per_label, random_state
    )
    if missing := [name for name in names if not drawn[name]]:
        raise TrainingError(f"there is no example of {', '.join(missing)}.")
    return Examples(
        [text for name in names for text in drawn[name]],
        [name for name in names for _ in drawn[name]],
    )


def draw_by_label(
    items: Iterable[tuple[Item, str | None]],
    names: Sequence[str],
    per_label: int,
    random_state: int,
) -> dict[str, list[Item]]:
    """Draw items of every label by reservoir sampling; `draw_examples` describes the arguments."""
    if per_label < 1:
        raise TrainingError(f"per_label must be at least 1; got {per_label}.")
    rng = np.random.default_rng((random_state, 5))
    samples: dict[str, Reservoir[Item]] = {
        name: Reservoir(per_label, lambda n: int(rng.integers(n))) for name in names
    }
    for item, label in items:
        if label is None:
            continue
        if label not in samples:
            raise TrainingError(
                f"an example has the label {label!r}; the labels are: {', '.join(names)}."
            )
        samples[label].add(item)
    return {name: sample.items for name, sample in samples.items()}


def few_shot(
    base: str | Path,
    labels: Any,
    examples: Examples,
    output: str | Path,
    settings: TrainingSettings | None = None,
    *,
    epochs: int = EPOCHS,
    **options: Any,
) -> TrainingReport:
    """Fine-tune a dual encoder on a few labelled texts, with all other labels as negatives.

    Parameters
    ----------
    base
        The encoder to start from, as `train` writes it.
    labels
        As for `DatalessClassifier`; one phrase of a label is drawn each time.
    examples
        The labelled texts.
    output
        Folder for the encoder.
    settings
        Settings of the run; None for the objective and length that the base was trained with. The
        negatives and the number of instances follow from the examples, and no text is held out.
    epochs
        Number of times that every text is used.
    **options
        ``resume``, ``force``, ``on_plan`` and ``on_progress``, as for `train`.
    """
    with _as_pairs(base, labels, examples, settings, epochs) as (pairs, resolved):
        return train(base, [pairs], output, resolved, **options)


def estimate_few_shot(
    base: str | Path,
    labels: Any,
    examples: Examples,
    settings: TrainingSettings | None = None,
    *,
    epochs: int = EPOCHS,
) -> TrainingPlan:
    """The plan of `few_shot` with its estimated duration."""
    with _as_pairs(base, labels, examples, settings, epochs) as (pairs, resolved):
        return estimate(base, [pairs], resolved)


@contextlib.contextmanager
def _as_pairs(
    base: str | Path,
    labels: Any,
    examples: Examples,
    settings: TrainingSettings | None,
    epochs: int,
) -> Iterator[tuple[PairSource, TrainingSettings]]:
    """The examples as a source of pairs, and the settings of their training."""
    settings = settings or base_settings(base)
    if epochs < 1:
        raise TrainingError(f"epochs must be at least 1; got {epochs}.")
    if settings.objective not in DUAL_OBJECTIVES:
        raise TrainingError(
            f"few-shot training needs a dual encoder, with {' or '.join(DUAL_OBJECTIVES)}; got "
            f"{settings.objective!r}."
        )
    label_set = as_label_set(labels)
    phrases = dict(zip(label_set.names, label_set.phrases(), strict=True))
    resolved = replace(
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
        yield PairSource((str(file),), category_column="label", negatives="uniform"), resolved


def base_settings(base: str | Path) -> TrainingSettings:
    """The objective and length that an encoder was trained with; the defaults for other models."""
    try:
        content = json.loads((Path(base) / "training.json").read_text(encoding="utf-8"))
        settings = content["plan"]["settings"]
        return TrainingSettings(settings["objective"], max_tokens=settings["max_tokens"])
    except (OSError, ValueError, KeyError, TypeError):
        return TrainingSettings()


def refine_with_examples(
    encoder: str | Path,
    labels: Any,
    examples: Examples,
    texts: Sequence[str],
    *,
    objective: str = "dot",
    **options: Any,
) -> DatalessClassifier:
    """Refine the labels on unlabelled texts and the examples (Algorithm 3).

    Parameters
    ----------
    encoder
        The folder of a dual encoder.
    labels, examples
        As for `few_shot`.
    texts
        The unlabelled texts.
    objective
        The objective that the encoder was trained with, which decides the distance.
    **options
        Further arguments of `DatalessClassifier`.

    Returns
    -------
    DatalessClassifier
        The fitted classifier. In its `refinement_`, the texts come before the examples.
    """
    arguments = {"method": "ulr", "distance": OBJECTIVES[objective].distance} | options
    classifier = DatalessClassifier(labels, encoder=f"hf:{encoder}", **arguments)
    known = [None] * len(texts) + examples.labels
    return classifier.fit([*texts, *examples.texts], known)
