"""Teacher and student: the labels of a strong encoder for more documents than it can read.

The strong encoder reads a sample of the documents. A classifier fitted on it, the teacher, labels the
sample; these labels are known documents of a second fit, the student, on all documents by the fast
encoder and their words. The strong encoder then reads the documents that the student is least sure of.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ulr.classifier.encoding import (
    READ_WORDS,
    EncodedTexts,
    encode_labels,
    share_to_read,
    words_to_read,
)
from ulr.classifier.model import CONFIDENCE_LEVELS, Fitted
from ulr.classifier.settings import Settings
from ulr.progress import Progress
from ulr.refinement import EXCLUDED, UNKNOWN, refine

_SAMPLE_SHARE = 0.75  # of the words that are read; the others are of documents that are handed back
_SPREAD = (
    0.25  # of an equal share of the sample, which each label has where it has as many documents
)
_HELD_OUT, _MOST_HELD_OUT = 0.2, 500  # documents of the sample that calibrate the student

Rows = NDArray[np.intp]


def sample_rows(documents: EncodedTexts, known: NDArray[np.int32], settings: Settings) -> Rows:
    """Positions of the documents that the strong encoder reads, in ascending order.

    They are drawn at random, but known documents come first, and then some of each label that the
    fast encoder finds, so that rare labels are in the sample.
    """
    fast = settings.fast
    nearest = refine(documents.vectors, encode_labels(fast), method="none", n_jobs=fast.n_jobs)
    n_labels = len(settings.labels)
    order = np.random.default_rng(settings.random_state).permutation(len(known))
    order = order[known[order] != EXCLUDED]
    labels = np.where(known >= 0, known, nearest.predictions)[order]
    by_label = np.argsort(labels, kind="stable")
    rank = np.empty(len(order), dtype=np.intp)
    rank[by_label] = np.arange(len(order)) - np.searchsorted(labels[by_label], labels[by_label])
    n_read = int(_SAMPLE_SHARE * READ_WORDS / (words_to_read(documents.texts) / len(known)))
    is_first = (known[order] >= 0) | (rank < _SPREAD * n_read / n_labels)
    order = np.concatenate([order[is_first], order[~is_first]])
    words = [words_to_read(documents.texts[row : row + 1]) for row in order[: 2 * n_read].tolist()]
    n_read = int(np.searchsorted(np.cumsum(words), _SAMPLE_SHARE * READ_WORDS))
    return np.sort(order[: max(n_read, 1)])


def labels_for_student(
    known: NDArray[np.int32], rows: Rows, teacher: Fitted, random_state: int
) -> tuple[NDArray[np.int32], Rows]:
    """Codes of all documents for the student's fit, and places in the sample that are held out."""
    assert teacher.predictions is not None
    free = np.flatnonzero(known[rows] == UNKNOWN)
    most = min(_MOST_HELD_OUT, int(_HELD_OUT * len(free)))
    held_out = np.random.default_rng(random_state).permutation(free)[:most]
    labels = teacher.predictions.labels
    is_taught = (labels >= 0) & (labels < teacher.n_labels)
    is_taught[held_out] = False
    codes = known.copy()
    codes[rows[is_taught]] = labels[is_taught]
    return codes, held_out


def calibrated(student: Fitted, teacher: Fitted, rows: Rows, held_out: Rows) -> Fitted:
    """The student with the temperature whose probabilities are closest to the teacher's."""
    from scipy.optimize import minimize_scalar
    from scipy.special import log_softmax

    assert student.predictions is not None
    assert teacher.predictions is not None
    scores = student.predictions.scores[rows[held_out]].astype(np.float64)
    target = teacher.predictions.rows(held_out).probabilities[:, : teacher.n_labels]
    if not len(held_out):
        return student

    def cross_entropy(octaves: float) -> float:
        logits = scores / (student.temperature * 2.0**octaves)
        return -float((target * log_softmax(logits, axis=1)).sum())

    octaves = minimize_scalar(cross_entropy, bounds=(-6.0, 6.0), method="bounded").x
    return replace(student, temperature=student.temperature * 2.0 ** float(octaves))


def with_student(
    teacher: Fitted,
    student: Fitted,
    documents: EncodedTexts,
    rows: Rows,
    n_words: int,
    progress: Progress,
    is_refit: bool = False,
) -> Fitted:
    """The teacher with its student, and with predictions of all documents.

    In a refit, the encoder reads no further documents.
    """
    assert documents.strong is not None
    assert student.refinement is not None
    assert teacher.predictions is not None
    refined = student.refinement
    labels, scores, unrefined = refined.predictions, refined.scores, refined.unrefined
    again = student.decide(labels, scores, unrefined, documents.vectors, by_student=True)
    is_read = np.zeros(len(labels), dtype=bool)
    is_read[rows] = True
    levels = np.quantile(again.confidence[~is_read], np.linspace(0, 1, CONFIDENCE_LEVELS))
    student = replace(student, predictions=None, refinement=None, diagnosis=None)
    fitted = replace(teacher, student=student, levels=tuple(levels.tolist()))
    n_read = words_to_read([documents.texts[row] for row in rows.tolist()])
    share = share_to_read(teacher.settings, n_words, n_read)
    fitted = replace(fitted, strong_share=share)
    if is_refit:
        unsure = np.setdiff1d(documents.strong.rows, rows)
    else:
        unsure = np.flatnonzero(~is_read & fitted.is_unsure(again, share))
    predictions = teacher.predictions.merged(again.rows(~is_read), is_read)
    if len(unsure):
        progress.stage("Encoding documents that the student is unsure of", len(unsure))
        vectors = documents.strong.of(unsure, progress)
        found = fitted.predict([documents.texts[i] for i in unsure.tolist()], vectors)
        chosen = np.zeros(len(is_read), dtype=bool)
        chosen[unsure] = True
        predictions = found.merged(predictions.rows(~chosen), chosen)
    return replace(fitted, predictions=predictions)
