"""`refine`, `refine_many` and `score_all`: validate the inputs, run a method, score the documents."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from ulr.errors import ArrayError, ParameterError
from ulr.progress import NO_PROGRESS, Progress
from ulr.refinement.blocks import EXCLUDED, Blocks
from ulr.refinement.diagnosis import diagnose
from ulr.refinement.discriminant import DiscriminantOptions, fit_discriminant
from ulr.refinement.distances import DISTANCES, Float, Labels, Single
from ulr.refinement.paper import PaperOptions, fit_nearest, fit_paper
from ulr.refinement.result import Fitted, Problem, Refinement, Rule
from ulr.refinement.validation import (
    check_anchors,
    check_array,
    check_choice,
    check_documents,
    check_known,
    check_positive,
    check_word_counts,
)
from ulr.threads import run_ahead, single_threaded_blas

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

_FEW_BLOCKS = 8


@dataclass(frozen=True)
class NoOptions:
    """Options of a method that has none."""


@dataclass(frozen=True)
class Method:
    """A way to refine labels."""

    fit: Callable[[Blocks, Problem, Any], Fitted]
    distances: tuple[str, ...]  # names of those that it can use
    options: type  # a dataclass with its options and their defaults
    version: int  # increased whenever its results change; part of the key of resumable work
    uses_words: bool = False  # whether it uses word counts


METHODS: dict[str, Method] = {
    "discriminant": Method(
        fit_discriminant, ("cosine",), DiscriminantOptions, version=10, uses_words=True
    ),
    "ulr": Method(fit_paper, tuple(DISTANCES), PaperOptions, version=2),
    "none": Method(fit_nearest, tuple(DISTANCES), NoOptions, version=2),
}
_DEFAULT = "discriminant"


def choose_method(method: str, distance: str) -> str:
    """The method that ``auto`` stands for with a distance; refuses what does not go together."""
    check_choice("distance", distance, DISTANCES)
    check_choice("method", method, ["auto", *METHODS])
    if method == "auto":
        return _DEFAULT if distance in METHODS[_DEFAULT].distances else "ulr"
    if distance not in METHODS[method].distances:
        raise ParameterError(
            "method",
            f"{method!r} works with {', '.join(METHODS[method].distances)}; got distance "
            f"{distance!r}. Use method 'ulr', or leave the method out.",
        )
    return method


def refine(
    documents: ArrayLike,
    anchors: ArrayLike | int | None = None,
    *,
    method: str = "auto",
    distance: str = "cosine",
    known: ArrayLike | None = None,
    extra_documents: ArrayLike | None = None,
    extra_anchors: ArrayLike | None = None,
    word_counts: csr_matrix | None = None,
    random_state: int = 0,
    max_iter: int = 100,
    n_jobs: int | None = None,
    progress: Progress = NO_PROGRESS,
    **options: Any,
) -> Refinement:
    """Classify documents by their nearest label, then refine the labels on the documents.

    Parameters
    ----------
    documents
        (n_documents, n_dims) vectors; probabilities of the labels with ``jensen-shannon``. Memory
        maps are read block by block, and may be larger than memory. The paper's method computes in
        the precision of the vectors, the default method in single precision.
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
        documents to leave out, which get no label. Known documents keep their label and take part.
    extra_documents
        (n, n_dims) further documents to refine on, which get no prediction.
    extra_anchors
        (n, n_dims) further labels that take part in the refinement and are never predicted.
    word_counts
        (n_documents, n_words) sparse counts of the words of each document, as of
        ``ulr.classifier.count_words``; a second view of the documents for methods that can use it.
    random_state
        Seed of everything that is drawn.
    max_iter
        Most passes over the documents, the first, unrefined one included.
    n_jobs
        Number of threads; every available core by default. It never changes the result.
    progress
        Receives a stage ``Refining`` and every pass. An exception that it raises ends the
        refinement.
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
    with single_threaded_blas():
        task = Task(
            documents,
            method=method,
            distance=distance,
            known=known,
            extra_documents=extra_documents,
            word_counts=word_counts,
            n_jobs=n_jobs,
            **options,
        )
        return task.refine(anchors, extra_anchors, max_iter, random_state, progress)


