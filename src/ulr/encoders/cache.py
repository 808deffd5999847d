"""The vector cache: vectors on disk, by encoder and text.

A cache is a folder with one subfolder per encoder. Every process appends to a file of its own, so
that processes can share a cache:

    NAME.keys       magic, version, dims | hash of text, checksum | hash of text, checksum | ...
    NAME.vectors    vector | vector | ...

Incomplete and damaged vectors are ignored.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import io
import json
import os
import secrets
import shutil
import struct
import threading
import time
import warnings
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ulr.encoders.batching import batch_texts
from ulr.encoders.protocol import CopiedByReference, Encoder, checked_vectors
from ulr.errors import EncoderError, InputError
from ulr.files import atomic_file

try:
    import fcntl
except ImportError:  # Windows: processes may encode the same texts at the same time
    fcntl = None  # type: ignore[assignment]

_MAGIC, _VERSION = b"ULRV", 2
_HEADER = struct.Struct("<4sII")
_KEY_BYTES = 16
_ENTRY = np.dtype([("key", f"V{_KEY_BYTES}"), ("checksum", "<u4")])
_MAX_DIMS = 1 << 20
_ROW_BITS = 40
_BATCH_KEYS = 1024
_ABOUT, _LOCK, _KEYS, _VECTORS = "encoder.json", "lock", ".keys", ".vectors"
_NO_SPACE = (errno.ENOSPC, errno.EDQUOT)
_LOCK_SECONDS, _POLL_SECONDS = 60.0, 0.02


class CachedEncoder(CopiedByReference):
    """An encoder that looks vectors up in a cache, and adds those that are missing.

    Threads may share it. If the cache cannot be written to, a warning is given once and nothing
    more is written; encoding continues. Processes that encode the same batch wait for each other
    instead of encoding it twice.

    An interrupted run that is started again gives bitwise the same vectors: complete batches are
    found in the cache, and the others are encoded as they would have been.

    Parameters
    ----------
    encoder
        The encoder; its attribute `fingerprint` must identify its weights and settings.
    folder
        The cache; created if it does not exist.

    Attributes
    ----------
    found, encoded
        Texts found in the cache so far, and texts encoded.
    disabled
        Whether writing to the cache has failed.
    spec, languages, knows_word
        Those of the encoder; None where it has none.
    """

    def __init__(self, encoder: Encoder, folder: str | Path) -> None:
        fingerprint = getattr(encoder, "fingerprint", None)
        if not isinstance(fingerprint, str):
            raise EncoderError(
                f"a cache needs the fingerprint of an encoder, and {type(encoder).__name__} "
                "has none; give it an attribute 'fingerprint' that identifies its weights."
            )
        self._encoder, self._folder = encoder, Path(folder)
        self._store = _Store(self._folder, fingerprint)
        self.fingerprint = fingerprint
        self.batch_texts = batch_texts(encoder)
        self.spec: str | None = getattr(encoder, "spec", None)
        self.languages: tuple[str, ...] | None = getattr(encoder, "languages", None)
        self.knows_word: Callable[[str], bool] | None = getattr(encoder, "knows_word", None)
        self.found = self.encoded = 0
        self.disabled = False
        self._lock = threading.Lock()  # guards the store, the counts and `disabled`
        try:
            self._store.create()
        except OSError as error:
            if error.errno not in _NO_SPACE:
                raise EncoderError(
                    f"the cache {folder} cannot be used: {error.strerror}."
                ) from error
            self._disable(error)

    def __reduce__(self) -> tuple[Any, ...]:
        return CachedEncoder, (self._encoder, self._folder)

    @property
    def truncated(self) -> int | None:
        """Texts truncated so far; None once vectors were found in the cache."""
        return None if self.found else getattr(self._encoder, "truncated", None)

    @property
    def label_encoder(self) -> CachedEncoder | None:
        """Encodes the phrases of labels, with the same cache; None if the encoder itself does."""
        own = getattr(self._encoder, "label_encoder", None)
        return None if own is None else CachedEncoder(own, self._folder)

    def encode(self, texts: list[str], /) -> NDArray[np.float32]:
        """Vectors of the texts, (n_texts, n_dims), in their order."""
        if not texts:
            return checked_vectors(self._encoder, texts)
        keys = [_key(text) for text in texts]
        unique = dict(zip(keys, texts, strict=True))
        found, new = self._find(unique), {}
        if len(found) < len(unique):
            with self._store.claim(keys[0]):
                found = self._find(unique)  # another process may have encoded them meanwhile
                new = self._encode_missing(unique, found)
        with self._lock:
            self.found += sum(key in found for key in keys)
        vectors = found | new
        return np.stack([vectors[key] for key in keys])

    def _find(self, keys: Iterable[bytes]) -> dict[bytes, NDArray[np.float32]]:
        with self._lock:
            self._store.refresh()
            return self._store.find(keys)

    def _encode_missing(
        self, texts: dict[bytes, str], found: dict[bytes, NDArray[np.float32]]
    ) -> dict[bytes, NDArray[np.float32]]:
        """Encode the texts that were not found, and write them to the cache."""
        missing = {key: text for key, text in texts.items() if key not in found}
        if not missing:
            return {}
        n_dims = len(next(iter(found.values()))) if found else None
        encoded = checked_vectors(self._encoder, list(missing.values()), n_dims)
        with self._lock:
            self.encoded += len(missing)
            if not self.disabled:
                try:
                    self._store.append(list(missing), encoded)
                except OSError as error:
                    self._disable(error)
        return dict(zip(missing, encoded, strict=True))

    def _disable(self, error: OSError) -> None:
        self.disabled = True
        warnings.warn(
            f"the cache {self._folder} cannot be written to ({error.strerror}); new vectors are "
            "not kept in it.",
            RuntimeWarning,
            stacklevel=2,
        )


@dataclass(frozen=True)
class CacheEntry:
    """The vectors of one encoder in a cache.

    Attributes
    ----------
    encoder
        Fingerprint of the encoder.
    texts, dimensions
        Number of usable vectors, and their dimensions.
    megabytes
        Size on disk.
    damaged_megabytes
        Part of it that is damaged or incomplete.
    """

    encoder: str
    texts: int
    dimensions: int | None
    megabytes: float
    damaged_megabytes: float


def inspect_cache(folder: str | Path) -> list[CacheEntry]:
    """List the encoders in a cache, with every checksum verified."""
    entries = []
    for path, fingerprint in _encoder_folders(Path(folder)):
        n_bytes = n_valid_bytes = n_texts = 0
        dimensions = None
        for file in map(_VectorFile, sorted(path.glob(f"*{_KEYS}"))):
            n_valid = file.count_valid(file.refresh())
            n_texts += n_valid
            n_valid_bytes += _HEADER.size + n_valid * (_ENTRY.itemsize + 4 * file.n_dims)
            dimensions = dimensions or file.n_dims
        for suffix in (_KEYS, _VECTORS):
            n_bytes += sum(each.stat().st_size for each in path.glob(f"*{suffix}"))
        damaged = max(0, n_bytes - n_valid_bytes)
        entries.append(CacheEntry(fingerprint, n_texts, dimensions, n_bytes / 1e6, damaged / 1e6))
    return entries


def clear_cache(folder: str | Path) -> int:
    """Delete the vectors in a cache, and nothing else; returns the number of encoders."""
    paths = [path for path, _ in _encoder_folders(Path(folder))]
    for path in paths:
        shutil.rmtree(path)
    return len(paths)


def _encoder_folders(folder: Path) -> Iterator[tuple[Path, str]]:
    """Subfolders of a cache and the fingerprints of their encoders."""
    if not folder.is_dir():
        raise EncoderError(f"there is no cache {folder}.")
    for about in sorted(folder.glob(f"*/{_ABOUT}")):
        try:
            fingerprint = str(json.loads(about.read_text(encoding="utf-8"))["fingerprint"])
        except (ValueError, KeyError, TypeError):
            continue
        if about.parent.name == _folder_name(fingerprint):
            yield about.parent, fingerprint


def _folder_name(fingerprint: str) -> str:
    return hashlib.sha256(fingerprint.encode("utf-8", "surrogatepass")).hexdigest()[:24]


def _key(text: str) -> bytes:
    """Hash of a text."""
    encoded = text.encode("utf-8", "surrogatepass")
    return hashlib.blake2b(encoded, digest_size=_KEY_BYTES).digest()


def _checksum(key: bytes, vector: NDArray[np.float32]) -> int:
    return zlib.crc32(vector.data, zlib.crc32(key))


class _VectorFile:
    """The vectors that one process has written."""

    def __init__(self, path: Path) -> None:
        self.path, self.n_dims = path, 0
        self._checksums = np.empty(0, dtype=np.uint32)
        self._vectors: NDArray[np.float32] = np.empty((0, 0), dtype=np.float32)

    @property
    def n_rows(self) -> int:
        return len(self._vectors)

    def refresh(self) -> list[bytes]:
        """Keys that have been added since the last call; none if this is another kind of file."""
        start = self.n_rows
        try:
            with self.path.open("rb") as file:
                magic, version, n_dims = _HEADER.unpack(file.read(_HEADER.size))
                if (magic, version) != (_MAGIC, _VERSION) or not 0 < n_dims < _MAX_DIMS:
                    return []
                file.seek(start * _ENTRY.itemsize, os.SEEK_CUR)
                content = file.read()
            path = self.path.with_suffix(_VECTORS)
            n_rows = path.stat().st_size // (4 * n_dims)
        except (OSError, struct.error):
            return []
        n_new = min(len(content) // _ENTRY.itemsize, n_rows - start)
        if n_new <= 0:
            return []
        entries = np.frombuffer(content, dtype=_ENTRY, count=n_new)
        self.n_dims = n_dims
        self._checksums = np.append(self._checksums, entries["checksum"])
        self._vectors = np.memmap(path, np.dtype("<f4"), "r", shape=(start + n_new, n_dims))
        joined = entries["key"].tobytes()
        return [joined[i : i + _KEY_BYTES] for i in range(0, len(joined), _KEY_BYTES)]

    def count_valid(self, keys: list[bytes]) -> int:
        """Number of vectors that match their checksums, given the keys of all rows."""
        n_valid = 0
        for start in range(0, len(keys), _BATCH_KEYS):
            batch = keys[start : start + _BATCH_KEYS]
            n_valid += len(self.read({key: start + i for i, key in enumerate(batch)}))
        return n_valid

    def read(self, rows: dict[bytes, int]) -> dict[bytes, NDArray[np.float32]]:
        """Vectors that match their checksums, by key."""
        vectors = np.asarray(self._vectors[list(rows.values())])
        return {
            key: vector
            for (key, row), vector in zip(rows.items(), vectors, strict=True)
            if _checksum(key, vector) == self._checksums[row]
        }


class _Store:
    """The vectors of one encoder. Only `claim` may be used by several threads at once."""

    def __init__(self, cache: Path, fingerprint: str) -> None:
        self._folder = cache / _folder_name(fingerprint)
        self._fingerprint = fingerprint
        self._name = secrets.token_hex(8)
        self._files: list[_VectorFile] = []
        self._index: dict[bytes, int] = {}  # file number and row, in one integer

    def create(self) -> None:
        """Create the folder, if it does not exist."""
        self._folder.mkdir(parents=True, exist_ok=True)
        about = self._folder / _ABOUT
        if not about.exists():
            # It is refused if another process creates the same file at the same time.
            with contextlib.suppress(InputError), atomic_file(about) as file:
                file.write(json.dumps({"fingerprint": self._fingerprint}).encode())

    def refresh(self) -> None:
        """Read what this and other processes have written since the last call."""
        new = set(self._folder.glob(f"*{_KEYS}")).difference(file.path for file in self._files)
        # A damaged vector is written again later, and the last one of a key is used.
        self._files.extend(map(_VectorFile, sorted(new, key=lambda path: path.stat().st_mtime_ns)))
        for number, file in enumerate(self._files):
            first = (number << _ROW_BITS) + file.n_rows
            self._index.update((key, first + i) for i, key in enumerate(file.refresh()))

    def find(self, keys: Iterable[bytes]) -> dict[bytes, NDArray[np.float32]]:
        """Vectors of the texts that are in the cache, by key."""
        by_file: dict[int, dict[bytes, int]] = {}
        for key in keys:
            if (position := self._index.get(key)) is not None:
                number, row = divmod(position, 1 << _ROW_BITS)
                by_file.setdefault(number, {})[key] = row
        vectors: dict[bytes, NDArray[np.float32]] = {}
        for number, rows in by_file.items():
            vectors |= self._files[number].read(rows)
        return vectors

    def append(self, keys: list[bytes], vectors: NDArray[np.float32]) -> None:
        """Write vectors; if that fails, raise OSError and leave nothing of them behind."""
        vectors = np.ascontiguousarray(vectors, dtype="<f4")
        entries = np.empty(len(keys), dtype=_ENTRY)
        entries["key"] = np.frombuffer(b"".join(keys), dtype=f"V{_KEY_BYTES}")
        entries["checksum"] = list(map(_checksum, keys, vectors))
        # A forked process has its parent's name, but another process id.
        path = self._folder / f"{self._name}-{os.getpid()}{_KEYS}"
        with (
            path.with_suffix(_VECTORS).open("ab", buffering=0) as vector_file,
            path.open("ab", buffering=0) as key_file,
        ):
            ends = vector_file.tell(), key_file.tell()
            header = b"" if ends[1] else _HEADER.pack(_MAGIC, _VERSION, vectors.shape[1])
            try:
                _write(vector_file, vectors.tobytes())
                _write(key_file, header + entries.tobytes())
            except OSError:
                vector_file.truncate(ends[0])
                key_file.truncate(ends[1])
                raise

    @contextlib.contextmanager
    def claim(self, key: bytes) -> Iterator[None]:
        """Keep other processes from encoding a batch, given its first text, during the block.

        The advisory lock is one byte of a lock file. Without support for locks, or after a minute
        of waiting, the block runs without it.
        """
        with contextlib.ExitStack() as stack:
            if fcntl is not None:
                with contextlib.suppress(OSError):
                    file = stack.enter_context((self._folder / _LOCK).open("ab"))
                    deadline = time.monotonic() + _LOCK_SECONDS
                    while not _lock_byte(file.fileno(), int.from_bytes(key[:7])):
                        if time.monotonic() > deadline:
                            break
                        time.sleep(_POLL_SECONDS)
            yield


def _write(file: io.FileIO, content: bytes) -> None:
    if file.write(content) != len(content):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def _lock_byte(descriptor: int, byte: int) -> bool:
    """Try to lock a byte of a file, until the file is closed; whether that succeeded."""
    try:
        fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, byte)
    except (BlockingIOError, PermissionError):
        return False
    return True
