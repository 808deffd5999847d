"""The categories of all sources: their words, their ancestors, and negative sampling."""

from __future__ import annotations

import re
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

_SEPARATORS = re.compile(r"[_./\s]+")
# Words run together: MensRights, TwoXChromosomes; not iPhone, and not WTF.
_CAMEL_CASE = re.compile(r"(?<=[a-z]{2})(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z]{2})")


def category_words(name: str) -> str:
    """Split the name of a category into words, as a label would be written.

    Underscores, dots and slashes become spaces, and camel case is split: ``Random_Acts_Of_Amazon``,
    ``comp.graphics``, ``MensRights``.
    """
    spaced = _SEPARATORS.sub(" ", name).strip()
    return spaced if " " in name.strip() else _CAMEL_CASE.sub(" ", spaced)


class Categories:
    """Categories, numbered in order of their first appearance.

    Names that differ only in case are one category. `as_words` splits names into words with
    `category_words`.
    """

    def __init__(self, as_words: bool = True) -> None:
        self.words: list[str] = []
        self._as_words = as_words
        self._numbers: dict[str, int] = {}
        self._ancestors: dict[int, set[int]] = {}

    def __len__(self) -> int:
        return len(self.words)

    def number(self, name: str) -> int:
        """The number of a category; a new one is added."""
        words = category_words(name) if self._as_words else " ".join(name.split())
        key = words.casefold()
        if key not in self._numbers:
            self._numbers[key] = len(self.words)
            self.words.append(words)
        return self._numbers[key]

    def path(self, names: Iterable[str]) -> list[int]:
        """The numbers of a path from the root down; its ancestors are remembered."""
        numbers = [self.number(name) for name in names]
        for depth, number in enumerate(numbers[1:], 1):
            self._ancestors.setdefault(number, set()).update(numbers[:depth])
        return numbers

    def with_ancestors(self, numbers: Iterable[int]) -> set[int]:
        """Some categories and all of their ancestors, from any row."""
        found: set[int] = set()
        waiting = list(numbers)
        while waiting:
            number = waiting.pop()
            if number not in found:
                found.add(number)
                waiting.extend(self._ancestors.get(number, ()))
        return found


class NegativeSampler:
    """Draws categories that a text does not have.

    Parameters
    ----------
    pool
        (n_pool,) numbers of the categories to draw from.
    weights
        (n_pool,) relative frequency of each; None for equal ones.
    """

    def __init__(self, pool: NDArray[np.int64], weights: NDArray[np.float64] | None = None) -> None:
        self._pool = pool
        self._weights = np.ones(len(pool)) if weights is None else weights
        self._cumulative = np.cumsum(self._weights)

    def draw(self, rng: np.random.Generator, wanted: int, excluded: set[int]) -> list[int]:
        """Draw `wanted` different categories, or as many as there are, none of them excluded."""
        drawn: dict[int, None] = {}
        if len(self._pool) > 4 * (wanted + len(excluded)):
            # A few rejected draws are cheaper than a pass over the whole pool.
            draws = rng.random(8 * wanted) * self._cumulative[-1]
            for index in np.searchsorted(self._cumulative, draws, side="right"):
                number = int(self._pool[index])
                if number not in excluded and len(drawn) < wanted:
                    drawn[number] = None
        if len(drawn) < wanted:
            free = ~np.isin(self._pool, [*excluded, *drawn])
            more = min(wanted - len(drawn), int(free.sum()))
            if more:
                p = self._weights[free] / self._weights[free].sum()
                rest = rng.choice(self._pool[free], more, replace=False, p=p)
                drawn.update(dict.fromkeys(rest.tolist()))
        return list(drawn)
