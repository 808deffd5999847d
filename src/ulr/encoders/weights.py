"""Sources of weights: installed packages, folders, and the Hugging Face hub."""

from __future__ import annotations

import contextlib
import shutil
from dataclasses import dataclass
from functools import partialmethod
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ulr.errors import EncoderError
from ulr.files import sha256


def install_command(extra: str) -> str:
    """The commands that install an extra, from the package index or in a clone."""
    return f"pip install 'ulr[{extra}]' (in a clone: pip install -e '.[{extra}]')"


@dataclass(frozen=True)
class PackagedFile:
    """A file in an installed package; the package itself is never imported."""

    package: str
    path: str
    sha256: str
    extra: str | None = None

    @property
    def install(self) -> str:
        """The command that installs the package."""
        return install_command(self.extra) if self.extra else f"pip install {self.package}"

    def installed(self) -> bool:
        """Whether the file exists; its content is not verified."""
        spec = find_spec(self.package)
        return spec is not None and (Path(spec.origin or "").parent / self.path).is_file()

    def locate(self) -> Path:
        """The path of the file, its content verified.

        Raises
        ------
        EncoderError
            If the package is not installed or the file is another one.
        """
        spec = find_spec(self.package)
        if spec is None or spec.origin is None:
            raise EncoderError(
                f"the package '{self.package}' is not installed; install it with: {self.install}."
            )
        file = Path(spec.origin).parent / self.path
        if not file.is_file():
            raise EncoderError(f"the installed package '{self.package}' has no file {self.path}.")
        found = sha256(file)
        if found != self.sha256:
            raise EncoderError(
                f"{self.path} of the installed package '{self.package}' is not the expected file: "
                f"its sha256 is {found}, not {self.sha256}. Install the package again."
            )
        return file


def find_folder(name_or_path: str | Path, files: tuple[str, ...]) -> Path:
    """A folder of model files: a local one, or one downloaded from the Hugging Face hub.

    Parameters
    ----------
    name_or_path
        A folder, or a name such as ``sentence-transformers/all-MiniLM-L6-v2``.
    files
        Files and patterns to download, if they exist.

    Raises
    ------
    EncoderError
        If there is neither.
    """
    folder = Path(name_or_path).expanduser()
    if folder.is_dir():
        return folder
    from huggingface_hub import errors

    name = str(name_or_path)
    try:
        return _newest_snapshot(name, files)
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
        raise EncoderError(
            f"{name!r} is not a folder, and the Hugging Face hub cannot be reached to download it "
            f"({first_line(error)}); connect to it, or give the folder of a model."
        ) from error


def download_files(name: str, files: tuple[str, ...], folder: Path) -> None:
    """Download files of a model on the Hugging Face hub into a folder.

    Raises
    ------
    EncoderError
        If the hub cannot be reached, or the model lacks one of the files.
    """
    from huggingface_hub import snapshot_download

    options: dict[str, Any] = {"allow_patterns": list(files), "tqdm_class": _hidden_bar()}
    try:
        snapshot_download(name, local_dir=folder, **options)
    except Exception as error:  # network errors have many types
        raise EncoderError(
            f"{name} on the Hugging Face hub cannot be reached ({first_line(error).rstrip('.')})."
        ) from error
    shutil.rmtree(folder / ".cache", ignore_errors=True)
    if missing := [file for file in files if not (folder / file).is_file()]:
        raise EncoderError(f"{name} on the Hugging Face hub has no {', '.join(missing)}.")


def _newest_snapshot(name: str, files: tuple[str, ...]) -> Path:
    """The newest version of a model, or the local copy if the network fails."""
    from huggingface_hub import errors, snapshot_download

    options: dict[str, Any] = {"allow_patterns": list(files), "tqdm_class": _hidden_bar()}
    try:
        return Path(snapshot_download(name, **options))
    except (errors.HFValidationError, errors.RepositoryNotFoundError):
        raise
    except Exception:
        with contextlib.suppress(Exception):
            return Path(snapshot_download(name, local_files_only=True, **options))
        raise


def _hidden_bar() -> Any:
    """A progress bar of tqdm that is not shown."""
    bar: Any = import_module("tqdm").tqdm
    return type("HiddenBar", (bar,), {"__init__": partialmethod(bar.__init__, disable=True)})


def first_line(error: Exception) -> str:
    """The first line of an error's message."""
    lines = str(error).strip().splitlines()
    return lines[0].strip() if lines else type(error).__name__
