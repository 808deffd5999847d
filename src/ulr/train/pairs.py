"""Texts with their categories: NatCat's files and tables, row by row.

Malformed rows are counted and the first few are named. Which rows make an instance is left to
`instances`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any, NamedTuple

from ulr.errors import TableError, TrainingError
from ulr.files import open_bytes
from ulr.tables import find_files, format_of_name, open_table, parse_json_object

_NEGATIVES = ("given", "uniform", "frequency")
_NATCAT_FIELDS = 9
_NAMED_ROWS = 5
_CATEGORY_COLUMNS = ("category", "categories", "label", "labels", "site", "tags")


class AnnotatedText(NamedTuple):
    """A text, its categories, each after its ancestors, and categories stated to be false.

    `document` is what the text is a passage of, or the text itself: all texts of one document are
    either trained on or held out.
    """

    document: str
    text: str
    paths: list[list[str]]
    false: list[str]


@dataclass(frozen=True)
class PairSource:
    """Texts with their categories, and how they are read.

    Attributes
    ----------
    paths
        The files, or patterns of them.
    kind
        ``natcat`` for lines of nine tab fields: the true category, seven false ones and the text;
        ``table`` for tables with a column of texts and one of categories.
    share
        Share of the instances that this source provides; None for its share of the rows.
    text_columns
        Columns of the text, joined by a space.
    category_column
        Column of the categories: a name, a list of names, or a list of paths, each from the root
        down to the category. None for the first of category, categories, label, labels, site and
        tags that the table has.
    category_separator, path_separator
        Separators of several categories in one cell, and of the names of a path.
    passage_words
        Length of the passages that texts are split into; None to leave texts whole.
    negatives
        False categories: ``given`` with the text, or drawn from the other categories of the source
        with equal probability (``uniform``) or in proportion to their ``frequency``. None for
        ``given`` with NatCat's files and ``frequency`` with tables.
    rows
        Texts in memory, instead of files.
    """

    paths: tuple[str, ...] = ()
    kind: str = "table"
    share: float | None = None
    text_columns: tuple[str, ...] = ("text",)
    category_column: str | None = None
    category_separator: str | None = None
    path_separator: str | None = None
    passage_words: int | None = None
    negatives: str | None = None
    rows: tuple[AnnotatedText, ...] = ()

    def __post_init__(self) -> None:
        if self.kind not in ("natcat", "table"):
            raise TrainingError(f"kind must be natcat or table; got {self.kind!r}.")
        if self.negatives not in (None, *_NEGATIVES):
            raise TrainingError(
                f"negatives must be one of {', '.join(_NEGATIVES)}; got {self.negatives!r}."
            )
        if self.negatives == "given" and self.kind != "natcat":
            raise TrainingError(
                "negatives='given' needs kind='natcat'; use uniform or frequency for tables."
            )
        if self.share is not None and not self.share > 0:
            raise TrainingError(f"share must be above 0; got {self.share}.")
        if self.passage_words is not None and self.passage_words < 10:
            raise TrainingError(f"passage_words must be at least 10; got {self.passage_words}.")

    @property
    def negative_sampling(self) -> str:
        """`negatives`, with None resolved."""
        return self.negatives or ("given" if self.kind == "natcat" else "frequency")

    def files(self) -> list[str]:
        """The files, sorted by name within each pattern."""
        return [file for pattern in self.paths for file in find_files(pattern)]


@dataclass
class MalformedRows:
    """Number of rows that could not be used, and descriptions of the first few."""

    count: int = 0
    named: list[str] = field(default_factory=list)

    def add(self, where: str, why: str) -> None:
        """Count one more row."""
        self.count += 1
        if len(self.named) < _NAMED_ROWS:
            self.named.append(f"{where} {why}")


_KINDS: dict[str, dict[str, Any]] = {
    "natcat": {"kind": "natcat"},
    "table": {},
    "stackexchange": {},
    "wikipedia": {"category_column": "categories", "passage_words": 100},
}
_SPEC = re.compile(
    rf"(?:(?P<kind>{'|'.join(_KINDS)}):)?(?P<path>.+?)(?:@(?P<share>\d*\.?\d+)(?P<percent>%?))?"
)


def parse_source(spec: str, **options: Any) -> PairSource:
    """Parse a source of the command line: ``[KIND:]PATH[@SHARE]``.

    KIND is ``natcat``, ``table``, ``stackexchange`` (a table of questions and their sites) or
    ``wikipedia`` (a table of articles with paths of categories, split into passages). Without it, the
    ending of the file name decides between table and natcat. PATH may contain ``*``. SHARE is a
    number or a percentage. `options` are further attributes of `PairSource`; None stands for the
    default of the kind, and options that do not apply to the kind are ignored.
    """
    found = _SPEC.fullmatch(spec)
    if found is None:
        raise TrainingError(f"pairs must be [KIND:]PATH[@SHARE]; got {spec!r}.")
    path = found["path"]
    kind = found["kind"] or ("table" if format_of_name(path) else "natcat")
    share = None
    if found["share"] is not None:
        share = float(found["share"]) / (100 if found["percent"] else 1)
    given = {name: value for name, value in options.items() if value is not None}
    if kind == "natcat":  # such lines have no columns
        given = {name: value for name, value in given.items() if name == "negatives"}
    elif given.get("negatives") == "given":
        del given["negatives"]
    if kind == "stackexchange":  # a question is one text
        given.pop("passage_words", None)
    return PairSource((path,), share=share, **_KINDS[kind] | given)


def read_rows(source: PairSource, malformed: MalformedRows) -> Iterator[AnnotatedText]:
    """The usable rows of a source, split into passages; at least one."""
    yield from source.rows
    usable = len(source.rows)
    for file in source.files():
        for where, content in _contents(file, source):
            try:
                row = (
                    _natcat_row(content) if source.kind == "natcat" else _table_row(content, source)
                )
            except ValueError as error:
                not_utf8 = isinstance(error, UnicodeDecodeError)
                malformed.add(where, "is not UTF-8" if not_utf8 else str(error))
                continue
            usable += 1
            for passage in _passages(row.text, source.passage_words):
                yield row._replace(text=passage)
    if not usable:
        first = f"; the first row: {malformed.named[0]}" if malformed.named else ""
        raise TrainingError(f"{', '.join(source.paths)} has no row to train on{first}.")


def _contents(file: str, source: PairSource) -> Iterator[tuple[str, Any]]:
    """Position and content of each row: a line of bytes, or a record of other tables than JSONL.

    `open_table` would refuse a file with a broken line, which is one malformed row here.
    """
    if source.kind == "table" and format_of_name(file) != "jsonl":
        with open_table(file) as table:
            for batch in table.batches():
                for place, record in enumerate(batch.records()):
                    yield batch.where(place), record
        return
    try:
        with open_bytes(file) as lines:
            for number, line in enumerate(lines, 1):
                if line.strip():
                    yield f"{PurePath(file).name} line {number}", line
    except (OSError, EOFError) as error:
        raise TableError(f"{file} cannot be read: {error}.") from error


def _natcat_row(line: bytes) -> AnnotatedText:
    fields = [part.strip() for part in line.decode("utf-8-sig").split("\t")]
    if len(fields) != _NATCAT_FIELDS:
        raise ValueError(f"has {len(fields)} tab fields, not {_NATCAT_FIELDS}")
    if not all(fields):
        raise ValueError("has an empty field")
    return AnnotatedText(fields[-1], fields[-1], [[fields[0]]], fields[1:-1])


def _table_row(content: bytes | dict[str, Any], source: PairSource) -> AnnotatedText:
    record = content
    if isinstance(record, bytes):
        record = parse_json_object(record.decode("utf-8-sig").strip())
    categories = (source.category_column,) if source.category_column else _CATEGORY_COLUMNS
    for columns, option in (
        (categories, "--category-column"),
        (source.text_columns, "--text-column"),
    ):
        if not any(name in record for name in columns):
            raise ValueError(
                f"has no column {' or '.join(map(repr, columns))} ({option}); it has: "
                f"{', '.join(record)}"
            )
    parts = [record.get(name) for name in source.text_columns]
    if not all(part is None or isinstance(part, str) for part in parts):
        raise ValueError("has a text that is not a string")
    if not (text := " ".join(part.strip() for part in parts if part).strip()):
        raise ValueError("has an empty text")
    column = next(name for name in categories if name in record)
    if not (paths := _paths(record[column], source)):
        raise ValueError(f"has no category in {column!r}")
    return AnnotatedText(text, text, paths, [])


def _paths(value: Any, source: PairSource) -> list[list[str]]:
    """The categories of a cell as paths from the root down; none if the cell is malformed."""
    if isinstance(value, str) and source.category_separator:
        value = value.split(source.category_separator)
    paths = []
    for each in value if isinstance(value, list) else [value]:
        if isinstance(each, str) and source.path_separator:
            each = each.split(source.path_separator)
        names = each if isinstance(each, list) else [each]
        if not all(isinstance(name, str) for name in names):
            return []
        if path := [name.strip() for name in names if name.strip()]:
            paths.append(path)
    return paths


def _passages(text: str, n_words: int | None) -> Iterator[str]:
    """The text, or its passages; a short remainder joins the last passage."""
    words = text.split() if n_words else []
    if n_words is None or len(words) <= n_words:
        yield text
        return
    starts = list(range(0, len(words), n_words))
    if len(words) - starts[-1] < n_words // 3:
        starts.pop()
    for start, end in zip(starts, [*starts[1:], len(words)], strict=True):
        yield " ".join(words[start:end])
