"""Word vectors from GloVe, word2vec and fastText text files, converted once and memory-mapped."""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import math
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice, takewhile
from pathlib import Path
from typing import IO, Self

import numpy as np
from numpy.typing import NDArray

from ulr.encoders.derived import Facts, derived_folder
from ulr.encoders.protocol import OnProgress
from ulr.errors import EncoderError
from ulr.files import open_bytes

_FORMAT = "word vectors 2"
_BATCH_LINES = 1024
_FIRST_LINES = 100
_MAX_LINE_BYTES = 1 << 20
_MAX_MALFORMED_SHARE = 0.01
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True)
class WordVectors:
    """Words and their vectors.

    Attributes
    ----------
    rows
        The row of each word; the first one if a word occurs several times.
    matrix
        (n_rows, n_dims) the vectors.
    sha256
        Hash of the words and vectors, or of the file that they were read from.
    malformed_lines
        Lines of the file that were left out.
    """

    rows: dict[str, int]
    matrix: NDArray[np.float32]
    sha256: str
    malformed_lines: int = 0

    @classmethod
    def of(cls, words: Sequence[str], matrix: NDArray[np.float32]) -> Self:
        """Words and vectors that are in memory."""
        matrix = np.ascontiguousarray(matrix, dtype=np.float32)
        if matrix.ndim != 2 or len(matrix) != len(words) or not len(words):
            raise EncoderError(
                "words and vectors must be of the same number, at least one; got "
                f"{len(words)} words and vectors of shape {matrix.shape}."
            )
        digest = hashlib.sha256("\n".join(words).encode())
        digest.update(matrix.tobytes())
        return cls(number_words(words), matrix, digest.hexdigest())


def number_words(words: Sequence[str]) -> dict[str, int]:
    """The first row of each word."""
    rows = {word: row for row, word in enumerate(words)}
    if len(rows) < len(words):
        rows = dict(zip(reversed(words), range(len(words) - 1, -1, -1), strict=True))
    return rows


def open_word_file(
    path: Path, cache: Path | None = None, on_progress: OnProgress | None = None
) -> WordVectors:
    """Words and vectors of a text file, which is converted once; see `derived_folder`.

    Parameters
    ----------
    path
        Lines of a word and its numbers, possibly after a line with both counts; plain, gzip or
        zip.
    cache
        A folder for the conversion, instead of the one next to the file.
    on_progress
        Called while converting with the bytes read so far and the size of the file.
    """
    if not path.is_file():
        raise EncoderError(f"there is no file of word vectors {path}.")
    settings = {"format": _FORMAT}
    converted = derived_folder(path, settings, partial(_convert, path, on_progress), cache)
    words = (converted.folder / "words.txt").read_bytes().decode().split("\n")
    matrix = np.asarray(np.load(converted.folder / "vectors.npy", mmap_mode="r"))
    malformed = int(converted.facts["malformed_lines"])
    return WordVectors(number_words(words), matrix, converted.sha256, malformed)


def _convert(path: Path, on_progress: OnProgress | None, folder: Path) -> Facts:
    """Write vectors.npy and words.txt, reading the file once."""
    n_lines = n_words = 0
    malformed: list[bytes] = []
    with (
        _open_words(path) as (text, compressed),
        (folder / "vectors.npy").open("wb") as vectors,
        (folder / "words.txt").open("wb") as words,
    ):
        lines = iter(lambda: text.readline(_MAX_LINE_BYTES), b"")
        n_dims, lines = _skip_header(lines, path)
        _write_header(vectors, 0, n_dims)
        while batch := list(islice(lines, _BATCH_LINES)):
            found, numbers, bad = _parse(batch, n_dims)
            words.write(b"".join(b"\n" * (n_words + i > 0) + w for i, w in enumerate(found)))
            vectors.write(numbers.data)
            n_lines += len(batch)
            n_words += len(found)
            malformed += bad
            _refuse_malformed(path, n_lines, n_dims, malformed, at_least=_BATCH_LINES)
            if on_progress is not None:
                on_progress(compressed.tell(), path.stat().st_size)
        _write_header(vectors, n_words, n_dims)
    _refuse_malformed(path, n_lines, n_dims, malformed)
    return {"malformed_lines": len(malformed)}


@contextlib.contextmanager
def _open_words(path: Path) -> Iterator[tuple[IO[bytes], IO[bytes]]]:
    """The text of a file, decompressed, and the file whose position shows the progress."""
    try:
        with path.open("rb") as file:
            if file.read(4) == b"PK\x03\x04":
                with zipfile.ZipFile(file) as archive, _open_member(archive, path) as text:
                    yield text, file
                return
        with open_bytes(path) as text:
            yield text, getattr(text, "fileobj", text)
    except (EOFError, zlib.error, zipfile.BadZipFile, gzip.BadGzipFile) as error:
        raise EncoderError(
            f"{path} is incomplete or damaged: {error}; download it again."
        ) from None


