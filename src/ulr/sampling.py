"""Reservoir sampling: a uniform sample of a stream whose length is not known in advance."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

Item = TypeVar("Item")


class Reservoir(Generic[Item]):
    """A uniform sample of the items added so far (algorithm R).

    Parameters
    ----------
    size
        Items to keep.
    draw_below
        Draws an integer from 0 to its argument, excluded, such as ``random.Random(1).randrange``.

    Attributes
    ----------
    items
        The sample; not in the order in which the items were added.
    n_added
        Items added so far.
    """

    def __init__(self, size: int, draw_below: Callable[[int], int]) -> None:
        self.items: list[Item] = []
        self.n_added = 0
        self._size = size
        self._draw_below = draw_below

    def add(self, item: Item) -> None:
        """Add an item; it is kept with probability size / n_added."""
        self.n_added += 1
        if len(self.items) < self._size:
            self.items.append(item)
        elif (place := self._draw_below(self.n_added)) < self._size:
            self.items[place] = item
