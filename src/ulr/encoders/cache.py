"""Vectors kept on disk by encoder and text, so that what was encoded once need not be again.

A cache is a folder with one folder an encoder. In it every process appends to a file of its own,
so any number of them may share it; a file is a row of blocks, each with checksums:

    magic, version | rows, dims | checksum of the keys | checksum of the vectors | keys | vectors

A block that is cut off or damaged counts as if it were not there.
"""

from __future__ import annotations

import hashlib
import json
import mmap
import secrets
import shutil
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ulr.encoders.protocol import Encoder, checked_vectors, texts_at_a_time
from ulr.errors import EncoderError
from ulr.files import whole_file

_MAGIC, _VERSION = b"ULRV", 1
_HEADER = struct.Struct("<4sIIIII")
_KEY_BYTES = 16
_ABOUT, _ENDING = "encoder.json", ".vectors"

Keys = NDArray[np.uint64]


class CachedEncoder:
    """An encoder that keeps its vectors in a cache and takes from it what is there.

    Texts go through the encoder in the same company whether or not an earlier run was killed, so
    a run that goes on from where another died gives the same vectors to the last bit.

    Parameters
    ----------
    encoder
        The encoder; it needs a `fingerprint` that tells its vectors from others'.
    folder
        The cache, made where there is none.

    Attributes
    ----------
    found, encoded
        Texts whose vectors were in the cache so far, and texts that were encoded.
    """

    def __init__(self, encoder: Encoder, folder: str | Path) -> None:
        fingerprint = getattr(encoder, "fingerprint", None)
        if not isinstance(fingerprint, str):
            raise EncoderError(
                f"a cache tells encoders apart by their fingerprint, and {type(encoder).__name__} "
                "has none; give it an attribute 'fingerprint' that names its weights."
            )
        self._encoder, self._folder = encoder, Path(folder)
        self._store = _Store(self._folder, fingerprint)
        self.fingerprint = fingerprint
        self.texts_at_a_time = texts_at_a_time(encoder)
        self.found = self.encoded = 0

    def __reduce__(self) -> tuple[Any, ...]:
        return CachedEncoder, (self._encoder, self._folder)

    @property
    def spec(self) -> str | None:
        """The name of the encoder inside."""
        return getattr(self._encoder, "spec", None)

    @property
    def truncated(self) -> int | None:
        """Texts cut so far; not known once vectors came out of the cache."""
        return None if self.found else getattr(self._encoder, "truncated", None)

    def encode(self, texts: list[str], /) -> NDArray[np.float32]:
        """Vectors of the texts, (n_texts, n_dims), in their order."""
        keys = _keys(texts)
        self._store.refresh()
        rows, vectors = self._store.find(keys)
        missing = np.flatnonzero(rows < 0)
        self.found += len(texts) - len(missing)
        if len(missing) == 0:
            return vectors
        _, first, again = np.unique(keys[missing], axis=0, return_index=True, return_inverse=True)
        order = np.argsort(first)  # each text once, in the order of the texts
        new = missing[first[order]]
        n_dims = vectors.shape[1] if len(missing) < len(texts) else None
        made = checked_vectors(self._encoder, [texts[place] for place in new], n_dims)
        self._store.append(keys[new], made)
        self.encoded += len(new)
        if len(new) == len(texts):
            return made
        if len(missing) == len(texts):
            vectors = np.empty((len(texts), made.shape[1]), dtype=np.float32)
        vectors[missing] = made[np.argsort(order)[again.ravel()]]
        return vectors


@dataclass(frozen=True)
class CacheEntry:
    """What a cache holds of one encoder.

    Attributes
    ----------
    encoder
        Its fingerprint.
    texts, dimensions
        Vectors that can be used, and their dimensions.
    megabytes
        On disk.
    damaged_megabytes
        Of it, what cannot be used.
    """

    encoder: str
    texts: int
    dimensions: int | None
    megabytes: float
    damaged_megabytes: float


def look_into(folder: str | Path) -> list[CacheEntry]:
    """What a cache holds, every block checked."""
    entries = []
    for own, fingerprint in _encoder_folders(Path(folder)):
        store = _Store(own.parent, fingerprint)
        store.refresh()
        whole = [block for number, block in enumerate(store.blocks) if store.is_whole(number)]
        total = sum(file.stat().st_size for file in own.glob(f"*{_ENDING}"))
        used = sum(block.n_bytes for block in whole)
        dimensions = whole[0].n_dims if whole else None
        texts = sum(block.n_rows for block in whole)
        entries.append(
            CacheEntry(fingerprint, texts, dimensions, total / 1e6, (total - used) / 1e6)
        )
    return entries


