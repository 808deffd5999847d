"""The documents that suggestions are found on: their vectors, labels and probabilities."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ulr.classifier.encoding import EncodedTexts, encode, text_encoder
from ulr.classifier.model import Fitted, Predictions
from ulr.classifier.texts import empty_texts
from ulr.errors import ArrayError
from ulr.progress import Progress
from ulr.vectors import unit_rows

MOST_DOCUMENTS = 5_000  # a random sample of more
SHOWN_DOCUMENTS = 5

Rows = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Examined:
    """The documents that are examined.

    `rows` are their positions, `vectors` unit vectors from their centre, `labels` -1 where there is
    none of the labels.
    """

    texts: list[str]
    rows: Rows
    vectors: NDArray[np.float32]
    labels: Rows
    probabilities: NDArray[np.float64]
    names: tuple[str, ...]

    def typical(self, of: Rows) -> tuple[int, ...]:
        """Positions of the most typical of some documents, none twice."""
        near = self.vectors[of] @ self.vectors[of].mean(axis=0)
        order = of[np.argsort(-near, kind="stable")]
        first = {self.texts[place]: place for place in reversed(order.tolist())}
        distinct = [place for place in order.tolist() if first[self.texts[place]] == place]
        return tuple(self.rows[distinct[:SHOWN_DOCUMENTS]].tolist())


def examined(
    fitted: Fitted, documents: EncodedTexts | Sequence[str] | None, progress: Progress
) -> Examined:
    """The documents with words and their predictions, or a random sample of them."""
    given, predictions = documents, None
    if given is None:
        given, predictions = fitted.documents, fitted.predictions
    if given is None:
        raise ArrayError("a classifier that was loaded holds no documents; give some texts.")
    texts = given.texts if isinstance(given, EncodedTexts) else list(given)
    is_used = ~empty_texts(texts)
    if predictions is not None:
        # With a student, only documents that the strong encoder has read: its vectors find missing
        # labels more often than those of the fast one.
        is_used &= ~predictions.by_student & ~predictions.empty
    used = np.flatnonzero(is_used)
    draw = np.random.default_rng(fitted.settings.random_state)
    rows = np.sort(draw.permutation(used)[:MOST_DOCUMENTS])
    if isinstance(given, EncodedTexts):
        sample = given.rows(rows)
    else:
        progress.stage("Encoding", len(rows))
        some = [texts[row] for row in rows.tolist()]
        sample = encode(some, text_encoder(fitted.settings), progress, with_words=False)
    found = (
        fitted.predict(sample.texts, sample.vectors)
        if predictions is None
        else predictions.rows(rows)
    )
    return _examined(fitted, sample, rows, found)


def _examined(fitted: Fitted, sample: EncodedTexts, rows: Rows, found: Predictions) -> Examined:
    directions = unit_rows(sample.vectors)
    vectors = unit_rows(directions - directions.mean(axis=0)).astype(np.float32)
    return Examined(
        sample.texts,
        rows,
        vectors,
        np.where(found.labels < fitted.n_labels, found.labels, -1),
        found.probabilities[:, : fitted.n_labels],
        fitted.settings.label_set.names,
    )


def is_confident(view: Examined) -> NDArray[np.bool_]:
    """(n,) whether a document is among the more confident half of its label."""
    confidence, found = view.probabilities.max(axis=1), np.zeros(len(view.labels), dtype=bool)
    for label in range(len(view.names)):
        own = view.labels == label
        if own.any():
            found |= own & (confidence >= np.median(confidence[own]))
    return found
