"""Naturally annotated text: NatCat's files and tables of texts with categories, row by row.

Malformed rows are counted and the first few are named. Which rows make a batch is left to
`instances`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ulr.encoders.tokenization import replace_surrogates
from ulr.errors import TableError, TrainingError
from ulr.files import open_bytes
from ulr.tables import find_files, format_of_name, open_table
from ulr.tables.json_files import parse_json_object

NEGATIVES = ("given", "uniform", "frequency")
_NATCAT_FIELDS = 9
_NAMED_ROWS = 5
_CATEGORY_COLUMNS = ("category", "categories", "label", "labels", "site", "tags")


@dataclass(frozen=True)
class PairSource:
    """Files of texts with their categories, and how their rows are read.

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
    """

    paths: tuple[str, ...]
    kind: str = "table"
    share: float | None = None
    text_columns: tuple[str, ...] = ("text",)
    category_column: str | None = None
    category_separator: str | None = None
    path_separator: str | None = None
    passage_words: int | None = None
    negatives: str | None = None

    def __post_init__(self) -> None:
        if self.kind not in ("natcat", "table"):
            raise TrainingError(f"kind must be natcat or table; got {self.kind!r}.")
        if self.negatives is not None and self.negatives not in NEGATIVES:
            raise TrainingError(
                f"negatives must be one of {', '.join(NEGATIVES)}; got {self.negatives!r}."
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

    def files(self) -> list[Path]:
        """The files, sorted by name within each pattern."""
        return [path for pattern in self.paths for path in find_files(pattern)]


@dataclass(frozen=True)
class AnnotatedText:
    """A text and its categories.

    Attributes
    ----------
    document
        The document that the text is a passage of, or the text itself. All texts of one document
        are either trained on or held out.
    text
        The text that the model reads.
    paths
        Its categories, each after its ancestors.
    false
        Categories that the source states to be false.
    """

    document: str
    text: str
    paths: list[list[str]]
    false: list[str] = field(default_factory=list)


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
    rf"(?:(?P<kind>{'|'.join(_KINDS)}):)?(?P<path>.+?)(?:@(?P<share>[\d.]+)(?P<percent>%?))?"
)


def parse_source(spec: str, **options: Any) -> PairSource:
    """Parse a source of the command line: ``[KIND:]PATH[@SHARE]``.

    Parameters
    ----------
    spec
        KIND is ``natcat``, ``table``, ``stackexchange`` (a table of questions and their sites) or
        ``wikipedia`` (a table of articles with paths of categories, split into passages). Without
        it, the ending of the file name decides between table and natcat. PATH may contain ``*``.
        SHARE is a number or a percentage.
    **options
        Further attributes of `PairSource`; None stands for the default of the kind. Options that
        do not apply to the kind are ignored.
    """
    found = _SPEC.fullmatch(spec)
    if found is None:
        raise TrainingError(f"pairs must be [KIND:]PATH[@SHARE]; got {spec!r}.")
    path = found["path"]
    kind = found["kind"] or ("table" if format_of_name(path) else "natcat")
    share = None
    if found["share"] is not None:
        try:
            share = float(found["share"]) / (100 if found["percent"] else 1)
        except ValueError:
            raise TrainingError(f"{found['share']!r} is not a share in {spec!r}.") from None
    given = {name: value for name, value in options.items() if value is not None}
    if kind == "natcat":  # such lines have no columns
        given = {name: value for name, value in given.items() if name == "negatives"}
    elif given.get("negatives") == "given":
        del given["negatives"]
    if kind == "stackexchange":  # a question is one text
        given.pop("passage_words", None)
    return PairSource((path,), share=share, **_KINDS[kind] | given)


def read_rows(source: PairSource, malformed: MalformedRows) -> Iterator[AnnotatedText]:
    """Read the usable rows of all files of a source."""
    for path in source.files():
        if source.kind == "table":
            rows = _table_rows(path, source, malformed)
        else:
            rows = _natcat_rows(path, malformed)
        for row in rows:
            yield from _passages(row, source.passage_words)


def _natcat_rows(path: Path, malformed: MalformedRows) -> Iterator[AnnotatedText]:
    for where, line in _lines(path, malformed):
        fields = [part.strip() for part in line.rstrip("\r\n").split("\t")]
        if len(fields) != _NATCAT_FIELDS:
            malformed.add(where, f"has {len(fields)} tab fields, not {_NATCAT_FIELDS}")
        elif not all(fields):
            malformed.add(where, "has an empty field")
        else:
            yield AnnotatedText(fields[-1], fields[-1], [[fields[0]]], fields[1:-1])


def _table_rows(
    path: Path, source: PairSource, malformed: MalformedRows
) -> Iterator[AnnotatedText]:
    column: str | None = None
    for where, record in _records(path, malformed):
        column = column or _category_column(path, source, record)
        parts = [record.get(name) for name in source.text_columns]
        if not any(name in record for name in source.text_columns):
            malformed.add(where, f"has no {' or '.join(map(repr, source.text_columns))}")
            continue
        if not all(part is None or isinstance(part, str) for part in parts):
            malformed.add(where, "has a text that is not a string")
            continue
        text = replace_surrogates(" ".join(part.strip() for part in parts if part))
        paths = _paths(record.get(column), source)
        if not text.strip():
            malformed.add(where, "has an empty text")
        elif not paths:
            malformed.add(where, f"has no category in {column!r}")
        else:
            yield AnnotatedText(text, text, paths)


def _category_column(path: Path, source: PairSource, record: dict[str, Any]) -> str:
    """The column of the categories, by the first row; refuses a table without the columns."""
    categories = (source.category_column,) if source.category_column else _CATEGORY_COLUMNS
    for columns, option in (
        (categories, "--category-column"),
        (source.text_columns, "--text-column"),
    ):
        if not any(name in record for name in columns):
            raise TrainingError(
                f"{path} has no column {' or '.join(map(repr, columns))}; it has: "
                f"{', '.join(record)}. Choose one with {option}."
            )
    return next(name for name in categories if name in record)


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
        if path := [replace_surrogates(name).strip() for name in names if name.strip()]:
            paths.append(path)
    return paths


def _passages(row: AnnotatedText, n_words: int | None) -> Iterator[AnnotatedText]:
    """The row, or one row per passage of its text; a short remainder joins the last passage."""
    words = row.text.split() if n_words else []
    if n_words is None or len(words) <= n_words:
        yield row
        return
    starts = list(range(0, len(words), n_words))
    if len(words) - starts[-1] < n_words // 3:
        starts.pop()
    for start, end in zip(starts, [*starts[1:], len(words)], strict=True):
        yield AnnotatedText(row.document, " ".join(words[start:end]), row.paths, row.false)


def _records(path: Path, malformed: MalformedRows) -> Iterator[tuple[str, dict[str, Any]]]:
    """Records of a table with their position; unlike `open_table`, skips broken JSON lines."""
    if format_of_name(path.name) == "jsonl":
        for where, line in _lines(path, malformed):
            if not line.strip():
                continue
            try:
                yield where, parse_json_object(line)
            except ValueError:
                malformed.add(where, "is not a JSON object")
        return
    with open_table(str(path)) as table:
        for batch in table.batches():
            for row, record in enumerate(batch.as_records(), batch.first_row + 1):
                yield f"{path.name} row {row}", record


def _lines(path: Path, malformed: MalformedRows) -> Iterator[tuple[str, str]]:
    """Lines of a text file, plain or gzipped, with their position."""
    try:
        with open_bytes(path) as lines:
            for number, line in enumerate(lines, 1):
                where = f"{path.name} line {number}"
                try:
                    yield where, line.decode("utf-8-sig" if number == 1 else "utf-8")
                except UnicodeDecodeError:
                    malformed.add(where, "is not UTF-8")
    except (OSError, EOFError) as error:
        raise TableError(f"{path} cannot be read: {error}.") from error
