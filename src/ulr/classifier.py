"""`DatalessClassifier`: texts and label names in, categories out, by scikit-learn's rules."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from ulr.encoders import (
    AnyEncoder,
    CachedEncoder,
    Encoder,
    JoinedEncoder,
    LabelScores,
    OnTexts,
    encode_batches,
    encode_texts,
    fingerprint,
    in_batches,
    load_encoder,
)
from ulr.errors import ArrayError, LabelError, ModelError, TextError
from ulr.files import refuse_existing, sha256, whole_folder
from ulr.labels import Label, LabelSet, as_label_set
from ulr.refine import Mixture, OnPass, calibrate, choose_method, nearest, refine
from ulr.refine.calibration import typical_lead
from ulr.refine.distances import unit_rows

_FORMAT_VERSION = 2
_SETTINGS, _ARRAYS = "model.json", "centroids.safetensors"
_ROWS_AT_A_TIME = 4096
_OF_MIXTURE = ("centre", "slopes", "offsets")


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
    mixture_
        What the refinement by mixture has learnt; None for other methods.
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

    def fit(self, texts: Iterable[str], y: Iterable[Any] | None = None) -> Self:
        """Encode the texts, classify them by name, refine the labels on them.

        Parameters
        ----------
        texts
            The documents; a list, an array or a pandas or polars Series of texts. None counts
            as an empty text.
        y
            Nothing, or the label of each text where it is known and None (or -1) elsewhere.
        """
        return self.fit_batches(in_batches(as_texts(texts)), y)

    def fit_batches(
        self,
        batches: Iterable[list[str]],
        y: Iterable[Any] | None = None,
        *,
        on_texts: OnTexts | None = None,
        on_pass: OnPass | None = None,
    ) -> Self:
        """As `fit`, for texts that arrive batch by batch and need never be in memory at once.

        Parameters
        ----------
        batches
            Lists of texts.
        y
            As in `fit`, one a text.
        on_texts
            Called with the number of texts of every encoded batch.
        on_pass
            Called after every pass of the refinement.
        """
        choose_method(self.method, "cosine" if self.distance == "auto" else self.distance)
        label_set = as_label_set(self.labels)
        self._check_none(label_set)
        encoder = load_encoder(self.encoder)
        distance = self._distance_for(encoder)
        text_encoder = self._text_encoder(encoder, label_set)
        anchors = None  # for Jensen-Shannon: certainty of each label
        if distance != "jensen-shannon":
            anchors = label_vectors(text_encoder, label_set, self.template)
        known = None if y is None else _known_labels(y, label_set)
        documents = encode_batches(text_encoder, batches, on_texts)
        if known is not None and len(known) != len(documents):
            raise LabelError(
                f"y must have one label a text, None (or -1) where it is unknown; got "
                f"{len(known)} for {len(documents)} texts."
            )
        settings: dict[str, Any] = {
            "distance": distance,
            "method": self.method,
            "prior": self.prior,
            "max_iterations": self.max_iterations,
            "threads": self.threads,
        }
        refinement = refine(documents, anchors, known=known, on_pass=on_pass, **settings)
        self.encoder_, self.text_encoder_ = encoder, text_encoder
        self.distance_ = distance
        self.label_set_ = label_set
        self.classes_ = np.array(label_set.names)
        self.refinement_ = refinement
        self.centroids_ = refinement.centroids
        self.n_iter_ = refinement.n_iterations
        self.mixture_ = refinement.mixture
        sharpness = 1.0 / typical_lead(refinement.scores)
        if anchors is not None:
            settings["method"] = refinement.method
            sharpness = calibrate(documents, anchors, refinement, known, **settings)
        self.temperature_ = 1.0 / sharpness
        self.names_ = None if anchors is None else unit_rows(anchors.astype(np.float64))
        self.none_threshold_ = None
        self.is_none_ = np.zeros(len(documents), dtype=bool)
        if self.none_share is not None:
            likeness = self._likeness(documents, refinement.predictions)
            free = np.ones(len(documents), dtype=bool) if known is None else known < 0
            self.none_threshold_ = float(np.quantile(likeness[free], self.none_share))
            self.is_none_ = free & (likeness < self.none_threshold_)
        return self

    def _distance_for(self, encoder: AnyEncoder) -> str:
        """The distance to use, if it is one for what the encoder gives."""
        pairs = not isinstance(encoder, Encoder)
        if self.distance == "auto":
            return "jensen-shannon" if pairs else "cosine"
        if pairs and self.distance != "jensen-shannon":
            raise ArrayError(
                f"distance {self.distance!r} compares vectors, and this encoder gives "
                "probabilities of labels; use jensen-shannon or auto."
            )
        if not pairs and self.distance == "jensen-shannon":
            raise ArrayError(
                "distance 'jensen-shannon' compares probabilities of labels, which encoders of "
                "texts do not give; use cosine, l2 or dot."
            )
        return self.distance

    def _text_encoder(self, encoder: AnyEncoder, label_set: LabelSet) -> Encoder:
        """What texts go through to become points."""
        if not isinstance(encoder, Encoder):
            encoder = LabelScores(encoder, label_set.phrases(self.template))
        if self.cache is None:
            return encoder
        if isinstance(encoder, JoinedEncoder):
            return encoder.cached(self.cache)
        return CachedEncoder(encoder, self.cache)

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
        predicted labels of the fitted texts is as high as refinements on halves of the dimensions
        agree; see `ulr.refine.calibration`.
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
        if self.mixture_ is not None:
            labels, scores = self.mixture_.decide(vectors, self.threads)
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

    def _check_none(self, label_set: LabelSet) -> None:
        if self.none_share is None:
            return
        if not isinstance(self.none_share, int | float) or not 0 < self.none_share < 1:
            raise ArrayError(f"none_share must be between 0 and 1; got {self.none_share!r}.")
        if self.none_label in label_set.names:
            raise LabelError(
                f"{self.none_label!r} is one of the labels; choose another none_label."
            )

    def save(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write what `predict` needs to a folder: JSON and safetensors, whole or not at all."""
        check_is_fitted(self)
        folder = Path(path)
        refuse_to_save(folder, overwrite)
        with whole_folder(folder) as partial:
            arrays = {"centroids": self.centroids_}
            if self.names_ is not None:
                arrays["names"] = self.names_
            if self.mixture_ is not None:
                arrays |= {name: getattr(self.mixture_, name) for name in _OF_MIXTURE}
            save_file(
                {name: np.ascontiguousarray(array) for name, array in arrays.items()},
                str(partial / _ARRAYS),
            )
            settings = {
                "format": _FORMAT_VERSION,
                "labels": [
                    {"name": each.name, "phrases": each.phrases} for each in self.label_set_
                ],
                "encoder": getattr(self.encoder_, "spec", None),
                "encoder_fingerprint": fingerprint(self.encoder_),
                "method": self.method,
                "distance": self.distance,
                "prior": self.prior
                if isinstance(self.prior, str)
                else list(map(float, self.prior)),
                "template": self.template,
                "max_iterations": int(self.max_iterations),
                "n_iter": self.n_iter_,
                "temperature": self.temperature_,
                "none_share": self.none_share,
                "none_label": self.none_label,
                "none_threshold": self.none_threshold_,
                "arrays_sha256": sha256(partial / _ARRAYS),
            }
            (partial / _SETTINGS).write_text(
                json.dumps(settings, indent=1, ensure_ascii=False), encoding="utf-8"
            )

    @classmethod
    def load(
        cls,
        path: str | Path,
        *,
        encoder: AnyEncoder | None = None,
        cache: str | Path | None = None,
    ) -> Self:
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
        folder = Path(path)
        settings = _read_settings(folder)
        try:
            labels = LabelSet(
                tuple(Label(e["name"], tuple(e["phrases"])) for e in settings["labels"])
            )
            name, expected = settings["encoder"], settings["encoder_fingerprint"]
            if encoder is None and name is None:
                raise ModelError(
                    f"{folder} was fitted with an encoder object, {expected}; "
                    "give it to load(path, encoder=…)."
                )
            model = cls(
                labels,
                encoder=name if encoder is None else encoder,
                method=settings["method"],
                distance=settings["distance"],
                prior=settings["prior"],
                template=settings["template"],
                max_iterations=settings["max_iterations"],
                cache=cache,
                none_share=settings["none_share"],
                none_label=settings["none_label"],
            )
            model.encoder_ = load_encoder(model.encoder)
            found = fingerprint(model.encoder_)
            if found != expected:
                raise ModelError(
                    f"{folder} needs the encoder {expected}; this one is {found}. "
                    "Give the right one to load(path, encoder=…)."
                )
            if sha256(folder / _ARRAYS) != settings["arrays_sha256"]:
                raise ModelError(f"{folder / _ARRAYS} is damaged: its hash is not the saved one.")
            arrays = load_file(str(folder / _ARRAYS))
            model.centroids_ = arrays["centroids"]
            model.names_ = arrays.get("names")
            model.mixture_ = None
            if _OF_MIXTURE[0] in arrays:
                model.mixture_ = Mixture(**{name: arrays[name] for name in _OF_MIXTURE})
            if len(model.centroids_) != len(labels):
                raise ModelError(
                    f"{folder} is damaged: {_SETTINGS} names {len(labels)} labels, {_ARRAYS} "
                    f"holds {len(model.centroids_)}."
                )
            model.distance_ = model._distance_for(model.encoder_)
            model.text_encoder_ = model._text_encoder(model.encoder_, labels)
            model.n_iter_ = settings["n_iter"]
            model.temperature_ = settings["temperature"]
            model.none_threshold_ = settings["none_threshold"]
        except (KeyError, TypeError, OSError, SafetensorError) as error:
            raise ModelError(f"{folder} is not a whole saved model: {error!r}.") from error
        model.label_set_ = labels
        model.classes_ = np.array(labels.names)
        return model


