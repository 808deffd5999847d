"""The categories of all pairs: their words, how often each is true, and what is above each."""

from __future__ import annotations

import re
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

_JOINTS = re.compile(r"[_./\s]+")
# Words run together: MensRights, TwoXChromosomes; not iPhone, and not WTF.
_HUMPS = re.compile(r"(?<=[a-z]{2})(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z]{2})")


def category_words(name: str) -> str:
    """The words of a category's name, as a label would be written.

    Underscores, dots and slashes become spaces, and words that are run together in one with
    capitals are parted: ``Random_Acts_Of_Amazon``, ``comp.graphics``, ``MensRights``.
    """
    spaced = _JOINTS.sub(" ", name).strip()
    return spaced if " " in name.strip() else _HUMPS.sub(" ", spaced)


class Categories:
    """Every category met, numbered in the order of meeting.

    Two names whose words differ in case alone are one category.

    Parameters
    ----------
    as_words
        Whether names go through `category_words`.
    """

    def __init__(self, as_words: bool = True) -> None:
        self.words: list[str] = []
        self._as_words = as_words
        self._numbers: dict[str, int] = {}
        self._above: dict[int, set[int]] = {}

    def __len__(self) -> int:
        return len(self.words)

    def number(self, name: str) -> int:
        """The number of a category, a new one where it has not been met."""
        words = category_words(name) if self._as_words else " ".join(name.split())
        key = words.casefold()
        if key not in self._numbers:
            self._numbers[key] = len(self.words)
            self.words.append(words)
        return self._numbers[key]

    def path(self, names: Iterable[str]) -> list[int]:
        """The numbers of a category and its ancestors, from the root down; remembered as such."""
        numbers = [self.number(name) for name in names]
        for place, number in enumerate(numbers[1:], 1):
            self._above.setdefault(number, set()).update(numbers[:place])
        return numbers

    def with_ancestors(self, numbers: Iterable[int]) -> set[int]:
        """Some categories and all that is above them, on whatever row it was met."""
        found: set[int] = set()
        waiting = list(numbers)
        while waiting:
            number = waiting.pop()
            if number not in found:
                found.add(number)
                waiting.extend(self._above.get(number, ()))
        return found


class Negatives:
    """Draws categories that a text does not have.

    Parameters
    ----------
    pool
        (n_pool,) numbers of the categories to draw from.
    weights
        (n_pool,) how often each is to be drawn; None for all alike.
    """

    def __init__(self, pool: NDArray[np.int64], weights: NDArray[np.float64] | None = None) -> None:
        self._pool = pool
        self._weights = np.ones(len(pool)) if weights is None else weights
        self._up_to = np.cumsum(self._weights)

    def draw(self, rng: np.random.Generator, wanted: int, never: set[int]) -> list[int]:
        """As many different categories as wanted, or as there are, and none of `never`."""
        drawn: dict[int, None] = {}
        if len(self._pool) > 4 * (wanted + len(never)):
            # A few misses are cheaper than looking at the whole pool; a skewed one may miss more.
            for place in np.searchsorted(
                self._up_to, rng.random(8 * wanted) * self._up_to[-1], side="right"
            ):
                number = int(self._pool[place])
                if number not in never and len(drawn) < wanted:
                    drawn[number] = None
        if len(drawn) < wanted:
            barred = never | drawn.keys()
            free = np.array([number not in barred for number in self._pool], dtype=bool)
            more = min(wanted - len(drawn), int(free.sum()))
            if more:
                chances = self._weights[free] / self._weights[free].sum()
                drawn.update(
                    dict.fromkeys(
                        rng.choice(self._pool[free], more, replace=False, p=chances).tolist()
                    )
                )
        return list(drawn)
