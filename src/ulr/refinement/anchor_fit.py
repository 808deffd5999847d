"""How well the labels of documents fit the anchors: a label-free measure of a refinement.

The similarity of a document to an anchor is its cosine minus the mean over all anchors. A refined
label still means what its name says if its documents are more similar to its anchor than the other
documents are.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ulr.refinement.blocks import Summary
from ulr.refinement.products import Float, Labels, Single


@dataclass(frozen=True, eq=False)
class AnchorFit(Summary):
    """Sums over documents, from which contrasts are computed.

    Attributes
    ----------
    total, square
        (n_labels,) sums of the similarities of all documents, and of their squares.
    counts, own
        (n_labels,) documents of each label, and the sum of their similarities to its anchor.
    """

    total: Float
    square: Float
    counts: Float
    own: Float

    @classmethod
    def of(cls, cosines: Single, labels: Labels, used: NDArray[np.bool_]) -> AnchorFit:
        """The sums of some documents.

        Parameters
        ----------
        cosines
            (n_labels, n) cosines with the anchors.
        labels
            (n,) label of each document.
        used
            (n,) whether a document counts.
        """
        n_labels = len(cosines)
        if used.all():
            chosen = labels
        else:
            cosines, chosen = cosines[:, used], labels[used]
        similarity = cosines - cosines.mean(axis=0)
        own = similarity[chosen, np.arange(len(chosen))]
        return cls(
            similarity.sum(axis=1, dtype=np.float64),
            np.einsum("ij,ij->i", similarity, similarity, dtype=np.float64),
            np.bincount(chosen, minlength=n_labels).astype(float),
            np.bincount(chosen, own, minlength=n_labels).astype(float),
        )

    def contrasts(self) -> Float:
        """(n_labels,) how far documents of a label are above the others in similarity to its anchor.

        In standard deviations; NaN for labels without documents, or with all of them.
        """
        n = max(float(self.counts.sum()), 1.0)
        mean = self.total / n
        deviation = np.sqrt(np.maximum(self.square / n - mean * mean, 1e-18))
        inside = self.own / np.maximum(self.counts, 1.0)
        outside = (self.total - self.own) / np.maximum(n - self.counts, 1.0)
        defined = (self.counts > 0) & (self.counts < n)
        return np.where(defined, (inside - outside) / deviation, np.nan)

    @property
    def contrast(self) -> float:
        """Mean contrast of the better half of the labels that are not tiny.

        The better half, since a few names may be chosen badly.
        """
        large = self.counts > 0.1 * self.counts.sum() / len(self.counts)
        contrasts = self.contrasts()
        contrasts = np.sort(contrasts[large & ~np.isnan(contrasts)])[::-1]
        better = contrasts[: (len(contrasts) + 1) // 2]
        return float(better.mean()) if len(better) else 0.0

    def relative_to(self, start: AnchorFit) -> float:
        """Contrast as a share of that of the nearest anchors."""
        return self.contrast / max(start.contrast, 1e-9)
