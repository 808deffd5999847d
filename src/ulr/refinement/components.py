"""Principal components of documents that say nothing about the labels, and their damping.

What repeats in many documents without being about anything, such as a footer or a mark of redaction,
makes a component of its own, whose variance may be several times that of the labels. Documents then
differ most by how much of it they have, and clusters follow that. A component is damped if

- its variance is far above the median of the leading components, one per label,
- the names of the labels differ along it hardly more than along any direction, and
- the documents do not fall into two groups along it, which may be those of a label.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ulr.refinement import constants
from ulr.refinement.blocks import EXCLUDED, Block, Blocks, State, Summary
from ulr.refinement.clusters import centred
from ulr.refinement.distances import Float


@dataclass(frozen=True, eq=False)
class Moments:
    """Centres the documents; their sum and second moments.

    State: nearest, centred (documents).
    """

    centre: Float  # (n_dims,)

    def __call__(self, block: Block, state: State) -> tuple[State, Summary]:
        """State and summary of one block."""
        rows = centred(block.single, block.lengths, self.centre)
        rows[block.known == EXCLUDED] = 0.0
        products = (rows.T @ rows).astype(np.float64)
        summary = Summary(total=rows.sum(axis=0, dtype=np.float64), products=products)
        return {"nearest": state["nearest"], "centred": rows}, summary


def repeated_parts(
    blocks: Blocks,
    centre: Float,  # (n_dims,)
    moments: Summary,
    names: Float,  # (n_labels, n_dims) centred anchors
) -> Float:
    """(n_dims, n_damped) directions; ``documents - (documents @ found) @ found.T`` are damped.

    Damped documents have the median variance of the leading components along these directions.
    """
    from scipy.linalg import eigh

    used = np.flatnonzero(blocks.known != EXCLUDED)
    (n_labels, n_dims), n = names.shape, len(used)
    most = min(max(n_labels, constants.FEWEST_COMPONENTS), n - 1, n_dims)
    if most < 2:
        return np.zeros((n_dims, 0))
    mean = moments.total / n
    covariance = moments.products / n - np.outer(mean, mean)
    variances, components = eigh(covariance, subset_by_index=(n_dims - most, n_dims - 1))
    limit = max(float(np.median(variances)), 0.0)
    apart = names - names.mean(axis=0)
    named = np.square(apart @ components).sum(axis=0)
    large = variances > max(constants.LARGE_PART * limit, constants.LEAST_VARIANCE / n_dims)
    unnamed = named < constants.UNNAMED / n_dims * np.square(apart).sum()
    chosen = np.flatnonzero(large & unnamed)
    if len(chosen):
        rows = np.random.default_rng(0).permutation(used)[: constants.MOST_COMPARED]
        documents = blocks.gather(rows).astype(np.float32)
        along = centred(documents, blocks.lengths[rows], centre) @ components[:, chosen]
        chosen = chosen[[not _two_groups(column) for column in along.T]]
    return components[:, chosen] * np.sqrt(1.0 - np.sqrt(limit / variances[chosen]))


def _two_groups(values: Float) -> bool:
    """Whether a mixture of two normal distributions has means that are far apart (Ashman's D)."""
    from sklearn.mixture import GaussianMixture

    if len(values) < constants.FEWEST_COMPARED:
        return True
    mixture = GaussianMixture(2, n_init=2, max_iter=1_000, random_state=0)
    found = mixture.fit(values[:, None] / values.std())
    first, second = found.means_.ravel()
    return bool(abs(first - second) > constants.TWO_GROUPS * np.sqrt(found.covariances_.mean()))
