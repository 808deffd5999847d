"""Descriptions of labels: representative and borderline documents, and characteristic words."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ulr.classifier.model import Predictions
from ulr.markup import without_marks

_SAMPLE = 20_000
_FEWEST_DOCUMENTS, _MOST_SHARE = 2, 0.2
_LEAST_Z = 1.64  # of the log odds ratio of a word
_words = re.compile(r"[^\W\d_]{3,}").findall


@dataclass(frozen=True)
class LabelDescription:
    """One label as its documents show it.

    Attributes
    ----------
    size
        Documents with this label.
    representative
        Positions of the documents with the highest probability of the label.
    borderline
        Positions of documents with this label that nearly had another one, and that label.
    words
        Words that are more frequent in its documents than in others, the clearest first.
    """

    size: int
    representative: tuple[int, ...]
    borderline: tuple[tuple[int, str], ...]
    words: tuple[str, ...]


def describe(
    texts: Sequence[str],
    predictions: Predictions,
    names: NDArray[np.str_],
    n_documents: int = 5,
    n_words: int = 10,
) -> dict[str, LabelDescription]:
    """Describe every label by documents and their predictions."""
    labels, probabilities = predictions.labels, predictions.probabilities
    words = characteristic_words(texts, labels, len(names) - 1, n_words)
    own = np.take_along_axis(probabilities, np.maximum(labels, 0)[:, None], axis=1)[:, 0]
    others = probabilities.copy()
    np.put_along_axis(others, np.maximum(labels, 0)[:, None], -1.0, axis=1)
    second = others.argmax(axis=1)
    lead = own - others.max(axis=1)
    found = {}
    for label, name in enumerate(names[:-1]):
        rows = np.flatnonzero(labels == label)
        best = rows[np.argsort(-own[rows], kind="stable")[:n_documents]]
        close = rows[np.argsort(lead[rows], kind="stable")[:n_documents]]
        found[str(name)] = LabelDescription(
            size=len(rows),
            representative=tuple(best.tolist()),
            borderline=tuple((int(row), str(names[second[row]])) for row in close),
            words=words[label],
        )
    return found


def words_of(text: str) -> set[str]:
    """Lower-cased words of at least three letters."""
    return set(_words(text.lower()))


def characteristic_words(
    texts: Sequence[str],
    labels: NDArray[np.integer],
    n_labels: int,
    most: int = 10,
    terms: Callable[[str], set[str]] = words_of,
) -> list[tuple[str, ...]]:
    """Words of each label by log odds ratio with a Dirichlet prior, over document frequencies.

    Negative labels are skipped; of more than 20,000 documents, a seeded random sample is used.
    `terms` finds the words, or other features, of a text.
    """
    rows = np.flatnonzero(labels >= 0)
    rows = np.random.default_rng(0).permutation(rows)[:_SAMPLE]
    counts: list[Counter[str]] = [Counter() for _ in range(n_labels)]
    for row in rows.tolist():
        counts[int(labels[row])].update(terms(without_marks(texts[row])))
    total: Counter[str] = Counter()
    for each in counts:
        total.update(each)
    most_documents = max(_FEWEST_DOCUMENTS, _MOST_SHARE * len(rows))
    vocabulary = [w for w, count in total.items() if _FEWEST_DOCUMENTS <= count <= most_documents]
    overall = np.array([total[word] for word in vocabulary], dtype=float)
    n_all = max(float(overall.sum()), 1.0)
    found: list[tuple[str, ...]] = []
    for each in counts:
        own = np.array([each[word] for word in vocabulary], dtype=float)
        n_own, n_rest = own.sum(), n_all - own.sum()
        if not n_own or not n_rest:
            found.append(())
            continue
        with_prior, rest = own + overall / n_labels, overall - own + overall / n_labels
        ratio = np.log(with_prior / (2 * n_own + 1)) - np.log(rest / (2 * n_rest + 1))
        clearness = ratio / np.sqrt(1 / with_prior + 1 / rest)
        order = np.argsort(-clearness, kind="stable")[:most]
        found.append(tuple(vocabulary[i] for i in order if own[i] > 1 and clearness[i] > _LEAST_Z))
    return found
