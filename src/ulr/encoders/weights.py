"""Files of models: in installed packages, in folders, and on the Hugging Face hub.

A file is identified by the SHA-256 of its content, wherever it comes from.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import tempfile
import threading
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partialmethod
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ulr.errors import EncoderError, install_command
from ulr.files import sha256
from ulr.progress import Progress

_POLL_SECONDS = 0.2


@dataclass(frozen=True)
class PackagedFile:
    """A file in an installed package; the package itself is never imported."""

    package: str
    path: str
    sha256: str
    extra: str | None = None  # that installs the package
    requirement: str | None = None  # what pip installs, without an extra

    @property
    def name(self) -> str:
        """Name of the file, without its folder."""
        return Path(self.path).name

    @property
    def install(self) -> str:
        """The command that installs the package."""
        if self.extra is not None:
            return install_command(self.extra)
        return f"pip install {self.requirement or self.package}"

    def installed(self) -> bool:
        """Whether the file exists; its content is not verified."""
        return self._find() is not None

    def locate(self) -> Path:
        """The path of the file, its content verified."""
        if find_spec(self.package) is None:
            raise EncoderError(
                f"the package '{self.package}' is not installed; install it with: {self.install}."
            )
        file = self._find()
        if file is None:
            raise EncoderError(f"the installed package '{self.package}' has no file {self.path}.")
        if (found := sha256(file)) != self.sha256:
            raise EncoderError(
                f"{self.path} of the installed package '{self.package}' is not the expected file: "
                f"its sha256 is {found}, not {self.sha256}. Install the package again."
            )
        return file

    def _find(self) -> Path | None:
        spec = find_spec(self.package)
        folders = (spec.submodule_search_locations or []) if spec is not None else []
        files = (Path(folder) / self.path for folder in folders)
        return next((file for file in files if file.is_file()), None)


@dataclass(frozen=True)
class PackagedArchive:
    """A zip archive with a model, whose parts are files of several installed packages."""

    parts: tuple[PackagedFile, ...]  # in order

    def installed(self) -> bool:
        """Whether all parts exist."""
        return all(part.installed() for part in self.parts)

    def extract(self, files: Iterable[str], folder: Path) -> None:
        """Write files, given by their paths in the folder that the archive has, to a folder."""
        with tempfile.TemporaryFile() as joined:
            for part in self.parts:
                with part.locate().open("rb") as content:
                    shutil.copyfileobj(content, joined)
            with zipfile.ZipFile(joined) as archive:
                names = {name.partition("/")[2]: name for name in archive.namelist()}
                for file in files:
                    (folder / file).parent.mkdir(parents=True, exist_ok=True)
                    with archive.open(names[file]) as content, (folder / file).open("wb") as target:
                        shutil.copyfileobj(content, target)


def find_folder(name_or_path: str | Path, files: tuple[str, ...], **options: Any) -> Path:
    """A local folder, or one downloaded from the Hugging Face hub, of the files that exist."""
    folder = Path(name_or_path).expanduser()
    if folder.is_dir():
        return folder
    from huggingface_hub import errors

    name = str(name_or_path)
    try:
        return fetch_files(name, files, **options)
    except errors.HFValidationError:
        raise EncoderError(
            f"{name!r} is neither a folder nor the name of a model on the Hugging Face hub."
        ) from None
    except errors.GatedRepoError:
        raise EncoderError(
            f"the model {name!r} requires consent; give it on its page of the Hugging Face hub, "
            "then log in with: hf auth login."
        ) from None
    except errors.RepositoryNotFoundError:
        raise EncoderError(
            f"{name!r} is neither a folder nor a public model on the Hugging Face hub."
        ) from None
    except Exception as error:  # network errors have many types
        with contextlib.suppress(Exception):  # a copy from an earlier call
            return fetch_files(name, files, **options | {"local_files_only": True})
        raise EncoderError(
            f"{name!r} is not a folder, and the Hugging Face hub cannot be reached to download it "
            f"({first_line(error)}); connect to it, or give the folder of a model."
        ) from error


def absolute_name(name_or_path: str | Path) -> str:
    """A name that finds the model from any working directory: a path, or a name on the hub."""
    folder = Path(name_or_path).expanduser()
    return str(folder.absolute()) if folder.exists() else str(name_or_path)


def fetch_files(name: str, files: Iterable[str], **options: Any) -> Path:
    """The folder of some files of a model on the Hugging Face hub, downloaded without a bar."""
    from huggingface_hub import snapshot_download

    bar: Any = import_module("tqdm").tqdm
    hidden = type("HiddenBar", (bar,), {"__init__": partialmethod(bar.__init__, disable=True)})
    options |= {"allow_patterns": list(files), "tqdm_class": hidden}
    return Path(snapshot_download(name, **options))


def other_files(folder: Path, files: Mapping[str, str | None]) -> list[str]:
    """The files of a folder that do not have the expected hash."""
    return [file for file, known in files.items() if known and sha256(folder / file) != known]


@contextlib.contextmanager
def model_errors(problem: str) -> Iterator[None]:
    """Turn any error of a library about a model into one sentence."""
    try:
        yield
    except EncoderError:
        raise
    except Exception as error:  # a damaged or unsupported model can raise any type
        raise EncoderError(f"{problem}: {first_line(error)}") from error


def read_json(file: Path | None) -> Any:
    """Content of a JSON file; an empty object if there is no file."""
    if file is None or not file.is_file():
        return {}
    return json.loads(file.read_text(encoding="utf-8"))


def first_line(error: Exception) -> str:
    """The first line of an error's message."""
    lines = str(error).strip().splitlines()
    return lines[0].strip() if lines else type(error).__name__


@contextlib.contextmanager
def growth_reported(folder: Path, n_bytes: int, progress: Progress) -> Iterator[None]:
    """Report the growth of a folder while the block runs: bars of huggingface_hub vary."""
    progress.stage("Downloading", n_bytes, "bytes")
    stopped = threading.Event()

    def watch() -> None:
        reported = 0
        while not stopped.wait(_POLL_SECONDS):
            sizes = (path.stat().st_size for path in folder.rglob("*") if path.is_file())
            with contextlib.suppress(OSError):  # one was renamed meanwhile
                arrived = min(sum(sizes), n_bytes)
                progress.advance(max(0, arrived - reported))
                reported = max(reported, arrived)

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stopped.set()
        thread.join()
