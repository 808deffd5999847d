"""Batches of instances that are alike in length, the same for the same seed, from any step on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ulr.train.instances import Instance, Instances

WINDOW = 50


@dataclass(frozen=True)
class Batch:
    """The texts of a step, each different category once, and which text has which.

    Attributes
    ----------
    texts
        The texts.
    categories
        Each different category of the batch.
    places
        (n_texts, n_categories_a_text) places in `categories`, the true one first.
    real
        (n_texts, n_categories_a_text) False where a text has fewer categories than others.
    """

    texts: list[str]
    categories: list[str]
    places: NDArray[np.int64]
    real: NDArray[np.bool_]


def as_batch(instances: Sequence[Instance]) -> Batch:
    """Instances put together."""
    widest = max(2, *(len(each.categories) for each in instances))
    numbers: dict[str, int] = {}
    places = np.zeros((len(instances), widest), dtype=np.int64)
    real = np.zeros((len(instances), widest), dtype=bool)
    for row, each in enumerate(instances):
        found = [numbers.setdefault(category, len(numbers)) for category in each.categories]
        places[row, : len(found)] = found
        real[row, : len(found)] = True
    return Batch([each.text for each in instances], list(numbers), places, real)


class Batches:
    """The batches of a run, by step.

    The instances of some fifty batches at a time are sorted by length and cut into batches, whose
    order is then shuffled: little of a batch is padding, every instance is used in its window, and
    windows are as random as the instances are.

    Parameters
    ----------
    instances
        Where they come from.
    n_instances
        Instances of the whole run.
    size
        Instances of a batch; the last one may be smaller.
    window
        Batches that are sorted together.
    """

    def __init__(
        self, instances: Instances, n_instances: int, size: int = 32, window: int = WINDOW
    ) -> None:
        self._instances = instances
        self._order = instances.order(n_instances)
        self._size, self._window = size, window

    def __len__(self) -> int:
        return -(-len(self._order) // self._size)

    def __iter__(self) -> Iterator[list[Instance]]:
        return self.from_step(0)

    def from_step(self, step: int) -> Iterator[list[Instance]]:
        """The batches from a step on, as if those before had been taken."""
        first, skipped = divmod(step, self._window)
        for number in range(first, -(-len(self) // self._window)):
            batches = self.sorted_window(number)
            rng = np.random.default_rng((self._instances.seed, 4, number))
            for place in rng.permutation(len(batches))[skipped:]:
                yield batches[place]
            skipped = 0

    def sorted_window(self, number: int) -> list[list[Instance]]:
        """The batches of a window, those of short texts first."""
        span = self._window * self._size
        taken = self._instances.take(self._order[number * span : (number + 1) * span])
        taken.sort(key=lambda each: len(each.text))
        return [taken[start : start + self._size] for start in range(0, len(taken), self._size)]
