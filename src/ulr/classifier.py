"""`DatalessClassifier`: texts and label names in, labels out, with scikit-learn's interface."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from ulr.description import LabelDescription, describe
from ulr.encoders import AnyEncoder, OnTexts
from ulr.errors import ArrayError, LabelError
from ulr.inputs import Inputs, Setup, encode_inputs, given_vectors, known_labels, resolve
from ulr.model import Model, NoneLabel, Predictions
from ulr.persistence import load_model, save_model
from ulr.phrasings import MOST_WHOLE, as_phrasings
from ulr.refinement import (
    METHODS,
    UNKNOWN,
    Diagnosis,
    OnPass,
    Refinement,
    calibrate,
    mean_lead,
    refine,
    refine_ensemble,
)
from ulr.refinement.distances import unit_rows
from ulr.texts import as_texts, label_notes, language_note

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

    from ulr.report import Report

_CONFIDENCE_SAMPLE = 20_000
_NONE_SCALE = 0.25  # in standard deviations of the similarities


class DatalessClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Classify texts by the names of the labels, refined on the texts themselves.

    Parameters
    ----------
    labels
        A list of names, a mapping of names to one or several phrases, a `Path` of a label file, or
        a `LabelSet`. Names are predicted, phrases are encoded.
    encoder
        Name of an encoder, or any object with ``encode(list of str) -> array``.
    method
        ``discriminant``, the default method, for ``cosine``; ``ulr``, the paper's; ``none`` for the
        nearest label. ``auto`` is ``discriminant`` for ``cosine`` and ``ulr`` for other distances.
    distance
        ``cosine``, ``l2`` or ``dot``; ``jensen-shannon`` for an encoder that scores pairs of text
        and label. ``auto`` is that for such an encoder, and ``cosine`` for the others.
    prior
        Sizes of the labels: ``estimate``, ``balanced``, or the proportion of each label, in the
        order given. Only for ``discriminant``.
    template
        A sentence with ``{}`` in it that is put around every phrase before it is encoded.
    phrasings
        How several phrases per label are used. ``average`` makes one vector of them. An ensemble
        refines several sets of one phrase per label and averages their scores: ``combinations`` for
        all combinations of the phrases, or the sets themselves, as lists of phrases in the order of
        the labels, or the `Path` of a file of them.
    sample
        Most combinations to use; None for all of up to 4,096, and 1,024 of more.
    extra_labels
        Names of further categories that take part in the refinement and are never predicted, or the
        `Path` of a file of them.
    fit_sample
        Most documents to refine on; above it, a seeded random sample is used and the others are
        only classified. ``auto`` is 200,000 for ``discriminant`` and all documents for ``ulr``;
        None is all documents.
    random_state
        Seed of everything that is drawn.
    max_iter
        Most passes over the texts.
    n_jobs
        Number of threads of the refinement; None for every available core.
    cache
        A folder for the vectors of texts, so that no text is encoded twice.
    none_share
        Share of the fitted texts that get the none label: those least similar to the name of the
        label they would get. New texts that are no more similar to it get it too.
    none_label
        Name of the none label, which is used if `none_share` is given.

    Attributes
    ----------
    classes_
        Sorted names of the labels, the none label included; the columns of probabilities. If `y`
        was given as integers, the integers of these names.
    label_set_
        The labels in the order given.
    model_
        The fitted `Model`, which classifies texts without scikit-learn.
    refinement_
        The `Refinement` of the fitted texts; its label indices are in the order given.
    diagnosis_
        Whether the refinement can be trusted; see `ulr.refinement.Diagnosis`. None for an encoder
        that scores pairs.
    method_, distance_
        The method that was used, and the distance.
    centroids_
        (n_labels, n_dims) the refined labels in the space of the texts, in the order given.
    n_iter_
        Passes over the texts.
    phrasings_
        The sets of an ensemble; None without one.
    extra_labels_
        The names of the extra labels.

    Examples
    --------
    >>> from ulr import DatalessClassifier
    >>> texts = ["The striker scored", "Shares fell", "A late goal won it", "Profits rose"]
    >>> clf = DatalessClassifier(["sports", "business"]).fit(texts)
    >>> clf.predict(["The central bank raised interest rates"])
    array(['business'], dtype='<U8')
    >>> clf.classes_
    array(['business', 'sports'], dtype='<U8')
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
        phrasings: Any = "average",
        sample: int | None = None,
        extra_labels: Any = None,
        fit_sample: int | str | None = "auto",
        random_state: int = 0,
        max_iter: int = 100,
        n_jobs: int | None = None,
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
        self.phrasings = phrasings
        self.sample = sample
        self.extra_labels = extra_labels
        self.fit_sample = fit_sample
        self.random_state = random_state
        self.max_iter = max_iter
        self.n_jobs = n_jobs
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
        embeddings: ArrayLike | None = None,
        label_embeddings: ArrayLike | None = None,
        extra_texts: Iterable[str] | None = None,
    ) -> Self:
        """Encode the texts, classify them by name, refine the labels on them.

        Parameters
        ----------
        texts
            The documents: a list, an array, a Series, a pyarrow array, or a data frame of one
            column. None counts as an empty text. Empty texts take no part in the refinement.
        y
            None, or the label of each text where it is known and None (or -1) elsewhere. All labels
            may be known.
        embeddings
            (n_texts, n_dims) vectors of the texts by `encoder`, so that they are not encoded.
        label_embeddings
            (n_labels, n_dims) vectors of the labels, in the order given.
        extra_texts
            Further texts that the labels are refined on.
        """
        documents = as_texts(texts)
        extra = None if extra_texts is None else as_texts(extra_texts)
        return self._fit(
            documents, y, embeddings=embeddings, label_embeddings=label_embeddings, extra=extra
        )

    def _fit(
        self,
        texts: Sequence[str],
        y: Iterable[Any] | None = None,
        *,
        embeddings: ArrayLike | None = None,
        label_embeddings: ArrayLike | None = None,
        word_counts: csr_matrix | None = None,
        extra: Sequence[str] | None = None,
        setup: Setup | None = None,
        on_texts: OnTexts | None = None,
        on_pass: OnPass | None = None,
        on_set: Callable[[int], None] | None = None,
        on_calibration: Callable[[int, int], None] | None = None,
    ) -> Self:
        """As `fit`, for a list of texts.

        Parameters
        ----------
        texts, y, embeddings, label_embeddings, extra
            As in `fit`.
        word_counts
            Words of the texts, if they were counted before.
        setup
            What `_resolve` returned, if it was called before.
        on_texts
            Called with the number of texts of every encoded batch.
        on_pass
            Called after every pass of the refinement of one set of anchors.
        on_set
            Called after every set of an ensemble with the number of all sets.
        on_calibration
            Called while the confidence is calibrated, see `ulr.refinement.calibrate`.
        """
        setup = setup or self._resolve()
        known, integers = None, False
        if y is not None:
            known, integers = known_labels(y, setup.labels.names, len(texts))
        inputs = encode_inputs(
            setup,
            texts,
            known,
            extra_texts=extra,
            embeddings=embeddings,
            label_embeddings=label_embeddings,
            word_counts=word_counts,
            on_texts=on_texts,
        )
        settings = self._settings(setup)
        if inputs.anchor_sets is None:
            refinement = refine(
                inputs.documents,
                inputs.anchors,
                word_counts=inputs.word_counts,
                on_pass=on_pass,
                **inputs.others,
                **settings,
            )
        else:
            refinement = refine_ensemble(
                inputs.documents, inputs.anchor_sets, on_set=on_set, **inputs.others, **settings
            )
        self.model_ = self._model(setup, inputs, refinement, settings, on_calibration)
        self.refinement_ = refinement
        self.method_, self.distance_ = refinement.method, setup.distance
        self.centroids_, self.n_iter_ = refinement.centroids, refinement.n_iter
        self.phrasings_, self.extra_labels_ = setup.phrasings, setup.extra_labels
        found = refinement.predictions
        self._store(integers, int(np.bincount(found[found >= 0]).argmax()))
        self.diagnosis_ = self._diagnose(setup, texts)
        return self

    def _resolve(self) -> Setup:
        """Validate the arguments."""
        if not isinstance(self.random_state, int | np.integer) or self.random_state < 0:
            raise ArrayError(
                f"random_state must be an integer of at least 0; got {self.random_state!r}."
            )
        setup = resolve(
            self.labels,
            encoder=self.encoder,
            method=self.method,
            distance=self.distance,
            template=self.template,
            phrasings=self.phrasings,
            sample=self.sample,
            random_state=self.random_state,
            extra_labels=self.extra_labels,
            cache=self.cache,
        )
        if self.none_share is not None:
            if not isinstance(self.none_share, int | float) or not 0 < self.none_share < 1:
                raise ArrayError(f"none_share must be between 0 and 1; got {self.none_share!r}.")
            if not str(self.none_label).strip() or self.none_label in setup.labels.names:
                raise LabelError(
                    "none_label must be a name that is none of the labels; got "
                    f"{self.none_label!r}."
                )
        return setup

    def _fit_limit(self, method: str) -> int | None:
        """Most documents that a method is fitted on; None for all."""
        if self.fit_sample == "auto":
            return getattr(METHODS[method].options(), "fit_sample", None)
        return self.fit_sample  # type: ignore[return-value]

    def _settings(self, setup: Setup) -> dict[str, Any]:
        """Arguments of `refine` next to the inputs; options only where they were given."""
        options: dict[str, Any] = {}
        if not isinstance(self.prior, str) or self.prior != "estimate":
            options["prior"] = self.prior
        if self.fit_sample != "auto":
            options["fit_sample"] = self.fit_sample
        return {
            "method": setup.method,
            "distance": setup.distance,
            "random_state": self.random_state,
            "max_iter": self.max_iter,
            "n_jobs": self.n_jobs,
            **options,
        }

    def _model(
        self,
        setup: Setup,
        inputs: Inputs,
        refinement: Refinement,
        settings: dict[str, Any],
        on_calibration: Callable[[int, int], None] | None,
    ) -> Model:
        if inputs.anchors is None:
            anchors = None
            temperature = mean_lead(refinement.scores[refinement.predictions >= 0])
        else:
            anchors = unit_rows(inputs.anchors.astype(np.float64))
            temperature = calibrate(
                inputs.documents,
                inputs.anchors,
                refinement,
                known=inputs.known,
                on_step=on_calibration,
                **settings,
            )
        model = Model(
            label_set=setup.labels,
            encoder=setup.encoder,
            text_encoder=setup.text_encoder,
            rule=refinement.rule,
            initial_rule=refinement.initial_rule,
            temperature=temperature,
            anchors=anchors,
            n_jobs=self.n_jobs,
        )
        free = (inputs.known == UNKNOWN) & (refinement.predictions >= 0)
        if self.none_share is not None:
            if not free.any():
                raise ArrayError("none_share applies to texts of unknown label, but all are known.")
            similarity = model.similarity(
                inputs.documents[free], refinement.predictions[free].astype(np.intp)
            )
            threshold = float(np.quantile(similarity, self.none_share))
            scale = max(_NONE_SCALE * float(similarity.std()), 1e-9)
            model = replace(model, none=NoneLabel(self.none_label, threshold, scale))
        self._fitted = model.decide(
            refinement.predictions,
            refinement.scores,
            refinement.unrefined,
            inputs.documents,
            inputs.known >= 0,
        )
        return model

    def _store(self, integers: bool, largest: int) -> None:
        """Set the attributes that follow from the model.

        Parameters
        ----------
        integers
            Whether classes are positions in the sorted names; the none label is the last of them.
        largest
            The label with the most fitted texts.
        """
        self.label_set_ = self.model_.label_set
        names = self.model_.names[:-1]
        n_sorted = self.model_.n_labels if integers else len(names)
        self._order = np.argsort(names[:n_sorted], kind="stable")
        self._order = np.append(self._order, np.arange(n_sorted, len(names)))
        self.classes_ = np.arange(len(names)) if integers else names[self._order]
        self._positions = np.argsort(self._order, kind="stable")
        self._integers, self._largest_label = integers, largest

    def _diagnose(self, setup: Setup, texts: Sequence[str]) -> Diagnosis | None:
        """The diagnosis of the refinement, with names, the expected accuracy and notes."""
        diagnosis = self.refinement_.diagnosis
        if diagnosis is None:
            return None
        draw = np.random.default_rng(self.random_state).permutation(len(texts))
        confidence = self._fitted.confidence[draw[:_CONFIDENCE_SAMPLE]]
        notes = label_notes(setup.labels, texts, setup.encoder)
        language = language_note(texts, getattr(setup.encoder, "languages", None))
        return replace(
            diagnosis.named(setup.labels.names),
            expected_accuracy=float(confidence[confidence > 0].mean()),
            notes=tuple(notes if language is None else [*notes, language]),
        )

    def predict(self, texts: Iterable[str], *, embeddings: ArrayLike | None = None) -> NDArray[Any]:
        """The label of each text; the texts may be new.

        Parameters
        ----------
        texts
            The documents. An empty text gets the none label or, without one, the label with the
            most fitted texts; its probabilities are equal.
        embeddings
            (n_texts, n_dims) their vectors, so that they are not encoded.
        """
        return self._classes(self._predict(texts, embeddings))

    def fit_predict(self, texts: Iterable[str], y: Iterable[Any] | None = None) -> NDArray[Any]:
        """Fit, and return the labels of the fitted texts; known labels stay as given."""
        self.fit(texts, y)
        return self._classes(self._fitted)

    def predict_proba(
        self, texts: Iterable[str], *, embeddings: ArrayLike | None = None
    ) -> NDArray[np.float64]:
        """Probabilities of the labels, (n_texts, n_classes), in the order of `classes_`.

        They are calibrated so that their mean over the fitted texts is the accuracy that is
        expected without any labels; see `ulr.refinement.calibration`.
        """
        return self._predict(texts, embeddings).probabilities[:, self._order]

    def decision_function(
        self, texts: Iterable[str], *, embeddings: ArrayLike | None = None
    ) -> NDArray[np.float64]:
        """Logarithms of the probabilities, (n_texts, n_classes); for two labels their difference.

        In the order of `classes_`; for two labels (n_texts,), positive for the second.
        """
        logarithms = np.log(np.maximum(self.predict_proba(texts, embeddings=embeddings), 1e-300))
        return logarithms[:, 1] - logarithms[:, 0] if logarithms.shape[1] == 2 else logarithms

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
        >>> from ulr import DatalessClassifier
        >>> texts = ["The striker scored", "Shares fell", "A late goal won it", "Profits rose"]
        >>> clf = DatalessClassifier(["sports", "business"]).fit(texts)
        >>> sorted(clf.describe(texts)["business"].representative)
        [1, 3]
        """
        documents = as_texts(texts)
        check_is_fitted(self)
        predictions = self.model_.predict(documents)
        return describe(documents, predictions, self.model_, n_documents, n_words)

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
        from ulr.report import refuse_report, report_texts

        check_is_fitted(self)
        if path is not None:
            refuse_report(path, overwrite, "overwrite=True")
        page = report_texts(self, as_texts(texts), truth=truth, title=title)
        if path is not None:
            page.write(path)
        return page

    def _predict(self, texts: Iterable[str], embeddings: ArrayLike | None) -> Predictions:
        check_is_fitted(self)
        documents = as_texts(texts)
        if embeddings is None:
            return self.model_.predict(documents)
        vectors = given_vectors("embeddings", embeddings, len(documents))
        return self.model_.predict(documents, vectors)

    def _classes(self, predictions: Predictions) -> NDArray[Any]:
        """Predicted members of `classes_`."""
        labels = predictions.labels
        if (labels < 0).any():
            labels = np.where(labels < 0, self._largest_label, labels)
        return self.classes_[self._positions[labels]]

    def save(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write the fitted classifier to a folder, as JSON and safetensors; complete or not at all.

        Parameters
        ----------
        path
            The folder.
        overwrite
            Whether to replace a model that is already there.
        """
        check_is_fitted(self)
        save_model(self.model_, path, overwrite, self._saved_settings())

    def _saved_settings(self) -> dict[str, Any]:
        """Arguments and learned settings that a saved classifier keeps."""
        names = "template sample fit_sample random_state max_iter none_share none_label".split()
        settings = {name: getattr(self, name) for name in names}
        prior, phrasings, found = self.prior, self.phrasings, self.phrasings_
        # A draw cannot be repeated from the labels alone, which only keep the drawn phrases.
        if found is not None and (
            found.is_sample or len(found) > MOST_WHOLE or not isinstance(phrasings, str)
        ):
            phrasings = found.sets
        return settings | {
            "method": self.method_,
            "distance": self.distance_,
            "prior": prior if isinstance(prior, str) else [float(share) for share in prior],
            "phrasings": phrasings,
            "extra_labels": self.extra_labels_ or None,
            "n_iter": self.n_iter_,
            "integers": self._integers,
            "largest_label": self._largest_label,
        }

    @classmethod
    def load(
        cls,
        path: str | Path,
        *,
        encoder: str | AnyEncoder | None = None,
        cache: str | Path | None = None,
    ) -> DatalessClassifier:
        """Read a saved classifier.

        Parameters
        ----------
        path
            The folder that `save` wrote.
        encoder
            The encoder, if the model was fitted with an object, or with files outside the package.
        cache
            A folder for the vectors of texts.
        """
        model, settings = load_model(path, encoder, cache)
        n_iter, integers, largest = (
            settings.pop(name) for name in ("n_iter", "integers", "largest_label")
        )
        spec = getattr(model.encoder, "spec", None) or model.encoder
        loaded = cls(model.label_set, encoder=spec, cache=cache, **settings)
        loaded.model_ = model
        loaded.method_, loaded.distance_, loaded.n_iter_ = loaded.method, loaded.distance, n_iter
        loaded.phrasings_ = as_phrasings(loaded.phrasings, model.label_set)
        loaded.extra_labels_ = loaded.extra_labels or ()
        loaded._store(integers, largest)
        return loaded
