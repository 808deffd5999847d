"""One-to-one matching of clusters and labels."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ulr.refine.distances import Float


def match_one_to_one(cost: Float) -> NDArray[np.intp]:
    """The column matched to each row so that the total cost is lowest (Hungarian method).

    Parameters
    ----------
    cost
        (n_labels, n_clusters) with at least as many clusters as labels.

    Returns
    -------
    (n_labels,) the cluster of each label; no cluster twice.
    """
    from scipy.optimize import linear_sum_assignment

    _, columns = linear_sum_assignment(cost)
    return np.asarray(columns, dtype=np.intp)
