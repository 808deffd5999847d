"""How sure to be of a refinement, without any truth.

A refinement that rests on something real comes out the same from either half of the dimensions.
How often two halves agree, with each other and with the whole, is close to how often the whole is
right; scores are sharpened until the mean confidence is as high as that.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import logsumexp

from ulr.refine.door import refine
from ulr.refine.result import Refinement

_SAMPLE = 20_000
_SPLITS = 2
_FEWEST_DIMS = 8


def calibrate(
    documents: NDArray[np.floating],
    labels: NDArray[np.floating],
    refinement: Refinement,
    known: NDArray[np.integer] | None = None,
    **settings: Any,
) -> float:
    """What scores are to be multiplied with, so that their softmax says how sure to be.

    Parameters
    ----------
    documents, labels
        (n_documents, n_dims) and (n_labels, n_dims) what was refined.
    refinement
        The outcome.
    known
        As in `refine`.
    settings
        As for `refine`.
    """
    n_labels, n_dims = labels.shape
    if n_labels < 2 or n_dims < _FEWEST_DIMS:
        return 1.0 / typical_lead(refinement.scores)
    some = slice(None, None, max(1, -(-len(documents) // _SAMPLE)))
    sample, whole = documents[some], refinement.predictions[some]
    if known is not None:
        settings["known"] = known[some] if (known[some] >= 0).any() else None
    agreement = []
    for seed in range(_SPLITS):
        order = np.random.default_rng(seed).permutation(n_dims)
        one, other = (
            refine(np.ascontiguousarray(sample[:, half]), labels[:, half], **settings).predictions
            for half in (np.sort(order[: n_dims // 2]), np.sort(order[n_dims // 2 :]))
        )
        with_each_other = float((one == other).mean())
        with_whole = float((one == whole).mean() + (other == whole).mean()) / 2.0
        agreement.append((with_each_other + with_whole) / 2.0)
    expected = float(np.clip(np.mean(agreement), 1.0 / n_labels + 0.02, 0.99))
    return _sharpness(refinement.scores[some].astype(np.float64), expected)


def typical_lead(scores: NDArray[np.float32]) -> float:
    """The mean lead of the best score over the next; 1 where there is no lead at all."""
    if scores.shape[1] < 2:
        return 1.0
    best = np.partition(scores, -2, axis=1)[:, -2:]
    lead = float((best[:, 1] - best[:, 0]).mean(dtype=np.float64))
    return lead if lead > 0 else 1.0


def _sharpness(scores: NDArray[np.float64], expected: float) -> float:
    """What makes the mean of the largest probability as large as expected."""
    unit = 1.0 / typical_lead(scores.astype(np.float32))
    best = scores.max(axis=1)

    def missing(exponent: float) -> float:
        sharp = unit * 2.0**exponent
        return float(np.exp(sharp * best - logsumexp(sharp * scores, axis=1)).mean()) - expected

    low, high = -12.0, 12.0
    if missing(low) > 0 or missing(high) < 0:
        return unit
    return float(unit * 2.0 ** brentq(missing, low, high, xtol=1e-4))
