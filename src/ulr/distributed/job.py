"""Classify files that are too many for one machine: sample, fit in this process, label.

Only reading, encoding and prediction are distributed. The model is fitted on a sample, as
`ulr.jobs.classify` does for large files, and is the same.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from ulr import __version__
from ulr.classifier import Fitted, Settings, fit, resolve
from ulr.distributed import storage
from ulr.distributed.executors import Workers
from ulr.distributed.manifest import Fit, JobFolder, Partition
from ulr.distributed.tasks import (
    Labelled,
    SampleItem,
    Task,
    label_partition,
    sample_partition,
    versions,
)
from ulr.encoders import fingerprint
from ulr.errors import ClusterError, TableError
from ulr.jobs import (
    LARGEST_HASH,
    NO_SUPPORT,
    Documents,
    HashSample,
    Result,
    Sample,
    Support,
    Tally,
    added_columns,
    output_names,
)
from ulr.progress import NO_PROGRESS, Progress
from ulr.tables import TEXT_FORMATS, Table, TableFormat, find_files, format_of_name, open_source

_FEWEST_SAMPLED = 20  # documents of a label; docs/scaling.md has what fewer cost
_MOST_SHOWN = 10_000  # documents of a report
_MARGIN = 2.0  # of the guess of how many documents are candidates for the sample
# Or they change no label; a fit on a cluster has no adviser.
_HASHED_OTHERWISE = {"labels", "encoder", "n_jobs", "cache", "adviser", "adviser_budget"}
# Fields of a result that only the fit knows; a second run takes them from its record.
_ABOUT_FIT = (
    "method_reason iterations converged fitted_documents diagnosis examples extra_texts"
).split()


@dataclass(frozen=True)
class PartitionsResult:
    """What a job over many files did."""

    job: Result | None  # of all files; None while other parts are not done
    model: str  # folder of the model
    partitions: int
    labelled: int  # files, by this run
    resumed: int  # files that an earlier run had finished
    broken: tuple[str, ...]  # what is wrong with each file that was skipped
    texts: list[str] = field(default_factory=list, repr=False)  # some of the sampled documents
    rows: list[int] = field(default_factory=list, repr=False)  # their positions among all

    def as_dict(self) -> dict[str, Any]:
        """The result as plain values, without the texts."""
        values = {each.name: getattr(self, each.name) for each in fields(self) if each.repr}
        return values | {"job": None if self.job is None else self.job.as_dict()}


def find_partitions(names: Sequence[str]) -> list[str]:
    """The files that paths, folders, patterns and addresses stand for, by their absolute names."""
    if "-" in names:
        raise ClusterError("standard input cannot be read by several workers; name files.")
    files = [storage.absolute(file) for name in names for file in find_files(name)]
    output_names(files)
    return files


def open_first(
    files: Sequence[str], how: TableFormat | None = None, skip_broken: bool = False
) -> Table:
    """The first file with columns; the others must have the same columns."""
    for name in files:
        try:
            if storage.size(name) == 0 and format_of_name(name) in TEXT_FORMATS:
                continue
            return Table([open_source(name, how)])
        except TableError:
            if not skip_broken:
                raise
    raise TableError(f"none of the {len(files)} files can be read.")


def classify_partitions(
    files: Sequence[str],
    first: Documents,
    settings: Settings,
    folder: str,
    workers: Workers,
    progress: Progress = NO_PROGRESS,
    *,
    support: Support = NO_SUPPORT,
    how: TableFormat | None = None,
    prefix: str = "ulr_",
    vectors: str | None = None,
    force: bool = False,
    skip_broken: bool = False,
    part: tuple[int, int] | None = None,
) -> tuple[Fitted, PartitionsResult]:
    """Fit a classifier on a sample of many files, and write every file with labels.

    A job that was stopped goes on when it is run again; if files changed meanwhile, all are sampled
    and the model is fitted again.

    Parameters
    ----------
    files, first
        The partitions, see `find_partitions`, and the documents of the first one, see `open_first`.
    settings
        The parameters of the classifier, with an encoder that workers can load by its name.
    folder
        The output: one file of the same name per partition.
    workers
        Run the tasks; see `open_workers`.
    progress
        Receives the progress, and can cancel the job.
    support
        Labelled examples and further texts to fit on.
    how
        How files are read.
    prefix
        Beginning of the names of added columns.
    vectors
        Folder for the vectors of the texts.
    force
        Whether existing files, and results of another job, are replaced.
    skip_broken
        Whether to go on without partitions that cannot be read.
    part
        ``(0, n)`` to sample and fit only, ``(i, n)`` to label the i-th of n shares of the files with
        that model. None for everything.
    """
    outputs = {f"{storage.absolute(folder)}/{name}" for name in output_names(files)}
    if replaced := outputs.intersection(files):
        raise ClusterError(
            f"{min(replaced)} is an input, which the output would replace; choose another -o."
        )
    started, settings = time.perf_counter(), resolve(settings, progress)
    if not isinstance(spec := getattr(settings.encoder, "spec", None), str):
        raise ClusterError("workers load the encoder by its name; it must not be an object.")
    task = Task(
        versions=versions(),
        encoder=spec,
        fingerprint=fingerprint(settings.encoder),
        cache=None if settings.cache is None else str(Path(settings.cache).resolve()),
        threads=workers.threads,
        how=how or TableFormat(),
        first=first.table.sources[0],
        columns=first.columns,
        prefix=prefix,
        added=tuple(added_columns(prefix, settings)),
        folder=storage.absolute(folder),
        vectors=None if vectors is None else storage.absolute(vectors),
        most=settings.fit_limit,
        random_state=settings.random_state,
    )
    job = _Job(list(files), task, settings, support, workers, progress, skip_broken)
    workers.require(task.check_worker)
    found = job.find_fit(part, force)
    return found.fitted, job.finish(found, job.label(found, part), started)


@dataclass(frozen=True)
class _Job:
    """The stages of a job."""

    files: list[str]
    task: Task
    settings: Settings
    support: Support
    workers: Workers
    progress: Progress
    skip_broken: bool

    @property
    def folder(self) -> JobFolder:
        return JobFolder(self.task.folder)

    def hash(self) -> str:
        """Hash of all that the labels depend on next to the files."""
        names = {each.name for each in fields(Settings)} - _HASHED_OTHERWISE
        content = [
            {name: getattr(self.settings, name) for name in sorted(names)},
            [[label.name, label.phrases] for label in self.settings.labels],
            [self.task.fingerprint, self.task.versions, self.task.columns, self.task.prefix],
            [asdict(self.task.how), asdict(self.support)],
        ]
        text = json.dumps(content, default=lambda value: np.asarray(value).tolist())
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()

    def check_broken(self, partitions: Sequence[Partition]) -> None:
        """Raise for the first file that cannot be read, unless such files are skipped."""
        for each in partitions:
            if each.broken and not self.skip_broken:
                raise TableError(each.broken)

    def find_fit(self, part: tuple[int, int] | None, force: bool) -> Fit:
        """What an earlier run fitted on the files as they are now, or else a new fit.

        A part other than 0 needs the fit of part 0; its files are checked when they are labelled.
        """
        only_labels = part is not None and part[0] > 0
        if not only_labels:
            self.folder.begin(self.hash(), output_names(self.files), force)
            if self.task.vectors is not None:
                storage.make_folder(self.task.vectors)
        earlier = self.folder.read_fit(self.hash(), self.files, self.settings.loaded_encoder)
        if earlier is not None and (only_labels or self.is_current(earlier)):
            self.check_broken(earlier.partitions)
            return earlier
        if only_labels:
            raise ClusterError(
                f"{self.folder.path} has no model for this job and these files; run it first with "
                "--part 0/N, which samples and fits."
            )
        storage.remove(self.folder.manifest)
        return self.fit(*self.sample())

    def is_current(self, fit: Fit) -> bool:
        """Whether all files are as they were sampled."""
        self.progress.stage("Checking", len(self.files), "files")
        found = []
        for identity in self.workers.map(storage.identify, self.files):
            found.append(identity)
            self.progress.advance(1)
        return found == [(each.n_bytes, each.sha256) for each in fit.partitions]

    def sample(self, guess: bool = True) -> tuple[list[Partition], Sample]:
        """Count all files, and draw the sample that one process draws.

        By a guess, the first file tells how many documents there may be, and so which of the others
        can be in the sample.
        """
        sample = HashSample(self.task.most, self.task.random_state)
        partitions: list[Partition] = []
        n_rows, limit = 0, LARGEST_HASH

        def run(names: Sequence[str]) -> Iterator[Any]:
            # The limit falls while the sample fills, so files that are begun later send less.
            items = (SampleItem(name, min(limit, sample.limit)) for name in names)
            return self.workers.map(sample_partition, items, self.task)

        self.progress.stage("Sampling", None, f"documents, {self.workers.n_workers} workers")
        for partition, texts, rows in chain(run(self.files[:1]), run(self.files[1:])):
            self.check_broken([partition])
            self.progress.advance(partition.n_rows)
            partitions.append(partition)
            sample.add((rows + n_rows).tolist(), texts)
            n_rows += partition.n_rows
            if guess and len(partitions) == 1 and n_rows and self.task.most is not None:
                expected = max(1, n_rows * storage.total_size(self.files) / partition.n_bytes)
                limit = int(LARGEST_HASH * min(1.0, _MARGIN * self.task.most / expected))
        n_empty = sum(each.n_empty for each in partitions)
        drawn = sample.finish(n_rows, n_empty, sum(each.n_words for each in partitions))
        if sample.limit > limit:  # there are fewer documents than guessed
            return self.sample(guess=False)
        return partitions, drawn

    def fit(self, partitions: list[Partition], sample: Sample) -> Fit:
        """Fit a classifier on the sample, and save it in the folder of the job."""
        if not sample.n_rows:
            broken = next((each.broken for each in partitions if each.broken), "they have no rows.")
            raise TableError(f"none of the {len(partitions)} files can be used: {broken}")
        support = self.support
        fitted = fit(
            [*sample.texts, *support.examples],
            self.settings,
            self.progress,
            y=[*[None] * len(sample.texts), *support.labels] if support.labels else None,
            extra_texts=support.extra_texts,
            n_words=sample.n_words,
        )
        numbers = {"examples": len(support.examples), "extra_texts": len(support.extra_texts)}
        result = Tally(fitted).result(0, **numbers)
        about = {name: getattr(result, name) for name in _ABOUT_FIT}
        if result.diagnosis is not None and sample.rows is not None:
            notes = (*result.diagnosis.notes, *_rare_labels(fitted, sample))
            about["diagnosis"] = replace(result.diagnosis, notes=notes)
        self.folder.write("sample", _shown(sample, self.task.random_state))
        return self.folder.write_fit(fitted, partitions, about)

    def label(self, fit: Fit, part: tuple[int, int] | None) -> list[Labelled]:
        """Label the files of this run."""
        storage.remove(self.folder.manifest)
        share = [each for each in fit.partitions if not each.broken]
        if part is not None:
            share = share[part[0] - 1 :: part[1]] if part[0] else []
        n_rows = sum(each.n_rows for each in share)
        self.progress.stage("Labelling", n_rows, f"documents, {self.workers.n_workers} workers")
        labelled = []
        for found in self.workers.map(label_partition, share, self.task, fit.model_hash):
            self.check_broken(found[:1])
            self.progress.advance(found[0].n_rows)
            labelled.append(found)
        return labelled

    def finish(self, fit: Fit, labelled: list[Labelled], started: float) -> PartitionsResult:
        """The result; when all files are done, by this run or others, with the sum of their counts.

        The manifest is written then.
        """
        records = {partition.name: record for partition, record, _ in labelled}
        for each in fit.partitions:
            if not each.broken and each.name not in records:  # that of another part
                records[each.name] = self.task.read_record(each, fit.model_hash)
        partitions = [*fit.partitions, *(partition for partition, *_ in labelled)]
        n_resumed = sum(resumed for *_, resumed in labelled)
        result = PartitionsResult(
            job=None,
            model=self.folder.model,
            partitions=len(self.files),
            labelled=sum(record is not None for _, record, _ in labelled) - n_resumed,
            resumed=n_resumed,
            broken=tuple(each.broken for each in partitions if each.broken),
        )
        done = [(each, found) for each in fit.partitions if (found := records.get(each.name))]
        if len(done) + len(result.broken) < len(self.files):
            return result
        tally = Tally(fit.fitted)
        for _, record in done:
            tally.add_counts(record["counts"])
        truncated = [record["truncated_documents"] for _, record in done]
        job = tally.result(
            sum(each.n_empty for each, _ in done),
            truncated_documents=None if None in truncated else sum(truncated),
            seconds=time.perf_counter() - started,
            output=self.folder.path,
        )
        job = replace(job, **fit.about)
        manifest = {
            "version": __version__,
            "encoder": self.task.fingerprint,
            "model_sha256": fit.model_hash,
            "documents": job.documents,
            "empty_documents": job.empty_documents,
            "fitted_documents": job.fitted_documents,
            "labels": {each.label: each.after for each in job.labels},
            "without_label": job.without_label,
            "partitions": [
                {"file": each.output, "documents": each.n_rows, "source": each.name}
                for each, _ in done
            ],
            "broken": result.broken,
        }
        storage.write_json(self.folder.manifest, manifest)
        shown = self.folder.read("sample") or {}
        return replace(result, job=job, **shown)


def _shown(sample: Sample, random_state: int) -> dict[str, Any]:
    """Texts of the sample that a report is about, and their rows."""
    rows = np.arange(len(sample.texts)) if sample.rows is None else sample.rows
    drawn = np.random.default_rng(random_state).permutation(len(rows))[:_MOST_SHOWN]
    places = np.sort(drawn)
    return {"rows": rows[places].tolist(), "texts": [sample.texts[i] for i in places.tolist()]}


def _rare_labels(fitted: Fitted, sample: Sample) -> Iterator[str]:
    """Warnings about labels with few documents in the sample."""
    assert fitted.predictions is not None
    nearest = fitted.predictions.unrefined[: len(sample.texts)]
    counts = np.bincount(nearest[nearest >= 0], minlength=fitted.n_labels).tolist()
    for name, count in zip(fitted.settings.label_set.names, counts, strict=True):
        if count < _FEWEST_SAMPLED:
            yield (
                f"Only {count} of the {len(sample.texts):,} sampled documents are nearest to the "
                f"label {name!r}; a label needs some {_FEWEST_SAMPLED}. Raise --fit-sample."
            )
