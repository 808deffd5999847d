"""Rules and results: what every method returns, and all that prediction and persistence know.

A rule scores any documents, old and new. `LinearRule` serves every vector distance and the default
method; `JensenShannonRule` serves probabilities of labels.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ulr.errors import ArrayError
from ulr.progress import NO_PROGRESS, Progress
from ulr.refinement.blocks import EXCLUDED, Block
from ulr.refinement.distances import (
    Distance,
    Float,
    Labels,
    Single,
    cached_rows,
    distributions,
    inverse_lengths,
    jensen_shannon_distances,
    scores_by_label,
)
from ulr.refinement.words import WordWeights
from ulr.vectors import squared_lengths, unit_rows

if TYPE_CHECKING:
    from ulr.refinement.diagnosis import Diagnosis


@dataclass(frozen=True, eq=False)
class View:
    """Linear scores of documents after a fixed transformation.

    With `normalize`, documents are scaled to length one; with a centre, it is then subtracted, and
    they are scaled to length one again.
    """

    weights: Float  # (n_labels, n_dims)
    normalize: bool
    centre: Float | None = None  # (n_dims,) only with `normalize`


@dataclass(frozen=True, eq=False)
class LinearRule:
    """A sum of linear scores, of one or several views of a document, and of its words."""

    views: tuple[View, ...]
    offsets: Float  # (n_labels,) added to the scores
    # Whether the squared length of the document is subtracted, which makes the scores of ``l2``
    # negative distances and changes no label.
    subtract_square: bool = False
    words: WordWeights | None = None  # for documents that have word counts

    needs_distributions = False  # whether documents must be probabilities

    @property
    def n_labels(self) -> int:
        """Number of labels."""
        return len(self.offsets)

    @property
    def n_dims(self) -> int:
        """Dimensions of the documents."""
        return self.views[0].weights.shape[1]

    def apply(self, block: Block) -> tuple[Labels, Single]:
        """Labels (n,), -1 for documents without one, and scores (n, n_labels) of a block."""
        scores = np.ascontiguousarray(self.scores(block).T, dtype=np.float32)
        none = block.known == EXCLUDED
        if self.views[0].normalize:
            none |= block.lengths == 0.0
        return _labels(scores, none), scores

    def scores(self, block: Block) -> NDArray[Any]:
        """Scores, (n_labels, n), in the precision of the documents; half precision in single."""
        double = block.documents.dtype == np.float64
        documents = np.ascontiguousarray(block.documents) if double else block.single
        dtype = documents.dtype
        inverse = inverse_lengths(block.lengths).astype(dtype)
        scores: NDArray[Any] | None = None
        for view in self.views:
            products = scores_by_label(view.weights.astype(dtype), documents)
            if view.normalize:
                products *= inverse
            if view.centre is not None:
                products -= (view.weights @ view.centre).astype(dtype)[:, None]
                near = scores_by_label(view.centre.astype(dtype)[None], documents)[0] * inverse
                squares = 1.0 - 2.0 * near.astype(np.float64) + float(view.centre @ view.centre)
                distances = np.sqrt(np.maximum(squares, 1e-12))
                products *= np.where(inverse > 0, 1.0 / distances, 0.0).astype(dtype)
            scores = products if scores is None else scores + products
        assert scores is not None
        scores += self.offsets.astype(dtype)[:, None]
        if self.subtract_square:
            scores -= (block.lengths * block.lengths).astype(dtype)
        if self.words is not None and block.words is not None:
            scores += self.words.scores(block.words)
        return scores

    def select(self, labels: slice) -> LinearRule:
        """The rule of some of the labels."""
        return replace(
            self,
            views=tuple(replace(view, weights=view.weights[labels]) for view in self.views),
            offsets=self.offsets[labels],
            words=None if self.words is None else self.words.select(labels),
        )

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Everything the rule consists of, for `rule_from_arrays`."""
        arrays: dict[str, NDArray[Any]] = {"offsets": self.offsets}
        for number, view in enumerate(self.views):
            arrays[f"view{number}.weights"] = view.weights
            arrays[f"view{number}.normalize"] = np.array([view.normalize], dtype=np.uint8)
            if view.centre is not None:
                arrays[f"view{number}.centre"] = view.centre
        if self.subtract_square:
            arrays["subtract_square"] = np.ones(1, dtype=np.uint8)
        if self.words is not None:
            arrays |= self.words.arrays()
        return arrays


