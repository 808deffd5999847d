"""Documents of the paper's datasets from a data folder, counted and checked.

`distributions` finds the files and reads them; here a sample is called one.
"""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ulr.errors import ExperimentError
from ulr.experiments.datasets import Dataset, find_dataset
from ulr.experiments.distributions import FULL, LabelledText, Place

SPLITS = ("test", "train", "unlabelled")


@dataclass(frozen=True, eq=False)
class Documents:
    """Documents of one split of a dataset.

    Attributes
    ----------
    dataset, split, variant
        What was asked for.
    texts
        The documents, in the order of the file.
    truth
        (n_documents,) label indices; -1 throughout for the split ``unlabelled``.
    labels
        Names of the labels, in the official order.
    official_rows
        How many documents the official split has; for ``unlabelled``, the training set.
    source
        The file, relative to the data folder.
    is_sample
        Whether these are not all documents of the official split.
    is_verified
        Whether they are known, by their hash, to be those of the official split.
    note
        The same in words: ``whole test set``, or ``sample of 7,600 of 70,000``.
    fingerprint
        SHA-256 of the labels and texts; the same whatever layout they were read from.
    """

    dataset: Dataset = field(repr=False)
    split: str
    variant: str
    texts: list[str] = field(repr=False)
    truth: NDArray[np.intp] = field(repr=False)
    labels: tuple[str, ...] = field(repr=False)
    official_rows: int
    source: str
    is_sample: bool
    is_verified: bool
    note: str
    fingerprint: str

    @property
    def rows(self) -> int:
        """How many documents there are."""
        return len(self.texts)


def read_documents(
    name: str,
    data: Path,
    split: str = "test",
    variant: str = FULL,
    at_most: int | None = None,
    seed: int = 1,
) -> Documents:
    """Documents of a dataset, from the official files where they are there, else from a sample.

    Parameters
    ----------
    name
        One of `DATASETS`.
    data
        The folder that the archives, the folders they unpack to, or the samples lie in.
    split
        ``test``, ``train`` or ``unlabelled``: further texts of the same kind, which are those of
        the training set where there are no others.
    variant
        ``full``, or ``titles`` for titles alone.
    at_most
        Keep only so many, drawn at random; the rest never stays in memory.
    seed
        Of that draw.

    Raises
    ------
    ExperimentError
        When the files are missing, broken, or hold more than the official split.
    """
    dataset = find_dataset(name)
    _check_request(dataset, split, variant, at_most)
    place = _find(dataset, Path(data), split, variant)
    n_found, rows = _drawn(place.documents, at_most, seed)
    texts = [text for _, text in rows]
    truth = np.array([label for label, _ in rows], dtype=np.intp)
    official = dataset.official_rows["train" if split == "unlabelled" else split]
    if not n_found:
        raise ExperimentError(f"{place.source} has no rows.")
    if n_found > official:
        raise ExperimentError(
            f"{place.source} has {n_found:,} rows, but the official set has {official:,}; "
            "it must be another file."
        )
    fingerprint = _fingerprint(rows)
    known = dataset.fingerprints.get(split) if variant == FULL else None
    is_sample = len(rows) < official
    is_verified = fingerprint == known
    return Documents(
        dataset=dataset,
        split=split,
        variant=variant,
        texts=texts,
        truth=np.full_like(truth, -1) if split == "unlabelled" else truth,
        labels=dataset.labels,
        official_rows=official,
        source=place.source,
        is_sample=is_sample,
        is_verified=is_verified,
        note=_note(len(rows), official, split, variant, known is not None and not is_verified),
        fingerprint=fingerprint,
    )


def _check_request(dataset: Dataset, split: str, variant: str, at_most: int | None) -> None:
    variants = dataset.distribution.variants
    if split not in SPLITS:
        raise ExperimentError(f"a split must be one of {', '.join(SPLITS)}; got {split!r}.")
    if variant not in variants:
        raise ExperimentError(
            f"the variant of {dataset.title} must be one of {', '.join(variants)}; got {variant!r}."
        )
    if at_most is not None and at_most < 1:
        raise ExperimentError(f"at_most must be 1 or more; got {at_most}.")


def _find(dataset: Dataset, data: Path, split: str, variant: str) -> Place:
    if not data.is_dir():
        raise ExperimentError(f"there is no folder {data} to read {dataset.title} from.")
    files = dataset.distribution
    labelled = "train" if split == "unlabelled" else split
    place = (
        files.official(data, labelled, variant)
        or files.sample(data, split, variant)
        or files.sample(data, labelled, variant)
    )
    if place is None:
        raise ExperimentError(
            f"{data} holds no {labelled} set of {dataset.title}; get {files.archive}, "
            f"{files.origin}, and put it, or the folder it unpacks to, into {data}."
        )
    return place


def _drawn(
    documents: Iterable[LabelledText], at_most: int | None, seed: int
) -> tuple[int, list[LabelledText]]:
    """How many documents there are, and all of them or a uniform draw, in their order."""
    if at_most is None:
        rows = list(documents)
        return len(rows), rows
    draw = random.Random(seed)
    kept: list[tuple[int, LabelledText]] = []
    n_found = 0
    for row in documents:
        # Reservoir sampling: row n is kept with the chance at_most / n, in a random one's stead.
        if n_found < at_most:
            kept.append((n_found, row))
        elif (place := draw.randrange(n_found + 1)) < at_most:
            kept[place] = (n_found, row)
        n_found += 1
    return n_found, [row for _, row in sorted(kept)]


def _fingerprint(rows: list[LabelledText]) -> str:
    digest = hashlib.sha256()
    for row in rows:
        digest.update(json.dumps(row).encode() + b"\n")
    return digest.hexdigest()


def _note(rows: int, official: int, split: str, variant: str, is_other: bool) -> str:
    named = "training set" if split == "train" else "test set"
    if split == "unlabelled":
        note = f"{rows:,} texts without labels"
    elif rows < official:
        note = f"sample of {rows:,} of {official:,}"
    elif is_other:
        note = f"{rows:,} documents, but not those of the official {named}"
    else:
        note = f"whole {named}"
    return note if variant == FULL else f"{note}, {variant} only"
