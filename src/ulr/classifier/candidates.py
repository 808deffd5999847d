"""Words and pairs of words of the documents that may describe a label, encoded as labels are."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from ulr.classifier.encoding import encode_phrases
from ulr.classifier.model import Fitted
from ulr.classifier.texts import FUNCTION_WORDS
from ulr.vectors import unit_rows

_MOST_CHARACTERS = 5_000  # of a text are searched for words
_LEAST_LETTERS = 3
_remove_markup = re.compile(r"<[^<>]{1,200}>|&#?\w{2,8};|https?://\S+|[@#]\w+").sub
_words = re.compile(r"[^\W_]+(?:['’]\w+)?|[^\s\w]").findall  # and punctuation, which parts pairs


@dataclass(frozen=True, eq=False)
class Candidates:
    """Candidates for names and phrases.

    Attributes
    ----------
    words
        The words and pairs of words.
    vectors
        (n_words, n_dims) unit vectors of them, from the centre of all.
    anchors
        (n_labels, n_dims) unit vectors of the labels, from the same centre.
    """

    words: tuple[str, ...]
    vectors: NDArray[np.float32]
    anchors: NDArray[np.float32]

    def places(self, words: Iterable[str]) -> NDArray[np.intp]:
        """Positions of words; those that are no candidates are left out."""
        numbers = {word: number for number, word in enumerate(self.words)}
        return np.array([numbers[each] for each in words if each in numbers], dtype=np.intp)


def terms_of(text: str) -> set[str]:
    """Words of a text and pairs of neighbouring words, without function words, markup and links."""
    found = _words(_remove_markup(" ", text[:_MOST_CHARACTERS]).lower())
    content = [each if _is_content(each) else "" for each in found]
    pairs = {f"{first} {second}" for first, second in pairwise(content) if first and second}
    return pairs.union(content) - {""}


def _is_content(word: str) -> bool:
    return len(word) >= _LEAST_LETTERS and word.isalpha() and word not in _function_words()


@cache
def _function_words() -> frozenset[str]:
    from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS  # on use: it takes a while

    return frozenset(ENGLISH_STOP_WORDS).union(*FUNCTION_WORDS.values())


def encode_candidates(fitted: Fitted, words: Iterable[Sequence[str]]) -> Candidates:
    """Candidates of several lists of words, without those that are a name or phrase of a label."""
    settings = fitted.settings
    assert fitted.anchors is not None
    taken = {phrase.casefold() for each in settings.label_set for phrase in each.phrases}
    taken.update(name.casefold() for name in settings.label_set.names)
    distinct = sorted({word for each in words for word in each if word not in taken})
    found = {
        word: vector for word, vector in encode_phrases(settings, distinct).items() if vector.any()
    }
    n_dims = fitted.anchors.shape[1]
    vectors = unit_rows(np.array(list(found.values())).reshape(-1, n_dims))
    # Vectors of short phrases share a direction that has nothing to do with what they say.
    centre = vectors.mean(axis=0) if len(vectors) else np.zeros(n_dims)
    return Candidates(
        tuple(found),
        unit_rows(vectors - centre).astype(np.float32),
        unit_rows(fitted.anchors - centre).astype(np.float32),
    )
