"""Few labelled examples: draw them from a file, and make instances for fine-tuning of them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ulr.errors import TrainingError
from ulr.labels import as_label_set
from ulr.train.pairs import AnnotatedText, MalformedRows, PairSource, read_rows
from ulr.train.settings import DUAL_OBJECTIVES, TrainingSettings

PER_LABEL, EPOCHS = 30, 3


@dataclass(frozen=True)
class Examples:
    """Texts, and the name of the label of each."""

    texts: list[str]
    labels: list[str]


def read_examples(
    source: PairSource, names: Sequence[str], per_label: int = PER_LABEL, random_state: int = 1
) -> Examples:
    """`draw_examples` from a table, in which names of labels may differ in case."""
    known = {name.casefold(): name for name in names} | {name: name for name in names}
    rows = [(row.text, row.paths[0][-1]) for row in read_rows(source, MalformedRows())]
    labels = [known.get(label) or known.get(label.casefold(), label) for _, label in rows]
    return draw_examples([text for text, _ in rows], labels, names, per_label, random_state)


def draw_examples(
    texts: Iterable[str],
    labels: Iterable[str | None],
    names: Sequence[str],
    per_label: int = PER_LABEL,
    random_state: int = 1,
) -> Examples:
    """Draw examples of every label uniformly; all of a label that has fewer.

    Empty texts and texts with the label None are ignored.
    """
    if per_label < 1:
        raise TrainingError(f"per_label must be at least 1; got {per_label}.")
    rng = np.random.default_rng((random_state, 5))
    drawn: dict[str, list[str]] = {name: [] for name in names}
    seen = Counter[str]()
    for text, label in zip(texts, labels, strict=True):
        if label is None or not text.strip():
            continue
        if label not in drawn:
            raise TrainingError(
                f"an example has the label {label!r}; the labels are: {', '.join(names)}."
            )
        seen[label] += 1  # reservoir sampling
        if len(drawn[label]) < per_label:
            drawn[label].append(text)
        elif (place := int(rng.integers(seen[label]))) < per_label:
            drawn[label][place] = text
    if missing := [name for name in names if not drawn[name]]:
        raise TrainingError(f"there is no example of {', '.join(missing)}.")
    return Examples(
        [text for name in names for text in drawn[name]],
        [name for name in names for _ in drawn[name]],
    )


def few_shot_instances(
    base: str | Path,
    labels: Any,
    examples: Examples,
    settings: TrainingSettings | None = None,
    epochs: int = EPOCHS,
) -> tuple[list[PairSource], TrainingSettings]:
    """Sources and settings with which `train` fine-tunes on labelled texts.

    The texts are used `epochs` times, each time with one drawn phrase of their label and all phrases
    of other labels as negatives; none is held out. Without settings, the objective and length are
    those that the base was trained with.
    """
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
    rows = tuple(
        AnnotatedText(text, text, [[phrase] for phrase in phrases[name]], [])
        for text, name in zip(examples.texts, examples.labels, strict=True)
    )
    resolved = replace(
        settings,
        n_instances=epochs * len(rows),
        n_negatives=max(1, sum(map(len, phrases.values())) - 1),
        n_held_out=0,
        as_words=False,
    )
    return [PairSource(rows=rows, negatives="uniform")], resolved


def base_settings(base: str | Path) -> TrainingSettings:
    """The objective and length that an encoder was trained with; the defaults for other models."""
    try:
        content = json.loads((Path(base) / "training.json").read_text(encoding="utf-8"))
        settings = content["plan"]["settings"]
        return TrainingSettings(settings["objective"], max_tokens=settings["max_tokens"])
    except (OSError, ValueError, KeyError, TypeError):
        return TrainingSettings()
