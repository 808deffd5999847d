"""The folder of a job: outputs, the model, and JSON records from which a stopped job goes on.

    out/part-1.parquet …     the outputs, one per partition
    out/_SUCCESS.json        the manifest, written last
    out/_ulr/job.json        what the job is: a hash of its settings
    out/_ulr/fit.json        the partitions that were sampled, and the report of the fit
    out/_ulr/sample.json     some of the sampled texts, for a report
    out/_ulr/model/          the model
    out/_ulr/done/*.json     one record per finished partition

Readers of Parquet folders skip names that begin with an underscore.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from ulr.distributed.storage import Storage, storage_of
from ulr.errors import ClusterError


@dataclass(frozen=True)
class JobFolder:
    """The output folder of a job.

    Attributes
    ----------
    path
        Its path or address.
    """

    path: str

    @property
    def storage(self) -> Storage:
        """Where it is."""
        return storage_of(self.path)

    @property
    def model(self) -> str:
        """The folder of the model."""
        return f"{self._records}/model"

    @property
    def _manifest(self) -> str:
        return f"{self.path}/_SUCCESS.json"

    @property
    def _records(self) -> str:
        return f"{self.path}/_ulr"

    def output(self, name: str) -> str:
        """The file of a partition."""
        return f"{self.path}/{name}"

    def begin(self, settings: str, outputs: Sequence[str], force: bool) -> None:
        """Create the folder, or check that it belongs to the same job.

        Parameters
        ----------
        settings
            Hash of the settings.
        outputs
            Names of the files that will be written.
        force
            Whether to replace files, and results of another job.
        """
        found = self._read("job")
        if found is not None and found.get("settings") != settings:
            if not force:
                raise ClusterError(
                    f"{self.path} holds the results of another job: other labels, settings or "
                    "version of ulr. Choose another folder, or replace them with --force."
                )
            self._remove(self._done_names())
            found = None
        if found is None:
            self._create(outputs, force)
            self._write("job", {"settings": settings})
        others = sorted(self._done_names() - set(outputs))
        if others and not force:
            raise ClusterError(
                f"{self.path} also holds {others[0]}, whose input is not given now; choose another "
                "folder, or remove it with --force."
            )
        self._remove(others)

    def _create(self, outputs: Sequence[str], force: bool) -> None:
        """Create the folder without records."""
        self.storage.make_folder(self.path)
        existing = sorted(set(self.storage.names(self.path)).intersection(outputs))
        if existing and not force:
            raise ClusterError(
                f"{self.output(existing[0])} already exists; choose another folder, or replace it "
                "with --force."
            )
        self.storage.remove(self._records)
        for folder in (self._records, f"{self._records}/done"):
            self.storage.make_folder(folder)

    def belongs_to(self, settings: str) -> bool:
        """Whether a job with these settings was begun in this folder."""
        found = self._read("job")
        return found is not None and found.get("settings") == settings

    def _done_names(self) -> set[str]:
        names = self.storage.names(f"{self._records}/done")
        return {name.removesuffix(".json") for name in names if name.endswith(".json")}

    def _remove(self, outputs: Iterable[str]) -> None:
        """Remove outputs that this package wrote, and their records."""
        for name in outputs:
            self.storage.remove(f"{self._records}/done/{name}.json")
            self.storage.remove(self.output(name))

    def read_fit(self) -> dict[str, Any] | None:
        """The record of the fit; None before it."""
        return self._read("fit")

    def write_fit(self, record: dict[str, Any]) -> None:
        """Write the record of the fit."""
        self._write("fit", record)

    def read_sample(self) -> dict[str, Any] | None:
        """Texts for a report, and their rows."""
        return self._read("sample")

    def write_sample(self, record: dict[str, Any]) -> None:
        """Write texts for a report."""
        self._write("sample", record)

    def read_done(self, output: str) -> dict[str, Any] | None:
        """The record of a finished partition; None before that."""
        return self._read(f"done/{output}")

    def write_done(self, output: str, record: dict[str, Any]) -> None:
        """Write the record of a finished partition."""
        self._write(f"done/{output}", record)

    def write_manifest(self, content: dict[str, Any]) -> None:
        """Write the manifest."""
        self._write_json(self._manifest, content)

    def remove_manifest(self) -> None:
        """Remove the manifest, since the outputs may change."""
        self.storage.remove(self._manifest)

    def _read(self, record: str) -> dict[str, Any] | None:
        """A record; None if there is none, or if it is damaged."""
        try:
            content = json.loads(self.storage.read(f"{self._records}/{record}.json") or b"")
        except ValueError:
            return None
        return content if isinstance(content, dict) else None

    def _write(self, record: str, content: dict[str, Any]) -> None:
        self._write_json(f"{self._records}/{record}.json", content)

    def _write_json(self, name: str, content: dict[str, Any]) -> None:
        with self.storage.replacing(name) as partial, partial.open("w", encoding="utf-8") as file:
            json.dump(content, file, indent=1, default=_plain)
            file.flush()
            os.fsync(file.fileno())


def _plain(value: Any) -> Any:
    """A NumPy number or a path as a plain value."""
    return value.item() if hasattr(value, "item") else str(value)
