"""Why texts got their label: the words that spoke for it, and those that spoke for the runner-up.

The weight of a word is what it adds to the log odds of the label against the runner-up. Where scores
are sums over the words, as with averaged token vectors and counts of words, weights are exact, given
the lengths by which the rule divides. Otherwise words are left out, and the text is classified again.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ulr.classifier.model import Fitted, Predictions
from ulr.classifier.word_counts import count_words
from ulr.markup import in_capitals, readable, readable_texts, without_marks
from ulr.refinement import LinearRule, vector_contributions, word_contributions

# Words of a text that are left out, one at a time: a strong encoder reads the text once for each.
MOST_LEFT_OUT = 24
_TEXTS_AT_ONCE = 256  # bounds the memory for the vectors of their words
_TOLERANCE = 1e-3  # of rounding, relative to the length of the sum
_find_pieces = re.compile(r"\S+").finditer
_find_core = re.compile(r"\w(?:.*\w)?", re.DOTALL).search  # a piece without punctuation around it

Span = tuple[int, int]
Float = NDArray[np.float64]


@dataclass(frozen=True)
class WordEvidence:
    """A word of a text, all of its occurrences together.

    Attributes
    ----------
    word
        As it is written first, without punctuation around it.
    weight
        Log odds that it adds to the label, or to the runner-up, against the other one.
    spans
        Beginning and end of each occurrence in the text.
    """

    word: str
    weight: float
    spans: tuple[Span, ...]


@dataclass(frozen=True)
class Explanation:
    """The words that spoke for the label of a text, and those that spoke for the runner-up.

    Attributes
    ----------
    label, runner_up
        Of a text with the none label, the label that it would have otherwise; both are empty for a
        text without a label.
    for_label, for_runner_up
        Words, those with the largest weight first.
    how
        ``exact``: the weights of all words and `rest` add up to `log_odds`. ``left out``: a weight is
        the fall of the log odds when the word is left out, of some words of the text.
    log_odds
        Of the label against the runner-up.
    rest
        Log odds that no word adds, such as that of the sizes of the labels; 0 where words were left
        out.
    """

    label: str
    runner_up: str
    for_label: tuple[WordEvidence, ...]
    for_runner_up: tuple[WordEvidence, ...]
    how: str
    log_odds: float = 0.0
    rest: float = 0.0

    @property
    def exact(self) -> bool:
        """Whether the weights are exact."""
        return self.how == "exact"


@dataclass(frozen=True, eq=False)
class _Words:
    """The words of a text: its pieces between blanks, of which several may be the same word."""

    text: str
    pieces: tuple[Span, ...]
    spans: tuple[Span, ...]  # of the pieces without the punctuation around them
    numbers: NDArray[np.intp]  # (n_pieces,) number of the word of each piece
    words: tuple[str, ...]

    @classmethod
    def of(cls, text: str) -> _Words:
        pieces = tuple(found.span() for found in _find_pieces(text))
        spans, numbers, known = list[Span](), list[int](), dict[str, tuple[int, str]]()
        for start, end in pieces:
            core = _find_core(text[start:end])
            spans.append((start + core.start(), start + core.end()) if core else (start, end))
            word = text[slice(*spans[-1])]
            numbers.append(known.setdefault(word.casefold(), (len(known), word))[0])
        words = tuple(word for _, word in known.values())
        return cls(text, pieces, tuple(spans), np.array(numbers, dtype=np.intp), words)

    @property
    def read(self) -> list[str]:
        """The pieces as encoders read them."""
        found = [without_marks(self.text[start:end]) for start, end in self.pieces]
        return list(map(str.lower, found)) if in_capitals(without_marks(self.text)) else found

    def without(self, word: int) -> str:
        """The text without a word."""
        kept, last = [], 0
        for place in np.flatnonzero(self.numbers == word).tolist():
            start, end = self.pieces[place]
            kept.append(self.text[last:start])
            last = end
        return "".join([*kept, self.text[last:]])

    def evidence(self, weights: Float, most: int) -> tuple[WordEvidence, ...]:
        """The words with the largest positive weights."""
        order = np.argsort(-weights, kind="stable")[:most]
        return tuple(
            WordEvidence(
                self.words[word],
                round(float(weights[word]), 4),
                tuple(self.spans[place] for place in np.flatnonzero(self.numbers == word)),
            )
            for word in order.tolist()
            if weights[word] > 0
        )


def explain(
    fitted: Fitted,
    texts: Sequence[str],
    n_words: int = 5,
    predictions: Predictions | None = None,
) -> list[Explanation]:
    """Find the words that spoke for the label of each text, and for the runner-up.

    Texts that a student labelled are explained by the student.

    Parameters
    ----------
    fitted
        The classifier.
    texts
        The documents.
    n_words
        Most words for the label, and most for the runner-up.
    predictions
        Those of the texts, if they are there already.

    Examples
    --------
    >>> from ulr.classifier import Settings, explain, fit
    >>> texts = ["The striker scored", "Shares fell", "A late goal won it", "Profits rose"]
    >>> fitted = fit(texts, Settings(["sports", "business"], encoder="static"))
    >>> found = explain(fitted, ["A late goal by the striker"])[0]
    >>> found.label, found.runner_up, found.how
    ('sports', 'business', 'exact')
    >>> "goal" in [each.word for each in found.for_label]
    True
    """
    predictions = fitted.predict(list(texts)) if predictions is None else predictions
    found: list[Explanation | None] = [None] * len(texts)
    for by_student in (False, True):
        own = fitted.student if by_student and fitted.student is not None else fitted
        rows = np.flatnonzero(predictions.by_student == by_student)
        for start in range(0, len(rows), _TEXTS_AT_ONCE):
            some = rows[start : start + _TEXTS_AT_ONCE]
            these = [texts[row] for row in some.tolist()]
            explained = _explain(own, these, n_words, predictions.rows(some))
            for row, each in zip(some.tolist(), explained, strict=True):
                found[row] = each
    return [each for each in found if each is not None]


def _explain(
    fitted: Fitted, texts: list[str], n_words: int, predictions: Predictions
) -> list[Explanation]:
    """Explain some texts by one classifier."""
    pairs = _best_two(predictions)
    names = fitted.names
    scores = predictions.scores.astype(np.float64) / fitted.temperature
    log_odds = np.take_along_axis(scores, pairs, axis=1) @ [1.0, -1.0]
    is_empty = predictions.empty
    words = [_Words.of("" if empty else text) for text, empty in zip(texts, is_empty, strict=True)]
    exact = _exact_weights(fitted, words, pairs)
    others = [row for row, weights in enumerate(exact) if weights is None]
    left_out = _weights_left_out(
        fitted, [words[i] for i in others], pairs[others], log_odds[others]
    )
    by_word = dict(enumerate(exact)) | dict(zip(others, left_out, strict=True))
    found = []
    for row, weights in by_word.items():
        assert weights is not None
        label, runner_up = ("", "") if is_empty[row] else names[pairs[row]].tolist()
        found.append(
            Explanation(
                label,
                runner_up,
                words[row].evidence(weights, n_words),
                words[row].evidence(-weights, n_words),
                "left out" if row in others else "exact",
                0.0 if is_empty[row] else float(log_odds[row]),
                0.0 if is_empty[row] or row in others else float(log_odds[row] - weights.sum()),
            )
        )
    return found


def _best_two(predictions: Predictions) -> NDArray[np.intp]:
    """(n_texts, 2) the label of each text, and the one with the next highest score."""
    scores = predictions.scores.copy()
    labels = predictions.labels
    has = (labels >= 0) & (labels < scores.shape[1])
    labels = np.where(has, labels, scores.argmax(axis=1))
    np.put_along_axis(scores, labels[:, None], -np.inf, axis=1)
    return np.column_stack([labels, scores.argmax(axis=1)])


def _exact_weights(
    fitted: Fitted, words: list[_Words], pairs: NDArray[np.intp]
) -> list[Float | None]:
    """Weights of the words of each text where scores are sums over them; None elsewhere."""
    encoder: Any = fitted.settings.encoder
    rule = fitted.rule
    found: list[Float | None] = [None if each.pieces else np.zeros(0) for each in words]
    read = [each.read for each in words]
    pieces = list(chain.from_iterable(read))
    if not pieces or not (hasattr(encoder, "sums") and isinstance(rule, LinearRule)):
        return found
    texts = readable_texts(each.text for each in words)
    vectors, (sums, n_tokens) = encoder.encode(texts), encoder.sums(texts)
    joined, _ = encoder.sums([" ".join(filter(None, each)) for each in read])
    parts, n_parts = encoder.sums(pieces)
    counts, part_counts = count_words(texts), count_words(pieces)
    ends = np.cumsum([len(each.pieces) for each in words]).tolist()
    for row, (each, end) in enumerate(zip(words, ends, strict=True)):
        own = slice(end - len(each.pieces), end)
        total, n_own = parts[own].sum(axis=0), int(n_parts[own].sum())
        # Not where the text is truncated, or tokens depend on the words around them.
        error = np.linalg.norm(total - joined[row])
        if error > _TOLERANCE * np.linalg.norm(total) or not 0 < n_own <= n_tokens[row]:
            continue
        # Tokens of line ends belong to no word.
        whole = np.vstack([parts[own], sums[row] - total]).astype(np.float64)
        whole *= np.linalg.norm(vectors[row]) / max(float(np.linalg.norm(sums[row])), 1e-9)
        shares = np.append(n_parts[own], n_tokens[row] - n_own) / n_tokens[row]
        by_piece = vector_contributions(rule, whole, shares)[:-1]
        if rule.words is not None:
            by_piece += word_contributions(rule.words, counts[row], part_counts[own])
        label, runner_up = pairs[row]
        by_piece = (by_piece[:, label] - by_piece[:, runner_up]) / fitted.temperature
        found[row] = _sums(by_piece, each)
    return found


def _sums(by_piece: Float, words: _Words) -> Float:
    """Sums over the pieces of each word."""
    return np.bincount(words.numbers, by_piece, len(words.words)).astype(np.float64)


def _weights_left_out(
    fitted: Fitted, words: list[_Words], pairs: NDArray[np.intp], log_odds: Float
) -> list[Float]:
    """Fall of the log odds of each text when a word is left out; 0 for words that are not tried."""
    tried = [_words_to_try(fitted, each, pair) for each, pair in zip(words, pairs, strict=True)]
    variants = [
        each.without(word) for each, some in zip(words, tried, strict=True) for word in some
    ]
    if not variants:
        return [np.zeros(len(each.words)) for each in words]
    scores = fitted.predict(variants, strong_share=1.0).scores.astype(np.float64)
    found, start = [], 0
    for each, some, pair, whole in zip(words, tried, pairs, log_odds, strict=True):
        without = scores[start : start + len(some)] / fitted.temperature
        start += len(some)
        weights = np.zeros(len(each.words))
        weights[some] = whole - (without[:, pair[0]] - without[:, pair[1]])
        found.append(weights)
    return found


def _words_to_try(fitted: Fitted, words: _Words, pair: NDArray[np.intp]) -> list[int]:
    """Words to leave out: those with the largest weights in the counts of words, then the first."""
    own = getattr(fitted.rule, "words", None)
    if len(words.words) <= MOST_LEFT_OUT or own is None:
        return list(range(len(words.words)))[:MOST_LEFT_OUT]
    by_piece = word_contributions(own, count_words([readable(words.text)]), count_words(words.read))
    by_word = _sums(by_piece[:, pair[0]] - by_piece[:, pair[1]], words)
    order: list[int] = np.argsort(-np.abs(by_word), kind="stable").tolist()
    return order[:MOST_LEFT_OUT]
