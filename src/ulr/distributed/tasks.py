"""Tasks of a job, one per partition: sample its texts, and write its rows with labels.

Each is a function of a file and small arguments. It may run twice, even at the same time, and then
writes the same files.
"""

from __future__ import annotations

import contextlib
import functools
import os
import platform
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import ulr
from ulr.classifier import Fitted, empty_texts, encode, words_to_read
from ulr.distributed import storage
from ulr.distributed.manifest import JobFolder, Partition
from ulr.encoders import AnyEncoder, fingerprint, load_encoder
from ulr.errors import ClusterError, EncoderError, InputError
from ulr.files import atomic_file
from ulr.jobs import (
    Documents,
    HashSample,
    Output,
    Sample,
    Tally,
    check_columns,
    label_rows,
    write_rows,
)
from ulr.progress import NO_PROGRESS
from ulr.tables import (
    TEXT_FORMATS,
    Source,
    Table,
    TableFormat,
    check_same_columns,
    format_of_name,
    open_source,
)

# Libraries read these when they are first used; what a user has set is kept.
_THREAD_VARIABLES = (
    "LOKY_MAX_CPU_COUNT OMP_NUM_THREADS OPENBLAS_NUM_THREADS MKL_NUM_THREADS RAYON_NUM_THREADS"
).split()
# A worker process lives for many tasks, possibly on several threads, and loads things once.
_loading = threading.Lock()


def versions() -> str:
    """What must be the same in every process of a job."""
    return f"ulr {ulr.__version__} and Python {'.'.join(platform.python_version_tuple()[:2])}"


@dataclass(frozen=True)
class Task:
    """What all tasks of a job have in common."""

    versions: str
    encoder: str
    fingerprint: str  # of the encoder's weights
    cache: str | None  # folder for the vectors of texts
    threads: int | None  # that a task may use; None to leave it to the process
    how: TableFormat
    first: Source  # the others must have its columns
    columns: tuple[str, ...]  # that make up a document
    prefix: str  # of added columns
    added: tuple[str, ...]  # their names
    folder: str  # the output
    vectors: str | None  # folder for the vectors that are kept
    most: int | None  # documents of the sample of all partitions
    random_state: int

    def load_encoder(self) -> AnyEncoder:
        """The encoder of this worker, which must be that of the driver, as must be its versions."""
        where = f"the worker on {socket.gethostname()} (process {os.getpid()})"
        if versions() != self.versions:
            raise ClusterError(
                f"{where} has {versions()}, but the job was started with {self.versions}; install "
                "the same versions there."
            )
        try:
            with _loading:
                encoder = _load_encoder(self.encoder, self.threads)
        except (EncoderError, OSError) as error:
            raise ClusterError(
                f"{where} cannot load the encoder {self.encoder!r}: {error}"
            ) from None
        if fingerprint(encoder) != self.fingerprint:
            raise ClusterError(
                f"{where} has another encoder {self.encoder!r}, {fingerprint(encoder)}; the job "
                f"was started with {self.fingerprint}."
            )
        return encoder

    def check_worker(self) -> None:
        """Raise on a worker that cannot do the tasks."""
        self.load_encoder()
        for name in (self.first.path, self.folder, self.vectors or self.folder):
            storage.absolute(name)

    def open(self, name: str, path: str) -> Table | None:
        """A file with the columns of the others; None for a text file of 0 bytes."""
        is_text = (self.how.format or format_of_name(name)) in TEXT_FORMATS
        if is_text and os.path.isfile(path) and os.path.getsize(path) == 0:
            return None
        source = open_source(name, self.how, path)
        check_same_columns([self.first, source])
        return Table([source])

    def record_key(self, partition: Partition, model_hash: str) -> list[Any]:
        """What a finished partition was made from; the rest is the same in the whole folder."""
        return [partition.n_bytes, partition.sha256, model_hash, self.vectors]

    def read_record(self, partition: Partition, model_hash: str) -> dict[str, Any] | None:
        """The record of a partition whose files are complete; None if it is not done."""
        record = JobFolder(self.folder).read(f"done/{partition.output}")
        if record is None or record["key"] != self.record_key(partition, model_hash):
            return None
        if storage.size(f"{self.folder}/{partition.output}") != record["file_bytes"]:
            return None
        vectors = f"{self.vectors}/{partition.output}.npy"
        return None if self.vectors and storage.size(vectors) is None else record


@functools.lru_cache(maxsize=1)
def _load_encoder(name: str, threads: int | None) -> AnyEncoder:
    if threads is not None:
        from threadpoolctl import threadpool_limits

        for variable in _THREAD_VARIABLES:
            os.environ.setdefault(variable, str(threads))
        threadpool_limits(threads)
    return load_encoder(name)


