"""Label files: text, CSV, JSON and YAML, as entries that `ulr.labels` validates."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from ulr.errors import LabelError
from ulr.label_tree import SEPARATOR

VALUE_ENDINGS = (".json", ".yaml", ".yml")
_SHOWN, _MOST_DEPTH = 80, 50
# A paragraph has fewer. Memory grows with the square of a word's length: 40,000 letters took 14 GB.
MOST_LETTERS = 2_000
_Loader = getattr(yaml, "CBaseLoader", yaml.BaseLoader)  # ten times faster, where there is libyaml
_NAME_COLUMNS = ("label", "name")
# Columns of a label file whose cells describe a label in place of its name. In the second group, a
# cell without ";" may separate its words by commas.
_TEXT_COLUMNS = ("phrases", "phrase", "description", "definition")
_LIST_COLUMNS = ("keywords", "synonyms", "examples")


@dataclass(frozen=True)
class Entry:
    """A label before validation: any values, and where they stand."""

    where: str
    name: Any
    phrases: Any = None


def file_entries(path: Path, notes: list[str]) -> list[Entry]:
    """The labels of a file; what is not used of it is added to the notes."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise LabelError(f"there is no label file {path}.") from None
    except (OSError, UnicodeDecodeError) as error:
        raise LabelError(f"{path} cannot be read as UTF-8 text: {error}.") from error
    return text_entries(text, path, notes)


def text_entries(text: str, path: Path, notes: list[str]) -> list[Entry]:
    """The labels of the content of a file, whose format is the ending of its name."""
    ending = path.suffix.lower()
    if ending in (".csv", ".tsv"):
        return _table_entries(text, path.name, notes)
    if ending not in VALUE_ENDINGS:
        return [
            line_entry(f"{path.name} line {number}", line)
            for number, line in enumerate(text.splitlines(), 1)
            if line.strip() and line.strip() != "#" and not line.lstrip().startswith("# ")
        ]
    value = _parse(text, path)
    if isinstance(value, Pairs):
        return mapping_entries(value, path.name)
    if isinstance(value, list):
        if value and all(isinstance(each, Pairs) for each in value):
            objects = [(f"{path.name} entry {i}", each) for i, each in enumerate(value, 1)]
            return _object_entries(objects, path.name, notes)
        return [Entry(f"{path.name} entry {i}", name) for i, name in enumerate(value, 1)]
    raise LabelError(f"{path.name} must hold a list of names or a mapping of names to phrases.")


def line_entry(where: str, line: str) -> Entry:
    """The label on a line: ``name`` or ``name: phrase; phrase``."""
    name, colon, phrases = line.partition(":")
    return Entry(where, name, phrases.split(";") if colon else None)


def mapping_entries(items: Iterable[tuple[Any, Any]], source: str) -> list[Entry]:
    """Labels from pairs of a name, and one or several phrases or the labels below it in a tree."""
    entries = []
    for i, (name, value) in enumerate(items, 1):
        where = f"{source} entry {i}"
        if isinstance(value, Mapping | Pairs) and value:
            below = value.items() if isinstance(value, Mapping) else value
            parent = one_text(name, where, "name")
            for entry in mapping_entries(below, where):
                own = one_text(entry.name, entry.where, "name")
                # YAML has no other way to say that a leaf has no phrases of its own.
                phrases = None if entry.phrases == [""] else entry.phrases
                entries.append(Entry(entry.where, f"{parent}{SEPARATOR}{own}", phrases))
        else:
            entries.append(Entry(where, name, [value] if isinstance(value, str) else value))
    return entries


def _table_entries(text: str, source: str, notes: list[str]) -> list[Entry]:
    """Labels from a CSV file with a header."""
    first = text.partition("\n")[0]
    delimiter = max(",;\t", key=first.count)
    try:
        reader = csv.reader(io.StringIO(text), delimiter=delimiter, strict=True)
        rows = [(reader.line_num, fields) for fields in reader if any(fields)]
    except csv.Error as error:
        raise LabelError(f"{source} is not CSV: {error}.") from None
    header = rows[0][1] if rows else []
    objects = []
    for line, fields in rows[1:]:
        if len(fields) != len(header):
            raise LabelError(
                f"{source} line {line} has {len(fields)} fields, but {len(header)} were expected."
            )
        objects.append((f"{source} line {line}", [*zip(header, fields, strict=True)]))
    if not set(_NAME_COLUMNS) & {field.strip().lower() for field in header}:
        raise LabelError(
            f"{source} needs a header with a column 'label' (or 'name') and possibly one 'phrases'; "
            f"its first line is {shown(first)}."
        )
    return _object_entries(objects, source, notes)


