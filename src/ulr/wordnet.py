"""WordNet's definitions as further phrases of labels (Yin et al., 2019).

The database is the one installed on the machine. Its files stay where they are and are searched in
place, a few lines a lookup.
"""

from __future__ import annotations

import mmap
import os
import re
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ulr.errors import LabelError
from ulr.labels import Label, LabelSet

# Endings and what stands for them in the base form, by part of speech, as WordNet's manual has
# them. The parts of speech are in the order in which they are looked up.
_ENDINGS: dict[str, tuple[tuple[str, str], ...]] = {
    "noun": (
        ("s", ""),
        ("ses", "s"),
        ("xes", "x"),
        ("zes", "z"),
        ("ches", "ch"),
        ("shes", "sh"),
        ("men", "man"),
        ("ies", "y"),
    ),
    "verb": (
        ("s", ""),
        ("ies", "y"),
        ("es", "e"),
        ("es", ""),
        ("ed", "e"),
        ("ed", ""),
        ("ing", "e"),
        ("ing", ""),
    ),
    "adj": (("er", ""), ("est", ""), ("er", "e"), ("est", "e")),
    "adv": (),
}
_NEEDED = tuple(f"{kind}.{part}" for part in _ENDINGS for kind in ("index", "data"))
_PLACES = (
    "/usr/share/wordnet",
    "/usr/share/wordnet/dict",
    "/usr/local/share/wordnet/dict",
    "/usr/local/WordNet-3.1/dict",
    "/usr/local/WordNet-3.0/dict",
    "/opt/homebrew/opt/wordnet/dict",
    "/usr/local/opt/wordnet/dict",
)
_NLTK_PLACES = ("/usr/share", "/usr/local/share", "/usr/lib", "/usr/local/lib")
# WordNet has senses for some of these (indium, Oregon, vitamin A), none of them meant in a label.
_LINKING = {"a", "an", "and", "as", "at", "by", "for", "in", "of", "on", "or", "the", "to", "with"}
_BETWEEN_PARTS = re.compile(r"[,;:/|&+()]+")
_EXAMPLES = re.compile(r'[;:,]\s*".*')


@dataclass(frozen=True)
class _Entry:
    """What a line of the index says: whether the word is met in texts, and where its data is."""

    lemma: str
    part: str
    attested: bool
    first_sense: int


class WordNet:
    """An installed WordNet database.

    Parameters
    ----------
    folder
        Where ``index.noun``, ``data.noun`` and the other files of the database are.

    Raises
    ------
    LabelError
        When the folder lacks any of them.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        missing = [name for name in _NEEDED if not (self.folder / name).is_file()]
        if missing:
            raise LabelError(
                f"{self.folder} is no WordNet database: it has no {', '.join(missing)}; name the "
                "folder that holds index.noun, data.noun and the others."
            )
        self._files = {name: _mapped(self.folder / name) for name in _NEEDED}
        exceptions = {f"{part}.exc": self.folder / f"{part}.exc" for part in _ENDINGS}
        for name, path in exceptions.items():
            if path.is_file() and path.stat().st_size:
                self._files[name] = _mapped(path)

    @classmethod
    def find(cls, folder: str | Path | None = None) -> WordNet:
        """The WordNet of this machine.

        Parameters
        ----------
        folder
            Where it is. None looks where the variables WNSEARCHDIR and WNHOME point, where
            packages put it, and among the data of NLTK.

        Raises
        ------
        LabelError
            When it is not there.
        """
        if folder is not None:
            return cls(folder)
        for place in _usual_places():
            if all((place / name).is_file() for name in _NEEDED):
                return cls(place)
        raise LabelError(
            "WordNet is not installed; install it (apt install wordnet-base, brew install "
            "wordnet), or set the variable WNSEARCHDIR to the folder that holds index.noun."
        )

    def definition(self, phrase: str) -> str | None:
        """What a phrase means: the definition of its first sense, without examples.

        The phrase is looked up as a whole, as a noun, then as a verb, an adjective and an adverb,
        each as it is written, or in its base form where it is no entry or one that WordNet has not
        met in texts. A phrase that is no entry is taken for
        its parts, the longest runs of words that are entries, and their definitions are joined by
        semicolons: those of `science` and of `technology` for `science and technology`.

        Returns
        -------
        The definition, or None when WordNet knows no part of the phrase.
        """
        words = phrase.lower().split()
        whole = self._entry(words)
        if whole is not None:
            return whole
        parts = _BETWEEN_PARTS.split(phrase.lower())
        found = dict.fromkeys(each for part in parts for each in self._runs(part.split()))
        return "; ".join(found) or None

    def _runs(self, words: list[str]) -> Iterator[str]:
        """Definitions of the longest runs of words that are entries, from the left."""
        start = 0
        while start < len(words):
            for end in range(len(words), start, -1):
                alone = end == start + 1
                if alone and words[start] in _LINKING:
                    continue
                definition = self._entry(words[start:end])
                if definition is not None:
                    yield definition
                    break
            start = end

    def _entry(self, words: list[str]) -> str | None:
        """The definition of words that make up one entry."""
        spaced = "_".join(words)
        spellings = [spaced, spaced.replace("-", "_"), spaced.replace("_", "-")]
        for part in _ENDINGS:
            for spelling in dict.fromkeys([*spellings, spaced.replace("-", "")]):
                entries = list(self._entries(spelling, part))
                if entries:
                    # A form that is never met as itself is meant as a form: `stocks` as `stock`.
                    return self._gloss(next((e for e in entries if e.attested), entries[0]))
        return None

    def _entries(self, word: str, part: str) -> Iterator[_Entry]:
        """A word as it is written and its base forms, those that the index has."""
        for form in dict.fromkeys([word, *self._base_forms(word, part)]):
            line = _find_line(self._files[f"index.{part}"], form)
            if line is not None:
                # Lemma, part of speech, number n of senses, ..., how many of them occur in the
                # texts that WordNet's makers marked up, and the n places in the data.
                fields = line.split()
                try:
                    attested, first = fields[-int(fields[2]) - 1 :][:2]
                    yield _Entry(form, part, int(attested) > 0, int(first))
                except (IndexError, ValueError):
                    raise self._damaged(f"index.{part}", form) from None

    def _base_forms(self, word: str, part: str) -> Iterator[str]:
        """What a word may be a form of; candidates, of which the index knows some."""
        exceptions = self._files.get(f"{part}.exc")
        irregular = _find_line(exceptions, word) if exceptions is not None else None
        if irregular is not None:
            yield from irregular.split()[1:]
        if part == "noun" and word.endswith("ss"):
            return
        for ending, base in _ENDINGS[part]:
            if word.endswith(ending) and len(word) > len(ending) + 1:
                yield word.removesuffix(ending) + base

    def _gloss(self, entry: _Entry) -> str:
        """The definition of an entry's first sense."""
        data, start = self._files[f"data.{entry.part}"], entry.first_sense
        line = data[start : _line_end(data, start)].decode("utf-8", "replace")
        synset, bar, gloss = line.partition(" | ")
        if not bar or synset.split(" ", 1)[0] != f"{start:08}":
            raise self._damaged(f"data.{entry.part}", entry.lemma)
        return _EXAMPLES.sub("", gloss).strip(" ;:,\r")

    def _damaged(self, name: str, lemma: str) -> LabelError:
        return LabelError(
            f"{self.folder / name} does not hold what it should for {lemma!r}; WordNet is damaged, "
            "install it again."
        )


