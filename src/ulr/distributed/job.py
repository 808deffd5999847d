"""Classify files that are too many for one machine: sample, fit in this process, label.

Only reading, encoding and prediction are distributed. The model is fitted on a sample, as
`ulr.jobs.classify_file` does for large files, and is the same.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np

from ulr import __version__
from ulr.distributed.executors import Executor
from ulr.distributed.partitions import (
    Labelled,
    Partition,
    Task,
    identify,
    label_partition,
    record_key,
)
from ulr.distributed.records import JobFolder
from ulr.distributed.sampling import Fit, fit_partitions, refuse_broken, sample_files
from ulr.distributed.storage import storage_of
from ulr.distributed.worker import Environment, folder_hash, python_version
from ulr.encoders import fingerprint
from ulr.errors import ClusterError, TableError
from ulr.fitting import TextClassifier
from ulr.inputs import Setup
from ulr.jobs.classify import ADDED_COLUMNS
from ulr.jobs.documents import Tally
from ulr.jobs.output import output_names
from ulr.jobs.progress import Listener, Silent
from ulr.jobs.reports import JobReport
from ulr.jobs.support import Support
from ulr.persistence import load_model
from ulr.tables import (
    TEXT_FORMATS,
    Source,
    Table,
    TableFormat,
    format_of_name,
    open_source,
)

# Arguments of a classifier that change no label, or are hashed in another form.
_HASHED_OTHERWISE = {"labels", "encoder", "phrasings", "extra_labels", "n_jobs", "cache"}


@dataclass(frozen=True)
class PartitionedOutput:
    """Where a job writes.

    Attributes
    ----------
    folder
        The output, one file per partition.
    prefix
        Beginning of the names of added columns.
    force
        Whether existing files, and results of another job, are replaced.
    vectors
        Folder for the vectors of the texts, or None.
    skip_broken
        Whether to go on without partitions that cannot be read.
    """

    folder: str
    prefix: str = "ulr_"
    force: bool = False
    vectors: str | None = None
    skip_broken: bool = False


@dataclass(frozen=True)
class PartitionsReport:
    """What a job did.

    Attributes
    ----------
    job
        The report on all partitions; None while other parts are not done.
    model
        Folder of the model.
    partitions, labelled, resumed
        Partitions in all, those labelled by this run, and those that an earlier run had finished.
    broken
        What is wrong with each of the partitions that were skipped.
    texts, rows
        Some of the sampled documents, and their rows among all documents, for a page about the job.
    """

    job: JobReport | None
    model: str
    partitions: int
    labelled: int
    resumed: int
    broken: tuple[str, ...] = ()
    texts: tuple[str, ...] = field(default=(), repr=False)
    rows: tuple[int, ...] = field(default=(), repr=False)

    def as_dict(self) -> dict[str, Any]:
        """The report as plain values, without the texts."""
        values = asdict(replace(self, job=None, texts=(), rows=()))
        del values["texts"], values["rows"]
        return values | {"job": self.job and self.job.as_dict()}


def find_partitions(names: Sequence[str]) -> list[str]:
    """The files that paths, folders and patterns stand for, in the order of `open_table`."""
    files = []
    for name in names:
        if name == "-":
            raise ClusterError("standard input cannot be read by several workers; name files.")
        files += storage_of(name).find(name)
    output_names(files)
    return files


@contextlib.contextmanager
def open_first(files: Sequence[str], how: TableFormat, skip_broken: bool) -> Iterator[Table]:
    """The first file with columns as a table; the others must have the same columns."""
    with contextlib.ExitStack() as stack:
        for name in files:
            try:
                path = stack.enter_context(storage_of(name).local_copy(name))
                text = format_of_name(name) in TEXT_FORMATS
                if text and path.is_file() and not path.stat().st_size:
                    continue
                source = open_source(name, path, how)
            except TableError:
                if not skip_broken:
                    raise
            else:
                yield Table((source,), source.columns)
                return
        raise TableError(f"none of the {len(files)} files can be read.")


def classify_partitions(
    files: Sequence[str],
    table: Table,
    columns: Sequence[str],
    classifier: TextClassifier,
    output: PartitionedOutput,
    executor: Executor,
    listener: Listener | None = None,
    support: Support | None = None,
    *,
    how: TableFormat | None = None,
    part: tuple[int, int] | None = None,
) -> PartitionsReport:
    """Fit a classifier on a sample of many files, and write every file with labels.

    A job that was stopped goes on when it is run again; files that changed meanwhile are read again
    and the model is fitted again.

    Parameters
    ----------
    files
        The partitions; each becomes one file of the same name.
    table, columns
        The first of them, see `open_first`, and the columns that make up a document.
    classifier
        The classifier, with an encoder that workers can load by its name.
    output
        Where to write.
    executor
        Runs the tasks.
    listener
        Hears the progress.
    support
        Labelled examples and further texts to refine on.
    how
        How files are read.
    part
        ``(0, n)`` to sample and fit only, ``(i, n)`` to label the i-th of n shares of the files with
        that model. None for everything.

    Raises
    ------
    ClusterError
        When a worker cannot be used, or the folder holds something else.
    TableError
        When a partition cannot be read, and broken ones are not skipped.
    """
    started = time.perf_counter()
    setup, support, listener = classifier._resolve(), support or Support(), listener or Silent()
    task = _task(table.sources[0], columns, classifier, setup, output, executor, how)
    folder = JobFolder(task.folder)
    job = _Job(list(files), task, folder, executor, listener, output.skip_broken)
    settings = _settings_hash(classifier, setup, support, task)
    executor.require(task.check_worker)
    if part is not None and part[0] > 0:
        fit = job.earlier_fit(settings, part[1])
    else:
        folder.begin(settings, output_names(files), output.force)
        if task.vectors is not None:
            storage_of(task.vectors).make_folder(task.vectors)
        current = job.current_fit()
        if current is None:
            folder.remove_manifest()
            found = sample_files(job.files, task, executor, listener, output.skip_broken)
            current = fit_partitions(*found, task, classifier, setup, support, listener, folder)
        fit = current
    records, report = job.label(fit, part)
    if len(records) < len(fit.partitions) - len(report.broken):
        return report
    with folder.storage.local_folder(folder.model) as path:
        tally = Tally(load_model(path, setup.encoder)[0], refined=True)
    summary = _summary(fit.report, records, tally)
    summary = replace(summary, seconds=time.perf_counter() - started, output=folder.path)
    folder.write_manifest(_manifest(task, fit, summary, records, report.broken))
    shown = folder.read_sample() or {"texts": (), "rows": ()}
    return replace(report, job=summary, texts=tuple(shown["texts"]), rows=tuple(shown["rows"]))


def _task(
    first: Source,
    columns: Sequence[str],
    classifier: TextClassifier,
    setup: Setup,
    output: PartitionedOutput,
    executor: Executor,
    how: TableFormat | None,
) -> Task:
    spec = getattr(setup.encoder, "spec", None)
    if not isinstance(spec, str):
        raise ClusterError("workers load the encoder by its name; it must not be an object.")
    cache = None if classifier.cache is None else str(Path(classifier.cache).resolve())
    return Task(
        environment=Environment(
            __version__,
            python_version(),
            spec,
            fingerprint(setup.encoder),
            cache,
            executor.threads,
        ),
        how=how or TableFormat(),
        first=first,
        columns=tuple(columns),
        added=tuple(output.prefix + name for name in ADDED_COLUMNS),
        prefix=output.prefix,
        folder=storage_of(output.folder).absolute(output.folder),
        vectors=output.vectors and storage_of(output.vectors).absolute(output.vectors),
        most=classifier._fit_limit(setup.method),
        random_state=classifier.random_state,
    )


def _settings_hash(classifier: TextClassifier, setup: Setup, support: Support, task: Task) -> str:
    """Hash of all that the labels depend on next to the files."""
    names = sorted({*signature(TextClassifier).parameters} - _HASHED_OTHERWISE)
    parameters = {name: getattr(classifier, name) for name in names}
    content = [
        parameters,
        [[label.name, label.phrases] for label in setup.labels],
        None if setup.phrasings is None else setup.phrasings.sets,
        setup.extra_labels,
        asdict(support),
        [task.environment.fingerprint, task.environment.version],
        [task.columns, task.added, asdict(task.how)],
    ]
    text = json.dumps(content, default=lambda value: np.asarray(value).tolist())
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


@dataclass(frozen=True)
class _Job:
    """What an earlier run left, and the labelling."""

    files: list[str]
    task: Task
    folder: JobFolder
    executor: Executor
    listener: Listener
    skip_broken: bool

    def current_fit(self) -> Fit | None:
        """What an earlier run fitted on the files as they are now; None if there is nothing."""
        fit = self._read_fit()
        if fit is None:
            return None
        self.listener.stage("Checking", len(self.files), "files")
        found = self.executor.map(
            identify, self.files, on_result=lambda _: self.listener.advance(1)
        )
        if list(found) != [(each.n_bytes, each.sha256) for each in fit.partitions]:
            return None
        refuse_broken(fit.partitions, self.skip_broken)
        return fit

    def earlier_fit(self, settings: str, n_parts: int) -> Fit:
        """What part 0 fitted; the files are checked when they are labelled."""
        fit = self._read_fit() if self.folder.belongs_to(settings) else None
        if fit is None:
            raise ClusterError(
                f"{self.folder.path} has no model for this job and these files; run it first with "
                f"--part 0/{n_parts}, which samples and fits."
            )
        refuse_broken(fit.partitions, self.skip_broken)
        return fit

    def _read_fit(self) -> Fit | None:
        record = self.folder.read_fit()
        if record is None or self.folder.read_sample() is None:
            return None
        fit = Fit.from_dict(record)
        if [each.name for each in fit.partitions] != self.files:
            return None
        with self.folder.storage.local_folder(self.folder.model) as path:
            return fit if folder_hash(path) == fit.model_hash else None

    def label(
        self, fit: Fit, part: tuple[int, int] | None
    ) -> tuple[list[dict[str, Any]], PartitionsReport]:
        """Label the files of this run; returns the records of all files that are done by now."""
        self.folder.remove_manifest()
        share = readable = [each for each in fit.partitions if not each.broken]
        if part is not None:
            share = readable[part[0] - 1 :: part[1]] if part[0] else []
        n_rows = sum(each.n_rows for each in share)
        self.listener.stage("Labelling", n_rows, f"documents, {self.executor.n_workers} workers")

        def advance(found: Labelled) -> None:
            refuse_broken([found.partition], self.skip_broken)
            self.listener.advance(found.partition.n_rows)

        arguments = share, self.task, fit.model_hash
        found = list(self.executor.map(label_partition, *arguments, on_result=advance))
        done = {each.partition.name: each.record for each in found}
        records = [done.get(each.name) or self._earlier(each, fit) for each in readable]
        partitions = [*fit.partitions, *(each.partition for each in found)]
        report = PartitionsReport(
            job=None,
            model=self.folder.model,
            partitions=len(self.files),
            labelled=sum(bool(each.record) and not each.resumed for each in found),
            resumed=sum(each.resumed for each in found),
            broken=tuple(each.broken for each in partitions if each.broken),
        )
        return [record for record in records if record], report

    def _earlier(self, partition: Partition, fit: Fit) -> dict[str, Any] | None:
        """The record of a file that another part finished."""
        record = self.folder.read_done(partition.output)
        if record is None or record["key"] != record_key(partition, self.task, fit.model_hash):
            return None
        return record


def _summary(fitted: JobReport, records: list[dict[str, Any]], tally: Tally) -> JobReport:
    """The report of the fit with the counts of all files."""
    for record in records:
        tally.add_counts(record["counts"])
    n_empty = sum(record["empty_documents"] for record in records)
    truncated = [record["truncated_documents"] for record in records]
    return replace(
        fitted,
        documents=sum(record["documents"] for record in records),
        empty_documents=n_empty,
        unknown_documents=max(0, tally.unlabelled - n_empty),
        truncated_documents=None if None in truncated else sum(truncated),
        labels=tally.counts(),
        without_label=tally.without_label,
        moved=tally.moved,
        moved_documents=tally.surest_moves,
        least_certain=tally.least_certain,
    )


def _manifest(
    task: Task, fit: Fit, summary: JobReport, records: list[dict[str, Any]], broken: Sequence[str]
) -> dict[str, Any]:
    files = [{name: each[name] for name in ("file", "documents", "source")} for each in records]
    return {
        "version": task.environment.version,
        "encoder": task.environment.fingerprint,
        "model_sha256": fit.model_hash,
        "documents": summary.documents,
        "empty_documents": summary.empty_documents,
        "fitted_documents": summary.fitted_documents,
        "labels": {each.label: each.after for each in summary.labels},
        "without_label": summary.without_label,
        "partitions": files,
        "broken": list(broken),
    }
