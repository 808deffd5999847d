"""Rules: what every method returns, and all that prediction, persistence and ensembles know.

A rule scores any documents, old and new. `LinearRule` serves every vector distance, the default
method and ensembles; `JensenShannonRule` serves probabilities of labels.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ulr.errors import ArrayError
from ulr.refinement import jensen_shannon
from ulr.refinement.blocks import EXCLUDED, Block
from ulr.refinement.distances import Distance, squared_lengths, unit_rows
from ulr.refinement.products import Float, Labels, Single, scores_by_label, two_best
from ulr.refinement.words import WordWeights

# Scores closer than this, relative to the lengths of the vectors, count as equal; the first of
# equally good labels is predicted.
_EQUAL = 1e-12
_ROUNDING = 2.0**-24
_SMALLEST = 1e-37
_EXACT_ROWS = 1024


@dataclass(frozen=True, eq=False)
class View:
    """Linear scores of documents after a fixed transformation.

    With `normalize`, documents are scaled to length one; with a centre, it is then subtracted, and
    they are scaled to length one again.
    """

    weights: Float  # (n_labels, n_dims)
    normalize: bool
    centre: Float | None = None  # (n_dims,) only with `normalize`

    def scores(self, documents: Single, lengths: Float) -> tuple[Single, Single]:
        """Scores, (n_labels, n), and a bound on the rounding error of each document, (n,)."""
        scores = scores_by_label(self.weights.astype(np.float32), documents)
        steepest = float(np.sqrt(squared_lengths(self.weights).max()))
        # A sum of n products in any order is off by at most n roundings; a few more are for the
        # rounded factors and for scaling.
        rounding = (self.weights.shape[1] + 16) * _ROUNDING * steepest
        if not self.normalize:
            return scores, (rounding * lengths).astype(np.float32)
        inverse = inverse_lengths(lengths)
        scores *= inverse
        bound = np.float32(rounding) + np.float32(_SMALLEST) * inverse
        if self.centre is None:
            return scores, bound
        factor = inverse_distances(documents, inverse, self.centre)
        scores -= (self.weights @ self.centre).astype(np.float32)[:, None]
        scores *= factor
        return scores, bound * (1 + factor) * 2

    def exact_scores(self, documents: Float) -> Float:
        """Scores in float64, (n, n_labels), of documents scaled as `normalize` says."""
        if self.centre is not None:
            documents = unit_rows(documents - self.centre)
        return documents @ self.weights.T


def inverse_lengths(lengths: Float) -> Single:
    """One over each length; 0 for zero."""
    return (1.0 / np.where(lengths > 0, lengths, np.inf)).astype(np.float32)


def inverse_distances(documents: Single, inverse: Single, centre: Float) -> Single:
    """(n,) one over the distance of each unit document from the centre; 0 for zero documents.

    `documents` are as given, and `inverse` has their inverse lengths.
    """
    near = scores_by_label(centre.astype(np.float32)[None], documents)[0] * inverse
    squares = 1.0 - 2.0 * near.astype(np.float64) + float(centre @ centre)
    factor = 1.0 / np.sqrt(np.maximum(squares, 1e-12))
    return np.where(inverse > 0, factor, 0.0).astype(np.float32)


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
        labels, by_label, _ = self.label(block)
        scores = np.ascontiguousarray(by_label.T)
        none = block.known == EXCLUDED
        if any(view.normalize for view in self.views):
            none |= block.lengths == 0.0
        labels[none] = -1
        scores[none] = 0.0
        return labels, scores

    def label(
        self, block: Block, rows: NDArray[np.intp] | None = None
    ) -> tuple[Labels, Single, Single]:
        """Labels (n,), scores (n_labels, n) and leads (n,) over the second best label.

        Scores are float32; where rounding could decide between two labels, they are computed again
        in float64. A lead is a lower bound of the exact one. `rows` are positions in the block;
        None for all.
        """
        used: Any = slice(None) if rows is None else rows
        documents = np.ascontiguousarray(block.documents[used], dtype=np.float32)
        with np.errstate(over="ignore", invalid="ignore"):
            scores, bound = self._single_scores(documents, block.lengths[used])
            from_words = None
            if self.words is not None and block.words is not None:
                counts = block.words if rows is None else block.words[rows]
                from_words = self.words.scores(counts)
                scores += from_words
            labels, best, second = two_best(scores)
            lead = best - second - 2 * bound
        doubtful = np.flatnonzero(~(lead > 0.0))
        for start in range(0, len(doubtful), _EXACT_ROWS):
            some = doubtful[start : start + _EXACT_ROWS]
            at = some if rows is None else rows[some]
            words = None if from_words is None else from_words[:, some].T
            labels[some], scores[:, some] = self._exact(block, at, words)
            lead[some] = 0.0
        return labels, scores, lead

    def _single_scores(self, documents: Single, lengths: Float) -> tuple[Single, Single]:
        scores, bound = self.views[0].scores(documents, lengths)
        for view in self.views[1:]:
            more, more_bound = view.scores(documents, lengths)
            scores += more
            bound = bound + more_bound
        scores += self.offsets.astype(np.float32)[:, None]
        if self.subtract_square:
            squares = (lengths * lengths).astype(np.float32)
            scores -= squares
            bound = bound + np.float32(16 * _ROUNDING) * squares
        return scores, bound + np.float32(16 * _ROUNDING * np.abs(self.offsets).max())

    def _exact(
        self, block: Block, rows: NDArray[np.intp], words: Single | None
    ) -> tuple[Labels, Single]:
        """Labels (n,) and scores (n_labels, n) of some documents, from float64."""
        scores = np.tile(self.offsets, (len(rows), 1))
        equal = np.abs(scores)
        for view in self.views:
            documents = block.exact(rows, view.normalize)
            scores += view.exact_scores(documents)
            lengths = 1.0 if view.normalize else np.sqrt(squared_lengths(documents))[:, None]
            equal = equal + lengths * np.sqrt(squared_lengths(view.weights))
        if words is not None:
            scores += words
        if self.subtract_square:
            scores -= squared_lengths(block.exact(rows, normalize=False))[:, None]
        best = scores.max(axis=1, keepdims=True)
        labels = (scores >= best - _EQUAL * equal).argmax(axis=1).astype(np.int32)
        single = scores.T.astype(np.float32)
        return labels, _with_highest(single, labels)

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


def _with_highest(scores: Single, labels: Labels) -> Single:
    """Scores, (n_labels, n), changed by rounding at most so that every label has the highest."""
    each = np.arange(len(labels))
    others = scores.copy()
    others[labels, each] = -np.inf
    highest = others.max(axis=0)
    first = others.argmax(axis=0)
    # An equal score of an earlier label would be preferred by argmax.
    least = np.where(first < labels, np.nextafter(highest, np.float32(np.inf)), highest)
    scores[labels, each] = np.maximum(scores[labels, each], least)
    return scores


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
        labels = np.empty(len(block), dtype=np.int32)
        scores = np.empty((len(block), self.n_labels), dtype=np.float32)
        for rows in jensen_shannon.chunks(len(block), self.n_dims):
            points = jensen_shannon.distributions(block.documents[rows])
            distances = jensen_shannon.distances(points, self.centroids)
            labels[rows] = distances.argmin(axis=1)
            single = np.ascontiguousarray(-distances.T.astype(np.float32))
            scores[rows] = _with_highest(single, labels[rows]).T
        none = block.known == EXCLUDED
        labels[none] = -1
        scores[none] = 0.0
        return labels, scores

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Everything the rule consists of."""
        return {"distributions": self.centroids}


