"""The door to the refinement: what can be asked for; checked before anything runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ulr.errors import ArrayError
from ulr.refine import checks
from ulr.refine.distances import DISTANCES, Distance, EmptyCluster, Keep
from ulr.refine.engines import Engine, choose_engine, run
from ulr.refine.loop import Problem, Settings
from ulr.refine.many import run_each, run_many
from ulr.refine.mixture import MOST_DIMS, refine_mixture
from ulr.refine.points import Points, Vectors
from ulr.refine.result import OnPass, Refinement
from ulr.refine.survey import Survey, survey


def _unrefined(problem: Problem, settings: Settings, engine: Engine, survey: Survey) -> Refinement:
    return run(problem, replace(settings, max_iterations=1), engine, survey)


METHODS: dict[str, Callable[[Problem, Settings, Engine, Survey], Refinement]] = {
    "ulr": run,
    "none": _unrefined,
    "mixture": refine_mixture,
}


def refine(
    documents: ArrayLike | Vectors,
    labels: ArrayLike | int | None = None,
    *,
    distance: str = "cosine",
    method: str = "auto",
    prior: str | ArrayLike = "estimate",
    known: ArrayLike | None = None,
    extra_documents: ArrayLike | Vectors | None = None,
    extra_labels: ArrayLike | None = None,
    start: Literal["labels", "random"] = "labels",
    seed: int = 0,
    max_iterations: int = 100,
    anchor_weight: float | None = None,
    known_weight: float | None = None,
    keep: Keep | None = None,
    empty_cluster: EmptyCluster | None = None,
    threads: int | None = None,
    block_rows: int | None = None,
    shortcuts: bool = True,
    on_pass: OnPass | None = None,
) -> Refinement:
    """Classify documents by their nearest label, then refine the labels on the documents.

    Parameters
    ----------
    documents
        (n_documents, n_dims) vectors; probabilities of the labels with ``jensen-shannon``. A
        memory-mapped array or other `Vectors` is read block by block and may be larger than
        memory.
    labels
        (n_labels, n_dims) vectors of the labels. May be left out with ``jensen-shannon``, where
        label c starts as certainty of c. With a random start, the vectors to name the clusters
        by, or just the number of clusters.
    distance
        ``cosine``, ``l2`` (squared Euclidean), ``dot`` or ``jensen-shannon``.
    method
        ``mixture`` makes clusters around the labels and then a mixture of Gaussians, for
        ``cosine``; ``ulr`` refines as the paper does; ``none`` stops at the nearest label.
        ``auto`` is ``mixture``, or ``ulr`` where something is asked for that only it has, or where
        documents have more than 2,048 dimensions.
    prior
        How large the labels are: ``estimate`` finds out, ``balanced`` takes them as equal, or
        (n_labels,) the proportions that are known. Only for ``mixture``.
    known
        (n_documents,) label index of the documents whose label is known, -1 for the others.
        These stay in their cluster, and their mean takes part in every update.
    extra_documents
        (n, n_dims) further documents that take part in refinement and get no prediction.
    extra_labels
        (n, n_dims) further labels that take part in refinement and are never predicted.
    start
        ``labels``, or ``random``: the centroids start at random documents, are plain cluster
        means, and are matched one-to-one to `labels` at the end.
    seed
        Of the random start.
    max_iterations
        Most passes over the documents, the first, unrefined one included.
    anchor_weight
        Share of the label vector in an updated centroid; 0.5, and 0 with ``jensen-shannon``. This
        and the next three, like a random start, are the paper's own: only for ``ulr``.
    known_weight
        Share of the known documents' mean in the rest of it, where there are any: with 0.5, which
        is the default, a centroid is 1/4 cluster mean, 1/4 mean of known documents and 1/2 label
        vector.
    keep
        The answer is the iteration with the ``lowest`` objective, or the ``last`` (the default
        with ``jensen-shannon``).
    empty_cluster
        A cluster without documents takes the ``mean`` of all documents, or keeps its
        ``previous`` centroid (the default with ``jensen-shannon``).
    threads
        Threads over row blocks; every core by default. It never changes the result.
    block_rows
        Documents worked on at a time by one thread.
    shortcuts
        Score a document again only when its label could change. Without them every document is
        scored in every pass, in float64: the same labels, slowly.
    on_pass
        Called after every pass with a `Pass`.

    Returns
    -------
    Refinement

    Raises
    ------
    ArrayError
        When something given cannot be used; the message says what would be.
    """
    metric = checks.choice("distance", distance, DISTANCES)
    checks.choice("start", start, {"labels": None, "random": None})
    of_paper = {
        "start='random'": start == "random",
        "anchor_weight": anchor_weight is not None,
        "known_weight": known_weight is not None,
        "keep": keep is not None,
        "empty_cluster": empty_cluster is not None,
    }
    parts = _parts(documents, extra_documents)
    n_documents, n_dims = parts[0].shape
    asked = [name for name, is_asked in of_paper.items() if is_asked]
    method = choose_method(method, distance, asked, n_dims)
    solve = METHODS[method]
    checks.share("known_weight", known_weight)
    checks.positive("threads", threads)
    checks.positive("block_rows", block_rows)
    settings = _settings(
        metric,
        method=method,
        max_iterations=max_iterations,
        anchor_weight=anchor_weight,
        keep=keep,
        empty_cluster=empty_cluster,
        known_weight=0.5 if known_weight is None else known_weight,
        random_start=start == "random",
        seed=seed,
        on_pass=on_pass,
    )
    n_labels, anchors = checks.anchors(labels, n_dims, metric, start)
    if extra_labels is not None:
        if start == "random":
            raise ArrayError("extra_labels need start='labels'; a random start has no anchors.")
        extra = checks.vectors("extra_labels", extra_labels, n_dims, metric)
        anchors = np.concatenate([anchors, extra])
    if start == "random" and n_documents < n_labels:
        raise ArrayError(
            f"n_documents={n_documents} should be >= n_labels={n_labels} for a random start."
        )
    settings = replace(settings, prior=checks.prior(prior, method, n_labels, extra_labels))
    n_points = sum(part.shape[0] for part in parts)
    problem = Problem(
        points=Points(parts, metric, threads, block_rows, len(anchors) or n_labels),
        anchors=anchors,
        n_documents=n_documents,
        n_labels=n_labels,
        known=checks.known(known, n_documents, n_points, n_labels, start),
    )
    with problem.points.at_work():
        looked_at = survey(problem.points)
        engine = choose_engine(problem.points, looked_at, anchors, shortcuts)
        return solve(problem, settings, engine, looked_at)


def refine_many(
    documents: ArrayLike | Vectors,
    label_sets: Sequence[ArrayLike],
    *,
    distance: str = "cosine",
    method: str = "auto",
    prior: str | ArrayLike = "estimate",
    known: ArrayLike | None = None,
    extra_documents: ArrayLike | Vectors | None = None,
    extra_labels: ArrayLike | None = None,
    max_iterations: int = 100,
    anchor_weight: float | None = None,
    keep: Keep | None = None,
    empty_cluster: EmptyCluster | None = None,
    threads: int | None = None,
) -> Iterator[Refinement]:
    """Refine many sets of labels over the same documents, together.

    Each result is the one that `refine` gives for the set alone. They come one after another, so
    that no more than a group of them need be in memory.

    Parameters
    ----------
    documents
        As in `refine`.
    label_sets
        Label vectors of each set, (n_labels, n_dims).
    distance, method, prior, known, extra_documents, extra_labels, max_iterations
        As in `refine`, the same for all sets.
    anchor_weight, keep, empty_cluster, threads
        As in `refine`.

    Yields
    ------
    Refinement
        Of each set, in order.
    """
    metric = checks.choice("distance", distance, DISTANCES)
    given = {"anchor_weight": anchor_weight, "keep": keep, "empty_cluster": empty_cluster}
    asked = [name for name, value in given.items() if value is not None]
    parts = _parts(documents, extra_documents)
    n_documents, n_dims = parts[0].shape
    method = choose_method(method, distance, asked, n_dims)
    settings = _settings(
        metric,
        method=method,
        max_iterations=max_iterations,
        anchor_weight=anchor_weight,
        keep=keep,
        empty_cluster=empty_cluster,
    )
    checks.positive("threads", threads)
    own = [checks.anchors(labels, n_dims, metric, "labels")[1] for labels in label_sets]
    if not own:
        return
    fewest = min(map(len, own))
    if not isinstance(prior, str) and fewest < max(map(len, own)):
        raise ArrayError("proportions need sets of equally many labels; use prior 'estimate'.")
    settings = replace(settings, prior=checks.prior(prior, method, fewest, extra_labels))
    anchors = own
    if extra_labels is not None:
        extra = checks.vectors("extra_labels", extra_labels, n_dims, metric)
        anchors = [np.concatenate([each, extra]) for each in own]
    points = Points(parts, metric, threads, n_labels=max(map(len, anchors)))
    labelled = checks.known(known, n_documents, points.n_rows, fewest, "labels")
    problems = [
        Problem(points, each, n_documents, len(labels), labelled)
        for each, labels in zip(anchors, own, strict=True)
    ]
    plain = known is None and extra_labels is None and extra_documents is None
    with points.at_work():
        looked_at = survey(points)
        engine = choose_engine(points, looked_at, np.concatenate(anchors), shortcuts=True)
        if plain and method != "mixture":
            if method == "none":
                settings = replace(settings, max_iterations=1)
            yield from run_many(problems, settings, engine, looked_at)
        else:
            yield from run_each(METHODS[method], problems, settings, engine, looked_at)


def choose_method(method: str, distance: str, of_paper: Sequence[str] = (), n_dims: int = 0) -> str:
    """The method to use.

    Parameters
    ----------
    method, distance
        As in `refine`.
    of_paper
        What is asked for that only the paper's method has.
    n_dims
        Dimensions of the documents, of which ``mixture`` is worth so many only.
    """
    checks.choice("distance", distance, DISTANCES)
    checks.choice("method", method, {"auto": None, **METHODS})
    if distance != "cosine":
        of_paper = [f"distance {distance!r}", *of_paper]
    if method == "auto":
        return "ulr" if of_paper or n_dims > MOST_DIMS else "mixture"
    if method == "mixture" and of_paper:
        raise ArrayError(
            f"method 'mixture' has no {' and no '.join(of_paper)}; use method 'ulr', or leave it "
            "out."
        )
    return method


def nearest(
    documents: ArrayLike | Vectors,
    centroids: ArrayLike,
    *,
    distance: str = "cosine",
    threads: int | None = None,
) -> tuple[NDArray[np.intp], NDArray[np.float32]]:
    """Classify documents by given centroids, e.g. new ones by those of a `Refinement`.

    Parameters
    ----------
    documents
        (n_documents, n_dims).
    centroids
        (n_labels, n_dims).
    distance
        As in `refine`.
    threads
        As in `refine`.

    Returns
    -------
    predictions, scores
        (n_documents,) label indices and (n_documents, n_labels) scores, larger is closer.
    """
    metric = checks.choice("distance", distance, DISTANCES)
    checks.positive("threads", threads)
    rows = checks.rows("documents", documents)
    targets = checks.finite_float64(
        "centroids", checks.array("centroids", centroids, rows.shape[1])
    )
    points = Points([rows], metric, threads, n_labels=len(targets))
    with points.at_work():
        engine = choose_engine(points, survey(points), targets, shortcuts=True)
        return engine.score(targets, points.n_rows)


def _parts(documents: ArrayLike | Vectors, extra: ArrayLike | Vectors | None) -> list[Vectors]:
    """The documents, and the extra ones where there are any."""
    parts = [checks.rows("documents", documents)]
    if extra is not None:
        parts.append(checks.rows("extra_documents", extra, parts[0].shape[1]))
    return parts


def _settings(
    metric: Distance,
    *,
    method: str,
    max_iterations: int,
    anchor_weight: float | None,
    keep: Keep | None,
    empty_cluster: EmptyCluster | None,
    known_weight: float = 0.5,
    random_start: bool = False,
    seed: int = 0,
    on_pass: OnPass | None = None,
) -> Settings:
    """Settings with the distance's own where none are given, checked."""
    keep = keep or metric.keep
    empty_cluster = empty_cluster or metric.empty_cluster
    checks.choice("keep", keep, {"lowest": None, "last": None})
    checks.choice("empty_cluster", empty_cluster, {"mean": None, "previous": None})
    checks.share("anchor_weight", anchor_weight)
    checks.positive("max_iterations", max_iterations or 0)
    return Settings(
        method=method,
        max_iterations=max_iterations,
        anchor_weight=metric.anchor_weight if anchor_weight is None else anchor_weight,
        known_weight=known_weight,
        keep=keep,
        empty_cluster=empty_cluster,
        random_start=random_start,
        seed=seed,
        on_pass=on_pass,
    )
