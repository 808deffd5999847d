"""Phrasings: sets with one phrase per label, for ensembles and audits.

Sets are all combinations of the phrases of the labels, a sample of them, or given by the user.
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
from ulr.labels import Label, LabelSet, list_entries, one_text, shown

MOST_WHOLE = 4096  # most combinations that are all used
SAMPLE = 1024  # drawn where there are more


@dataclass(frozen=True)
class Phrasings:
    """Sets with one phrase per label.

    Attributes
    ----------
    sets
        The phrases of each set, in the order of the labels.
    n_possible
        Number of possible sets, of which these are all or a sample.
    """

    sets: tuple[tuple[str, ...], ...]
    n_possible: int

    def __len__(self) -> int:
        return len(self.sets)

    def __iter__(self) -> Iterator[tuple[str, ...]]:
        return iter(self.sets)

    @property
    def is_sample(self) -> bool:
        """Whether there are further possible sets."""
        return len(self.sets) < self.n_possible

    def phrases(self, label_set: LabelSet) -> LabelSet:
        """The labels with the phrases that the sets use for them, each once."""
        return LabelSet(
            tuple(
                Label(label.name, tuple(dict.fromkeys(phrases)))
                for label, phrases in zip(label_set, zip(*self.sets, strict=True), strict=True)
            )
        )


def combinations(
    label_set: LabelSet, *, sample: int | None = None, random_state: int = 0
) -> Phrasings:
    """Every combination of the labels' phrases, the last label's changing fastest.

    Parameters
    ----------
    label_set
        The labels, some of them with several phrases.
    sample
        Most combinations to use; of more, a random sample of that size, in their order. None uses
        all of up to 4,096, and a sample of 1,024 of more.
    random_state
        Seed of the sample.
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
        chosen = _draw(counts, sample, random_state)
    return Phrasings(
        tuple(
            tuple(label.phrases[i] for label, i in zip(label_set, each, strict=True))
            for each in chosen
        ),
        n_possible,
    )


def _draw(counts: list[int], size: int, random_state: int) -> list[tuple[int, ...]]:
    """Different combinations at random, sorted."""
    rng = np.random.default_rng(random_state)
    n_possible = math.prod(counts)
    if n_possible <= 1 << 24:
        numbers = np.sort(rng.choice(n_possible, size, replace=False))
        # NumPy unravels at most 64 dimensions: leave out labels with a single phrase.
        several = [i for i, count in enumerate(counts) if count > 1]
        places = np.zeros((size, len(counts)), dtype=np.intp)
        places[:, several] = np.transpose(np.unravel_index(numbers, [counts[i] for i in several]))
        return [tuple(each) for each in places.tolist()]
    # With so many, repeated draws are rare.
    drawn: set[tuple[int, ...]] = set()
    while len(drawn) < size:
        more = rng.integers(counts, size=(size - len(drawn), len(counts)))
        drawn.update(map(tuple, more.tolist()))
    return sorted(drawn)


def as_phrasings(
    given: Any, label_set: LabelSet, *, sample: int | None = None, random_state: int = 0
) -> Phrasings | None:
    """Phrasings in any of their forms.

    Parameters
    ----------
    given
        ``average`` for none; ``combinations``; a list of sets with one phrase per label; a `Path`
        of a file of sets; or `Phrasings`.
    label_set
        The labels.
    sample, random_state
        As in `combinations`.
    """
    if isinstance(given, Phrasings):
        checked = _checked([(f"set {i}", each) for i, each in enumerate(given, 1)], label_set)
        return replace(checked, n_possible=given.n_possible)
    if isinstance(given, Path):
        return read_phrasings(given, label_set)
    if isinstance(given, str):
        if given == "average":
            return None
        if given == "combinations":
            return combinations(label_set, sample=sample, random_state=random_state)
        raise LabelError(
            f"phrasings must be 'average', 'combinations' or sets of phrases; got {given!r}."
        )
    if isinstance(given, Iterable):
        return _checked([(f"set {i}", each) for i, each in enumerate(given, 1)], label_set)
    raise LabelError(
        "phrasings must be 'average', 'combinations' or sets of phrases; got "
        f"{type(given).__name__}."
    )


def phrasings_from_argument(value: str) -> str | Path:
    """Phrasings from a command-line argument: ``average``, ``combinations`` or a file of sets."""
    if value in ("average", "combinations"):
        return value
    if not Path(value).is_file():
        raise LabelError(
            f"phrasings must be 'average', 'combinations' or a file of sets; there is no file "
            f"{value}."
        )
    return Path(value)


def read_phrasings(path: Path, label_set: LabelSet) -> Phrasings:
    """Sets from a file.

    A text file has one set per line, ``phrase; phrase; phrase`` in the order of the labels; blank
    lines and lines that begin with ``# `` are skipped. JSON and YAML hold a list of lists.
    """
    sets = [
        (where, item.split(";") if isinstance(item, str) else item)
        for where, item in list_entries(path)
    ]
    return _checked(sets, label_set, path.name)


def _checked(sets: list[tuple[str, Any]], label_set: LabelSet, source: str = "") -> Phrasings:
    if not sets:
        raise LabelError(
            f"{source or 'phrasings'} must hold at least one set of phrases; got none."
        )
    checked = []
    for where, phrases in sets:
        if isinstance(phrases, str) or not isinstance(phrases, Iterable):
            raise LabelError(f"{where}: a set must be a list of phrases; got {shown(phrases)}.")
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
                    f"{where}: phrase {shown(text)} is given for label {first!r} and for label "
                    f"{label_set.names[i]!r}."
                )
        checked.append(texts)
    return Phrasings(tuple(checked), len(checked))