def _object_entries(
    objects: Iterable[tuple[str, list[tuple[Any, Any]]]], source: str, notes: list[str]
) -> list[Entry]:
    """Labels from where each stands, and its values by column."""
    entries, unused = [], dict[str, None]()
    for where, pairs in objects:
        values: dict[str, Any] = {}
        for column, value in pairs:
            key = str(column).strip().lower()
            if key in (*_NAME_COLUMNS, *_TEXT_COLUMNS, *_LIST_COLUMNS) and key not in values:
                values[key] = value
            elif column != "":
                unused[str(column)] = None
        names = [key for key in _NAME_COLUMNS if key in values]
        if not names:
            raise LabelError(f"{where} needs a 'label' (or 'name'); it has: {shown(pairs)}.")
        unused |= dict.fromkeys(names[1:])
        phrases: list[Any] = []
        for key in (*_TEXT_COLUMNS, *_LIST_COLUMNS):
            found = _cell_phrases(values.get(key), key in _LIST_COLUMNS)
            phrases += [each for each in found if each not in phrases]
        entries.append(Entry(where, values[names[0]], phrases or None))
    if unused:
        notes.append(
            f"{source}: not used: {', '.join(map(repr, unused))}; columns that describe a label are "
            f"{', '.join((*_TEXT_COLUMNS, *_LIST_COLUMNS))}."
        )
    return entries


def _cell_phrases(cell: Any, is_list: bool) -> list[Any]:
    """The phrases of a cell, or of a value in JSON or YAML."""
    if not isinstance(cell, str):
        return [] if cell is None else cell if isinstance(cell, list) else [cell]
    parts = re.split("[;\n]", cell)
    if is_list and len(parts) == 1:
        parts = cell.split(",")
    return [" ".join(part.split()) for part in parts if part.strip()]


class Pairs(list[tuple[Any, Any]]):
    """A mapping as its pairs, so that a name that is given twice is not lost."""


def _parse(text: str, path: Path) -> Any:
    """The value of a JSON or YAML file; mappings are `Pairs`, scalars of YAML are texts."""
    try:
        if path.suffix.lower() == ".json":
            return json.loads(text, object_pairs_hook=Pairs)
        # The base loader reads every scalar as text, so that the label `no` stays "no". Aliases
        # can expand a small file without bound, and the time of the parser grows with the square of
        # the depth.
        depth = 0
        for event in yaml.parse(text, _Loader):
            depth += isinstance(event, yaml.CollectionStartEvent)
            depth -= isinstance(event, yaml.CollectionEndEvent)
            if isinstance(event, yaml.AliasEvent):
                raise ValueError("a label file cannot use YAML aliases")
            if depth > _MOST_DEPTH:
                raise ValueError(f"it is nested more than {_MOST_DEPTH} deep")
        return _value_of(yaml.compose(text, _Loader))
    except json.JSONDecodeError as error:
        raise LabelError(f"{path.name} line {error.lineno} is not JSON: {error.msg}.") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f" line {mark.line + 1}" if mark is not None else ""
        problem = getattr(error, "problem", None) or error
        raise LabelError(f"{path.name}{line} is not YAML: {problem}.") from None
    except (ValueError, RecursionError) as error:
        reason = str(error).partition(";")[0][: 2 * _SHOWN]
        raise LabelError(f"{path.name} cannot be read: {reason}.") from None


def _value_of(node: yaml.Node | None) -> Any:
    """The value of a YAML node, as texts, lists and `Pairs`."""
    if isinstance(node, yaml.MappingNode):
        return Pairs((_value_of(key), _value_of(item)) for key, item in node.value)
    if isinstance(node, yaml.SequenceNode):
        return [_value_of(item) for item in node.value]
    return None if node is None else node.value


def one_text(value: Any, where: str, what: str) -> str:
    """A name or phrase with single blanks; an error says where it stands and what it is."""
    if not isinstance(value, str):
        raise LabelError(f"{where}: a {what} must be a text; got {shown(value)}.")
    if not value.strip():
        raise LabelError(f"{where}: a {what} is empty.")
    if any("\ud800" <= character <= "\udfff" for character in value):
        raise LabelError(
            f"{where}: a {what} holds half a character, {shown(value)}; write it again."
        )
    if any(ord(character) < 32 and not character.isspace() for character in value):
        raise LabelError(f"{where}: a {what} holds a control character, {shown(value)}.")
    if len(value) > MOST_LETTERS:
        raise LabelError(
            f"{where}: a {what} has {len(value):,} letters; at most {MOST_LETTERS:,} are possible."
        )
    return " ".join(value.split())


def shown(value: Any) -> str:
    """A value for a message, cut to a bounded length."""
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # an integer of many digits, or deep nesting
        text = f"a value of type {type(value).__name__}"
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"
