"""Wordings: which phrase every label goes by, for ensembles and audits.

A label with several phrases can be worded in several ways, and a task in as many as there are
combinations; or the user names whole sets, one phrase a label in each.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from ulr.errors import LabelError
from ulr.labels import Label, LabelSet, entries_with_places, one_text

MOST_WHOLE = 4096  # combinations that are all gone through
SAMPLE = 1024  # of more, so many are drawn


@dataclass(frozen=True)
class Wordings:
    """Some ways to word the labels of a task.

    Attributes
    ----------
    sets
        The ways: one phrase for every label, in the order of the labels.
    n_possible
        How many there are, of which these are all or a sample.
    """

    sets: tuple[tuple[str, ...], ...]
    n_possible: int

    def __len__(self) -> int:
        return len(self.sets)

    def __iter__(self) -> Iterator[tuple[str, ...]]:
        return iter(self.sets)

    @property
    def is_sample(self) -> bool:
        """Whether there are more."""
        return len(self.sets) < self.n_possible

    def phrases(self, label_set: LabelSet) -> LabelSet:
        """The labels with every phrase that some set has for them, each once."""
        return LabelSet(
            tuple(
                Label(label.name, tuple(dict.fromkeys(phrases)))
                for label, phrases in zip(label_set, zip(*self.sets, strict=True), strict=True)
            )
        )


def combinations(label_set: LabelSet, *, sample: int | None = None, seed: int = 0) -> Wordings:
    """Every combination of the labels' phrases, the last label's changing fastest.

    Parameters
    ----------
    label_set
        The labels, some of them with several phrases.
    sample
        Most combinations to take; a seeded draw of that many where there are more, in their order.
        None takes all of up to 4,096, and draws 1,024 of more.
    seed
        Of the draw.
    """
    if sample is not None and (not isinstance(sample, int) or sample < 1):
        raise LabelError(f"sample must be a positive whole number; got {sample!r}.")
    counts = [len(label.phrases) for label in label_set]
    n_possible = math.prod(counts)
    if sample is None:
        sample = n_possible if n_possible <= MOST_WHOLE else SAMPLE
    if sample >= n_possible:
        chosen: Iterable[tuple[int, ...]] = product(*map(range, counts))
    else:
        chosen = _draw(counts, sample, seed)
    return Wordings(
        tuple(
            tuple(label.phrases[i] for label, i in zip(label_set, each, strict=True))
            for each in chosen
        ),
        n_possible,
    )


def _draw(counts: list[int], size: int, seed: int) -> list[tuple[int, ...]]:
    """Different combinations at random, sorted."""
    rng = np.random.default_rng(seed)
    n_possible = math.prod(counts)
    if n_possible <= 1 << 24:
        numbers = np.sort(rng.choice(n_possible, size, replace=False))
        # NumPy unravels 64 dimensions at most, and labels may be many: only those with a choice.
        several = [i for i, count in enumerate(counts) if count > 1]
        places = np.zeros((size, len(counts)), dtype=np.intp)
        places[:, several] = np.transpose(np.unravel_index(numbers, [counts[i] for i in several]))
        return [tuple(each) for each in places.tolist()]
    # So many that a draw hardly ever comes twice.
    drawn: set[tuple[int, ...]] = set()
    while len(drawn) < size:
        more = rng.integers(counts, size=(size - len(drawn), len(counts)))
        drawn.update(map(tuple, more.tolist()))
    return sorted(drawn)


def as_wordings(
    given: Any, label_set: LabelSet, *, sample: int | None = None, seed: int = 0
) -> Wordings | None:
    """Wordings from whatever a user has.

    Parameters
    ----------
    given
        ``average`` for none: a label goes by all of its phrases at once; ``combinations``; a list
        of sets, one phrase for every label in each; a `Path` of a file of them; or `Wordings`.
    label_set
        The labels.
    sample, seed
        As in `combinations`.
    """
    if isinstance(given, Wordings):
        checked = _checked([(f"set {i}", each) for i, each in enumerate(given, 1)], label_set)
        return replace(checked, n_possible=given.n_possible)
    if isinstance(given, Path):
        return read_wordings(given, label_set)
    if isinstance(given, str):
        if given == "average":
            return None
        if given == "combinations":
            return combinations(label_set, sample=sample, seed=seed)
        raise LabelError(
            f"wordings must be 'average', 'combinations' or sets of phrases; got {given!r}."
        )
    if isinstance(given, Iterable):
        return _checked([(f"set {i}", each) for i, each in enumerate(given, 1)], label_set)
    raise LabelError(
        "wordings must be 'average', 'combinations' or sets of phrases; got "
        f"{type(given).__name__}."
    )


def wordings_from_argument(value: str) -> str | Path:
    """Wordings as a command line has them: a word for how, or the name of a file of sets."""
    if value in ("average", "combinations"):
        return value
    if not Path(value).is_file():
        raise LabelError(
            f"wordings must be 'average', 'combinations' or a file of sets; there is no file "
            f"{value}."
        )
    return Path(value)


def read_wordings(path: Path, label_set: LabelSet) -> Wordings:
    """Whole sets from a file.

    A text file has one set a line, ``phrase; phrase; phrase`` in the order of the labels; blank
    lines and lines that begin with ``# `` are passed over. JSON and YAML hold a list of lists.
    """
    sets = [
        (where, item.split(";") if isinstance(item, str) else item)
        for where, item in entries_with_places(path)
    ]
    return _checked(sets, label_set, path.name)


def _checked(sets: list[tuple[str, Any]], label_set: LabelSet, source: str = "") -> Wordings:
    if not sets:
        raise LabelError(f"{source or 'wordings'} must hold at least one set of phrases; got none.")
    checked = []
    for where, phrases in sets:
        if isinstance(phrases, str) or not isinstance(phrases, Iterable):
            raise LabelError(f"{where}: a set must be a list of phrases; got {phrases!r}.")
        texts = tuple(one_text(phrase, where, "phrase") for phrase in phrases)
        if len(texts) != len(label_set):
            raise LabelError(
                f"{where}: a set needs a phrase for each of the {len(label_set)} labels "
                f"({', '.join(label_set.names)}); got {len(texts)}."
            )
        for i, text in enumerate(texts):
            if text in texts[:i]:
                first = label_set.names[texts.index(text)]
                raise LabelError(
                    f"{where}: phrase {text!r} is given for label {first!r} and for label "
                    f"{label_set.names[i]!r}."
                )
        checked.append(texts)
    return Wordings(tuple(checked), len(checked))
