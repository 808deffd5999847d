"""Naturally annotated text: NatCat's files, and any table of texts and categories, row by row.

Rows that cannot be used are counted and named; which rows make a batch is left to others.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from glob import glob
from pathlib import Path
from typing import Any

from ulr.encoders.tokens import whole_characters
from ulr.errors import TableError, TrainingError
from ulr.tables import open_table
from ulr.tables.reading import format_of_name

NEGATIVES = ("given", "uniform", "frequency")
_NATCAT_FIELDS = 9
_NAMED_ROWS = 5
_CATEGORY_COLUMNS = ("category", "categories", "label", "labels", "site", "tags")


@dataclass(frozen=True)
class Source:
    """Files of one kind, and how their rows are read.

    Attributes
    ----------
    paths
        The files, or patterns of them.
    kind
        ``natcat`` for lines of nine tab fields: the true category, seven false ones and the text;
        ``table`` for CSV, TSV, JSONL and Parquet with a column of texts and one of categories.
    share
        Share of the instances that are to come from here; None for its share of the rows.
    text_columns
        Columns of the text, joined by a space.
    category_column
        Column of the categories: a name, a list of names, or a list of paths of names, each from
        the root down to the category. None for the first of category, categories, label, labels,
        site and tags that is there.
    category_separator, path_separator
        What stands between several categories in one name, and between those of a path.
    passage_words
        Words of the passages that texts are split into; None to leave texts whole.
    negatives
        Where false categories come from: ``given`` with the text, or drawn from the source's other
        categories, all alike (``uniform``) or as often as they are true (``frequency``). None for
        ``given`` where they are given, and ``frequency`` elsewhere.
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
            raise TrainingError(f"the kind of a source must be natcat or table; got {self.kind!r}.")
        if self.negatives is not None and self.negatives not in NEGATIVES:
            raise TrainingError(
                f"negatives must be one of {', '.join(NEGATIVES)}; got {self.negatives!r}."
            )
        if self.negatives == "given" and self.kind != "natcat":
            raise TrainingError("only NatCat's files give negatives; draw them by frequency.")
        if self.share is not None and not self.share > 0:
            raise TrainingError(f"the share of a source must be above 0; got {self.share}.")
        if self.passage_words is not None and self.passage_words < 10:
            raise TrainingError(f"a passage must have at least 10 words; got {self.passage_words}.")

    @property
    def draws(self) -> str:
        """Where false categories come from, settled."""
        return self.negatives or ("given" if self.kind == "natcat" else "frequency")

    def files(self) -> list[Path]:
        """The files, in order of their names.

        Raises
        ------
        TrainingError
            When there is none.
        """
        found: list[Path] = []
        for pattern in self.paths:
            matches = [pattern] if Path(pattern).is_file() else sorted(glob(pattern))
            files = [Path(match) for match in matches if Path(match).is_file()]
            if not files:
                raise TrainingError(f"there is no file {pattern} to read pairs from.")
            found.extend(files)
        return found


@dataclass(frozen=True)
class Row:
    """A text and its categories.

    Attributes
    ----------
    document
        The whole text that it was cut out of, or the text itself; texts of one document never
        come to lie on both sides of a split.
    text
        What is read by the model.
    paths
        Each of its categories, its ancestors before it.
    false
        Categories said to be false.
    """

    document: str
    text: str
    paths: list[list[str]]
    false: list[str] = field(default_factory=list)


@dataclass
class Malformed:
    """Rows that could not be used: how many, and the first few by name."""

    count: int = 0
    named: list[str] = field(default_factory=list)

    def add(self, where: str, why: str) -> None:
        """One more."""
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


def parse_source(spec: str, **settings: Any) -> Source:
    """A source as it is written on the command line: ``[KIND:]PATH[@SHARE]``.

    Parameters
    ----------
    spec
        KIND is ``natcat``, ``table``, ``stackexchange`` (a table of questions and their sites) or
        ``wikipedia`` (a table of articles with paths of categories, split into passages); without
        it, a file is a table if its name ends like one, and NatCat's otherwise. PATH may have
        ``*`` in it. SHARE is a number or a percentage.
    settings
        Further ones of `Source`; None stands for the kind's own.
    """
    found = _SPEC.fullmatch(spec)
    if found is None:
        raise TrainingError(f"pairs are given as [KIND:]PATH[@SHARE]; got {spec!r}.")
    kind, path = found["kind"], found["path"]
    if kind is None:
        kind = "natcat" if format_of_name(path) is None else "table"
    share = None
    if found["share"] is not None:
        try:
            share = float(found["share"]) / (100 if found["percent"] else 1)
        except ValueError:
            raise TrainingError(
                f"{found['share']!r} is no share of the pairs in {spec!r}."
            ) from None
    given = {name: value for name, value in settings.items() if value is not None}
    if kind == "natcat":  # such lines have no columns
        given = {name: value for name, value in given.items() if name == "negatives"}
    elif given.get("negatives") == "given":  # and tables have no negatives to give
        del given["negatives"]
    if kind == "stackexchange":  # a question is one text
        given.pop("passage_words", None)
    return Source((path,), share=share, **_KINDS[kind] | given)


