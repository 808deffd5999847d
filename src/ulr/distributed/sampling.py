"""The first two stages of a job: a sample of all files, and the fit on it in this process."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from ulr.distributed.executors import Executor
from ulr.distributed.partitions import Candidates, Partition, SampleItem, Task, sample_partition
from ulr.distributed.records import JobFolder
from ulr.distributed.storage import total_size
from ulr.distributed.worker import folder_hash
from ulr.errors import TableError
from ulr.fitting import TextClassifier
from ulr.inputs import Setup
from ulr.jobs.classify import fit_documents
from ulr.jobs.documents import LARGEST_HASH, HashSample, Sample, Tally
from ulr.jobs.progress import Listener
from ulr.jobs.reports import JobReport
from ulr.jobs.support import Support
from ulr.refinement import Diagnosis
from ulr.refinement.diagnosis import LabelDiagnosis
from ulr.tables import Source, Table

FEWEST_SAMPLED = 20  # documents of a label; docs/scaling.md has what fewer cost
MOST_SHOWN = 10_000  # documents of a report
_MARGIN = 2.0  # of the guess of how many documents are candidates for the sample


@dataclass(frozen=True)
class Fit:
    """A fitted model on disk, and what it was fitted on.

    Attributes
    ----------
    model_hash
        Hash of the folder of the model.
    partitions
        The files that were sampled.
    report
        What the fit found; the counts of labels are not known yet.
    """

    model_hash: str
    partitions: list[Partition]
    report: JobReport

    def as_dict(self) -> dict[str, Any]:
        """The record of the fit."""
        return asdict(self) | {"report": self.report.as_dict()}

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> Fit:
        """The fit of a record."""
        report = record["report"] | {"labels": (), "least_certain": (), "moved_documents": ()}
        if (values := report["diagnosis"]) is not None:
            values = {k: v for k, v in values.items() if k not in ("trusted", "warnings")}
            values["labels"] = tuple(LabelDiagnosis(**each) for each in values["labels"])
            report["diagnosis"] = Diagnosis(**values | {"notes": tuple(values["notes"])})
        partitions = [
            Partition(**each | {"source": _source(each["source"])}) for each in record["partitions"]
        ]
        return cls(record["model_hash"], partitions, JobReport(**report))


def _source(values: dict[str, Any] | None) -> Source | None:
    if values is None:
        return None
    return Source(**values | {"path": Path(values["path"]), "columns": tuple(values["columns"])})


def sample_files(
    files: Sequence[str], task: Task, executor: Executor, listener: Listener, skip_broken: bool
) -> tuple[list[Partition], Sample]:
    """Count all files, and draw the sample that `ulr.jobs.documents.read_documents` draws.

    The first file tells how many documents there may be, and so how many of each other file can be
    in the sample. If that was too few, all files are read once more.
    """
    arguments = files, task, executor, listener, skip_broken
    partitions, sample, complete = _draw(*arguments, guess=True)
    if not complete:
        partitions, sample, _ = _draw(*arguments, guess=False)
    return partitions, sample


def _draw(
    files: Sequence[str],
    task: Task,
    executor: Executor,
    listener: Listener,
    skip_broken: bool,
    guess: bool,
) -> tuple[list[Partition], Sample, bool]:
    """The files, the sample, and whether no document of it can have been left out."""
    sample = HashSample(task.most, task.random_state)
    partitions: list[Partition] = []
    n_rows, limit = 0, LARGEST_HASH

    def run(names: Sequence[str]) -> Iterator[Candidates]:
        # The limit falls while the sample fills, so files that are begun later send less.
        items = (SampleItem(name, min(limit, sample.limit)) for name in names)
        return executor.map(sample_partition, items, task, on_result=advance)

    def advance(found: Candidates) -> None:
        listener.advance(found.partition.n_rows)

    listener.stage("Sampling", None, f"documents, {executor.n_workers} workers")
    for found in chain(run(files[:1]), run(files[1:])):
        refuse_broken([found.partition], skip_broken)
        partitions.append(found.partition)
        sample.add((found.rows + n_rows).tolist(), found.texts)
        n_rows += found.partition.n_rows
        if guess and len(partitions) == 1:
            limit = _largest_candidate(files, found.partition, task.most)
    drawn = sample.finish(n_rows, sum(each.n_empty for each in partitions))
    return partitions, drawn, sample.limit <= limit


def _largest_candidate(files: Sequence[str], first: Partition, most: int | None) -> int:
    """The largest hash that a document of the sample may have, by the size of the files."""
    if most is None or not first.n_rows:
        return LARGEST_HASH
    n_rows = first.n_rows * total_size(files) / first.n_bytes
    return int(LARGEST_HASH * min(1.0, _MARGIN * most / n_rows))


def refuse_broken(partitions: Sequence[Partition], skip_broken: bool) -> None:
    """Refuse the first file that cannot be read, unless such files are skipped."""
    for each in partitions:
        if each.broken and not skip_broken:
            raise TableError(each.broken)


def fit_partitions(
    partitions: list[Partition],
    sample: Sample,
    task: Task,
    classifier: TextClassifier,
    setup: Setup,
    support: Support,
    listener: Listener,
    folder: JobFolder,
) -> Fit:
    """Fit a classifier on the sample of some files, and save it in the folder of a job."""
    if not sample.n_rows:
        broken = next((each.broken for each in partitions if each.broken), "they have no rows.")
        raise TableError(f"none of the {len(partitions)} files can be used: {broken}")
    table = Table((task.first,), task.first.columns)
    fitted = fit_documents(table, task.columns, classifier, sample, listener, support, setup)
    with folder.storage.replacing_folder(folder.model) as path:
        classifier.save(path, overwrite=True)
        model_hash = folder_hash(path)
    folder.write_sample(_shown(sample, task.random_state))
    report = fitted.report(Tally(classifier.model_, True))
    if report.diagnosis is not None and sample.rows is not None:
        notes = (*report.diagnosis.notes, *_rare_labels(classifier, sample))
        report = replace(report, diagnosis=replace(report.diagnosis, notes=notes))
    fit = Fit(model_hash, partitions, report)
    folder.write_fit(fit.as_dict())
    return fit


def _shown(sample: Sample, random_state: int) -> dict[str, Any]:
    """Texts of the sample that a report is about, and their rows."""
    shown = HashSample(MOST_SHOWN, random_state)
    rows = range(len(sample.texts)) if sample.rows is None else sample.rows.tolist()
    shown.add(rows, sample.texts)
    found = shown.finish(sample.n_rows, sample.n_empty)
    positions = range(len(found.texts)) if found.rows is None else found.rows.tolist()
    return {"rows": list(positions), "texts": found.texts}


def _rare_labels(classifier: TextClassifier, sample: Sample) -> Iterator[str]:
    """Warnings about labels with few documents in the sample."""
    nearest = classifier._fitted.unrefined[: len(sample.texts)]
    counts = np.bincount(nearest[nearest >= 0], minlength=classifier.model_.n_labels)
    for name, count in zip(classifier.label_set_.names, counts.tolist(), strict=True):
        if count < FEWEST_SAMPLED:
            yield (
                f"Only {count} of the {len(sample.texts):,} sampled documents are nearest to the "
                f"label {name!r}; a label needs some {FEWEST_SAMPLED}. Raise --fit-sample."
            )