@dataclass(frozen=True)
class Expansion:
    """Labels with WordNet's definitions among their phrases.

    Attributes
    ----------
    labels
        The labels, in the order given; each has its own phrases and then the definitions.
    without
        Names of the labels that got no definition.
    """

    labels: LabelSet
    without: tuple[str, ...]


def expand_labels(label_set: LabelSet, wordnet: WordNet) -> Expansion:
    """Add to every label the definition of each of its phrases.

    A definition that several labels would share is given to none of them: it tells nothing apart.

    Parameters
    ----------
    label_set
        The labels.
    wordnet
        Where the definitions come from.
    """
    given = {phrase for label in label_set for phrase in label.phrases}
    definitions = []
    for label in label_set:
        found = dict.fromkeys(wordnet.definition(phrase) for phrase in label.phrases)
        definitions.append([each for each in found if each and each not in given])
    owners = Counter(each for own in definitions for each in own)
    labels, without = [], []
    for label, own in zip(label_set, definitions, strict=True):
        new = tuple(each for each in own if owners[each] == 1)
        labels.append(Label(label.name, label.phrases + new))
        if not new:
            without.append(label.name)
    return Expansion(LabelSet(tuple(labels)), tuple(without))


def _usual_places() -> Iterator[Path]:
    if folder := os.environ.get("WNSEARCHDIR"):
        yield Path(folder)
    if home := os.environ.get("WNHOME"):
        yield Path(home, "dict")
    yield from map(Path, _PLACES)
    nltk = os.environ.get("NLTK_DATA", "").split(os.pathsep)
    own = [os.path.expanduser("~"), sys.prefix, *_NLTK_PLACES]
    for data in (*filter(None, nltk), *(os.path.join(each, "nltk_data") for each in own)):
        for version in ("wordnet", "wordnet31", "wordnet2021"):
            yield Path(data, "corpora", version)


def _mapped(path: Path) -> mmap.mmap:
    try:
        with path.open("rb") as file:
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except (OSError, ValueError) as error:
        raise LabelError(f"{path} of WordNet cannot be read: {error}.") from None


def _find_line(file: mmap.mmap, word: str) -> str | None:
    """The line that begins with a word and a space, in a file sorted by first words."""
    wanted = word.encode("utf-8", "replace")
    low, high = 0, len(file)
    while low < high:
        middle = (low + high) // 2
        start = max(low, file.rfind(b"\n", low, middle) + 1)
        end = _line_end(file, middle)
        # The licence above the index begins with spaces, so its first words are empty: the least.
        found = file[start:end].partition(b" ")[0]
        if found == wanted:
            return file[start:end].decode("utf-8", "replace") if wanted else None
        if found < wanted:
            low = end + 1
        else:
            high = start
    return None


def _line_end(file: mmap.mmap, start: int) -> int:
    end = file.find(b"\n", start)
    return len(file) if end < 0 else end
