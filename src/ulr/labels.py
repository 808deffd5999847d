"""Labels: the names that are predicted, and the phrases that are encoded for each.

Read from a list, a mapping, a line of text or a file. Every error names the line or the place in the
list.
"""

from __future__ import annotations

import csv
import io
import json
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml

from ulr.errors import LabelError
from ulr.label_files import (
    MOST_LETTERS,
    VALUE_ENDINGS,
    Entry,
    Pairs,
    file_entries,
    line_entry,
    mapping_entries,
    one_text,
    shown,
    text_entries,
)
from ulr.label_tree import LabelTree, is_path, parts_of

LABEL_FILE_ENDINGS = (".txt", ".csv", ".tsv", *VALUE_ENDINGS)

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
    notes: tuple[str, ...] = field(default=(), compare=False)  # what a file has that is not used

    def __len__(self) -> int:
        return len(self.labels)

    def __iter__(self) -> Iterator[Label]:
        return iter(self.labels)

    @property
    def names(self) -> tuple[str, ...]:
        """The names."""
        return tuple(label.name for label in self.labels)

    @cached_property
    def tree(self) -> LabelTree | None:
        """The tree that the names form; None where no name is a path such as ``sport > tennis``."""
        return LabelTree.of(self.names)

    def phrases(self, template: str | None = None) -> list[list[str]]:
        """The phrases of each label, each inside the template if there is one."""
        return [[in_template(phrase, template) for phrase in each.phrases] for each in self.labels]


def in_template(phrase: str, template: str | None) -> str:
    """A phrase inside the sentence that is put around every phrase, if there is one."""
    if template is None:
        return phrase
    if not isinstance(template, str) or "{}" not in template:
        raise LabelError(
            f"a template must contain {{}} where the phrase goes; got {shown(template)}."
        )
    if len(template) > MOST_LETTERS:
        raise LabelError(f"a template can have at most {MOST_LETTERS:,} letters.")
    return template.replace("{}", phrase)


def as_label_set(given: Any) -> LabelSet:
    """Labels from a list of names, a mapping of names to one or several phrases, or a file's `Path`.

    A mapping within a mapping is a subtree. So is a name such as ``sport > tennis``.

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
        return _validated(mapping_entries(given.items(), "labels"))
    if isinstance(given, Iterable):
        return _validated([Entry(f"label {i}", name) for i, name in enumerate(given, 1)])
    raise LabelError(f"labels must be a list of names or a mapping; got {type(given).__name__}.")


def labels_from_arguments(values: Iterable[str]) -> LabelSet:
    """Labels from command-line arguments, which add up.

    Each is the name of a file, or a line ``world, sports, technology: science; computers``, see
    `split_labels`.
    """
    entries: list[Entry] = []
    notes: list[str] = []
    for value in values:
        if is_label_file(value):
            entries += file_entries(Path(value), notes)
        else:
            for item in split_labels(value):
                entries.append(line_entry(f"label {len(entries) + 1}", item))
    return _validated(entries, notes=notes)


def split_labels(value: str) -> list[str]:
    """The labels of a command-line argument: commas or line ends are between them.

    Semicolons are too if there is no comma, and either no label has phrases or all have.

    Examples
    --------
    >>> from ulr.labels import split_labels
    >>> split_labels("world; sports")
    ['world', ' sports']
    >>> split_labels("world, technology: science; computers")
    ['world', ' technology: science; computers']
    """
    value = value.strip().rstrip(",;")
    if "," not in value and "\n" not in value:
        parts = value.split(";")
        if len({":" in part for part in parts}) == 1:
            return parts
    return re.split(r"\s*[,;]?\s*\n\s*|,", value)


def is_label_file(value: str) -> bool:
    """Whether a command-line argument names a file rather than the labels themselves."""
    try:
        is_file = os.path.isfile(value)
    except ValueError:  # a null byte
        return False
    return is_file or ("\n" not in value and value.lower().endswith(LABEL_FILE_ENDINGS))


def check_extra_labels(given: Any, label_set: LabelSet) -> tuple[str, ...]:
    """Further names that take part and are never predicted: a list, or a `Path` of a file.

    None of them may be a name or phrase of a label.
    """
    if isinstance(given, Path):
        entries = file_entries(given, [])
    elif isinstance(given, str) or not isinstance(given, Iterable):
        raise LabelError(f"extra labels must be a list of names; got {shown(given)}.")
    else:
        entries = [Entry(f"extra label {i}", name) for i, name in enumerate(given, 1)]
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
    one or several phrases, or to a mapping of the labels below, or a list of objects. CSV and TSV
    files, and such objects, have a column ``label`` or ``name``, and possibly ``phrases``,
    ``description``, ``definition``, ``keywords``, ``synonyms`` or ``examples``, with ``;`` between
    several. ``notes`` name other columns.
    """
    path, notes = Path(path), list[str]()
    return _validated(file_entries(path, notes), path.name, notes)


