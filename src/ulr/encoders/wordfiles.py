"""Files of word vectors: GloVe, word2vec and fastText text, plain or packed, mapped into memory.

A file is read once, as a stream, and converted to a folder that opens at once however large it
is. What the vectors are used for is left to `ulr.encoders.words`.
"""

from __future__ import annotations

import contextlib
import glob
import hashlib
import json
import math
import os
import secrets
import shutil
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path
from typing import IO, Any, Self

import numpy as np
from numpy.typing import NDArray

from ulr.encoders.protocol import OnProgress
from ulr.encoders.vocabulary import Vocabulary, WordVectors, index_of_words, packed_words
from ulr.encoders.wordlines import (
    BYTE_ORDER_MARK,
    Lines,
    excerpt,
    line_blocks,
    numbers_at_end,
    parsed,
    unpacked,
)
from ulr.errors import EncoderError
from ulr.files import places_for, sha256, whole_file

_FORMAT_VERSION = 1
_BLOCK_BYTES = 2 << 20
_CHECKPOINT_BYTES = 64 << 20
_LINES_TO_LOOK_AT = 100
_MALFORMED_SHARE = 0.01

_VECTORS, _LETTERS, _OFFSETS = "vectors.npy", "words.npy", "offsets.npy"
_HASHES, _ROWS = "hashes.npy", "rows.npy"
_FILES = (_VECTORS, _LETTERS, _OFFSETS, _HASHES, _ROWS)
_ABOUT, _PROGRESS, _LOCK = "about.json", "progress.json", "lock"
_HEADER_BYTES = 128


def open_word_file(
    path: str | Path,
    cache: str | Path | None = None,
    on_progress: OnProgress | None = None,
    *,
    checkpoint_bytes: int = _CHECKPOINT_BYTES,
) -> WordVectors:
    """The words and vectors of a file: converted when it is new, memory-mapped ever after.

    The conversion is the folder ``PATH.ulr`` beside the file or, where nothing can be written
    there, one in the user's cache folder. It is made anew when the file's content has changed.
    A conversion that was killed goes on where it stopped; a second process waits for the first.

    Parameters
    ----------
    path
        Lines of a word and its numbers, perhaps after a line of counts; plain, gzip or zip.
    cache
        A folder for conversions, instead of those above.
    on_progress
        Called while converting with the bytes of the file that are done, and its size.
    checkpoint_bytes
        Text to convert between two points that a killed conversion can go on from.
    """
    path = Path(path).expanduser().absolute()
    if not path.is_file():
        raise EncoderError(f"there is no file of word vectors {path}.")
    folders = places_for(path, "words", None if cache is None else Path(cache))
    whole = {folder: about for folder in folders if (about := _read_about(folder)) is not None}
    stamp = _stamp(path)
    for folder, about in whole.items():
        if about["stamp"] == stamp:
            return _mapped(folder, about)
    digest = sha256(path)
    for folder, about in whole.items():
        if about["sha256"] == digest:
            with contextlib.suppress(OSError):  # to hash it each time is slower, not wrong
                _write_json(folder / _ABOUT, about | {"stamp": stamp})
            return _mapped(folder, about)
    folder = next((each for each in folders if os.access(each.parent, os.W_OK)), folders[-1])
    folder.parent.mkdir(parents=True, exist_ok=True)
    about = _Conversion(path, stamp, digest, folder, checkpoint_bytes).run(on_progress)
    return _mapped(folder, about)


def _stamp(path: Path) -> list[int]:
    """What is cheap to compare before a file is hashed: its size and when it was changed."""
    stat = path.stat()
    return [stat.st_size, stat.st_mtime_ns]


def _read_about(folder: Path) -> dict[str, Any] | None:
    """What a conversion says about itself; None where there is none, or a damaged one."""
    try:
        about = json.loads((folder / _ABOUT).read_text(encoding="utf-8"))
        known = (
            about["format"] == _FORMAT_VERSION
            and {"stamp", "sha256", "malformed_lines", "replaced_words"} <= about.keys()
        )
        sizes = {name: (folder / name).stat().st_size for name in _FILES}
        whole = all(sizes[name] == about["files"][name]["bytes"] for name in _FILES)
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return dict(about) if known and whole else None


def _write_json(path: Path, content: dict[str, Any]) -> None:
    with whole_file(path) as file:
        file.write(json.dumps(content, indent=1).encode())


def _mapped(folder: Path, about: dict[str, Any]) -> WordVectors:
    arrays = {name: np.load(folder / name, mmap_mode="r", allow_pickle=False) for name in _FILES}
    vectors, letters, offsets, hashes, rows = (np.asarray(arrays[name]) for name in _FILES)
    content = "".join(about["files"][name]["sha256"] for name in _FILES)
    return WordVectors(
        Vocabulary(letters, offsets, hashes, rows),
        vectors,
        hashlib.sha256(content.encode()).hexdigest(),
        about["malformed_lines"],
        about["replaced_words"],
    )


