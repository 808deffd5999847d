"""Texts with the labels that a classifier suggests, which annotation tools show."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from sklearn.utils.validation import check_is_fitted

from ulr import __version__
from ulr.classifier import Fitted, as_texts
from ulr.jobs import guess_text_column
from ulr.tables import open_table

if TYPE_CHECKING:
    from ulr import ZeroShotClassifier


def fitted_of(clf: ZeroShotClassifier | Fitted) -> Fitted:
    """The fitted classifier of an estimator, or what already is one."""
    if isinstance(clf, Fitted):
        return clf
    check_is_fitted(clf)
    return clf.fitted_


@dataclass(frozen=True)
class LabelledTexts:
    """Texts with the labels that a classifier suggests.

    Attributes
    ----------
    texts
        The documents.
    labels
        The labels of each: none, one, or several, the most probable first.
    confidence
        The probability of each text's most probable label.
    names
        Of all labels.
    several
        Whether a text may have several labels.
    model_version
        What suggested the labels.
    """

    texts: list[str]
    labels: list[tuple[str, ...]]
    confidence: list[float]
    names: tuple[str, ...]
    several: bool = False
    model_version: str = f"ulr {__version__}"

    @classmethod
    def of(cls, clf: ZeroShotClassifier | Fitted, texts: Any) -> Self:
        """Classify texts.

        Examples
        --------
        >>> from ulr import ZeroShotClassifier
        >>> from ulr.integrations import LabelledTexts
        >>> texts = ["The striker scored", "Shares fell", "A late goal won it", "Profits rose"]
        >>> clf = ZeroShotClassifier(["sports", "business"], encoder="static").fit(texts)
        >>> LabelledTexts.of(clf, texts).labels
        [('sports',), ('business',), ('sports',), ('business',)]
        """
        fitted, documents = fitted_of(clf), as_texts(texts)
        found, chances = fitted.predict(documents), fitted.chances
        names = tuple(fitted.names[:-1].tolist())
        version = f"ulr {__version__}, {fitted.encoder_name}"
        if chances is None:
            labels = [tuple(filter(None, [name])) for name in fitted.names[found.labels].tolist()]
            return cls(documents, labels, found.confidence.tolist(), names, False, version)
        confidence = chances.chances(found).max(axis=1).round(4).tolist()
        return cls(documents, chances.names(found, fitted.names), confidence, names, True, version)

    @classmethod
    def read(cls, path: str | Path, text_column: str | None = None, prefix: str = "ulr_") -> Self:
        """Read a table that `ulr classify` wrote; the names of the labels are those found in it."""
        with open_table(str(path)) as table:
            several = f"{prefix}labels" in table.all_columns()
            label, confidence = prefix + ("labels" if several else "label"), f"{prefix}confidence"
            if text_column is None and "text" not in table.columns:
                text_column = guess_text_column(table)
            columns = [text_column or "text"]
            table.check_columns([label, confidence, *columns], "prefix=… or text_column=…")
            batches = list(table.batches())
        texts = [text for batch in batches for text in batch.texts(columns)]
        labels = [_names_in(each, several) for batch in batches for each in batch.column(label)]
        sure = [float(each or 0) for batch in batches for each in batch.column(confidence)]
        return cls(texts, labels, sure, tuple(sorted({*chain(*labels)})), several)


def _names_in(cell: str | list[str] | None, several: bool) -> tuple[str, ...]:
    """The labels in a cell: a list, or names with ``;`` between them."""
    if isinstance(cell, str):
        cell = cell.split(";") if several else [cell]
    return tuple(name.strip() for name in cell or () if name.strip())
