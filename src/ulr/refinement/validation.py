"""Validation of everything that is given to a refinement; nothing behind it checks again."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ulr.errors import ArrayError, ParameterError
from ulr.refinement.blocks import EXCLUDED, UNKNOWN, Block, Blocks, State, Summary
from ulr.refinement.distances import Distance, Float, Labels
from ulr.vectors import unit_rows

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

_LENGTHS = 1e-15, 1e15  # of documents that are not zero; single precision has no more
_NOT_FINITE, _OUT_OF_RANGE, _NOT_DISTRIBUTION = 1, 2, 3  # faults of documents
_MOST_SHOWN = 5
_NO_DISTRIBUTIONS = "must be probabilities that add up to 1 for jensen-shannon; they do not in"
_SOFTMAX = ". Apply softmax to raw scores first."


def check_choice(name: str, value: Any, allowed: Collection[str]) -> None:
    """Refuse a value that is not one of the allowed names."""
    if not isinstance(value, str) or value not in allowed:
        raise ParameterError(name, f"must be one of {', '.join(allowed)}; got {value!r}.")


def check_positive(name: str, value: Any, or_none: bool = True) -> None:
    """Refuse anything but an integer of at least 1, or None where that is allowed."""
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not (whole and value >= 1) and not (or_none and value is None):
        raise ParameterError(name, f"must be an integer of at least 1; got {value!r}.")


def check_array(name: str, given: ArrayLike, n_dims: int | None = None) -> NDArray[np.floating]:
    """A two-dimensional floating array, not copied if it already is one."""
    try:
        rows = np.asanyarray(given)
    except ValueError as error:
        raise ArrayError(f"{name} must be rows of equal length; {error}.") from error
    if rows.dtype.kind not in "fiub":
        raise ArrayError(f"{name} must be numbers; got an array of {rows.dtype}.")
    if rows.ndim != 2:
        raise ArrayError(f"{name} must have 2 dimensions, (rows, n_dims); got shape {rows.shape}.")
    if rows.size == 0:
        raise ArrayError(f"{name} is empty: its shape is {rows.shape}.")
    if n_dims is not None and rows.shape[1] != n_dims:
        raise ArrayError(f"{name} has n_dims={rows.shape[1]}, but the documents have {n_dims}.")
    return rows if rows.dtype.kind == "f" else rows.astype(np.float32)


def check_anchors(name: str, given: ArrayLike, n_dims: int, distance: Distance) -> Float:
    """Vectors of labels in float64."""
    vectors = check_array(name, given, n_dims).astype(np.float64)
    _refuse(~np.isfinite(vectors).all(axis=1), f"{name} has NaN or infinity in")
    if not distance.linear:
        _refuse(_not_distributions(vectors), f"{name} {_NO_DISTRIBUTIONS}", _SOFTMAX)
        return vectors / vectors.sum(axis=1, keepdims=True)
    if not distance.normalize:
        return vectors
    _refuse(
        ~vectors.any(axis=1),
        f"{name} has a zero vector, which has no direction for {distance.name}, in",
        "; use other words for the label, or another distance.",
    )
    largest = np.abs(vectors).max(axis=1, keepdims=True)  # before squares can overflow
    return unit_rows(vectors / largest)


def check_known(given: ArrayLike | None, n_documents: int, n_total: int, n_labels: int) -> Labels:
    """The label code of every document, see `refine`; extra documents are unknown."""
    known = np.full(n_total, UNKNOWN, dtype=np.int32)
    if given is None:
        return known
    labels = np.asarray(given)
    if labels.shape != (n_documents,) or labels.dtype.kind not in "iu":
        raise ArrayError(
            f"known must be {n_documents} integers, one per document, -1 where the label is "
            f"unknown; got shape {labels.shape} of {labels.dtype}."
        )
    bad = (labels < EXCLUDED) | (labels >= n_labels)
    _refuse(
        bad,
        f"known must be label indices from 0 to {n_labels - 1}, -1 (unknown) or -2 (excluded); got "
        f"{labels[bad.argmax()]} in",
    )
    known[:n_documents] = labels
    return known


def check_word_counts(given: Any, n_documents: int, n_extra: int) -> csr_matrix:
    """Sparse counts of the documents; extra documents have none."""
    from scipy.sparse import csr_matrix, issparse, vstack

    if not issparse(given) or given.ndim != 2 or given.shape[0] != n_documents:
        found = getattr(given, "shape", type(given).__name__)
        raise ArrayError(
            f"word_counts must be a sparse matrix with {n_documents} rows, one per document; got "
            f"{found}."
        )
    if n_extra:
        given = vstack([given, csr_matrix((n_extra, given.shape[1]), dtype=given.dtype)])
    return given.tocsr()


def check_prior(given: Any, n_labels: int) -> str | Float:
    """Proportions of the labels that add up to one, or one of the words for them."""
    if isinstance(given, str):
        check_choice("prior", given, ("estimate", "balanced"))
        return given
    try:
        shares = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        shares = np.empty(0)
    with np.errstate(over="ignore", invalid="ignore"):
        total = float(shares.sum())
    if shares.shape != (n_labels,) or not (shares > 0).all() or not total < np.inf:
        raise ParameterError(
            "prior",
            "must be 'estimate', 'balanced' or a positive proportion for each of the "
            f"{n_labels} labels; got {given!r}.",
        )
    return shares / total


def check_documents(blocks: Blocks, distributions: bool) -> Float:
    """Length of every document; refuses those that cannot be used."""
    lengths, faults = np.empty(blocks.n_documents), np.zeros(blocks.n_documents, dtype=np.uint8)

    def measure(block: Block, state: State) -> tuple[State, Summary]:
        rows, documents = slice(block.start, block.start + len(block.known)), block.documents
        with np.errstate(over="ignore", invalid="ignore"):
            squares = np.einsum("ij,ij->i", documents, documents, dtype=np.float64)
            lengths[rows] = found = np.sqrt(squares)
        if distributions:
            faults[rows][_not_distributions(documents)] = _NOT_DISTRIBUTION
        # A square can overflow, or be rounded to zero.
        odd = np.flatnonzero(~((found >= _LENGTHS[0]) & (found <= _LENGTHS[1])))
        faults[rows][odd[documents[odd].any(axis=1)]] = _OUT_OF_RANGE
        faults[rows][odd[~np.isfinite(documents[odd]).all(axis=1)]] = _NOT_FINITE
        return state, Summary()

    blocks.run(measure)
    if faults.any():
        _refuse(faults == _NOT_FINITE, "documents have NaN or infinity in")
        _refuse(
            faults == _OUT_OF_RANGE,
            f"documents must have lengths between {_LENGTHS[0]} and {_LENGTHS[1]}, or be zero; they "
            "have not in",
            ". Scale them first.",
        )
        _refuse(faults == _NOT_DISTRIBUTION, f"documents {_NO_DISTRIBUTIONS}", _SOFTMAX)
    return lengths


def _not_distributions(rows: NDArray[np.floating]) -> NDArray[np.bool_]:
    return (rows < 0).any(axis=1) | (np.abs(rows.sum(axis=1, dtype=np.float64) - 1.0) > 1e-3)


def _refuse(unusable: ArrayLike, message: str, end: str = ".") -> None:
    """Refuse an input with unusable rows; their numbers stand between message and end."""
    rows = np.flatnonzero(unusable)
    if len(rows):
        shown = ", ".join(str(row) for row in rows[:_MOST_SHOWN])
        more = ", …" if len(rows) > _MOST_SHOWN else ""
        where = f"row {shown}" if len(rows) == 1 else f"{len(rows)} rows: {shown}{more}"
        raise ArrayError(f"{message} {where}{end}")
