"""Gaussians with one shared covariance: linear discriminant analysis fitted by EM.

Second stage of the default method. With one covariance for all labels, log likelihoods are linear in
the document. They are tempered, since dimensions are not independent.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ulr.refinement.anchor_fit import AnchorFit
from ulr.refinement.blocks import Block, State
from ulr.refinement.centred import Centred
from ulr.refinement.clusters import Assignment, Clusters, soft_assign
from ulr.refinement.products import Float, Single, solve_positive_definite, weighted_sums

# Total variance of documents of length one that single precision can still tell from none.
_LEAST_VARIANCE = 1e-2


@dataclass(frozen=True, eq=False)
class ClustersOfVotes:
    """The clusters of the votes in the state, which become shares."""

    centre: Float

    def __call__(self, block: Block, state: State) -> tuple[State, Clusters]:
        """State and summary of one block; the state is that of `Cluster`."""
        votes = state["votes"].astype(np.float32)
        shares = fix_known(votes / np.maximum(votes.sum(axis=0), 1.0), block)
        kept = {name: state[name] for name in ("anchors", "best", "nearest", "pull", "scale")}
        view = Centred.of(block, state, self.centre)
        sizes = shares.sum(axis=1, dtype=np.float64)
        return {**kept, "shares": shares}, Clusters(sizes, view.sums(shares))


@dataclass(frozen=True, eq=False)
class Gaussians:
    """One pass: posterior of the labels, and the clusters of it.

    Attributes
    ----------
    centre
        (n_dims,) of the documents.
    weights, offsets
        (n_labels, n_dims) and (n_labels,): the tempered log likelihood, up to a constant, is
        ``z · weights + offset``.
    log_sizes
        (n_labels,) log prior of the labels.
    """

    centre: Float
    weights: Float
    offsets: Float
    log_sizes: Float

    def __call__(self, block: Block, state: State) -> tuple[State, Assignment]:
        """State and summary of one block; the state has shares and best labels."""
        view = Centred.of(block, state, self.centre)
        scores = view.products(self.weights)
        scores += (self.offsets + self.log_sizes).astype(np.float32)[:, None]
        used = view.pull > 0
        shares, labels, loss = soft_assign(scores, used)
        shares = fix_known(shares, block)
        summary = Assignment(
            shares.sum(axis=1, dtype=np.float64),
            view.sums(shares),
            AnchorFit.of(state["anchors"], labels, used),
            0.0,
            loss,
            int(np.count_nonzero(labels[used] != state["best"][used])),
        )
        return {**state, "shares": shares, "best": labels}, summary


def fix_known(shares: Single, block: Block) -> Single:
    """Shares, changed in place, with certainty of the known labels."""
    known = np.flatnonzero(block.known >= 0)
    shares[:, known] = 0.0
    shares[block.known[known], known] = 1.0
    return shares


def discriminant(means: Float, covariance: Float, temper: float) -> tuple[Float, Float]:
    """Weights and offsets of the tempered log likelihoods of Gaussians with one covariance."""
    weights = temper * solve_positive_definite(covariance, means.T).T
    return weights, -0.5 * np.einsum("ij,ij->i", means, weights)


def shrunk_covariance(
    documents: Single, moments: Float, shares: Single, means: Float, shrink: float
) -> Float:
    """Covariance within the labels, shrunk towards a multiple of the identity.

    Parameters
    ----------
    documents
        (n, n_dims) a sample of the documents, centred.
    moments
        (n_dims, n_dims) ``documents.T @ documents``.
    shares
        (n_labels, n) their shares.
    means
        (n_labels, n_dims) of the labels.
    shrink
        Share of the identity.
    """
    n_dims = documents.shape[1]
    cross = weighted_sums(shares, documents).T @ means
    sizes = shares.sum(axis=1, dtype=np.float64)
    covariance = moments - cross - cross.T + (means * sizes[:, None]).T @ means
    covariance /= max(float(sizes.sum()), 1.0)
    variance = max(float(np.trace(covariance)), _LEAST_VARIANCE) / n_dims
    covariance *= 1 - shrink
    covariance[np.diag_indices(n_dims)] += shrink * variance
    return covariance
