"""Texts with the labels that people gave them in an annotation tool."""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple, Self

from ulr.errors import TableError
from ulr.files import atomic_file, check_destination, open_bytes


class Corrections(NamedTuple):
    """Texts with the labels that people gave them, for ``clf.correct(*corrections)``."""

    texts: list[str]
    labels: list[str]

    def save(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write a CSV file with the columns ``text`` and ``label``, for the option ``--examples``."""
        if Path(path).suffix != ".csv":
            raise TableError(f"{path} must end in .csv.")
        check_destination(Path(path), overwrite, TableError, "overwrite=True")
        content = io.StringIO(newline="")
        csv.writer(content).writerows([("text", "label"), *zip(*self, strict=True)])
        with atomic_file(path) as file:
            file.write(content.getvalue().encode())

    @classmethod
    def of(cls, answers: Iterable[tuple[str, Iterable[str]]], source: str) -> Self:
        """One label for each text, from the labels that different people gave it.

        The most frequent one counts. Texts without a label, or with two that are equally frequent,
        are left out. Errors name the `source`.
        """
        counts: dict[str, Counter[str]] = {}
        try:
            for text, labels in answers:
                counts.setdefault("" + text, Counter()).update(labels)
        except (KeyError, TypeError, AttributeError) as error:
            reason = f"no {error}" if isinstance(error, KeyError) else "another form of records"
            raise TableError(
                f"{source} cannot be read as an export of texts: it has {reason}."
            ) from None
        found = []
        for text, count in counts.items():
            best = count.most_common(2)
            if best and (len(best) == 1 or best[0][1] > best[1][1]):
                found.append((text, best[0][0]))
        if not found:
            raise TableError(f"{source} has no text with one label that most people gave it.")
        texts, labels = zip(*found, strict=True)
        return cls(list(texts), list(labels))


def read_json(path: str | Path) -> list[Any]:
    """The records of a JSON or JSONL file."""
    with open_bytes(path) as file:
        content = file.read()
    try:
        text = content.decode("utf-8-sig")
        if text.lstrip()[:1] == "[":
            return list(json.loads(text))
        return [json.loads(line) for line in text.splitlines() if line.strip()]
    except (ValueError, RecursionError):
        raise TableError(f"{path} is no list of records in JSON.") from None


def write_json(path: str | Path, records: list[Any], *, lines: bool, overwrite: bool) -> None:
    """Write records as one list in JSON, or as one line each."""
    check_destination(Path(path), overwrite, TableError, "overwrite=True")
    if lines:
        text = "".join(json.dumps(each, ensure_ascii=False) + "\n" for each in records)
    else:
        text = json.dumps(records, ensure_ascii=False, indent=1) + "\n"
    with atomic_file(path) as file:
        file.write(text.encode())