@dataclass(frozen=True, eq=False)
class JensenShannonRule:
    """Negative Jensen-Shannon distances of probabilities to centroids."""

    centroids: Float  # (n_labels, n_dims) distributions

    needs_distributions = True

    @property
    def n_labels(self) -> int:
        """Number of labels."""
        return len(self.centroids)

    @property
    def n_dims(self) -> int:
        """Dimensions of the documents."""
        return self.centroids.shape[1]

    def apply(self, block: Block) -> tuple[Labels, Single]:
        """Labels and scores of a block; see `LinearRule.apply`."""
        scores = np.empty((len(block.known), self.n_labels), dtype=np.float32)
        for rows in cached_rows(len(block.known), self.n_dims):
            points = distributions(block.documents[rows])
            scores[rows] = -jensen_shannon_distances(points, self.centroids)
        return _labels(scores, block.known == EXCLUDED), scores

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Everything the rule consists of, for `rule_from_arrays`."""
        return {"distributions": self.centroids}


Rule = LinearRule | JensenShannonRule


def _labels(scores: Single, none: NDArray[np.bool_]) -> Labels:
    """Labels of the highest scores; those that have none get scores of 0."""
    labels = np.where(none, -1, scores.argmax(axis=1)).astype(np.int32)
    scores[none] = 0.0
    return labels


def rule_from_arrays(arrays: Mapping[str, NDArray[Any]]) -> Rule:
    """The rule that its method `arrays` described, or an `ArrayError` for any other arrays."""
    if "distributions" in arrays:
        return JensenShannonRule(_check_matrix(arrays, "distributions"))
    views: list[View] = []
    while f"view{len(views)}.weights" in arrays:
        name = f"view{len(views)}"
        weights = _check_matrix(arrays, f"{name}.weights")
        centre = arrays.get(f"{name}.centre")
        if centre is not None and centre.shape != weights.shape[1:]:
            raise ArrayError(
                f"{name}.centre has shape {centre.shape}; its weights {weights.shape}."
            )
        views.append(View(weights, bool(arrays[f"{name}.normalize"][0]), centre))
    offsets = arrays.get("offsets")
    if not views or offsets is None or any(len(v.weights) != len(offsets) for v in views):
        raise ArrayError("the arrays of a rule are missing or disagree on the number of labels.")
    words = WordWeights.from_arrays(arrays, len(offsets))
    return LinearRule(tuple(views), offsets, "subtract_square" in arrays, words)


def _check_matrix(arrays: Mapping[str, NDArray[Any]], name: str) -> Float:
    matrix = arrays[name]
    if matrix.ndim != 2 or not np.isfinite(matrix).all():
        raise ArrayError(f"{name} must be a matrix of finite numbers.")
    return matrix.astype(np.float64)


def rule_of_centroids(centroids: Float, distance: Distance) -> Rule:
    """Scores of a distance to given centroids."""
    if not distance.linear:
        return JensenShannonRule(centroids)
    nothing = np.zeros(len(centroids))
    if distance.name == "cosine":
        return LinearRule((View(unit_rows(centroids), normalize=True),), nothing)
    if distance.name == "dot":
        return LinearRule((View(centroids, normalize=False),), nothing)
    view = View(2.0 * centroids, normalize=False)
    return LinearRule((view,), -squared_lengths(centroids), subtract_square=True)


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


@dataclass(frozen=True, eq=False)
class Problem:
    """Validated inputs of a method, next to the documents."""

    # (n_labels + n_extra, n_dims), the user's first; may be empty with a random start
    anchors: Float
    n_labels: int  # of the user
    n_documents: int  # of the user, which come first
    distance: Distance
    method: str  # as asked for
    max_iter: int = 100
    random_state: int = 0
    progress: Progress = NO_PROGRESS


@dataclass(frozen=True, eq=False, kw_only=True)
class Fitted:
    """What a method returns; `Refinement` documents it."""

    rule: Rule
    initial_rule: Rule
    centroids: Float
    trace: tuple[Pass, ...]
    best_iteration: int
    converged: bool
    method: str
    n_fitted: int
    reason: str | None = None
    share: float = 1.0
    collapsed: bool = False


@dataclass(frozen=True, eq=False, kw_only=True)
class Refinement(Fitted):
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
        One entry per pass over the documents, with its ``iteration``, ``stage``, number of ``changed``
        labels, ``objective`` and number of ``scored`` documents.
    best_iteration
        The pass whose labels are the result; 0 is no refinement.
    converged
        Whether the last pass changed no label, or as few as the method's tolerance allows.
    n_fitted
        Documents that the labels were refined on; the default method fits the weights of words on
        more, see its option ``fit_sample``.
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
    """

    predictions: NDArray[np.intp]
    scores: Single
    unrefined: NDArray[np.intp]
    distance: str
    diagnosis: Diagnosis | None = None

    @property
    def n_iter(self) -> int:
        """Number of passes over the documents, the first one included."""
        return len(self.trace)

    @property
    def n_moved(self) -> int:
        """Documents whose label differs from the unrefined one."""
        return int(np.count_nonzero(self.predictions != self.unrefined))

    @property
    def n_without_label(self) -> int:
        """Documents that have none."""
        return int(np.count_nonzero(self.predictions < 0))
