"""Labels: the names that are predicted, and the phrases that are encoded for each.

Read from a list, a mapping, a line of text or a file. Every error names the line or the place in the
list.
"""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from ulr.errors import LabelError

_VALUE_ENDINGS = (".json", ".yaml", ".yml")
LABEL_FILE_ENDINGS = (".txt", ".csv", ".tsv", *_VALUE_ENDINGS)
_SHOWN = 80

# Lists of names that can be given as extra labels.
NAMED_LISTS: dict[str, tuple[str, ...]] = {
    # The 30 most popular Stack Exchange sites, the paper's augmented categories, in its order.
    "stackexchange": tuple(
        (
            "math gis physics codereview stats unix english tex gaming apple scifi drupal ell meta "
            "electronics travel rpg dba magento webapps diy wordpress android security chemistry "
            "webmasters blender softwareengineering gamedev academia"
        ).split()
    ),
}


@dataclass(frozen=True)
class Label:
    """One category: its name, and the phrases that describe it to the encoder."""

    name: str
    phrases: tuple[str, ...]


@dataclass(frozen=True)
class LabelSet:
    """The categories of one task, in the order given."""

    labels: tuple[Label, ...]

    def __len__(self) -> int:
        return len(self.labels)

    def __iter__(self) -> Iterator[Label]:
        return iter(self.labels)

    @property
    def names(self) -> tuple[str, ...]:
        """The names."""
        return tuple(label.name for label in self.labels)

    def phrases(self, template: str | None = None) -> list[list[str]]:
        """The phrases of each label, each inside the template if there is one."""
        return [[in_template(phrase, template) for phrase in each.phrases] for each in self.labels]


def in_template(phrase: str, template: str | None) -> str:
    """A phrase inside the sentence that is put around every phrase, if there is one."""
    if template is None:
        return phrase
    if "{}" not in template:
        raise LabelError(f"a template must contain {{}} where the phrase goes; got {template!r}.")
    return template.replace("{}", phrase)


@dataclass(frozen=True)
class _Entry:
    """A label before validation: any values, and where they stand."""

    where: str
    name: Any
    phrases: Any = None


def as_label_set(given: Any) -> LabelSet:
    """Labels from a list of names, a mapping of names to one or several phrases, or a file's `Path`.

    Examples
    --------
    >>> from ulr.labels import as_label_set
    >>> as_label_set({"money": ["billing", "refund"], "parcel": "delivery"}).names
    ('money', 'parcel')
    """
    if isinstance(given, LabelSet):
        return given
    if isinstance(given, Path):
        return read_labels(given)
    if isinstance(given, str):
        raise LabelError(
            f"labels must be a list of names or a mapping; got the text {shown(given)}. Split it into "
            "names, or give the Path of a label file."
        )
    if isinstance(given, Mapping):
        return _validated(_mapping_entries(given.items(), "labels"))
    if isinstance(given, Iterable):
        return _validated([_Entry(f"label {i}", name) for i, name in enumerate(given, 1)])
    raise LabelError(f"labels must be a list of names or a mapping; got {type(given).__name__}.")


def labels_from_arguments(values: Iterable[str]) -> LabelSet:
    """Labels from command-line arguments, which add up.

    Each is the name of a file, or a line ``world, sports, technology: science; computers``.
    """
    entries: list[_Entry] = []
    for value in values:
        if is_label_file(value):
            entries += _file_entries(Path(value))
        else:
            for item in value.rstrip().rstrip(",").split(","):
                entries.append(_line_entry(f"label {len(entries) + 1}", item))
    return _validated(entries)


def is_label_file(value: str) -> bool:
    """Whether a command-line argument names a file rather than the labels themselves."""
    return value.lower().endswith(LABEL_FILE_ENDINGS) or os.path.isfile(value)


def check_extra_labels(given: Any, label_set: LabelSet) -> tuple[str, ...]:
    """Further names that take part and are never predicted: a list, or a `Path` of a file.

    None of them may be a name or phrase of a label.
    """
    if isinstance(given, Path):
        entries = _file_entries(given)
    elif isinstance(given, str) or not isinstance(given, Iterable):
        raise LabelError(f"extra labels must be a list of names; got {shown(given)}.")
    else:
        entries = [_Entry(f"extra label {i}", name) for i, name in enumerate(given, 1)]
    taken = {each.casefold(): label.name for label in label_set for each in label.phrases}
    taken |= {name.casefold(): name for name in label_set.names}
    names: dict[str, str] = {}
    for entry in entries:
        name = one_text(entry.name, entry.where, "name")
        if entry.phrases is not None:
            raise LabelError(f"{entry.where}: extra label {shown(name)} cannot have phrases.")
        if name.casefold() in taken:
            raise LabelError(
                f"{entry.where}: extra label {shown(name)} equals a name or phrase of the label "
                f"{shown(taken[name.casefold()])}; leave it out."
            )
        if name in names:
            raise LabelError(
                f"{entry.where}: extra label {shown(name)} is also given at {names[name]}."
            )
        names[name] = entry.where
    if not names:
        raise LabelError("there are no extra labels; name at least one.")
    return tuple(names)


