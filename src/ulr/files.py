"""Atomic writes: files and folders that appear complete or not at all."""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import os
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from ulr.errors import InputError


def refuse_existing(path: Path, force: bool, error: type[InputError], how: str) -> None:
    """Refuse a destination that could not be written, before the long part of a job.

    Parameters
    ----------
    path
        Where the output will be.
    force
        Whether an existing file may be replaced.
    error
        What to raise.
    how
        What replaces an existing file, for the message.
    """
    if path.exists() and not force:
        raise error(f"{path} already exists; choose another name, or replace it with {how}.")
    folder = path.resolve().parent
    if not folder.is_dir():
        raise error(f"there is no folder {path.parent} to write {path.name} into.")
    if not os.access(folder, os.W_OK):
        raise error(f"the folder {path.parent} cannot be written to.")


@contextlib.contextmanager
def atomic_file(path: Path) -> Iterator[IO[bytes]]:
    """A binary file that gets its name when the block ends without an error.

    It replaces a file of that name, keeps its permissions, and writes through symbolic links. Where
    the system has files without a name, even a killed process leaves nothing behind. If another
    process has written the file meanwhile, that is an error.
    """
    path = path.resolve()
    before = _identity(path)
    partial = _beside(path)
    unnamed = _unnamed_file(path.parent)
    try:
        with unnamed or partial.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
            if unnamed is not None:
                # With a descriptor given, Python calls linkat, which follows the link in /proc.
                descriptor = file.fileno()
                os.link(f"/proc/self/fd/{descriptor}", partial, src_dir_fd=descriptor)
        if _identity(path) != before:
            raise InputError(f"{path} was written by another process meanwhile; it is kept.")
        if before is not None:
            shutil.copymode(path, partial)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def _identity(path: Path) -> tuple[int, int, int] | None:
    try:
        stat = path.stat()
    except FileNotFoundError:
        return None
    return stat.st_ino, stat.st_size, stat.st_mtime_ns


@contextlib.contextmanager
def atomic_folder(path: Path) -> Iterator[Path]:
    """A folder to fill, which gets its name, and replaces an older one, when the block ends."""
    path = path.resolve()
    partial, retired = _beside(path), _beside(path)
    partial.mkdir()
    try:
        yield partial
        for file in partial.iterdir():
            _sync(file)
        if path.exists():
            shutil.copymode(path, partial)
            path.rename(retired)
        partial.rename(path)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
        if retired.exists() and not path.exists():
            retired.rename(path)
        shutil.rmtree(retired, ignore_errors=True)


def _sync(file: Path) -> None:
    if file.is_file():
        descriptor = os.open(file, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


@contextlib.contextmanager
def temporary_copy(stream: IO[bytes]) -> Iterator[Path]:
    """Path of a copy of a stream, which can be read several times and is deleted at the end.

    Where the system has files without a name, even a killed process leaves nothing behind.
    """
    unnamed = _unnamed_file(Path(tempfile.gettempdir()))
    if unnamed is not None:
        with unnamed:
            shutil.copyfileobj(stream, unnamed)
            unnamed.flush()
            yield Path(f"/proc/self/fd/{unnamed.fileno()}")
        return
    # Closed before it is read: Windows does not open a file a second time.
    with tempfile.NamedTemporaryFile(prefix="ulr-", delete=False) as named:
        path = Path(named.name)
    try:
        with path.open("wb") as copy:
            shutil.copyfileobj(stream, copy)
        yield path
    finally:
        path.unlink(missing_ok=True)


@contextlib.contextmanager
def open_bytes(path: Path) -> Iterator[IO[bytes]]:
    """Content of a file, decompressed if it is gzipped; its name does not matter."""
    with path.open("rb") as raw:
        compressed = raw.read(2) == b"\x1f\x8b"
        raw.seek(0)
        if compressed:
            with gzip.open(raw) as file:
                yield file  # type: ignore[misc]
        else:
            yield raw


def user_cache(kind: str) -> Path:
    """A folder in the user's cache folder, for what can be made again."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ulr" / kind


@dataclass(frozen=True)
class FileIdentity:
    """Size, modification time and content hash of a file, to recognise it later."""

    n_bytes: int
    mtime_ns: int
    sha256: str

    @classmethod
    def of(cls, path: Path) -> FileIdentity:
        """The identity of a file as it is now."""
        stat = path.stat()
        return cls(stat.st_size, stat.st_mtime_ns, sha256(path))

    def matches(self, path: Path) -> bool:
        """Whether a file is the same; it is hashed only if its modification time differs."""
        stat = path.stat()
        if stat.st_size != self.n_bytes:
            return False
        return stat.st_mtime_ns == self.mtime_ns or sha256(path) == self.sha256


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
