"""Where the documents of the paper's datasets lie in a folder, and how each layout is read.

The official archives are read in place or unpacked, and samples as JSON lines, ``{"label": ...,
"text": ...}``, from a folder with the dataset's short name. Counting and checking is `datasets`'
part.
"""

from __future__ import annotations

import contextlib
import csv
import io
import json
import re
import tarfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Any

from ulr.errors import ExperimentError

FULL, TITLES = "full", "titles"

LabelledText = tuple[int, str]
_ALIASES = {"scienceortechnology": "scitech"}
# Rows of a sample that are flagged as being among the test documents too.
_IN_TEST = re.compile(r"in_(\w+_)?test")


@dataclass(frozen=True)
class Place:
    """Documents that were found.

    Attributes
    ----------
    source
        The file, relative to the data folder; ``archive:member`` inside an archive.
    documents
        Label index and text of each, read as they are taken.
    """

    source: str
    documents: Iterator[LabelledText]


@dataclass(frozen=True)
class CsvDistribution:
    """Topic sets of Zhang, Zhao and LeCun: ``train.csv`` and ``test.csv``, classes from 1.

    Attributes
    ----------
    folder
        What the archive unpacks to; the archive is called the same, with ``.tar.gz``.
    short
        The folder of samples.
    origin
        Where the archive comes from, in words.
    labels
        Names of the classes, in order.
    columns
        For each variant, the places of the fields that make up a document.
    n_fields
        How many fields a row has, the class included.
    escaped_lines
        Whether line breaks are written as a backslash and an n.
    """

    folder: str
    short: str
    origin: str
    labels: tuple[str, ...]
    columns: dict[str, tuple[int, ...]]
    n_fields: int
    escaped_lines: bool = False

    @property
    def archive(self) -> str:
        """The file name of the official distribution."""
        return f"{self.folder}.tar.gz"

    @property
    def variants(self) -> tuple[str, ...]:
        """What documents can be made of."""
        return tuple(self.columns)

    def official(self, data: Path, split: str, variant: str) -> Place | None:
        """The whole split, unpacked or in the archive."""
        for folder in (self.folder, self.short):
            path, source = data / folder / f"{split}.csv", f"{folder}/{split}.csv"
            if path.is_file():
                return Place(source, self._in_file(path, source, variant))
        if (data / self.archive).is_file():
            source = f"{self.archive}:{split}.csv"
            return Place(source, self._in_archive(data / self.archive, split, source, variant))
        return None

    def sample(self, data: Path, split: str, variant: str) -> Place | None:
        """A part of the split, as JSON lines."""
        stem = split if variant == FULL else f"{split}_{variant}"
        return _json_place(data, self.short, stem, self.labels)

    def _in_file(self, path: Path, source: str, variant: str) -> Iterator[LabelledText]:
        with _readable(source), path.open("rb") as file:
            yield from self._documents(file, source, variant)

    def _in_archive(
        self, archive: Path, split: str, source: str, variant: str
    ) -> Iterator[LabelledText]:
        with _readable(source), tarfile.open(archive, "r:gz") as members:
            for member, file in _files(members):
                if member.name == f"{split}.csv":
                    yield from self._documents(file, source, variant)
                    return
        raise ExperimentError(
            f"{archive.name} holds no {split}.csv; it must be the archive of {self.origin}."
        )

    def _documents(self, file: IO[bytes], source: str, variant: str) -> Iterator[LabelledText]:
        with io.TextIOWrapper(file, encoding="utf-8-sig", newline="") as lines:
            for line, row in _csv_rows(lines, source):
                self._check(row, f"{source} line {line}")
                text = " ".join(row[column] for column in self.columns[variant] if row[column])
                yield int(row[0]) - 1, text.replace("\\n", "\n") if self.escaped_lines else text

    def _check(self, row: list[str], where: str) -> None:
        if len(row) != self.n_fields:
            raise ExperimentError(
                f"{where} has {len(row)} fields, but {self.n_fields} were expected."
            )
        if not (row[0].isdecimal() and 1 <= int(row[0]) <= len(self.labels)):
            raise ExperimentError(
                f"{where}: the class must be a number from 1 to {len(self.labels)}; "
                f"got {row[0][:40]!r}."
            )


@dataclass(frozen=True)
class NewsgroupDistribution:
    """20 Newsgroups by date: a folder a split, a folder a group, a file a post.

    Of a post's headers, only the subject is part of its text.
    """

    folder: str
    short: str
    origin: str
    labels: tuple[str, ...]
    variants: tuple[str, ...] = (FULL,)

    @property
    def archive(self) -> str:
        """The file name of the official distribution."""
        return f"{self.folder}.tar.gz"

    def official(self, data: Path, split: str, variant: str) -> Place | None:
        """The whole split, unpacked or in the archive."""
        name = f"{self.folder}-{split}"
        for source in (name, f"{self.folder}/{name}"):
            if (data / source).is_dir():
                return Place(source, self._sorted(_unpacked_posts(data / source), source))
        if (data / self.archive).is_file():
            source = f"{self.archive}:{name}"
            posts = _packed_posts(data / self.archive, name, source)
            return Place(source, self._sorted(posts, source))
        return None

    def sample(self, data: Path, split: str, variant: str) -> Place | None:
        """The split or a part of it, as JSON lines of raw posts."""
        place = _json_place(data, self.short, split, self.labels)
        if place is None:
            return None
        documents = ((label, subject_and_body(post)) for label, post in place.documents)
        return Place(place.source, documents)

    def _sorted(
        self, posts: Iterator[tuple[str, str, bytes]], source: str
    ) -> Iterator[LabelledText]:
        with _readable(source):
            for group, name, post in sorted(posts):
                if group not in self.labels:
                    raise ExperimentError(
                        f"{source} holds {group}/{name}, but {group!r} is no newsgroup of "
                        f"{self.origin}."
                    )
                # Every byte is a character of Latin-1, which the posts are read as everywhere.
                yield self.labels.index(group), subject_and_body(post.decode("latin-1"))


