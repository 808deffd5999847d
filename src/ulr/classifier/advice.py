"""What an adviser says about the labels and about some documents, and what the fit makes of it.

1. Once per label that has only one phrase, such as its name: further phrases and a description;
   those that are nearer to the name of another label are dropped.
2. The labels of some random documents, which are never fitted on: they judge the result.
3. The labels of the documents that `ask` chooses, as examples where they are probably right, given how
   often the adviser errs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ulr.advisers import (
    Interview,
    Question,
    adviser_name,
    ask_for_label,
    ask_for_phrases,
)
from ulr.classifier.encoding import encode_labels, text_encoder
from ulr.classifier.fitting import refit
from ulr.classifier.model import Fitted, Indices
from ulr.classifier.questions import ask
from ulr.encoders import encode_texts, label_encoder
from ulr.labels import Label, LabelSet
from ulr.progress import NO_PROGRESS, Progress
from ulr.refinement import EXCLUDED, UNKNOWN
from ulr.vectors import unit_rows

_SHOWN = 4  # documents that a question about a label shows
_JUDGED = 50  # documents; with a small budget, a third of what is left
_COMPARED = 5_000  # documents, at random, whose mean phrases are centred by
# Accuracy that is expected of an adviser, and the answers that this counts as.
_EXPECTED, _EXPECTED_ANSWERS = 0.7, 4.0
_EM_PASSES = 20
# Chance of an answer that becomes an example. With 0.5, an adviser that is right on 70 % brings up to
# 1.6 points more, but one of 1.5B parameters, whose errors are not alike, cost 2.8 instead of 0.8.
_LEAST_CHANCE = 0.7
# Chance-corrected accuracy (Cohen's kappa) and share of usable answers below which none is used: an
# adviser that answers at random then costs nothing (docs/llm.md).
_LEAST_KAPPA, _LEAST_USED = 0.3, 0.5
_Z = 1.96  # of a 95 % interval

Float = NDArray[np.float64]


@dataclass(frozen=True)
class Advice:
    """What an adviser was asked, and what its answers changed.

    Attributes
    ----------
    adviser
        Name of the model.
    questions, remembered, unusable
        Questions, those of them that were answered in an earlier run, and answers that say nothing.
    phrases, dropped_phrases
        Phrases of the adviser that labels have now, and how many did not attract their own label.
    answers, disagreeing, examples
        Documents chosen for a question that were given a label, those with another label than before,
        and those that are examples now.
    accuracy
        Estimated accuracy of the adviser's labels; None without any.
    judged, agreeing
        Random documents that were given a label, and those of them where the result agrees.
    interval
        95 % interval of the agreement (Wilson's); None without judged documents. It depends on
        nothing that the classifier is fitted on, but is below the accuracy where the adviser errs.
    expected_accuracy
        Accuracy that the diagnosis expects, to compare it with.
    changed
        Documents that have another label than without the adviser.
    """

    adviser: str
    questions: int
    remembered: int
    unusable: int
    phrases: dict[str, tuple[str, ...]]
    dropped_phrases: int
    answers: int
    disagreeing: int
    examples: int
    accuracy: float | None
    judged: int
    agreeing: int
    interval: tuple[float, float] | None
    expected_accuracy: float | None
    changed: int

    @property
    def sentences(self) -> list[str]:
        """What was asked and what it changed, for people."""
        remembered = f", {self.remembered:,} of them in an earlier run" if self.remembered else ""
        found = [
            f"{self.adviser} was asked {self.questions:,} questions{remembered}; they changed the "
            f"label of {self.changed:,} fitted documents."
        ]
        if self.unusable:
            found.append(f"Answers of it that could not be used: {self.unusable:,}.")
        if self.phrases:
            kept = "; ".join(f"{name}: {', '.join(own)}" for name, own in self.phrases.items())
            found.append(f"Phrases of it ({self.dropped_phrases:,} others did not fit): {kept}.")
        if self.answers:
            found.append(
                f"It labelled {self.answers:,} uncertain documents, {self.disagreeing:,} of them "
                f"differently; {self.examples:,} are examples now. Its labels are right on an "
                f"estimated {self.accuracy:.0%}."
            )
        if self.interval is not None:
            low, high = self.interval
            expected = self.expected_accuracy
            beside = "" if expected is None else f"; the expected accuracy is {expected:.0%}"
            found.append(
                f"It agrees with the result on {self.agreeing:,} of {self.judged:,} random documents "
                f"({low:.0%} to {high:.0%}){beside}."
            )
            if expected is not None and high < expected:
                found.append(
                    "That is less than expected: either the adviser or the classifier is wrong on "
                    "many documents, so label some yourself (ulr ask)."
                )
        return found


def advise(fitted: Fitted, progress: Progress = NO_PROGRESS) -> Fitted:
    """Ask the adviser of the settings, and fit again with what it says.

    Without an adviser, the classifier is returned as it is.

    Parameters
    ----------
    fitted
        A classifier with its documents, as `fit` returns it.
    progress
        Receives the progress, and can cancel the questions.

    Examples
    --------
    >>> from ulr.classifier import Settings, advise, fit
    >>> texts = ["The striker scored", "Shares fell", "A late goal won it", "Profits rose"]
    >>> settings = Settings(
    ...     ["sports", "business"], encoder="static", adviser=lambda prompt: '{"label": "sports"}'
    ... )
    >>> advise(fit(texts, settings)).advice.questions
    6
    """
    settings = fitted.settings
    if settings.adviser is None:
        return fitted
    interview = Interview(settings.adviser, settings.adviser_budget)
    before = fitted.predictions
    assert before is not None
    asked = settings.label_set
    progress.stage("Asking the adviser", interview.left, "questions")
    fitted, phrases, n_dropped = _with_phrases(fitted, interview, progress)
    judged, chosen = _documents_to_ask(fitted, interview.left)
    answers = interview.ask(_label_questions(fitted, asked, np.append(judged, chosen)), progress)
    codes = np.array([-1 if each is None else each for each in answers], dtype=np.int32)
    rows = np.append(judged, chosen)[codes >= 0]
    is_judged, codes = (codes >= 0).nonzero()[0] < len(judged), codes[codes >= 0]
    posterior = _posterior(fitted, rows)
    chances, accuracy = chances_of_answers(posterior, codes)
    is_example = ~is_judged & trusted(chances, accuracy, fitted.n_labels)
    disagreeing = int((~is_judged & (codes != posterior.argmax(axis=1))).sum())
    if is_example.any():
        assert fitted.known is not None
        known = fitted.known.copy()
        known[rows[is_example]] = codes[is_example]
        again = refit(fitted, known, progress)
        if _loses_trust(fitted, again):
            is_example[:] = False
        else:
            fitted = again
    predictions, diagnosis = fitted.predictions, fitted.diagnosis
    assert predictions is not None
    agreeing = int((predictions.labels[rows[is_judged]] == codes[is_judged]).sum())
    n_judged = int(is_judged.sum())
    advice = Advice(
        adviser=adviser_name(settings.adviser),
        questions=interview.asked,
        remembered=interview.remembered,
        unusable=interview.unusable,
        phrases=phrases,
        dropped_phrases=n_dropped,
        answers=int((~is_judged).sum()),
        disagreeing=disagreeing,
        examples=int(is_example.sum()),
        accuracy=accuracy if len(codes) else None,
        judged=n_judged,
        agreeing=agreeing,
        interval=wilson(agreeing, n_judged) if n_judged else None,
        expected_accuracy=None if diagnosis is None else diagnosis.expected_accuracy,
        changed=int((predictions.labels != before.labels).sum()),
    )
    return replace(fitted, advice=advice)


def _loses_trust(before: Fitted, after: Fitted) -> bool:
    """Whether the diagnosis warns of a fit with examples, and not of the one without.

    On AG News, 13 examples, 10 of them of one label, doubled that label and cost 15 points.
    """
    if before.diagnosis is None or after.diagnosis is None:
        return False
    return before.diagnosis.trusted and not after.diagnosis.trusted


def _free(fitted: Fitted) -> Indices:
    """Documents with words whose label is not known, in random order."""
    assert fitted.known is not None
    assert fitted.predictions is not None
    free = np.flatnonzero((fitted.known == UNKNOWN) & ~fitted.predictions.empty)
    return np.random.default_rng(fitted.settings.random_state).permutation(free)


def _documents_to_ask(fitted: Fitted, left: int) -> tuple[Indices, Indices]:
    """Positions of random documents that judge the result, and of those that help it most."""
    free = _free(fitted)
    judged = free[: min(_JUDGED, left // 3, len(free) // 3)]
    n_chosen = min(left, len(free)) - len(judged)
    if n_chosen < 1:
        return judged, free[:0]
    assert fitted.known is not None
    known = fitted.known.copy()
    known[judged] = EXCLUDED  # or they would both teach and judge
    return judged, ask(replace(fitted, known=known), n_chosen)


def _label_questions(fitted: Fitted, labels: LabelSet, rows: Indices) -> list[Question]:
    assert fitted.documents is not None
    texts = fitted.documents.texts
    return [ask_for_label(labels, texts[row]) for row in rows.tolist()]


def _posterior(fitted: Fitted, rows: Indices) -> Float:
    """(n_rows, n_labels) probabilities of the labels, without the none label."""
    assert fitted.predictions is not None
    found = fitted.predictions.probabilities[rows, : fitted.n_labels]
    return found / np.maximum(found.sum(axis=1, keepdims=True), 1e-12)


def _with_phrases(
    fitted: Fitted, interview: Interview, progress: Progress
) -> tuple[Fitted, dict[str, tuple[str, ...]], int]:
    """The classifier with the adviser's phrases for bare names, these, and how many were dropped."""
    settings, inputs = fitted.settings, fitted.inputs
    assert fitted.documents is not None
    assert inputs is not None
    labels = settings.label_set
    bare = [label for label in labels if len(label.phrases) == 1]
    # Scores of pairs depend on the phrases, so that all documents would have to be encoded again, and
    # vectors that were given are of no phrase. More than half of a budget is better spent otherwise.
    if settings.scores_pairs or 2 * len(bare) > interview.left or not bare:
        return fitted, {}, 0
    encoded = encode_labels(inputs.settings)
    if encoded is None or inputs.labels is None or not np.array_equal(inputs.labels, encoded):
        return fitted, {}, 0
    shown = [fitted.documents.texts[row] for row in _free(fitted)[-_SHOWN:].tolist()]
    questions = [ask_for_phrases(labels, label, shown) for label in bare]
    answers = interview.ask(questions, progress)
    taken = {phrase.casefold() for label in labels for phrase in (label.name, *label.phrases)}
    found: dict[str, list[str]] = {}
    for label, answer in zip(bare, answers, strict=True):
        for phrase in answer or ():
            if phrase.casefold() not in taken:
                taken.add(phrase.casefold())
                found.setdefault(label.name, []).append(phrase)
    kept = attracting(fitted, found)
    if kept:
        more = LabelSet(
            tuple(Label(each.name, (*each.phrases, *kept.get(each.name, ()))) for each in labels)
        )
        own = replace(inputs.settings, labels=more)
        inputs = replace(inputs, settings=own, labels=encode_labels(own))
        assert fitted.known is not None
        fitted = refit(replace(fitted, inputs=inputs), fitted.known, progress)
    n_dropped = sum(map(len, found.values())) - sum(map(len, kept.values()))
    return fitted, kept, n_dropped


def attracting(fitted: Fitted, phrases: dict[str, list[str]]) -> dict[str, tuple[str, ...]]:
    """The phrases of each label that are nearer to its name than to the others, from the documents."""
    documents, names = fitted.documents, fitted.settings.label_set.names
    owners = [(names.index(name), phrase) for name, own in phrases.items() for phrase in own]
    assert documents is not None
    settings = fitted.settings if documents.strong is None else fitted.settings.fast
    anchors = encode_labels(settings)
    if not owners or anchors is None:
        return {}
    encoder = label_encoder(text_encoder(settings))
    vectors = encode_texts(encoder, [phrase.lower() for _, phrase in owners])
    centre = unit_rows(documents.vectors[_free(fitted)[:_COMPARED]]).mean(axis=0)
    found = unit_rows(unit_rows(vectors) - centre) @ unit_rows(unit_rows(anchors) - centre).T
    kept: dict[str, tuple[str, ...]] = {}
    for (own, phrase), vector, nearest in zip(owners, vectors, found.argmax(axis=1), strict=True):
        if vector.any() and nearest == own:
            kept[names[own]] = (*kept.get(names[own], ()), phrase)
    return kept


def chances_of_answers(posterior: Float, answers: NDArray[np.int32]) -> tuple[Float, float]:
    """(n,) the chance that each answer is right, and the estimated accuracy of the adviser.

    Dawid and Skene's model by EM: the classifier's posterior, (n, n_labels), is the prior of each
    document, and the adviser has one matrix of errors, which starts from equally frequent ones and
    is shrunk towards them. An adviser that answers alike whatever the label changes no chance.
    """
    n, n_labels = posterior.shape
    if not n:
        return np.empty(0), 0.0
    added = float(n_labels)  # answers that equally frequent errors count as, for each label
    accuracy, errors = _EXPECTED, _equal_errors(_EXPECTED, n_labels)
    for _ in range(_EM_PASSES):
        chances = posterior * errors[:, answers].T
        chances /= np.maximum(chances.sum(axis=1, keepdims=True), 1e-12)
        right = float(chances[np.arange(n), answers].sum())
        accuracy = (right + _EXPECTED_ANSWERS * _EXPECTED) / (n + _EXPECTED_ANSWERS)
        counts = np.zeros((n_labels, n_labels))
        np.add.at(counts.T, answers, chances)
        counts += added * _equal_errors(accuracy, n_labels)
        errors = counts / counts.sum(axis=1, keepdims=True)
    return chances[np.arange(n), answers], accuracy


def _equal_errors(accuracy: float, n_labels: int) -> Float:
    """(n_labels, n_labels) probability of each answer given the label, all errors alike."""
    errors = np.full((n_labels, n_labels), (1.0 - accuracy) / (n_labels - 1))
    np.fill_diagonal(errors, accuracy)
    return errors


def trusted(chances: Float, accuracy: float, n_labels: int) -> NDArray[np.bool_]:
    """(n,) answers that are probably right; none of an adviser that mostly guesses."""
    used = chances > _LEAST_CHANCE
    kappa = (accuracy - 1.0 / n_labels) / (1.0 - 1.0 / n_labels)
    if kappa < _LEAST_KAPPA or (len(used) and used.mean() < _LEAST_USED):
        return np.zeros(len(used), dtype=bool)
    return used


def wilson(agreeing: int, n: int) -> tuple[float, float]:
    """The 95 % interval of a share, by Wilson's score.

    Examples
    --------
    >>> from ulr.classifier.advice import wilson
    >>> [round(bound, 2) for bound in wilson(43, 50)]
    [0.74, 0.93]
    """
    share, square = agreeing / n, _Z**2 / n
    middle = share + square / 2
    spread = _Z * float(np.sqrt(share * (1.0 - share) / n + square / (4 * n)))
    return (middle - spread) / (1 + square), (middle + spread) / (1 + square)
