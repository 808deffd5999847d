"""What can be asked of a fitted classifier beside predictions: why, what next, what is missing."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from ulr.classifier.description import LabelDescription, describe
from ulr.classifier.explanation import Explanation, explain
from ulr.classifier.model import Fitted
from ulr.classifier.questions import ask, correct
from ulr.classifier.suggestions import Suggestions, suggest
from ulr.classifier.texts import as_texts
from ulr.classifier.updating import Drift, update
from ulr.markup import plain_text

if TYPE_CHECKING:
    from ulr.report import Report


class ExplorationMixin:
    """Methods of a classifier that describe, explain, question and update what it has fitted."""

    fitted_: Fitted

    if TYPE_CHECKING:  # of the estimator

        def _hold(self, fitted: Fitted) -> None: ...

    def describe(
        self, texts: Iterable[str], *, n_documents: int = 5, n_words: int = 10
    ) -> dict[str, LabelDescription]:
        """Representative and borderline documents, and characteristic words, of each label.

        Parameters
        ----------
        texts
            The documents to describe the labels by, usually the fitted ones.
        n_documents, n_words
            Most documents and words per label.

        Examples
        --------
        >>> from ulr import ZeroShotClassifier
        >>> texts = ["The striker scored", "Shares fell", "A late goal won it", "Profits rose"]
        >>> clf = ZeroShotClassifier(["sports", "business"]).fit(texts)
        >>> sorted(clf.describe(texts)["business"].representative)
        [1, 3]
        """
        documents = as_texts(texts)
        check_is_fitted(self)
        predictions, names = self.fitted_.predict(documents), self.fitted_.names
        return describe(documents, predictions, names, n_documents, n_words)

    def explain(self, texts: Iterable[str], *, n_words: int = 5) -> list[Explanation]:
        """The words that spoke for the label of each text, and those for the runner-up.

        Parameters
        ----------
        texts
            The documents; they may be new.
        n_words
            Most words for the label, and most for the runner-up.
        """
        check_is_fitted(self)
        return explain(self.fitted_, as_texts(texts), n_words)

    def ask(self, n: int = 30) -> NDArray[np.intp]:
        """Positions of the fitted texts whose labels would help most, the most helpful first.

        They are uncertain, and spread: near copies are not asked for twice. See `correct`.
        """
        check_is_fitted(self)
        return ask(self.fitted_, n)

    def correct(self, texts: Iterable[str | int], labels: Iterable[Any]) -> Self:
        """Fit again with the true labels of some texts; no fitted text is encoded again.

        Parameters
        ----------
        texts
            Fitted texts or their positions, as `ask` returns them. Other texts are encoded and added.
        labels
            The label of each; None takes back what was known. Corrections add up over calls.

        Examples
        --------
        >>> from ulr import ZeroShotClassifier
        >>> texts = ["The striker scored", "Shares fell", "A late goal won it", "Profits rose"]
        >>> clf = ZeroShotClassifier(["sports", "business"]).fit(texts)
        >>> str(clf.correct(clf.ask(1), ["sports"]).fitted_.n_labels)
        '2'
        """
        check_is_fitted(self)
        if not isinstance(texts, str):  # which is refused
            texts = [plain_text(each) if isinstance(each, str) else each for each in texts]
        self._hold(correct(self.fitted_, texts, labels))
        return self

    def update(self, texts: Iterable[str]) -> Drift:
        """Adapt to later texts, and say how they differ from the fitted ones.

        Labels keep their meaning: the rule stays as it is, but for the sizes of the labels, which
        are estimated again where they have changed by more than chance. See docs/update.md.

        Parameters
        ----------
        texts
            The new documents.

        Examples
        --------
        >>> from ulr import ZeroShotClassifier
        >>> texts = ["The striker scored", "Shares fell", "A late goal won it", "Profits rose"]
        >>> clf = ZeroShotClassifier(["sports", "business"]).fit(texts)
        >>> clf.update(["The coach praised the goalkeeper", "The bank raised its rates"]).changed
        False
        """
        check_is_fitted(self)
        fitted, drift = update(self.fitted_, as_texts(texts))
        self._hold(fitted)
        return drift

    def suggest(self, texts: Iterable[str] | None = None) -> Suggestions:
        """Labels that are missing, labels to merge or to split, and phrases from the documents.

        Of more than 5,000 texts, by default the fitted ones, a sample is examined; see
        docs/suggest.md.
        """
        check_is_fitted(self)
        return suggest(self.fitted_, None if texts is None else as_texts(texts))

    def report(
        self,
        texts: Iterable[str],
        path: str | Path | None = None,
        *,
        truth: Iterable[Any] | None = None,
        title: str = "Classified texts",
        overwrite: bool = False,
    ) -> Report:
        """A page about the labels of texts, which notebooks show; one HTML file without requests.

        Parameters
        ----------
        texts
            The documents, usually the fitted ones.
        path
            Where to write the page; nowhere if not given.
        truth
            True labels, None where unknown; only used for figures.
        title
            Title of the page.
        overwrite
            Whether to replace a file that is already there.
        """
        from ulr.report import check_report_path, report_texts

        check_is_fitted(self)
        if path is not None:
            check_report_path(path, overwrite, "overwrite=True")
        page = report_texts(self.fitted_, as_texts(texts), truth=truth, title=title)
        if path is not None:
            page.write(path)
        return page
