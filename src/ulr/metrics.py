"""How good predictions are when the truth is known. To report with, never to choose by."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ulr.errors import InputError
from ulr.refine import match_one_to_one


@dataclass(frozen=True)
class ClassFigures:
    """Figures of one label."""

    label: str
    precision: float
    recall: float
    f1: float
    documents: int


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Figures of one set of predictions.

    Attributes
    ----------
    accuracy
        Share of correct predictions.
    macro_f1
        Mean of the labels' F1.
    classes
        Precision, recall, F1 and number of documents of each label.
    confusion
        (n_labels, n_labels) documents by true label (row) and predicted label (column).
    """

    accuracy: float
    macro_f1: float
    classes: tuple[ClassFigures, ...]
    confusion: NDArray[np.intp]


def evaluate(truth: ArrayLike, predictions: ArrayLike, names: Sequence[str]) -> Evaluation:
    """Compare predicted with true label indices.

    Parameters
    ----------
    truth, predictions
        (n_documents,) label indices.
    names
        Names of the labels.
    """
    table = confusion(truth, predictions, len(names))
    hits, true, predicted = np.diag(table), table.sum(axis=1), table.sum(axis=0)
    precision = hits / np.maximum(predicted, 1)
    recall = hits / np.maximum(true, 1)
    f1 = 2 * hits / np.maximum(true + predicted, 1)
    figures = zip(names, precision, recall, f1, true, strict=True)
    return Evaluation(
        accuracy=float(hits.sum() / table.sum()),
        macro_f1=float(f1.mean()),
        classes=tuple(
            ClassFigures(name, float(p), float(r), float(f), int(n)) for name, p, r, f, n in figures
        ),
        confusion=table,
    )


def accuracy(truth: ArrayLike, predictions: ArrayLike) -> float:
    """Share of correct predictions."""
    true, predicted = _pair(truth, predictions)
    return float((true == predicted).mean())


def confusion(truth: ArrayLike, predictions: ArrayLike, n_labels: int) -> NDArray[np.intp]:
    """Documents by true label (row) and predicted label (column), (n_labels, n_labels)."""
    true, predicted = _indices(truth, predictions)
    if max(true.max(), predicted.max()) >= n_labels:
        raise InputError(
            f"label indices must be below the number of labels, {n_labels}; got "
            f"{max(true.max(), predicted.max())}."
        )
    cells = np.bincount(true * n_labels + predicted, minlength=n_labels * n_labels)
    return cells.reshape(n_labels, n_labels)


def one_to_one_accuracy(truth: ArrayLike, clusters: ArrayLike) -> float:
    """Accuracy under the best one-to-one naming of clusters, which looks at the truth."""
    true, found = _indices(truth, clusters)
    table = confusion(true, found, int(max(true.max(), found.max())) + 1)
    return float(
        table[np.arange(len(table)), match_one_to_one(-table.astype(np.float64))].sum() / len(true)
    )


def calibration_error(correct: ArrayLike, confidence: ArrayLike, bins: int = 10) -> float:
    """Expected calibration error: how far confidence is from the share correct, on average.

    Parameters
    ----------
    correct
        (n_documents,) whether each prediction is right.
    confidence
        (n_documents,) between 0 and 1.
    bins
        Equal intervals of confidence that are compared.
    """
    right, sure = _pair(correct, confidence)
    if bins < 1 or not ((sure >= 0) & (sure <= 1)).all():
        raise InputError("confidence must lie between 0 and 1, in at least 1 bin.")
    place = np.minimum((sure * bins).astype(np.intp), bins - 1)
    gap = np.bincount(place, weights=right - sure, minlength=bins)
    return float(np.abs(gap).sum() / len(right))


def _indices(truth: ArrayLike, predictions: ArrayLike) -> tuple[NDArray[Any], NDArray[Any]]:
    true, predicted = _pair(truth, predictions)
    for indices in (true, predicted):
        if indices.dtype.kind not in "iu":
            raise InputError(f"label indices must be whole numbers; got {indices.dtype}.")
        if indices.min() < 0:
            raise InputError(f"label indices must be 0 or more; got {indices.min()}.")
    return true.astype(np.intp), predicted.astype(np.intp)


def _pair(first: ArrayLike, second: ArrayLike) -> tuple[NDArray[Any], NDArray[Any]]:
    one, other = np.asarray(first), np.asarray(second)
    if one.ndim != 1 or one.shape != other.shape or len(one) == 0:
        raise InputError(
            f"two lists of equal length are needed, one value a document; got shapes "
            f"{one.shape} and {other.shape}."
        )
    return one, other
