"""Tasks of a job, one per partition: sample its texts, and write its rows with labels.

Each task is a function of a file and small arguments. It may run twice, even at the same time, and
then writes the same files.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from ulr.distributed.records import JobFolder
from ulr.distributed.storage import storage_of
from ulr.distributed.worker import Environment
from ulr.encoders import Encoder
from ulr.encoders.batching import batch_texts
from ulr.errors import ClusterError, InputError
from ulr.files import atomic_file
from ulr.jobs.classify import truncated_texts, write_labels
from ulr.jobs.documents import HashSample, LabelledRows, Tally
from ulr.jobs.output import Output, output_name, refuse_columns
from ulr.jobs.progress import Silent
from ulr.model import Model
from ulr.tables import TEXT_FORMATS, Source, Table, TableFormat, format_of_name, open_source
from ulr.tables.formats import common_columns
from ulr.texts import empty_texts


@dataclass(frozen=True)
class Task:
    """What all tasks of a job have in common.

    Attributes
    ----------
    environment
        What the worker must have.
    how
        How files are read.
    first
        The first file, whose columns the others must have.
    columns, added
        The columns that make up a document, and those that are added.
    prefix
        Beginning of the names of added columns.
    folder
        The output.
    vectors
        Folder for the vectors of the texts, or None.
    most, random_state
        Size of the sample of all partitions, and its seed.
    """

    environment: Environment
    how: TableFormat
    first: Source
    columns: tuple[str, ...]
    added: tuple[str, ...]
    prefix: str
    folder: str
    vectors: str | None
    most: int | None
    random_state: int

    def check_worker(self) -> None:
        """Refuse a worker that cannot do the tasks; see `Environment.load_encoder`."""
        self.environment.load_encoder()
        for name in (self.first.name, self.folder, self.vectors or self.folder):
            storage_of(name)


@dataclass(frozen=True)
class Partition:
    """A file of documents as it was when it was sampled.

    Attributes
    ----------
    name
        What messages call it.
    n_bytes, sha256
        Its size and hash; a hash that is empty stands for a file that cannot be read.
    source
        The file, its format recognised; None for a broken one.
    n_rows, n_empty
        Documents, and those without words.
    broken
        What is wrong with it; empty if nothing is.
    """

    name: str
    n_bytes: int
    sha256: str
    source: Source | None = None
    n_rows: int = 0
    n_empty: int = 0
    broken: str = ""

    @property
    def output(self) -> str:
        """Name of the file that is written for it."""
        return output_name(self.name)


@dataclass(frozen=True, eq=False)
class Candidates:
    """Texts of a partition that may be in the sample, and their rows."""

    partition: Partition
    texts: list[str]
    rows: NDArray[np.int64]


@dataclass(frozen=True)
class Labelled:
    """The record of a labelled partition, and whether it was there before."""

    partition: Partition
    record: dict[str, Any]
    resumed: bool


def identify(name: str) -> tuple[int, str]:
    """Size and hash of a file; an empty hash if it cannot be read."""
    return storage_of(name).identify(name)


@dataclass(frozen=True)
class SampleItem:
    """A file to sample, and the largest hash of a text that can be in the sample."""

    name: str
    limit: int


def sample_partition(item: SampleItem, task: Task) -> Candidates:
    """Read a file, count its documents, and return the texts with the smallest hashes."""
    task.environment.load_encoder()
    partition = Partition(item.name, *identify(item.name))
    sample = HashSample(task.most, task.random_state, item.limit)
    nothing = np.empty(0, dtype=np.int64)
    n_rows = n_empty = 0
    try:
        with storage_of(item.name).local_copy(item.name) as path:
            source = _open(item.name, path, partition.n_bytes, task)
            table = Table((source,), source.columns)
            for batch in table.batches() if source.columns else ():
                texts = table.texts(batch, task.columns)
                n_empty += int(empty_texts(texts).sum())
                sample.add(range(n_rows, n_rows + len(texts)), texts)
                n_rows += len(texts)
    except ClusterError:
        raise
    except InputError as error:
        return Candidates(replace(partition, broken=str(error)), [], nothing)
    found = sample.finish(n_rows, n_empty)
    rows = np.arange(n_rows) if found.rows is None else found.rows.astype(np.int64)
    # The path is that of a copy which is gone by now; whoever reads the file opens another.
    source = replace(source, path=Path(item.name))
    partition = replace(partition, source=source, n_rows=n_rows, n_empty=n_empty)
    return Candidates(partition, found.texts, rows)


def _open(name: str, path: Path, n_bytes: int, task: Task) -> Source:
    """A file with the columns of the others; a text file of 0 bytes has no columns and no rows."""
    format_ = task.how.format or format_of_name(name)
    if path.is_file() and n_bytes == 0 and format_ in TEXT_FORMATS:
        return Source(name, path, format_)
    source = open_source(name, path, task.how)
    common_columns([task.first, source])
    refuse_columns(Table((source,), source.columns), task.added)
    return source


def label_partition(partition: Partition, task: Task, model_hash: str) -> Labelled:
    """Write the rows of a file with labels, unless that is done already.

    Returns
    -------
    The record, which is written last. A file that changed since it was sampled, or that cannot be
    read any more, comes back as broken, with no record.
    """
    folder, storage = JobFolder(task.folder), storage_of(partition.name)
    if partition.source is None:
        raise ClusterError(f"{partition.name} was not sampled.")
    model = task.environment.load_model(folder.model, model_hash)
    key = record_key(partition, task, model_hash)
    before = storage.stamp(partition.name), truncated_texts(model.text_encoder)
    if identify(partition.name) != (partition.n_bytes, partition.sha256):
        return Labelled(replace(partition, broken=_changed(partition)), {}, False)
    record = folder.read_done(partition.output)
    if record is not None and record["key"] == key and _is_written(record, partition, task):
        return Labelled(partition, record, True)
    try:
        with storage.local_copy(partition.name) as path:
            counts = _write(partition, replace(partition.source, path=path), task, model)
    except ClusterError:
        raise
    except InputError as error:
        if isinstance(error.__cause__, OSError):  # the output could not be written
            raise
        return Labelled(replace(partition, broken=str(error)), {}, False)
    if storage.stamp(partition.name) != before[0]:
        return Labelled(replace(partition, broken=_changed(partition)), {}, False)
    after = truncated_texts(model.text_encoder)
    record = {
        "key": key,
        "source": partition.name,
        "file": partition.output,
        "file_bytes": folder.storage.size(folder.output(partition.output)),
        "documents": partition.n_rows,
        "empty_documents": partition.n_empty,
        "truncated_documents": None if after is None else after - (before[1] or 0),
        "counts": counts,
    }
    folder.write_done(partition.output, record)
    return Labelled(partition, record, False)


def record_key(partition: Partition, task: Task, model_hash: str) -> dict[str, Any]:
    """What a finished partition was made from; it is done again when any of it changes."""
    return {
        "source_bytes": partition.n_bytes,
        "source_sha256": partition.sha256,
        "encoder": task.environment.fingerprint,
        "model_sha256": model_hash,
        "version": task.environment.version,
        "columns": [*task.columns, *task.added],
        "vectors": task.vectors,
    }


def _changed(partition: Partition) -> str:
    return f"{partition.name} changed since it was sampled; run again to sample it anew."


def _is_written(record: dict[str, Any], partition: Partition, task: Task) -> bool:
    folder = JobFolder(task.folder)
    if folder.storage.size(folder.output(partition.output)) != record["file_bytes"]:
        return False
    if task.vectors is None:
        return True
    return storage_of(task.vectors).size(_vector_file(partition, task.vectors)) is not None


def _write(partition: Partition, source: Source, task: Task, model: Model) -> dict[str, Any]:
    """Write the files of a partition, and return the counts of its labels."""
    table, folder = Table((source,), source.columns), JobFolder(task.folder)
    with contextlib.ExitStack() as files:
        if task.vectors is not None:
            vectors = _vector_file(partition, task.vectors)
            target = files.enter_context(storage_of(vectors).replacing(vectors))
            file = files.enter_context(atomic_file(target))
            writer = VectorWriter(model, file, partition.n_rows)
            model = replace(model, text_encoder=writer)
        name = folder.output(partition.output)
        target = files.enter_context(folder.storage.replacing(name))
        if not source.columns:  # a text file of 0 bytes
            files.enter_context(atomic_file(target))
            return Tally(model, True).as_dict()
        rows = LabelledRows(table, task.columns, model, partition.n_rows)
        output = Output(str(target), task.prefix)
        return write_labels(table, rows, model, output, Silent(), refined=True).as_dict()


def _vector_file(partition: Partition, folder: str) -> str:
    return f"{folder}/{partition.output}.npy"


class VectorWriter:
    """An encoder that also writes its vectors, as float16, to a `.npy` file.

    Parameters
    ----------
    model
        The model whose encoder is used.
    file
        Where to write.
    n_texts
        Number of texts that will be encoded.
    """

    def __init__(self, model: Model, file: IO[bytes], n_texts: int) -> None:
        self._encoder: Encoder = model.text_encoder
        self._file = file
        self.batch_texts = batch_texts(self._encoder)
        header = {"descr": "<f2", "fortran_order": False, "shape": (n_texts, model.rule.n_dims)}
        np.lib.format.write_array_header_1_0(file, header)

    def encode(self, texts: list[str], /) -> Any:
        """Vectors of the texts."""
        vectors = self._encoder.encode(texts)
        self._file.write(np.asarray(vectors).astype("<f2").tobytes())
        return vectors
