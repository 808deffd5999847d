"""`update`: a model meets the documents of a later month, and says what has changed.

Labels keep their meaning: the rule stays as it is, but for the sizes of the labels, which are estimated
again where they have changed. A fit on the new documents, or a mixture of it with the old rule, was
worse than the old rule on some batches (docs/update.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ulr.classifier.encoding import EncodedTexts, encode, share_to_read, words_to_read
from ulr.classifier.fitting import teach
from ulr.classifier.model import Fitted, Predictions
from ulr.classifier.reference import (
    Reference,
    label_counts,
    label_shares,
    mean_confidence,
    share_of_known_words,
)
from ulr.classifier.texts import empty_texts
from ulr.errors import ModelError, TextError
from ulr.progress import NO_PROGRESS, Progress
from ulr.refinement import LinearRule

# Chance of a false alarm of each of two tests: 0.001 gave none in 89 batches of five datasets without
# any change. With 0.01, a fifth of all models would raise one within a year.
_FALSE_ALARM = 0.001
# Documents below this quantile of the fitted ones' similarity are unlike their label. Their share is
# said to have risen if it has at least doubled, since fitted documents are a little more similar.
_UNLIKE, _FACTOR = 0.05, 2.0
# Documents that a slow encoder reads to compare them, if a student labels the others.
_COMPARED = 1_000
_STEPS, _TOLERANCE = 200, 1e-6  # of the EM algorithm
_LEAST_SHARE = 1e-4  # of a label, since a share of nothing has no log odds

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class LabelShare:
    """Share of the documents that have a label, then and now."""

    label: str
    before: float
    after: float
    changed: bool  # by more than chance


@dataclass(frozen=True)
class Drift:
    """How new documents differ from those that a model was fitted on.

    Attributes
    ----------
    documents, empty
        New documents, and those of them without a word that the encoder knows.
    labels
        Share of each label among documents with words, by the old rule, and of none of them.
    shares_changed
        Whether these shares as a whole differ by more than chance (chi-squared test).
    unlike, unlike_changed
        Share of the documents that are less similar to the documents of their label than 95 % of
        the fitted ones, and whether it is at least 10 %, beyond chance.
    confidence_before, confidence
        Mean confidence, then and now. Fitted documents are more confident than new ones.
    unknown_words_before, unknown_words
        Mean share of the words of a document that the rule does not weigh; None without words.
    moved
        New documents whose label differs between the updated rule and the old one.
    """

    documents: int
    empty: int
    labels: tuple[LabelShare, ...]
    shares_changed: bool
    unlike: float
    unlike_changed: bool
    confidence_before: float
    confidence: float
    unknown_words_before: float | None
    unknown_words: float | None
    moved: int = 0

    @property
    def changed(self) -> bool:
        """Whether anything has changed by more than chance."""
        return self.shares_changed or self.unlike_changed

    @property
    def warnings(self) -> tuple[str, ...]:
        """What has changed by more than chance, one sentence each, with what to do."""
        found = []
        if self.unlike_changed:
            found.append(
                f"{self.unlike:.0%} of the documents are unlike those of their label, of which "
                f"{_UNLIKE:.0%} are usual; a label may be missing."
            )
        if self.shares_changed:
            moved = (
                f"{self.moved:,} documents got another label" if self.moved else "no label changed"
            )
            found.append(
                f"The shares of the labels differ by more than chance; {moved} by it. If no event "
                "explains that, look at the documents of the labels that grew."
            )
        return tuple(found)

    def as_dict(self) -> dict[str, Any]:
        """The drift as plain values."""
        return asdict(self) | {"changed": self.changed, "warnings": list(self.warnings)}


def update(
    fitted: Fitted,
    texts: Sequence[str] | EncodedTexts,
    progress: Progress = NO_PROGRESS,
    *,
    n_words: int | None = None,
) -> tuple[Fitted, Drift]:
    """Compare new documents with the fitted ones, and adapt the sizes of the labels.

    Parameters
    ----------
    fitted
        A fitted or loaded classifier.
    texts
        The new documents, possibly encoded before by the encoder of the model.
    progress
        Receives the progress, and can cancel the update.
    n_words
        Words of all documents of the job, if the texts are a sample of them; see `words_to_read`.

    Returns
    -------
    Fitted, Drift
        The updated classifier, with predictions of the new documents, and how they differ. On the
        fitted documents, or documents like them, the classifier stays as it was.

    Examples
    --------
    >>> from ulr.classifier import Settings, fit, update
    >>> texts = ["The striker scored", "Shares fell", "A late goal won it", "Profits rose"]
    >>> fitted = fit(texts, Settings(["sports", "business"], encoder="static"))
    >>> updated, drift = update(fitted, texts)
    >>> drift.changed, drift.moved
    (False, 0)
    """
    reference = fitted.reference
    if reference is None:
        raise ModelError("the model has no statistics to compare with; fit and save it again.")
    given = texts if isinstance(texts, EncodedTexts) else None
    texts = texts.texts if isinstance(texts, EncodedTexts) else list(texts)
    if empty_texts(texts).all():
        raise TextError("all texts are empty; at least one with words is needed.")
    if given is None:
        fitted, compared, found = _classify(fitted, texts, n_words, progress)
    else:
        compared, found = given, fitted.predict(texts, given.vectors)
    if found.empty.all():
        raise TextError("the encoder knows no word of the texts; check their column and language.")
    drift = _compare(fitted, reference, compared, found)
    reference = replace(
        reference,
        confidence=drift.confidence,
        known_words=None if drift.unknown_words is None else 1.0 - drift.unknown_words,
    )
    may_change = fitted.settings.prior_is_estimated and isinstance(fitted.rule, LinearRule)
    if not (drift.shares_changed and may_change):
        return replace(fitted, reference=reference, predictions=found), drift
    shares = _new_shares(label_shares(found, fitted.n_labels), reference.shares, drift)
    updated = _with_shares(fitted, shares, reference.shares)
    again = updated.predict(texts, compared.vectors if len(compared.texts) == len(texts) else None)
    counts = label_counts(again, fitted.n_labels)
    reference = replace(reference, counts=counts, shares=shares)
    moved = int(np.count_nonzero(again.labels != found.labels))
    return replace(updated, reference=reference, predictions=again), replace(drift, moved=moved)


def _classify(
    fitted: Fitted, texts: list[str], n_words: int | None, progress: Progress
) -> tuple[Fitted, EncodedTexts, Predictions]:
    """The classifier, with a student for many texts; texts with vectors; predictions of all texts."""
    settings = fitted.settings
    n_words = words_to_read(texts) if n_words is None else n_words
    share = share_to_read(settings, n_words)
    rows = np.arange(len(texts))
    if share < 1.0:
        fitted = replace(teach(fitted, texts, n_words, progress), strong_share=share)
        draw = np.random.default_rng(settings.random_state).permutation(len(texts))
        rows = np.sort(draw[:_COMPARED])
    compared = [texts[row] for row in rows.tolist()]
    progress.stage("Encoding", len(compared))
    encoded = encode(
        compared,
        fitted.text_encoder,
        progress,
        with_words=settings.uses_words,
        n_jobs=settings.n_jobs,
    )
    if len(rows) == len(texts):
        return fitted, encoded, fitted.predict(texts, encoded.vectors)
    progress.stage("Labelling")
    return fitted, encoded, fitted.predict(texts, strong_share=share)


def _compare(
    fitted: Fitted, reference: Reference, compared: EncodedTexts, found: Predictions
) -> Drift:
    """What differs between the new documents and those of the reference."""
    n_labels, names = fitted.n_labels, fitted.names
    counts = label_counts(found, n_labels)
    before, after = (each / max(each.sum(), 1.0) for each in (reference.counts, counts))
    some = found
    if len(compared.texts) < len(found.labels):
        some = fitted.predict(compared.texts, compared.vectors)
    has = np.flatnonzero(~some.empty & (some.labels < n_labels))
    unlike = reference.unlike(compared.vectors[has], some.labels[has], _UNLIKE)
    known_words = share_of_known_words(compared.word_counts, fitted.rule)
    before_words = reference.known_words
    return Drift(
        documents=len(found.labels),
        empty=int(found.empty.sum()),
        labels=tuple(
            LabelShare(str(names[i]), float(before[i]), float(after[i]), bool(changed))
            for i, changed in enumerate(_changed(reference.counts, counts))
            if i < len(names) - 1
        ),
        shares_changed=_differ(reference.counts, counts),
        unlike=float(unlike.mean()) if len(has) else 0.0,
        unlike_changed=_has_risen(unlike, reference.n_compared),
        confidence_before=reference.confidence,
        confidence=mean_confidence(found),
        unknown_words_before=None if before_words is None else 1.0 - before_words,
        unknown_words=None if known_words is None else 1.0 - known_words,
    )


def _differ(before: Floats, after: Floats) -> bool:
    """Whether two counts of labels differ by more than chance: the chi-squared test."""
    from scipy.stats import chi2_contingency

    table = np.stack([before, after])
    table = table[:, table.any(axis=0)]
    if table.shape[1] < 2 or not table.any(axis=1).all():
        return False
    return bool(chi2_contingency(table).pvalue < _FALSE_ALARM)


def _changed(before: Floats, after: Floats) -> list[bool]:
    """Whether the share of each label differs by more than chance, with Bonferroni's correction."""
    from scipy.stats import norm

    n, m = max(before.sum(), 1.0), max(after.sum(), 1.0)
    pooled = (before + after) / (n + m)
    errors = np.sqrt(np.maximum(pooled * (1.0 - pooled), 1e-12) * (1 / n + 1 / m))
    z = np.abs(before / n - after / m) / errors
    return list(2.0 * norm.sf(z) < _FALSE_ALARM / len(before))