def read_labels(path: str | Path) -> LabelSet:
    """Labels from a file.

    A text file has one label per line, ``name`` or ``name: phrase; phrase``; blank lines and lines
    that begin with ``# `` are skipped. JSON and YAML hold a list of names, or a mapping of names to
    one or several phrases. CSV and TSV files have a column ``label`` or ``name``, and possibly one
    ``phrases``, with ``;`` between them.
    """
    path = Path(path)
    return _validated(_file_entries(path), path.name)


def _file_entries(path: Path) -> list[_Entry]:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise LabelError(f"there is no label file {path}.") from None
    except (OSError, UnicodeDecodeError) as error:
        raise LabelError(f"{path} cannot be read as UTF-8 text: {error}.") from error
    return _text_entries(text, path)


def _text_entries(text: str, path: Path) -> list[_Entry]:
    """Labels from the content of a file; the ending of its name is its format."""
    ending = path.suffix.lower()
    if ending in (".csv", ".tsv"):
        return _table_entries(text, path.name)
    if ending not in _VALUE_ENDINGS:
        return [
            _line_entry(f"{path.name} line {number}", line)
            for number, line in enumerate(text.splitlines(), 1)
            if line.strip() and line.strip() != "#" and not line.lstrip().startswith("# ")
        ]
    value = _parse(text, path)
    if isinstance(value, _Pairs):
        return _mapping_entries(value, path.name)
    if isinstance(value, list):
        return [_Entry(f"{path.name} entry {i}", name) for i, name in enumerate(value, 1)]
    raise LabelError(f"{path.name} must hold a list of names or a mapping of names to phrases.")


def labels_as_text(labels: LabelSet, ending: str) -> str:
    """Content of a label file of a format, such as ``.yaml``, that is read as these labels.

    Examples
    --------
    >>> from ulr.labels import as_label_set, labels_as_text
    >>> print(labels_as_text(as_label_set({"money": ["billing", "refund"]} | {"a": "a"}), ".txt"))
    money: billing; refund
    a
    <BLANKLINE>
    """
    values = {each.name: list(each.phrases) for each in labels}
    if ending == ".json":
        text = json.dumps(values, indent=1, ensure_ascii=False) + "\n"
    elif ending in _VALUE_ENDINGS:
        text = yaml.safe_dump(values, allow_unicode=True, sort_keys=False)
    elif ending in (".csv", ".tsv"):
        table = io.StringIO()
        writer = csv.writer(table, delimiter="," if ending == ".csv" else "\t", lineterminator="\n")
        writer.writerow(["label", "phrases"])
        writer.writerows([name, "; ".join(phrases)] for name, phrases in values.items())
        text = table.getvalue()
    else:
        lines = [
            name if phrases == [name] else f"{name}: {'; '.join(phrases)}"
            for name, phrases in values.items()
        ]
        text = "\n".join(lines) + "\n"
    if _read_back(text, ending) != labels:
        raise LabelError(
            f"some label or phrase has a character that {ending} files give another meaning; write "
            "the labels as .json or .yaml."
        )
    return text


def _read_back(text: str, ending: str) -> LabelSet | None:
    try:
        return _validated(_text_entries(text, Path(f"labels{ending}")))
    except LabelError:
        return None


def _line_entry(where: str, line: str) -> _Entry:
    name, colon, phrases = line.partition(":")
    return _Entry(where, name, phrases.split(";") if colon else None)


def _mapping_entries(items: Iterable[tuple[Any, Any]], source: str) -> list[_Entry]:
    return [
        _Entry(f"{source} entry {i}", name, [phrases] if isinstance(phrases, str) else phrases)
        for i, (name, phrases) in enumerate(items, 1)
    ]