def refuse_to_save(path: str | Path, overwrite: bool) -> None:
    """Say so now if a model could not be saved to a folder."""
    folder = Path(path)
    refuse_existing(folder, overwrite, ModelError, "overwrite=True (--force)")
    if folder.exists() and not (folder / _SETTINGS).is_file():
        raise ModelError(f"{folder} is not a saved model, so it is not replaced.")


def as_texts(texts: Iterable[Any]) -> list[str]:
    """Documents as a list of texts, from a list, an array or a Series; None and NaN are empty."""
    if isinstance(texts, str):
        raise TextError("texts must be a list of texts; got one text. Put it in a list.")
    shape = getattr(texts, "shape", None)
    if shape is not None and len(shape) != 1:
        raise TextError(f"texts must be a one-dimensional list of texts; got shape {shape}.")
    if not isinstance(texts, Iterable):
        raise TextError(f"texts must be a list of texts; got {type(texts).__name__}.")
    documents = ["" if _missing(text) else text for text in texts]
    for index, text in enumerate(documents):
        if not isinstance(text, str):
            raise TextError(f"texts must be texts; number {index} is {text!r}.")
    if not documents:
        raise TextError("there are no texts; at least one is needed.")
    return [str(text) for text in documents]


def label_vectors(
    encoder: Encoder, label_set: LabelSet, template: str | None = None
) -> NDArray[np.float32]:
    """One vector a label: its phrase's, or the mean of its phrases' unit vectors."""
    phrases = label_set.phrases(template)
    vectors = encode_texts(encoder, [phrase for each in phrases for phrase in each])
    rows, end = [], 0
    for label, each in zip(label_set, phrases, strict=True):
        own = vectors[end : end + len(each)]
        end += len(each)
        if not own.any(axis=1).all():
            raise LabelError(
                f"label {label.name!r}: the encoder knows no word of "
                f"{each[int(np.argmin(own.any(axis=1)))]!r}; use other words."
            )
        rows.append(own[0] if len(own) == 1 else unit_rows(own.astype(np.float64)).mean(axis=0))
    return np.stack(rows).astype(np.float32)