@dataclass
class _Progress:
    """How far a conversion has come: what it needs to go on, and what it has counted."""

    text_bytes: int = 0
    n_dims: int = 0
    lines: int = 0
    rows: int = 0
    letters: int = 0
    malformed_lines: int = 0
    first_malformed: str = ""
    replaced_words: int = 0

    @classmethod
    def read(cls, partial: Path) -> Self:
        """The progress of a partial folder; none where a file lacks what it should have."""
        try:
            progress = cls(**json.loads((partial / _PROGRESS).read_text(encoding="utf-8")))
            if all((partial / n).stat().st_size >= b for n, b in progress.file_bytes().items()):
                return progress
        except (OSError, ValueError, TypeError):
            pass
        return cls()

    def arrays(self) -> dict[str, tuple[np.dtype[Any], tuple[int, ...]]]:
        """Type and shape of what the growing files hold."""
        return {
            _VECTORS: (np.dtype(np.float32), (self.rows, self.n_dims)),
            _LETTERS: (np.dtype(np.uint8), (self.letters,)),
            _OFFSETS: (np.dtype(np.int64), (self.rows + 1,)),
        }

    def file_bytes(self) -> dict[str, int]:
        """Sizes of the growing files."""
        return {
            name: _HEADER_BYTES + kind.itemsize * math.prod(shape)
            for name, (kind, shape) in self.arrays().items()
        }

    def add(self, lines: Lines, text_bytes: int) -> None:
        """Count what a block of lines held."""
        if lines.malformed and not self.first_malformed:
            place, line = lines.malformed[0]
            self.first_malformed = f"line {self.lines + place + 1}, {excerpt(line)}"
        self.text_bytes += text_bytes
        self.lines += lines.n_lines
        self.rows += len(lines.words)
        self.letters += sum(map(len, lines.words))
        self.malformed_lines += len(lines.malformed)
        self.replaced_words += lines.replaced_words


@dataclass(frozen=True)
class _Conversion:
    """One file to be converted, in a partial folder that takes its name when it is whole."""

    path: Path
    stamp: list[int]
    sha256: str
    folder: Path
    checkpoint_bytes: int

    def run(self, on_progress: OnProgress | None) -> dict[str, Any]:
        """Convert, or go on, or wait for the process that is at it; what there is in the end."""
        with _held(_beside(self.folder, self.sha256[:16])) as partial:
            about = _read_about(self.folder)
            if about is not None and about["sha256"] == self.sha256:
                shutil.rmtree(partial, ignore_errors=True)
                return about
            try:
                progress = self._grown(partial, on_progress)
                self._check_all(progress)
                about = self._finished(partial, progress)
            except EncoderError:
                shutil.rmtree(partial)
                raise
            self._put_in_place(partial)
        if on_progress is not None:
            on_progress(self.stamp[0], self.stamp[0])
        return about

    def _grown(self, partial: Path, on_progress: OnProgress | None) -> _Progress:
        """All words and vectors, in files that still lack their headers."""
        progress = _Progress.read(partial)
        with contextlib.ExitStack() as stack:
            text, packed = stack.enter_context(unpacked(self.path))
            text.seek(progress.text_bytes)
            blocks = line_blocks(text, min(_BLOCK_BYTES, self.checkpoint_bytes), self.path)
            if not progress.n_dims:
                blocks = _begun(blocks, progress)
            growing = {
                name: stack.enter_context(_file_of_size(partial / name, size))
                for name, size in progress.file_bytes().items()
            }
            reached = progress.text_bytes
            for text_bytes, lines in parsed(blocks, progress.n_dims):
                for name, content in _to_append(lines, progress.letters).items():
                    growing[name].write(content.data)
                progress.add(lines, text_bytes)
                if progress.text_bytes - reached >= self.checkpoint_bytes:
                    reached = progress.text_bytes
                    self._check_words(progress)
                    for file in growing.values():
                        _settle(file)
                    _write_json(partial / _PROGRESS, asdict(progress))
                    if on_progress is not None:
                        on_progress(packed.tell(), self.stamp[0])
        return progress

    def _check_words(self, progress: _Progress) -> None:
        """Refuse what is no file of word vectors."""
        if not progress.rows:
            raise EncoderError(
                f"{self.path} is not a file of word vectors: a line must be a word and its "
                f"numbers; it has {progress.first_malformed or 'no lines'}."
            )

    def _check_all(self, progress: _Progress) -> None:
        """Refuse a file that is not sound as a whole, or is no longer what it was."""
        self._check_words(progress)
        if progress.malformed_lines > _MALFORMED_SHARE * progress.lines:
            raise EncoderError(
                f"{self.path} is not a sound file of word vectors: {progress.malformed_lines:,} of "
                f"{progress.lines:,} lines are not a word and {progress.n_dims} numbers; the first "
                f"is {progress.first_malformed}."
            )
        if _stamp(self.path) != self.stamp:
            raise EncoderError(f"{self.path} changed while it was read; try again.")

    def _finished(self, partial: Path, progress: _Progress) -> dict[str, Any]:
        """Give the files their headers, and add the index and what there is to know."""
        for name, (kind, shape) in progress.arrays().items():
            with (partial / name).open("r+b") as file:
                _write_header(file, kind, shape)
        letters, offsets = (np.load(partial / name, mmap_mode="r") for name in (_LETTERS, _OFFSETS))
        hashes, rows = index_of_words(letters, offsets)
        np.save(partial / _HASHES, hashes)
        np.save(partial / _ROWS, rows)
        about = {
            "format": _FORMAT_VERSION,
            "source": self.path.name,
            "stamp": self.stamp,
            "sha256": self.sha256,
            **asdict(progress),
            "files": {
                name: {"bytes": (partial / name).stat().st_size, "sha256": sha256(partial / name)}
                for name in _FILES
            },
        }
        for name in _FILES:
            with (partial / name).open("r+b") as file:
                _settle(file)
        _write_json(partial / _ABOUT, about)
        return about

    def _put_in_place(self, partial: Path) -> None:
        """Name the folder as it is to be called, and clear away what came before it."""
        older = _beside(self.folder, secrets.token_hex(8))
        if self.folder.exists():
            self.folder.rename(older)
        partial.rename(self.folder)
        # The lock moved along, so that whoever waits for it sees that this folder is done with.
        for name in (_PROGRESS, _LOCK):
            (self.folder / name).unlink(missing_ok=True)
        shutil.rmtree(older, ignore_errors=True)
        pattern = _beside(self.folder.with_name(glob.escape(self.folder.name)), "*").name
        for abandoned in self.folder.parent.glob(pattern):
            with contextlib.suppress(ImportError, OSError), _locked(abandoned, wait=False):
                shutil.rmtree(abandoned)