def _table_entries(text: str, source: str) -> list[_Entry]:
    """Labels from a CSV file with a header."""
    first = text.partition("\n")[0]
    delimiter = max(",;\t", key=first.count)
    try:
        reader = csv.reader(io.StringIO(text), delimiter=delimiter, strict=True)
        rows = [(reader.line_num, fields) for fields in reader if any(fields)]
    except csv.Error as error:
        raise LabelError(f"{source} is not CSV: {error}.") from None
    header = [field.strip().lower() for field in rows[0][1]] if rows else []
    name = next((header.index(each) for each in ("label", "name") if each in header), None)
    if name is None:
        raise LabelError(
            f"{source} needs a header with a column 'label' (or 'name') and possibly one 'phrases'; "
            f"its first line is {shown(first)}."
        )
    phrases = next((header.index(each) for each in ("phrases", "phrase") if each in header), None)
    entries = []
    for line, fields in rows[1:]:
        if len(fields) != len(header):
            raise LabelError(
                f"{source} line {line} has {len(fields)} fields, but {len(header)} were expected."
            )
        own = "" if phrases is None else fields[phrases].strip()
        entries.append(
            _Entry(f"{source} line {line}", fields[name], own.split(";") if own else None)
        )
    return entries


class _Pairs(list[tuple[Any, Any]]):
    """A mapping as its pairs, so that a name that is given twice is not lost."""


def _parse(text: str, path: Path) -> Any:
    """The value of a JSON or YAML file; mappings are `_Pairs`, scalars of YAML are texts."""
    try:
        if path.suffix.lower() == ".json":
            return json.loads(text, object_pairs_hook=_Pairs)
        # The base loader reads every scalar as text, so that the label `no` stays "no". Aliases
        # can expand a small file without bound.
        if any(isinstance(event, yaml.AliasEvent) for event in yaml.parse(text, yaml.BaseLoader)):
            raise ValueError("a label file cannot use YAML aliases")
        node = yaml.compose(text, yaml.BaseLoader)
        value_of = partial(yaml.BaseLoader("").construct_object, deep=True)
        if isinstance(node, yaml.MappingNode):
            return _Pairs((value_of(key), value_of(item)) for key, item in node.value)
        return None if node is None else value_of(node)
    except json.JSONDecodeError as error:
        raise LabelError(f"{path.name} line {error.lineno} is not JSON: {error.msg}.") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f" line {mark.line + 1}" if mark is not None else ""
        problem = getattr(error, "problem", None) or error
        raise LabelError(f"{path.name}{line} is not YAML: {problem}.") from None
    except (ValueError, RecursionError) as error:
        raise LabelError(f"{path.name} cannot be read: {str(error)[:_SHOWN]}.") from None


def _validated(entries: list[_Entry], source: str | None = None) -> LabelSet:
    """The only place where labels are validated."""
    labels: list[Label] = []
    names: dict[str, str] = {}
    owners: dict[str, tuple[str, str]] = {}
    for entry in entries:
        name = one_text(entry.name, entry.where, "name")
        if name in names:
            raise LabelError(
                f"{entry.where}: label {shown(name)} is already given at {names[name]}."
            )
        names[name] = entry.where
        phrases = _phrases(entry, name)
        for phrase in phrases:
            if phrase in owners:
                owner, where = owners[phrase]
                raise LabelError(
                    f"{entry.where}: phrase {shown(phrase)} of label {shown(name)} is already given for "
                    f"label {shown(owner)} at {where}."
                )
            owners[phrase] = (name, entry.where)
        labels.append(Label(name, phrases))
    if len(labels) < 2:
        place = f"{source} has" if source else "there is"
        only = f"only one, {shown(labels[0].name)} ({entries[0].where})" if labels else "none"
        raise LabelError(f"at least 2 labels are needed; {place} {only}.")
    return LabelSet(tuple(labels))


def _phrases(entry: _Entry, name: str) -> tuple[str, ...]:
    if entry.phrases is None:
        return (name,)
    if not isinstance(entry.phrases, list | tuple) or isinstance(entry.phrases, _Pairs):
        raise LabelError(
            f"{entry.where}: the phrases of label {shown(name)} must be a text or a list of texts; got "
            f"{shown(entry.phrases)}."
        )
    if not entry.phrases:
        raise LabelError(f"{entry.where}: label {shown(name)} has no phrases.")
    return tuple(
        one_text(phrase, entry.where, f"phrase of {shown(name)}") for phrase in entry.phrases
    )


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
    return " ".join(value.split())


def shown(value: Any) -> str:
    """A value for a message, cut to a bounded length."""
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # an integer of many digits, or deep nesting
        text = f"a value of type {type(value).__name__}"
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"