Distribution = CsvDistribution | NewsgroupDistribution


def subject_and_body(post: str) -> str:
    """A newsgroup post without its headers but for the subject line."""
    headers, _, body = post.partition("\n\n")
    subject = re.search(r"^Subject:(.*(?:\n[ \t].*)*)", headers, re.MULTILINE)
    return f"{subject.group(1).strip() if subject else ''}\n{body}"


def _unpacked_posts(folder: Path) -> Iterator[tuple[str, str, bytes]]:
    for path in folder.glob("*/*"):
        if path.is_file() and not path.name.startswith("."):
            yield path.parent.name, path.name, path.read_bytes()


def _packed_posts(archive: Path, folder: str, source: str) -> Iterator[tuple[str, str, bytes]]:
    with _readable(source), tarfile.open(archive, "r:gz") as members:
        for member, file in _files(members):
            if folder in member.parts[:-2]:
                yield member.parts[-2], member.name, file.read()


def _files(archive: tarfile.TarFile) -> Iterator[tuple[PurePosixPath, IO[bytes]]]:
    """The files of an archive in its own order, without those that begin with a dot."""
    for member in archive:
        file = archive.extractfile(member) if member.isfile() else None
        if file is not None and not PurePosixPath(member.name).name.startswith("."):
            yield PurePosixPath(member.name), file


def _csv_rows(lines: IO[str], source: str) -> Iterator[tuple[int, list[str]]]:
    """Rows, each with the line it begins on; blank lines are passed over."""
    reader = csv.reader(lines, strict=True)
    line = 1
    try:
        for row in reader:
            if row:
                yield line, row
            line = reader.line_num + 1
    except csv.Error as error:
        raise ExperimentError(
            f"{source}: the row that begins on line {line} is broken: {error}."
        ) from None


def _json_place(data: Path, short: str, stem: str, labels: tuple[str, ...]) -> Place | None:
    """The file of a name with or without its number of rows, the largest number first."""
    pattern = re.compile(rf"{stem}(?:_(\d+))?\.jsonl")
    found = [
        (match[1] is None, int(match[1] or 0), path)
        for path in sorted((data / short).glob("*.jsonl"))
        if (match := pattern.fullmatch(path.name))
    ]
    if not found:
        return None
    path = max(found)[2]
    source = f"{short}/{path.name}"
    return Place(source, _json_documents(path, source, labels))


def _json_documents(path: Path, source: str, labels: tuple[str, ...]) -> Iterator[LabelledText]:
    numbers = {_plain(label): number for number, label in enumerate(labels)}
    with _readable(source), path.open(encoding="utf-8-sig") as lines:
        for line, content in enumerate(lines, 1):
            if not content.strip():
                continue
            record = _json_record(content, f"{source} line {line}")
            label = _plain(record["label"])
            label = _ALIASES.get(label, label)
            if label not in numbers:
                raise ExperimentError(
                    f"{source} line {line}: the label must be one of {', '.join(labels)}; "
                    f"got {record['label'][:40]!r}."
                )
            if not any(flag is True and _IN_TEST.fullmatch(key) for key, flag in record.items()):
                yield numbers[label], record["text"]


def _json_record(content: str, where: str) -> dict[str, Any]:
    try:
        record = json.loads(content)
    except (ValueError, RecursionError) as error:
        reason = error.msg if isinstance(error, json.JSONDecodeError) else error
        raise ExperimentError(f"{where} is not JSON: {reason}.") from None
    if not isinstance(record, dict) or not all(
        isinstance(record.get(key), str) for key in ("label", "text")
    ):
        raise ExperimentError(f"{where} must be a JSON object with the texts 'label' and 'text'.")
    return record


def _plain(label: str) -> str:
    """A label's letters and digits, so that ``WrittenWork`` is ``Written Work``."""
    return re.sub(r"[^a-z0-9]", "", label.casefold())


@contextlib.contextmanager
def _readable(source: str) -> Iterator[None]:
    """Turn what the readers raise for a bad file into one sentence."""
    try:
        yield
    except UnicodeError:
        raise ExperimentError(
            f"{source} is not UTF-8; the official file is, so fetch it anew."
        ) from None
    except (tarfile.TarError, zlib.error, EOFError) as error:
        raise ExperimentError(f"{source} is damaged: {error}; fetch the archive anew.") from None
    except OSError as error:
        raise ExperimentError(f"{source} cannot be read: {error.strerror or error}.") from None
