"""Several labels a text: the chance of every label on its own, and those that a text gets."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ulr.classifier.model import Fitted, Predictions
from ulr.errors import ArrayError

_SAMPLE, _SAMPLE_NUMBERS = 20_000, 1 << 23  # documents, and these times labels
_MOST_SHIFT = 50.0  # log odds

Float = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class LabelChances:
    """One label against the rest: log odds that are linear in a label's lead over the mean label.

    A probability of one label among all falls where another label fits as well; the lead over the mean
    of all labels hardly does. Both are the same on average (Platt scaling).
    """

    slopes: Float  # (n_labels,)
    intercepts: Float  # (n_labels,)
    least: float  # chance from which a text gets a label
    with_best: bool  # whether it gets its most probable label in any case

    def array(self) -> Float:
        """Everything the chances consist of, for `of_array`."""
        return np.append(
            np.concatenate([self.slopes, self.intercepts]), [self.least, self.with_best]
        )

    @classmethod
    def of_array(cls, array: Float | None, n_labels: int) -> LabelChances | None:
        """The chances that `array` returned; None without an array."""
        if array is None:
            return None
        if array.shape != (2 * n_labels + 2,):
            raise ArrayError("its chances must have a slope and an intercept for each label")
        slopes, intercepts = array[:-2].reshape(2, n_labels)
        return cls(slopes, intercepts, float(array[-2]), bool(array[-1]))

    def chances(self, predictions: Predictions) -> Float:
        """(n_texts, n_labels) chance of each label; 0 for texts without words."""
        from scipy.special import expit

        found = expit(_leads(predictions) * self.slopes + self.intercepts)
        return np.where(predictions.empty[:, None], 0.0, found)

    def assigned(self, predictions: Predictions) -> NDArray[np.bool_]:
        """(n_texts, n_labels) whether each text gets each label."""
        found = self.chances(predictions) >= self.least
        if self.with_best:
            rows = np.flatnonzero(~predictions.empty)
            found[rows, predictions.labels[rows]] = True
        return found

    def names(self, predictions: Predictions, names: NDArray[np.str_]) -> list[tuple[str, ...]]:
        """The names of each text's labels, the most probable first."""
        chances, assigned = self.chances(predictions), self.assigned(predictions)
        order = np.argsort(-chances, axis=1, kind="stable")
        return [
            tuple(str(names[i]) for i in ranked.tolist() if own[i])
            for ranked, own in zip(order, assigned, strict=True)
        ]


def fit_chances(fitted: Fitted) -> LabelChances:
    """The chances of the labels from the fitted texts, without any true label.

    A number below 1 is the least chance of a label, where chances add up to 1 on average, as the
    calibrated probabilities do. From 1 on it is the mean number of labels: chances add up to it, and
    as many are given; every text gets its best label.
    """
    from scipy.optimize import brentq
    from scipy.special import expit

    predictions, number = fitted.predictions, float(fitted.settings.multilabel)
    assert predictions is not None
    if fitted.settings.multilabel is True:
        number = 0.5
    draw = np.random.default_rng(fitted.settings.random_state)
    rows = draw.permutation(np.flatnonzero(~predictions.empty))
    most = max(1, min(_SAMPLE, _SAMPLE_NUMBERS // fitted.n_labels))
    sample = predictions.rows(np.sort(rows[:most]))
    leads = _leads(sample)
    slopes, intercepts = _platt(leads, sample.probabilities)
    if number < 1.0:
        return LabelChances(slopes, intercepts, number, with_best=False)
    log_odds = leads * slopes + intercepts

    def excess(shift: float) -> float:
        return float(expit(log_odds + shift).sum(axis=1).mean()) - number

    is_inside = excess(-_MOST_SHIFT) < 0 < excess(_MOST_SHIFT)
    shift = brentq(excess, -_MOST_SHIFT, _MOST_SHIFT) if is_inside else _MOST_SHIFT
    chances = expit(log_odds + shift)
    chances[np.arange(len(chances)), sample.labels] = -1.0
    others = np.sort(chances.ravel())[::-1]
    n_others = round((number - 1.0) * len(chances))
    least = float(others[n_others - 1]) if n_others else 1.0
    return LabelChances(slopes, intercepts + shift, least, with_best=True)


def _leads(predictions: Predictions) -> Float:
    """(n_texts, n_labels) log odds of each label above the mean of all labels."""
    logits = predictions.scores.astype(np.float64)
    logits /= predictions.temperature[:, None]
    return logits - logits.mean(axis=1, keepdims=True)


def _platt(leads: Float, probabilities: Float) -> tuple[Float, Float]:
    """Slope and intercept of each label whose chances are closest to its probabilities."""
    from sklearn.linear_model import LogisticRegression

    found = np.empty((2, leads.shape[1]))
    truth = np.repeat([1, 0], len(leads))
    for label, lead in enumerate(leads.T):
        own = np.clip(probabilities[:, label], 1e-6, 1 - 1e-6)
        scale = max(float(lead.std()), 1e-6)
        model = LogisticRegression(C=1e3)
        model.fit(np.tile(lead / scale, 2)[:, None], truth, np.concatenate([own, 1 - own]))
        found[:, label] = max(float(model.coef_[0, 0]), 0.0) / scale, model.intercept_[0]
    return found[0], found[1]
