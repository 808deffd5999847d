"""How sure to be of a refinement, without any truth.

Scores are sharpened until the mean confidence is as high as the accuracy that is expected. What
that is, is asked in three ways, of which none knows the truth and each errs otherwise:

    documents     how often refinements of some 1,000 documents say what the whole says
    dimensions    how often refinements in an eighth of the dimensions say the same
    neighbours    how often the vote of a document's ten nearest says what the refinement says

Few documents share every mistake of the encoder with the whole, so they agree more often than they
are right; an eighth of the dimensions knows too little, so it agrees less often. The mean of the
three log-odds lies in between. Nothing in it is fitted, and documents count up to a fixed number:
more of them make the first agree more often, but nothing right.

The paper's refinement moves labels so little that documents hardly matter to it. There, the
expected accuracy is how often halves of the dimensions agree, with each other and with the whole.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ulr.refine.centred import centred
from ulr.refine.distances import Float, unit_rows
from ulr.refine.door import refine
from ulr.refine.result import Refinement

_SAMPLE = 10_000
_FEWEST_DIMS, _FEWEST_DOCUMENTS = 8, 20
_DRAWS, _DRAWN = 4, 1_000
_PARTS, _OF_DIMS = 4, 8
_ASKED, _NEIGHBOURS = 1_000, 10
_SPLITS = 2
_ROWS_AT_A_TIME = 256

Labels = NDArray[np.integer]


def calibrate(
    documents: NDArray[np.floating],
    labels: NDArray[np.floating],
    refinement: Refinement,
    known: Labels | None = None,
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
        As in `refine`; documents whose label is known say nothing about the others.
    settings
        As for `refine`.
    """
    n_labels, n_dims = labels.shape
    some = slice(None, None, max(1, -(-len(documents) // _SAMPLE)))
    sample = _Sample(
        np.ascontiguousarray(documents[some], dtype=np.float32),
        np.asarray(labels, dtype=np.float64),
        refinement.predictions[some],
        np.full(len(documents), -1)[some] if known is None else known[some],
        settings,
    )
    if n_labels < 2 or n_dims < _FEWEST_DIMS or not sample.free.any():
        return 1.0 / typical_lead(refinement.scores)
    centre = None if refinement.rule is None else refinement.rule.centre
    if centre is None or not centre.any() or len(sample.documents) < _FEWEST_DOCUMENTS:
        expected = sample.halves_agree()
    else:
        from scipy.special import expit, logit

        agreements = sample.draws_agree(), sample.parts_agree(), sample.neighbours_agree(centre)
        expected = float(expit(np.mean(logit(np.clip(agreements, 0.01, 0.99)))))
    scores = refinement.scores[some][sample.free].astype(np.float64)
    return _sharpness(scores, float(np.clip(expected, 1.0 / n_labels + 0.02, 0.99)))


def typical_lead(scores: NDArray[np.float32]) -> float:
    """The mean lead of the best score over the next; 1 where there is no lead at all."""
    if scores.shape[1] < 2:
        return 1.0
    best = np.partition(scores, -2, axis=1)[:, -2:]
    lead = float((best[:, 1] - best[:, 0]).mean(dtype=np.float64))
    return lead if lead > 0 else 1.0


@dataclass(frozen=True, eq=False)
class _Sample:
    """Some of the documents of a refinement, to refine them again in other ways.

    Attributes
    ----------
    documents, labels
        (n, n_dims) and (n_labels, n_dims).
    whole
        (n,) what the refinement of all documents predicts.
    known
        (n,) label index of the documents whose label is known, -1 for the others.
    settings
        As for `refine`.
    """

    documents: NDArray[np.float32]
    labels: Float
    whole: NDArray[np.intp]
    known: Labels
    settings: dict[str, Any]

    @cached_property
    def free(self) -> NDArray[np.bool_]:
        """(n,) whose label is not known."""
        return np.asarray(self.known < 0)

    def draws_agree(self) -> float:
        """How often refinements of few documents say what the whole says of these documents."""
        order = np.random.default_rng(0).permutation(len(self.documents))
        order = order[np.argsort(~self.free[order], kind="stable")]
        step = max(2, round(len(order) / _DRAWN))  # so dealt, every draw has its share of the free
        shares = []
        for draw in range(min(_DRAWS, step, int(self.free.sum()))):
            rows = np.sort(order[draw::step])
            found = self._refined(self.documents[rows], self.labels, self.known[rows])
            shares.append((found == self.whole[rows])[self.free[rows]].mean())
        return float(np.mean(shares))

    def parts_agree(self) -> float:
        """How often refinements in an eighth of the dimensions say the same, any two of them.

        The axes are random, since those of some encoders are sorted by how much they say.
        """
        n_dims = self.labels.shape[1]
        width = max(n_dims // _OF_DIMS, min(_FEWEST_DIMS, n_dims // 2))
        n_parts = min(_PARTS, n_dims // width)
        random = np.random.default_rng(0)
        axes, _ = np.linalg.qr(random.standard_normal((n_dims, n_parts * width)))
        parts = [
            self._refined(self.documents @ few.astype(np.float32), self.labels @ few, self.known)
            for few in np.split(axes, n_parts, axis=1)
        ]
        agree = [(one == other)[self.free] for one, other in combinations(parts, 2)]
        return float(np.mean(agree))

    def neighbours_agree(self, centre: Float) -> float:
        """How often the nearest documents, seen from the centre, vote for the predicted label."""
        n, n_labels = len(self.documents), len(self.labels)
        points = np.empty_like(self.documents)
        for start in range(0, n, _ROWS_AT_A_TIME):
            few = slice(start, start + _ROWS_AT_A_TIME)
            points[few] = centred(unit_rows(self.documents[few].astype(np.float64)), centre)
        asked = np.random.default_rng(0).permutation(np.flatnonzero(self.free))[:_ASKED]
        n_nearest = min(_NEIGHBOURS, n - 1)
        agree = 0
        for start in range(0, len(asked), _ROWS_AT_A_TIME):
            rows = asked[start : start + _ROWS_AT_A_TIME]
            likeness = points[rows] @ points.T
            likeness[np.arange(len(rows)), rows] = -np.inf
            nearest = np.argpartition(likeness, -n_nearest, axis=1)[:, -n_nearest:]
            ballots = self.whole[nearest] + n_labels * np.arange(len(rows))[:, None]
            votes = np.bincount(ballots.ravel(), minlength=n_labels * len(rows))
            elected = votes.reshape(len(rows), n_labels).argmax(axis=1)
            agree += int(np.count_nonzero(elected == self.whole[rows]))
        return agree / len(asked)

    def halves_agree(self) -> float:
        """How often halves of the dimensions agree with each other and with the whole."""
        n_dims, agree = self.labels.shape[1], []
        for seed in range(_SPLITS):
            order = np.random.default_rng(seed).permutation(n_dims)
            one, other = (
                self._refined(self.documents[:, half], self.labels[:, half], self.known)
                for half in (np.sort(order[: n_dims // 2]), np.sort(order[n_dims // 2 :]))
            )
            agree += [one == other, one == other, one == self.whole, other == self.whole]
        return float(np.mean([each[self.free] for each in agree]))

    def _refined(
        self, documents: NDArray[np.float32], labels: Float, known: Labels
    ) -> NDArray[np.intp]:
        settings = self.settings | {"known": known if (known >= 0).any() else None}
        return refine(np.ascontiguousarray(documents), labels, **settings).predictions


def _sharpness(scores: NDArray[np.float64], expected: float) -> float:
    """What makes the mean of the largest probability as large as expected."""
    from scipy.optimize import brentq
    from scipy.special import logsumexp

    unit = 1.0 / typical_lead(scores.astype(np.float32))
    best = scores.max(axis=1)

    def missing(exponent: float) -> float:
        sharp = unit * 2.0**exponent
        return float(np.exp(sharp * best - logsumexp(sharp * scores, axis=1)).mean()) - expected

    low, high = -12.0, 12.0
    if missing(low) > 0 or missing(high) < 0:
        return unit
    return float(unit * 2.0 ** brentq(missing, low, high, xtol=1e-4))
