"""Split-half reliability of the anchors: whether they say anything about the documents at all.

Documents are assigned to their nearest anchor twice, in two random subspaces that have nothing in
common. If the names of the labels describe what tells the documents apart, both mostly agree; if they
do not, as with sentiments and an encoder of topics, they agree hardly more often than by chance. The
measure is Cohen's kappa of the two assignments, averaged over a few pairs. No label is used.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ulr.refinement.blocks import EXCLUDED, Block, State, Summary
from ulr.refinement.distances import unit_rows
from ulr.refinement.products import Float, scores_by_label, two_best

_MOST_SPLITS, _SPLIT_LABELS = 4, 64
_FEWEST_DIMS = 8
# Of a half, at most: in more dimensions halves agree more, whatever the names say.
_HALF_DIMS = 128


@dataclass(frozen=True, eq=False)
class Agreements(Summary):
    """Counts of the documents by their labels in the halves of each split."""

    equal: Float  # (n_splits,) documents that have the same label in both halves
    counts: Float  # (n_splits, 2, n_labels) documents of each label in each half

    @property
    def kappa(self) -> float:
        """Mean of Cohen's kappa over the splits; 0 is the agreement of chance, 1 is a perfect one."""
        n = np.maximum(self.counts[:, 0].sum(axis=1), 1.0)
        by_chance = (self.counts[:, 0] * self.counts[:, 1]).sum(axis=1) / n**2
        return float(((self.equal / n - by_chance) / np.maximum(1.0 - by_chance, 1e-9)).mean())


@dataclass(frozen=True, eq=False)
class NearestInHalves:
    """Finds the nearest anchors of every document in pairs of subspaces."""

    centre: Float  # (n_dims,) subtracted from unit documents
    # (n_splits, 2, n_labels, n_dims) centred anchors, projected onto either subspace, at length one.
    halves: Float

    @classmethod
    def of(cls, anchors: Float, centre: Float) -> NearestInHalves | None:
        """The step for centred anchors, (n_labels, n_dims); None with too few dimensions."""
        from scipy.fft import dct, idct

        n_labels, n_dims = anchors.shape
        if n_dims < _FEWEST_DIMS:
            return None
        random, size = np.random.default_rng(0), min(n_dims // 2, _HALF_DIMS)
        splits = []
        for _ in range(max(1, min(_MOST_SPLITS, _SPLIT_LABELS // n_labels))):
            # Signs and a cosine transform rotate at random, so that no dimension dominates a half.
            signs, order = random.choice([-1.0, 1.0], n_dims), random.permutation(n_dims)
            rotated = dct(anchors * signs, norm="ortho")
            halves = []
            for axes in (order[:size], order[size : 2 * size]):
                kept = np.zeros_like(rotated)
                kept[:, axes] = rotated[:, axes]
                halves.append(unit_rows(idct(kept, norm="ortho") * signs))
            splits.append(halves)
        return cls(centre, np.array(splits))

    def __call__(self, block: Block, state: State) -> tuple[State, Agreements]:
        """The state as it is, and the summary of one block."""
        n_splits, _, n_labels, n_dims = self.halves.shape
        used = block.known != EXCLUDED
        weights = self.halves.reshape(-1, n_dims)
        scores = scores_by_label(weights.astype(np.float32), block.single)
        # The length of a centred document does not matter, so it is not divided by.
        scores -= np.multiply.outer(weights @ self.centre, block.lengths).astype(np.float32)
        labels = [
            two_best(half)[0][used] for half in scores.reshape(2 * n_splits, n_labels, len(block))
        ]
        equal = [
            float(np.count_nonzero(one == other))
            for one, other in zip(labels[::2], labels[1::2], strict=True)
        ]
        counts = np.array([np.bincount(each, minlength=n_labels) for each in labels], dtype=float)
        return state, Agreements(np.array(equal), counts.reshape(n_splits, 2, n_labels))
