"""`TextClassifier`: fits on texts in a list, saves and loads; no scikit-learn, which loads slowly."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ulr.encoders import AnyEncoder, OnTexts
from ulr.errors import ArrayError, LabelError
from ulr.inputs import Inputs, Setup, encode_inputs, known_labels, resolve
from ulr.model import Model, NoneLabel
from ulr.persistence import load_model, save_model
from ulr.phrasings import MOST_WHOLE, as_phrasings
from ulr.refinement import (
    METHODS,
    UNFITTED,
    Diagnosis,
    OnPass,
    Refinement,
    calibrate,
    mean_lead,
    refine,
    refine_ensemble,
)
from ulr.refinement.distances import unit_rows
from ulr.texts import label_notes, language_note

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

_CONFIDENCE_SAMPLE = 20_000
_NONE_SCALE = 0.25  # in standard deviations of the similarities


class TextClassifier:
    """The arguments and the fitting of `ulr.DatalessClassifier`, whose documentation applies."""

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
        """As `DatalessClassifier.fit`, for a list of texts.

        Parameters
        ----------
        texts, y, embeddings, label_embeddings, extra
            As in `DatalessClassifier.fit`.
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
        self.diagnosis_ = self._diagnose(setup, texts, inputs.known)
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
        anchors = None
        if inputs.anchors is not None:
            anchors = unit_rows(inputs.anchors.astype(np.float64))
        if inputs.anchors is None or setup.scores_pairs:
            # Every dimension is the score of one label: parts of them cannot confirm each other.
            temperature = mean_lead(refinement.scores[refinement.predictions >= 0])
        else:
            temperature = calibrate(
                inputs.documents,
                inputs.anchors,
                refinement,
                known=inputs.known,
                word_counts=inputs.word_counts,
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
        free = (inputs.known < 0) & (refinement.predictions >= 0)
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

    def _diagnose(
        self, setup: Setup, texts: Sequence[str], known: NDArray[np.int32]
    ) -> Diagnosis | None:
        """The diagnosis of the refinement, with names, the expected accuracy and notes."""
        diagnosis = self.refinement_.diagnosis
        if diagnosis is None:
            return None
        draw = np.random.default_rng(self.random_state).permutation(len(texts))
        confidence = self._fitted.confidence[draw[:_CONFIDENCE_SAMPLE]]
        notes = label_notes(setup.labels, texts, setup.encoder)
        language = language_note(texts, getattr(setup.encoder, "languages", None))
        if language is not None:
            notes.append(language)
        if n_unfitted := int(np.count_nonzero(known == UNFITTED)):
            notes.append(
                f"{n_unfitted:,} texts are not clearly in a language of the encoder; they have labels, "
                "but the labels were refined without them."
            )
        return replace(
            diagnosis.named(setup.labels.names),
            expected_accuracy=float(confidence[confidence > 0].mean()),
            notes=tuple(notes),
        )

    def save(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write the fitted classifier to a folder, as JSON and safetensors; complete or not at all.

        Parameters
        ----------
        path
            The folder.
        overwrite
            Whether to replace a model that is already there.
        """
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