@functools.lru_cache(maxsize=1)
def _load_model(
    folder: str, model_hash: str, encoder: str, cache: str | None, threads: int | None
) -> Fitted:
    fitted = JobFolder(folder).load_model(model_hash, _load_encoder(encoder, threads), cache)
    if fitted is None:
        raise ClusterError(f"the model in {folder} is not that of this job; run it again.")
    return fitted.with_settings(n_jobs=threads)


class SampleItem(NamedTuple):
    """A file, and the largest hash that a text of the sample can have."""

    name: str
    limit: int


def sample_partition(item: SampleItem, task: Task) -> tuple[Partition, list[str], NDArray[np.intp]]:
    """Read a file and count its documents; returns the texts with the smallest hashes, and rows."""
    task.load_encoder()
    name, limit = item
    partition = Partition(name, *storage.identify(name))
    sample, n_rows, n_empty = HashSample(task.most, task.random_state, limit), 0, 0
    n_words = 0
    try:
        with storage.local_copy(name) as path:
            table = task.open(name, path)
            for _, texts in Documents(table, task.columns) if table else ():
                n_empty += int(empty_texts(texts).sum())
                n_words += words_to_read(texts)
                sample.add(range(n_rows, n_rows + len(texts)), texts)
                n_rows += len(texts)
            if table:
                check_columns(table, task.folder, task.added)
    except ClusterError:
        raise
    except InputError as error:
        return replace(partition, broken=str(error)), [], np.empty(0, dtype=np.intp)
    found = sample.finish(n_rows, n_empty, n_words)
    rows = np.arange(n_rows) if found.rows is None else found.rows
    return replace(partition, n_rows=n_rows, n_empty=n_empty, n_words=n_words), found.texts, rows


Labelled = tuple[Partition, dict[str, Any] | None, bool]  # its record; whether it was there before


def label_partition(partition: Partition, task: Task, model_hash: str) -> Labelled:
    """Write the rows of a file with labels, and then its record, unless that is done already.

    A file that changed since it was sampled, or that cannot be read any more, comes back as broken.
    """
    name, before = partition.name, storage.info(partition.name)
    changed = f"{name} changed since it was sampled; run again to sample it again."
    if storage.identify(name) != (partition.n_bytes, partition.sha256):
        return replace(partition, broken=changed), None, False
    if (record := task.read_record(partition, model_hash)) is not None:
        return partition, record, True
    task.load_encoder()
    with _loading:
        fitted = _load_model(task.folder, model_hash, task.encoder, task.cache, task.threads)
    truncated = getattr(fitted.text_encoder, "truncated", None)
    try:
        with storage.local_copy(name) as path:
            tally = _write(partition, task.open(name, path), task, fitted)
    except ClusterError:
        raise
    except InputError as error:
        if isinstance(error.__cause__, OSError):  # the output could not be written
            raise
        return replace(partition, broken=str(error)), None, False
    if storage.info(name) != before:
        return replace(partition, broken=changed), None, False
    if truncated is not None:
        truncated = getattr(fitted.text_encoder, "truncated", 0) - truncated
    record = {
        "key": task.record_key(partition, model_hash),
        "file_bytes": storage.size(f"{task.folder}/{partition.output}"),
        "truncated_documents": truncated,
        "counts": tally.as_dict(),
    }
    JobFolder(task.folder).write(f"done/{partition.output}", record)
    return partition, record, False


def _write(partition: Partition, table: Table | None, task: Task, fitted: Fitted) -> Tally:
    """Write the files of a partition, and count its labels."""
    tally, n_rows = Tally(fitted), partition.n_rows
    with contextlib.ExitStack() as files:
        target = files.enter_context(storage.replacing(f"{task.folder}/{partition.output}"))
        vectors = None
        if task.vectors is not None:
            name = f"{task.vectors}/{partition.output}.npy"
            partial = files.enter_context(storage.replacing(name))
            vectors = files.enter_context(atomic_file(partial))
            shape = n_rows, fitted.rule.n_dims
            header = {"descr": "<f2", "fortran_order": False, "shape": shape}
            np.lib.format.write_array_header_1_0(vectors, header)
        if table is None:
            files.enter_context(atomic_file(target))
            return tally
        documents, output = Documents(table, task.columns), Output(target, task.prefix)
        rows = label_rows(documents, fitted, Sample(n_rows, 0, 0, [], None))
        if vectors is not None:
            rows = _label_and_keep(documents, fitted, vectors)
        write_rows(documents, rows, tally, fitted, output, NO_PROGRESS, n_rows)
    return tally


def _label_and_keep(documents: Documents, fitted: Fitted, file: IO[bytes]) -> Iterator[Any]:
    """Batches with predictions, as of `label_rows`; their vectors are written as float16."""
    for batch, texts in documents:
        vectors = encode(texts, fitted.text_encoder, with_words=False).vectors
        file.write(np.asarray(vectors).astype("<f2").tobytes())
        yield batch, texts, fitted.predict(texts, vectors)
