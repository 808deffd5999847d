"""Lines of a word and its numbers: unpacked, cut into blocks, parsed on several threads."""

from __future__ import annotations

import contextlib
import gzip
import math
import zipfile
import zlib
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import IO, cast

import numpy as np
from numpy.typing import NDArray

from ulr.errors import EncoderError
from ulr.refine.threads import available_cores

_LONGEST_LINE_BYTES = 16 << 20
_MOST_PARSERS = 4
_EXCERPT_BYTES = 60
BYTE_ORDER_MARK = b"\xef\xbb\xbf"


@contextlib.contextmanager
def unpacked(path: Path) -> Iterator[tuple[IO[bytes], IO[bytes]]]:
    """The text of a file, unpacked as it is read, and the file itself."""
    with path.open("rb") as file, contextlib.ExitStack() as stack:
        start = file.read(4)
        file.seek(0)
        try:
            text: IO[bytes] = file
            if start.startswith(b"\x1f\x8b"):
                text = cast(IO[bytes], stack.enter_context(gzip.open(file)))
            elif start == b"PK\x03\x04":
                archive = stack.enter_context(zipfile.ZipFile(file))
                text = stack.enter_context(_member(archive, path))
            yield text, file
        except (EOFError, zlib.error, zipfile.BadZipFile, gzip.BadGzipFile) as error:
            raise EncoderError(
                f"{path} is cut short or damaged; get it anew. ({str(error).rstrip('.')}.)"
            ) from None


def _member(archive: zipfile.ZipFile, path: Path) -> IO[bytes]:
    """The one file of word vectors in an archive."""
    names = [
        info.filename
        for info in archive.infolist()
        if not info.is_dir() and not info.filename.startswith("__MACOSX/")
    ]
    fitting = [name for name in names if name.lower().endswith((".txt", ".vec"))]
    chosen = fitting if len(fitting) == 1 else names
    if len(chosen) != 1:
        raise EncoderError(
            f"{path} must hold one file of word vectors; it holds {', '.join(names) or 'none'}. "
            "Unpack it and name the one that is wanted."
        )
    try:
        return archive.open(chosen[0])
    except RuntimeError as error:  # a password, or a compression that Python does not know
        raise EncoderError(f"{path} cannot be unpacked: {error}.") from None


def line_blocks(text: IO[bytes], block_bytes: int, path: Path) -> Iterator[bytes]:
    """The text in blocks of whole lines."""
    rest = b""
    while block := text.read(block_bytes):
        whole, end, rest = (rest + block).rpartition(b"\n")
        if end:
            yield whole + end
        elif len(rest) > _LONGEST_LINE_BYTES:
            raise EncoderError(
                f"{path} is not a file of word vectors: it has a line of more than "
                f"{_LONGEST_LINE_BYTES >> 20} MB."
            )
    if rest:
        yield rest


@dataclass(frozen=True)
class Lines:
    """The words and vectors of a block of lines, and what was wrong with the others."""

    n_lines: int
    words: list[bytes]
    vectors: NDArray[np.float32]
    malformed: list[tuple[int, bytes]]
    replaced_words: int


def parsed(blocks: Iterator[bytes], n_dims: int) -> Iterator[tuple[int, Lines]]:
    """Every block's size and what its lines hold, in order; parsed a few at a time."""
    at_once = min(available_cores(), _MOST_PARSERS)
    waiting: deque[tuple[int, Future[Lines]]] = deque()
    with ThreadPoolExecutor(at_once) as pool:
        for block in blocks:
            waiting.append((len(block), pool.submit(_parse, block, n_dims)))
            if len(waiting) > at_once:
                text_bytes, lines = waiting.popleft()
                yield text_bytes, lines.result()
        while waiting:
            text_bytes, lines = waiting.popleft()
            yield text_bytes, lines.result()


def _parse(block: bytes, n_dims: int) -> Lines:
    """Read the lines of a block."""
    lines = [line.rstrip(b" \r") for line in block.replace(b"\t", b" ").split(b"\n")]
    if not lines[-1]:
        lines.pop()
    places, words, numbers, malformed = [], [], [], []
    for place, line in enumerate(lines):
        if (split := _split(line, n_dims)) is not None:
            places.append(place)
            words.append(split[0])
            numbers.append(split[1])
        elif line:
            malformed.append((place, line))
    vectors = _read_numbers(numbers, n_dims)
    finite = np.isfinite(vectors).all(axis=1)
    if not finite.all():
        malformed += [(places[i], lines[places[i]]) for i in np.flatnonzero(~finite)]
        words, vectors = [words[i] for i in np.flatnonzero(finite)], vectors[finite]
    words, replaced = _in_utf8(words)
    return Lines(len(lines), words, vectors, sorted(malformed), replaced)


def _split(line: bytes, n_dims: int) -> tuple[bytes, bytes] | None:
    """The word of a line and its numbers, with a space before each; None if it has none."""
    if line.count(b" ") == n_dims and not line.startswith(b" "):
        end = line.index(b" ")
        return line[:end], line[end:]
    word, *numbers = line.rsplit(None, n_dims) or [b""]
    _, *others = word.split() or [b""]
    # More numbers than there should be are a line of other dimensions, not a word with spaces.
    if len(numbers) < n_dims or (others and all(map(_is_number, others))):
        return None
    return word, b" " + b" ".join(numbers)


def _read_numbers(lines: list[bytes], n_dims: int) -> NDArray[np.float32]:
    """Vectors, (n_lines, n_dims), of lines of numbers; not a number where something else is."""
    import pyarrow as pa
    from pyarrow import csv

    if not lines:
        return np.empty((0, n_dims), dtype=np.float32)
    text = b"\n".join(lines)
    columns = [str(column) for column in range(n_dims + 1)]
    reading = csv.ReadOptions(use_threads=False, block_size=len(text) + 1, column_names=columns)
    converting = csv.ConvertOptions(
        include_columns=columns[1:],
        column_types=dict.fromkeys(columns, pa.float32()),
        null_values=[],
    )
    parsing = csv.ParseOptions(delimiter=" ", quote_char=False)
    try:
        table = csv.read_csv(pa.BufferReader(text), reading, parsing, converting)
    except pa.ArrowInvalid:
        if len(lines) == 1:
            return np.full((1, n_dims), np.nan, dtype=np.float32)
        half = len(lines) // 2
        parts = [_read_numbers(few, n_dims) for few in (lines[:half], lines[half:])]
        return np.concatenate(parts)
    assert len(table) == len(lines)
    # A column's own to_numpy would load pandas, where there is one.
    return np.stack([np.from_dlpack(column.chunk(0)) for column in table.columns], axis=1)


def numbers_at_end(line: bytes) -> int:
    """How many numbers a line ends in; its first field is a word in any case."""
    _, *fields = line.split()
    return sum(1 for _ in takewhile(_is_number, reversed(fields)))


def _is_number(field: bytes) -> bool:
    try:
        return math.isfinite(float(field))
    except ValueError:
        return False


def _in_utf8(words: list[bytes]) -> tuple[list[bytes], int]:
    """The words with replacement characters where they are not UTF-8, and how many were not."""
    try:
        b"\n".join(words).decode()
    except UnicodeDecodeError:
        sound = [word.decode(errors="replace").encode() for word in words]
        return sound, sum(map(bytes.__ne__, words, sound))
    return words, 0


def excerpt(line: bytes) -> str:
    """The beginning of a line, for a message."""
    start = line[:_EXCERPT_BYTES].decode(errors="replace")
    return repr(start + "…" if len(line) > _EXCERPT_BYTES else start)
