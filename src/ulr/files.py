"""Output that appears whole or not at all: written beside its place, then renamed into it."""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from ulr.errors import InputError


def refuse_existing(path: Path, force: bool, error: type[InputError], how: str) -> None:
    """Say so now if writing `path` could not end well.

    Called before long work, so that nobody waits an hour to learn that the name is taken.
    """
    if path.exists() and not force:
        raise error(f"{path} already exists; choose another name, or replace it with {how}.")
    if not path.parent.is_dir():
        raise error(f"there is no folder {path.parent} to write {path.name} into.")


@contextlib.contextmanager
def whole_file(path: Path) -> Iterator[IO[bytes]]:
    """A binary file to write to, which takes its name only when the block ends without an error.

    Where the system has files without a name, even a killed process leaves nothing behind.
    """
    partial = _beside(path)
    unnamed = _unnamed_file(path.parent)
    try:
        with unnamed or partial.open("xb") as file:
            yield file
            file.flush()
            if unnamed is not None:
                # With a descriptor given, Python calls linkat, which follows the link in /proc.
                descriptor = file.fileno()
                os.link(f"/proc/self/fd/{descriptor}", partial, src_dir_fd=descriptor)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


@contextlib.contextmanager
def whole_folder(path: Path) -> Iterator[Path]:
    """A folder to fill, which takes its name, and any older one's place, only at the end."""
    partial, retired = _beside(path), _beside(path)
    partial.mkdir()
    try:
        yield partial
        if path.exists():
            path.rename(retired)
        partial.rename(path)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
        if retired.exists() and not path.exists():
            retired.rename(path)
        shutil.rmtree(retired, ignore_errors=True)


@contextlib.contextmanager
def scratch_file() -> Iterator[tuple[IO[bytes], Path]]:
    """A file to keep something in for a while, and the path to read it by while it is open."""
    unnamed = _unnamed_file(Path(tempfile.gettempdir()))
    if unnamed is not None:
        with unnamed:
            yield unnamed, Path(f"/proc/self/fd/{unnamed.fileno()}")
    else:
        with tempfile.NamedTemporaryFile(prefix="ulr-") as named:
            yield named, Path(named.name)


def user_cache(kind: str) -> Path:
    """The folder for what can be made again, in the user's cache folder."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ulr" / kind


def places_for(path: Path, kind: str, folder: Path | None = None) -> list[Path]:
    """Where what was made of a file may be kept, the best place first.

    Beside it, as ``PATH.ulr``, or in the user's cache folder; in a given folder only.
    """
    name = hashlib.sha256(os.fsencode(path.resolve())).hexdigest()[:32]
    if folder is not None:
        return [folder / name]
    return [path.with_name(f"{path.name}.ulr"), user_cache(kind) / name]


def sha256(path: Path) -> str:
    """The hash of a file's content, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _beside(path: Path) -> Path:
    return path.with_name(f".{path.name}.{secrets.token_hex(6)}.partial")


def _unnamed_file(directory: Path) -> IO[bytes] | None:
    """An open file without a name, or None where the system or file system has none."""
    if not hasattr(os, "O_TMPFILE") or not os.path.isdir("/proc/self/fd"):
        return None
    try:
        descriptor = os.open(directory, os.O_TMPFILE | os.O_RDWR, 0o666)
    except OSError:
        return None
    return os.fdopen(descriptor, "w+b")
