"""Trees of labels: names that are paths, such as ``sport > ice hockey``, and the nodes above them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

SEPARATOR = " > "


def parts_of(name: str) -> tuple[str, ...]:
    """The names along a path, from the top; those of a name without ``>`` are the name itself."""
    return tuple(part.strip() for part in re.split(r" >(?= )", f" {name} "))


def is_path(name: str) -> bool:
    """Whether a name is a path of several nodes."""
    return len(parts_of(name)) > 1


@dataclass(frozen=True)
class LabelTree:
    """A tree whose leaves are labels.

    Nodes are numbered: first the leaves in their order, then the inner nodes in the order in which
    the leaves name them. `names` are their paths.

    Examples
    --------
    >>> from ulr.label_tree import LabelTree
    >>> tree = LabelTree.of(["sport > hockey", "sport > tennis", "politics"])
    >>> tree.names
    ('sport > hockey', 'sport > tennis', 'politics', 'sport')
    >>> tree.depth
    2
    """

    names: tuple[str, ...]
    n_leaves: int

    @classmethod
    def of(cls, names: Sequence[str]) -> LabelTree | None:
        """The tree of some labels; None if no name is a path."""
        if not any(map(is_path, names)):
            return None
        inner = (SEPARATOR.join(path) for name in names for path in _above(parts_of(name)))
        return cls((*names, *dict.fromkeys(inner)), len(names))

    @cached_property
    def depth(self) -> int:
        """Number of levels below the root."""
        return max(len(parts_of(name)) for name in self.names)

    @cached_property
    def parents(self) -> NDArray[np.intp]:
        """(n_nodes,) number of the node above each; -1 for those of the first level."""
        index = {name: i for i, name in enumerate(self.names)}
        above = (SEPARATOR.join(parts_of(name)[:-1]) for name in self.names)
        return np.array([index.get(name, -1) for name in above], dtype=np.intp)

    @cached_property
    def levels(self) -> NDArray[np.intp]:
        """(n_nodes,) level of each node, from 0."""
        return np.array([len(parts_of(name)) - 1 for name in self.names], dtype=np.intp)

    @cached_property
    def _first_leaves(self) -> NDArray[np.intp]:
        found = np.full(len(self.names), len(self.names), dtype=np.intp)
        found[: self.n_leaves] = np.arange(self.n_leaves)
        for level in range(self.depth):
            np.minimum.at(found, self.at_level(level)[: self.n_leaves], np.arange(self.n_leaves))
        return found

    def children(self, node: int) -> NDArray[np.intp]:
        """The nodes below a node, in the order of their leaves; of the first level for -1."""
        found = np.flatnonzero(self.parents == node)
        return found[np.argsort(self._first_leaves[found], kind="stable")]

    def at_level(self, level: int) -> NDArray[np.intp]:
        """(n_nodes,) the node above or at each one that is on a level, or the deepest one above it."""
        found = np.arange(len(self.names))
        while (deeper := self.levels[found] > level).any():
            found[deeper] = self.parents[found[deeper]]
        return found

    def sums(self, leaves: NDArray[np.float64]) -> NDArray[np.float64]:
        """(n, n_nodes) probabilities of all nodes, from those of the leaves, (n, n_leaves)."""
        found = np.zeros((len(leaves), len(self.names)))
        found[:, : self.n_leaves] = leaves
        for node in np.argsort(-self.levels, kind="stable").tolist():
            if self.parents[node] >= 0:
                found[:, self.parents[node]] += found[:, node]
        return found

    def place(
        self, leaves: NDArray[np.float64], threshold: float
    ) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
        """The node of each document, and its probability.

        From the root, a document goes to the most probable child, as long as its probability reaches
        the threshold; it always gets a node of the first level.
        """
        chances, n = self.sums(leaves), len(leaves)
        nodes, rows = np.full(n, -1, dtype=np.intp), np.arange(n)
        while len(rows):
            moved = []
            for node in np.unique(nodes[rows]).tolist():
                here, children = rows[nodes[rows] == node], self.children(node)
                if not len(children):
                    continue
                best = children[chances[np.ix_(here, children)].argmax(axis=1)]
                enough = (chances[here, best] >= threshold) | (node == -1)
                nodes[here[enough]] = best[enough]
                moved.append(here[enough])
            rows = np.concatenate([*moved, rows[:0]])
        return nodes, chances[np.arange(n), nodes] if n else np.empty(0)


def _above(path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """The paths of the nodes above one, from the top."""
    return (path[:length] for length in range(1, len(path)))
