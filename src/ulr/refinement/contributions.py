"""What the parts of a document add to the scores of a linear rule.

The vector of the document is the sum of the vectors of its parts, and its word counts are the sum of
theirs. Given the lengths by which the rule divides them, its scores are sums over the parts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ulr.refinement.distances import Float
from ulr.refinement.result import LinearRule
from ulr.refinement.words import WordWeights, tf_idf

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix


def vector_contributions(rule: LinearRule, parts: Float, shares: Float) -> Float:
    """Contributions of parts to the scores of their sum, (n_parts, n_labels).

    What a view subtracts, its centre, is divided among the parts by `shares`. The offsets of the rule
    belong to no part. Without a direction, all are zero.

    Parameters
    ----------
    parts
        (n_parts, n_dims) vectors.
    shares
        (n_parts,) that add up to one.

    Examples
    --------
    >>> import numpy as np
    >>> from ulr.refinement import refine, vector_contributions
    >>> rule = refine(np.eye(2), np.eye(2), method="ulr").rule
    >>> vector_contributions(rule, np.array([[3.0, 0.0], [0.0, 4.0]]), np.array([0.5, 0.5]))
    array([[0.6, 0. ],
           [0. , 0.8]])
    """
    total = np.zeros((len(parts), rule.n_labels))
    length = float(np.linalg.norm(parts.sum(axis=0)))
    if length == 0.0:
        return total
    for view in rule.views:
        points = parts / length if view.normalize else parts
        if view.centre is not None:
            points = points - shares[:, None] * view.centre
            points /= max(float(np.linalg.norm(points.sum(axis=0))), 1e-6)
        total += points @ view.weights.T
    return total


def word_contributions(
    words: WordWeights, counts: csr_matrix, part_counts: csr_matrix
) -> NDArray[np.float64]:
    """Contributions of parts to the scores of the words of a document, (n_parts, n_labels).

    Parameters
    ----------
    counts
        (1, n_columns) words of the document.
    part_counts
        (n_parts, n_columns) words of the parts, which add up to them.
    """
    weights = tf_idf(counts, words.columns, words.idf)
    columns = words.columns[weights.indices]
    totals = np.asarray(counts[:, columns].todense(), dtype=np.float64).ravel()
    per_word = (weights.data / totals)[:, None] * words.weights[weights.indices]
    return np.asarray(part_counts[:, columns] @ per_word, dtype=np.float64)
