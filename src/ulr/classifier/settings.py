"""`Settings`: the only list of the classifier's parameters, with defaults and validation."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ulr import encoders, refinement  # their names load when they are used
from ulr.errors import LabelError, ParameterError
from ulr.label_files import shown
from ulr.labels import LabelSet, as_label_set, check_extra_labels, in_template
from ulr.progress import NO_PROGRESS, Progress

if TYPE_CHECKING:
    from ulr.advisers import Adviser
    from ulr.encoders import AnyEncoder


# Encoders of sentences are made for sentences. With both, 17 datasets gain 0.6 points on average over
# the phrase alone, and averages of words lose nothing and gain nothing (docs/phrasings.md).
_TEMPLATES = ("{}", "This text is about {}.")


@dataclass(frozen=True)
class Settings:
    """Parameters of a classifier, validated; `ulr.ZeroShotClassifier` describes them.

    `labels` accepts every form of labels and holds a `LabelSet` afterwards.
    """

    labels: Any
    _: KW_ONLY
    encoder: str | AnyEncoder = "auto"
    method: str = "auto"
    distance: str = "auto"
    prior: Any = "estimate"
    template: str | None = "auto"
    extra_labels: Any = None
    fit_sample: int | str | None = "auto"
    strong_share: float | str = "auto"
    random_state: int = 0
    max_iter: int = 100
    n_jobs: int | None = None
    cache: str | Path | None = None
    none_share: float | None = None
    none_label: str = "none of these"
    ignore_y: bool = False
    path_threshold: float = 0.5
    multilabel: bool | float = False
    adviser: Adviser | None = None
    # Some 10 questions about labels, 50 documents that judge and 100 that help.
    adviser_budget: int = 160

    def __post_init__(self) -> None:
        labels = as_label_set(self.labels)
        object.__setattr__(self, "labels", labels)
        if self.extra_labels is not None:
            extra = check_extra_labels(self.extra_labels, labels)
            object.__setattr__(self, "extra_labels", extra)
        for template in self.templates:
            in_template("", template)
        if self.distance != "auto":
            refinement.choose_method(self.method, self.distance)
        if not isinstance(self.random_state, Integral) or self.random_state < 0:
            raise ParameterError(
                "random_state", f"must be an integer of at least 0; got {self.random_state!r}."
            )
        refinement.check_positive("max_iter", self.max_iter, or_none=False)
        refinement.check_positive("n_jobs", self.n_jobs)
        if self.fit_sample != "auto":
            refinement.check_positive("fit_sample", self.fit_sample)
        share = self.strong_share
        if share not in ("auto", "budget") and not (_is_number(share) and 0 <= share <= 1):
            raise ParameterError(
                "strong_share", f"must be 'auto', 'budget' or between 0 and 1; got {share!r}."
            )
        if not _is_number(self.path_threshold) or not 0 <= self.path_threshold <= 1:
            raise ParameterError(
                "path_threshold", f"must be between 0 and 1; got {self.path_threshold!r}."
            )
        number = self.multilabel
        if not isinstance(number, bool) and not (_is_number(number) and 0 < number <= len(labels)):
            raise ParameterError(
                "multilabel",
                "must be the least chance of a label, such as 0.5, or the mean number of labels, "
                f"from 1 to {len(labels)}; got {number!r}.",
            )
        if number and self.none_share is not None:
            raise ParameterError(
                "multilabel",
                "and none_share do not go together; with a least chance, such as 0.5, texts "
                "may have no label.",
            )
        self._check_adviser()
        if self.none_share is None:
            return
        if not _is_number(self.none_share) or not 0 < self.none_share < 1:
            raise ParameterError("none_share", f"must be between 0 and 1; got {self.none_share!r}.")
        if not str(self.none_label).strip() or self.none_label in labels.names:
            raise ParameterError(
                "none_label",
                f"must be a name that is none of the labels; got {self.none_label!r}.",
            )

    def _check_adviser(self) -> None:
        if self.adviser is not None and not callable(self.adviser):
            raise ParameterError(
                "adviser",
                "must be an OpenAIAdviser or a function from a prompt to an answer; got "
                f"{shown(self.adviser)}.",
            )
        if self.adviser is not None and self.multilabel:
            raise ParameterError(
                "adviser", "gives a document one label; leave it out, or several labels a text."
            )
        budget = self.adviser_budget
        if not isinstance(budget, Integral) or isinstance(budget, bool) or budget < 1:
            raise ParameterError(
                "adviser_budget", f"must be an integer of at least 1; got {shown(budget)}."
            )

    @property
    def label_set(self) -> LabelSet:
        """The labels."""
        labels: LabelSet = self.labels
        return labels

    @property
    def loaded_encoder(self) -> AnyEncoder:
        """The encoder, after `resolve`."""
        assert not isinstance(self.encoder, str)
        return self.encoder

    @property
    def scores_pairs(self) -> bool:
        """Whether texts become scores of the labels rather than vectors of their own."""
        return not isinstance(self.encoder, encoders.Encoder)

    @property
    def templates(self) -> tuple[str, ...]:
        """Templates of the phrases, whose vectors are averaged."""
        if self.template is None or (self.template == "auto" and self.is_fast):
            return ("{}",)
        return _TEMPLATES if self.template == "auto" else (self.template,)

    @property
    def is_fast(self) -> bool:
        """Whether the encoder is so fast that it reads any number of texts, after `resolve`."""
        return bool(getattr(self.encoder, "shared_by_threads", False))

    @property
    def may_sample(self) -> bool:
        """Whether the encoder reads only a sample of many texts, after `resolve`."""
        return self.strong_share != 1 and not (self.is_fast or self.scores_pairs)

    @property
    def fast(self) -> Settings:
        """The settings of a student of the encoder: the default method on fast vectors."""
        return replace(
            self,
            encoder=encoders.load_encoder("static"),
            method="discriminant",
            distance="cosine",
            extra_labels=None,
            strong_share=1.0,
            adviser=None,
        )

    @property
    def prior_is_estimated(self) -> bool:
        """Whether the sizes of the labels are found on the texts, not given."""
        return isinstance(self.prior, str) and self.prior == "estimate"

    @property
    def uses_words(self) -> bool:
        """Whether the words of the texts take part in the refinement."""
        return refinement.METHODS[self.method].uses_words

    @property
    def fit_limit(self) -> int | None:
        """Most documents to fit on; None for all."""
        if self.fit_sample == "auto":
            return getattr(refinement.METHODS[self.method].options(), "fit_sample", None)
        return self.fit_sample  # type: ignore[return-value]

    @property
    def refine_options(self) -> dict[str, Any]:
        """Arguments of `ulr.refine` next to the inputs; options only where they were given."""
        options: dict[str, Any] = {}
        if not self.prior_is_estimated:
            options["prior"] = self.prior
        if self.fit_sample != "auto":
            options["fit_sample"] = self.fit_sample
        return {
            "method": self.method,
            "distance": self.distance,
            "random_state": self.random_state,
            "max_iter": self.max_iter,
            "n_jobs": self.n_jobs,
            **options,
        }


def resolve(settings: Settings, progress: Progress = NO_PROGRESS) -> Settings:
    """The settings with the encoder loaded, and method and distance instead of ``auto``."""
    share = settings.strong_share
    if share == "auto":  # an encoder that was chosen reads everything
        is_chosen = not isinstance(settings.encoder, str) or settings.encoder != "auto"
        share = 1.0 if is_chosen else "budget"
    encoder = encoders.load_encoder(settings.encoder, progress)
    pairs = not isinstance(encoder, encoders.Encoder)
    if pairs and settings.extra_labels:
        raise LabelError(
            "extra labels need an encoder of texts; this one scores pairs of text and label. Leave "
            "them out, or choose another encoder."
        )
    distance = _choose_distance(settings, pairs)
    method = refinement.choose_method(settings.method, distance)
    return replace(settings, encoder=encoder, distance=distance, method=method, strong_share=share)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _choose_distance(settings: Settings, pairs: bool) -> str:
    """The distance that ``auto`` stands for, or the given one if it suits the encoder.

    Scores of pairs are compared as probabilities by methods that can do so, as in the paper, and
    else as log ratios, by their cosine. Log ratios of two labels have only one direction, so that
    the default method is not used for them.
    """
    distance, method = settings.distance, settings.method
    if distance == "auto":
        if not pairs:
            return "cosine"
        distances = refinement.METHODS[refinement.choose_method(method, "cosine")].distances
        two_labels = method == "auto" and len(settings.labels) == 2
        return "jensen-shannon" if "jensen-shannon" in distances or two_labels else "cosine"
    if pairs and distance not in ("cosine", "jensen-shannon"):
        raise ParameterError(
            "distance",
            f"{distance!r} compares vectors, but this encoder scores pairs of text and label; use "
            "cosine, jensen-shannon or auto.",
        )
    if not pairs and distance == "jensen-shannon":
        raise ParameterError(
            "distance",
            "'jensen-shannon' compares probabilities of labels, but this encoder returns vectors; "
            "use cosine, l2 or dot.",
        )
    return distance
