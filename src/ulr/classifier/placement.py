"""Where documents stand in a tree of labels: at a leaf, or at a node above that is probable enough."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ulr.classifier.model import Fitted, Predictions
from ulr.label_tree import LabelTree, parts_of

_CHUNK_NUMBERS = 1 << 20

Indices = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Placement:
    """Nodes of some documents.

    Attributes
    ----------
    tree
        The tree of the labels.
    nodes
        (n_texts,) number of the node; the number of nodes for the none label, -1 without a label.
    confidence
        (n_texts,) probability that a document belongs at its node or below it, to four decimals.
    names
        Paths by number, the none label, and an empty one that -1 reaches.
    """

    tree: LabelTree
    nodes: Indices
    confidence: NDArray[np.float64]
    names: NDArray[np.str_]

    @property
    def paths(self) -> NDArray[np.str_]:
        """(n_texts,) path of each node."""
        return self.names[self.nodes]

    def level(self, number: int) -> NDArray[np.str_]:
        """(n_texts,) name on a level of the path, from 0; empty where it does not go so far."""
        parts = [parts_of(str(name)) for name in self.names]
        return np.array([part[number] if number < len(part) else "" for part in parts])[self.nodes]


def place(
    fitted: Fitted, predictions: Predictions, known: NDArray[np.bool_] | None = None
) -> Placement | None:
    """The node of each text in the tree of the labels; None where labels form no tree.

    The probability of a node is the sum of its leaves' ones. A text goes down to the most probable
    child while its probability is at least `path_threshold`; the first level it always reaches. A
    text whose label is `known`, or was corrected after the prediction, keeps its leaf.
    """
    tree = fitted.settings.label_set.tree
    if tree is None:
        return None
    threshold = fitted.settings.path_threshold
    nodes, confidence = predictions.labels.copy(), predictions.confidence.copy()
    n_nodes, n_labels = len(tree.names), fitted.n_labels
    nodes[nodes == n_labels] = n_nodes
    placed = np.flatnonzero((nodes >= 0) & (nodes < n_nodes))
    placed = placed[(predictions.scores.argmax(axis=1) == nodes)[placed]]
    if known is not None:
        placed = placed[~known[placed]]
    step = max(1, _CHUNK_NUMBERS // n_nodes)
    for start in range(0, len(placed), step):
        rows = placed[start : start + step]
        leaves = predictions.rows(rows).probabilities[:, :n_labels]
        nodes[rows], chances = tree.place(leaves, threshold)
        confidence[rows] = chances.round(4)
    none = "" if fitted.none is None else fitted.none.name
    return Placement(tree, nodes, confidence, np.array([*tree.names, none, ""]))
