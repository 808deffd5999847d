"""`fit`: encode labels and texts, refine the labels, calibrate the confidence, diagnose."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ulr.classifier.encoding import (
    EncodedTexts,
    FitInputs,
    encode_documents,
    encode_extra_labels,
    encode_labels,
    given_vectors,
    share_to_read,
    text_encoder,
    words_to_read,
)
from ulr.classifier.known import known_labels
from ulr.classifier.model import Fitted, NoneLabel
from ulr.classifier.multilabel import fit_chances
from ulr.classifier.reference import Reference, describe_documents
from ulr.classifier.settings import Settings, resolve
from ulr.classifier.student import calibrated, labels_for_student, sample_rows, with_student
from ulr.classifier.texts import (
    empty_texts,
    label_notes,
    language_note,
    placeholder_note,
)
from ulr.classifier.word_counts import count_words
from ulr.encoders import encode_texts
from ulr.errors import ArrayError, ParameterError, TextError
from ulr.markup import readable_texts
from ulr.progress import NO_PROGRESS, Progress
from ulr.refinement import EXCLUDED, UNKNOWN, Diagnosis, Refinement, calibrate, mean_lead, refine
from ulr.vectors import unit_rows

_CONFIDENCE_SAMPLE = 20_000
_NONE_SCALE = 0.25  # in standard deviations of the similarities


def fit(
    texts: Sequence[str] | EncodedTexts,
    settings: Settings,
    progress: Progress = NO_PROGRESS,
    *,
    y: Iterable[Any] | None = None,
    extra_texts: Sequence[str] = (),
    embeddings: ArrayLike | None = None,
    label_embeddings: ArrayLike | None = None,
    n_words: int | None = None,
) -> Fitted:
    """Fit a classifier on texts.

    Where the encoder would read too many words, it reads a sample, and its labels of the sample
    teach a student on the vectors of the fast encoder (docs/encoders.md).

    Parameters
    ----------
    texts
        The documents, possibly encoded before by `encode_documents`.
    settings
        The parameters.
    progress
        Receives the progress, and can cancel the fit.
    y
        The label of each text where it is known, and None elsewhere.
    extra_texts
        Further texts that the labels are refined on.
    embeddings, label_embeddings
        Vectors of the texts and of the labels, so that they are not encoded.
    n_words
        Words of all documents of the job, if the texts are a sample of them; see `words_to_read`.

    Returns
    -------
    Fitted
    """
    settings = resolve(settings, progress)
    # First, since names may be refused.
    inputs = replace(_label_vectors(settings, label_embeddings), n_words=n_words)
    extra_texts = [text for text in extra_texts if text.strip()]
    documents = _documents(texts, settings, progress, embeddings, len(extra_texts))
    known, integers = _known(documents.texts, y, settings)
    if documents.strong is not None:
        rows = sample_rows(documents, known, settings)
        progress.stage("Encoding a sample", len(rows))
        documents.strong.of(rows, progress)
        inputs = replace(inputs, sample=rows)
    if extra_texts:
        vectors = encode_texts(text_encoder(settings), readable_texts(extra_texts), progress)
        inputs = replace(inputs, extra_texts=vectors)
    fitted = _fit_documents(documents, known, inputs, progress)
    fitted = replace(fitted, integer_classes=integers)
    return replace(fitted, diagnosis=_diagnose(fitted, _notes(fitted, documents.texts)))


def refit(fitted: Fitted, known: NDArray[np.int32], progress: Progress = NO_PROGRESS) -> Fitted:
    """Fit a classifier again on its documents, with other known labels.

    Nothing is encoded, but newly known documents by a strong encoder that read only a sample. The
    temperature of the confidence and the notes of the diagnosis are those of the fit before.
    """
    documents, inputs, diagnosis = fitted.documents, fitted.inputs, fitted.diagnosis
    assert documents is not None
    assert inputs is not None
    known = known.copy()
    known[empty_texts(documents.texts) & (known < 0)] = EXCLUDED
    if inputs.sample is not None:
        rows = np.union1d(inputs.sample, np.flatnonzero(known >= 0))
        inputs = replace(inputs, sample=rows)
    again = _fit_documents(documents, known, inputs, progress, fitted)
    again = replace(again, integer_classes=fitted.integer_classes)
    return replace(again, diagnosis=diagnosis and _diagnose(again, diagnosis.notes))


def _fit_documents(
    documents: EncodedTexts,
    known: NDArray[np.int32],
    inputs: FitInputs,
    progress: Progress,
    before: Fitted | None = None,
) -> Fitted:
    """Fit a classifier on all documents, with a student where the encoder reads a sample."""
    if inputs.sample is None:
        sample = documents
        teacher = fitted = _fit(documents, known, inputs, progress, before)
    else:
        sample, codes = documents.rows(inputs.sample), known[inputs.sample]
        teacher = _fit(sample, codes, inputs, progress, before)
        fitted = _teach(teacher, documents, inputs.sample, known, inputs.n_words, progress, before)
    fitted = replace(fitted, documents=documents, known=known, inputs=inputs)
    fitted = replace(fitted, reference=_reference(fitted, teacher, sample))
    if inputs.settings.multilabel:
        fitted = replace(fitted, chances=fit_chances(fitted))
    return fitted


def teach(
    fitted: Fitted, texts: Sequence[str], n_words: int, progress: Progress = NO_PROGRESS
) -> Fitted:
    """The classifier with a student for many texts, of which some are given.

    It is returned as it is if it has a student, or if its encoder can read all `n_words` words.
    """
    settings = fitted.settings
    if fitted.student is not None or share_to_read(settings, n_words) == 1.0:
        return fitted
    documents = encode_documents(texts, settings, progress)
    if documents.strong is None:
        return fitted
    known = _known(documents.texts, None, settings)[0]
    rows = sample_rows(documents, known, settings)
    progress.stage("Encoding a sample", len(rows))
    vectors = documents.strong.of(rows, progress)
    found = fitted.predict([documents.texts[row] for row in rows.tolist()], vectors)
    teacher = replace(fitted, predictions=found)
    return _teach(teacher, documents, rows, known, n_words, progress)


def _teach(
    teacher: Fitted,
    documents: EncodedTexts,
    rows: NDArray[np.intp],
    known: NDArray[np.int32],
    n_words: int | None,
    progress: Progress,
    before: Fitted | None = None,
) -> Fitted:
    """Fit a student on the labels of the teacher, and label all documents."""
    settings = teacher.settings
    codes, held_out = labels_for_student(known, rows, teacher, settings.random_state)
    known_student = None if before is None else before.student
    if known_student is None:
        fast = settings.fast
    else:  # its encoder is loaded
        fast = replace(known_student.settings, method="discriminant")
    student = _fit(documents, codes, _label_vectors(fast), progress, known_student)
    student = calibrated(student, teacher, rows, held_out)
    n_words = words_to_read(documents.texts) if n_words is None else n_words
    return with_student(teacher, student, documents, rows, n_words, progress, before is not None)


def _fit(
    documents: EncodedTexts,
    known: NDArray[np.int32],
    inputs: FitInputs,
    progress: Progress,
    before: Fitted | None = None,
) -> Fitted:
    """Fit a classifier on encoded texts, with the temperature of the fit before if there is one."""
    settings, anchors, reason = inputs.settings, inputs.labels, None
    if (
        settings.method == "discriminant"
        and not (known >= 0).any()
        and _language_note(documents.texts, settings) is not None
    ):
        # Vectors of languages that the encoder does not know form clusters by language, not by
        # label: refined, 200 messages in five languages fell from 47 to 28 % (docs/encoders.md).
        settings = replace(settings, method="none", prior="estimate", fit_sample="auto")
        reason = "many texts are in languages that the encoder was not made for"
    refinement = refine(
        documents.vectors,
        anchors,
        known=known,
        extra_documents=inputs.extra_texts,
        extra_anchors=inputs.extra_labels,
        word_counts=documents.word_counts if settings.uses_words else None,
        progress=progress,
        **settings.refine_options,
    )
    if reason is not None:
        refinement = replace(refinement, reason=reason)
    predicted = refinement.predictions
    if before is None:
        temperature = _temperature(settings, documents, anchors, refinement, known, progress)
    else:
        temperature = before.temperature
    fitted = Fitted(
        settings=replace(settings, method=refinement.method),
        rule=refinement.rule,
        initial_rule=refinement.initial_rule,
        temperature=temperature,
        anchors=None if anchors is None else unit_rows(anchors),
        n_iter=refinement.n_iter,
        refinement=refinement,
        diagnosis=refinement.diagnosis,
    )
    if settings.none_share is not None:
        fitted = replace(fitted, none=_none_label(fitted, documents.vectors, predicted, known))
    predictions = fitted.decide(
        predicted, refinement.scores, refinement.unrefined, documents.vectors, known >= 0
    )
    return replace(fitted, predictions=predictions)


def _reference(fitted: Fitted, teacher: Fitted, sample: EncodedTexts) -> Reference:
    """Statistics of all documents, and of those that the encoder read."""
    assert fitted.predictions is not None
    assert teacher.predictions is not None
    return describe_documents(
        fitted.predictions,
        teacher.predictions.labels,
        sample.vectors,
        sample.word_counts,
        fitted.rule,
        fitted.settings.random_state,
    )


def _language_note(texts: Sequence[str], settings: Settings) -> str | None:
    return language_note(texts, getattr(settings.encoder, "languages", None))


def _label_vectors(settings: Settings, label_embeddings: ArrayLike | None = None) -> FitInputs:
    """Vectors of the labels and of the extra labels."""
    if label_embeddings is None:
        return FitInputs(settings, encode_labels(settings), encode_extra_labels(settings))
    if settings.scores_pairs or settings.extra_labels:
        raise ArrayError(
            "label_embeddings give one vector per label; they cannot be combined with extra labels "
            "or an encoder that scores pairs."
        )
    n_labels = len(settings.labels)
    return FitInputs(settings, given_vectors("label_embeddings", label_embeddings, n_labels))


def _documents(
    texts: Sequence[str] | EncodedTexts,
    settings: Settings,
    progress: Progress,
    embeddings: ArrayLike | None,
    n_extra: int,
) -> EncodedTexts:
    if isinstance(texts, EncodedTexts):
        return texts
    texts = list(texts)
    if embeddings is None:
        return encode_documents(texts, settings, progress, n_extra)
    vectors = given_vectors("embeddings", embeddings, len(texts))
    counts = count_words(readable_texts(texts)) if settings.uses_words else None
    return EncodedTexts(texts, vectors, counts)


def _known(
    texts: Sequence[str], y: Iterable[Any] | None, settings: Settings
) -> tuple[NDArray[np.int32], bool]:
    """Code of each text for `refine`, and whether known labels are integers."""
    known, integers = np.full(len(texts), UNKNOWN, dtype=np.int32), False
    if y is not None and not settings.ignore_y:
        known, integers = known_labels(y, settings.label_set.names, len(texts))
    empty = empty_texts(texts)
    if empty.all():
        raise TextError("all texts are empty; at least one with words is needed.")
    known[empty & (known < 0)] = EXCLUDED
    return known, integers


def _temperature(
    settings: Settings,
    documents: EncodedTexts,
    anchors: NDArray[np.float32] | None,
    refinement: Refinement,
    known: NDArray[np.int32],
    progress: Progress,
) -> float:
    if anchors is None or settings.scores_pairs:
        # Every dimension is the score of one label: parts of them cannot confirm each other.
        return mean_lead(refinement.scores[refinement.predictions >= 0])
    return calibrate(
        documents.vectors,
        anchors,
        refinement,
        known=known,
        word_counts=documents.word_counts,
        progress=progress,
        **settings.refine_options,
    )


def _none_label(
    fitted: Fitted, vectors: Any, predicted: NDArray[np.intp], known: NDArray[np.int32]
) -> NoneLabel:
    """The none label, with the threshold that rejects the share of the settings."""
    free = (known < 0) & (predicted >= 0)
    if not free.any():
        raise ParameterError("none_share", "applies to texts of unknown label, but all are known.")
    similarity = fitted.similarity(vectors[free], predicted[free])
    share = fitted.settings.none_share
    assert share is not None
    threshold = float(np.quantile(similarity, share))
    scale = max(_NONE_SCALE * float(similarity.std()), 1e-9)
    return NoneLabel(fitted.settings.none_label, threshold, scale)


def _notes(fitted: Fitted, texts: Sequence[str]) -> tuple[str, ...]:
    """Warnings about labels, texts and encoder."""
    settings = fitted.settings
    language = _language_note(texts, settings)
    advice = getattr(settings.encoder, "advice", None)
    others = placeholder_note(texts), language, advice
    none_label = None if settings.none_share is None else str(settings.none_label)
    return (*label_notes(settings.label_set, none_label), *filter(None, others))


def _diagnose(fitted: Fitted, notes: tuple[str, ...]) -> Diagnosis | None:
    """The diagnosis of the refinement, with names, the expected accuracy and notes."""
    assert fitted.predictions is not None
    diagnosis, settings = fitted.diagnosis, fitted.settings
    if diagnosis is None:
        return None
    confidence = fitted.predictions.confidence
    draw = np.random.default_rng(settings.random_state).permutation(len(confidence))
    confidence = confidence[draw[:_CONFIDENCE_SAMPLE]]
    return replace(
        diagnosis.named(settings.label_set.names),
        expected_accuracy=float(confidence[confidence > 0].mean()),
        notes=notes,
    )


def fit_warnings(fitted: Fitted) -> list[str]:
    """Reasons to look at a fit before its labels are used, one sentence each."""
    found = []
    if fitted.known is not None and not (fitted.known == UNKNOWN).any():
        found.append(
            "The label of every text is known, so nothing was classified by name alone. To measure "
            "the accuracy without labels, as in cross-validation, set ignore_y=True."
        )
    diagnosis = fitted.diagnosis
    if diagnosis is not None and not diagnosis.trusted:
        found += diagnosis.warnings
    return found
