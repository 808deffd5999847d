"""Concept corpora for Explicit Semantic Analysis: articles in, an index of terms by concepts out.

Keeping the index on disk, and using it on texts, is `ulr.encoders.esa`'s.
"""

from __future__ import annotations

import gzip
import json
import re
import unicodedata
import zlib
from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ulr.encoders.protocol import OnProgress
from ulr.encoders.tokens import whole_characters
from ulr.errors import EncoderError

TITLE_COLUMNS = ("title", "name", "concept", "headline")
TEXT_COLUMNS = ("text", "abstract", "content", "body", "article", "extract", "description")

_WORD = re.compile(r"[^\W_]{2,}")
# Words of grammar only: lists in common use also hold `fire`, `interest` and `system`. What is
# left of "don't" and the like once it is cut at the apostrophe comes last.
_STOP_WORDS = """
about above after again against all also although always am among an and another any anyone
anything are around as at be because been before being below between both but by can cannot could
did do does doing done down during each either else ever every few for from further had has have
having he hence her here hers herself him himself his how however if in into is it its itself just
let may me might mine more most much must my myself neither no nor not nothing now of off often on
once one only onto or other others our ours ourselves out over own per perhaps rather same she
should since so some someone something such than that the their theirs them themselves then there
therefore these they this those though through thus to together too toward towards under until
unto up upon us very was we were what whatever when where whether which while who whoever whole
whom whose why will with within without would yes yet you your yours yourself yourselves
aren couldn didn doesn don hadn hasn haven isn ll re shouldn ve wasn won wouldn
"""
_FEWEST_CONCEPTS = 2  # a term of one concept likens nothing to anything else
_WINDOW, _DROP = 100, 0.05
_ARTICLES_AT_A_TIME = 1024


@dataclass(frozen=True, eq=False)
class ConceptIndex:
    """What the terms of a corpus say about its concepts.

    Attributes
    ----------
    starts, concepts, weights
        The concepts of each term and how strongly each is meant by it: those of term i are from
        ``starts[i]`` to ``starts[i + 1]``, as in a sparse matrix (n_terms, n_concepts).
    idf
        (n_terms,) logarithm of the number of concepts over the number that have the term.
    terms, term_ends
        UTF-8 of all terms, sorted, in a row, and where each one ends.
    titles, title_ends
        The same for the titles of the concepts, in the order of the corpus.
    groups
        (n_concepts,) the dimension that each concept counts towards.
    left_out
        (1,) how many articles were too short to be concepts.
    """

    starts: NDArray[np.integer[Any]]
    concepts: NDArray[np.integer[Any]]
    weights: NDArray[np.float32]
    idf: NDArray[np.float32]
    terms: NDArray[np.uint8]
    term_ends: NDArray[np.int64]
    titles: NDArray[np.uint8]
    title_ends: NDArray[np.int64]
    groups: NDArray[np.int32]
    left_out: NDArray[np.int64]

    @property
    def by_term(self) -> csr_array:
        """The weights as a sparse matrix, (n_terms, n_concepts), which shares their memory."""
        shape = (len(self.idf), len(self.groups))
        return csr_array((self.weights, self.concepts, self.starts), shape=shape)


class Strings(Sequence[bytes]):
    """UTF-8 strings that lie in a row, each read where it lies."""

    def __init__(self, text: NDArray[np.uint8], ends: NDArray[np.int64]) -> None:
        # Views, since NumPy takes ten times as long for a single item.
        self._text, self._ends = text.data, ends.data

    def __len__(self) -> int:
        return len(self._ends)

    def __getitem__(self, place: Any) -> Any:
        start = self._ends[place - 1] if place else 0
        return bytes(self._text[start : self._ends[place]])


def words_of(text: str) -> list[str]:
    """Words of a text: runs of two letters or digits and more, of any script, in lower case."""
    return _WORD.findall(unicodedata.normalize("NFKC", whole_characters(text)).lower())