def refine_many(
    documents: ArrayLike,
    anchor_sets: Iterable[ArrayLike],
    *,
    extra_anchors: ArrayLike | None = None,
    max_iter: int = 100,
    random_state: int = 0,
    **settings: Any,
) -> Iterator[Refinement]:
    """Refine several sets of anchors, each (n_labels, n_dims), over the same documents.

    Each result is the one that `refine` gives for the set alone, up to rounding and without a
    diagnosis; other parameters are those of `refine`. The documents are validated once, and results
    are computed when they are asked for, a few sets ahead where documents are so few that threads
    serve several sets.
    """
    with single_threaded_blas():
        task = Task(documents, **settings)
    # Few documents hardly occupy several threads, but several sets of anchors do. Each thread then
    # has all documents in one block: between short operations threads wait for each other.
    few = task.blocks.n_blocks <= _FEW_BLOCKS

    def refined(anchors: ArrayLike) -> Refinement:
        with single_threaded_blas():  # entered per set: the caller may do anything between two sets
            return task.refine(
                anchors, extra_anchors, max_iter, random_state, one_block=few, diagnosed=False
            )

    if not few or task.blocks.n_jobs == 1:
        yield from map(refined, anchor_sets)
        return
    at_once = task.blocks.n_jobs
    with ThreadPoolExecutor(at_once, thread_name_prefix="ulr") as pool:
        yield from run_ahead(pool, (partial(refined, each) for each in anchor_sets), at_once)


def score_all(
    documents: ArrayLike,
    rules: Sequence[Rule],
    *,
    word_counts: csr_matrix | None = None,
    n_jobs: int | None = None,
) -> tuple[list[Labels], Single]:
    """Classify documents by each of some rules, of `Refinement.rule` and `Refinement.initial_rule`.

    Returns the labels by each rule, -1 for documents without one, and the scores by the first rule,
    (n_documents, n_labels). Word counts are for rules that have weights of words.
    """
    check_positive("n_jobs", n_jobs)
    rows = check_array("documents", documents)
    if rows.shape[1] != rules[0].n_dims:
        raise ArrayError(
            f"documents must have n_dims={rules[0].n_dims}, as those that the rule was fitted on; "
            f"got {rows.shape[1]}."
        )
    with single_threaded_blas():
        blocks = Blocks([rows], words=word_counts, n_jobs=n_jobs, n_labels=rules[0].n_labels)
        blocks.lengths = check_documents(blocks, rules[0].needs_distributions)
        return blocks.score_all(rules)


