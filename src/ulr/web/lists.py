"""Reads lists of labels that are pasted in the forms in which people have them."""

from __future__ import annotations

import re

from ulr.errors import LabelError
from ulr.labels import Label

_BULLET = re.compile(r"^\s*(?:[-*•]|\d+[.)])\s+")


def labels_of_list(text: str) -> list[Label]:
    """Labels between commas, semicolons, tabs or line breaks; of a name given twice, the last.

    Of several lines, one with a colon or tab is a label with its phrases. A single line
    ``a, b: x; y, c`` is three labels, as on the command line.
    """
    lines = [_BULLET.sub("", line) for line in text.strip().splitlines()]
    found: dict[str, Label] = {}
    for line in lines:
        name, mark, phrases = re.split(r"([:\t]|$)", line, maxsplit=1)
        if len(lines) > 1 and phrases.strip() and not re.search("[,;]", name):
            items = [(name, phrases.split(";" if ";" in phrases else ","))]
        else:
            parts = re.split(r"[,\t]" if mark == ":" else r"[,;\t]", line)
            split = (part.partition(":") for part in parts)
            items = [(part, own.split(";")) for part, _, own in split]
        for given, described in items:
            name = " ".join(given.split())
            own = [" ".join(each.split()) for each in described if each.strip()]
            if name:
                found[name] = Label(name, tuple(own or [name]))
    if not found:
        raise LabelError("there is no label in this list; write names with commas between them.")
    return list(found.values())
