"""One look at every document before a refinement: can it be used, how long is it, is it zero."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ulr.errors import ArrayError
from ulr.refine import loops
from ulr.refine.distances import Float
from ulr.refine.points import Points, side_by_side

_FEW_ROWS = 512  # that fit into a cache in float64


@dataclass(frozen=True, eq=False)
class Survey:
    """What every document is like.

    Attributes
    ----------
    squares
        (n_rows,) squared length of each row as it was given.
    """

    squares: Float

    def count_zero(self, n_rows: int) -> int:
        """How many of the first rows are zero vectors."""
        return int(np.count_nonzero(self.squares[:n_rows] == 0.0))


def survey(points: Points) -> Survey:
    """Look at every document once.

    Raises
    ------
    ArrayError
        When a row is not finite, or not a distribution where the distance needs one.
    """
    distributions = points.distance.name == "jensen-shannon"

    def work(rows: slice, raw: NDArray[np.floating]) -> tuple[Float, NDArray[np.intp]]:
        wrong = not_distributions(raw) if distributions else np.zeros(len(raw), dtype=bool)
        return _squares(raw), rows.start + np.flatnonzero(wrong)

    squares, wrong = zip(*points.map_rows(work, alone=points.is_small), strict=True)
    result = Survey(np.concatenate(squares))
    unusable = np.flatnonzero(~np.isfinite(result.squares))
    if len(unusable):
        raise ArrayError(f"documents have NaN or infinity in {some_rows(unusable)}.")
    refuse_other_than_distributions("documents", np.concatenate(wrong))
    return result


def _squares(raw: NDArray[np.floating]) -> Float:
    """Squared lengths of rows, in float64."""
    if loops.compiled:
        return loops.compiled.squares(side_by_side(raw))
    squares = np.empty(len(raw))
    for start in range(0, len(raw), _FEW_ROWS):
        rows = raw[start : start + _FEW_ROWS].astype(np.float64)
        with np.errstate(over="ignore", invalid="ignore"):
            squares[start : start + _FEW_ROWS] = np.einsum("ij,ij->i", rows, rows)
    return squares


def not_distributions(rows: NDArray[np.floating]) -> NDArray[np.bool_]:
    """Which rows are no probabilities."""
    return (rows < 0).any(axis=1) | (np.abs(rows.sum(axis=1, dtype=np.float64) - 1.0) > 1e-3)


def refuse_other_than_distributions(name: str, wrong: NDArray[np.intp]) -> None:
    """Say which rows are no probabilities, if any."""
    if len(wrong):
        raise ArrayError(
            f"{name} must be probabilities that add up to 1 for jensen-shannon; "
            f"they do not in {some_rows(wrong)}. Use softmax on raw scores."
        )


def some_rows(rows: NDArray[np.intp]) -> str:
    """The first of some row numbers, for a message."""
    shown = ", ".join(str(row) for row in rows[:5])
    if len(rows) == 1:
        return f"row {shown}"
    return f"{len(rows)} rows: {shown}{', …' if len(rows) > 5 else ''}"
