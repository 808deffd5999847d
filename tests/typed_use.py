"""A user's file with the public names; mypy checks it strictly, and a test runs it.

Each ignored error is a mistake of a user that the types must find: mypy reports ignores without one.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import ulr
from ulr import Refinement, UlrError, UlrWarning, ZeroShotClassifier, load_encoder, refine
from ulr.classifier import Fitted, Settings, fit
from ulr.encoders import AnyEncoder

LABELS = ["apple", "cherry"]
WARNING: type[UserWarning] = UlrWarning
VERSION: str = ulr.__version__


class Letters:
    """An encoder of one's own."""

    fingerprint = "letters"

    def encode(self, texts: list[str], /) -> NDArray[np.float32]:
        """How often each letter occurs."""
        letters = "abcdefghijklmnopqrstuvwxyz"
        return np.array([[text.count(each) for each in letters] for text in texts], np.float32)


def classified(texts: list[str], folder: Path) -> list[str]:
    """Labels by a model that was saved."""
    try:
        clf = ZeroShotClassifier(LABELS, encoder=Letters()).fit(texts)
    except UlrError as error:
        raise SystemExit(str(error)) from error
    clf.save(folder)
    again: ZeroShotClassifier = ZeroShotClassifier.load(folder, encoder=Letters())
    probabilities: NDArray[np.float64] = again.predict_proba(texts)
    assert probabilities.shape == (len(texts), len(LABELS))
    return [str(label) for label in again.predict(texts)]


def refined(vectors: NDArray[np.float32]) -> Refinement:
    """A refinement of vectors."""
    return refine(vectors, vectors[:2], distance="cosine")


def fitted(texts: list[str]) -> Fitted:
    """A fit without the estimator."""
    return fit(texts, Settings(labels=LABELS, encoder=Letters()))


def loaded(name: str) -> AnyEncoder:
    """An encoder by name."""
    return load_encoder(name)


def mistaken(texts: list[str], vectors: NDArray[np.float32]) -> None:
    """Calls that the types refuse."""
    fit(1, Settings(labels=LABELS))  # type: ignore[arg-type]
    refine(vectors, vectors, max_iter="many")  # type: ignore[arg-type]
    load_encoder(1)  # type: ignore[arg-type]
    print(refined(vectors).labels_)  # type: ignore[attr-defined]
