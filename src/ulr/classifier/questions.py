"""What to label next, and a fit that takes the answers up without encoding anything again."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import vstack

from ulr.classifier.encoding import EncodedTexts, text_encoder
from ulr.classifier.fitting import refit
from ulr.classifier.known import known_labels
from ulr.classifier.model import Fitted, Indices
from ulr.classifier.texts import empty_texts
from ulr.classifier.word_counts import count_words
from ulr.encoders import encode_texts
from ulr.errors import ArrayError, LabelError, ModelError, TextError
from ulr.label_files import shown
from ulr.markup import readable_texts
from ulr.progress import NO_PROGRESS, Progress
from ulr.refinement import EXCLUDED, UNKNOWN
from ulr.vectors import unit_rows

# Documents that are compared with each other, drawn at random from more: their similarities take
# 16 MB, and a question 10 ms.
_COMPARED, _COMPARED_PER_QUESTION = 2_048, 4


def ask(fitted: Fitted, n: int = 30) -> Indices:
    """Choose the documents whose labels would help most: uncertain ones that stand for others.

    Each document that is uncertain counts as far as it is similar to one that is asked for or known,
    and the next question is the uncertain document that adds most to that. So near copies are not
    asked for twice, nor outliers that are similar to nothing.

    Parameters
    ----------
    fitted
        A classifier with its documents, as `fit` returns it.
    n
        Most documents; there are fewer where fewer are unknown.

    Returns
    -------
    positions
        (n,) of the fitted documents, the most helpful first. Documents of known label and empty ones
        are left out.

    Examples
    --------
    >>> from ulr.classifier import Settings, ask, fit
    >>> texts = ["The striker scored", "Shares fell", "The striker scored", "Profits rose"]
    >>> fitted = fit(texts, Settings(["sports", "business"], encoder="static"))
    >>> len(ask(fitted, 3))
    3
    """
    if not isinstance(n, int | np.integer) or isinstance(n, bool) or n < 1:
        raise ArrayError(f"n must be an integer of at least 1; got {n!r}.")
    documents, known, predictions = _documents(fitted), fitted.known, fitted.predictions
    assert known is not None
    assert predictions is not None
    n_labels = fitted.n_labels
    draw = np.random.default_rng(fitted.settings.random_state)
    rows = draw.permutation(np.flatnonzero((known == UNKNOWN) & ~predictions.empty))
    rows = np.sort(rows[: max(_COMPARED, _COMPARED_PER_QUESTION * int(n))])
    best = np.sort(predictions.probabilities[rows, :n_labels], axis=1)
    uncertainty = 1.0 - (best[:, -1] - best[:, -2])
    answered = draw.permutation(np.flatnonzero(known >= 0))[:_COMPARED]
    vectors = unit_rows(documents.vectors[np.concatenate([rows, answered])])
    vectors = unit_rows(vectors - vectors[: len(rows)].mean(axis=0))
    points = vectors.astype(np.float32)
    chosen = _cover(points[: len(rows)], points[len(rows) :], uncertainty, int(n))
    return rows[chosen]


def _cover(
    vectors: NDArray[np.float32],  # (n_candidates, n_dims) of length one
    answered: NDArray[np.float32],  # (n_answered, n_dims)
    uncertainty: NDArray[np.float64],  # (n_candidates,)
    n: int,
) -> list[int]:
    """Facility location: the choices that are nearest to all candidates, weighted, chosen greedily."""
    similarity = np.maximum(vectors @ vectors.T, 0.0)
    covered = np.zeros(len(vectors), dtype=np.float32)
    if len(answered):
        covered = np.maximum(vectors @ answered.T, 0.0).max(axis=1)
    weights = np.square(uncertainty).astype(np.float32)
    # Gains only fall, so those of earlier rounds are bounds (lazy greedy, Minoux 1978): the candidate
    # with the largest bound is evaluated again until it stays the largest.
    gain = np.maximum(similarity - covered, 0.0) @ weights
    chosen, is_new = list[int](), np.ones(len(vectors), dtype=bool)
    while len(chosen) < min(n, len(vectors)):
        best = int(gain.argmax())
        if is_new[best]:
            chosen.append(best)
            gain[best] = -1.0
            covered = np.maximum(covered, similarity[best])
            is_new[:] = False
        else:
            gain[best] = np.maximum(similarity[best] - covered, 0.0) @ weights
            is_new[best] = True
    return chosen


def correct(
    fitted: Fitted,
    documents: Iterable[str | int],
    labels: Iterable[Any],
    progress: Progress = NO_PROGRESS,
) -> Fitted:
    """Fit a classifier again with the true labels of some documents; no fitted one is encoded again.

    Labels that are known from before stay known. The probabilities keep their temperature.

    Parameters
    ----------
    fitted
        A classifier with its documents, as `fit` returns it.
    documents
        Positions of fitted documents, or texts. A text stands for all fitted documents that equal
        it; one that was not fitted is encoded and added to them.
    labels
        The label of each: a name, or None to take back what was known. Documents that are given the
        name of the none label take no part in the fit.
    progress
        Receives the progress, and can cancel the fit.

    Examples
    --------
    >>> from ulr.classifier import Settings, correct, fit
    >>> texts = ["The striker scored", "Shares fell", "A late goal won it", "Profits rose"]
    >>> fitted = fit(texts, Settings(["sports", "business"], encoder="static"))
    >>> corrected = correct(fitted, [2, "Shares fell"], ["business", "business"])
    >>> corrected.predictions.labels[1:3].tolist()
    [1, 1]
    """
    if isinstance(documents, str):
        raise TextError("documents must be a list of texts or positions; got one text.")
    chosen, n_fitted = list(documents), len(_documents(fitted).texts)
    codes = _codes(fitted, labels, len(chosen))
    places: dict[str, list[int]] = {each: [] for each in chosen if isinstance(each, str)}
    for place, text in enumerate(_documents(fitted).texts if places else ()):
        if text in places:
            places[text].append(place)
    new = [text for text, found in places.items() if not found]
    for place, text in enumerate(new, n_fitted):
        places[text].append(place)
    rows = [
        places[each] if isinstance(each, str) else [_position(each, number, n_fitted)]
        for number, each in enumerate(chosen)
    ]
    if new:
        fitted = _with_texts(fitted, new, progress)
    assert fitted.known is not None
    known = fitted.known.copy()
    for own, code in zip(rows, codes.tolist(), strict=True):
        known[own] = code
    return refit(fitted, known, progress)


def _codes(fitted: Fitted, labels: Iterable[Any], n: int) -> NDArray[np.int32]:
    """Known labels as `ulr.refinement.refine` takes them."""
    if isinstance(labels, str):
        raise LabelError("labels must be a list with one label per document; got one label.")
    values = list(labels)
    names = fitted.settings.label_set.names
    none = None if fitted.none is None else fitted.none.name
    is_none = [none is not None and isinstance(value, str) and value == none for value in values]
    free = [None if own else value for value, own in zip(values, is_none, strict=True)]
    codes = known_labels(free, names, n, "labels")[0]
    codes[is_none] = EXCLUDED
    return codes


def _position(given: object, number: int, n_fitted: int) -> int:
    """The position of a fitted document."""
    if not isinstance(given, int | np.integer) or isinstance(given, bool):
        raise TextError(
            f"documents must be texts, or positions of fitted ones; number {number} is {shown(given)}."
        )
    if not 0 <= given < n_fitted:
        raise ArrayError(
            f"positions must be from 0 to {n_fitted - 1}, of the fitted documents; number {number} "
            f"is {given}."
        )
    return int(given)


def _with_texts(fitted: Fitted, texts: list[str], progress: Progress) -> Fitted:
    """The classifier with further texts among its documents, to be fitted again."""
    documents, settings = _documents(fitted), fitted.settings
    empty = np.flatnonzero(empty_texts(texts))
    if len(empty):
        raise TextError("a document of known label has no words; leave it out.")
    progress.stage("Encoding", len(texts))
    encoder = text_encoder(settings if documents.strong is None else settings.fast)
    read = readable_texts(texts)
    vectors = encode_texts(encoder, read, progress)
    if vectors.shape[1] != documents.vectors.shape[1]:
        raise ArrayError(
            "a text that was not fitted can only be added if the fitted ones were encoded by the "
            f"encoder; their vectors have {documents.vectors.shape[1]} dimensions, its vectors "
            f"{vectors.shape[1]}."
        )
    counts, every = documents.word_counts, [*documents.texts, *texts]
    documents = EncodedTexts(
        every,
        np.concatenate([documents.vectors, vectors]),
        None if counts is None else vstack([counts, count_words(read)], format="csr"),
        None if documents.strong is None else documents.strong.extended(every),
    )
    assert fitted.known is not None
    known = np.append(fitted.known, np.full(len(texts), UNKNOWN, dtype=np.int32))
    return replace(fitted, documents=documents, known=known)


def _documents(fitted: Fitted) -> EncodedTexts:
    """The fitted documents, which a classifier that was loaded does not have."""
    if fitted.documents is None or fitted.inputs is None:
        raise ModelError(
            "this classifier was loaded without the texts that it was fitted on; fit it on texts "
            "first."
        )
    return fitted.documents
