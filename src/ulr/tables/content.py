"""What a text without a telling name is: documents by line or a table, with column names or without."""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass

UNCLOSED = "unexpected end of data"  # what the csv module says
_DELIMITERS = ",;\t|"
_SNIFFED_LINES = 20
_LONG = 60  # letters; names of columns are seldom longer
_NAME = re.compile(r"[A-Za-z]+(_\w+)+|[a-z]+[A-Z]\w*")  # such as review_text or reviewText
_NAMES = frozenset(
    "abstract answer article body comment comments content description document documents email "
    "feedback headline message messages news note notes post posts question questions response "
    "review reviews sentence sentences story subject summary text texts title titles tweet "
    "tweets".split()
)


@dataclass(frozen=True)
class Content:
    """What the first lines of a text look like."""

    is_table: bool  # otherwise every line is a document
    has_names: bool  # whether the first row has the names of the columns
    first: str  # the first row, as it is shown


def first_lines(head: str) -> list[str]:
    """The complete lines of the beginning of a text."""
    lines = head.splitlines()[:_SNIFFED_LINES]
    return lines[:-1] if len(lines) > 1 and not head.endswith("\n") else lines


def delimiter_of(head: str) -> tuple[str, bool]:
    """The delimiter of a CSV file, and whether its first line names it (``sep=;``).

    The character that splits the first lines into equally many fields, at least two; a comma where
    there is none.
    """
    named = head.partition("\n")[0].strip(' "\r')
    if named.lower().startswith("sep=") and len(named) == 5:
        return named[4], True
    lines = first_lines(head)
    best, most = ",", 1
    for delimiter in _DELIMITERS:
        rows = _rows(lines, delimiter)
        widths = {len(row) for row in rows or ()}
        if len(widths) == 1 and max(widths) > most:
            best, most = delimiter, max(widths)
    if most == 1 and lines:  # lines of unequal width: the most frequent one of the header
        frequent = max(_DELIMITERS, key=lines[0].count)
        return (frequent if frequent in lines[0] else ","), False
    return best, False


def _rows(lines: list[str], delimiter: str) -> list[list[str]] | None:
    """The fields of some lines; None if they are not CSV."""
    rows = list[list[str]]()
    try:
        rows.extend(filter(None, csv.reader(lines, delimiter=delimiter, strict=True)))
    except csv.Error as error:
        if str(error) != UNCLOSED:  # a row that goes on in later lines
            return None
    return rows


def recognise_content(head: str, delimiter: str) -> Content:
    """Whether the beginning of a text is that of a table, and its first row one of names."""
    lines = first_lines(head)
    first = next(filter(str.strip, lines), "")
    rows = _rows(lines, delimiter)
    if not rows:
        return Content(False, False, first)
    width = len(rows[0])
    has_names = _has_names(rows)
    if width == 1:
        is_quoted = all(line.startswith('"') for line in lines if line)
        # A second line with a delimiter: a name above texts that have it, or a broken table.
        is_column = is_quoted or has_names
        return Content(is_column, has_names, first)
    if {len(row) for row in rows} != {width}:
        # Sentences with commas, unless the names of the columns show that a row is broken.
        is_spaced = any(field[:1].isspace() for field in rows[0])
        return Content(has_names and not is_spaced, has_names, first)
    # In prose, a blank follows every comma; in a table, some column is one of numbers.
    is_spaced = all(field[:1].isspace() for row in rows for field in row[1:])
    columns = zip(*rows[1:] or rows, strict=True)
    has_numbers = any(all(map(_is_number, column)) for column in columns)
    return Content(not is_spaced or has_numbers, has_names, first)


def _has_names(rows: list[list[str]]) -> bool:
    """Whether the first row looks like the names of columns."""
    first, others = rows[0], rows[1:]
    if len(first) == 1:
        name = first[0].strip()
        return name.casefold() in _NAMES or _NAME.fullmatch(name) is not None
    if len(set(first)) < len(first) or any(map(_is_number, first)):
        return False
    # A column of numbers or dates whose first value is neither.
    for column, name in zip(zip(*others, strict=False), first, strict=False):
        if not any(map(str.isdigit, name)) and all(any(map(str.isdigit, each)) for each in column):
            return True
    return all(len(name) <= _LONG and not name.rstrip().endswith((".", "!")) for name in first)


def _is_number(field: str) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return True
