"""Definitions from an installed WordNet as further phrases of labels (Yin et al., 2019)."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ulr.errors import LabelError
from ulr.labels import Label, LabelSet

# Endings and what replaces them in the base form, from WordNet's manual (morphy). Parts of speech
# are looked up in this order.
_ENDINGS = {
    "noun": "s: ses:s xes:x zes:z ches:ch shes:sh men:man ies:y",
    "verb": "s: ies:y es:e es: ed:e ed: ing:e ing:",
    "adj": "er: est: er:e est:e",
    "adv": "",
}
_FILES = tuple(f"{kind}.{part}" for part in _ENDINGS for kind in ("index", "data"))
_FOLDERS = (
    "/usr/share/wordnet",
    "/usr/share/wordnet/dict",
    "/usr/local/WordNet-3.0/dict",
    "/opt/homebrew/opt/wordnet/dict",
    "/usr/share/nltk_data/corpora/wordnet",
    "~/nltk_data/corpora/wordnet",
)
# WordNet has other senses of some of these: indium, Oregon, vitamin A.
_FUNCTION_WORDS = frozenset("a an and as at by for in of on or the to with".split())
_SEPARATORS = re.compile(r"[,;:/|&+()]+")
_EXAMPLES = re.compile(r'[;:,]\s*".*')


class WordNet:
    """An installed WordNet database.

    Parameters
    ----------
    folder
        The folder of ``index.noun``, ``data.noun`` and the other files.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        if missing := [name for name in _FILES if not (self.folder / name).is_file()]:
            raise LabelError(
                f"{self.folder} is not a WordNet database: it has no {', '.join(missing)}; give "
                "the folder with index.noun, data.noun and the others."
            )
        self._index = {part: _read_lines(self.folder / f"index.{part}") for part in _ENDINGS}
        self._irregular = {part: _read_lines(self.folder / f"{part}.exc") for part in _ENDINGS}

    @classmethod
    def find(cls, folder: str | Path | None = None) -> WordNet:
        """The database in a folder, in that of the variable WNSEARCHDIR, or in a usual one."""
        named = folder or os.environ.get("WNSEARCHDIR")
        if named is not None:
            return cls(named)
        for usual in map(os.path.expanduser, _FOLDERS):
            if os.path.isfile(os.path.join(usual, "index.noun")):
                return cls(usual)
        raise LabelError(
            "WordNet is not installed; install it (apt install wordnet-base, brew install "
            "wordnet), or set the variable WNSEARCHDIR to the folder with index.noun."
        )

    def definition(self, phrase: str) -> str | None:
        """The first definition of a phrase, without examples; None if it is unknown.

        A phrase that is no entry is split into the longest runs of words that are, and their
        definitions are joined: those of `science` and `technology` for `science and technology`.
        """
        if (whole := self._look_up(phrase.lower().split())) is not None:
            return whole
        parts = [part.split() for part in _SEPARATORS.split(phrase.lower())]
        return "; ".join(dict.fromkeys(each for part in parts for each in self._runs(part))) or None

    def _runs(self, words: list[str]) -> Iterator[str]:
        """Definitions of the longest runs of words that are entries, from the left."""
        while words:
            for end in range(len(words), 0, -1):
                if end == 1 and words[0] in _FUNCTION_WORDS:
                    continue
                if (definition := self._look_up(words[:end])) is not None:
                    yield definition
                    break
            words = words[end:]

    def _look_up(self, words: list[str]) -> str | None:
        """The definition of words that are one entry, in any spelling or inflection."""
        joined = "_".join(words)
        spellings = (joined, joined.replace("-", "_"), joined.replace("_", "-"))
        for part, index in self._index.items():
            for spelling in dict.fromkeys((*spellings, joined.replace("-", ""))):
                forms = [form for form in self._forms(spelling, part) if form in index]
                if forms:
                    # Prefer a form that occurs in WordNet's sample of texts: `stock` to `stocks`.
                    entries = [self._entry(form, part) for form in forms]
                    return self._gloss(part, max(entries, key=lambda entry: entry[0])[1])
        return None

    def _forms(self, word: str, part: str) -> list[str]:
        """The word and its possible base forms."""
        forms = [word, *self._irregular[part].get(word, "").split()]
        if not (part == "noun" and word.endswith("ss")):
            for ending, base in (rule.split(":") for rule in _ENDINGS[part].split()):
                if word.endswith(ending) and len(word) > len(ending) + 1:
                    forms.append(word.removesuffix(ending) + base)
        return forms

    def _entry(self, lemma: str, part: str) -> tuple[bool, int]:
        """Whether an entry occurs in texts, and the position of its first sense in the data."""
        # Part of speech, number n of senses, …, senses that occur in texts, n positions.
        fields = self._index[part][lemma].split()
        try:
            attested, position = fields[-int(fields[1]) - 1 :][:2]
            return int(attested) > 0, int(position)
        except (IndexError, ValueError):
            raise self._damaged(f"index.{part}") from None

    def _gloss(self, part: str, position: int) -> str:
        with (self.folder / f"data.{part}").open("rb") as file:
            file.seek(position)
            synset, bar, gloss = file.readline().decode("utf-8", "replace").partition(" | ")
        if not bar or not synset.startswith(f"{position:08} "):
            raise self._damaged(f"data.{part}")
        return _EXAMPLES.sub("", gloss).strip(" ;:,\r\n")

    def _damaged(self, name: str) -> LabelError:
        return LabelError(f"{self.folder / name} of WordNet is damaged; install it again.")


@dataclass(frozen=True)
class Expansion:
    """Labels with definitions as further phrases, and the names of those without one."""

    labels: LabelSet
    without: tuple[str, ...]


def expand_labels(label_set: LabelSet, wordnet: WordNet) -> Expansion:
    """Add to every label the definitions of its phrases.

    A definition that several labels share is added to none: it does not distinguish them.
    """
    given = {phrase for label in label_set for phrase in label.phrases}
    definitions = []
    for label in label_set:
        found = dict.fromkeys(wordnet.definition(phrase) for phrase in label.phrases)
        definitions.append([each for each in found if each and each not in given])
    counts = Counter(each for found in definitions for each in found)
    unique = [tuple(d for d in found if counts[d] == 1) for found in definitions]
    labels = tuple(Label(a.name, a.phrases + new) for a, new in zip(label_set, unique, strict=True))
    without = tuple(a.name for a, new in zip(label_set, unique, strict=True) if not new)
    return Expansion(LabelSet(labels), without)


def _read_lines(path: Path) -> dict[str, str]:
    """The rest of each line by its first word; nothing if there is no such file."""
    if not path.is_file():
        return {}
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise LabelError(f"{path} cannot be read: {error.strerror}.") from None
    pairs = (line.partition(" ") for line in text.split("\n"))
    return {word: rest for word, _, rest in pairs if word}  # the licence starts with spaces