def read_rows(source: Source, malformed: Malformed) -> Iterator[Row]:
    """The usable rows of a source, those of one file after those of another."""
    for path in source.files():
        rows = _natcat_rows(path, malformed)
        if source.kind == "table":
            rows = _table_rows(path, source, malformed)
        for row in rows:
            yield from _passages(row, source.passage_words)


def _natcat_rows(path: Path, malformed: Malformed) -> Iterator[Row]:
    for where, line in _lines(path, malformed):
        fields = [part.strip() for part in line.rstrip("\r\n").split("\t")]
        if len(fields) != _NATCAT_FIELDS:
            malformed.add(where, f"has {len(fields)} tab fields, not {_NATCAT_FIELDS}")
        elif not all(fields):
            malformed.add(where, "has an empty field")
        else:
            yield Row(fields[-1], fields[-1], [[fields[0]]], fields[1:-1])


def _table_rows(path: Path, source: Source, malformed: Malformed) -> Iterator[Row]:
    column: str | None = None
    for where, record in _records(path, malformed):
        column = column or _category_column(path, source, record)
        parts = [record.get(name) for name in source.text_columns]
        if not any(name in record for name in source.text_columns):
            malformed.add(where, f"has no {' or '.join(map(repr, source.text_columns))}")
            continue
        if not all(part is None or isinstance(part, str) for part in parts):
            malformed.add(where, "has a text that is not a text")
            continue
        text = whole_characters(" ".join(part.strip() for part in parts if part))
        paths = _paths(record.get(column), source)
        if not text.strip():
            malformed.add(where, "has an empty text")
        elif not paths:
            malformed.add(where, f"has no category in {column!r}")
        else:
            yield Row(text, text, paths)


def _category_column(path: Path, source: Source, record: dict[str, Any]) -> str:
    """The column of the categories, looked for on the first row."""
    wanted = (source.category_column,) if source.category_column else _CATEGORY_COLUMNS
    found = next((name for name in wanted if name in record), None)
    if found is None:
        raise TrainingError(
            f"{path} has no column {' or '.join(map(repr, wanted))}; it has: "
            f"{', '.join(record)}. Choose one with --category-column."
        )
    if not any(name in record for name in source.text_columns):
        raise TrainingError(
            f"{path} has no column {' or '.join(map(repr, source.text_columns))}; it has: "
            f"{', '.join(record)}. Choose one with --text-column."
        )
    return found


def _paths(value: Any, source: Source) -> list[list[str]]:
    """The categories of a cell as paths from the root down."""
    if isinstance(value, str) and source.category_separator:
        value = value.split(source.category_separator)
    given: Sequence[Any] = value if isinstance(value, list) else [value]
    paths = []
    for each in given:
        if isinstance(each, str) and source.path_separator:
            each = each.split(source.path_separator)
        names: list[Any] = each if isinstance(each, list) else [each]
        if not all(isinstance(name, str) for name in names):
            return []
        if path := [whole_characters(name).strip() for name in names if name.strip()]:
            paths.append(path)
    return paths


def _passages(row: Row, n_words: int | None) -> Iterator[Row]:
    """The row, or one row for each passage of its text; a short rest goes with the last."""
    words = row.text.split() if n_words else []
    if n_words is None or len(words) <= n_words:
        yield row
        return
    starts = list(range(0, len(words), n_words))
    if len(words) - starts[-1] < n_words // 3:
        starts.pop()
    for start, end in zip(starts, [*starts[1:], len(words)], strict=True):
        yield Row(row.document, " ".join(words[start:end]), row.paths, row.false)


def _records(path: Path, malformed: Malformed) -> Iterator[tuple[str, dict[str, Any]]]:
    """Records of a table, and where each stands; a broken line of JSON is left out."""
    if format_of_name(path.name) == "jsonl":
        for where, line in _lines(path, malformed):
            if not line.strip():
                continue
            try:
                record = json.loads(line)
            except (ValueError, RecursionError):
                record = None
            if isinstance(record, dict):
                yield where, record
            else:
                malformed.add(where, "is not a JSON object")
        return
    with open_table(str(path)) as table:
        for batch in table.batches():
            for offset, record in enumerate(batch.records):
                yield f"{path.name} row {batch.first_row + offset + 1}", record


def _lines(path: Path, malformed: Malformed) -> Iterator[tuple[str, str]]:
    """Lines of a text file, plain or gzipped, and where each stands."""
    try:
        with path.open("rb") as raw:
            packed = raw.read(2) == b"\x1f\x8b"
            raw.seek(0)
            lines = gzip.GzipFile(fileobj=raw) if packed else raw
            for number, line in enumerate(lines, 1):
                where = f"{path.name} line {number}"
                try:
                    yield where, line.decode("utf-8-sig" if number == 1 else "utf-8")
                except UnicodeDecodeError:
                    malformed.add(where, "is not UTF-8")
    except (OSError, EOFError) as error:
        raise TableError(f"{path} cannot be read: {error}.") from error
