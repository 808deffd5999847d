"""Soft clusters that start at the anchors and move away from them slowly.

First stage of the default method. Every pass assigns documents softly to the labels by their cosine
with a mixture of the label's cluster mean and its anchor; the share of the anchor falls from pass to
pass.

Documents are centred, see `ulr.refinement.centred`: ``z``. Arrays over labels and documents have
shape (n_labels, n_documents).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ulr.refinement.blocks import EXCLUDED, Block, State, Summary
from ulr.refinement.centred import Centred
from ulr.refinement.distances import squared_lengths, unit_rows
from ulr.refinement.products import Float, Labels, Single, scores_by_label, two_best, weighted_sums
from ulr.refinement.rule import inverse_lengths


@dataclass(frozen=True, eq=False)
class Nearest(Summary):
    """Sums over the documents that take part.

    Attributes
    ----------
    total, count
        (n_dims,) sum of the unit documents, and their number.
    lead
        Sum of the leads of the nearest anchor over the second.
    known, n_known
        (n_labels, n_dims) and (n_labels,) sum and number of the documents of known label.
    """

    total: Float
    count: int
    lead: float
    known: Float
    n_known: Float


@dataclass(frozen=True, eq=False)
class NearestAnchor:
    """Finds the nearest anchor of every document, or its known label.

    State: nearest, -1 for documents that take no part.
    """

    anchors: Float

    def __call__(self, block: Block, state: State) -> tuple[State, Nearest]:
        """State and summary of one block."""
        documents = block.single
        inverse = inverse_lengths(block.lengths)
        used = block.known != EXCLUDED
        inverse[~used] = 0.0
        cosines = scores_by_label(self.anchors.astype(np.float32), documents)
        cosines *= inverse
        nearest, best, second = two_best(cosines)
        known = one_hot(block.known, len(self.anchors))
        summary = Nearest(
            weighted_sums(inverse[None], documents)[0],
            int(used.sum()),
            float((best - second)[used].sum(dtype=np.float64)),
            weighted_sums(known * inverse, documents),
            known.sum(axis=1, dtype=np.float64),
        )
        nearest = np.where(block.known >= 0, block.known, nearest)
        return {"nearest": np.where(used, nearest, -1).astype(np.int32)}, summary


@dataclass(frozen=True, eq=False)
class Clusters(Summary):
    """Soft clusters: (n_labels,) sums of the shares, and (n_labels, n_dims) of z weighted by them."""

    sizes: Float
    sums: Float


@dataclass(frozen=True, eq=False)
class Assignment(Clusters):
    """The result of one pass.

    Attributes
    ----------
    counts
        (n_labels,) documents of each label, without the size prior.
    lead
        Sum of the leads of the best score over the second, without the size prior.
    loss
        Sum of the negative log probabilities of the best labels.
    changed, differing
        Documents whose best label is another one than in the pass before, and those whose best
        label, without the size prior, is not the nearest anchor.
    """

    counts: Float
    lead: float
    loss: float
    changed: int
    differing: int


@dataclass(frozen=True, eq=False)
class StartClusters:
    """The clusters of the nearest anchors.

    State: nearest, anchors (cosines of z with the centred anchors), shares, votes, best (label),
    scale and pull of `Centred`.

    Attributes
    ----------
    centre
        (n_dims,).
    anchors
        (n_labels, n_dims) centred anchors.
    scale
        Factor that turns cosines into log odds.
    """

    centre: Float
    anchors: Float
    scale: float

    def __call__(self, block: Block, state: State) -> tuple[State, Assignment]:
        """State and summary of one block; the state is that of `NearestAnchor`."""
        view = Centred.of(block, state, self.centre)
        cosines = view.products(self.anchors)
        nearest = state["nearest"]
        shares = one_hot(nearest, len(self.anchors))
        new = {
            "nearest": nearest,
            "best": nearest,
            "scale": view.scale,
            "pull": view.pull,
            "anchors": cosines,
            "shares": shares,
            "votes": np.zeros(shares.shape, dtype=np.uint8),
        }
        _, best, second = two_best(cosines)
        lead = float((best - second).sum(dtype=np.float64))
        loss = soft_assign(cosines * np.float32(self.scale), view.pull > 0)[2]
        sizes = shares.sum(axis=1, dtype=np.float64)
        return new, Assignment(sizes, view.sums(shares), sizes, lead, loss, 0, 0)


@dataclass(frozen=True, eq=False)
class Cluster:
    """One pass: soft assignment by the cosine with cluster mean and anchor.

    A document does not count in the cluster that it is compared with (leave-one-out). Cluster means
    are scaled by one common factor, not each to length one: the mean of a cluster whose documents
    have little in common is short and should count for little.

    Attributes
    ----------
    centre, anchors
        As of `StartClusters`.
    sizes, sums
        Of the clusters.
    anchor_weight
        Share of the anchor.
    scale
        Factor that turns cosines into log odds.
    log_sizes
        (n_labels,) log prior of the labels.
    """

    centre: Float
    anchors: Float
    sizes: Float
    sums: Float
    anchor_weight: float
    scale: float
    log_sizes: Float

    @property
    def mean_length(self) -> float:
        """Mean length of a cluster mean, weighted by size."""
        lengths = np.sqrt(squared_lengths(self.sums)).sum()
        return max(float(lengths) / max(float(self.sizes.sum()), 1.0), 1e-9)

    def weights(self) -> Float:
        """(n_labels, n_dims) the scores of this pass as a linear rule, without leave-one-out."""
        means = self.sums / (np.maximum(self.sizes, 1e-3) * self.mean_length)[:, None]
        mixed = (1 - self.anchor_weight) * means + self.anchor_weight * self.anchors
        mixed = np.where((self.sizes < 0.5)[:, None], self.anchors, mixed)
        return self.scale * unit_rows(mixed)

    def __call__(self, block: Block, state: State) -> tuple[State, Assignment]:
        """State and summary of one block; the state is that of `StartClusters`."""
        view = Centred.of(block, state, self.centre)
        scores = self._scores(view.products(self.sums), state["anchors"], state["shares"])
        scores *= np.float32(self.scale)
        new, summary = assign(scores, self.log_sizes, block, state, view)
        votes = state["votes"].copy()
        used = np.flatnonzero(view.pull > 0)
        votes[new["best"][used], used] += 1
        return {**new, "votes": votes}, summary

    def _scores(self, products: Single, anchors: Single, shares: Single) -> Single:
        """Cosines of z with the labels, (n_labels, n).

        Parameters
        ----------
        products
            (n_labels, n) of z with the sums of the clusters.
        anchors
            (n_labels, n) cosines of z with the anchors.
        shares
            (n_labels, n) of each document in each cluster, which are left out.
        """
        w = self.anchor_weight
        sizes, squares, with_anchor = (
            column.astype(np.float32)[:, None]
            for column in (
                self.sizes,
                squared_lengths(self.sums),
                np.einsum("ij,ij->i", self.sums, self.anchors),
            )
        )
        others = sizes - shares
        factor = np.float32((1 - w) / self.mean_length) / np.maximum(others, 1e-3)
        squares = squares - 2 * shares * products + shares * shares
        length = factor * factor * np.maximum(squares, 0.0) + np.float32(w * w)
        length += np.float32(2 * w) * factor * (with_anchor - shares * anchors)
        scores = factor * (products - shares) + np.float32(w) * anchors
        scores /= np.sqrt(np.maximum(length, 1e-9))
        return np.where(others < 0.5, anchors, scores)


def assign(
    scores: Single, log_sizes: Float, block: Block, state: State, view: Centred
) -> tuple[State, Assignment]:
    """Assign documents softly by their log odds; known labels are certain.

    Parameters
    ----------
    scores
        (n_labels, n) log odds without the size prior; changed in place.
    log_sizes
        (n_labels,) log prior of the labels.
    block, state, view
        The documents, their state and their vectors.

    Returns
    -------
    state, summary
        The state with new shares and best labels, and the summary of the block.
    """
    used = view.pull > 0
    found, best, second = two_best(scores)
    lead = float((best - second)[used].sum(dtype=np.float64))
    scores += log_sizes.astype(np.float32)[:, None]
    shares, labels, loss = soft_assign(scores, used)
    shares = fix_known(shares, block)
    summary = Assignment(
        shares.sum(axis=1, dtype=np.float64),
        view.sums(shares),
        np.bincount(found[used], minlength=len(scores)).astype(float),
        lead,
        loss,
        int(np.count_nonzero(labels[used] != state["best"][used])),
        int(np.count_nonzero(found[used] != state["nearest"][used])),
    )
    return {**state, "shares": shares, "best": labels}, summary


def one_hot(labels: Labels, n_labels: int) -> Single:
    """(n_labels, n) with 1 at each label; a column of zeros for a negative one."""
    shares = np.zeros((n_labels, len(labels)), dtype=np.float32)
    rows = np.flatnonzero(labels >= 0)
    shares[labels[rows], rows] = 1.0
    return shares


def fix_known(shares: Single, block: Block) -> Single:
    """Shares, changed in place, with certainty of the known labels."""
    known = np.flatnonzero(block.known >= 0)
    shares[:, known] = 0.0
    shares[block.known[known], known] = 1.0
    return shares


def soft_assign(scores: Single, used: Any) -> tuple[Single, Labels, float]:
    """Softmax over the labels, the best labels, and the sum of their negative log probabilities.

    Parameters
    ----------
    scores
        (n_labels, n) log odds.
    used
        (n,) whether a document takes part; the shares of others are 0.
    """
    labels, best, _ = two_best(scores)
    shares = np.exp(scores - best)
    totals = shares.sum(axis=0)
    shares /= totals
    shares[:, ~used] = 0.0
    return shares, labels, float(np.log(totals[used]).sum(dtype=np.float64))