def _has_risen(unlike: NDArray[np.bool_], n_before: int) -> bool:
    """Whether so many documents are unlike their label that the share has at least doubled.

    The share is compared with that of the fitted documents, whose quantile is uncertain as well.
    """
    from scipy.stats import norm

    if not len(unlike) or not n_before:
        return False
    share = float(unlike.mean())
    pooled = (unlike.sum() + _UNLIKE * n_before) / (len(unlike) + n_before)
    error = np.sqrt(pooled * (1.0 - pooled) * (1.0 / len(unlike) + 1.0 / n_before))
    beyond_chance = norm.sf((share - _UNLIKE) / max(error, 1e-12)) < _FALSE_ALARM
    return bool(beyond_chance and share >= _FACTOR * _UNLIKE)


def _new_shares(probabilities: Floats, before: Floats, drift: Drift) -> Floats:
    """Shares of the labels among new documents, by EM from calibrated probabilities.

    Saerens, Latinne and Decaestecker's algorithm (2002), with a Dirichlet prior: the larger the
    change, the less the old shares count. Without a prior, batches of 20 Newsgroups in which
    nothing had changed lost 35 points; with one of half the weight, mild changes lost up to 2.
    """
    change = 0.5 * sum(abs(each.after - each.before) for each in drift.labels)
    held_back = len(probabilities) * (1.0 - change) / max(change, 1e-9)
    before = np.maximum(before, _LEAST_SHARE)
    shares = before = before / before.sum()
    for _ in range(_STEPS):
        posterior = probabilities * (shares / before)
        posterior /= np.maximum(posterior.sum(axis=1, keepdims=True), 1e-12)
        total = posterior.sum(axis=0) + held_back * before
        last, shares = shares, total / total.sum()
        if np.abs(shares - last).max() < _TOLERANCE:
            break
    return shares


def _with_shares(fitted: Fitted, shares: Floats, before: Floats) -> Fitted:
    """The classifier, and its student, for other shares of the labels."""
    change = np.log(np.maximum(shares, _LEAST_SHARE) / np.maximum(before, _LEAST_SHARE))

    def shifted(one: Fitted) -> Fitted:
        assert isinstance(one.rule, LinearRule)
        offsets = one.rule.offsets + one.temperature * change
        return replace(one, rule=replace(one.rule, offsets=offsets))

    student = fitted.student
    return replace(shifted(fitted), student=None if student is None else shifted(student))
