"""Documents of the paper's datasets, read from a data folder.

The official archives are read in place or unpacked; samples are JSON lines with ``label`` and
``text`` in a folder with the name of the dataset.
"""

from __future__ import annotations

import contextlib
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
from typing import IO

import numpy as np
from numpy.typing import NDArray

from ulr.errors import ExperimentError, TableError
from ulr.experiments.datasets import FULL, Dataset, find_dataset
from ulr.sampling import Reservoir
from ulr.tables import TableFormat, open_source, source_batches
from ulr.tables.csv_files import parse_rows

SPLITS = ("test", "train", "unlabelled")

LabelledText = tuple[int, str]
_ALIASES = {"scienceortechnology": "scitech"}
# Flags of rows of a sample that are test documents, too.
_IN_TEST = re.compile(r"in_(\w+_)?test")


@dataclass(frozen=True, eq=False)
class Documents:
    """Documents of one split of a dataset.

    Attributes
    ----------
    dataset, split, variant
        As requested.
    texts
        The documents, in the order of the file.
    truth
        (n_documents,) label indices; -1 throughout for the split ``unlabelled``.
    source
        The file, relative to the data folder; ``archive:member`` inside an archive.
    official_rows
        Number of documents of the official split; for ``unlabelled``, of the training set.
    is_verified
        Whether the fingerprint is the known one of the official split.
    note
        Description for people: ``whole test set``, or ``sample of 7,600 of 70,000``.
    fingerprint
        SHA-256 of labels and texts; it does not depend on the layout of the files.
    """

    dataset: Dataset = field(repr=False)
    split: str
    variant: str
    texts: list[str] = field(repr=False)
    truth: NDArray[np.intp] = field(repr=False)
    source: str
    official_rows: int
    is_verified: bool
    note: str
    fingerprint: str

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

    Parameters
    ----------
    name
        One of `DATASETS`.
    data
        The folder of the archives, of the folders they unpack to, or of the samples.
    split
        ``test``, ``train`` or ``unlabelled``: further texts of the same kind, which are those of
        the training set where there are no others.
    variant
        ``full``, or ``titles`` for titles alone.
    at_most
        Draw a uniform sample of this size; the other documents are not kept in memory.
    random_state
        Seed of the draw.

    Raises
    ------
    ExperimentError
        When the files are missing, malformed, or hold more than the official split.
    """
    dataset = find_dataset(name)
    if split not in SPLITS:
        raise ExperimentError(f"split must be one of {', '.join(SPLITS)}; got {split!r}.")
    if variant not in dataset.variants:
        raise ExperimentError(
            f"the variant of {dataset.title} must be one of {', '.join(dataset.variants)}; got "
            f"{variant!r}."
        )
    if at_most is not None and at_most < 1:
        raise ExperimentError(f"at_most must be at least 1; got {at_most}.")
    source, found = _find(dataset, Path(data), split, variant)
    n_found, rows = _drawn(found, at_most, random_state)
    official = dataset.official_rows["train" if split == "unlabelled" else split]
    if not n_found:
        raise ExperimentError(f"{source} has no rows.")
    if n_found > official:
        raise ExperimentError(
            f"{source} has {n_found:,} rows, but the official set has {official:,}; it must be "
            "another file."
        )
    truth = np.array([label for label, _ in rows], dtype=np.intp)
    fingerprint = _fingerprint(rows)
    known = dataset.fingerprints.get(split) if variant == FULL else None
    return Documents(
        dataset=dataset,
        split=split,
        variant=variant,
        texts=[text for _, text in rows],
        truth=np.full_like(truth, -1) if split == "unlabelled" else truth,
        source=source,
        official_rows=official,
        is_verified=fingerprint == known,
        note=_note(len(rows), official, split, variant, known not in (None, fingerprint)),
        fingerprint=fingerprint,
    )


def _find(
    dataset: Dataset, data: Path, split: str, variant: str
) -> tuple[str, Iterator[LabelledText]]:
    """The file of a split, relative to the data folder, and its documents."""
    if not data.is_dir():
        raise ExperimentError(f"there is no folder {data} to read {dataset.title} from.")
    labelled = "train" if split == "unlabelled" else split
    find_official = _official_posts if dataset.columns is None else _official_csv
    found = (
        find_official(dataset, data, labelled, variant)
        or _sample(dataset, data, split, variant)
        or _sample(dataset, data, labelled, variant)
    )
    if found is None:
        raise ExperimentError(
            f"{data} holds no {labelled} set of {dataset.title}; get {dataset.archive}, "
            f"{dataset.origin}, and put it, or the folder it unpacks to, into {data}."
        )
    source, documents = found
    return source, _with_plain_errors(source, documents)


def _official_csv(
    dataset: Dataset, data: Path, split: str, variant: str
) -> tuple[str, Iterator[LabelledText]] | None:
    """``train.csv`` or ``test.csv``, unpacked or in the archive; classes count from 1."""
    for folder in (dataset.folder, dataset.name):
        path, source = data / folder / f"{split}.csv", f"{folder}/{split}.csv"
        if path.is_file():
            return source, _csv_file(dataset, path, source, variant)
    if (data / dataset.archive).is_file():
        source = f"{dataset.archive}:{split}.csv"
        return source, _csv_in_archive(dataset, data / dataset.archive, source, variant)
    return None


def _csv_file(dataset: Dataset, path: Path, source: str, variant: str) -> Iterator[LabelledText]:
    with path.open("rb") as file:
        yield from _csv_documents(dataset, file, source, variant)


def _csv_in_archive(
    dataset: Dataset, archive: Path, source: str, variant: str
) -> Iterator[LabelledText]:
    wanted = source.partition(":")[2]
    with tarfile.open(archive, "r:gz") as members:
        for member, file in _archive_files(members):
            if member.name == wanted:
                yield from _csv_documents(dataset, file, source, variant)
                return
    raise ExperimentError(
        f"{archive.name} holds no {wanted}; it must be the archive of {dataset.origin}."
    )


def _csv_documents(
    dataset: Dataset, file: IO[bytes], source: str, variant: str
) -> Iterator[LabelledText]:
    columns, n_labels = (dataset.columns or {})[variant], len(dataset.labels)
    with io.TextIOWrapper(file, encoding="utf-8-sig", newline="") as lines:
        for line, row, raw in parse_rows(lines, ","):
            if not raw:
                continue
            if len(row) != dataset.n_fields:
                raise ExperimentError(
                    f"{source} line {line} has {len(row)} fields, but {dataset.n_fields} were "
                    "expected."
                )
            if not (row[0].isdecimal() and 1 <= int(row[0]) <= n_labels):
                raise ExperimentError(
                    f"{source} line {line}: the class must be a number from 1 to {n_labels}; "
                    f"got {row[0][:40]!r}."
                )
            text = " ".join(row[column] for column in columns if row[column])
            yield int(row[0]) - 1, text.replace("\\n", "\n") if dataset.escaped_lines else text


def _official_posts(
    dataset: Dataset, data: Path, split: str, variant: str
) -> tuple[str, Iterator[LabelledText]] | None:
    """20 Newsgroups by date: a folder per split and group, and a file per post."""
    name = f"{dataset.folder}-{split}"
    for source in (name, f"{dataset.folder}/{name}"):
        if (data / source).is_dir():
            return source, _posts(dataset, source, _unpacked_posts(data / source))
    if (data / dataset.archive).is_file():
        source = f"{dataset.archive}:{name}"
        return source, _posts(dataset, source, _packed_posts(data / dataset.archive, name))
    return None


def _posts(
    dataset: Dataset, source: str, posts: Iterable[tuple[str, str, bytes]]
) -> Iterator[LabelledText]:
    for group, name, post in sorted(posts):
        if group not in dataset.labels:
            raise ExperimentError(
                f"{source} holds {group}/{name}, but {group!r} is no newsgroup of {dataset.origin}."
            )
        # Posts are conventionally read as Latin-1, in which every byte is a character.
        yield dataset.labels.index(group), subject_and_body(post.decode("latin-1"))


def subject_and_body(post: str) -> str:
    """A newsgroup post without its headers, except for the subject line."""
    headers, _, body = post.partition("\n\n")
    subject = re.search(r"^Subject:(.*(?:\n[ \t].*)*)", headers, re.MULTILINE)
    return f"{subject.group(1).strip() if subject else ''}\n{body}"


def _unpacked_posts(folder: Path) -> Iterator[tuple[str, str, bytes]]:
    for path in folder.glob("*/*"):
        if path.is_file() and not path.name.startswith("."):
            yield path.parent.name, path.name, path.read_bytes()


def _packed_posts(archive: Path, folder: str) -> Iterator[tuple[str, str, bytes]]:
    with tarfile.open(archive, "r:gz") as members:
        for member, file in _archive_files(members):
            if folder in member.parts[:-2]:
                yield member.parts[-2], member.name, file.read()


def _archive_files(archive: tarfile.TarFile) -> Iterator[tuple[PurePosixPath, IO[bytes]]]:
    """Files of an archive in its own order, without hidden ones."""
    for member in archive:
        path = PurePosixPath(member.name)
        file = archive.extractfile(member) if member.isfile() else None
        if file is not None and not path.name.startswith("."):
            yield path, file


def _sample(
    dataset: Dataset, data: Path, split: str, variant: str
) -> tuple[str, Iterator[LabelledText]] | None:
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
    table = open_source(source, path, TableFormat("jsonl"))
    for batch in source_batches(table):
        for row, record in enumerate(batch.as_records(), batch.first_row + 1):
            if not all(isinstance(record.get(key), str) for key in ("label", "text")):
                raise ExperimentError(f"{source} row {row} must have the texts 'label' and 'text'.")
            label = _letters(record["label"])
            label = _ALIASES.get(label, label)
            if label not in numbers:
                raise ExperimentError(
                    f"{source} row {row}: the label must be one of {', '.join(dataset.labels)}; "
                    f"got {record['label'][:40]!r}."
                )
            if any(flag is True and _IN_TEST.fullmatch(key) for key, flag in record.items()):
                continue
            text = record["text"]
            yield numbers[label], subject_and_body(text) if dataset.columns is None else text


def _letters(label: str) -> str:
    """Letters and digits of a label, so that ``WrittenWork`` equals ``Written Work``."""
    return re.sub(r"[^a-z0-9]", "", label.casefold())


def _with_plain_errors(source: str, documents: Iterator[LabelledText]) -> Iterator[LabelledText]:
    with _plain_errors(source):
        yield from documents


@contextlib.contextmanager
def _plain_errors(source: str) -> Iterator[None]:
    """Turn errors of reading a bad file into one sentence."""
    try:
        yield
    except TableError as error:
        raise ExperimentError(str(error)) from None
    except UnicodeError:
        raise ExperimentError(
            f"{source} is not UTF-8, but the official file is; get it again."
        ) from None
    except (tarfile.TarError, zlib.error, EOFError) as error:
        raise ExperimentError(f"{source} is damaged: {error}; get the archive again.") from None
    except OSError as error:
        raise ExperimentError(f"{source} cannot be read: {error.strerror or error}.") from None
    except ValueError as error:  # of a malformed CSV row
        raise ExperimentError(f"{source} line {error}.") from None


def _drawn(
    documents: Iterable[LabelledText], at_most: int | None, random_state: int
) -> tuple[int, list[LabelledText]]:
    """The number of documents, and all of them or a uniform sample, in their order."""
    if at_most is None:
        rows = list(documents)
        return len(rows), rows
    draw_below = random.Random(random_state).randrange
    sample: Reservoir[tuple[int, LabelledText]] = Reservoir(at_most, draw_below)
    for numbered in enumerate(documents):
        sample.add(numbered)
    return sample.n_added, [row for _, row in sorted(sample.items)]


def _fingerprint(rows: list[LabelledText]) -> str:
    digest = hashlib.sha256()
    for row in rows:
        digest.update(json.dumps(row).encode() + b"\n")
    return digest.hexdigest()


def _note(rows: int, official: int, split: str, variant: str, differs: bool) -> str:
    named = "training set" if split == "train" else "test set"
    if split == "unlabelled":
        note = f"{rows:,} texts without labels"
    elif rows < official:
        note = f"sample of {rows:,} of {official:,}"
    elif differs:
        note = f"{rows:,} documents, but not those of the official {named}"
    else:
        note = f"whole {named}"
    return note if variant == FULL else f"{note}, {variant} only"