def _missing(value: Any) -> bool:
    """Whether a value is None, NaN or pandas.NA, which is neither equal to itself nor unequal."""
    if value is None or isinstance(value, str):
        return value is None
    same = value == value
    return same is value or (isinstance(same, bool | np.bool_) and not same)


def _known_labels(y: Iterable[Any], label_set: LabelSet) -> NDArray[np.intp]:
    """Label index of each text, -1 where it is not known."""
    shape = getattr(y, "shape", None)
    if isinstance(y, str) or not isinstance(y, Iterable) or (shape and len(shape) != 1):
        found = f"shape {shape}" if shape else type(y).__name__
        raise LabelError(f"y must be a list of labels, None (or -1) where unknown; got {found}.")
    index = {name: i for i, name in enumerate(label_set.names)}
    known = []
    for place, label in enumerate(y):
        if _missing(label) or (not isinstance(label, str) and label == -1):
            known.append(-1)
        elif str(label) in index:
            known.append(index[str(label)])
        else:
            raise LabelError(
                f"y must be label names, and None (or -1) where unknown; number {place} is "
                f"{label!r}. The labels are: {', '.join(label_set.names)}."
            )
    return np.array(known, dtype=np.intp)


def _read_settings(folder: Path) -> dict[str, Any]:
    if not (folder / _SETTINGS).is_file():
        raise ModelError(f"{folder} is not a saved model; it has no {_SETTINGS}.")
    try:
        settings = json.loads((folder / _SETTINGS).read_text(encoding="utf-8"))
    except (ValueError, OSError) as error:
        raise ModelError(f"{folder / _SETTINGS} cannot be read: {error}.") from error
    version = settings.get("format") if isinstance(settings, dict) else None
    if version != _FORMAT_VERSION:
        raise ModelError(
            f"{folder} is of model format {version}; this version of ulr reads format "
            f"{_FORMAT_VERSION}. Save it again, or install the ulr that wrote it."
        )
    return dict(settings)
