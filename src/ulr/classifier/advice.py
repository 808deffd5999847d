"""What an adviser says about the labels and about some documents, and what the fit makes of it.

1. The labels of some random documents, which are never fitted on: they judge phrases and result.
2. Once per label that has only one phrase, such as its name: further phrases and a description;
   those that are nearer to the name of another label are dropped, and all of them if the fit with
   them agrees less often with the labels of the random documents.
3. The labels of the documents that `ask` chooses, as examples where they are probably right, given how
   often the adviser errs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ulr.advisers import Interview, adviser_name, ask_for_label, ask_for_phrases
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
    labels, free = settings.label_set, random_documents(fitted)
    progress.stage("Asking the adviser", interview.left, "questions")
    bare = bare_labels(fitted, interview.left)
    n_judged = min(_JUDGED, (interview.left - len(bare)) // 3, len(free) // 3)
    judges = ask_labels(interview, fitted, free[:n_judged], labels, progress)
    found = ask_phrases(interview, fitted, bare, progress)
    phrases = attracting(fitted, found)
    if phrases:
        described = with_phrases(fitted, phrases, progress)
        if confirmed(fitted, described, judges):
            fitted = described
        else:
            phrases = {}
    n_chosen = min(interview.left, len(free) - n_judged)
    chosen = documents_to_ask(fitted, free[:n_judged], n_chosen)
    answers = ask_labels(interview, fitted, chosen, labels, progress)
    posterior = _posterior(fitted, answers.rows)
    fitted, n_examples, accuracy = learn(fitted, answers, judges, progress)
    predictions, diagnosis = fitted.predictions, fitted.diagnosis
    assert predictions is not None
    n_judges, agreeing = len(judges.rows), _agreeing(fitted, judges)
    advice = Advice(
        adviser=adviser_name(settings.adviser),
        questions=interview.asked,
        remembered=interview.remembered,
        unusable=interview.unusable,
        phrases=phrases,
        dropped_phrases=sum(map(len, found.values())) - sum(map(len, phrases.values())),
        answers=len(answers.rows),
        disagreeing=int((answers.labels != posterior.argmax(axis=1)).sum()),
        examples=n_examples,
        accuracy=accuracy,
        judged=n_judges,
        agreeing=agreeing,
        interval=_interval(agreeing, n_judges) if n_judges else None,
        expected_accuracy=None if diagnosis is None else diagnosis.expected_accuracy,
        changed=int((predictions.labels != before.labels).sum()),
    )
    return replace(fitted, advice=advice)


class Answers(NamedTuple):
    """Documents that an adviser gave a label."""

    rows: Indices
    labels: NDArray[np.int32]


def random_documents(fitted: Fitted) -> Indices:
    """Documents with words whose label is not known, in random order."""
    assert fitted.known is not None
    assert fitted.predictions is not None
    free = np.flatnonzero((fitted.known == UNKNOWN) & ~fitted.predictions.empty)
    return np.random.default_rng(fitted.settings.random_state).permutation(free)


def documents_to_ask(fitted: Fitted, judged: Indices, n: int) -> Indices:
    """The documents whose labels help most, without those that judge the result."""
    if n < 1:
        return judged[:0]
    assert fitted.known is not None
    known = fitted.known.copy()
    known[judged] = EXCLUDED  # or they would both teach and judge
    return ask(replace(fitted, known=known), n)


def ask_labels(
    interview: Interview,
    fitted: Fitted,
    rows: Indices,
    labels: LabelSet,
    progress: Progress = NO_PROGRESS,
) -> Answers:
    """The labels that an adviser gives documents, of those that it gives one."""
    assert fitted.documents is not None
    texts = fitted.documents.texts
    found = interview.ask([ask_for_label(labels, texts[row]) for row in rows.tolist()], progress)
    codes = np.array([UNKNOWN if each is None else each for each in found], dtype=np.int32)
    return Answers(rows[codes != UNKNOWN], codes[codes != UNKNOWN])


def learn(
    fitted: Fitted, answers: Answers, judges: Answers, progress: Progress = NO_PROGRESS
) -> tuple[Fitted, int, float | None]:
    """A fit with the answers that are probably right, their number, and the adviser's accuracy.

    The accuracy is estimated from all labels, those of the documents that judge included.
    """
    every = Answers(np.append(judges.rows, answers.rows), np.append(judges.labels, answers.labels))
    used, accuracy = _trusted(fitted, every)
    used = used[len(judges.rows) :]
    if not used.any():
        return fitted, 0, accuracy if len(every.rows) else None
    assert fitted.known is not None
    known = fitted.known.copy()
    known[answers.rows[used]] = answers.labels[used]
    again = refit(fitted, known, progress)
    if _loses_trust(fitted, again):
        return fitted, 0, accuracy
    return again, int(used.sum()), accuracy


def _trusted(fitted: Fitted, answers: Answers) -> tuple[NDArray[np.bool_], float]:
    """Which answers are probably right, none of an adviser that mostly guesses; its accuracy."""
    chances, accuracy = chances_of_answers(_posterior(fitted, answers.rows), answers.labels)
    used, by_chance = chances > _LEAST_CHANCE, 1.0 / fitted.n_labels
    kappa = (accuracy - by_chance) / (1.0 - by_chance)
    if kappa < _LEAST_KAPPA or used.sum() < _LEAST_USED * len(used):
        used[:] = False
    return used, accuracy


def _loses_trust(before: Fitted, after: Fitted) -> bool:
    """Whether the diagnosis warns of a fit with advice, and not of the one without.

    On AG News, 13 examples, 10 of them of one label, doubled that label and cost 15 points.
    """
    if before.diagnosis is None or after.diagnosis is None:
        return False
    return before.diagnosis.trusted and not after.diagnosis.trusted


def _agreeing(fitted: Fitted, answers: Answers) -> int:
    assert fitted.predictions is not None
    return int((fitted.predictions.labels[answers.rows] == answers.labels).sum())


def _posterior(fitted: Fitted, rows: Indices) -> Float:
    """(n_rows, n_labels) probabilities of the labels, without the none label."""
    assert fitted.predictions is not None
    found = fitted.predictions.probabilities[rows, : fitted.n_labels]
    return found / np.maximum(found.sum(axis=1, keepdims=True), 1e-12)


def bare_labels(fitted: Fitted, budget: int) -> list[Label]:
    """Labels of one phrase, where the adviser's phrases can be used and leave half of the budget."""
    settings, inputs = fitted.settings, fitted.inputs
    bare = [label for label in settings.label_set if len(label.phrases) == 1]
    # Scores of pairs depend on the phrases, so that all documents would have to be encoded again.
    if settings.scores_pairs or 2 * len(bare) > budget or inputs is None:
        return []
    encoded = encode_labels(inputs.settings)
    if encoded is None or inputs.labels is None:
        return []
    return bare if np.array_equal(inputs.labels, encoded) else []  # or vectors were given


