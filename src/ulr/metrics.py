"""Figures of predictions whose true labels are known, by scikit-learn. They report, never choose."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ulr.errors import InputError


@dataclass(frozen=True)
class LabelFigures:
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
    labels
        Precision, recall, F1 and number of documents of each label.
    confusion
        (n_labels, n_labels) documents by true label (row) and predicted label (column).
    """

    accuracy: float
    macro_f1: float
    labels: tuple[LabelFigures, ...]
    confusion: NDArray[np.intp]


@dataclass(frozen=True)
class MultilabelFigures:
    """Figures of several labels a document."""

    documents: int  # with true labels
    micro_f1: float
    macro_f1: float
    subset_accuracy: float  # share of the documents that have exactly their true labels
    precision: float  # micro
    recall: float
    mean_true: float  # number of labels a document
    mean_predicted: float


@dataclass(frozen=True)
class ReliabilityBin:
    """Mean confidence and accuracy of the documents of an interval of confidence."""

    low: float
    high: float
    documents: int
    confidence: float
    accuracy: float


def evaluate(truth: ArrayLike, predictions: ArrayLike, names: Sequence[str]) -> Evaluation:
    """Compare predicted with true label indices.

    Parameters
    ----------
    truth, predictions
        (n_documents,) label indices; a prediction of -1 is wrong and counts for no label.
    names
        Names of the labels.
    """
    from sklearn.metrics import confusion_matrix, precision_recall_fscore_support

    true, predicted = _lists_of_equal_length(truth, predictions)
    indices = list(range(len(names)))
    figures = precision_recall_fscore_support(true, predicted, labels=indices, zero_division=0.0)
    return Evaluation(
        accuracy=float((true == predicted).mean()),
        macro_f1=float(figures[2].mean()),
        labels=tuple(
            LabelFigures(name, float(p), float(r), float(f), int(n))
            for name, p, r, f, n in zip(names, *figures, strict=True)
        ),
        confusion=np.asarray(confusion_matrix(true, predicted, labels=indices), dtype=np.intp)
        if (true >= 0).any()
        else np.zeros((len(names), len(names)), dtype=np.intp),
    )


def evaluate_sets(truth: ArrayLike, predictions: ArrayLike) -> MultilabelFigures:
    """Compare several labels a document with the true ones.

    Parameters
    ----------
    truth, predictions
        (n_documents, n_labels) indicator matrices.
    """
    from sklearn.metrics import f1_score, precision_recall_fscore_support

    true, predicted = np.asarray(truth, dtype=bool), np.asarray(predictions, dtype=bool)
    if true.ndim != 2 or true.shape != predicted.shape or not len(true):
        raise InputError(
            "truth and predictions must be indicator matrices of equal shape; got "
            f"{true.shape} and {predicted.shape}."
        )
    micro = precision_recall_fscore_support(true, predicted, average="micro", zero_division=0.0)
    return MultilabelFigures(
        documents=len(true),
        micro_f1=float(micro[2]),
        macro_f1=float(f1_score(true, predicted, average="macro", zero_division=0.0)),
        subset_accuracy=float((true == predicted).all(axis=1).mean()),
        precision=float(micro[0]),
        recall=float(micro[1]),
        mean_true=float(true.sum(axis=1).mean()),
        mean_predicted=float(predicted.sum(axis=1).mean()),
    )


def accuracy(truth: ArrayLike, predictions: ArrayLike) -> float:
    """Share of correct predictions."""
    true, predicted = _lists_of_equal_length(truth, predictions)
    return float((true == predicted).mean())


def _lists_of_equal_length(
    truth: ArrayLike, predictions: ArrayLike
) -> tuple[NDArray[Any], NDArray[Any]]:
    true, predicted = np.asarray(truth), np.asarray(predictions)
    if true.ndim != 1 or true.shape != predicted.shape or len(true) == 0:
        raise InputError(
            "truth and predictions must be lists of equal length; got shapes "
            f"{true.shape} and {predicted.shape}."
        )
    return true, predicted


def one_to_one_accuracy(truth: ArrayLike, clusters: ArrayLike) -> float:
    """Accuracy under the best one-to-one naming of clusters, which uses the truth."""
    from scipy.optimize import linear_sum_assignment
    from sklearn.metrics.cluster import contingency_matrix

    table = contingency_matrix(truth, clusters)
    rows, columns = linear_sum_assignment(table, maximize=True)
    return float(table[rows, columns].sum() / table.sum())


def calibration_error(correct: ArrayLike, confidence: ArrayLike, bins: int = 10) -> float:
    """Expected calibration error: mean gap between confidence and accuracy over bins.

    Parameters
    ----------
    correct
        (n_documents,) whether each prediction is right.
    confidence
        (n_documents,) between 0 and 1.
    bins
        Number of equal intervals of confidence.
    """
    right, confident = np.asarray(correct, dtype=float), np.asarray(confidence, dtype=float)
    if right.shape != confident.shape or not ((confident >= 0) & (confident <= 1)).all():
        raise InputError("confidence must be one value between 0 and 1 per document.")
    place = np.minimum((confident * bins).astype(np.intp), bins - 1)
    gap = np.bincount(place, weights=right - confident, minlength=bins)
    return float(np.abs(gap).sum() / max(len(right), 1))


def reliability(
    correct: NDArray[np.bool_], confidence: NDArray[np.float64], bins: int = 10
) -> tuple[ReliabilityBin, ...]:
    """Confidence and accuracy of equal intervals of confidence that have documents."""
    place = np.minimum((confidence * bins).astype(np.intp), bins - 1)
    found = []
    for i in np.unique(place).tolist():
        own = place == i
        means = float(confidence[own].mean()), float(correct[own].mean())
        found.append(ReliabilityBin(i / bins, (i + 1) / bins, int(own.sum()), *means))
    return tuple(found)
