"""Validation of everything that is given to a refinement; nothing behind it checks again."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ulr.errors import ArrayError
from ulr.refinement.blocks import UNFITTED, UNKNOWN, Block, Blocks, State, Summary, VectorSource
from ulr.refinement.distances import Distance, unit_rows
from ulr.refinement.products import Float, Labels

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

_LENGTHS = 1e-15, 1e15  # of documents that are not zero; single precision has no more
_NOT_FINITE, _OUT_OF_RANGE, _NOT_DISTRIBUTION = 1, 2, 3  # faults of documents
_MOST_SHOWN = 5
_NO_DISTRIBUTIONS = "must be probabilities that add up to 1 for jensen-shannon; they do not in"
_SOFTMAX = ". Apply softmax to raw scores first."


def choice(name: str, value: Any, allowed: Collection[str]) -> None:
    """Refuse a value that is not one of the allowed names."""
    if not isinstance(value, str) or value not in allowed:
        raise ArrayError(f"{name} must be one of {', '.join(allowed)}; got {value!r}.")


def share(name: str, value: float | None) -> None:
    """Refuse a number outside 0 to 1."""
    if value is not None and not 0.0 <= value <= 1.0:
        raise ArrayError(f"{name} must be between 0 and 1; got {value!r}.")


def positive(name: str, value: Any, or_none: bool = True) -> None:
    """Refuse anything but an integer of at least 1, or None where that is allowed."""
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not (whole and value >= 1) and not (or_none and value is None):
        raise ArrayError(f"{name} must be an integer of at least 1; got {value!r}.")


def vector_source(
    name: str, given: ArrayLike | VectorSource, n_dims: int | None = None
) -> VectorSource:
    """Documents: an array, or a source that is sliced when needed."""
    # Arrays come first: to check a protocol takes longer than to refine a few documents.
    if not hasattr(given, "__array__") and isinstance(given, VectorSource):
        _check_shape(name, given.shape, n_dims)
        return given
    return array(name, cast(ArrayLike, given), n_dims)


def array(name: str, given: ArrayLike, n_dims: int | None = None) -> NDArray[np.floating]:
    """A two-dimensional floating array, not copied if it already is one."""
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


def anchors(name: str, given: ArrayLike, n_dims: int, distance: Distance) -> Float:
    """Vectors of labels in float64."""
    vectors = array(name, given, n_dims).astype(np.float64)
    _refuse(~np.isfinite(vectors).all(axis=1), f"{name} has NaN or infinity in")
    if not distance.linear:
        _refuse(_not_distributions(vectors), f"{name} {_NO_DISTRIBUTIONS}", _SOFTMAX)
        return vectors / vectors.sum(axis=1, keepdims=True)
    if distance.normalize:
        _refuse(
            ~vectors.any(axis=1),
            f"{name} has a zero vector, which has no direction for {distance.name}, in",
            "; use other words for the label, or another distance.",
        )
        largest = np.abs(vectors).max(axis=1, keepdims=True)  # before squares can overflow
        return unit_rows(vectors / largest)
    return vectors


def known_labels(given: ArrayLike | None, n_documents: int, n_total: int, n_labels: int) -> Labels:
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
    bad = np.flatnonzero((labels < UNFITTED) | (labels >= n_labels))
    if len(bad):
        raise ArrayError(
            f"known must be label indices from 0 to {n_labels - 1}, -1 (unknown), -2 (excluded) or -3 "
            f"(not fitted on); got {labels[bad[0]]} in {_some_rows(bad)}."
        )
    known[:n_documents] = labels
    return known


def word_counts(given: Any, n_documents: int, parts: Sequence[VectorSource]) -> csr_matrix:
    """Sparse counts of the documents; extra documents have none."""
    from scipy.sparse import csr_matrix, issparse, vstack

    if not issparse(given) or given.ndim != 2 or given.shape[0] != n_documents:
        found = getattr(given, "shape", type(given).__name__)
        raise ArrayError(
            f"word_counts must be a sparse matrix with {n_documents} rows, one per document; got "
            f"{found}."
        )
    extra = sum(int(part.shape[0]) for part in parts) - n_documents
    if extra:
        given = vstack([given, csr_matrix((extra, given.shape[1]), dtype=given.dtype)])
    return given.tocsr()


def prior(given: Any, n_labels: int) -> str | Float:
    """Proportions of the labels that add up to one, or one of the words for them."""
    if isinstance(given, str):
        choice("prior", given, ("estimate", "balanced"))
        return given
    try:
        shares = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        shares = np.empty(0)
    usable = shares.shape == (n_labels,) and (shares > 0).all()
    with np.errstate(over="ignore"):
        total = float(shares.sum()) if usable else 0.0
    if not usable or not 0 < total < np.inf:
        raise ArrayError(
            "prior must be 'estimate', 'balanced' or a positive proportion for each of the "
            f"{n_labels} labels; got {given!r}."
        )
    return shares / total


@dataclass(frozen=True)
class _Measure:
    """Measures the length of every document and finds those that cannot be used.

    State: lengths, and faults, one of those above or 0.
    """

    distributions: bool  # whether documents must be distributions

    def __call__(self, block: Block, state: State) -> tuple[State, Summary]:
        """State of one block and an empty summary."""
        documents = block.documents
        with np.errstate(over="ignore", invalid="ignore"):
            squares = np.einsum("ij,ij->i", documents, documents, dtype=np.float64)
            lengths = np.sqrt(squares)
        faults = np.zeros(len(lengths), dtype=np.uint8)
        if self.distributions:
            faults[_not_distributions(documents)] = _NOT_DISTRIBUTION
        in_range = (lengths >= _LENGTHS[0]) & (lengths <= _LENGTHS[1])
        odd = np.flatnonzero(~in_range)  # a square can overflow, or be rounded to zero
        faults[odd[documents[odd].any(axis=1)]] = _OUT_OF_RANGE
        faults[odd[~np.isfinite(documents[odd]).all(axis=1)]] = _NOT_FINITE
        return {"lengths": lengths, "faults": faults}, Summary()


def measure(blocks: Blocks, distributions: bool) -> Float:
    """Length of every document; refuses those that cannot be used."""
    blocks.run(_Measure(distributions))
    faults = blocks.state("faults")
    _refuse(faults == _NOT_FINITE, "documents have NaN or infinity in")
    _refuse(
        faults == _OUT_OF_RANGE,
        f"documents must have lengths between {_LENGTHS[0]} and {_LENGTHS[1]}, or be zero; they "
        "have not in",
        ". Scale them first.",
    )
    _refuse(faults == _NOT_DISTRIBUTION, f"documents {_NO_DISTRIBUTIONS}", _SOFTMAX)
    return blocks.state("lengths")


def _not_distributions(rows: NDArray[np.floating]) -> NDArray[np.bool_]:
    return (rows < 0).any(axis=1) | (np.abs(rows.sum(axis=1, dtype=np.float64) - 1.0) > 1e-3)


def _refuse(unusable: ArrayLike, message: str, end: str = ".") -> None:
    """Refuse an input with unusable rows; their numbers stand between message and end."""
    rows = np.flatnonzero(unusable)
    if len(rows):
        raise ArrayError(f"{message} {_some_rows(rows)}{end}")


def _some_rows(rows: NDArray[np.intp]) -> str:
    shown = ", ".join(str(row) for row in rows[:_MOST_SHOWN])
    if len(rows) == 1:
        return f"row {shown}"
    return f"{len(rows)} rows: {shown}{', …' if len(rows) > _MOST_SHOWN else ''}"
