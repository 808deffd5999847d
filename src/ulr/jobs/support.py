"""Texts beside those to classify: labelled examples and further texts to refine on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from ulr.errors import LabelError, TableError
from ulr.label_tree import parts_of
from ulr.tables import Batch, Table

_GUESSED_ROWS, _GUESSED_LETTERS, _LONGEST_WORD = 200, 2_000, 30


def text_columns(table: Table, chosen: Sequence[str], besides: str | None = None) -> list[str]:
    """The columns that make up a document: those chosen, else ``text``, else the only one.

    The column `besides` holds something else.
    """
    if chosen:
        table.check_columns(chosen, "--text-column")
        return list(chosen)
    if "text" not in table.columns:
        columns = [column for column in table.all_columns() if column != besides]
        if len(columns) == 1:
            return columns
    table.check_columns(["text"], "--text-column")
    return ["text"]


def guess_text_column(table: Table) -> str | None:
    """The column with the longest prose in the first rows; None if there is none.

    Equal values count once, and words as long as addresses and codes do not count.
    """
    batch = next(table.batches(), None)
    if batch is None:
        return None
    first = replace(batch, data=batch.data[:_GUESSED_ROWS], raw=None)
    letters = {name: _prose_letters(first.column(name)) for name in table.columns}
    best = max(letters, key=letters.__getitem__)
    return best if letters[best] else None


def _prose_letters(values: Sequence[object]) -> int:
    texts = {value[:_GUESSED_LETTERS] for value in values if isinstance(value, str)}
    words = (word for text in texts for word in text.split())
    return sum(
        sum(map(str.isalpha, word))
        for word in words
        if len(word) <= _LONGEST_WORD or not word.isascii()
    )


@dataclass(frozen=True)
class Support:
    """Texts beside those to classify."""

    examples: tuple[str, ...] = ()  # texts whose label is known
    labels: tuple[str, ...] = ()  # their labels
    extra_texts: tuple[str, ...] = ()  # further texts that take part in the refinement
    skipped: int = 0  # rows of the examples whose label is empty


NO_SUPPORT = Support()


def read_support(
    names: Sequence[str],
    columns: Sequence[str],
    examples: Table | None = None,
    extra: Table | None = None,
) -> Support:
    """Examples, from a table with a column ``label``, and further texts, both validated.

    Rows whose label is empty, such as questions of `ask` that were not answered, are skipped.
    Tables that do not have the text columns of the documents are read by ``text``.
    """
    texts: list[str] = []
    labels: list[str] = []
    further: list[str] = []
    skipped = 0
    if examples is not None:
        if "label" not in examples.columns:
            raise TableError(
                f"{examples.name} has no column 'label'; it has: {', '.join(examples.columns)}. "
                "Examples need one, for the name of each text's label."
            )
        matching = LabelMatching(names)
        for batch, batch_texts in _documents(examples, columns, "label"):
            for place, value in enumerate(batch.column("label")):
                if name := matching.name_of(value, batch.where(place)):
                    texts.append(batch_texts[place])
                    labels.append(name)
                else:
                    skipped += 1
        if not labels:
            raise LabelError(
                f"{examples.name}: the label of every row is empty; use: {', '.join(names)}."
            )
    if extra is not None:
        for _, batch_texts in _documents(extra, columns):
            further += batch_texts
    return Support(tuple(texts), tuple(labels), tuple(further), skipped)


def _documents(
    table: Table, columns: Sequence[str], besides: str | None = None
) -> Iterator[tuple[Batch, list[str]]]:
    """Batches and texts, by the text columns of the documents if the table has them."""
    there = all(column in table.columns for column in columns)
    own, n_rows = text_columns(table, columns if there else (), besides), 0
    for batch in table.batches():
        yield batch, batch.texts(own)
        n_rows += len(batch)
    if n_rows == 0:
        raise TableError(f"{table.name} has no rows.")


class LabelMatching:
    """Finds the label that a cell of a table names, ignoring case and blanks around it.

    A label whose name is a path is also found by the end of the path, if no other label has it.

    `n_folded` counts the cells that equal a name only if case and blanks are ignored.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names
        ends = Counter(parts_of(name)[-1] for name in names)
        self._exact = {end: name for name in names if ends[end := parts_of(name)[-1]] == 1}
        self._exact |= {name: name for name in names}
        folded: dict[str, list[str]] = {}
        for spelled, name in self._exact.items():
            folded.setdefault(spelled.casefold(), []).append(name)
        self._folded = {key: each[0] for key, each in folded.items() if len(each) == 1}
        self.n_folded = 0
        self.names_found = set[str]()

    def find(self, value: object) -> str | None:
        """The name of a label, empty for an empty cell, None for what is no label."""
        text = "" if value is None else str(value)
        name = " ".join(text.split())
        if name == "":
            return name
        found = self._exact.get(name) or self._folded.get(name.casefold())
        if found is not None:
            self.names_found.add(found)
            self.n_folded += text not in self._exact
        return found

    def name_of(self, value: object, where: str) -> str:
        """As `find`, but an error says where there is no label."""
        found = self.find(value)
        if found is None:
            raise LabelError(
                f"{where}: {str(value)[:60]!r} is not a label; the labels are: "
                f"{', '.join(self._names)}. In a label file, 'name: phrase' gives a name other words "
                "to be encoded."
            )
        return found
