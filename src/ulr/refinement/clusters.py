"""Passes of the default method: soft clusters that start at the anchors, then Gaussians.

A pass over clusters assigns documents softly to the labels by their cosine with a mixture of the
label's cluster mean and its anchor. A pass over Gaussians with one shared covariance (linear
discriminant analysis) assigns them by their posterior, which is linear in the document.

Documents are centred, except in the first pass: unit vectors, a vector subtracted, scaled to length
one again. Arrays over labels and documents have shape (n_labels, n_documents).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ulr.refinement import constants
from ulr.refinement.blocks import EXCLUDED, Block, State, Summary
from ulr.refinement.constants import Constants
from ulr.refinement.distances import (
    Float,
    Labels,
    Single,
    inverse_lengths,
    scores_by_label,
    two_best,
)
from ulr.vectors import squared_lengths, unit_rows


def centre_of(mean: Float, c: Constants = constants.DEFAULTS) -> Float:
    """The vector to subtract from unit documents: a share of their mean.

    Encoders whose vectors are all similar need a large share; a label with half of the documents
    needs a small one, or its own mean would be lost.
    """
    length = min(float(np.sqrt(mean @ mean)), 1.0)
    spread = np.sqrt(1.0 - length * length)
    return max(c.centring, 1.0 - c.mean_rest * spread / max(length, 1e-9)) * mean


def centred(documents: Single, lengths: Float, centre: Float) -> Single:
    """(n, n_dims) unit vectors from the centre to documents at length one; zero for zero ones."""
    inverse = inverse_lengths(lengths).astype(np.float32)
    rows = documents * inverse[:, None]
    rows -= centre.astype(np.float32)
    rows[inverse == 0.0] = 0.0
    distances = np.sqrt(np.einsum("ij,ij->i", rows, rows))
    rows /= np.maximum(distances, 1e-6)[:, None]
    return rows


@dataclass(frozen=True, eq=False)
class NearestAnchor:
    """Finds the nearest anchor of every document, or its known label; sizes and sums are of known.

    State: nearest, -1 for documents that take no part.
    """

    anchors: Float

    def __call__(self, block: Block, state: State) -> tuple[State, Summary]:
        """State and summary of one block."""
        documents, used = block.single, block.known != EXCLUDED
        inverse = (inverse_lengths(block.lengths) * used).astype(np.float32)
        cosines = scores_by_label(self.anchors.astype(np.float32), documents)
        cosines *= inverse
        nearest, best, second = two_best(cosines)
        known = _fix_known(np.zeros_like(cosines), block.known)
        summary = Summary(
            known.sum(axis=1, dtype=np.float64),
            (known * inverse @ documents).astype(np.float64),
            lead=float((best - second)[used].sum(dtype=np.float64)),
            total=(inverse @ documents).astype(np.float64),
        )
        nearest = np.where(block.known >= 0, block.known, nearest)
        return {"nearest": np.where(used, nearest, -1).astype(np.int32)}, summary


@dataclass(frozen=True, eq=False)
class StartClusters:
    """The clusters of the nearest anchors.

    State: nearest, centred (documents), squares (of their lengths), anchors (their cosines with the
    centred anchors), shares, votes (passes in which each label was the best) and best (label).
    """

    anchors: Float  # (n_labels, n_dims) centred anchors
    scale: float  # factor that turns cosines into log odds
    damped: Float  # (n_dims, n_damped) see `repeated_parts`

    def __call__(self, block: Block, state: State) -> tuple[State, Summary]:
        """State and summary of one block."""
        rows, used, nearest = state["centred"], block.known != EXCLUDED, state["nearest"]
        if self.damped.size:
            damped = self.damped.astype(np.float32)
            rows = rows - (rows @ damped) @ damped.T
        cosines = scores_by_label(self.anchors.astype(np.float32), rows)
        found, best, second = two_best(cosines)
        if self.damped.size:
            nearest = np.where(block.known >= 0, block.known, found)
            nearest = np.where(used, nearest, -1).astype(np.int32)
        shares = _fix_known(np.zeros_like(cosines), nearest)
        totals = np.exp(np.float32(self.scale) * (cosines - best)).sum(axis=0)
        new = {
            "nearest": nearest,
            "best": nearest,
            "centred": rows,
            "squares": np.einsum("ij,ij->i", rows, rows),
            "anchors": cosines,
            "shares": shares,
            "votes": np.zeros(shares.shape, dtype=np.uint8),
        }
        sizes = shares.sum(axis=1, dtype=np.float64)
        summary = Summary(
            sizes,
            (shares @ rows).astype(np.float64),
            objective=float(np.log(totals[used]).sum(dtype=np.float64)),
            lead=float((best - second).sum(dtype=np.float64)),
            counts=sizes,
        )
        return new, summary


@dataclass(frozen=True, eq=False)
class NearestInHalves:
    """Whether anchors say anything about the documents at all: their split-half reliability.

    Documents are assigned to their nearest anchor in two random subspaces that have nothing in
    common. If the names of the labels describe what tells the documents apart, both mostly agree; if
    not, as with sentiments and an encoder of topics, hardly more often than by chance.
    """

    # (n_splits, 2, n_labels, n_dims) centred anchors, projected onto either subspace, at length one.
    halves: Float

    @classmethod
    def of(cls, anchors: Float) -> NearestInHalves | None:
        """The step for centred anchors, (n_labels, n_dims); None with too few dimensions."""
        from scipy.fft import dct, idct

        n_labels, n_dims = anchors.shape
        if n_dims < constants.FEWEST_DIMS:
            return None
        random, size = np.random.default_rng(0), min(n_dims // 2, constants.HALF_DIMS)
        splits = []
        for _ in range(max(1, min(constants.MOST_SPLITS, constants.SPLIT_LABELS // n_labels))):
            # Signs and a cosine transform rotate at random, so that no dimension dominates a half.
            signs, order = random.choice([-1.0, 1.0], n_dims), random.permutation(n_dims)
            rotated = dct(anchors * signs, norm="ortho")
            halves = []
            for axes in (order[:size], order[size : 2 * size]):
                kept = np.zeros_like(rotated)
                kept[:, axes] = rotated[:, axes]
                halves.append(unit_rows(idct(kept, norm="ortho") * signs))
            splits.append(halves)
        return cls(np.array(splits))

    def __call__(self, block: Block, state: State) -> tuple[State, Summary]:
        """State and summary of one block."""
        n_splits, _, n_labels, n_dims = self.halves.shape
        used = block.known != EXCLUDED
        weights = self.halves.reshape(-1, n_dims).astype(np.float32)
        scores = scores_by_label(weights, state["centred"])
        # Labels first, as `two_best` compares whole rows; one column per half and document.
        by_label = scores.reshape(2 * n_splits, n_labels, -1).transpose(1, 0, 2)
        labels = two_best(by_label)[0].reshape(n_splits, 2, -1)[..., used]
        agreeing = np.count_nonzero(labels[:, 0] == labels[:, 1], axis=1).astype(float)
        counts = np.zeros((n_splits, 2, n_labels))
        for split, half in np.ndindex(n_splits, 2):
            counts[split, half] = np.bincount(labels[split, half], minlength=n_labels)
        return state, Summary(counts=counts, agreeing=agreeing)


def mean_kappa(halves: Summary) -> float:
    """Mean of Cohen's kappa over the splits; 0 is the agreement of chance, 1 is a perfect one."""
    n = np.maximum(halves.counts[:, 0].sum(axis=1), 1.0)
    by_chance = (halves.counts[:, 0] * halves.counts[:, 1]).sum(axis=1) / n**2
    agreement = (halves.agreeing / n - by_chance) / np.maximum(1.0 - by_chance, 1e-9)
    return float(agreement.mean())


