"""Gaussians with one shared covariance: linear discriminant analysis fitted by EM.

Second stage of the default method. With one covariance for all labels, log likelihoods are linear in
the document. They are tempered, since dimensions are not independent.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ulr.refinement.blocks import Block, State
from ulr.refinement.centred import Centred
from ulr.refinement.clusters import Assignment, Clusters, assign, fix_known
from ulr.refinement.products import Float, gram, solve_positive_definite, weighted_sums

# Total variance of documents of length one that single precision can still tell from none.
_LEAST_VARIANCE = 1e-2


@dataclass(frozen=True, eq=False)
class Moments(Clusters):
    """Clusters, and (n_dims, n_dims) the sum of the products of all pairs of dimensions of z."""

    products: Float


@dataclass(frozen=True, eq=False)
class StartGaussians:
    """The clusters of the votes in the state, which become shares, and the second moments."""

    centre: Float

    def __call__(self, block: Block, state: State) -> tuple[State, Moments]:
        """State and summary of one block; the state is that of `Cluster`."""
        votes = state["votes"].astype(np.float32)
        shares = fix_known(votes / np.maximum(votes.sum(axis=0), 1.0), block)
        kept = {name: state[name] for name in ("nearest", "best", "pull", "scale")}
        view = Centred.of(block, state, self.centre)
        sizes = shares.sum(axis=1, dtype=np.float64)
        return {**kept, "shares": shares}, Moments(sizes, view.sums(shares), gram(view.vectors()))


@dataclass(frozen=True, eq=False)
class Gaussians:
    """One pass: posterior of the labels, and the clusters of it.

    The tempered log likelihood, up to a constant, is ``z · weights + offset``.
    """

    centre: Float  # (n_dims,)
    weights: Float  # (n_labels, n_dims)
    offsets: Float  # (n_labels,)
    log_sizes: Float  # (n_labels,) log prior of the labels

    def __call__(self, block: Block, state: State) -> tuple[State, Assignment]:
        """State and summary of one block; the state is that of `StartGaussians`."""
        view = Centred.of(block, state, self.centre)
        scores = view.products(self.weights)
        scores += self.offsets.astype(np.float32)[:, None]
        return assign(scores, self.log_sizes, block, state, view)


def discriminant(means: Float, covariance: Float, temper: float) -> tuple[Float, Float]:
    """Weights and offsets of the tempered log likelihoods of Gaussians with one covariance."""
    weights = temper * solve_positive_definite(covariance, means.T).T
    return weights, -0.5 * np.einsum("ij,ij->i", means, weights)


def shrunk_covariance(moments: Float, clusters: Clusters, means: Float, shrink: float) -> Float:
    """Covariance within the labels, shrunk towards a multiple of the identity.

    `moments` are as of `Moments`, and `means` need not be those of the clusters.
    """
    n_dims = len(moments)
    cross = weighted_sums((clusters.sums - 0.5 * clusters.sizes[:, None] * means).T, means)
    covariance = (moments - cross - cross.T) / max(float(clusters.sizes.sum()), 1.0)
    variance = max(float(np.trace(covariance)), _LEAST_VARIANCE) / n_dims
    covariance *= 1 - shrink
    covariance[np.diag_indices(n_dims)] += shrink * variance
    return covariance
