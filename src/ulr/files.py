"""Files by path or by address (``s3://bucket/x.csv``): atomic writes, reading, and the user's cache."""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import os
import platform
import re
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from ulr.errors import InputError, TableError, UlrError

GZIP = b"\x1f\x8b"
_AT_FDCWD, _RENAME_EXCHANGE = -100, 2  # of Linux: paths as they are; exchange two names


def is_remote(name: str | Path) -> bool:
    """Whether a name is the address of a file in an object store."""
    return "://" in str(name) and not str(name).startswith("file://")


def file_system(name: str | Path) -> tuple[Any, str]:
    """The file system of fsspec that a path or an address belongs to, and the path in it."""
    import fsspec  # on use: `import ulr` stays light

    if not is_remote(name):  # not by url_to_fs, for which "::" in a name has a meaning
        return fsspec.filesystem("file"), os.path.abspath(str(name).removeprefix("file://"))
    with store_errors(name):
        system, path = fsspec.url_to_fs(str(name))
        return system, path.rstrip("/")


@contextlib.contextmanager
def store_errors(name: str | Path, error: type[InputError] = TableError) -> Iterator[None]:
    """Turn what a store raises into one sentence; every package has its own exceptions."""
    try:
        yield
    except UlrError:
        raise
    except ImportError as failure:
        package = getattr(failure.__cause__ or failure, "name", None)
        raise error(
            f"{name} needs {package!r}, which is not installed; install it with: pip install {package}"
        ) from None
    except FileNotFoundError:
        raise error(f"{name} cannot be reached: there is no such file, folder or bucket.") from None
    except Exception as failure:
        reason = getattr(failure, "strerror", None) or " ".join(str(failure).split())
        raise error(
            f"{name} cannot be reached: {(reason or type(failure).__name__).rstrip('.')}."
        ) from None


@contextlib.contextmanager
def open_bytes(name: str | Path) -> Iterator[IO[bytes]]:
    """Content of a file, decompressed if it is gzipped; its ending does not matter."""
    system, path = file_system(name) if is_remote(name) else (None, str(name))
    # Not fsspec for local files: it runs Python code for every line, a tenth of the time for JSON.
    local = Path(path.removeprefix("file://"))
    with local.open("rb") if system is None else system.open(path, "rb") as raw:
        compressed = raw.read(len(GZIP)) == GZIP
        raw.seek(0)
        file: Any = gzip.GzipFile(fileobj=raw) if compressed else raw
        yield file


def real_path(name: str | Path) -> Path:
    """A path without symbolic links; of links that lead to each other, the path itself.

    `Path.resolve` raises a RuntimeError for them.
    """
    return Path(os.path.realpath(name))


def check_destination(path: Path, force: bool, error: type[InputError], how: str) -> None:
    """Refuse a destination that could not be written; `how` names what replaces a file."""
    if path.exists() and not force:
        raise error(f"{path} already exists; choose another name, or replace it with {how}.")
    if (target := real_path(path)).is_symlink():
        raise error(f"{path} is a symbolic link that leads to itself.")
    folder = target.parent
    if not folder.is_dir():
        raise error(f"there is no folder {path.parent} to write {path.name} into.")
    try:
        # Only a try tells, of file systems of any kind.
        (_unnamed_file(folder) or tempfile.NamedTemporaryFile(dir=folder)).close()  # noqa: SIM115
    except OSError as failure:
        raise error(f"the folder {path.parent} cannot be written to: {failure.strerror}.") from None


@contextlib.contextmanager
def atomic_file(name: str | Path) -> Iterator[IO[bytes]]:
    """A binary file that gets its name when the block ends without an error.

    It replaces a file of that name, keeps its permissions, and writes through symbolic links. Where
    the system has files without a name, even a killed process leaves nothing behind. If another
    process has written the file meanwhile, that is an error. A file of an object store is uploaded
    at the end of the block.
    """
    if is_remote(name):
        with temporary_folder() as folder:
            copy = folder / "file"
            with copy.open("xb") as file:
                yield file
            with store_errors(name):  # a store shows no part of an upload before its end
                system, remote = file_system(name)
                system.put_file(str(copy), remote)
        return
    path = real_path(name)
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
    with contextlib.suppress(FileNotFoundError):
        stat = path.stat()
        return stat.st_ino, stat.st_size, stat.st_mtime_ns
    return None


