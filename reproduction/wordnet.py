"""Definitions from an installed WordNet as further phrases of labels (Yin et al., 2019)."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from reproduction.datasets import ReproductionError

# Endings and what replaces them in the base form, from WordNet's manual (morphy). Parts of speech
# are looked up in this order.
_ENDINGS = {
    "noun": "s: ses:s xes:x zes:z ches:ch shes:sh men:man ies:y",
    "verb": "s: ies:y es:e es: ed:e ed: ing:e ing:",
    "adj": "er: est: er:e est:e",
    "adv": "",
}
_FILES = tuple(f"{kind}.{part}" for part in _ENDINGS for kind in ("index", "data"))
_FOLDERS = ("/usr/share/wordnet", "/usr/share/wordnet/dict", "/opt/homebrew/opt/wordnet/dict")
_EXAMPLES = re.compile(r'[;:,]\s*".*')


class WordNet:
    """The database in a folder with ``index.noun``, ``data.noun`` and the other files."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._index = {part: _read_lines(self.folder / f"index.{part}") for part in _ENDINGS}
        self._irregular = {part: _read_lines(self.folder / f"{part}.exc") for part in _ENDINGS}

    @classmethod
    def find(cls) -> WordNet:
        """The database in the folder of the variable WNSEARCHDIR, or in a usual one."""
        named = os.environ.get("WNSEARCHDIR")
        folders = [Path(folder) for folder in ([named] if named else _FOLDERS)]
        for folder in folders:
            if all((folder / name).is_file() for name in _FILES):
                return cls(folder)
        raise ReproductionError(
            f"WordNet is not in {', '.join(map(str, folders))}; install it (apt install "
            f"wordnet-base), or set WNSEARCHDIR to the folder with {', '.join(_FILES)}."
        )

    def definition(self, phrase: str) -> str | None:
        """The first definition of a phrase, without examples; None if it is unknown.

        A phrase is split into the longest runs of words that are entries, and their definitions
        are joined: those of `science` and `technology` for `science technology`.
        """
        words, found = phrase.lower().split(), []
        while words:
            runs = (("_".join(words[:end]), end) for end in range(len(words), 0, -1))
            definition, end = next(
                ((gloss, end) for run, end in runs if (gloss := self._look_up(run))), ("", 1)
            )
            found.append(definition)
            words = words[end:]
        return "; ".join(filter(None, dict.fromkeys(found))) or None

    def _look_up(self, entry: str) -> str | None:
        """The definition of an entry in any inflection."""
        for part, index in self._index.items():
            if forms := [form for form in self._forms(entry, part) if form in index]:
                # Prefer a form that occurs in WordNet's sample of texts: `stock` to `stocks`.
                entries = [self._entry(form, part) for form in forms]
                return self._gloss(part, max(entries, key=lambda found: found[0])[1])
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

    def _damaged(self, name: str) -> ReproductionError:
        return ReproductionError(f"{self.folder / name} of WordNet is damaged; install it again.")


def with_definitions(names: Sequence[str], wordnet: WordNet) -> list[list[str]]:
    """The phrases of each label: its name, and the definition of it that no other label has."""
    definitions = [wordnet.definition(name) for name in names]
    counts = Counter(definitions)
    return [
        [name, definition] if definition and counts[definition] == 1 else [name]
        for name, definition in zip(names, definitions, strict=True)
    ]


def _read_lines(path: Path) -> dict[str, str]:
    """The rest of each line by its first word; nothing if there is no such file."""
    if not path.is_file():
        return {}
    text = path.read_text(encoding="utf-8", errors="replace")
    pairs = (line.partition(" ") for line in text.split("\n"))
    return {word: rest for word, _, rest in pairs if word}  # the licence starts with spaces
