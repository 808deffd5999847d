"""Files and folders of a job by name: local paths, or addresses such as ``s3://bucket/folder``.

A remote file is downloaded to be read. One that is written is complete before it is uploaded, and
gets its name when the upload ends; nothing is renamed.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol

from ulr.errors import ClusterError, TableError
from ulr.files import refuse_existing, sha256, temporary_copy
from ulr.tables import find_files, format_of_name

_LOCAL = "file://"


class Storage(Protocol):
    """Where files are; names of files and folders have no slash at their end."""

    def find(self, name: str) -> list[str]:
        """The files that a path, a folder or a pattern stands for, sorted by name."""
        ...

    def absolute(self, folder: str) -> str:
        """The name of a folder for every worker."""
        ...

    def size(self, name: str) -> int | None:
        """Bytes of a file; None if there is none."""
        ...

    def total_size(self, names: Sequence[str]) -> int:
        """Bytes of several files that exist."""
        ...

    def identify(self, name: str) -> tuple[int, str]:
        """Size and hash of a file, or its ETag; an empty hash if it cannot be read."""
        ...

    def stamp(self, name: str) -> str:
        """What changes when a file is written: its modification time or its properties."""
        ...

    def read(self, name: str) -> bytes | None:
        """Content of a small file; None if there is none."""
        ...

    def local_copy(self, name: str) -> AbstractContextManager[Path]:
        """A local path with the content of a file."""
        ...

    def replacing(self, name: str) -> AbstractContextManager[Path]:
        """A local path to write to; its content then gets the given name, complete."""
        ...

    def local_folder(self, folder: str) -> AbstractContextManager[Path]:
        """A local path with the files of a folder."""
        ...

    def replacing_folder(self, folder: str) -> AbstractContextManager[Path]:
        """A local path to write a folder to, which then replaces the given one."""
        ...

    def names(self, folder: str) -> list[str]:
        """Names of the files in a folder, without hidden ones and those of the folders in it."""
        ...

    def make_folder(self, folder: str) -> None:
        """Create a folder unless it is there; refuse one that cannot be written to."""
        ...

    def remove(self, name: str) -> None:
        """Remove a file or a folder, if it is there."""
        ...


def is_remote(name: str) -> bool:
    """Whether a name is an address that fsspec opens."""
    return "://" in name and not name.startswith(_LOCAL)


def storage_of(name: str) -> Storage:
    """The storage that a name belongs to.

    Raises
    ------
    ClusterError
        When the package for such addresses is not installed.
    """
    if not is_remote(name):
        return LocalStorage()
    import fsspec

    with _reaching(name):
        return RemoteStorage(name.partition("://")[0], fsspec.url_to_fs(name)[0])


def total_size(names: Sequence[str]) -> int:
    """Bytes of several files, which may be in several storages."""
    remote = [name for name in names if is_remote(name)]
    local = [name for name in names if not is_remote(name)]
    return sum(storage_of(some[0]).total_size(some) for some in (remote, local) if some)


class LocalStorage:
    """Local and mounted files; see `Storage`."""

    def find(self, name: str) -> list[str]:
        """The files that a path, a folder or a pattern stands for."""
        return [str(path) for path in find_files(name.removeprefix(_LOCAL))]

    def absolute(self, folder: str) -> str:
        """The name of a folder for every worker."""
        return str(Path(folder.removeprefix(_LOCAL)).resolve())

    def size(self, name: str) -> int | None:
        """Bytes of a file."""
        path = Path(name)
        return path.stat().st_size if path.is_file() else None

    def total_size(self, names: Sequence[str]) -> int:
        """Bytes of several files."""
        return sum(Path(name).stat().st_size for name in names)

    def identify(self, name: str) -> tuple[int, str]:
        """Size and hash of a file."""
        try:
            return Path(name).stat().st_size, sha256(Path(name))
        except OSError:
            return 0, ""

    def stamp(self, name: str) -> str:
        """The modification time."""
        try:
            return str(Path(name).stat().st_mtime_ns)
        except OSError:
            return ""

    def read(self, name: str) -> bytes | None:
        """Content of a small file."""
        try:
            return Path(name).read_bytes()
        except OSError:
            return None

    @contextlib.contextmanager
    def local_copy(self, name: str) -> Iterator[Path]:
        """The file itself."""
        yield Path(name).resolve()

    @contextlib.contextmanager
    def replacing(self, name: str) -> Iterator[Path]:
        """A file beside it, even if another worker writes it too.

        A task may run twice at a time, when a worker is out of reach but alive; both write the same.
        """
        path = Path(name)
        partial = path.with_name(f".{secrets.token_hex(6)}.{path.name}")
        try:
            yield partial
            os.replace(partial, path)
        except OSError as error:
            raise TableError(f"{path} cannot be written: {error.strerror or error}.") from error
        finally:
            partial.unlink(missing_ok=True)

    @contextlib.contextmanager
    def local_folder(self, folder: str) -> Iterator[Path]:
        """The folder itself."""
        yield Path(folder)

    @contextlib.contextmanager
    def replacing_folder(self, folder: str) -> Iterator[Path]:
        """The folder itself; what is written to it is atomic."""
        yield Path(folder)

    def names(self, folder: str) -> list[str]:
        """Names of the files in a folder."""
        found = Path(folder).iterdir() if Path(folder).is_dir() else ()
        return sorted(each.name for each in found if each.name[0] != "." and each.is_file())

    def make_folder(self, folder: str) -> None:
        """Create a folder."""
        path = Path(folder)
        exists = path.is_dir()
        refuse_existing(path / "_" if exists else path, exists, ClusterError, "--force")
        path.mkdir(exist_ok=True)

    def remove(self, name: str) -> None:
        """Remove a file or a folder."""
        path = Path(name)
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


class RemoteStorage:
    """Files that fsspec reads and writes; see `Storage`.

    Parameters
    ----------
    protocol
        Beginning of the addresses, such as ``s3``.
    system
        fsspec's file system.
    """

    def __init__(self, protocol: str, system: Any) -> None:
        self._protocol, self._system = protocol, system

    def find(self, name: str) -> list[str]:
        """The files that an address, a folder or a pattern stands for."""
        path = self._path(name)
        with _reaching(name):
            self._system.invalidate_cache()
            if set("*?[") & set(path):
                found = self._system.glob(path, detail=True).values()
                files = [each["name"] for each in found if each["type"] == "file"]
            elif self._system.isdir(path):
                visible = [each for each in self.names(name) if each[0] != "_"]
                files = [f"{path}/{each}" for each in visible if format_of_name(each)]
            else:
                files = [path] if self._system.exists(path) else []
        if not files:
            raise TableError(f"there is no file {name}.")
        return [f"{self._protocol}://{each}" for each in sorted(files)]

    def absolute(self, folder: str) -> str:
        """The address, which is that of every worker."""
        return folder.rstrip("/")

    def size(self, name: str) -> int | None:
        """Bytes of a file."""
        found = self._info(name)
        return None if found is None else int(found["size"])

    def total_size(self, names: Sequence[str]) -> int:
        """Bytes of several files."""
        with _reaching(names[0]):
            return sum(self._system.sizes([self._path(name) for name in names]))

    def identify(self, name: str) -> tuple[int, str]:
        """Size and ETag of a file; where the store has no ETags, the hash of its content."""
        found = self._info(name)
        if found is None:
            return 0, ""
        tag = found.get("ETag") or found.get("etag")
        if tag:
            return int(found["size"]), str(tag)
        with self.local_copy(name) as path:
            return path.stat().st_size, sha256(path)

    def stamp(self, name: str) -> str:
        """The properties of a file."""
        return str(self._info(name))

    def _info(self, name: str) -> dict[str, Any] | None:
        with _reaching(name), contextlib.suppress(FileNotFoundError):
            self._system.invalidate_cache()
            found: dict[str, Any] = self._system.info(self._path(name))
            return found
        return None

    def read(self, name: str) -> bytes | None:
        """Content of a small file."""
        with _reaching(name), contextlib.suppress(FileNotFoundError):
            content: bytes = self._system.cat_file(self._path(name))
            return content
        return None

    @contextlib.contextmanager
    def local_copy(self, name: str) -> Iterator[Path]:
        """A temporary file."""
        if self._info(name) is None:
            raise TableError(f"there is no file {name}.")
        with contextlib.ExitStack() as files:
            with _reaching(name), self._system.open(self._path(name), "rb") as stream:
                path = files.enter_context(temporary_copy(stream))
            yield path

    @contextlib.contextmanager
    def replacing(self, name: str) -> Iterator[Path]:
        """A temporary file, which is uploaded at the end."""
        with tempfile.TemporaryDirectory(prefix="ulr-") as folder:
            path = Path(folder, name.rpartition("/")[2])
            yield path
            self._upload(path, name)

    def _upload(self, path: Path, name: str) -> None:
        # One PUT, or a multipart upload of a large file: an object store shows neither before its end.
        with _reaching(name):
            self._system.put_file(str(path), self._path(name))

    @contextlib.contextmanager
    def local_folder(self, folder: str) -> Iterator[Path]:
        """A temporary folder."""
        with tempfile.TemporaryDirectory(prefix="ulr-") as local:
            for each in self.names(folder):
                with _reaching(folder):
                    self._system.get_file(f"{self._path(folder)}/{each}", f"{local}/{each}")
            yield Path(local)

    @contextlib.contextmanager
    def replacing_folder(self, folder: str) -> Iterator[Path]:
        """A temporary folder, whose files are uploaded at the end."""
        with tempfile.TemporaryDirectory(prefix="ulr-") as local:
            path = Path(local, "folder")
            yield path
            self.remove(folder)
            for each in path.iterdir():
                self._upload(each, f"{folder}/{each.name}")

    def names(self, folder: str) -> list[str]:
        """Names of the files in a folder."""
        with _reaching(folder), contextlib.suppress(FileNotFoundError):
            self._system.invalidate_cache()
            found = self._system.ls(self._path(folder), detail=True)
            files = [each["name"].rpartition("/")[2] for each in found if each["type"] == "file"]
            return sorted(name for name in files if name and name[0] != ".")
        return []

    def make_folder(self, folder: str) -> None:
        """Create a folder; an object store has none, and only its bucket must exist."""
        with _reaching(folder), contextlib.suppress(FileExistsError):
            self._system.mkdir(self._path(folder), create_parents=False)

    def remove(self, name: str) -> None:
        """Remove a file or a folder."""
        with _reaching(name), contextlib.suppress(FileNotFoundError):
            self._system.invalidate_cache()
            self._system.rm(self._path(name), recursive=True)

    def _path(self, name: str) -> str:
        path: str = self._system._strip_protocol(name)
        return path.rstrip("/")


@contextlib.contextmanager
def _reaching(name: str) -> Iterator[None]:
    """Turn what a store raises into one sentence; every package has its own exceptions."""
    try:
        yield
    except ClusterError:
        raise
    except ImportError as error:
        package = getattr(error.__cause__ or error, "name", None)
        raise ClusterError(
            f"{name} needs {package!r}, which is not installed; install it here and on every worker "
            f"with: pip install {package}"
        ) from None
    except Exception as error:
        reason = getattr(error, "strerror", None) or " ".join(str(error).split())
        if isinstance(error, FileNotFoundError):
            reason = "there is no such file, folder or bucket"
        raise ClusterError(
            f"{name} cannot be reached: {(reason or type(error).__name__).rstrip('.')}."
        ) from None
