"""Documents as seen from a centre: unit vectors, a vector subtracted, scaled to length one again."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ulr.refinement.blocks import EXCLUDED, Block, State
from ulr.refinement.products import Float, Single, scores_by_label, weighted_sums
from ulr.refinement.rule import inverse_distances, inverse_lengths

LEAST_SHARE = 0.3
MOST_REST = 0.45


def centre_of(mean: Float, least_share: float = LEAST_SHARE, most_rest: float = MOST_REST) -> Float:
    """The vector to subtract from unit documents: a share of their mean.

    Encoders of which all texts have similar vectors need a larger share than others. A label with
    half of the documents needs a small one: its own mean must not be lost. So the rest of the mean
    is at most `most_rest` as long as the documents are spread around it.
    """
    length = min(float(np.sqrt(mean @ mean)), 1.0)
    spread = np.sqrt(1.0 - length * length)
    return max(least_share, 1.0 - most_rest * spread / max(length, 1e-9)) * mean


@dataclass(frozen=True, eq=False)
class Centred:
    """A block of documents as seen from a centre, without creating the vectors.

    ``z = scale · document - pull · centre``; both are 0 for documents that take no part.
    """

    documents: Single  # (n, n_dims) as given
    scale: Single  # (n,)
    pull: Single  # (n,)
    centre: Float  # (n_dims,)

    @classmethod
    def of(cls, block: Block, state: State, centre: Float) -> Centred:
        """The documents of a block; scale and pull are taken from the state if it has them."""
        documents = block.single
        if "pull" in state:
            return cls(documents, state["scale"], state["pull"], centre)
        inverse = inverse_lengths(block.lengths)
        inverse[block.known == EXCLUDED] = 0.0
        pull = inverse_distances(documents, inverse, centre)
        return cls(documents, inverse * pull, pull, centre)

    def products(self, vectors: Float) -> Single:
        """Products of z with some vectors, (n_vectors, n)."""
        products = scores_by_label(vectors.astype(np.float32), self.documents)
        products *= self.scale
        products -= np.multiply.outer((vectors @ self.centre).astype(np.float32), self.pull)
        return products

    def vectors(self) -> Single:
        """(n, n_dims) the vectors themselves."""
        centre = self.centre.astype(np.float32)
        return self.documents * self.scale[:, None] - np.multiply.outer(self.pull, centre)

    def sums(self, shares: Single) -> Float:
        """Sums of z weighted by shares, (n_labels, n_dims)."""
        sums = weighted_sums(shares * self.scale, self.documents)
        return sums - np.multiply.outer((shares @ self.pull).astype(np.float64), self.centre)
