"""The distances of the paper's refinement and the settings that go with each.

``cosine``, ``l2`` (squared Euclidean) and ``dot`` are linear: the nearest centroid of a document x
has the highest ``x · weights + offset``, where x is scaled to length one for ``cosine``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from ulr.refinement.products import Float

Keep = Literal["lowest", "last"]
EmptyCluster = Literal["mean", "previous"]


@dataclass(frozen=True)
class Distance:
    """A distance between documents and centroids, with the settings of the paper for it."""

    name: str
    linear: bool = True  # whether its scores are linear in the document
    normalize: bool = False  # whether documents and centroids are scaled to length one
    anchor_weight: float = 0.5  # share of the anchor in an updated centroid
    keep: Keep = "lowest"  # the iteration that is the result: that of the lowest objective, or last
    empty_cluster: EmptyCluster = "mean"  # it takes the mean of all documents, or does not move


DISTANCES: dict[str, Distance] = {
    each.name: each
    for each in (
        Distance("cosine", normalize=True),
        Distance("l2"),
        Distance("dot"),
        Distance(
            "jensen-shannon", linear=False, anchor_weight=0.0, keep="last", empty_cluster="previous"
        ),
    )
}


def squared_lengths(rows: Float) -> Float:
    """Squared Euclidean length of each row."""
    return np.einsum("ij,ij->i", rows, rows)


def unit_rows(rows: Float) -> Float:
    """Rows scaled to length one; a zero row stays zero."""
    lengths = np.sqrt(squared_lengths(rows))[:, None]
    return rows / np.where(lengths > 0, lengths, 1.0)
