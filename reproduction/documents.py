"""Documents of the paper's datasets, read from a data folder.

The official archives are read in place or unpacked; samples are JSON lines with ``label`` and
``text`` in a folder with the name of the dataset.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import random
import re
import tarfile
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from reproduction.datasets import FULL, Dataset, ReproductionError, find_dataset

LabelledText = tuple[int, str]
Source = tuple[str, Iterator[LabelledText]]  # a file, relative to the data folder, and its rows
Files = Iterator[tuple[PurePosixPath, IO[bytes]]]

_ALIASES = {"scienceortechnology": "scitech"}
# Flags of rows of a sample that are test documents, too.
_IN_TEST = re.compile(r"in_(\w+_)?test")


@dataclass(frozen=True, eq=False)
class Documents:
    """Documents of one split of a dataset."""

    dataset: Dataset = field(repr=False)
    texts: list[str] = field(repr=False)  # in the order of the file
    truth: NDArray[np.intp] = field(repr=False)  # (n_documents,); -1 throughout if unlabelled
    source: str  # relative to the data folder; ``archive:member`` inside an archive
    official_rows: int  # of the official split; for ``unlabelled``, of the training set
    note: str  # ``whole test set``, or ``sample of 7,600 of 70,000``
    fingerprint: str  # SHA-256 of labels and texts; independent of the layout of the files

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the labels, in the official order."""
        return self.dataset.labels

    @property
    def rows(self) -> int:
        """Number of documents."""
        return len(self.texts)

    @property
    def is_sample(self) -> bool:
        """Whether these are fewer documents than those of the official split."""
        return self.rows < self.official_rows


def read_documents(
    name: str,
    data: Path,
    split: str = "test",
    variant: str = FULL,
    at_most: int | None = None,
    random_state: int = 1,
) -> Documents:
    """Read the documents of a dataset: the official files if they are there, else a sample.

    The split ``unlabelled`` has further texts of the same kind, or those of the training set. With
    `at_most`, a uniform sample of that size is drawn, and no other document is kept in memory.
    """
    dataset = find_dataset(name)
    source, found = _find(dataset, Path(data), split, variant)
    try:
        n_found, rows = _draw(found, at_most, random_state)
    except UnicodeError:
        raise ReproductionError(
            f"{source} is not UTF-8, but the official file is; get it again."
        ) from None
    except (tarfile.TarError, zlib.error, EOFError) as error:
        raise ReproductionError(f"{source} is damaged: {error}; get the archive again.") from None
    except OSError as error:
        raise ReproductionError(f"{source} cannot be read: {error.strerror or error}.") from None
    official = dataset.official_rows["train" if split == "unlabelled" else split]
    if not n_found:
        raise ReproductionError(
            f"{source} has no rows; get {dataset.archive}, {dataset.origin}, again."
        )
    if n_found > official:
        raise ReproductionError(
            f"{source} has {n_found:,} rows, but the official set has {official:,}; it must be "
            "another file."
        )
    truth = np.array([label for label, _ in rows], dtype=np.intp)
    digest = hashlib.sha256()
    for row in rows:
        digest.update(json.dumps(row).encode() + b"\n")
    fingerprint = digest.hexdigest()
    known = dataset.fingerprints.get(split) if variant == FULL else None
    return Documents(
        dataset=dataset,
        texts=[text for _, text in rows],
        truth=np.full_like(truth, -1) if split == "unlabelled" else truth,
        source=source,
        official_rows=official,
        note=_note(len(rows), official, split, variant, known not in (None, fingerprint)),
        fingerprint=fingerprint,
    )


def _find(dataset: Dataset, data: Path, split: str, variant: str) -> Source:
    if not data.is_dir():
        raise ReproductionError(f"there is no folder {data} to read {dataset.title} from.")
    labelled = "train" if split == "unlabelled" else split
    found = (
        _official(dataset, data, labelled, variant)
        or _sample(dataset, data, split, variant)
        or _sample(dataset, data, labelled, variant)
    )
    if found is None:
        raise ReproductionError(
            f"{data} holds no {labelled} set of {dataset.title}; get {dataset.archive}, "
            f"{dataset.origin}, and put it, or the folder it unpacks to, into {data}."
        )
    return found


def _official(dataset: Dataset, data: Path, split: str, variant: str) -> Source | None:
    """The official CSV file, or the folder of posts by date, unpacked or in the archive."""
    wanted = f"{dataset.folder}-{split}" if dataset.columns is None else f"{split}.csv"
    for source in (wanted, f"{dataset.folder}/{wanted}", f"{dataset.name}/{wanted}"):
        if (data / source).exists():
            files = _unpacked(data / source)
            break
    else:
        if not (data / dataset.archive).is_file():
            return None
        source, files = f"{dataset.archive}:{wanted}", _packed(data / dataset.archive, wanted)
    if dataset.columns is None:
        return source, _posts(dataset, source, files)
    return source, _csv_documents(dataset, source, files, dataset.columns[variant])


def _unpacked(place: Path) -> Files:
    for path in [place] if place.is_file() else place.glob("*/*"):
        if path.is_file() and not path.name.startswith("."):
            with path.open("rb") as file:
                yield PurePosixPath(path.as_posix()), file


def _packed(archive: Path, wanted: str) -> Files:
    """The files of an archive that are, or lie in, what is wanted."""
    with tarfile.open(archive, "r:gz") as members:
        for member in members:
            path = PurePosixPath(member.name)
            file = members.extractfile(member) if member.isfile() else None
            if file is not None and wanted in path.parts and not path.name.startswith("."):
                yield path, file


