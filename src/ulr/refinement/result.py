"""Values that go into and come out of a refinement method."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ulr.refinement.distances import Distance
from ulr.refinement.products import Float

if TYPE_CHECKING:
    from ulr.refinement.diagnosis import Diagnosis
    from ulr.refinement.rule import Rule


@dataclass(frozen=True)
class Pass:
    """One pass over the documents.

    The objective is what the method minimises, a mean over documents: the distance of a document to
    its centroid for the paper's method, the negative log probability of its label for the default.
    """

    iteration: int  # its number, from 0
    stage: str  # what the pass did, for example ``nearest label`` or ``clusters``
    changed: int  # documents whose label differs from the pass before; 0 for the first
    objective: float
    scored: int  # documents that were scored; the label of the others could not change
    total: int | None = None  # most passes that there will be; None if that is not known


OnPass = Callable[[Pass], None]


@dataclass(frozen=True, eq=False)
class Problem:
    """Validated inputs of a method, next to the documents."""

    # (n_labels + n_extra, n_dims), the user's first; may be empty with a random start
    anchors: Float
    n_labels: int  # of the user
    n_documents: int  # of the user, which come first
    distance: Distance
    max_iter: int = 100
    random_state: int = 0
    on_pass: OnPass | None = None

    def report(self, done: Pass) -> None:
        """Call `on_pass`, if there is one."""
        if self.on_pass is not None:
            self.on_pass(done)


@dataclass(frozen=True, eq=False)
class Fitted:
    """What a method returns; see `Refinement`."""

    rule: Rule
    initial_rule: Rule
    centroids: Float  # (n_labels, n_dims)
    trace: tuple[Pass, ...]
    best_iteration: int
    converged: bool
    method: str | None = None  # where it is not the one that was asked for
    reason: str | None = None
    n_fitted: int | None = None  # where it is not all documents
    share: float = 1.0  # see `Refinement`, and so for the next
    collapsed: bool = False


@dataclass(frozen=True, eq=False)
class Refinement:
    """The result of a refinement.

    Attributes
    ----------
    predictions
        (n_documents,) index of the label of each document; -1 for documents without one, which are
        those that were excluded and, under ``cosine``, zero vectors.
    scores
        (n_documents, n_labels) float32 scores by `rule`; larger is closer. Cosine similarities for
        ``cosine``, dot products for ``dot``, negative distances for ``l2`` and ``jensen-shannon``
        with the paper's method; log probabilities up to a constant for the default.
    unrefined
        (n_documents,) labels before refinement.
    rule, initial_rule
        Score any documents, with the refined labels and with those before refinement.
    centroids
        (n_labels, n_dims) the refined labels in the space of the documents.
    trace
        One entry per pass over the documents.
    best_iteration
        The pass whose labels are the result; 0 is no refinement.
    converged
        Whether the last pass changed no label, or as few as the method's tolerance allows.
    n_fitted
        Documents that the labels were refined on.
    n_without_label
        Documents that have none.
    method
        The method actually used.
    reason
        Why that is not the method that was asked for; None where it is.
    distance
        The distance.
    share
        How far the labels are refined: 1 fully, 0 not at all. In between, the nearest anchors count for
        the rest.
    collapsed
        Whether less than half of that is left because clusters collapsed onto a few labels.
    diagnosis
        Whether the result can be trusted; None without names of the labels.
    n_sets
        Sets of anchors whose scores are averaged; 1 except for an ensemble.
    """

    predictions: NDArray[np.intp]
    scores: NDArray[np.float32]
    unrefined: NDArray[np.intp]
    rule: Rule
    initial_rule: Rule
    centroids: Float
    trace: tuple[Pass, ...]
    best_iteration: int
    converged: bool
    n_fitted: int
    n_without_label: int
    method: str
    distance: str
    reason: str | None = None
    share: float = 1.0
    collapsed: bool = False
    diagnosis: Diagnosis | None = None
    n_sets: int = 1

    @property
    def n_iter(self) -> int:
        """Number of passes over the documents, the first one included."""
        return len(self.trace)

    @property
    def n_moved(self) -> int:
        """Documents whose label differs from the unrefined one."""
        return int(np.count_nonzero(self.predictions != self.unrefined))