class Task:
    """Validated documents and settings, for any number of sets of anchors."""

    def __init__(
        self,
        documents: ArrayLike,
        *,
        method: str = "auto",
        distance: str = "cosine",
        known: ArrayLike | None = None,
        extra_documents: ArrayLike | None = None,
        word_counts: csr_matrix | None = None,
        n_jobs: int | None = None,
        **options: Any,
    ) -> None:
        self._method, self._known = choose_method(method, distance), known
        self._distance = DISTANCES[distance]
        names = {name: [each.name for each in fields(m.options)] for name, m in METHODS.items()}
        for option in options:
            if option not in names[self._method]:
                others = [other for other in METHODS if option in names[other]]
                where = f"; it is an option of {', '.join(others)}" if others else ""
                raise ParameterError(
                    "method",
                    f"{self._method!r} has no option {option!r}{where}. "
                    f"Its options: {', '.join(names[self._method]) or 'none'}.",
                )
        self._options = METHODS[self._method].options(**options)
        check_positive("n_jobs", n_jobs)
        parts = [check_array("documents", documents)]
        self._n_documents, n_dims = parts[0].shape
        if extra_documents is not None:
            parts.append(check_array("extra_documents", extra_documents, n_dims))
        if word_counts is not None:
            n_extra = sum(len(part) for part in parts[1:])
            word_counts = check_word_counts(word_counts, self._n_documents, n_extra)
        self.blocks = Blocks(parts, words=word_counts, n_jobs=n_jobs)
        self.blocks.lengths = check_documents(self.blocks, not self._distance.linear)

    def refine(
        self,
        anchors: ArrayLike | int | None,
        extra_anchors: ArrayLike | None = None,
        max_iter: int = 100,
        random_state: int = 0,
        progress: Progress = NO_PROGRESS,
        *,
        one_block: bool = False,  # every part is one block, and one thread does everything
        diagnosed: bool = True,
    ) -> Refinement:
        """Refine one set of anchors and score the documents."""
        check_positive("max_iter", max_iter, or_none=False)
        n, distance, given = self._n_documents, self._distance, self.blocks
        n_labels, vectors = self._anchors(anchors, extra_anchors)
        problem = Problem(
            vectors, n_labels, n, distance, self._method, max_iter, random_state, progress
        )
        codes = check_known(self._known, n, given.n_documents, n_labels)
        known = codes.copy()
        if distance.normalize:
            known[given.lengths == 0.0] = EXCLUDED
        if (known == EXCLUDED).all():
            raise ArrayError("there is nothing to refine on: every document is a zero vector.")
        blocks = Blocks(
            given.parts,
            known,
            given.lengths,
            given.words,
            n_jobs=1 if one_block else given.n_jobs,
            block_rows=given.n_documents if one_block else None,
            n_labels=max(n_labels, len(vectors)),
        )
        fitted = METHODS[self._method].fit(blocks, problem, self._options)
        blocks.clear_states()
        (predictions, unrefined), scores = blocks.score_all([fitted.rule, fitted.initial_rule], n)
        refinement = Refinement(
            **vars(fitted),
            predictions=np.where(codes[:n] >= 0, codes[:n], predictions).astype(np.intp),
            scores=scores,
            unrefined=unrefined.astype(np.intp),
            distance=distance.name,
        )
        if not diagnosed:
            return refinement
        return replace(refinement, diagnosis=diagnose(blocks, problem, refinement))

    def _anchors(
        self, given: ArrayLike | int | None, extra_anchors: ArrayLike | None
    ) -> tuple[int, Float]:
        """Number of the labels, and their vectors followed by the extra ones."""
        n_dims = self.blocks.n_dims
        random_start = getattr(self._options, "start", "labels") == "random"
        if isinstance(given, int | np.integer):
            if not random_start:
                raise ArrayError(
                    f"anchors must be vectors, (n_labels, n_dims); got the number {given}. A number "
                    "of clusters needs start='random'."
                )
            n_labels, vectors = int(given), np.empty((0, n_dims))
        elif given is None:
            if self._distance.linear:
                raise ArrayError(
                    f"anchors are missing; {self._distance.name} needs vectors of the labels, "
                    "(n_labels, n_dims)."
                )
            n_labels, vectors = n_dims, np.eye(n_dims)
        else:
            vectors = check_anchors("anchors", given, n_dims, self._distance)
            n_labels = len(vectors)
        if n_labels < 2:
            raise ArrayError(f"at least 2 labels are needed; got {n_labels}.")
        if random_start:
            for name, value in (("extra_anchors", extra_anchors), ("known labels", self._known)):
                if value is not None:
                    raise ArrayError(f"{name} need start='labels'; a random start has no anchors.")
            if self._n_documents < n_labels:
                raise ArrayError(
                    f"n_documents={self._n_documents} should be >= n_labels={n_labels} for a random "
                    "start."
                )
        if extra_anchors is not None:
            extra = check_anchors("extra_anchors", extra_anchors, n_dims, self._distance)
            vectors = np.concatenate([vectors, extra])
        return n_labels, vectors