@dataclass(frozen=True, eq=False)
class Cluster:
    """One pass: soft assignment by the cosine with cluster mean and anchor.

    A document does not count in the cluster that it is compared with (leave-one-out). Cluster means
    are scaled by one common factor, not each to length one: the mean of a cluster whose documents
    have little in common is short and should count for little.
    """

    anchors: Float  # (n_labels, n_dims) centred anchors
    sizes: Float  # (n_labels,) and sums, (n_labels, n_dims), of the clusters of the pass before
    sums: Float
    mean_length: float  # of a cluster mean, weighted by size
    anchor_weight: float
    scale: float  # factor that turns cosines into log odds
    log_sizes: Float  # (n_labels,) log prior of the labels

    def weights(self) -> Float:
        """(n_labels, n_dims) the scores of this pass as a linear rule, without leave-one-out."""
        means = self.sums / (np.maximum(self.sizes, 1e-3) * self.mean_length)[:, None]
        mixed = (1 - self.anchor_weight) * means + self.anchor_weight * self.anchors
        mixed = np.where((self.sizes < 0.5)[:, None], self.anchors, mixed)
        return self.scale * unit_rows(mixed)

    def __call__(self, block: Block, state: State) -> tuple[State, Summary]:
        """State and summary of one block."""
        anchors, shares, w = state["anchors"], state["shares"], self.anchor_weight
        products = scores_by_label(self.sums.astype(np.float32), state["centred"])
        own = state["squares"]
        sizes, squares, with_anchor = (
            column.astype(np.float32)[:, None]
            for column in (
                self.sizes,
                squared_lengths(self.sums),
                np.einsum("ij,ij->i", self.sums, self.anchors),
            )
        )
        # Cosines with the mixed vectors, from products: no vector per document and label is made.
        others = sizes - shares
        factor = np.float32((1 - w) / self.mean_length) / np.maximum(others, 1e-3)
        squares = squares - 2 * shares * products + shares * shares * own
        length = factor * factor * np.maximum(squares, 0.0) + np.float32(w * w)
        length += np.float32(2 * w) * factor * (with_anchor - shares * anchors)
        scores = factor * (products - shares * own) + np.float32(w) * anchors
        scores /= np.sqrt(np.maximum(length, 1e-9))
        scores = np.where(others < 0.5, anchors, scores) * np.float32(self.scale)
        new, summary = _assign(scores, self.log_sizes, block, state)
        votes = state["votes"].copy()
        used = np.flatnonzero(block.known != EXCLUDED)
        votes[new["best"][used], used] += 1
        return {**new, "votes": votes}, summary


