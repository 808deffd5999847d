"""Labels: the names that come out, and the phrases that are encoded for each.

Read from a list, a mapping, a line of text or a file. Every error names the line or the place
in the list. Encoding the phrases is the classifier's.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from ulr.errors import LabelError

_FILE_ENDINGS = (".txt", ".json", ".yaml", ".yml")


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
        """What comes out."""
        return tuple(label.name for label in self.labels)

    def phrases(self, template: str | None = None) -> list[list[str]]:
        """What is encoded: the phrases of each label, each inside the template if there is one."""
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
    """A label as found, before it is checked: any values, and where they stand."""

    where: str
    name: Any
    phrases: Any


def as_label_set(given: Any) -> LabelSet:
    """Labels from whatever a user has.

    Parameters
    ----------
    given
        A list of names; a mapping of names to one phrase or several; a `Path` of a file; or a
        `LabelSet`.

    Raises
    ------
    LabelError
        When a name is empty or given twice, a phrase belongs to two labels, or there are fewer
        than two labels.
    """
    if isinstance(given, LabelSet):
        return given
    if isinstance(given, Path):
        return read_labels(given)
    if isinstance(given, str):
        raise LabelError(
            f"labels must be a list of names or a mapping; got the text {given!r}. "
            "Use ulr.labels.parse_labels for one line of names, read_labels for a file."
        )
    if isinstance(given, Mapping):
        return _checked(_mapping_entries(given.items(), "labels"))
    if isinstance(given, Iterable):
        return _checked([_Entry(f"label {i}", name, None) for i, name in enumerate(given, 1)])
    raise LabelError(f"labels must be a list of names or a mapping; got {type(given).__name__}.")


def parse_labels(text: str) -> LabelSet:
    """Labels from one line, ``world, sports, technology: science; computers``."""
    items = text.split(",")
    return _checked([_line_entry(f"label {i}", item) for i, item in enumerate(items, 1)])


def labels_from_argument(value: str) -> LabelSet:
    """Labels from a command-line argument: the name of a file, or the labels themselves."""
    return read_labels(value) if is_label_file(value) else parse_labels(value)


def is_label_file(value: str) -> bool:
    """Whether a command-line argument names a file rather than the labels themselves."""
    try:
        return value.lower().endswith(_FILE_ENDINGS) or Path(value).is_file()
    except OSError:  # a list of labels can be longer than any file's name
        return False


def extra_labels(given: Any, label_set: LabelSet) -> tuple[str, ...]:
    """Further names that take part in a refinement and are never predicted.

    Parameters
    ----------
    given
        A list of names, or a `Path` of a file as for labels.
    label_set
        The labels, none of whose names or phrases may be among them.
    """
    if isinstance(given, Path):
        found = entries_with_places(given)
    elif isinstance(given, str) or not isinstance(given, Iterable):
        raise LabelError(f"extra labels must be a list of names; got {given!r}.")
    else:
        found = [(f"extra label {i}", name) for i, name in enumerate(given, 1)]
    taken = {each.casefold(): label.name for label in label_set for each in label.phrases}
    taken |= {name.casefold(): name for name in label_set.names}
    names: dict[str, str] = {}
    for where, value in found:
        name = one_text(value, where, "name")
        if name.casefold() in taken:
            raise LabelError(
                f"{where}: extra label {name!r} equals a name or phrase of the label "
                f"{taken[name.casefold()]!r}; leave it out."
            )
        if name in names:
            raise LabelError(f"{where}: extra label {name!r} is already given at {names[name]}.")
        names[name] = where
    if not names:
        raise LabelError("there are no extra labels; name at least one.")
    return tuple(names)


def read_labels(path: str | Path) -> LabelSet:
    """Labels from a file.

    A text file has one label a line, ``name`` or ``name: phrase; phrase``; blank lines and lines
    that begin with ``# `` are passed over. JSON and YAML hold a list of names, or a mapping of
    names to one phrase or several.
    """
    path = Path(path)
    text, ending = _read_text(path), path.suffix.lower()
    if ending == ".json":
        entries = _json_entries(text, path.name)
    elif ending in (".yaml", ".yml"):
        entries = _yaml_entries(text, path.name)
    else:
        entries = [_line_entry(where, line) for where, line in _lines(text, path.name)]
    return _checked(entries, path.name)


def entries_with_places(path: Path) -> list[tuple[str, Any]]:
    """What a file lists and where each stands: a text file's lines, JSON's or YAML's items."""
    text, ending = _read_text(path), path.suffix.lower()
    if ending not in (".json", ".yaml", ".yml"):
        return list(_lines(text, path.name))
    entries = (_json_entries if ending == ".json" else _yaml_entries)(text, path.name)
    if any(entry.phrases is not None for entry in entries):
        raise LabelError(f"{path.name} must hold a list; it holds a mapping.")
    return [(entry.where, entry.name) for entry in entries]


def _read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise LabelError(f"there is no label file {path}.") from None
    except (OSError, UnicodeDecodeError) as error:
        raise LabelError(f"{path} cannot be read as UTF-8 text: {error}.") from error


def _lines(text: str, source: str) -> Iterator[tuple[str, str]]:
    """The lines that say something, and where they stand."""
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip() and line.strip() != "#" and not line.lstrip().startswith("# "):
            yield f"{source} line {number}", line


def _line_entry(where: str, line: str) -> _Entry:
    name, colon, phrases = line.partition(":")
    return _Entry(where, name, phrases.split(";") if colon else None)