def parse_labels(text: str, file_name: str) -> LabelSet:
    """Labels from the content of a label file, whose format is that of the ending of its name.

    Examples
    --------
    >>> from ulr.labels import parse_labels
    >>> parse_labels('{"money": ["refund", "billing"], "parcel": "delivery"}', "l.json").phrases()
    [['refund', 'billing'], ['delivery']]
    """
    notes = list[str]()
    return _validated(text_entries(text, Path(file_name), notes), file_name, notes)


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
    elif ending in VALUE_ENDINGS:
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
    again: LabelSet | None = None
    with suppress(LabelError):
        again = _validated(text_entries(text, Path(f"labels{ending}"), []))
    if again != labels:
        raise LabelError(
            f"some label or phrase has a character that {ending} files give another meaning; write "
            "the labels as .json or .yaml."
        )
    return text


def _validated(
    entries: list[Entry], source: str | None = None, notes: Iterable[str] = ()
) -> LabelSet:
    """The only place where labels are validated."""
    labels: list[Label] = []
    names: dict[str, str] = {}
    owners: dict[str, tuple[str, str]] = {}
    checked = [_path(one_text(entry.name, entry.where, "name"), entry.where) for entry in entries]
    ends = Counter(parts_of(name)[i:] for name in checked for i in (-1, -2))
    for entry, name in zip(entries, checked, strict=True):
        if name in names:
            raise LabelError(
                f"{entry.where}: label {shown(name)} is already given at {names[name]}."
            )
        names[name] = entry.where
        phrases = _phrases(entry, name, ends)
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
    found = LabelSet(tuple(labels), tuple(notes))
    for inner in () if found.tree is None else found.tree.names[len(labels) :]:
        if inner in names:
            raise LabelError(
                f"{names[inner]}: label {shown(inner)} has labels below it, so that it is no label of "
                "its own; leave it out, documents can stay there."
            )
    return found


def _path(name: str, where: str) -> str:
    """A name whose parts, if it is a path, are not empty."""
    if is_path(name) and not all(parts_of(name)):
        raise LabelError(f"{where}: the path {shown(name)} has an empty part.")
    return name


def _phrases(entry: Entry, name: str, ends: Counter[tuple[str, ...]]) -> tuple[str, ...]:
    if entry.phrases is None:
        return _default_phrases(name, ends)
    if not isinstance(entry.phrases, list | tuple) or isinstance(entry.phrases, Pairs):
        raise LabelError(
            f"{entry.where}: the phrases of label {shown(name)} must be a text or a list of texts; got "
            f"{shown(entry.phrases)}."
        )
    if not entry.phrases:
        raise LabelError(f"{entry.where}: label {shown(name)} has no phrases.")
    return tuple(
        one_text(phrase, entry.where, f"phrase of {shown(name)}") for phrase in entry.phrases
    )


def _default_phrases(name: str, ends: Counter[tuple[str, ...]]) -> tuple[str, ...]:
    """The phrases of a label without its own: the end of its path, alone and with the one above.

    Both together are better than either alone (docs/trees.md). Ends that several paths have say too
    little; without any other, the whole path is the phrase.
    """
    path = parts_of(name)
    if len(path) == 1:
        return (name,)
    own = [path[i:] for i in (-1, -2) if ends[path[i:]] == 1]
    return tuple(" ".join(each) for each in own or [path])