def file_state(name: str | Path) -> object:
    """What differs after a file, or a file of a folder, was written; None for no such file."""
    path = Path(name)
    with contextlib.suppress(OSError):
        if path.is_dir():
            return {each.name: _identity(each) for each in path.iterdir() if each.name[0] != "."}
        return _identity(path)
    return None


@contextlib.contextmanager
def atomic_folder(path: Path) -> Iterator[Path]:
    """A folder to fill, which gets its name, and replaces an older one, when the block ends.

    Where the system can exchange two names, there is a complete folder of the name at every moment.
    """
    path = real_path(path)
    partial, retired = _beside(path), _beside(path)
    partial.mkdir()
    try:
        yield partial
        for file in filter(Path.is_file, partial.iterdir()):
            with file.open("r+b") as written:  # Windows does not sync what is open for reading
                os.fsync(written.fileno())
        if path.exists():
            shutil.copymode(path, partial)
            if _exchange(partial, path):  # the older folder is removed in place of the partial one
                return
            path.rename(retired)
        partial.rename(path)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
        if retired.exists() and not path.exists():
            retired.rename(path)
        shutil.rmtree(retired, ignore_errors=True)


def _exchange(one: Path, other: Path) -> bool:
    """Exchange the names of two folders in one step; False where the system cannot."""
    import ctypes

    try:
        renameat2 = ctypes.CDLL(None).renameat2
    except (AttributeError, OSError, TypeError):  # not Linux
        return False
    return renameat2(_AT_FDCWD, bytes(one), _AT_FDCWD, bytes(other), _RENAME_EXCHANGE) == 0


@contextlib.contextmanager
def temporary_copy(stream: IO[bytes]) -> Iterator[Path]:
    """Path of a copy of a stream, which can be read several times and is deleted at the end."""
    unnamed = _unnamed_file(Path(tempfile.gettempdir()))
    if unnamed is not None:
        with unnamed:
            shutil.copyfileobj(stream, unnamed)
            unnamed.flush()
            yield Path(f"/proc/self/fd/{unnamed.fileno()}")
        return
    with temporary_folder() as folder:
        path = folder / "copy"
        # Closed before it is read: Windows does not open a file a second time.
        with path.open("xb") as copy:
            shutil.copyfileobj(stream, copy)
        yield path


@contextlib.contextmanager
def temporary_folder() -> Iterator[Path]:
    """A temporary folder, which only its user can read and which is deleted at the end.

    Those of processes that were killed are deleted as well.
    """
    parent = Path(tempfile.gettempdir())
    _remove_leftovers(parent, "ulr-", "")
    with tempfile.TemporaryDirectory(prefix=f"ulr-{_process_mark()}-") as folder:
        yield Path(folder)


def _beside(path: Path) -> Path:
    """A new hidden name beside a path, after what killed processes left there was removed."""
    _remove_leftovers(path.parent, f".{path.name}.", ".partial")
    return path.with_name(f".{path.name}.{_process_mark()}-{secrets.token_hex(3)}.partial")


def _process_mark(process: int | None = None) -> str:
    """A process in the name of a temporary file; of several machines, which can share a folder."""
    host = hashlib.sha256(f"{platform.node()} {os.name}".encode()).hexdigest()[:6]
    return f"{host}.{os.getpid() if process is None else process}"


def _remove_leftovers(folder: Path, prefix: str, suffix: str) -> None:
    """Remove temporary files and folders whose process has ended on this machine."""
    here = re.escape(_process_mark(0).removesuffix("0"))
    pattern = re.compile(f"{re.escape(prefix)}{here}([0-9]+)-.*{re.escape(suffix)}")
    with contextlib.suppress(OSError):
        for name in os.listdir(folder):
            found = pattern.fullmatch(name)
            if found is None or _is_running(int(found[1])):
                continue
            path = folder / name
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)


def _is_running(process: int) -> bool:
    """Whether there is a process of a number; on Windows, asking would end it."""
    if os.name == "nt":
        return True
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        pass
    return True


def _unnamed_file(directory: Path) -> IO[bytes] | None:
    """An open file without a name, or None where the system or file system has none."""
    if hasattr(os, "O_TMPFILE") and os.path.isdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            return os.fdopen(os.open(directory, os.O_TMPFILE | os.O_RDWR, 0o666), "w+b")
    return None


def user_cache(kind: str) -> Path:
    """A folder in the user's cache folder, for what can be made again."""
    import platformdirs

    return platformdirs.user_cache_path("ulr", appauthor=False) / kind


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
