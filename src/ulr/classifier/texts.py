"""Texts in the forms that users have them, and warnings about texts and labels."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from operator import not_
from typing import Any
from unicodedata import category

import numpy as np
from numpy.typing import NDArray

from ulr.errors import TextError
from ulr.label_files import shown
from ulr.labels import LabelSet
from ulr.markup import plain_texts

# Frequent function words by language, none of them shared with English.
FUNCTION_WORDS: dict[str, frozenset[str]] = {
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
_PLACEHOLDERS = frozenset(
    "n/a,na,n.a.,#n/a,nan,null,nil,none,blank,empty,missing,undefined,unknown,tbd,x,xx,xxx,deleted,"
    "removed,redacted,#ref!,#value!,#name?,#div/0!,not applicable,not available,no data,no answer,"
    "no comment,no comments,object object,k.a.,keine angabe,s/o,n.v.t.,sin datos".split(",")
)
# What an export leaves of a page or a form letter: tags, character references, fields to fill in.
_remains = re.compile(r"<[^<>]*>|&(#?\w+);|\{\{[^{}]*\}\}")
_LONGEST_PLACEHOLDER, _MOST_SHOWN = 40, 3  # characters; examples
_SAMPLE = 1000
_MOST_LANGUAGES = 4
_MANY = 0.3  # share of texts in another language that is worth a warning
_CHARACTERS = 2000
_FORMULA_STARTS, _MOST_FORMULAS = ("=", "+", "-", "@"), 3
_words = re.compile(r"[^\W\d_]+").findall


def as_texts(texts: Any) -> list[str]:
    """Documents as a list of texts.

    Lists, arrays, pandas and polars Series, pyarrow arrays, columns of Hugging Face datasets and
    data frames of one column are accepted; None and NaN are empty texts. HTML is removed.
    """
    if isinstance(texts, str | bytes):
        raise TextError("texts must be a list of texts; got one text. Put it in a list.")
    texts = _one_column(texts)
    if hasattr(texts, "to_pylist"):  # pyarrow
        texts = texts.to_pylist()
    if not isinstance(texts, Iterable) or isinstance(texts, Mapping | Set):
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
    return plain_texts(documents)


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
    if hasattr(texts, "column_names"):  # pyarrow, Hugging Face datasets
        return texts[texts.column_names[0]]
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


def label_notes(label_set: LabelSet, none_label: str | None = None) -> list[str]:
    """Warnings about names that differ only in case, or that a spreadsheet would calculate."""
    by_case: dict[str, list[str]] = {}
    for name in label_set.names:
        by_case.setdefault(name.casefold(), []).append(name)
    notes = [
        f"The labels {', '.join(map(repr, names))} differ only in upper and lower case."
        for names in by_case.values()
        if len(names) > 1
    ]
    written = (*label_set.names, *filter(None, [none_label]))
    formulas = [shown(name) for name in written if is_formula(name)]
    if formulas:
        notes.append(
            f"A spreadsheet that opens the labels {', '.join(formulas[:_MOST_FORMULAS])} in a CSV file "
            "runs them as formulas; give them names that do not begin with =, +, - or @."
        )
    return notes


def is_formula(name: str) -> bool:
    """Whether a spreadsheet takes a cell for a formula; it does not for numbers such as -1."""
    return name[:1] in _FORMULA_STARTS and not name[1:].replace(".", "", 1).isdecimal()


def placeholder_note(texts: Sequence[str]) -> str | None:
    """A warning if texts look like placeholders for a missing one, such as ``n/a``."""
    found = Counter(
        text.strip() for text in texts if len(text) <= _LONGEST_PLACEHOLDER and _is_empty(text)
    )
    if not found:
        return None
    shown = ", ".join(repr(text) for text, _ in found.most_common(_MOST_SHOWN))
    verb = "looks like a placeholder" if found.total() == 1 else "look like placeholders"
    return (
        f"{found.total():,} of the texts {verb} ({shown}); they get a label like any other text. "
        "Leave them empty to give them none."
    )


def _is_empty(text: str) -> bool:
    """Whether a text that is not empty says nothing; signs alone, other than emoji, do not."""
    if text.strip().strip("()[]<>\"'").lower() in _PLACEHOLDERS:
        return True
    return bool(text.strip()) and all(category(each)[0] in "CPZ" for each in _remains.sub("", text))


def language_note(texts: Sequence[str], languages: Sequence[str] | None) -> str | None:
    """A warning if many texts look like another language than those of an encoder."""
    if not languages or "en" not in languages:
        return None
    n_words, n_other_script = 0, 0
    found: Counter[str] = Counter()
    sample = texts if len(texts) <= _SAMPLE else random.Random(0).sample(list(texts), _SAMPLE)
    for text in sample:
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


def _in_other_script(word: str) -> bool:
    """Whether a word is not in Latin script."""
    return word[0] > "\u024f"


def _language(words: Sequence[str]) -> str | None:
    """The language whose function words are most frequent; None if that is not clear."""
    *_, (second, _), (most, best) = sorted(
        (sum(map(function_words.__contains__, words)), language)
        for language, function_words in FUNCTION_WORDS.items()
    )
    return best if most > second else None