@dataclass(frozen=True, eq=False)
class StartGaussians:
    """The clusters of the votes in the state, which become shares."""

    def __call__(self, block: Block, state: State) -> tuple[State, Summary]:
        """State and summary of one block."""
        votes, rows = state["votes"].astype(np.float32), state["centred"]
        shares = _fix_known(votes / np.maximum(votes.sum(axis=0), 1.0), block.known)
        kept = {name: state[name] for name in ("nearest", "best", "centred")}
        sizes = shares.sum(axis=1, dtype=np.float64)
        return {**kept, "shares": shares}, Summary(sizes, (shares @ rows).astype(np.float64))


@dataclass(frozen=True, eq=False)
class Gaussians:
    """One pass: posterior of the labels; log likelihoods are ``document · weights + offset``."""

    weights: Float  # (n_labels, n_dims)
    offsets: Float  # (n_labels,)
    log_sizes: Float  # (n_labels,) log prior of the labels

    def __call__(self, block: Block, state: State) -> tuple[State, Summary]:
        """State and summary of one block."""
        scores = scores_by_label(self.weights.astype(np.float32), state["centred"])
        scores += self.offsets.astype(np.float32)[:, None]
        return _assign(scores, self.log_sizes, block, state)


def _assign(scores: Single, log_sizes: Float, block: Block, state: State) -> tuple[State, Summary]:
    """Assign documents softly by log odds without size prior, which are changed in place."""
    used = block.known != EXCLUDED
    found, best, second = two_best(scores)
    lead = float((best - second)[used].sum(dtype=np.float64))
    scores += log_sizes.astype(np.float32)[:, None]
    labels, best, _ = two_best(scores)
    shares = np.exp(scores - best)
    totals = shares.sum(axis=0)
    shares /= totals
    shares[:, ~used] = 0.0
    _fix_known(shares, block.known)
    summary = Summary(
        shares.sum(axis=1, dtype=np.float64),
        (shares @ state["centred"]).astype(np.float64),
        objective=float(np.log(totals[used]).sum(dtype=np.float64)),
        changed=int(np.count_nonzero(labels[used] != state["best"][used])),
        lead=lead,
        differing=int(np.count_nonzero(found[used] != state["nearest"][used])),
        counts=np.bincount(found[used], minlength=len(scores)).astype(float),
    )
    return {**state, "shares": shares, "best": labels}, summary


def _fix_known(shares: Single, labels: Labels) -> Single:
    """Shares, changed in place, with certainty of the known labels."""
    known = np.flatnonzero(labels >= 0)
    shares[:, known] = 0.0
    shares[labels[known], known] = 1.0
    return shares
