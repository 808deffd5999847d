"""`refine` and `refine_many`: validate the inputs, run a method, score the documents."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from ulr.errors import ArrayError
from ulr.refinement import validation
from ulr.refinement.blocks import (
    EXCLUDED,
    UNFITTED,
    UNKNOWN,
    Blocks,
    VectorSource,
    run_ahead,
)
from ulr.refinement.diagnosis import diagnose
from ulr.refinement.distances import DISTANCES, Distance
from ulr.refinement.methods import METHODS, choose_method, method_options
from ulr.refinement.products import Float, Labels, Single
from ulr.refinement.result import OnPass, Problem, Refinement
from ulr.refinement.rule import Rule

_FEW_BLOCKS = 8

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix


def refine(
    documents: ArrayLike | VectorSource,
    anchors: ArrayLike | int | None = None,
    *,
    method: str = "auto",
    distance: str = "cosine",
    known: ArrayLike | None = None,
    extra_documents: ArrayLike | VectorSource | None = None,
    extra_anchors: ArrayLike | None = None,
    word_counts: csr_matrix | None = None,
    random_state: int = 0,
    max_iter: int = 100,
    n_jobs: int | None = None,
    on_pass: OnPass | None = None,
    **options: Any,
) -> Refinement:
    """Classify documents by their nearest label, then refine the labels on the documents.

    Parameters
    ----------
    documents
        (n_documents, n_dims) vectors; probabilities of the labels with ``jensen-shannon``. Memory
        maps and other sources that can be sliced are read block by block, and may be larger than
        memory.
    anchors
        (n_labels, n_dims) vectors of the labels. May be left out with ``jensen-shannon``, where
        label c starts as the certainty of c. With a random start, the vectors that name the
        clusters, or the number of clusters.
    method
        A name in `METHODS`. ``auto`` is the default method, or ``ulr`` for distances that only the
        paper's method has.
    distance
        ``cosine``, ``l2`` (squared Euclidean), ``dot`` or ``jensen-shannon``.
    known
        (n_documents,) label index of documents whose label is known, -1 for unknown ones, -2 for
        documents to leave out, which get no label, and -3 for documents that get a label but are
        not fitted on. Known documents keep their label and take part.
    extra_documents
        (n, n_dims) further documents to refine on, which get no prediction.
    extra_anchors
        (n, n_dims) further labels that take part in the refinement and are never predicted.
    word_counts
        (n_documents, n_words) sparse counts of the words of each document, as of
        `ulr.word_counts.count_words`; a second view of the documents for methods that can use it.
    random_state
        Seed of everything that is drawn.
    max_iter
        Most passes over the documents, the first, unrefined one included.
    n_jobs
        Number of threads; every available core by default. It never changes the result.
    on_pass
        Called after every pass with a `Pass`. An exception that it raises ends the refinement.
    **options
        Options of the method; see ``METHODS[method].options``.

    Returns
    -------
    Refinement

    Raises
    ------
    ArrayError
        When an input cannot be used; the message says what was expected.

    Examples
    --------
    >>> import numpy as np
    >>> from ulr import refine
    >>> documents = np.array([[1.0, 0.1], [0.9, 0.2], [0.1, 1.0], [0.3, 0.8]])
    >>> refine(documents, [[1.0, 0.0], [0.0, 1.0]], method="ulr").predictions
    array([0, 0, 1, 1])
    """
    inputs = _prepare(
        documents, known, extra_documents, word_counts, method, distance, n_jobs, options
    )
    return inputs.refine(anchors, extra_anchors, max_iter, random_state, on_pass, diagnosed=True)


def refine_many(
    documents: ArrayLike | VectorSource,
    anchor_sets: Iterable[ArrayLike],
    *,
    method: str = "auto",
    distance: str = "cosine",
    known: ArrayLike | None = None,
    extra_documents: ArrayLike | VectorSource | None = None,
    extra_anchors: ArrayLike | None = None,
    word_counts: csr_matrix | None = None,
    random_state: int = 0,
    max_iter: int = 100,
    n_jobs: int | None = None,
    **options: Any,
) -> Iterator[Refinement]:
    """Refine several sets of anchors over the same documents.

    Each result is the one that `refine` gives for the set alone, up to rounding and without a
    diagnosis. The documents are validated once, and results are computed when they are asked for, a
    few sets ahead where documents are so few that threads serve several sets.

    Parameters
    ----------
    documents, **options
        As in `refine`, and so are all others that have a default.
    anchor_sets
        Anchors of each set, (n_labels, n_dims).

    Yields
    ------
    Refinement
        Of each set, in order.
    """
    inputs = _prepare(
        documents, known, extra_documents, word_counts, method, distance, n_jobs, options
    )
    # Few documents hardly occupy several threads, but several sets of anchors do. Each thread then
    # has all documents in one block: between short operations threads wait for each other.
    one_block = inputs.blocks.in_memory and inputs.blocks.n_blocks <= _FEW_BLOCKS
    at_once = inputs.blocks.n_jobs if one_block else 1

    def refined(anchors: ArrayLike) -> Refinement:
        return inputs.refine(anchors, extra_anchors, max_iter, random_state, one_block=one_block)

    if at_once == 1:
        yield from map(refined, anchor_sets)
        return
    with ThreadPoolExecutor(at_once, thread_name_prefix="ulr") as pool:
        yield from run_ahead(pool, (partial(refined, each) for each in anchor_sets), at_once)


def score(
    documents: ArrayLike | VectorSource,
    rule: Rule,
    *,
    word_counts: csr_matrix | None = None,
    n_jobs: int | None = None,
) -> tuple[Labels, Single]:
    """Classify documents by a rule.

    Parameters
    ----------
    documents
        (n_documents, n_dims).
    rule
        As of `Refinement.rule`.
    word_counts, n_jobs
        As in `refine`; counts are for rules that have word weights.

    Returns
    -------
    labels, scores
        (n_documents,) label indices, -1 for documents without one, and (n_documents, n_labels).
    """
    [labels], scores = score_all(documents, [rule], word_counts=word_counts, n_jobs=n_jobs)
    return labels, scores


def score_all(
    documents: ArrayLike | VectorSource,
    rules: Sequence[Rule],
    *,
    word_counts: csr_matrix | None = None,
    n_jobs: int | None = None,
) -> tuple[list[Labels], Single]:
    """As `score`: labels by each of some rules, and the scores by the first one."""
    validation.positive("n_jobs", n_jobs)
    source = validation.vector_source("documents", documents)
    if source.shape[1] != rules[0].n_dims:
        raise ArrayError(
            f"documents must have n_dims={rules[0].n_dims}, as those that the rule was fitted on; "
            f"got {source.shape[1]}."
        )
    with Blocks([source], words=word_counts, n_jobs=n_jobs) as blocks:
        blocks.lengths = validation.measure(blocks, rules[0].needs_distributions)
        return blocks.score_all(rules)


@dataclass(frozen=True, eq=False)
class _Inputs:
    """Validated documents and settings, for any number of sets of anchors."""

    blocks: Blocks  # the extra documents come last
    n_documents: int  # without the extra ones
    known: ArrayLike | None
    distance: Distance
    method: str
    options: Any

    def refine(
        self,
        anchors: ArrayLike | int | None,
        extra_anchors: ArrayLike | None,
        max_iter: int,
        random_state: int,
        on_pass: OnPass | None = None,
        *,
        one_block: bool = False,
        diagnosed: bool = False,
    ) -> Refinement:
        """Refine one set of anchors and score the documents."""
        validation.positive("max_iter", max_iter, or_none=False)
        n, distance = self.n_documents, self.distance
        n_labels, vectors = self._anchors(anchors, extra_anchors)
        problem = Problem(vectors, n_labels, n, distance, max_iter, random_state, on_pass)
        known = validation.known_labels(self.known, n, self.blocks.n_documents, n_labels)
        if distance.normalize:
            known[self.blocks.lengths == 0.0] = EXCLUDED
        unfitted = known == UNFITTED
        known[unfitted] = EXCLUDED
        n_used = int(np.count_nonzero(known != EXCLUDED))
        if not n_used:
            raise ArrayError("there is nothing to refine on: every document is a zero vector.")
        with self.blocks.restarted(known, one_block) as blocks:
            fitted = METHODS[self.method].fit(blocks, problem, self.options)
            rules = [fitted.rule, fitted.initial_rule]
            blocks.known = np.where(unfitted, UNKNOWN, known)
            (predictions, unrefined), scores = blocks.score_all(rules, n)
            if self.known is not None:
                predictions = np.where(np.asarray(self.known) >= 0, self.known, predictions)
            refinement = Refinement(
                predictions=predictions.astype(np.intp),
                scores=scores,
                unrefined=unrefined.astype(np.intp),
                rule=fitted.rule,
                initial_rule=fitted.initial_rule,
                centroids=fitted.centroids,
                trace=fitted.trace,
                best_iteration=fitted.best_iteration,
                converged=fitted.converged,
                n_fitted=fitted.n_fitted or n_used,
                n_without_label=int(np.count_nonzero(predictions < 0)),
                method=fitted.method or self.method,
                distance=distance.name,
                reason=fitted.reason,
                share=fitted.share if len(fitted.trace) > 1 else 0.0,
                collapsed=fitted.collapsed,
            )
            if not diagnosed:
                return refinement
            return replace(refinement, diagnosis=diagnose(blocks, known, problem, refinement))

    def _anchors(
        self, given: ArrayLike | int | None, extra_anchors: ArrayLike | None
    ) -> tuple[int, Float]:
        """Number of the labels, and their vectors followed by the extra ones."""
        n_dims = self.blocks.n_dims
        random_start = getattr(self.options, "start", "labels") == "random"
        if isinstance(given, int | np.integer):
            if not random_start:
                raise ArrayError(
                    f"anchors must be vectors, (n_labels, n_dims); got the number {given}. A number "
                    "of clusters needs start='random'."
                )
            n_labels, vectors = int(given), np.empty((0, n_dims))
        elif given is None:
            if self.distance.linear:
                raise ArrayError(
                    f"anchors are missing; {self.distance.name} needs vectors of the labels, "
                    "(n_labels, n_dims)."
                )
            n_labels, vectors = n_dims, np.eye(n_dims)
        else:
            vectors = validation.anchors("anchors", given, n_dims, self.distance)
            n_labels = len(vectors)
        if n_labels < 2:
            raise ArrayError(f"at least 2 labels are needed; got {n_labels}.")
        self.options.validate(n_labels)
        if random_start:
            self._check_random_start(n_labels, extra_anchors)
        if extra_anchors is not None:
            extra = validation.anchors("extra_anchors", extra_anchors, n_dims, self.distance)
            vectors = np.concatenate([vectors, extra])
        return n_labels, vectors

    def _check_random_start(self, n_labels: int, extra_anchors: ArrayLike | None) -> None:
        for name, value in (("extra_anchors", extra_anchors), ("known labels", self.known)):
            if value is not None:
                raise ArrayError(f"{name} need start='labels'; a random start has no anchors.")
        if self.n_documents < n_labels:
            raise ArrayError(
                f"n_documents={self.n_documents} should be >= n_labels={n_labels} for a random "
                "start."
            )


def _prepare(
    documents: ArrayLike | VectorSource,
    known: ArrayLike | None,
    extra_documents: ArrayLike | VectorSource | None,
    word_counts: csr_matrix | None,
    method: str,
    distance: str,
    n_jobs: int | None,
    options: Mapping[str, Any],
) -> _Inputs:
    """Validate the documents and measure them."""
    method = choose_method(method, distance)
    settings = method_options(method, options)
    validation.positive("n_jobs", n_jobs)
    parts = [validation.vector_source("documents", documents)]
    n_documents, n_dims = int(parts[0].shape[0]), int(parts[0].shape[1])
    if extra_documents is not None:
        parts.append(validation.vector_source("extra_documents", extra_documents, n_dims))
    if word_counts is not None:
        word_counts = validation.word_counts(word_counts, n_documents, parts)
    with Blocks(parts, words=word_counts, n_jobs=n_jobs) as blocks:
        blocks.lengths = validation.measure(blocks, not DISTANCES[distance].linear)
    return _Inputs(blocks, n_documents, known, DISTANCES[distance], method, settings)