def _mapping_entries(items: Iterable[tuple[Any, Any]], source: str) -> list[_Entry]:
    return [
        _Entry(f"{source} entry {i}", name, [phrases] if isinstance(phrases, str) else phrases)
        for i, (name, phrases) in enumerate(items, 1)
    ]


def _json_entries(text: str, source: str) -> list[_Entry]:
    try:
        # Pairs rather than a dict, which would drop the first of two equal names in silence.
        value = json.loads(text, object_pairs_hook=_Pairs)
    except json.JSONDecodeError as error:
        raise LabelError(f"{source} line {error.lineno} is not JSON: {error.msg}.") from error
    # JSON is YAML but for tabs, so the YAML reader knows which line each entry stands on.
    try:
        lines = _entry_lines(_yaml_node(text.replace("\t", " "), source))
    except LabelError:  # and but for rarities, such as a name of more than 1,024 characters
        lines = None
    return _entries_at_lines(value, lines, source)


def _yaml_entries(text: str, source: str) -> list[_Entry]:
    node = _yaml_node(text, source)
    try:
        value = _yaml_value(node)
    except yaml.YAMLError as error:
        raise _not_yaml(error, source) from error
    return _entries_at_lines(value, _entry_lines(node), source)


def _yaml_value(node: yaml.Node | None) -> Any:
    # The base constructor reads every scalar as text, so that the label `no` stays "no".
    loader = yaml.BaseLoader("")
    if isinstance(node, yaml.MappingNode):
        return _Pairs(
            (loader.construct_object(key, deep=True), loader.construct_object(item, deep=True))
            for key, item in node.value
        )
    return None if node is None else loader.construct_object(node, deep=True)


class _Pairs(list[tuple[Any, Any]]):
    """A mapping as its pairs, equal names included."""


def _yaml_node(text: str, source: str) -> yaml.Node | None:
    try:
        return yaml.compose(text, Loader=yaml.BaseLoader)
    except yaml.YAMLError as error:
        raise _not_yaml(error, source) from error


def _not_yaml(error: yaml.YAMLError, source: str) -> LabelError:
    mark = getattr(error, "problem_mark", None)
    line = f" line {mark.line + 1}" if mark is not None else ""
    problem = getattr(error, "problem", None) or error
    return LabelError(f"{source}{line} is not YAML: {problem}.")


def _entry_lines(node: yaml.Node | None) -> list[int]:
    if isinstance(node, yaml.MappingNode):
        return [key.start_mark.line + 1 for key, _ in node.value]
    if isinstance(node, yaml.SequenceNode):
        return [item.start_mark.line + 1 for item in node.value]
    return []


def _entries_at_lines(value: Any, lines: list[int] | None, source: str) -> list[_Entry]:
    if isinstance(value, _Pairs):
        entries = _mapping_entries(value, source)
    elif isinstance(value, list):
        entries = [_Entry(f"{source} entry {i}", name, None) for i, name in enumerate(value, 1)]
    else:
        raise LabelError(f"{source} must hold a list of names or a mapping of names to phrases.")
    if lines is None:
        return entries
    return [
        _Entry(f"{source} line {line}", entry.name, entry.phrases)
        for line, entry in zip(lines, entries, strict=True)
    ]


def _checked(entries: list[_Entry], source: str | None = None) -> LabelSet:
    """The one place where labels are checked."""
    labels: list[Label] = []
    names: dict[str, str] = {}
    owners: dict[str, tuple[str, str]] = {}
    for entry in entries:
        name = one_text(entry.name, entry.where, "name")
        if name in names:
            raise LabelError(f"{entry.where}: label {name!r} is already given at {names[name]}.")
        names[name] = entry.where
        phrases = _phrases(entry, name)
        for phrase in phrases:
            if phrase in owners:
                owner, where = owners[phrase]
                raise LabelError(
                    f"{entry.where}: phrase {phrase!r} of label {name!r} is already given for "
                    f"label {owner!r} at {where}."
                )
            owners[phrase] = (name, entry.where)
        labels.append(Label(name, phrases))
    if len(labels) < 2:
        place = f"{source} has" if source else "there is"
        only = f"only one, {labels[0].name!r} ({entries[0].where})" if labels else "none"
        raise LabelError(f"at least 2 labels are needed; {place} {only}.")
    return LabelSet(tuple(labels))


def _phrases(entry: _Entry, name: str) -> tuple[str, ...]:
    if entry.phrases is None:
        return (name,)
    if not isinstance(entry.phrases, list | tuple) or isinstance(entry.phrases, _Pairs):
        raise LabelError(
            f"{entry.where}: the phrases of label {name!r} must be a text or a list of texts; "
            f"got {entry.phrases!r}."
        )
    if not entry.phrases:
        raise LabelError(f"{entry.where}: label {name!r} has no phrases.")
    return tuple(one_text(phrase, entry.where, f"phrase of {name!r}") for phrase in entry.phrases)


def one_text(value: Any, where: str, what: str) -> str:
    """A name or phrase, its blanks made plain; an error says where it stands and what it is."""
    if not isinstance(value, str):
        raise LabelError(f"{where}: a {what} must be a text; got {value!r}.")
    if not value.strip():
        raise LabelError(f"{where}: a {what} is empty.")
    if any("\ud800" <= character <= "\udfff" for character in value):
        raise LabelError(f"{where}: a {what} holds half a character, {value!r}; write it anew.")
    return " ".join(value.split())