def build_index(
    path: Path, *, min_words: int, max_dims: int, on_progress: OnProgress | None = None
) -> ConceptIndex:
    """Read a corpus and weigh its terms.

    A term's weight in an article is ``(1 + log count) · log(n_articles / n_with_the_term)``, scaled
    so that every article's weights have length one. Stop words and terms of one article are left
    out. A term keeps its strongest concepts, as Gabrilovich and Markovitch (2007) choose them:
    sorted by weight, they are cut after the first 100 in a row that differ by less than 5% of the
    strongest. That leaves 2,000 or so at most, whatever the size of the corpus.

    Parameters
    ----------
    path
        The corpus: JSONL, gzipped or not, or Parquet.
    min_words
        Articles of fewer words are left out.
    max_dims
        Most dimensions; with more concepts than that, those alike share one.
    on_progress
        Called with the number of articles of every batch read.
    """
    counted = _Counted.articles(path, min_words, on_progress)
    n_concepts = len(counted.titles)
    if n_concepts < 2:
        raise EncoderError(
            f"{path} has {n_concepts} articles of at least {min_words} words (and "
            f"{counted.left_out} shorter ones); at least 2 are needed."
        )
    terms, idf, by_concept = _weigh(counted)
    if not terms:
        raise EncoderError(f"no two articles of {path} share a word; other articles are needed.")
    by_term = _strongest(by_concept.T.tocsr())
    # Both of one type, so that a sparse matrix over the saved arrays need not copy them.
    small = np.int32 if by_term.nnz < 2**31 else np.int64
    joined_terms, term_ends = _in_a_row(terms)
    joined_titles, title_ends = _in_a_row(counted.titles)
    return ConceptIndex(
        starts=by_term.indptr.astype(small),
        concepts=by_term.indices.astype(small),
        weights=by_term.data.astype(np.float32),
        idf=idf.astype(np.float32),
        terms=joined_terms,
        term_ends=term_ends,
        titles=joined_titles,
        title_ends=title_ends,
        groups=_groups_of_concepts(by_term, max_dims),
        left_out=np.array([counted.left_out]),
    )


@dataclass(frozen=True, eq=False)
class _Counted:
    """How often each word is in each article."""

    titles: list[str]
    numbers: dict[str, int]  # of the words
    words: NDArray[np.int32]  # numbers of the different words of all articles in a row
    counts: NDArray[np.int32]
    n_words: NDArray[np.int64]  # how many different ones each article has
    left_out: int

    @classmethod
    def articles(cls, path: Path, min_words: int, on_progress: OnProgress | None) -> _Counted:
        stop_words = frozenset(_STOP_WORDS.split())
        numbers: defaultdict[str, int] = defaultdict()
        numbers.default_factory = numbers.__len__
        titles, words, counts, n_words = [], array("i"), array("i"), array("q")
        read = 0
        for read, (title, text) in enumerate(read_articles(path), 1):
            if on_progress is not None and read % _ARTICLES_AT_A_TIME == 0:
                on_progress(read, None)
            found = words_of(f"{title}\n{text}")
            if len(found) < min_words:
                continue
            count = Counter(word for word in found if word not in stop_words)
            words.extend(map(numbers.__getitem__, count))
            counts.extend(count.values())
            n_words.append(len(count))
            titles.append(whole_characters(title))
        if on_progress is not None and read % _ARTICLES_AT_A_TIME:
            on_progress(read, None)
        return cls(
            titles,
            dict(numbers),
            np.frombuffer(words, dtype=np.int32),
            np.frombuffer(counts, dtype=np.int32),
            np.frombuffer(n_words, dtype=np.int64),
            read - len(titles),
        )


def _weigh(counted: _Counted) -> tuple[list[str], NDArray[np.float64], csr_array]:
    """Terms, sorted; their inverse document frequencies; weights, (n_concepts, n_terms)."""
    n_concepts = len(counted.titles)
    with_word = np.bincount(counted.words, minlength=len(counted.numbers))
    is_term = (with_word >= _FEWEST_CONCEPTS) & (with_word < n_concepts)
    terms = sorted(word for word, number in counted.numbers.items() if is_term[number])
    order = np.array([counted.numbers[term] for term in terms], dtype=np.intp)
    idf = np.log(n_concepts / with_word[order])
    place = np.full(len(is_term), -1, dtype=np.int32)
    place[order] = np.arange(len(order))
    kept = is_term[counted.words]
    concept = np.repeat(np.arange(n_concepts), counted.n_words)[kept]
    term = place[counted.words[kept]]
    weights = (1 + np.log(counted.counts[kept])) * idf[term]
    lengths = np.sqrt(np.bincount(concept, weights * weights, minlength=n_concepts))
    weights /= lengths[concept]
    starts = np.append(0, np.cumsum(np.bincount(concept, minlength=n_concepts)))
    shape = (n_concepts, len(terms))
    return terms, idf, csr_array((weights, term, starts), shape=shape)


def _strongest(by_term: csr_array) -> csr_array:
    """Each term with its strongest concepts only."""
    kept = np.ones(by_term.nnz, dtype=bool)
    for term in np.flatnonzero(np.diff(by_term.indptr) > _WINDOW):
        own = slice(by_term.indptr[term], by_term.indptr[term + 1])
        order = np.argsort(-by_term.data[own], kind="stable")
        weights = by_term.data[own][order]
        flat = weights[: 1 - _WINDOW] - weights[_WINDOW - 1 :] < _DROP * weights[0]
        if flat.any():
            kept[own][order[flat.argmax() + _WINDOW :]] = False
    starts = np.append(0, np.cumsum(kept))[by_term.indptr]
    return csr_array((by_term.data[kept], by_term.indices[kept], starts), shape=by_term.shape)


