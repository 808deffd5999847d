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
    """Sums over the documents that take part."""

    total: Float  # (n_dims,) sum of the unit documents
    lead: float  # sum of the leads of the nearest anchor over the second
    known: Float  # (n_labels, n_dims) sum of the documents of known label
    n_known: Float  # (n_labels,) their number


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
    """The result of one pass; counts, lead and differing are without the size prior."""

    counts: Float  # (n_labels,) documents of each label
    lead: float  # sum of the leads of the best score over the second
    loss: float  # sum of the negative log probabilities of the best labels
    changed: int  # documents whose best label is another one than in the pass before
    differing: int  # documents whose best label is not the nearest anchor


@dataclass(frozen=True, eq=False)
class StartClusters:
    """The clusters of the nearest anchors.

    State: nearest, anchors (cosines of z with the centred anchors), shares, votes, best (label),
    scale and pull of `Centred`.
    """

    centre: Float  # (n_dims,)
    anchors: Float  # (n_labels, n_dims) centred anchors
    scale: float  # factor that turns cosines into log odds

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
    """

    centre: Float  # this, anchors and scale are as of `StartClusters`
    anchors: Float
    sizes: Float  # this and sums are as of `Clusters`
    sums: Float
    anchor_weight: float
    scale: float
    log_sizes: Float  # (n_labels,) log prior of the labels

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
        """Cosines of z with the labels, (n_labels, n), without each document's own share.

        From the products of z with the sums of the clusters, and its cosines with the anchors.
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

    Changes the scores, (n_labels, n) log odds without the size prior, in place.
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

    The shares of documents that are not used are 0.
    """
    labels, best, _ = two_best(scores)
    shares = np.exp(scores - best)
    totals = shares.sum(axis=0)
    shares /= totals
    shares[:, ~used] = 0.0
    return shares, labels, float(np.log(totals[used]).sum(dtype=np.float64))