def _open_member(archive: zipfile.ZipFile, path: Path) -> IO[bytes]:
    """The only file of word vectors in an archive."""
    names = [
        info.filename
        for info in archive.infolist()
        if not info.is_dir() and not info.filename.startswith("__MACOSX/")
    ]
    candidates = [name for name in names if name.lower().endswith((".txt", ".vec"))]
    chosen = candidates if len(candidates) == 1 else names
    if len(chosen) != 1:
        raise EncoderError(
            f"{path} must hold one file of word vectors; it holds {', '.join(names) or 'none'}. "
            "Extract it and give the file to use."
        )
    try:
        return archive.open(chosen[0])
    except RuntimeError as error:  # a password, or a compression that Python does not know
        raise EncoderError(f"{path} cannot be extracted: {error}.") from None


def _skip_header(lines: Iterator[bytes], path: Path) -> tuple[int, Iterator[bytes]]:
    """The number of dimensions, and the lines without the counts that may precede them."""
    first = list(islice(lines, _FIRST_LINES))
    if first:
        first[0] = first[0].removeprefix(_BYTE_ORDER_MARK)
    counts = [_numbers_at_end(line) for line in first if line.strip()]
    n_dims = Counter(counts[1:] or counts or [0]).most_common(1)[0][0]
    if not n_dims:
        found = _excerpt(first[0]) if first else "nothing"
        raise EncoderError(
            f"{path} must have lines of a word and its numbers; it starts with {found}."
        )
    header = first[0].split()
    if len(header) == 2 and header[0].isdigit() and header[1] == b"%d" % n_dims:
        del first[0]
    return n_dims, chain(first, lines)


def _parse(
    lines: Iterable[bytes], n_dims: int
) -> tuple[list[bytes], NDArray[np.float32], list[bytes]]:
    """Words, vectors and malformed lines."""
    stripped = [line.strip(b"\r\n") for line in lines]
    split = [(line, _split(line, n_dims)) for line in stripped if line.strip()]
    malformed = [line for line, parts in split if parts is None]
    good = [(line, *parts) for line, parts in split if parts is not None]
    matrix = _read_numbers([numbers for _, _, numbers in good], n_dims)
    finite = np.isfinite(matrix).all(axis=1)
    malformed += [good[row][0] for row in np.flatnonzero(~finite)]
    words = [good[row][1].decode(errors="replace").encode() for row in np.flatnonzero(finite)]
    return words, matrix[finite], malformed


def _split(line: bytes, n_dims: int) -> tuple[bytes, list[bytes]] | None:
    """The word of a line, which may contain spaces, and its numbers; None if malformed."""
    word, *numbers = line.rsplit(None, n_dims)
    _, *others = word.split() or [b""]
    # Further numbers mean a line of other dimensions, not a word with spaces.
    if len(numbers) < n_dims or line[:1].isspace() or (others and all(map(_is_number, others))):
        return None
    return word, numbers


def _read_numbers(rows: list[list[bytes]], n_dims: int) -> NDArray[np.float32]:
    """Numbers as an array, (n_rows, n_dims); rows that are not numbers are NaN."""
    if not rows:
        return np.empty((0, n_dims), dtype=np.float32)
    try:
        lines = [b" ".join(row) for row in rows]
        return np.loadtxt(lines, dtype=np.float32, comments=None, ndmin=2, encoding="latin-1")
    except ValueError:
        good = [row if all(map(_is_number, row)) else [b"nan"] * n_dims for row in rows]
        return np.array(good).astype(np.float32)


def _numbers_at_end(line: bytes) -> int:
    """How many numbers a line ends in, its first field aside."""
    _, *fields = line.split()
    return sum(1 for _ in takewhile(_is_number, reversed(fields)))


def _is_number(field: bytes) -> bool:
    try:
        return math.isfinite(float(field))
    except ValueError:
        return False


def _write_header(file: IO[bytes], n_rows: int, n_dims: int) -> None:
    """Write the .npy header; NumPy pads it, so that a larger number of rows fits in later."""
    file.seek(0)
    header = {"descr": "<f4", "fortran_order": False, "shape": (n_rows, n_dims)}
    np.lib.format.write_array_header_1_0(file, header)


def _refuse_malformed(
    path: Path, n_lines: int, n_dims: int, malformed: list[bytes], at_least: int = 0
) -> None:
    """Raise if more than one line in a hundred is malformed."""
    if len(malformed) > _MAX_MALFORMED_SHARE * max(n_lines, at_least):
        raise EncoderError(
            f"{path} must have lines of a word and {n_dims} numbers; {len(malformed):,} of "
            f"{n_lines:,} lines are different, such as {_excerpt(malformed[0])}."
        )


def _excerpt(line: bytes) -> str:
    text = line.strip().decode(errors="replace")
    return repr(text if len(text) <= 60 else f"{text[:60]}…")
