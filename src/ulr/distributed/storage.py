"""Files and folders of a job, by path or by address such as ``s3://bucket/folder``, through fsspec.

A file that is written is complete before it gets its name: locally by a rename, in an object store
by an upload, which shows nothing before its end.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import secrets
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ulr.errors import ClusterError, TableError
from ulr.files import atomic_file, file_system, is_remote, store_errors, temporary_copy


def absolute(name: str) -> str:
    """The name of a file or folder for every worker, without a slash at its end."""
    path = file_system(name)[1]  # raises where the package of a store is missing
    return name.rstrip("/") if is_remote(name) else path


@contextlib.contextmanager
def _reached(name: str) -> Iterator[tuple[Any, str]]:
    """The file system of a file or folder, and the path in it; the block ends if there is none."""
    system, path = file_system(name)
    with store_errors(name, ClusterError), contextlib.suppress(FileNotFoundError):
        system.invalidate_cache()
        yield system, path


def info(name: str) -> dict[str, Any] | None:
    """Properties of a file, such as its size; None if there is none."""
    with _reached(name) as (system, path):
        found: dict[str, Any] = system.info(path)
        return found if found["type"] == "file" else None
    return None


def size(name: str) -> int | None:
    """Bytes of a file; None if there is none."""
    found = info(name)
    return None if found is None else int(found["size"])


def identify(name: str) -> tuple[int, str]:
    """Size of a file, and its ETag or else its hash, which is empty if it cannot be read."""
    found = info(name) or {"size": 0, "ETag": ""}
    tag = found.get("ETag", found.get("etag"))
    if tag is None:
        system, path = file_system(name)
        try:
            with system.open(path, "rb") as file:
                tag = hashlib.file_digest(file, "sha256").hexdigest()
        except OSError:
            return 0, ""
    return int(found["size"]), str(tag)


def total_size(names: Sequence[str]) -> int:
    """Bytes of several files, by one request; 0 if one is missing or in another store."""
    with _reached(names[0]) as (system, _):
        return sum(system.sizes([file_system(name)[1] for name in names]))
    return 0


@contextlib.contextmanager
def local_copy(name: str) -> Iterator[str]:
    """Path of a file, or of a copy of a remote one: what a store raises is no fault of the file."""
    if not is_remote(name):
        yield name
        return
    if info(name) is None:
        raise TableError(f"there is no file {name}.")
    system, path = file_system(name)
    with contextlib.ExitStack() as files:
        with store_errors(name, ClusterError), system.open(path, "rb") as stream:
            copy = files.enter_context(temporary_copy(stream))
        yield str(copy)


@contextlib.contextmanager
def replacing(name: str) -> Iterator[str]:
    """A name to write a file to, which then gets the given one.

    A task may run twice at a time, when a worker is out of reach but alive; both write the same.
    """
    if is_remote(name):
        yield name
        return
    partial = Path(name).with_name(f".{secrets.token_hex(6)}.{Path(name).name}")
    try:
        yield str(partial)
        os.replace(partial, name)
    except OSError as error:
        raise TableError(f"{name} cannot be written: {error.strerror or error}.") from error
    finally:
        partial.unlink(missing_ok=True)


def read_json(name: str) -> dict[str, Any] | None:
    """Content of a record; None if there is none, or if it is damaged."""
    with _reached(name) as (system, path), contextlib.suppress(ValueError):
        content = json.loads(system.cat_file(path))
        return content if isinstance(content, dict) else None
    return None


def write_json(name: str, content: dict[str, Any]) -> None:
    """Write a record; NumPy numbers become plain ones."""
    text = json.dumps(content, indent=1, default=lambda value: value.item())
    with replacing(name) as partial, atomic_file(partial) as file:
        file.write(text.encode())


def upload(source: Path, folder: str) -> None:
    """Replace a folder by the files of a local one."""
    remove(folder)
    make_folder(folder)
    system, path = file_system(folder)
    with store_errors(folder, ClusterError):
        system.put(f"{source}/", f"{path}/", recursive=True)


def download(folder: str, target: Path) -> None:
    """Copy the files of a folder to a local one."""
    with _reached(folder) as (system, path):
        if system.isdir(path):
            system.get(f"{path}/", f"{target}/", recursive=True)


def names(folder: str) -> list[str]:
    """Names of the files in a folder, without hidden ones."""
    with _reached(folder) as (system, path):
        files = [each["name"] for each in system.ls(path, detail=True) if each["type"] == "file"]
        return sorted(name for name in map(os.path.basename, files) if name and name[0] != ".")
    return []


def make_folder(folder: str) -> None:
    """Create a folder unless it is there; in an object store, only its bucket must exist."""
    system, path = file_system(folder)
    with store_errors(folder, ClusterError), contextlib.suppress(FileExistsError):
        system.mkdir(path, create_parents=False)


def remove(name: str) -> None:
    """Remove a file or a folder, if it is there."""
    with _reached(name) as (system, path):
        system.rm(path, recursive=True)