def _beside(folder: Path, key: str) -> Path:
    return folder.with_name(f".{folder.name}.{key}.partial")


@contextlib.contextmanager
def _held(partial: Path) -> Iterator[Path]:
    """A folder to work in, made if need be, that other processes wait for."""
    lock: contextlib.AbstractContextManager[Any] = contextlib.nullcontext()
    try:
        lock = _locked(partial)
    except (ImportError, OSError):
        # Without locks, a folder of its own for every process, which none can go on with.
        partial = partial.with_name(f"{partial.name}.{secrets.token_hex(6)}")
        partial.mkdir()
    with lock:
        yield partial


def _locked(partial: Path, wait: bool = True) -> IO[bytes]:
    """The open lock of a folder, which is made if need be."""
    import fcntl

    while True:
        partial.mkdir(exist_ok=True)
        try:
            lock = (partial / _LOCK).open("ab")
        except FileNotFoundError:  # whoever was at work in it has just finished
            continue
        try:
            fcntl.flock(lock, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.path.samestat(os.fstat(lock.fileno()), (partial / _LOCK).stat()):
                return lock
        except FileNotFoundError:
            pass
        except BaseException:
            lock.close()
            raise
        lock.close()


def _to_append(lines: Lines, letters_before: int) -> dict[str, NDArray[Any]]:
    """What lines add to each of the growing files."""
    letters, offsets = packed_words(lines.words)
    return {_VECTORS: lines.vectors, _LETTERS: letters, _OFFSETS: letters_before + offsets[1:]}


def _file_of_size(path: Path, size: int) -> IO[bytes]:
    """A file to append to, cut to what is known to be good."""
    path.touch()
    file = path.open("r+b")
    file.truncate(size)
    file.seek(size)
    return file


def _settle(file: IO[bytes]) -> None:
    """Have everything written on the disk, so that what is noted about it holds."""
    file.flush()
    os.fsync(file.fileno())


def _write_header(file: IO[bytes], kind: np.dtype[Any], shape: tuple[int, ...]) -> None:
    """What makes a `.npy` file of the bytes that follow; its length does not depend on them."""
    np.lib.format.write_array_header_1_0(
        file, {"descr": kind.str, "fortran_order": False, "shape": shape}
    )
    assert file.tell() == _HEADER_BYTES


def _begun(blocks: Iterator[bytes], progress: _Progress) -> Iterator[bytes]:
    """The blocks less any first line of counts, the number of dimensions noted."""
    first = b""
    for block in blocks:
        first += block
        if first.count(b"\n") >= _LINES_TO_LOOK_AT:
            break
    lines = first.split(b"\n", _LINES_TO_LOOK_AT)[:_LINES_TO_LOOK_AT]
    mark = len(BYTE_ORDER_MARK) if first.startswith(BYTE_ORDER_MARK) else 0
    counts = lines[0][mark:].split()
    n_numbers = [numbers_at_end(line) for line in lines if line.strip()] or [0]
    progress.n_dims = Counter(n_numbers[1:] or n_numbers).most_common(1)[0][0]
    if not progress.n_dims:
        progress.first_malformed = f"line 1, {excerpt(lines[0])}" if first else ""
        return iter(())
    progress.text_bytes = mark
    if len(counts) == 2 and counts[0].isdigit() and counts[1] == b"%d" % progress.n_dims:
        progress.text_bytes = len(lines[0]) + 1
        progress.lines = 1
    rest = first[progress.text_bytes :]
    return chain([rest] if rest else [], blocks)