def _csv_documents(
    dataset: Dataset, source: str, files: Files, columns: tuple[int, ...]
) -> Iterator[LabelledText]:
    """Rows of a class, from 1, and texts."""
    for _, file in files:
        lines = io.TextIOWrapper(file, encoding="utf-8-sig", newline="")
        rows = csv.reader(lines, strict=True)
        try:
            for row in filter(None, rows):
                if len(row) != dataset.n_fields:
                    raise csv.Error(f"{len(row)} fields, but {dataset.n_fields} were expected")
                if not (row[0].isdecimal() and 1 <= int(row[0]) <= len(dataset.labels)):
                    raise csv.Error(
                        f"the class must be a number from 1 to {len(dataset.labels)}; got "
                        f"{row[0][:40]!r}"
                    )
                text = " ".join(row[column] for column in columns if row[column])
                yield int(row[0]) - 1, text.replace("\\n", "\n") if dataset.escaped_lines else text
        except csv.Error as error:
            raise ReproductionError(f"{source} line {rows.line_num}: {error}.") from None


def _posts(dataset: Dataset, source: str, files: Files) -> Iterator[LabelledText]:
    """20 Newsgroups: a folder per group, and a file per post."""
    for group, name, post in sorted((p.parent.name, p.name, file.read()) for p, file in files):
        if group not in dataset.labels:
            raise ReproductionError(
                f"{source} holds {group}/{name}, but {group!r} is no newsgroup of {dataset.origin}."
            )
        # Posts are conventionally read as Latin-1, in which every byte is a character.
        yield dataset.labels.index(group), _subject_and_body(post.decode("latin-1"))


def _subject_and_body(post: str) -> str:
    """A newsgroup post without its headers, except for the subject line."""
    headers, _, body = post.partition("\n\n")
    subject = re.search(r"^Subject:(.*(?:\n[ \t].*)*)", headers, re.MULTILINE)
    return f"{subject.group(1).strip() if subject else ''}\n{body}"


def _sample(dataset: Dataset, data: Path, split: str, variant: str) -> Source | None:
    """JSON lines of a split; the file name may end in the number of rows, the largest wins."""
    stem = split if variant == FULL else f"{split}_{variant}"
    pattern = re.compile(rf"{stem}(?:_(\d+))?\.jsonl")
    found = [
        (match[1] is None, int(match[1] or 0), path)
        for path in sorted((data / dataset.name).glob("*.jsonl"))
        if (match := pattern.fullmatch(path.name))
    ]
    if not found:
        return None
    path = max(found)[2]
    source = f"{dataset.name}/{path.name}"
    return source, _json_documents(dataset, path, source)


def _json_documents(dataset: Dataset, path: Path, source: str) -> Iterator[LabelledText]:
    numbers = {_letters(label): number for number, label in enumerate(dataset.labels)}
    for line, record in read_json_lines(path, source):
        if not all(isinstance(record.get(key), str) for key in ("label", "text")):
            raise ReproductionError(f"{source} line {line} must have the texts 'label' and 'text'.")
        label = _letters(record["label"])
        label = _ALIASES.get(label, label)
        if label not in numbers:
            raise ReproductionError(
                f"{source} line {line}: the label must be one of {', '.join(dataset.labels)}; "
                f"got {record['label'][:40]!r}."
            )
        if any(flag is True and _IN_TEST.fullmatch(key) for key, flag in record.items()):
            continue
        text = record["text"]
        yield numbers[label], _subject_and_body(text) if dataset.columns is None else text


def read_json_lines(path: Path, source: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """The number and the object of every line of a file, named `source` in errors."""
    with path.open(encoding="utf-8-sig") as lines:
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            try:
                record = json.loads(line)
            except json.JSONDecodeError as error:
                raise ReproductionError(
                    f"{source} line {number} is not JSON: {error.msg}."
                ) from None
            if not isinstance(record, dict):
                raise ReproductionError(
                    f"{source} line {number} must be a JSON object; got {line.strip()[:40]}."
                )
            yield number, record


def _letters(label: str) -> str:
    """Letters and digits of a label, so that ``WrittenWork`` equals ``Written Work``."""
    return re.sub(r"[^a-z0-9]", "", label.casefold())


def _draw(
    documents: Iterable[LabelledText], at_most: int | None, random_state: int
) -> tuple[int, list[LabelledText]]:
    """The number of documents, and all of them or a uniform sample, in their order."""
    if at_most is None:
        rows = list(documents)
        return len(rows), rows
    draw_below, n_found = random.Random(random_state).randrange, 0
    sample: list[tuple[int, LabelledText]] = []
    for n_found, document in enumerate(documents, 1):  # reservoir sampling
        if n_found <= at_most:
            sample.append((n_found, document))
        elif (place := draw_below(n_found)) < at_most:
            sample[place] = n_found, document
    return n_found, [document for _, document in sorted(sample)]


def _note(rows: int, official: int, split: str, variant: str, differs: bool) -> str:
    named = "training set" if split == "train" else "test set"
    if rows < official:
        note = f"sample of {rows:,} of {official:,}"
    elif differs:
        note = f"{rows:,} documents, but not those of the official {named}"
    else:
        note = f"whole {named}"
    return note if variant == FULL else f"{note}, {variant} only"
