"""What a refinement tells: one pass while it runs, and everything when it is done."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from ulr.refine.centred import Rule


@dataclass(frozen=True)
class Pass:
    """One finished pass over the documents, as reported while a refinement runs.

    Attributes
    ----------
    iteration
        Its number, from 0.
    changed
        Predictions that differ from the pass before; 0 for the first.
    objective
        Mean distance of the documents to their centroids.
    skipped
        Documents that were not scored because their label could not change.
    """

    iteration: int
    changed: int
    objective: float
    skipped: int


OnPass = Callable[[Pass], None]


@dataclass(frozen=True, eq=False)
class Refinement:
    """The answer of a refinement and how it came about.

    Attributes
    ----------
    predictions
        (n_documents,) index of the label of each document.
    scores
        (n_documents, n_labels) float32 scores of the kept iteration; larger is closer. Cosine
        similarity for ``cosine``, the dot product for ``dot``, the negative distance for ``l2``
        and ``jensen-shannon``.
    centroids
        (n_labels, n_dims) the centroids that gave these scores.
    unrefined
        (n_documents,) what the labels predicted before any refinement.
    objective
        (n_iterations,) mean distance of the documents to their centroids, per iteration.
    changed
        (n_iterations,) predictions that differ from the iteration before; 0 for the first.
    kept
        The iteration that is the answer; 0 is the unrefined labels.
    converged
        Whether the last iteration changed no prediction.
    n_zero_documents
        Documents whose vector is zero, e.g. empty texts.
    method, distance
        How it was done.
    rule
        The rule that ``mixture`` or an ensemble has learnt; None for others, and where ``mixture``
        fell back on the paper's.
    n_sets
        Sets of labels that decide together; 1 but for an ensemble.
    """

    predictions: NDArray[np.intp]
    scores: NDArray[np.float32]
    centroids: NDArray[np.float64]
    unrefined: NDArray[np.intp]
    objective: NDArray[np.float64]
    changed: NDArray[np.intp]
    kept: int
    converged: bool
    n_zero_documents: int
    method: str
    distance: str
    rule: Rule | None = None
    n_sets: int = 1

    @property
    def n_iterations(self) -> int:
        """Passes over the documents, the first, unrefined one included."""
        return len(self.objective)

    @property
    def n_moved(self) -> int:
        """Documents whose label differs from the unrefined one."""
        return int(np.count_nonzero(self.predictions != self.unrefined))