def ask_phrases(
    interview: Interview, fitted: Fitted, bare: list[Label], progress: Progress = NO_PROGRESS
) -> dict[str, list[str]]:
    """An adviser's phrases for labels by their names, without those that a label has."""
    labels, rows = fitted.settings.label_set, random_documents(fitted)[-_SHOWN:]
    assert fitted.documents is not None
    shown = [fitted.documents.texts[row] for row in rows.tolist()]
    questions = [ask_for_phrases(labels, label, shown) for label in bare]
    taken = {phrase.casefold() for label in labels for phrase in (label.name, *label.phrases)}
    found: dict[str, list[str]] = {}
    for label, phrases in zip(bare, interview.ask(questions, progress), strict=True):
        for phrase in phrases or ():
            if phrase.casefold() not in taken:
                taken.add(phrase.casefold())
                found.setdefault(label.name, []).append(phrase)
    return found


def with_phrases(
    fitted: Fitted, phrases: dict[str, tuple[str, ...]], progress: Progress = NO_PROGRESS
) -> Fitted:
    """A fit with further phrases of labels."""
    labels, inputs = fitted.settings.label_set, fitted.inputs
    assert inputs is not None
    assert fitted.known is not None
    more = (Label(each.name, (*each.phrases, *phrases.get(each.name, ()))) for each in labels)
    settings = replace(inputs.settings, labels=LabelSet(tuple(more)))
    inputs = replace(inputs, settings=settings, labels=encode_labels(settings))
    return refit(replace(fitted, inputs=inputs), fitted.known, progress)


def confirmed(before: Fitted, after: Fitted, judges: Answers) -> bool:
    """Whether an adviser that does not guess agrees as often with the later fit as with the earlier."""
    if not _trusted(before, judges)[0].any() or _loses_trust(before, after):
        return False
    return _agreeing(after, judges) >= _agreeing(before, judges)


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
    centre = unit_rows(documents.vectors[random_documents(fitted)[:_COMPARED]]).mean(axis=0)
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


def _interval(agreeing: int, n: int) -> tuple[float, float]:
    """The 95 % interval of a share, by Wilson's score."""
    from scipy.stats import binomtest  # on use: it takes half a second to import

    low, high = binomtest(agreeing, n).proportion_ci(method="wilson")
    return float(low), float(high)
