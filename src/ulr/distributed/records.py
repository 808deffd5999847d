"""The folder of a job: outputs, the model, and JSON records from which a stopped job goes on.

    out/part-1.parquet …     the outputs, one per partition
    out/_SUCCESS.json        the manifest, written last
    out/_ulr/job.json        what the job is: a hash of its settings
    out/_ulr/fit.json        the partitions that were sampled, and the report of the fit
    out/_ulr/model/          the model
    out/_ulr/done/*.json     one record per finished partition

Readers of Parquet folders skip names that begin with an underscore.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ulr.errors import ClusterError, TableError
from ulr.files import refuse_existing


@dataclass(frozen=True)
class JobFolder:
    """The output folder of a job."""

    path: Path

    @property
    def model(self) -> Path:
        """The folder of the model."""
        return self._records / "model"

    @property
    def manifest(self) -> Path:
        """The manifest of a finished job."""
        return self.path / "_SUCCESS.json"

    @property
    def _records(self) -> Path:
        return self.path / "_ulr"

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
        job = self._records / "job.json"
        found = _read(job)
        if found is not None and found.get("settings") != settings:
            if not force:
                raise ClusterError(
                    f"{self.path} holds the results of another job: other labels, settings or "
                    "version of ulr. Choose another folder, or replace them with --force."
                )
            self._remove(self._done_names())
            found = None
        if found is None:
            if not self.path.is_dir():
                refuse_existing(self.path, False, ClusterError, "--force")
            for name in outputs if self.path.is_dir() else ():
                refuse_existing(self.path / name, force, ClusterError, "--force")
            shutil.rmtree(self._records, ignore_errors=True)
            (self._records / "done").mkdir(parents=True)
            _write(job, {"settings": settings})
        others = sorted(self._done_names() - set(outputs))
        if others and not force:
            raise ClusterError(
                f"{self.path} also holds {others[0]}, whose input is not given now; choose another "
                "folder, or remove it with --force."
            )
        self._remove(others)

    def belongs_to(self, settings: str) -> bool:
        """Whether a job with these settings was begun in this folder."""
        found = _read(self._records / "job.json")
        return found is not None and found.get("settings") == settings

    def _done_names(self) -> set[str]:
        return {each.name.removesuffix(".json") for each in (self._records / "done").glob("*.json")}

    def _remove(self, outputs: Iterable[str]) -> None:
        """Remove outputs that this package wrote, and their records."""
        for name in outputs:
            self._done(name).unlink(missing_ok=True)
            (self.path / name).unlink(missing_ok=True)

    def read_fit(self) -> dict[str, Any] | None:
        """The record of the fit; None before it."""
        return _read(self._records / "fit.json")

    def write_fit(self, record: dict[str, Any]) -> None:
        """Write the record of the fit."""
        _write(self._records / "fit.json", record)

    def read_done(self, output: str) -> dict[str, Any] | None:
        """The record of a finished partition; None before that."""
        return _read(self._done(output))

    def write_done(self, output: str, record: dict[str, Any]) -> None:
        """Write the record of a finished partition."""
        _write(self._done(output), record)

    def _done(self, output: str) -> Path:
        return self._records / "done" / f"{output}.json"

    def write_manifest(self, content: dict[str, Any]) -> None:
        """Write the manifest."""
        _write(self.manifest, content)

    def remove_manifest(self) -> None:
        """Remove the manifest, since the outputs may change."""
        self.manifest.unlink(missing_ok=True)


def _read(path: Path) -> dict[str, Any] | None:
    """A record; None if there is none, or if it is damaged."""
    with contextlib.suppress(OSError, ValueError):
        content = json.loads(path.read_text(encoding="utf-8"))
        return content if isinstance(content, dict) else None
    return None


def _write(path: Path, content: dict[str, Any]) -> None:
    with replacing(path) as partial, partial.open("w", encoding="utf-8") as file:
        json.dump(content, file, ensure_ascii=False, indent=1, default=_plain)
        file.flush()
        os.fsync(file.fileno())


def _plain(value: Any) -> Any:
    """A NumPy number or a path as a plain value."""
    return value.item() if hasattr(value, "item") else str(value)


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A path to write to, which then gets the given name, even if another worker has written it.

    A task may run twice at a time, when a worker is out of reach but alive; both write the same.
    """
    partial = path.with_name(f".{secrets.token_hex(6)}.{path.name}")
    try:
        yield partial
        os.replace(partial, path)
    except OSError as error:
        raise TableError(f"{path} cannot be written: {error.strerror or error}.") from error
    finally:
        partial.unlink(missing_ok=True)
