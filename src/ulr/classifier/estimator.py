"""`ZeroShotClassifier`: texts and label names in, labels out, with scikit-learn's interface."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterable
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from ulr.classifier.advice import advise
from ulr.classifier.encoding import given_vectors, words_to_read
from ulr.classifier.exploration import ExplorationMixin
from ulr.classifier.fitting import fit, fit_warnings, teach
from ulr.classifier.model import Fitted, Predictions
from ulr.classifier.persistence import load, save
from ulr.classifier.placement import place
from ulr.classifier.settings import Settings
from ulr.classifier.texts import as_texts
from ulr.encoders import AnyEncoder
from ulr.errors import UlrWarning

if TYPE_CHECKING:
    pass

P = ParamSpec("P")
Init = Callable[..., None]


def parameters_of(
    source: Callable[P, object],
) -> Callable[[Init], Callable[Concatenate[Any, P], None]]:
    """Give an ``__init__`` the parameters of another class, for scikit-learn and type checkers."""

    def decorate(init: Init) -> Callable[Concatenate[Any, P], None]:
        own = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
        parameters = [own, *inspect.signature(source).parameters.values()]
        init.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        return init

    return decorate


class ZeroShotClassifier(ExplorationMixin, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Classify texts by the names of the labels, refined on the texts themselves.

    This is zero-shot, or dataless, text classification: no text needs a label.

    Parameters
    ----------
    labels
        A list of names, a mapping of names to one or several phrases, a `Path` of a label file, or
        a `LabelSet`. Names are predicted, phrases are encoded; several are averaged. Nested mappings,
        or names such as ``sport > tennis``, are a tree.
    encoder
        Name of an encoder, or any object with ``encode(list of str) -> array``. ``auto`` is the most
        accurate combination of what is installed.
    method
        ``discriminant``, the default method, for ``cosine``; ``ulr``, the paper's; ``none`` for the
        nearest label. ``auto`` is ``discriminant`` for ``cosine`` and ``ulr`` for other distances.
    distance
        ``cosine``, ``l2`` or ``dot``; ``cosine`` or ``jensen-shannon`` for an encoder that scores
        pairs of text and label. ``auto`` is ``cosine``, except for such an encoder with two labels
        or a method of the paper, where it is ``jensen-shannon``.
    prior
        Sizes of the labels: ``estimate``, ``balanced``, or the proportion of each label, in the
        order given. Only for ``discriminant``.
    template
        A sentence with ``{}`` in it that is put around every phrase before it is encoded. None is
        the phrase alone. ``auto`` is the mean of the phrase and of a sentence with it, for encoders
        of sentences, and the phrase alone for others.
    extra_labels
        Names of further categories that take part in the refinement and are never predicted, or the
        `Path` of a file of them.
    fit_sample
        Most documents to fit on; above it, a seeded random sample is used and the others are only
        classified. ``auto`` is 200,000 for ``discriminant``, whose words are fitted on these and
        whose vectors, which need fewer, on 16,384 of them or 512 per label; and all documents for
        ``ulr``. None is all documents.
    strong_share
        Above 200,000 words, a slow encoder reads a sample of the texts, and teaches a student that
        labels the others (docs/encoders.md). Share of the others that the encoder reads as
        well, those that the student is least sure of: a number from 0 to 1, where 1 reads all texts,
        or ``budget`` for as many as 50,000 words allow. ``auto`` is ``budget`` for the encoder
        ``auto``, and 1 for an encoder that is chosen.
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
    ignore_y
        Whether `fit` ignores `y`. Without it, `cross_val_score` and grid search fit on the labels of
        the training folds; with it, they measure the accuracy that texts without labels give.
    path_threshold
        In a tree, the least probability of a node below the first level that a text goes down to.
        `predict` returns its path; `classes_` and `predict_proba` have the leaves.
    multilabel
        Several labels a text: their least chance, below 1 (True is 0.5), or their mean number. `predict`
        then returns the indicator matrix, and `predict_proba` the chance of every label.

    adviser
        A language model that is asked a bounded number of questions, and whose answers are weighted
        by how often they are right: an `ulr.advisers.OpenAIAdviser`, or any function from a prompt to
        an answer (docs/llm.md). None for no adviser; then nothing leaves the machine.
    adviser_budget
        Most questions.

    Attributes
    ----------
    classes_
        Sorted names of the labels, the none label included; the columns of probabilities. If `y`
        was given as integers, the integers of these names.
    label_set_
        The labels in the order given.
    fitted_
        The `ulr.classifier.Fitted` that classifies texts without scikit-learn.
    refinement_
        The `Refinement` of the fitted texts; its label indices are in the order given.
    diagnosis_
        Whether the refinement can be trusted; see `ulr.refinement.Diagnosis`. None for an encoder
        that scores pairs, and after loading.
    method_, distance_
        The method that was used, and the distance.
    centroids_
        (n_labels, n_dims) the refined labels in the space of the texts, in the order given.
    n_iter_
        Passes over the texts.
    extra_labels_
        The names of the extra labels.
    advice_
        What the adviser was asked, and what its answers changed; None without one.

    Examples
    --------
    >>> from ulr import ZeroShotClassifier
    >>> texts = ["The striker scored", "Shares fell", "A late goal won it", "Profits rose"]
    >>> clf = ZeroShotClassifier(["sports", "business"]).fit(texts)
    >>> clf.predict(["The central bank raised interest rates"])
    array(['business'], dtype='<U8')
    >>> clf.classes_
    array(['business', 'sports'], dtype='<U8')
    """

    @parameters_of(Settings)
    def __init__(self, *args: Any, **parameters: Any) -> None:
        bound = inspect.signature(Settings).bind(*args, **parameters)
        bound.apply_defaults()
        for name, value in bound.arguments.items():
            setattr(self, name, value)

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
        fitted = fit(
            as_texts(texts),
            Settings(**self.get_params(deep=False)),
            y=y,
            embeddings=embeddings,
            label_embeddings=label_embeddings,
            extra_texts=() if extra_texts is None else as_texts(extra_texts),
        )
        self._hold(advise(fitted))
        for sentence in fit_warnings(fitted):
            warnings.warn(sentence, UlrWarning, stacklevel=2)
        return self

    def predict(self, texts: Iterable[str], *, embeddings: ArrayLike | None = None) -> NDArray[Any]:
        """The label of each text; the texts may be new.

        Parameters
        ----------
        texts
            The documents. A text without words gets the none label or, without one, no label: an
            empty string, or -1 where classes are integers. Its probabilities are equal.
        embeddings
            (n_texts, n_dims) their vectors, so that they are not encoded.
        """
        return self._classes(self._predict(texts, embeddings))

    def fit_predict(self, texts: Iterable[str], y: Iterable[Any] | None = None) -> NDArray[Any]:
        """Fit, and return the labels of the fitted texts; known labels stay as given."""
        self.fit(texts, y)
        assert self.fitted_.predictions is not None
        assert self.fitted_.known is not None
        return self._classes(self.fitted_.predictions, self.fitted_.known >= 0)

    def predict_proba(
        self, texts: Iterable[str], *, embeddings: ArrayLike | None = None
    ) -> NDArray[np.float64]:
        """Probabilities of the labels, (n_texts, n_classes), in the order of `classes_`.

        They are calibrated so that their mean over the fitted texts is the accuracy that is
        expected without any labels; see docs/refinement.md.
        """
        found, chances = self._predict(texts, embeddings), self.fitted_.chances
        return (chances.chances(found) if chances else found.probabilities)[:, self._order]

    def decision_function(
        self, texts: Iterable[str], *, embeddings: ArrayLike | None = None
    ) -> NDArray[np.float64]:
        """Logarithms of the probabilities, (n_texts, n_classes); for two labels their difference.

        In the order of `classes_`; for two labels (n_texts,), positive for the second.
        """
        probabilities = self.predict_proba(texts, embeddings=embeddings)
        logarithms = np.log(np.maximum(probabilities, 1e-300))
        if self.fitted_.chances:
            return logarithms - np.log(np.maximum(1.0 - probabilities, 1e-300))
        return logarithms[:, 1] - logarithms[:, 0] if logarithms.shape[1] == 2 else logarithms

    def _predict(self, texts: Iterable[str], embeddings: ArrayLike | None) -> Predictions:
        check_is_fitted(self)
        documents = as_texts(texts)
        if embeddings is None:
            return teach(self.fitted_, documents, words_to_read(documents)).predict(documents)
        vectors = given_vectors("embeddings", embeddings, len(documents))
        return self.fitted_.predict(documents, vectors)

    def _classes(
        self, predictions: Predictions, known: NDArray[np.bool_] | None = None
    ) -> NDArray[Any]:
        """Predicted members of `classes_`, or paths in a tree; known labels stay at their leaves."""
        if chances := self.fitted_.chances:
            return chances.assigned(predictions)[:, self._order].astype(int)
        placement = place(self.fitted_, predictions, known)
        if placement is not None and not self.fitted_.integer_classes:
            return placement.paths
        no_label = -1 if self.fitted_.integer_classes else ""
        classes = self.classes_[np.argsort(self._order, kind="stable")]
        return np.append(classes, np.array(no_label, classes.dtype))[predictions.labels]

    def _hold(self, fitted: Fitted) -> None:
        """Set the fitted attributes."""
        self.fitted_, self.label_set_ = fitted, fitted.settings.label_set
        self.method_, self.distance_ = fitted.settings.method, fitted.settings.distance
        self.refinement_, self.diagnosis_ = fitted.refinement, fitted.diagnosis
        self.centroids_, self.n_iter_ = fitted.centroids, fitted.n_iter
        self.extra_labels_, self.advice_ = fitted.settings.extra_labels or (), fitted.advice
        names, integers = fitted.names[:-1], fitted.integer_classes
        # Integers are positions in the sorted names, so that the none label is the last of them.
        n_sorted = fitted.n_labels if integers else len(names)
        order = np.argsort(names[:n_sorted], kind="stable")
        self._order = np.append(order, np.arange(n_sorted, len(names)))
        self.classes_ = np.arange(len(names)) if integers else names[self._order]

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
        save(self.fitted_, path, overwrite=overwrite)

    @classmethod
    def load(
        cls,
        path: str | Path,
        *,
        encoder: str | AnyEncoder | None = None,
        cache: str | Path | None = None,
    ) -> Self:
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
        fitted = load(path, encoder=encoder, cache=cache)
        parameters = {each.name: getattr(fitted.settings, each.name) for each in fields(Settings)}
        parameters["encoder"] = (
            getattr(parameters["encoder"], "spec", None) or parameters["encoder"]
        )
        loaded = cls(**parameters)
        loaded._hold(fitted)
        return loaded