def clear(folder: str | Path) -> int:
    """Remove what a cache holds, and nothing else; how many encoders' vectors that were."""
    own = [each for each, _ in _encoder_folders(Path(folder))]
    for each in own:
        shutil.rmtree(each)
    return len(own)


def _encoder_folders(folder: Path) -> Iterator[tuple[Path, str]]:
    """The folders of a cache and whose they are."""
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


def _keys(texts: list[str]) -> Keys:
    """Two numbers a text, (n_texts, 2), that no other text shares."""
    digests = [
        hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=_KEY_BYTES).digest()
        for text in texts
    ]
    return np.frombuffer(b"".join(digests), dtype="<u8").reshape(-1, 2)


@dataclass(frozen=True)
class _Block:
    """Where a block lies, and what its vectors must add up to."""

    file: int
    vectors_at: int
    n_rows: int
    n_dims: int
    checksum: int

    @property
    def n_bytes(self) -> int:
        return _HEADER.size + self.n_rows * (_KEY_BYTES + self.n_dims * 4)


class _File:
    """A file of blocks, as far as it has been looked at."""

    def __init__(self, path: Path) -> None:
        self.path, self.looked_at, self.broken = path, 0, False
        self.content: mmap.mmap | bytes = b""

    def grown(self) -> bool:
        """Whether there is more to look at; the new content is at hand then."""
        if self.broken or not self.path.exists() or self.path.stat().st_size <= self.looked_at:
            return False
        with self.path.open("rb") as file:
            self.content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        return True

    def next_block(self, number: int) -> tuple[_Block, Keys] | None:
        """The next block that is all there, and its keys."""
        start, content = self.looked_at, self.content
        if len(content) - start < _HEADER.size:
            return None
        magic, version, n_rows, n_dims, of_keys, of_vectors = _HEADER.unpack_from(content, start)
        keys_at = start + _HEADER.size
        block = _Block(number, keys_at + n_rows * _KEY_BYTES, n_rows, n_dims, of_vectors)
        if (magic, version) != (_MAGIC, _VERSION) or not n_rows or not n_dims:
            self.broken = True
            return None
        if start + block.n_bytes > len(content):  # being written, or cut off for good
            return None
        keys = content[keys_at : block.vectors_at]
        if zlib.crc32(content[start + 8 : start + 16] + keys) != of_keys:
            self.broken = True
            return None
        self.looked_at = start + block.n_bytes
        return block, np.frombuffer(keys, dtype="<u8").reshape(-1, 2)