Rule = LinearRule | JensenShannonRule


def rule_from_arrays(arrays: Mapping[str, NDArray[Any]]) -> Rule:
    """The rule that its method `arrays` described; refuses arrays that are not those of one rule."""
    if "distributions" in arrays:
        return JensenShannonRule(_matrix(arrays, "distributions"))
    views: list[View] = []
    while f"view{len(views)}.weights" in arrays:
        name = f"view{len(views)}"
        weights = _matrix(arrays, f"{name}.weights")
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


def _matrix(arrays: Mapping[str, NDArray[Any]], name: str) -> Float:
    matrix = arrays[name]
    if matrix.ndim != 2 or not np.isfinite(matrix).all():
        raise ArrayError(f"{name} must be a matrix of finite numbers.")
    return matrix.astype(np.float64)


def rule_of_centroids(centroids: Float, distance: Distance) -> LinearRule:
    """Scores of a vector distance to given centroids."""
    nothing = np.zeros(len(centroids))
    if distance.name == "cosine":
        return LinearRule((View(unit_rows(centroids), normalize=True),), nothing)
    if distance.name == "dot":
        return LinearRule((View(centroids, normalize=False),), nothing)
    view = View(2.0 * centroids, normalize=False)
    return LinearRule((view,), -squared_lengths(centroids), subtract_square=True)
