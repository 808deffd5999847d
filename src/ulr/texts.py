"""Texts in the forms that users have them, and warnings about texts and labels."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from operator import not_
from string import ascii_lowercase
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ulr.errors import TextError
from ulr.labels import LabelSet, shown

# Frequent function words by language, none of them shared with English.
_FUNCTION_WORDS: dict[str, frozenset[str]] = {
    "en": frozenset("the and of to is was for with that this it you are from have not".split()),
    "de": frozenset("der und das ist nicht ich mit ein eine den auf für sich auch wird".split()),
    "fr": frozenset("le la les et des est une pas vous nous que dans sur avec je".split()),
    "es": frozenset("el los las y una por ese del está pero mi como más lo muy".split()),
    "it": frozenset("il che di non una sono nella del della mi gli anche più ho è".split()),
    "pt": frozenset("o os um uma não para com dos da em meu muito você está foi".split()),
    "nl": frozenset("het een niet ik dat zijn voor mijn maar ook werd naar wordt deze bij".split()),
    "pl": frozenset("nie się jest na że co w z jak moje ale mam czy przez dla".split()),
    "sv": frozenset("och att det som en inte jag på är för med har av mitt ett".split()),
}
_SAMPLE = 1000
_MOST_LANGUAGES = 4
_MANY = 0.3  # share of texts in another language that is worth a warning
_CHARACTERS = 2000
_words = re.compile(r"[^\W\d_]+").findall


def as_texts(texts: Any) -> list[str]:
    """Documents as a list of texts.

    Lists, arrays, pandas and polars Series, pyarrow arrays, columns of Hugging Face datasets and
    data frames of one column are accepted; None and NaN are empty texts.
    """
    if isinstance(texts, str | bytes):
        raise TextError("texts must be a list of texts; got one text. Put it in a list.")
    texts = _one_column(texts)
    if hasattr(texts, "to_pylist"):  # pyarrow
        texts = texts.to_pylist()
    if not isinstance(texts, Iterable):
        raise TextError(f"texts must be a list of texts; got {type(texts).__name__}.")
    documents = []
    for index, text in enumerate(texts):
        if isinstance(text, str):
            documents.append(str(text))
        elif is_missing(text):
            documents.append("")
        else:
            raise TextError(f"texts must be strings; number {index} is {shown(text)}.")
    if not documents:
        raise TextError("there are no texts; at least one is needed.")
    return documents


def _one_column(texts: Any) -> Any:
    """The only column of a data frame or of an array with one column."""
    shape = getattr(texts, "shape", None)
    if shape is None or len(shape) == 1:
        return texts
    if len(shape) != 2 or shape[1] != 1:
        raise TextError(f"texts must be one column of texts; got shape {tuple(shape)}.")
    if hasattr(texts, "iloc"):  # pandas
        return texts.iloc[:, 0]
    if hasattr(texts, "columns") and hasattr(texts, "get_column"):  # polars
        return texts.get_column(texts.columns[0])
    if hasattr(texts, "column"):  # pyarrow
        return texts.column(0)
    return texts[:, 0]


def is_missing(value: Any) -> bool:
    """Whether a value is None, NaN or pandas.NA, which is neither equal to itself nor unequal."""
    if value is None or isinstance(value, str | bool):
        return value is None
    same = value == value
    if same is value:
        return True
    try:
        return bool(same) is False
    except (TypeError, ValueError):  # an array
        return False


def is_empty(text: str) -> bool:
    """Whether a text has nothing but blanks."""
    return not text.strip()


def empty_texts(texts: Sequence[str]) -> NDArray[np.bool_]:
    """(n_texts,) whether each text has nothing but blanks."""
    return np.fromiter(map(not_, map(str.strip, texts)), dtype=bool, count=len(texts))


def label_notes(label_set: LabelSet, texts: Sequence[str], encoder: object = None) -> list[str]:
    """Warnings about names and phrases: typing errors, and names that differ only in case."""
    notes = []
    by_case: dict[str, list[str]] = {}
    for name in label_set.names:
        by_case.setdefault(name.casefold(), []).append(name)
    for names in by_case.values():
        if len(names) > 1:
            shown = ", ".join(map(repr, names))
            notes.append(f"The labels {shown} differ only in upper and lower case.")
    knows_word = getattr(encoder, "knows_word", None)
    if knows_word is not None:
        notes += _typing_errors(label_set, texts, knows_word)
    return notes


def _typing_errors(
    label_set: LabelSet, texts: Sequence[str], knows_word: Callable[[str], bool]
) -> list[str]:
    """Warnings about words of phrases that seem to be misspelt.

    No text has such a word, the encoder does not know it as a whole, and it may be a misspelling of a
    word that the encoder knows or that several texts have.
    """
    unknown = _unknown_words(label_set, knows_word)
    if not unknown:
        return []
    frequency = Counter(
        word for text in _sample(texts, 20_000) for word in set(_words(text[:_CHARACTERS].lower()))
    )
    notes = []
    for word, name in unknown.items():
        meant = [each for each in _corrections(word) if frequency[each] > 1 or knows_word(each)]
        if meant and word not in frequency:
            notes.append(
                f"No document has the word {word!r} of the label {name!r}; did you mean "
                f"{meant[0]!r}?"
            )
    return notes


def _corrections(word: str) -> list[str]:
    """Words that this one may be a misspelling of: letters exchanged, one missing or one doubled.

    Nothing is appended, since other endings, such as those of plurals, are no errors. The first letter
    stays, where errors are rare.
    """
    places = range(1, len(word))
    exchanged = [word[:i] + word[i + 1] + word[i] + word[i + 2 :] for i in places[:-1]]
    missing = [word[:i] + letter + word[i:] for i in places for letter in ascii_lowercase]
    doubled = [word[:i] + word[i + 1 :] for i in places if word[i] == word[i - 1]]
    return [each for each in exchanged + missing + doubled if each != word]


def _unknown_words(label_set: LabelSet, knows_word: Callable[[str], bool]) -> dict[str, str]:
    """Longer words that the encoder does not know as a whole, and the label that has each first."""
    found: dict[str, str] = {}
    for label in label_set:
        for word in _words(" ".join(label.phrases).lower()):
            if len(word) > 5 and not knows_word(word):
                found.setdefault(word, label.name)
    return found


def _sample(texts: Sequence[str], most: int) -> Sequence[str]:
    """A seeded random sample of the texts."""
    return texts if len(texts) <= most else random.Random(0).sample(list(texts), most)


def language_note(texts: Sequence[str], languages: Sequence[str] | None) -> str | None:
    """A warning if many texts look like another language than those of an encoder.

    Parameters
    ----------
    texts
        The documents.
    languages
        Codes of the languages that the encoder was made for; None if that is unknown.
    """
    if not languages or "en" not in languages:
        return None
    n_words, n_other_script = 0, 0
    found: Counter[str] = Counter()
    for text in _sample(texts, _SAMPLE):
        words = _words(text[:_CHARACTERS].lower())
        n_words += len(words)
        n_other_script += sum(map(_in_other_script, words))
        if (language := _language(words)) is not None:
            found[language] += 1
    if n_words < 50:
        return None
    if n_other_script > _MANY * n_words and len(languages) == 1:
        return (
            f"{n_other_script / n_words:.0%} of the words are not in Latin script, which the "
            "encoder was not made for; use a multilingual one (see 'ulr encoders')."
        )
    others = [language for language, _ in found.most_common() if language not in languages]
    n_others = sum(found[language] for language in others)
    if n_others > _MANY * found.total():
        shown = ", ".join(map(repr, others[:_MOST_LANGUAGES]))
        which = "languages" if len(others) > 1 else "language"
        return (
            f"{n_others / found.total():.0%} of the texts look like the {which} {shown}, which the "
            "encoder was not made for; use a multilingual one (see 'ulr encoders')."
        )
    return None


def in_other_languages(texts: Sequence[str], languages: Sequence[str] | None) -> NDArray[np.bool_]:
    """(n_texts,) whether each text does not look like one of the languages of an encoder.

    All are False unless many of the texts clearly look like another language, so that there is a
    `language_note`.
    """
    own = np.ones(len(texts), dtype=bool)
    if not languages or language_note(texts, languages) is None:
        return ~own
    n_others = 0
    for place, text in enumerate(texts):
        words = _words(text[:_CHARACTERS].lower())
        language = _language(words)
        own[place] = language in languages
        other_script = len(languages) == 1 and 2 * sum(map(_in_other_script, words)) > len(words)
        n_others += other_script or (language is not None and not own[place])
    return ~own if n_others > _MANY * len(texts) else np.zeros_like(own)


def _in_other_script(word: str) -> bool:
    """Whether a word is not in Latin script."""
    return word[0] > "\u024f"


def _language(words: Sequence[str]) -> str | None:
    """The language whose function words are most frequent; None if that is not clear."""
    *_, (second, _), (most, best) = sorted(
        (sum(map(function_words.__contains__, words)), language)
        for language, function_words in _FUNCTION_WORDS.items()
    )
    return best if most > second else None
