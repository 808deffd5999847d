"""Checks of what is handed in at the door: each says what was expected, what came, what to do."""

from __future__ import annotations

from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ulr.errors import ArrayError
from ulr.refine.distances import Distance, Float
from ulr.refine.points import Vectors
from ulr.refine.survey import not_distributions, refuse_other_than_distributions, some_rows

Entry = TypeVar("Entry")


def choice(name: str, value: str, table: dict[str, Entry]) -> Entry:
    """The entry of a table that a name stands for."""
    if not isinstance(value, str) or value not in table:
        raise ArrayError(f"{name} must be one of {', '.join(table)}; got {value!r}.")
    return table[value]


def share(name: str, value: float | None) -> None:
    """Refuse what is no share."""
    if value is not None and not 0.0 <= value <= 1.0:
        raise ArrayError(f"{name} must be between 0 and 1; got {value!r}.")


def positive(name: str, value: int | None) -> None:
    """Refuse what is no whole number from 1 on."""
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if value is not None and not (whole and value >= 1):
        raise ArrayError(f"{name} must be a whole number of at least 1; got {value!r}.")


def rows(name: str, given: ArrayLike | Vectors, n_dims: int | None = None) -> Vectors:
    """Documents: an array, or something that is sliced as needed."""
    if isinstance(given, Vectors) and not hasattr(given, "__array__"):
        _check_shape(name, given.shape, n_dims)
        return given
    return array(name, cast(ArrayLike, given), n_dims)


def array(name: str, given: ArrayLike, n_dims: int | None = None) -> NDArray[np.floating]:
    """A two-dimensional float array, not copied where it already is one."""
    try:
        rows = np.asanyarray(given)
    except ValueError as error:
        raise ArrayError(f"{name} must be rows of equal length; {error}.") from error
    if rows.dtype.kind not in "fiub":
        raise ArrayError(f"{name} must be numbers; got an array of {rows.dtype}.")
    _check_shape(name, rows.shape, n_dims)
    return rows if rows.dtype.kind == "f" else rows.astype(np.float32)


def _check_shape(name: str, shape: tuple[int, ...], n_dims: int | None) -> None:
    if len(shape) != 2:
        raise ArrayError(f"{name} must have 2 dimensions, (rows, n_dims); got shape {shape}.")
    if shape[0] == 0 or shape[1] == 0:
        raise ArrayError(f"{name} is empty: its shape is {shape}.")
    if n_dims is not None and shape[1] != n_dims:
        raise ArrayError(f"{name} has n_dims={shape[1]}, but the documents have {n_dims}.")


def finite_float64(name: str, rows: NDArray[np.floating]) -> Float:
    """Rows in float64, none of them NaN or infinite."""
    vectors = rows.astype(np.float64)
    bad = np.flatnonzero(~np.isfinite(vectors).all(axis=1))
    if len(bad):
        raise ArrayError(f"{name} has NaN or infinity in {some_rows(bad)}.")
    return vectors


def vectors(name: str, given: ArrayLike, n_dims: int, metric: Distance) -> Float:
    """Label vectors, as the distance compares them."""
    vectors = finite_float64(name, array(name, given, n_dims))
    if metric.name == "jensen-shannon":
        refuse_other_than_distributions(name, np.flatnonzero(not_distributions(vectors)))
    if metric.name == "cosine":
        zero = np.flatnonzero(~vectors.any(axis=1))
        if len(zero):
            raise ArrayError(
                f"{name} has a zero vector, which has no direction for cosine, in "
                f"{some_rows(zero)}; use other words for the label, or another distance."
            )
    return metric.points(vectors)


def anchors(
    labels: ArrayLike | int | None, n_dims: int, metric: Distance, start: str
) -> tuple[int, Float]:
    """How many labels there are, and their vectors."""
    nothing = np.empty((0, n_dims))
    if isinstance(labels, int | np.integer):
        if start != "random":
            raise ArrayError(
                f"labels must be vectors, (n_labels, n_dims); got the number {labels}. "
                "A number of clusters needs start='random'."
            )
        n_labels, anchors = int(labels), nothing
    elif labels is None:
        if metric.name != "jensen-shannon":
            raise ArrayError(
                f"labels are missing; {metric.name} needs label vectors, (n_labels, n_dims)."
            )
        n_labels, anchors = n_dims, np.eye(n_dims)
    else:
        anchors = vectors("labels", labels, n_dims, metric)
        n_labels = len(anchors)
    if n_labels < 2:
        raise ArrayError(f"at least 2 labels are needed; got {n_labels}.")
    return n_labels, anchors


def known(
    given: ArrayLike | None, n_documents: int, n_points: int, n_labels: int, start: str
) -> NDArray[np.int32]:
    """The label of every point, -1 where it is not known."""
    known = np.full(n_points, -1, dtype=np.int32)
    if given is None:
        return known
    if start == "random":
        raise ArrayError("known labels need start='labels'; a random start has no anchors.")
    labels = np.asarray(given)
    if labels.shape != (n_documents,) or labels.dtype.kind not in "iu":
        raise ArrayError(
            f"known must be {n_documents} whole numbers, one a document, -1 where the label is "
            f"not known; got shape {labels.shape} of {labels.dtype}."
        )
    bad = np.flatnonzero((labels < -1) | (labels >= n_labels))
    if len(bad):
        raise ArrayError(
            f"known must be label indices from 0 to {n_labels - 1}, or -1; got "
            f"{labels[bad[0]]} in {some_rows(bad)}."
        )
    if (labels >= 0).all() and n_points == n_documents:
        raise ArrayError("every document is known; at least one must be -1 to be classified.")
    known[:n_documents] = labels
    return known


def prior(given: Any, method: str, n_labels: int, extra_labels: object = None) -> str | Float:
    """How large labels are, as shares that add up to one, or as one of the words for it."""
    if isinstance(given, str):
        choice("prior", given, {"estimate": None, "balanced": None})
        if given == "balanced" and method == "ulr":
            raise ArrayError("method 'ulr' has no prior; use method 'mixture' or leave it out.")
        return given
    if method != "mixture":
        raise ArrayError(f"method {method!r} has no prior; use method 'mixture' or leave it out.")
    if extra_labels is not None:
        raise ArrayError("proportions do not go with extra_labels; use prior 'estimate'.")
    try:
        shares = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        shares = np.empty(0)
    if shares.shape != (n_labels,) or not (np.isfinite(shares) & (shares > 0)).all():
        raise ArrayError(
            "prior must be 'estimate', 'balanced' or a positive proportion for each of the "
            f"{n_labels} labels; got {given!r}."
        )
    return shares / shares.sum()
