"""The vector cache: vectors on disk, by encoder and text, in an SQLite database.

The database is in WAL mode, so that processes and threads can share it and a killed one leaves it
complete. SQLite does not detect changed bytes, so every vector has a checksum.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import sqlite3
import threading
import time
import warnings
import weakref
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ulr.encoders.protocol import CopiedByReference, Encoder, batch_texts, check_vectors
from ulr.errors import EncoderError, UlrWarning

try:
    import fcntl
except ImportError:  # Windows: processes may encode the same texts at the same time
    fcntl = None  # type: ignore[assignment]

_DATABASE, _LOCK = "vectors.sqlite", "vectors.lock"
_FILES = (_DATABASE, f"{_DATABASE}-wal", f"{_DATABASE}-shm", _LOCK)
# Vectors in the order of their arrival with an index of keys: a table that is sorted by key would
# be written all over the disk.
_SCHEMA = """
PRAGMA page_size = 32768;  -- several vectors a page: half the time of writing with the default
PRAGMA journal_mode = WAL;
CREATE TABLE IF NOT EXISTS encoders (id INTEGER PRIMARY KEY, fingerprint TEXT UNIQUE NOT NULL);
CREATE TABLE IF NOT EXISTS vectors (
    encoder INTEGER NOT NULL, key BLOB NOT NULL, checksum INTEGER NOT NULL, vector BLOB NOT NULL,
    UNIQUE (encoder, key)
);
"""
_KEY_BYTES = 16
_BATCH_KEYS = 512
_ENCODER = "(SELECT id FROM encoders WHERE fingerprint = ?)"
_SELECT = f"SELECT key, checksum, vector FROM vectors WHERE encoder = {_ENCODER}"
_WRITE = f"INSERT OR REPLACE INTO vectors VALUES ({_ENCODER}, ?, ?, ?)"
_BUSY_SECONDS, _LOCK_SECONDS, _POLL_SECONDS = 60.0, 60.0, 0.02


class CachedEncoder(CopiedByReference):
    """An encoder that looks vectors up in a cache, and adds those that are missing.

    Threads may share it. If the cache cannot be read or written, a warning is given once and
    encoding continues without it. Processes that encode the same batch wait for each other
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
        Whether the cache has failed, so that nothing more is written to it.
    spec, languages
        Those of the encoder; None where it has none.
    """

    def __init__(self, encoder: Encoder, folder: str | Path) -> None:
        fingerprint = getattr(encoder, "fingerprint", None)
        if not isinstance(fingerprint, str):
            raise EncoderError(
                f"a cache needs the fingerprint of an encoder, and {type(encoder).__name__} "
                "has none; give it an attribute 'fingerprint' that identifies its weights."
            )
        self._encoder = encoder
        self.fingerprint = fingerprint
        self.batch_texts = batch_texts(encoder)
        self.spec: str | None = getattr(encoder, "spec", None)
        self.languages: tuple[str, ...] | None = getattr(encoder, "languages", None)
        self.found = self.encoded = 0
        self.disabled = False
        self._lock = threading.RLock()  # guards the connection, the counts and `disabled`
        self._connection: sqlite3.Connection | None = None
        self._process = 0
        if not isinstance(folder, str | Path) or str(folder) == "":
            raise EncoderError(f"a cache is the name of a folder; got {folder!r}.")
        self._folder = Path(folder)
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            is_file = isinstance(error, FileExistsError)
            reason = os.strerror(errno.ENOTDIR) if is_file else error.strerror
            raise EncoderError(f"the cache {folder} cannot be used: {reason}.") from error
        with self._failures(), self._database() as database:
            database.executescript(_SCHEMA)

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
            return check_vectors(self._encoder, texts)
        keys = list(map(_key, texts))
        unique = dict(zip(keys, texts, strict=True))
        vectors, missing = self._find(list(unique)), dict[bytes, str]()
        n_found = len(keys)
        if len(vectors) < len(unique):
            with _claimed(self._folder, keys[0]):
                vectors = self._find(list(unique))  # another process may have encoded them
                missing = {key: text for key, text in unique.items() if key not in vectors}
                n_found = sum(key in vectors for key in keys)
                if missing:
                    n_dims = len(next(iter(vectors.values()))) // 4 if vectors else None
                    new = check_vectors(self._encoder, list(missing.values()), n_dims)
                    blobs = [row.tobytes() for row in new.astype("<f4", copy=False)]
                    vectors |= zip(missing, blobs, strict=True)
                    self._write(list(missing), blobs)
        with self._lock:
            self.found += n_found
            self.encoded += len(missing)
        joined = bytearray().join(map(vectors.__getitem__, keys))
        return np.frombuffer(joined, "<f4").reshape(len(keys), -1)

    def _find(self, keys: list[bytes]) -> dict[bytes, bytes]:
        """Vectors of the texts that are in the cache, by key."""
        found: dict[bytes, bytes] = {}
        seed = zlib.crc32(self.fingerprint.encode())
        with self._failures(), self._database() as database:
            for start in range(0, len(keys), _BATCH_KEYS):
                batch = keys[start : start + _BATCH_KEYS]
                query = f"{_SELECT} AND key IN ({', '.join('?' * len(batch))})"
                rows = database.execute(query, [self.fingerprint, *batch])
                found |= {row[0]: row[2] for row in rows if _is_valid(seed, *row)}
        return found

    def _write(self, keys: list[bytes], vectors: list[bytes]) -> None:
        """Add vectors in one transaction, unless the cache has failed before."""
        if self.disabled:
            return
        seed = zlib.crc32(self.fingerprint.encode())
        with self._failures(), self._database() as database, database:  # commits, or rolls back
            database.execute("BEGIN IMMEDIATE")
            database.execute("INSERT OR IGNORE INTO encoders VALUES (NULL, ?)", [self.fingerprint])
            rows = (
                (self.fingerprint, key, _checksum(seed, key, vector), vector)
                for key, vector in zip(keys, vectors, strict=True)
            )
            database.executemany(_WRITE, rows)

    @contextlib.contextmanager
    def _database(self) -> Iterator[sqlite3.Connection]:
        """The connection of this process; a forked one must not use its parent's."""
        path = self._folder / _DATABASE
        with self._lock:
            if self._connection is None or self._process != os.getpid():
                self._process, self._connection = os.getpid(), _connect(path)
                weakref.finalize(self, _close, self._process, self._connection)
            elif not path.exists():
                raise FileNotFoundError(errno.ENOENT, "it was deleted")
            yield self._connection

    @contextlib.contextmanager
    def _failures(self) -> Iterator[None]:
        """Turn the first failure of the cache into a warning, and ignore later ones."""
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            with self._lock:
                is_first, self.disabled = not self.disabled, True
            if is_first:
                warnings.warn(
                    f"the cache {self._folder} cannot be used "
                    f"({getattr(error, 'strerror', None) or error}); texts are encoded without it. "
                    f"If it is damaged, delete it with: ulr cache {self._folder} --clear",
                    UlrWarning,
                    stacklevel=4,
                )


