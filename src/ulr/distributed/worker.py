"""State of a worker process: the encoder and the model, loaded once, and its number of threads."""

from __future__ import annotations

import os
import platform
import socket
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ulr
from ulr.distributed.storage import storage_of
from ulr.encoders import AnyEncoder, fingerprint, load_encoder
from ulr.errors import ClusterError, EncoderError
from ulr.files import sha256
from ulr.model import Model
from ulr.persistence import load_model

# Libraries read these when they are first used; what a user has set is kept.
_THREAD_VARIABLES = (
    "LOKY_MAX_CPU_COUNT",
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "RAYON_NUM_THREADS",
)


@dataclass(frozen=True)
class Environment:
    """What every worker of a job must have.

    Attributes
    ----------
    version, python
        Version of `ulr`, and the first two numbers of that of Python.
    encoder, fingerprint
        Name of the encoder, and what identifies its weights.
    cache
        Folder for the vectors of texts, or None.
    threads
        Number of threads of a task; None to leave it to the process.
    """

    version: str
    python: str
    encoder: str
    fingerprint: str
    cache: str | None = None
    threads: int | None = None

    def load_encoder(self) -> AnyEncoder:
        """The encoder of this process.

        Raises
        ------
        ClusterError
            When this worker has another version of `ulr` or of Python, or not the encoder.
        """
        where = f"the worker on {socket.gethostname()} (process {os.getpid()})"
        for what, here, wanted in (
            ("ulr", ulr.__version__, self.version),
            ("Python", python_version(), self.python),
        ):
            if here != wanted:
                raise ClusterError(
                    f"{where} has {what} {here}, but the job was started with {what} {wanted}; "
                    "install the same version there."
                )
        try:
            encoder: AnyEncoder = _loaded.get(f"{self.encoder} {self.fingerprint}", self._load)
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

    def _load(self) -> AnyEncoder:
        if self.threads is not None:
            limit_threads(self.threads)
        return load_encoder(self.encoder)

    def load_model(self, folder: str, model_hash: str) -> Model:
        """The model in a folder, whose content has a certain hash."""
        encoder = self.load_encoder()

        def load() -> Model:
            with storage_of(folder).local_folder(folder) as path:
                if folder_hash(path) != model_hash:
                    raise ClusterError(f"{folder} is not the model of this job; run it again.")
                return load_model(path, encoder, self.cache)[0].with_n_jobs(self.threads)

        model: Model = _loaded.get(f"{model_hash} {self.cache}", load)
        return model


class _LoadOnce:
    """Values that a process loads once; threads of a worker may ask at the same time."""

    def __init__(self) -> None:
        self._values: dict[str, Any] = {}
        self._lock = threading.Lock()

    def get(self, key: str, load: Any) -> Any:
        with self._lock:
            if key not in self._values:
                self._values[key] = load()
            return self._values[key]


# A worker process lives for many tasks. This is the only state that outlives one, and nothing but
# the time of a task depends on it.
_loaded = _LoadOnce()


def limit_threads(n_threads: int) -> None:
    """Limit the threads of numerical libraries in this worker process."""
    from threadpoolctl import threadpool_limits

    for name in _THREAD_VARIABLES:
        os.environ.setdefault(name, str(n_threads))
    threadpool_limits(n_threads)


def python_version() -> str:
    """The first two numbers of the version of Python."""
    return ".".join(platform.python_version_tuple()[:2])


def folder_hash(folder: Path) -> str:
    """Hash of the files in a folder."""
    names = sorted(each.name for each in folder.iterdir()) if folder.is_dir() else []
    return " ".join(sha256(folder / name) for name in names)
