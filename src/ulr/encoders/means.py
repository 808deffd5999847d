"""Means of vectors, as many of them as a text has tokens or words."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array


def means_of_rows(
    vectors: NDArray[np.float32], rows: NDArray[np.int32], counts: NDArray[np.int64]
) -> NDArray[np.float32]:
    """Mean of some vectors for each text, (n_texts, n_dims); zero where there are none.

    Parameters
    ----------
    vectors
        (n, n_dims) all vectors.
    rows
        Which of them the texts have, those of all texts in a row.
    counts
        (n_texts,) how many each text has.
    """
    # Summed as a sparse product: text by text, in order, with nothing padded or gathered.
    occurrences = csr_array(
        (np.ones(len(rows), dtype=np.float32), rows, np.append(0, np.cumsum(counts))),
        shape=(len(counts), len(vectors)),
    )
    means: NDArray[np.float32] = occurrences @ vectors
    means /= np.maximum(counts, 1)[:, None].astype(np.float32)
    return means