@dataclass(frozen=True)
class CacheEntry:
    """The vectors of one encoder in a cache."""

    encoder: str  # its fingerprint
    texts: int  # number of usable vectors
    dimensions: int | None
    megabytes: float
    damaged_megabytes: float  # part of them


def inspect_cache(folder: str | Path) -> list[CacheEntry]:
    """List the encoders in a cache, with every checksum verified.

    A database that cannot be read is one entry, with all of it damaged.
    """
    if not _files(folder):
        return []
    try:
        with contextlib.closing(_connect(Path(folder) / _DATABASE)) as database:
            encoders = database.execute("SELECT fingerprint FROM encoders ORDER BY fingerprint")
            return [_inspect(database, *row) for row in encoders.fetchall()]
    except sqlite3.Error as error:
        megabytes = sum(each.stat().st_size for each in _files(folder)) / 1e6
        return [CacheEntry(f"unreadable ({error})", 0, None, megabytes, megabytes)]


def _inspect(database: sqlite3.Connection, fingerprint: str) -> CacheEntry:
    seed = zlib.crc32(fingerprint.encode())
    n_texts = n_bytes = n_damaged = 0
    dimensions = None
    for key, checksum, vector in database.execute(_SELECT, [fingerprint]):
        n_bytes += len(vector)
        if _is_valid(seed, key, checksum, vector):
            n_texts, dimensions = n_texts + 1, len(vector) // 4
        else:
            n_damaged += len(vector)
    return CacheEntry(fingerprint, n_texts, dimensions, n_bytes / 1e6, n_damaged / 1e6)


def clear_cache(folder: str | Path) -> int:
    """Delete the vectors in a cache, and nothing else; returns the number of encoders."""
    n_encoders = len(inspect_cache(folder))
    try:
        if n_encoders:
            with contextlib.closing(_connect(Path(folder) / _DATABASE)) as database:
                database.executescript("DELETE FROM vectors; DELETE FROM encoders; VACUUM;")
    except sqlite3.OperationalError as error:
        raise EncoderError(f"the cache {folder} cannot be cleared: {error}.") from error
    except sqlite3.DatabaseError:  # damaged
        for file in _files(folder):
            file.unlink()
    return n_encoders


def _files(folder: str | Path) -> list[Path]:
    """The files of a cache, none if it was never used."""
    if not Path(folder).is_dir():
        raise EncoderError(f"there is no cache {folder}.")
    paths = [Path(folder) / name for name in _FILES]
    return [path for path in paths if path.exists()]


def _connect(path: Path) -> sqlite3.Connection:
    """A connection that waits for others, and survives a crash of the machine."""
    connection = sqlite3.connect(
        path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False
    )
    connection.execute("PRAGMA synchronous = NORMAL")
    return connection


def _close(process: int, connection: sqlite3.Connection) -> None:
    if process == os.getpid():
        connection.close()


def _key(text: str) -> bytes:
    """Hash of a text."""
    encoded = text.encode("utf-8", "surrogatepass")
    return hashlib.blake2b(encoded, digest_size=_KEY_BYTES).digest()


def _checksum(seed: int, key: bytes, vector: bytes) -> int:
    return zlib.crc32(vector, zlib.crc32(key, seed))


def _is_valid(seed: int, key: Any, checksum: Any, vector: Any) -> bool:
    """Whether a row is as it was written; a changed byte can change the types of columns too."""
    is_bytes = isinstance(key, bytes) and isinstance(vector, bytes)
    return is_bytes and _checksum(seed, key, vector) == checksum


@contextlib.contextmanager
def _claimed(folder: Path, key: bytes) -> Iterator[None]:
    """Keep other processes from encoding a batch, given its first text, during the block.

    The advisory lock is one byte of a lock file. Without support for locks, or after a minute of
    waiting, the block runs without it.
    """
    if fcntl is None:
        yield
        return
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(OSError):
            file = stack.enter_context((folder / _LOCK).open("ab"))
            deadline = time.monotonic() + _LOCK_SECONDS
            while time.monotonic() < deadline:
                try:
                    fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, int.from_bytes(key[:7]))
                    break
                except (BlockingIOError, PermissionError):
                    time.sleep(_POLL_SECONDS)
        yield  # the lock ends when the file is closed
