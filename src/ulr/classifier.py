"""`DatalessClassifier`: texts and label names in, categories out, by scikit-learn's rules."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from ulr.encoders import AnyEncoder, OnTexts, encode_texts, in_batches
from ulr.refine import OnPass, calibrate, nearest, refine, refine_ensemble
from ulr.refine.calibration import typical_lead
from ulr.refine.distances import unit_rows
from ulr.saved import load_model, save_model
from ulr.tasks import Task, as_texts, encode, prepare

_ROWS_AT_A_TIME = 4096


class DatalessClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Sort texts into categories by the categories' names, refined on the texts themselves.

    Parameters
    ----------
    labels
        A list of names, or a mapping of names to one phrase or several, or a `LabelSet`. Names
        are what comes out, phrases are what is encoded.
    encoder
        Name of an encoder, or any object with ``encode(list of str) -> array``.
    method
        ``mixture`` refines by clusters around the labels and a mixture of Gaussians, for
        ``cosine``; ``ulr`` refines as the paper does; ``none`` takes the nearest label. ``auto``
        is ``mixture`` for ``cosine`` and ``ulr`` for other distances.
    prior
        How large the labels are: ``estimate`` finds out, ``balanced`` takes them as equal, or the
        proportion of each label, in order. Only for ``mixture``.
    distance
        ``cosine``, ``l2`` or ``dot``; ``jensen-shannon`` for an encoder that scores every label
        with every text. ``auto`` is that for such an encoder, and ``cosine`` for the others.
    template
        A sentence with ``{}`` in it that is put around every phrase before it is encoded.
    wordings
        What becomes of several phrases a label. ``average`` makes one vector of them. An ensemble
        refines several sets of one phrase a label and lets the sum of their scores decide:
        ``combinations`` for all combinations of the phrases, or the sets themselves, as lists of
        phrases in the order of the labels, or the `Path` of a file of them.
    sample
        Most combinations to take, of which there may be many; None for all of up to 4,096 and for
        1,024 of more.
    extra_labels
        Names of further categories that take part in the refinement and are never predicted, or
        the `Path` of a file of them.
    seed
        Of the draw of combinations.
    max_iterations
        Most passes over the texts.
    threads
        Threads of the refinement; None for every core.
    cache
        A folder to keep the vectors of texts in, so that no text is encoded twice.
    none_share
        Share of the fitted texts that are to get no label: those least like the name of the label
        they would get. New texts that are no more like it get none either.
    none_label
        What is predicted for them.

    Attributes
    ----------
    classes_
        Names of the labels, in the order given.
    distance_
        The distance in use.
    refinement_
        The `Refinement` of the fitted texts.
    centroids_
        (n_labels, n_dims) what new texts are compared with.
    n_iter_
        Passes over the texts.
    rule_
        The rule that a refinement by mixture or an ensemble has learnt; None for others.
    wordings_
        The sets of an ensemble; None without one.
    extra_labels_
        The names of the extra labels.
    temperature_
        What scores are divided by before they become probabilities; see `predict_proba`.
    none_threshold_
        Likeness to the name of its label, a cosine (a probability for an encoder that scores
        pairs), below which a text gets no label; None where every text gets one.
    is_none_
        (n_texts,) which of the fitted texts get no label.
    encoder_
        The encoder in use.
    text_encoder_
        What texts go through: that encoder, or its scores of the labels, behind the cache.

    Examples
    --------
    >>> from ulr import DatalessClassifier
    >>> texts = ["The striker scored twice", "Shares fell on Monday", "A late goal won it"]
    >>> clf = DatalessClassifier(["sports", "business"]).fit(texts)
    >>> clf.predict(["The central bank raised interest rates"])
    array(['business'], dtype='<U8')
    """

    def __init__(
        self,
        labels: Any,
        *,
        encoder: str | AnyEncoder = "static",
        method: str = "auto",
        distance: str = "auto",
        prior: Any = "estimate",
        template: str | None = None,
        wordings: Any = "average",
        sample: int | None = None,
        extra_labels: Any = None,
        seed: int = 0,
        max_iterations: int = 100,
        threads: int | None = None,
        cache: str | Path | None = None,
        none_share: float | None = None,
        none_label: str = "none of these",
    ) -> None:
        self.labels = labels
        self.encoder = encoder
        self.method = method
        self.distance = distance
        self.prior = prior
        self.template = template
        self.wordings = wordings
        self.sample = sample
        self.extra_labels = extra_labels
        self.seed = seed
        self.max_iterations = max_iterations
        self.threads = threads
        self.cache = cache
        self.none_share = none_share
        self.none_label = none_label

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.one_d_array = tags.input_tags.string = tags.input_tags.allow_nan = True
        return tags

    def fit(
        self,
        texts: Iterable[str],
        y: Iterable[Any] | None = None,
        *,
        extra_texts: Iterable[str] | None = None,
    ) -> Self:
        """Encode the texts, classify them by name, refine the labels on them.

        Parameters
        ----------
        texts
            The documents; a list, an array or a pandas or polars Series of texts. None counts
            as an empty text.
        y
            Nothing, or the label of each text where it is known and None (or -1) elsewhere.
        extra_texts
            Further texts that the labels are refined on and that get no label.
        """
        extra = None if extra_texts is None else in_batches(as_texts(extra_texts))
        return self.fit_batches(in_batches(as_texts(texts)), y, extra_batches=extra)

    def fit_batches(
        self,
        batches: Iterable[list[str]],
        y: Iterable[Any] | None = None,
        *,
        extra_batches: Iterable[list[str]] | None = None,
        on_texts: OnTexts | None = None,
        on_pass: OnPass | None = None,
        on_set: Callable[[int], None] | None = None,
    ) -> Self:
        """As `fit`, for texts that arrive batch by batch and need never be in memory at once.

        Parameters
        ----------
        batches
            Lists of texts.
        y
            As in `fit`, one a text.
        extra_batches
            Lists of the extra texts.
        on_texts
            Called with the number of texts of every encoded batch.
        on_pass
            Called after every pass of the refinement of one set of labels.
        on_set
            Called after every set of labels of an ensemble with the number of all.
        """
        task = prepare(self)
        given = encode(task, self, batches, y, extra_batches, on_texts)
        documents, anchors, settings = given.documents, given.anchors, given.settings
        if given.sets is None:
            refinement = refine(documents, anchors, on_pass=on_pass, **given.beside, **settings)
        else:
            refinement = refine_ensemble(
                documents, given.sets, on_set=on_set, **given.beside, **settings
            )
        self._begin(task)
        self.refinement_ = refinement
        self.centroids_ = refinement.centroids
        self.n_iter_ = refinement.n_iterations
        self.rule_ = refinement.rule
        free = np.ones(len(documents), dtype=bool) if given.known is None else given.known < 0
        sharpness = 1.0 / typical_lead(refinement.scores)
        if anchors is not None and free.any():
            settings = settings | {"method": refinement.method}
            sharpness = calibrate(documents, anchors, refinement, given.known, **settings)
        self.temperature_ = 1.0 / sharpness
        self.names_ = None if anchors is None else unit_rows(anchors.astype(np.float64))
        self.none_threshold_ = None
        self.is_none_ = np.zeros(len(documents), dtype=bool)
        if self.none_share is not None:
            likeness = self._likeness(documents, refinement.predictions)
            self.none_threshold_ = float(np.quantile(likeness[free], self.none_share))
            self.is_none_ = free & (likeness < self.none_threshold_)
        return self

    def _begin(self, task: Task) -> None:
        """Take over what the arguments come to."""
        self.encoder_, self.text_encoder_ = task.encoder, task.text_encoder
        self.distance_ = task.distance
        self.label_set_, self.classes_ = task.labels, np.array(task.labels.names)
        self.wordings_, self.extra_labels_ = task.wordings, task.extra_labels

    def fit_predict(self, texts: Iterable[str], y: Iterable[Any] | None = None) -> NDArray[np.str_]:
        """The labels of the texts that the labels are refined on."""
        self.fit(texts, y)
        return self._named(self.refinement_.predictions, self.is_none_)

    def predict(self, texts: Iterable[str]) -> NDArray[np.str_]:
        """The label of each text, by the refined labels; the texts may be new."""
        labels, _, is_none = self.judge(texts)
        return self._named(labels, is_none)

    def _named(self, labels: NDArray[np.intp], is_none: NDArray[np.bool_]) -> NDArray[np.str_]:
        names = np.asarray(self.classes_[labels])
        return np.where(is_none, self.none_label, names) if is_none.any() else names

    def decision_function(self, texts: Iterable[str]) -> NDArray[np.float32]:
        """Scores of the texts, (n_texts, n_labels); larger is closer."""
        return self.nearest(texts)[1]

    def predict_proba(self, texts: Iterable[str]) -> NDArray[np.float64]:
        """Softmax over the scores, (n_texts, n_labels); the rows add up to one.

        Scores are divided by `temperature_`, which is such that the mean probability of the
        predicted labels of the fitted texts is the accuracy that is expected of them
        without any truth; see `ulr.refine.calibration`.
        """
        return self.probabilities(self.nearest(texts)[1])

    def probabilities(self, scores: NDArray[np.float32]) -> NDArray[np.float64]:
        """The probabilities that `predict_proba` makes of scores, (n_texts, n_labels)."""
        check_is_fitted(self)
        return np.asarray(softmax(scores.astype(np.float64) / self.temperature_, axis=1))

    def nearest(self, texts: Iterable[str]) -> tuple[NDArray[np.intp], NDArray[np.float32]]:
        """Index into `classes_` and scores, (n_texts, n_labels), of each text."""
        labels, scores, _ = self.judge(texts)
        return labels, scores

    def judge(
        self, texts: Iterable[str]
    ) -> tuple[NDArray[np.intp], NDArray[np.float32], NDArray[np.bool_]]:
        """As `nearest`, and whether each text is none of the labels, by `none_threshold_`."""
        check_is_fitted(self)
        vectors = encode_texts(self.text_encoder_, as_texts(texts))
        if self.rule_ is not None:
            labels, scores = self.rule_.decide(vectors, self.threads)
        else:
            labels, scores = nearest(
                vectors, self.centroids_, distance=self.distance_, threads=self.threads
            )
        is_none = np.zeros(len(labels), dtype=bool)
        if self.none_threshold_ is not None:
            is_none = self._likeness(vectors, labels) < self.none_threshold_
        return labels, scores, is_none

    def _likeness(
        self, vectors: NDArray[np.float32], labels: NDArray[np.intp]
    ) -> NDArray[np.float64]:
        """How like the name of its label each text is."""
        if self.names_ is None:
            return vectors[np.arange(len(labels)), labels].astype(np.float64)
        likeness = np.empty(len(labels))
        for start in range(0, len(labels), _ROWS_AT_A_TIME):
            few = slice(start, start + _ROWS_AT_A_TIME)
            texts = unit_rows(vectors[few].astype(np.float64))
            likeness[few] = np.einsum("ij,ij->i", texts, self.names_[labels[few]])
        return likeness

    def save(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write what `predict` needs to a folder: JSON and safetensors, whole or not at all."""
        check_is_fitted(self)
        save_model(self, path, overwrite)

    @classmethod
    def load(
        cls,
        path: str | Path,
        *,
        encoder: AnyEncoder | None = None,
        cache: str | Path | None = None,
    ) -> DatalessClassifier:
        """Read a saved model.

        Parameters
        ----------
        path
            The folder that `save` wrote.
        encoder
            The encoder object, if the model was fitted with one rather than with a name.
        cache
            A folder to keep the vectors of texts in.
        """
        return load_model(cls, path, encoder, cache)
