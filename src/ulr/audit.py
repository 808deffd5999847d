"""Audit of the labels: how much the result depends on the phrases that describe them.

Every combination of one phrase per label is refined on the same documents, and the predictions are
compared. No true label is needed. Of a document, only the number of combinations that give it each
label matters: two of K drawn at random agree on it with probability Σ n (n - 1) / (K (K - 1)).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
from numpy.typing import NDArray

from ulr.classifier import (
    EncodedTexts,
    Settings,
    encode,
    encode_extra_labels,
    encode_labels,
    resolve,
    text_encoder,
)
from ulr.errors import LabelError, TextError
from ulr.labels import LabelSet
from ulr.progress import NO_PROGRESS, Progress
from ulr.refinement import refine_many

_MOST_SETS = 1024  # combinations; a random sample of more
_MOST_COMPETING, _MOST_UNSTABLE = 5, 10
# A label attracts almost nothing below a tenth of an equal share of the documents, and almost
# everything above half of them (nine tenths where there are two labels).
_ALMOST_NOTHING, _ALMOST_EVERYTHING = 0.1, 0.5

Predicted = NDArray[np.uint16]  # (n_sets, n_documents)
Shares = tuple[tuple[str, float], ...]  # of labels, by name


@dataclass(frozen=True)
class PhraseFinding:
    """A phrase: how often combinations that have it agree with another one, refined."""

    phrase: str
    agreement: float
    share_of_disagreement: float  # goes with having this phrase rather than another one


@dataclass(frozen=True)
class LabelFinding:
    """A label: how stable it is, what its phrases do, and how much it attracts."""

    label: str
    # When a combination gives a document this label, how often another does too; None where none
    # ever gives it.
    agreement_before: float | None
    agreement_after: float | None
    share_of_disagreement: float
    # The share of the documents that it gets, in the mean and over the combinations, refined.
    documents: float
    least: float
    most: float
    attracts: str | None
    phrases: tuple[PhraseFinding, ...]


@dataclass(frozen=True)
class Audit:
    """How far the combinations of phrases agree, by name (before) and refined (after)."""

    documents: int  # with words
    sets: int  # combinations that were refined
    possible_sets: int
    agreement_before: float  # how often two combinations agree on a document
    agreement_after: float
    unanimous_before: float  # share of the documents that all combinations agree on
    unanimous_after: float
    labels: tuple[LabelFinding, ...]
    competing: tuple[tuple[str, str, float], ...]  # pairs of labels, their share of disagreement
    # Rows, from 0, of the documents that combinations agree on least, and the share of each label.
    unstable: tuple[tuple[int, Shares], ...]


def audit(texts: Sequence[str], settings: Settings, progress: Progress = NO_PROGRESS) -> Audit:
    """Refine every combination of the phrases of the labels on texts, and compare the results."""
    settings = resolve(settings, progress)
    labels = settings.label_set
    n_possible = math.prod(len(label.phrases) for label in labels)
    if n_possible < 2:
        raise LabelError(
            "an audit compares combinations of phrases, and there is only one; give some labels "
            "several phrases ('name: phrase; phrase')."
        )
    if settings.scores_pairs:
        raise LabelError(
            "an audit needs an encoder of texts; this one scores pairs of text and label."
        )
    progress.stage("Encoding", len(texts))
    encoded = encode(texts, text_encoder(settings), progress, with_words=settings.uses_words)
    kept = np.flatnonzero(encoded.vectors.any(axis=1))
    if not len(kept):
        raise TextError("no document has a word that the encoder knows.")
    chosen = _combinations(labels, n_possible, settings.random_state)
    before, after = _predict(encoded, kept, settings, chosen, progress)
    # (n_phrases, n_sets) whether a combination has a phrase; phrases in the order of the labels.
    places = zip(np.array(chosen).T, labels, strict=True)
    has_phrase = np.stack([own == i for own, label in places for i in range(len(label.phrases))])
    by_name, refined = (_Agreement(each, has_phrase, len(labels)) for each in (before, after))
    return Audit(
        documents=len(kept),
        sets=len(chosen),
        possible_sets=n_possible,
        agreement_before=float(by_name.of_documents.mean()),
        agreement_after=float(refined.of_documents.mean()),
        unanimous_before=float((by_name.of_documents >= 1.0).mean()),
        unanimous_after=float((refined.of_documents >= 1.0).mean()),
        labels=tuple(_label_findings(labels, by_name, refined)),
        competing=tuple(_competing(labels, refined)),
        unstable=tuple(_unstable(labels, kept, refined)),
    )


def _combinations(labels: LabelSet, n_possible: int, random_state: int) -> list[tuple[int, ...]]:
    """Places of the phrases of each combination; all, or a random sample of many."""
    counts = [len(label.phrases) for label in labels]
    if n_possible <= _MOST_SETS:
        return list(product(*map(range, counts)))
    draw = np.random.default_rng(random_state)
    drawn: set[tuple[int, ...]] = set()
    while len(drawn) < _MOST_SETS:
        more = draw.integers(counts, size=(_MOST_SETS - len(drawn), len(counts)))
        drawn.update(map(tuple, more.tolist()))
    return sorted(drawn)


def _predict(
    texts: EncodedTexts,
    kept: NDArray[np.intp],
    settings: Settings,
    chosen: list[tuple[int, ...]],
    progress: Progress,
) -> tuple[Predicted, Predicted]:
    """Labels of every combination by name and refined."""
    phrases = {phrase: phrase for label in settings.labels for phrase in label.phrases}
    vectors = encode_labels(replace(settings, labels=phrases))
    assert vectors is not None
    starts = np.cumsum([0, *(len(label.phrases) for label in settings.labels)])[:-1]
    before = np.empty((len(chosen), len(kept)), dtype=np.uint16)
    after = np.empty_like(before)
    counts = texts.word_counts
    refined = refine_many(
        texts.vectors[kept],
        (vectors[starts + np.array(each)] for each in chosen),
        extra_anchors=encode_extra_labels(settings),
        word_counts=None if counts is None else counts[kept],
        **settings.refine_options,
    )
    progress.stage("Refining", len(chosen), "combinations")
    for i, refinement in enumerate(refined):
        before[i], after[i] = refinement.unrefined, refinement.predictions
        progress.advance(1)
    return before, after


class _Agreement:
    """How far predictions agree: of documents, labels, phrases and pairs of labels."""

    def __init__(self, predicted: Predicted, has_phrase: NDArray[np.bool_], n_labels: int) -> None:
        n_sets, n_documents = predicted.shape
        counts = np.empty((n_labels, n_documents))  # sets that give a document a label
        sizes = np.empty((n_sets, n_labels))
        apart = np.zeros(len(has_phrase))  # squared, of sets with a phrase from all sets
        sets_with = has_phrase.sum(axis=1)
        mean_with = (has_phrase / sets_with[:, None]).astype(np.float32)
        for label in range(n_labels):
            given = predicted == label
            counts[label], sizes[:, label] = given.sum(axis=0), given.mean(axis=1)
            with_phrase = mean_with @ given.astype(np.float32) - counts[label] / n_sets
            apart += np.einsum("pd,pd->p", with_phrase, with_phrase)
        together = counts @ counts.T - np.diag(counts.sum(axis=1))
        same, given = together.diagonal(), counts.sum(axis=1) * (n_sets - 1)
        disagreements = together.sum() - same.sum()
        others = (counts - 1)[predicted, np.arange(n_documents)]
        of_sets = others.sum(axis=1) / (n_sets - 1) / n_documents
        self.counts, self.sizes, self.n_sets = counts, sizes, n_sets
        self.of_documents = (counts * (counts - 1)).sum(axis=0) / (n_sets * (n_sets - 1))
        self.of_labels = [
            None if n == 0 else s / n for s, n in zip(same.tolist(), given.tolist(), strict=True)
        ]
        self.of_phrases = (has_phrase * of_sets).sum(axis=1) / sets_with
        # Two sets drawn with replacement disagree that often; it is what phrases can explain.
        spread = max(disagreements / n_sets**2, 1e-12)
        self.explained = sets_with / n_sets * apart / spread
        self.between = 2.0 * (together - np.diag(same)) / max(disagreements, 1e-12)


def _label_findings(
    labels: LabelSet, by_name: _Agreement, refined: _Agreement
) -> Iterator[LabelFinding]:
    place = 0
    for i, label in enumerate(labels):
        own = range(place, place + len(label.phrases))
        place, several = own.stop, len(own) > 1
        sizes = refined.sizes[:, i]
        yield LabelFinding(
            label=label.name,
            agreement_before=by_name.of_labels[i],
            agreement_after=refined.of_labels[i],
            share_of_disagreement=float(refined.explained[list(own)].sum()) if several else 0.0,
            documents=float(sizes.mean()),
            least=float(sizes.min()),
            most=float(sizes.max()),
            attracts=_attracts(float(sizes.mean()), len(labels)),
            phrases=tuple(
                PhraseFinding(
                    phrase,
                    float(refined.of_phrases[p]),
                    float(refined.explained[p]) if several else 0.0,
                )
                for phrase, p in zip(label.phrases, own, strict=True)
            ),
        )


def _attracts(share: float, n_labels: int) -> str | None:
    if share < _ALMOST_NOTHING / n_labels:
        return "almost nothing"
    if share > max(_ALMOST_EVERYTHING, min(2.0 / n_labels, 0.9)):
        return "almost everything"
    return None


def _competing(labels: LabelSet, refined: _Agreement) -> Iterator[tuple[str, str, float]]:
    rows, columns = np.triu_indices(len(labels), 1)
    shares = refined.between[rows, columns]
    for place in np.argsort(-shares, kind="stable")[:_MOST_COMPETING]:
        if shares[place] > 0:
            yield labels.names[rows[place]], labels.names[columns[place]], float(shares[place])


def _unstable(
    labels: LabelSet, kept: NDArray[np.intp], refined: _Agreement
) -> Iterator[tuple[int, Shares]]:
    for place in np.argsort(refined.of_documents, kind="stable")[:_MOST_UNSTABLE]:
        if refined.of_documents[place] >= 1.0:
            return
        shares = refined.counts[:, place] / refined.n_sets
        order = np.argsort(-shares, kind="stable")
        found = tuple((labels.names[i], float(shares[i])) for i in order if shares[i] > 0)
        yield int(kept[place]), found
