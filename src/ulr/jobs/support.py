"""What helps a classification beside the documents: labelled examples and further texts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ulr.errors import LabelError, TableError
from ulr.tables import Table


def text_columns(source: Table, chosen: Sequence[str]) -> list[str]:
    """The columns that make up a document: those chosen, else ``text``, else the only one."""
    if chosen:
        source.check_columns(chosen, "--text-column")
        return list(chosen)
    if len(source.columns) == 1:
        return list(source.columns)
    source.check_columns(["text"], "--text-column")
    return ["text"]


@dataclass(frozen=True)
class Support:
    """Documents beside those to classify.

    Attributes
    ----------
    examples, labels
        Texts whose label is known, and their labels.
    extra
        A table of further texts that take part in the refinement, with its text columns.
    n_extra
        How many they are.
    """

    examples: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    extra: tuple[Table, tuple[str, ...]] | None = None
    n_extra: int = 0

    def __len__(self) -> int:
        return len(self.examples) + self.n_extra

    def extra_texts(self) -> Iterator[list[str]] | None:
        """The further texts, batch by batch."""
        if self.extra is None:
            return None
        table, columns = self.extra
        return (table.texts(batch, columns) for batch in table.batches())


def read_support(
    names: Sequence[str],
    columns: Sequence[str],
    examples: Table | None = None,
    extra: Table | None = None,
) -> Support:
    """Examples and further texts from tables, checked.

    Parameters
    ----------
    names
        The labels.
    columns
        The text columns of the documents; a table that has other ones is read by ``text``.
    examples
        A table with a column ``label``.
    extra
        A table of texts.
    """
    texts: list[str] = []
    labels: list[str] = []
    if examples is not None:
        if "label" not in examples.columns:
            raise TableError(
                f"{examples.name} has no column 'label'; it has: {', '.join(examples.columns)}. "
                "Examples need one, for the name of each text's label."
            )
        of_examples = _columns_of(examples, columns, without="label")
        for batch in examples.batches():
            texts += examples.texts(batch, of_examples)
            for row, value in enumerate(batch.column("label"), batch.first_row + 1):
                labels.append(_label(value, names, f"{examples.name} row {row}"))
        if not texts:
            raise TableError(f"{examples.name} has no rows.")
    if extra is None:
        return Support(tuple(texts), tuple(labels))
    of_extra = _columns_of(extra, columns)
    n_extra = sum(len(batch) for batch in extra.batches())
    if n_extra == 0:
        raise TableError(f"{extra.name} has no rows.")
    return Support(tuple(texts), tuple(labels), (extra, of_extra), n_extra)


def _columns_of(
    table: Table, columns: Sequence[str], without: str | None = None
) -> tuple[str, ...]:
    """The text columns of a table: those of the documents, where it has them, else its own."""
    if all(column in table.columns for column in columns):
        return tuple(columns)
    others = [column for column in table.columns if column != without]
    if len(others) == 1:
        return tuple(others)
    table.check_columns(["text"], "--text-column")
    return ("text",)


def label_name(value: object) -> str:
    """The name of a label in a table's cell; empty where there is none."""
    return "" if value is None else " ".join(str(value).split())


def _label(value: object, names: Sequence[str], where: str) -> str:
    name = label_name(value)
    if name in names:
        return name
    if not name:
        raise LabelError(f"{where}: an example needs a label; this one has none.")
    raise LabelError(
        f"{where}: the example's label {name!r} is none of the labels, which are: "
        f"{', '.join(names)}."
    )
