"""The folder of a job: outputs, the model, and JSON records from which a stopped job goes on.

    out/part-1.parquet …     the outputs, one per partition
    out/_SUCCESS.json        the manifest, written last
    out/_ulr/job.json        what the job is: a hash of its settings
    out/_ulr/fit.json        the partitions that were sampled, and the result of the fit
    out/_ulr/sample.json     some of the sampled texts, for a report
    out/_ulr/model/          the model
    out/_ulr/done/*.json     one record per finished partition

Readers of Parquet folders skip names that begin with an underscore.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ulr.classifier import Fitted, load, save
from ulr.distributed import storage
from ulr.encoders import AnyEncoder
from ulr.errors import ClusterError
from ulr.files import sha256, temporary_folder
from ulr.jobs import output_names
from ulr.refinement import Diagnosis, LabelDiagnosis


@dataclass(frozen=True)
class Partition:
    """A file of documents as it was when it was sampled."""

    name: str
    n_bytes: int
    sha256: str  # or an ETag; empty for a file that cannot be read
    n_rows: int = 0
    n_empty: int = 0  # documents without words
    n_words: int = 0  # of all documents
    broken: str = ""  # what is wrong with it

    @property
    def output(self) -> str:
        """Name of the file that is written for it."""
        return output_names([self.name])[0]


@dataclass(frozen=True, eq=False)
class Fit:
    """The model of a job, and what it was fitted on."""

    fitted: Fitted
    model_hash: str
    partitions: list[Partition]
    about: dict[str, Any]  # fields of the result that a loaded model does not know


@dataclass(frozen=True)
class JobFolder:
    """The output folder of a job."""

    path: str

    @property
    def model(self) -> str:
        """The folder of the model."""
        return f"{self.path}/_ulr/model"

    @property
    def manifest(self) -> str:
        """The manifest."""
        return f"{self.path}/_SUCCESS.json"

    def read(self, record: str) -> dict[str, Any] | None:
        """A record: ``job``, ``fit``, ``sample`` or ``done/…``; None if there is no good one."""
        return storage.read_json(f"{self.path}/_ulr/{record}.json")

    def write(self, record: str, content: dict[str, Any]) -> None:
        """Write a record."""
        storage.write_json(f"{self.path}/_ulr/{record}.json", content)

    def begin(self, settings: str, outputs: Sequence[str], force: bool) -> None:
        """Create the folder, or check that it belongs to the same job, by a hash of its settings."""
        job, done = self.read("job"), storage.names(f"{self.path}/_ulr/done")
        same = job is not None and job.get("settings") == settings
        if job is not None and not same and not force:
            raise ClusterError(
                f"{self.path} holds the results of another job: other labels, settings or version "
                "of ulr. Choose another folder, or replace them with --force."
            )
        others = {name.removesuffix(".json") for name in done} - set(outputs if same else ())
        if others and not force:
            raise ClusterError(
                f"{self.path} also holds {min(others)}, whose input is not given now; choose "
                "another folder, or remove it with --force."
            )
        for name in others:
            storage.remove(f"{self.path}/_ulr/done/{name}.json")
            storage.remove(f"{self.path}/{name}")
        if same:
            return
        storage.make_folder(self.path)
        existing = sorted(set(storage.names(self.path)).intersection(outputs))
        if existing and not force:
            raise ClusterError(
                f"{self.path}/{existing[0]} already exists; choose another folder, or replace it "
                "with --force."
            )
        storage.remove(f"{self.path}/_ulr")
        for folder in ("_ulr", "_ulr/done"):
            storage.make_folder(f"{self.path}/{folder}")
        self.write("job", {"settings": settings})

    def write_fit(self, fitted: Fitted, partitions: list[Partition], about: dict[str, Any]) -> Fit:
        """Save the model, then record what it was fitted on."""
        with temporary_folder() as folder:
            path = folder / "model"
            save(fitted, path)
            storage.upload(path, self.model)
            model_hash = _folder_hash(path)
        diagnosis = about["diagnosis"]
        record = about | {"diagnosis": None if diagnosis is None else asdict(diagnosis)}
        files = list(map(asdict, partitions))
        self.write("fit", {"model_hash": model_hash, "partitions": files, "about": record})
        return Fit(fitted, model_hash, partitions, about)

    def read_fit(self, settings: str, files: list[str], encoder: AnyEncoder) -> Fit | None:
        """The fit of a job with these settings on these files; None if there is none."""
        job, fit, sample = map(self.read, ("job", "fit", "sample"))
        if job is None or fit is None or sample is None or job.get("settings") != settings:
            return None
        partitions, about = [Partition(**each) for each in fit["partitions"]], fit["about"]
        fitted = self.load_model(fit["model_hash"], encoder)
        if fitted is None or [each.name for each in partitions] != files:
            return None
        if (values := about["diagnosis"]) is not None:
            labels = tuple(LabelDiagnosis(**each) for each in values["labels"])
            values |= {"labels": labels, "notes": tuple(values["notes"])}
            about["diagnosis"] = Diagnosis(**values)
        return Fit(fitted, fit["model_hash"], partitions, about)

    def load_model(
        self, model_hash: str, encoder: AnyEncoder, cache: str | None = None
    ) -> Fitted | None:
        """The model; None if it is not the recorded one."""
        with temporary_folder() as path:
            storage.download(self.model, path)
            same = _folder_hash(path) == model_hash
            return load(path, encoder=encoder, cache=cache) if same else None


def _folder_hash(folder: Path) -> str:
    return " ".join(map(sha256, sorted(folder.iterdir())))