def _groups_of_concepts(by_term: csr_array, max_dims: int) -> NDArray[np.int32]:
    """The dimension of each concept: its own, or that of the leader it is most like.

    With more concepts than dimensions, as many of them as there are dimensions lead, evenly spread
    over the corpus. Any other concept joins the leader of the highest cosine, the first of equals;
    one that shares no term with any leader goes by its place in the corpus.
    """
    n_concepts = by_term.shape[1]
    groups = np.arange(n_concepts, dtype=np.int32) % max_dims
    if n_concepts <= max_dims:
        return groups
    leaders = np.arange(max_dims) * n_concepts // max_dims
    by_concept = by_term.T.tocsr()
    leading = by_concept[leaders]
    lengths = np.sqrt(leading.multiply(leading).sum(axis=1))
    leading.data /= np.repeat(lengths, np.diff(leading.indptr))
    leading = leading.T.tocsr()
    for start in range(0, n_concepts, _ARTICLES_AT_A_TIME):
        few = slice(start, start + _ARTICLES_AT_A_TIME)
        likeness = (by_concept[few] @ leading).toarray()
        groups[few] = np.where(likeness.any(axis=1), likeness.argmax(axis=1), groups[few])
    groups[leaders] = np.arange(max_dims)
    return groups


def _in_a_row(strings: Iterable[str]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    encoded = [each.encode() for each in strings]
    ends = np.cumsum([len(each) for each in encoded], dtype=np.int64)
    return np.frombuffer(b"".join(encoded), dtype=np.uint8), ends


def read_articles(path: Path) -> Iterator[tuple[str, str]]:
    """Title and text of every article of a corpus, in order; empty where there is none.

    Raises
    ------
    EncoderError
        When the corpus cannot be read or has no columns of titles and texts.
    """
    try:
        with path.open("rb") as file:
            start = file.read(4)
            file.seek(0)
            if start == b"PAR1":
                yield from _parquet_articles(path)
            elif start.startswith(b"\x1f\x8b"):
                with gzip.open(file) as unpacked:
                    yield from _json_articles(unpacked, path)
            else:
                yield from _json_articles(file, path)
    except (gzip.BadGzipFile, zlib.error, EOFError) as error:
        raise EncoderError(f"{path} is a damaged gzip file: {error}.") from None
    except OSError as error:
        raise EncoderError(f"{path} cannot be read: {error.strerror or error}.") from None


def _json_articles(lines: IO[bytes] | gzip.GzipFile, path: Path) -> Iterator[tuple[str, str]]:
    columns: tuple[str, str] | None = None
    for number, line in enumerate(lines, 1):
        where = f"{path} line {number}"
        try:
            content = line.decode("utf-8-sig" if number == 1 else "utf-8")
            record = json.loads(content) if content.strip() else {}
        except UnicodeDecodeError as error:
            raise EncoderError(f"{where} is not UTF-8: {error.reason}.") from None
        except (ValueError, RecursionError) as error:
            reason = error.msg if isinstance(error, json.JSONDecodeError) else error
            raise EncoderError(f"{where} is not JSON: {reason}.") from None
        if not isinstance(record, dict):
            raise EncoderError(f"{where} must be a JSON object; got {content.strip()[:40]}.")
        if not record:
            continue
        columns = columns or _columns(list(record), where)
        missing = [column for column in columns if column not in record]
        if missing:
            raise EncoderError(f"{where} has no {missing[0]!r}; it has: {', '.join(record)}.")
        yield _article(where, columns, record[columns[0]], record[columns[1]])


def _parquet_articles(path: Path) -> Iterator[tuple[str, str]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    row = 0
    try:
        with pq.ParquetFile(path) as file:
            columns = _columns(file.schema_arrow.names, str(path))
            for batch in file.iter_batches(_ARTICLES_AT_A_TIME, columns=list(columns)):
                values = (batch.column(column).to_pylist() for column in columns)
                for title, text in zip(*values, strict=True):
                    row += 1
                    yield _article(f"{path} row {row}", columns, title, text)
    except (pa.ArrowException, OSError) as error:
        raise EncoderError(f"{path} cannot be read as Parquet: {error}.") from None


def _columns(names: Sequence[str], where: str) -> tuple[str, str]:
    """Which columns hold the titles and the texts."""
    found = {name.lower(): name for name in reversed(names)}
    chosen = []
    for what, usual in (("title", TITLE_COLUMNS), ("text", TEXT_COLUMNS)):
        column = next((found[name] for name in usual if name in found), None)
        if column is None:
            raise EncoderError(
                f"{where} has no column for the {what} of an article, one of "
                f"{', '.join(usual)}; it has: {', '.join(names)}. Rename one."
            )
        chosen.append(column)
    return chosen[0], chosen[1]


def _article(where: str, columns: tuple[str, str], title: Any, text: Any) -> tuple[str, str]:
    for column, value in zip(columns, (title, text), strict=True):
        if value is not None and not isinstance(value, str):
            raise EncoderError(f"{where}: {column!r} must be a text; got {str(value)[:40]}.")
    return title or "", text or ""
