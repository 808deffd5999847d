"""Vectors on disk, larger than memory if need be: `.npy`, or a Parquet column of lists.

What `open_vectors` gives is sliced block by block by the refinement, and never read whole.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ulr.errors import TableError
from ulr.refinement import VectorSource

if TYPE_CHECKING:
    import pyarrow as pa

_BATCH_ROWS = 4096


def open_vectors(path: str | Path, column: str | None = None) -> VectorSource:
    """Vectors of documents in a file.

    Parameters
    ----------
    path
        A `.npy` file of shape (n_documents, n_dims), or a Parquet file.
    column
        The Parquet column of lists of numbers; the only one if not given.

    Returns
    -------
    Something with a shape that can be sliced; give it to `ulr.refine` as it is.
    """
    path = Path(path)
    if not path.is_file():
        raise TableError(f"there is no file {path}.")
    if path.suffix.lower() == ".npy":
        return _open_npy(path)
    return ParquetVectors(path, column)


def _open_npy(path: Path) -> NDArray[np.floating]:
    try:
        vectors = np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise TableError(f"{path} is not a .npy file of numbers: {error}.") from None
    if vectors.ndim != 2 or vectors.dtype.kind != "f":
        raise TableError(
            f"{path} must hold float vectors, (n_documents, n_dims); it holds {vectors.dtype} of "
            f"shape {vectors.shape}."
        )
    return vectors


class ParquetVectors:
    """A Parquet column of equally long lists of numbers, read forwards batch by batch.

    Parameters
    ----------
    path
        The file.
    column
        The column of lists; the only one if not given.

    Attributes
    ----------
    shape
        (n_documents, n_dims).
    """

    def __init__(self, path: Path, column: str | None = None) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            self._file = pq.ParquetFile(path)
        except (pa.ArrowInvalid, OSError) as error:
            raise TableError(f"{path} cannot be read as Parquet: {error}.") from None
        lists = [
            field.name
            for field in self._file.schema_arrow
            if (pa.types.is_list(field.type) or pa.types.is_fixed_size_list(field.type)
                or pa.types.is_large_list(field.type))
            and pa.types.is_floating(field.type.value_type)
        ]  # fmt: skip
        if column not in lists and (column is not None or len(lists) != 1):
            raise TableError(
                f"{path} needs a column of lists of floats to be named; it has: "
                f"{', '.join(lists) or 'none'}."
            )
        self._name, self._column = str(path), column or lists[0]
        self._dtype = self._file.schema_arrow.field(self._column).type.value_type.to_pandas_dtype()
        self._lock = threading.Lock()
        self._position = 0
        self._batches: Iterator[NDArray[np.floating]] = iter(())
        self._batch: NDArray[np.floating] = np.empty((0, 0), dtype=np.float32)
        n_rows = self._file.metadata.num_rows
        if n_rows == 0:
            raise TableError(f"{path} has no rows.")
        self.shape = (n_rows, self[0:1].shape[1])

    def __getitem__(self, rows: slice) -> NDArray[np.floating]:
        """Some rows; reading forwards is cheap, reading backwards starts at the first row again."""
        wanted = range(self._file.metadata.num_rows)[rows]
        if not wanted:
            return np.empty((0, self.shape[1]), dtype=self._dtype)
        forwards = wanted if wanted.step > 0 else wanted[::-1]
        found = self._rows(forwards)
        return found if wanted.step > 0 else found[::-1].copy()

    def _rows(self, wanted: range) -> NDArray[np.floating]:
        """Rows in ascending order, at least one."""
        with self._lock:
            if wanted[0] < self._position - len(self._batch) or self._position == 0:
                self._position, self._batches = 0, self._read()
                self._batch = self._batch[:0]
            parts = []
            while True:
                first = self._position - len(self._batch)
                passed = max(0, -(-(first - wanted[0]) // wanted.step))  # rows in earlier batches
                start = wanted[0] + passed * wanted.step - first
                part = self._batch[start : max(0, wanted[-1] + 1 - first) : wanted.step]
                if len(part):
                    parts.append(part)
                if self._position > wanted[-1]:
                    break
                self._batch = next(self._batches)
                self._position += len(self._batch)
        return np.concatenate(parts) if len(parts) > 1 else parts[0].copy()

    def _read(self) -> Iterator[NDArray[np.floating]]:
        batches = self._file.iter_batches(batch_size=_BATCH_ROWS, columns=[self._column])
        row = 0
        for batch in batches:
            yield self._array(batch.column(0), row)
            row += batch.num_rows

    def _array(self, lists: pa.Array, row: int) -> NDArray[np.floating]:
        """A batch of lists as an array."""
        values: Any = lists.flatten().to_numpy(zero_copy_only=False)
        expected = getattr(self, "shape", (0, len(values) // max(1, len(lists))))[1]
        if lists.null_count or len(values) != len(lists) * expected:
            raise TableError(
                f"{self._name}: every list of column {self._column!r} must have {expected} "
                f"numbers; one from row {row + 1} on has not."
            )
        return values.reshape(len(lists), expected)
