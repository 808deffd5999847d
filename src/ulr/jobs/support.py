"""Texts beside those to classify: labelled examples and further texts to refine on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ulr.errors import LabelError, TableError
from ulr.tables import Table


def text_columns(table: Table, chosen: Sequence[str]) -> list[str]:
    """The columns that make up a document: those chosen, else ``text``, else the only one."""
    if chosen:
        table.check_columns(chosen, "--text-column")
        return list(chosen)
    if "text" not in table.columns and len(columns := table.all_columns()) == 1:
        return list(columns)
    table.check_columns(["text"], "--text-column")
    return ["text"]


@dataclass(frozen=True)
class Support:
    """Texts beside those to classify."""

    examples: tuple[str, ...] = ()  # texts whose label is known
    labels: tuple[str, ...] = ()  # their labels
    extra_texts: tuple[str, ...] = ()  # further texts that take part in the refinement


NO_SUPPORT = Support()


def read_support(
    names: Sequence[str],
    columns: Sequence[str],
    examples: Table | None = None,
    extra: Table | None = None,
) -> Support:
    """Examples, from a table with a column ``label``, and further texts, both validated.

    Tables that do not have the text columns of the documents are read by ``text``.
    """
    texts: list[str] = []
    labels: list[str] = []
    if examples is not None:
        if "label" not in examples.columns:
            raise TableError(
                f"{examples.name} has no column 'label'; it has: {', '.join(examples.columns)}. "
                "Examples need one, for the name of each text's label."
            )
        own = _columns_of(examples, columns, without="label")
        matching = LabelMatching(names)
        for batch in examples.batches():
            texts += batch.texts(own)
            for place, value in enumerate(batch.column("label")):
                labels.append(matching.name_of(value, batch.where(place)))
        if not texts:
            raise TableError(f"{examples.name} has no rows.")
    further: list[str] = []
    if extra is not None:
        own = _columns_of(extra, columns)
        for batch in extra.batches():
            further += batch.texts(own)
        if not further:
            raise TableError(f"{extra.name} has no rows.")
    return Support(tuple(texts), tuple(labels), tuple(further))


def _columns_of(table: Table, columns: Sequence[str], without: str | None = None) -> list[str]:
    """The text columns of a table: those of the documents, where it has them, else its own."""
    if all(column in table.columns for column in columns):
        return list(columns)
    others = [column for column in table.columns if column != without]
    if len(others) == 1:
        return others
    table.check_columns(["text"], "--text-column")
    return ["text"]


class LabelMatching:
    """Finds the label that a cell of a table names, ignoring case and blanks around it.

    `n_folded` counts the cells that equal a name only if case and blanks are ignored.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names
        self._exact = set(names)
        folded: dict[str, list[str]] = {}
        for name in names:
            folded.setdefault(name.casefold(), []).append(name)
        self._folded = {key: each[0] for key, each in folded.items() if len(each) == 1}
        self.n_folded = 0

    def find(self, value: object) -> str | None:
        """The name of a label, empty for an empty cell, or None for something else."""
        text = "" if value is None else str(value)
        name = " ".join(text.split())
        if name == "":
            return name
        found = name if name in self._exact else self._folded.get(name.casefold())
        self.n_folded += found is not None and found != text
        return found

    def name_of(self, value: object, where: str) -> str:
        """The name of a label; an error says where there is none."""
        name = self.find(value)
        if not name:
            shown = "is empty" if name == "" else f"{str(value)[:60]!r} is not a label"
            raise LabelError(f"{where}: the label {shown}; use: {', '.join(self._names)}.")
        return name
