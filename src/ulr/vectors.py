"""Lengths of vectors, which every package that handles vectors needs."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Float = NDArray[np.float64]


def squared_lengths(rows: Float) -> Float:
    """Squared Euclidean length of each row."""
    return np.einsum("ij,ij->i", rows, rows)


def unit_rows(rows: NDArray[np.floating]) -> Float:
    """Rows scaled to length one, in double precision; a row of zeros stays."""
    double: Float = np.asarray(rows, dtype=np.float64)
    lengths = np.sqrt(squared_lengths(double))[:, None]
    return double / np.where(lengths > 0, lengths, 1.0)