class _Store:
    """The vectors of one encoder."""

    def __init__(self, folder: Path, fingerprint: str) -> None:
        self._folder = folder / _folder_name(fingerprint)
        self._make(fingerprint)
        self._files: list[_File] = []
        self._own = self._folder / f"{secrets.token_hex(8)}{_ENDING}"
        self._index = _Index()
        self.blocks: list[_Block] = []
        self._first_rows = np.empty(0, dtype=np.int64)
        self._whole: dict[int, bool] = {}

    def _make(self, fingerprint: str) -> None:
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            if not (self._folder / _ABOUT).exists():
                with whole_file(self._folder / _ABOUT) as file:
                    file.write(json.dumps({"fingerprint": fingerprint}).encode())
        except OSError as error:
            raise EncoderError(
                f"the cache {self._folder.parent} cannot be used: {error.strerror}."
            ) from error

    def refresh(self) -> None:
        """Take in what this and other processes have written since the last look."""
        new = set(self._folder.glob(f"*{_ENDING}")).difference(file.path for file in self._files)
        self._files.extend(_File(path) for path in sorted(new))
        for number, file in enumerate(self._files):
            if not file.grown():
                continue
            while (found := file.next_block(number)) is not None:
                block, keys = found
                first = self._n_rows
                self.blocks.append(block)
                self._first_rows = np.append(self._first_rows, first)
                self._index.add(keys, first + np.arange(len(keys)))

    @property
    def _n_rows(self) -> int:
        return int(self._first_rows[-1]) + self.blocks[-1].n_rows if self.blocks else 0

    def find(self, keys: Keys) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """The row of each key, -1 where there is none, and the vectors of those there are."""
        while True:
            rows = self._index.find(keys)
            found = np.flatnonzero(rows >= 0)
            numbers = np.searchsorted(self._first_rows, rows[found], side="right") - 1
            used = np.unique(numbers).tolist()
            damaged = [number for number in used if not self.is_whole(number)]
            if not damaged:
                break
            for number in damaged:  # the same texts may be in another block
                first = int(self._first_rows[number])
                self._index.forget(first, first + self.blocks[number].n_rows)
        n_dims = self.blocks[used[0]].n_dims if used else 0
        vectors = np.empty((len(keys), n_dims), dtype=np.float32)
        for number in used:
            places = found[numbers == number]
            own = self._vectors(self.blocks[number])
            vectors[places] = own[rows[places] - self._first_rows[number]]
        return rows, vectors

    def is_whole(self, number: int) -> bool:
        """Whether the vectors of a block are what was written; looked at once."""
        if number not in self._whole:
            block = self.blocks[number]
            self._whole[number] = zlib.crc32(self._vectors(block).data) == block.checksum
        return self._whole[number]

    def _vectors(self, block: _Block) -> NDArray[np.float32]:
        content, size = self._files[block.file].content, block.n_rows * block.n_dims
        flat = np.frombuffer(content, "<f4", count=size, offset=block.vectors_at)
        return flat.reshape(block.n_rows, block.n_dims)

    def append(self, keys: Keys, vectors: NDArray[np.float32]) -> None:
        """Write a block of vectors that were not there."""
        key_bytes = keys.astype("<u8").tobytes()
        vector_bytes = vectors.astype("<f4", copy=False).tobytes()
        shape = struct.pack("<II", *vectors.shape)
        checksums = zlib.crc32(shape + key_bytes), zlib.crc32(vector_bytes)
        header = _HEADER.pack(_MAGIC, _VERSION, *vectors.shape, *checksums)
        try:
            block = header + key_bytes + vector_bytes
            with self._own.open("ab", buffering=0) as file:
                start = file.tell()
                if file.write(block) != len(block):
                    file.truncate(start)
                    raise OSError(None, "No space left on device")
        except OSError as error:
            raise EncoderError(
                f"the cache {self._folder.parent} cannot be written: {error.strerror}. What it "
                "holds is kept; make room, or go on without a cache."
            ) from error


class _Index:
    """Where the vector of a key is: sorted runs, few of them, each at least twice the next."""

    def __init__(self) -> None:
        self._runs: list[_Run] = []

    def add(self, keys: Keys, rows: NDArray[np.int64]) -> None:
        """Take in keys and their rows."""
        run = _Run.of(keys[:, 0], keys[:, 1], rows)
        while self._runs and len(self._runs[-1].rows) < 2 * len(run.rows):
            run = self._runs.pop().followed_by(run)
        self._runs.append(run)

    def find(self, keys: Keys) -> NDArray[np.int64]:
        """The row of each key, -1 where there is none; the latest where there are several."""
        found = np.full(len(keys), -1, dtype=np.int64)
        for run in self._runs:
            # The last of those that share their first number; others are as if not there.
            places = np.maximum(np.searchsorted(run.first, keys[:, 0], side="right") - 1, 0)
            same = (run.first[places] == keys[:, 0]) & (run.second[places] == keys[:, 1])
            found[same] = run.rows[places[same]]
        return found

    def forget(self, first: int, end: int) -> None:
        """Let go of the rows from one to before another."""
        for place, run in enumerate(self._runs):
            kept = (run.rows < first) | (run.rows >= end)
            self._runs[place] = _Run(run.first[kept], run.second[kept], run.rows[kept])
        self._runs = [run for run in self._runs if len(run.rows)]


@dataclass(frozen=True, eq=False)
class _Run:
    """Keys, both numbers, and their rows, in the order of the first number."""

    first: Keys
    second: Keys
    rows: NDArray[np.int64]

    @classmethod
    def of(cls, first: Keys, second: Keys, rows: NDArray[np.int64]) -> _Run:
        order = np.argsort(first, kind="stable")
        return cls(first[order], second[order], rows[order])

    def followed_by(self, other: _Run) -> _Run:
        return _Run.of(
            np.concatenate([self.first, other.first]),
            np.concatenate([self.second, other.second]),
            np.concatenate([self.rows, other.rows]),
        )
