"""Explicit Semantic Analysis: texts as weighted concepts, one per article of a corpus.

Gabrilovich and Markovitch (2007). TF-IDF weights are scikit-learn's.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ulr.encoders.counters import Counter
from ulr.encoders.derived import Facts, derived_folder
from ulr.encoders.protocol import CopiedByReference, OnProgress
from ulr.encoders.tokenization import replace_surrogates
from ulr.errors import EncoderError, InputError
from ulr.tables import Table, open_table

TITLE_COLUMNS = ("title", "name", "concept", "headline")
TEXT_COLUMNS = ("text", "abstract", "content", "body", "article", "extract", "description")

_FORMAT = "esa 2"
_WORD = re.compile(r"[^\W_]{2,}")
# Function words only: lists in common use also have `fire`, `interest` and `system`. The last line
# is what is left of "don't" and the like.
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
_WINDOW, _DROP = 100, 0.05
_CONCEPTS_PER_TEXT = 1000
_BATCH_CONCEPTS = 1024


class EsaEncoder(CopiedByReference):
    """Encode a text as the TF-IDF weighted sum of its terms' concept vectors, of length one.

    A text keeps its 1,000 strongest concepts. With more concepts than `max_dims`,
    similar ones share a dimension: their sum, divided by the root of their number. On corpora of
    59,000 and 42,000 concepts, 77% and 79% of 4,000 texts keep their nearest label with 8,192
    dimensions (random projection: 67% and 72%).

    Parameters
    ----------
    path
        A table (JSONL, CSV or Parquet) with the title and the text of an article in each row.
        Its index is computed once, into the folder ``PATH.ulr`` or the user's cache.
    min_words
        Articles with fewer words are left out.
    max_dims
        Largest number of dimensions.
    on_progress
        Called with the number of articles read so far, and None, while the index is built.

    Attributes
    ----------
    n_concepts, articles_left_out
        Articles that are concepts, and articles that are too short.
    """

    batch_texts = 256

    def __init__(
        self,
        path: str | Path,
        *,
        min_words: int = 50,
        max_dims: int = 8192,
        on_progress: OnProgress | None = None,
    ) -> None:
        if min_words < 1 or max_dims < 2:
            raise EncoderError(
                "min_words must be at least 1 and max_dims at least 2; "
                f"got {min_words} and {max_dims}."
            )
        corpus = Path(path).expanduser().absolute()
        if not corpus.is_file():
            raise EncoderError(f"{corpus} must be a file of articles, such as JSONL or Parquet.")
        options: dict[str, Any] = {"min_words": min_words, "max_dims": max_dims}
        index = derived_folder(
            corpus,
            {"format": _FORMAT, **options},
            partial(_build_index, corpus, on_progress=on_progress, **options),
        )
        self._load(index.folder)
        self.articles_left_out = int(index.facts["left_out"])
        self.fingerprint = (
            f"{_FORMAT} {index.sha256[:16]}, {min_words} words, {max_dims} dimensions"
        )
        self.spec = f"esa:{corpus}"
        self._unknown_texts = Counter()
        self._again = partial(EsaEncoder, corpus, **options)

    def _load(self, folder: Path) -> None:
        from sklearn.feature_extraction.text import TfidfVectorizer

        arrays = {
            name: np.asarray(np.load(folder / f"{name}.npy", mmap_mode="r"))
            for name in ("weights", "concepts", "starts", "idf", "groups")
        }
        terms = _read_lines(folder / "terms.txt")
        self._titles = _read_lines(folder / "titles.txt")
        self._vectorizer = TfidfVectorizer(
            analyzer=words_of, vocabulary=terms, sublinear_tf=True, norm=None
        )
        self._vectorizer.idf_ = arrays["idf"]
        self._by_term = csr_array(
            (arrays["weights"], arrays["concepts"], arrays["starts"]),
            shape=(len(terms), len(self._titles)),
        )
        groups = arrays["groups"]
        shares = 1 / np.sqrt(np.bincount(groups))[groups]
        self._grouping = csr_array(
            (shares.astype(np.float32), groups, np.arange(len(groups) + 1, dtype=np.int32)),
            shape=(len(groups), int(groups.max()) + 1),
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return self._again, ()

    @property
    def n_dims(self) -> int:
        """Dimensions of the vectors."""
        return int(self._grouping.shape[1])

    @property
    def n_concepts(self) -> int:
        """Articles that are concepts."""
        return len(self._titles)

    @property
    def unknown_texts(self) -> int:
        """Texts so far without any known term; their vectors are zero."""
        return self._unknown_texts.value

    def encode(self, texts: list[str], /) -> NDArray[np.float32]:
        """Vectors of the texts, (n_texts, n_dims); each independent of the other texts."""
        vectors = np.empty((len(texts), self.n_dims), dtype=np.float32)
        for start in range(0, len(texts), self.batch_texts):
            batch = slice(start, start + self.batch_texts)
            vectors[batch] = _unit_rows(self._concepts(texts[batch]) @ self._grouping).toarray()
        self._unknown_texts.add(int((~vectors.any(axis=1)).sum()))
        return vectors

    def strongest_concepts(self, text: str, most: int = 10) -> list[tuple[str, float]]:
        """Titles and weights of the strongest concepts of a text, in descending order."""
        concepts = self._concepts([text])
        order = np.lexsort((concepts.indices, -concepts.data))[:most]
        return [(self._titles[concepts.indices[i]], float(concepts.data[i])) for i in order]

    def _concepts(self, texts: list[str]) -> csr_array:
        """Weights of the concepts of texts, (n_texts, n_concepts)."""
        terms = csr_array(self._vectorizer.transform(texts).astype(np.float32))
        return _keep_largest(csr_array(terms @ self._by_term), _CONCEPTS_PER_TEXT)


def words_of(text: str) -> list[str]:
    """Lower-case words: runs of at least two letters or digits of any script."""
    return _WORD.findall(unicodedata.normalize("NFKC", replace_surrogates(text)).lower())


def _build_index(
    corpus: Path, folder: Path, *, min_words: int, max_dims: int, on_progress: OnProgress | None
) -> Facts:
    """Write the index of a corpus into a folder: terms, titles and their sparse weights."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    stop_words = frozenset(_STOP_WORDS.split())
    titles: list[str] = []
    n_articles = 0

    def long_articles() -> Iterator[list[str]]:
        nonlocal n_articles
        for title, text in read_articles(corpus, on_progress):
            n_articles += 1
            words = words_of(f"{title}\n{text}")
            if len(words) >= min_words:
                titles.append(" ".join(replace_surrogates(title).split()))
                yield [word for word in words if word not in stop_words]

    # A term of a single article relates it to nothing else.
    vectorizer = TfidfVectorizer(
        analyzer=list, min_df=2, sublinear_tf=True, use_idf=False, norm=None
    )
    try:
        frequencies = vectorizer.fit_transform(long_articles())
    except InputError:
        raise
    except ValueError:  # no article, or no term in two of them
        frequencies = None
    if len(titles) < 2:
        raise EncoderError(
            f"{corpus} needs at least 2 articles of at least {min_words} words; it has "
            f"{len(titles)}, and {n_articles - len(titles)} shorter ones."
        )
    if frequencies is None:
        raise EncoderError(f"no two articles of {corpus} share a word; use another corpus.")
    # As in the paper: scikit-learn adds 1 to every idf, which costs 20 points on AG News.
    idf = np.log(len(titles) / frequencies.getnnz(axis=0))
    by_concept = _unit_rows(frequencies.multiply(idf[None]))
    by_term = _prune_terms(csr_array(by_concept.T, dtype=np.float32))
    arrays = {
        "weights": by_term.data,
        "concepts": by_term.indices,
        "starts": by_term.indptr,
        "idf": idf,
        "groups": _group_concepts(by_term, max_dims),
    }
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", array)
    terms = vectorizer.get_feature_names_out()
    (folder / "terms.txt").write_text("\n".join(terms), encoding="utf-8")
    (folder / "titles.txt").write_text("\n".join(titles), encoding="utf-8")
    return {"left_out": n_articles - len(titles)}


def _group_concepts(by_term: csr_array, max_dims: int) -> NDArray[np.int32]:
    """The dimension of each concept, (n_concepts,).

    With more concepts than dimensions, one random concept leads each dimension, and every other
    concept joins the leader of the highest cosine; one without a term in common with any leader
    goes to the dimension of its number modulo `max_dims`.
    """
    n_concepts = by_term.shape[1]
    groups = np.arange(n_concepts, dtype=np.int32) % max_dims
    if n_concepts <= max_dims:
        return groups
    leaders = np.random.default_rng(0).permutation(n_concepts)[:max_dims]
    by_concept = csr_array(by_term.T)
    leading = csr_array(_unit_rows(by_concept[leaders]).T)
    for start in range(0, n_concepts, _BATCH_CONCEPTS):
        batch = slice(start, start + _BATCH_CONCEPTS)
        cosines = (by_concept[batch] @ leading).toarray()
        groups[batch] = np.where(cosines.any(axis=1), cosines.argmax(axis=1), groups[batch])
    groups[leaders] = np.arange(max_dims)
    return groups


def _prune_terms(by_term: csr_array) -> csr_array:
    """Keep the strongest concepts of each term, in place, by the rule of the paper.

    Concepts sorted by weight are cut after the first window of 100 whose weights differ by less
    than 5% of the largest weight. A fixed number of concepts is up to a point less accurate.
    """
    for row in np.flatnonzero(np.diff(by_term.indptr) > _WINDOW):
        entries = by_term.data[by_term.indptr[row] : by_term.indptr[row + 1]]
        descending = np.sort(entries)[::-1]
        flat = descending[: 1 - _WINDOW] - descending[_WINDOW - 1 :] < _DROP * descending[0]
        if flat.any():
            entries[entries < descending[flat.argmax() + _WINDOW - 1]] = 0
    by_term.eliminate_zeros()
    return by_term


def _keep_largest(matrix: csr_array, n: int) -> csr_array:
    """Remove all but the `n` largest entries of each row, in place; ties are kept."""
    for row in np.flatnonzero(np.diff(matrix.indptr) > n):
        entries = matrix.data[matrix.indptr[row] : matrix.indptr[row + 1]]
        entries[entries < np.partition(entries, -n)[-n]] = 0
    matrix.eliminate_zeros()
    return matrix


def _unit_rows(matrix: Any) -> Any:
    from sklearn.preprocessing import normalize

    return normalize(matrix)


def read_articles(path: Path, on_progress: OnProgress | None = None) -> Iterator[tuple[str, str]]:
    """Title and text of every row of a corpus; empty where a value is missing."""
    with open_table(str(path)) as table:
        title = _find_column(table, "title", TITLE_COLUMNS)
        text = _find_column(table, "text", TEXT_COLUMNS)
        for batch in table.batches():
            yield from zip(table.texts(batch, [title]), table.texts(batch, [text]), strict=True)
            if on_progress is not None:
                on_progress(batch.first_row + len(batch), None)


def _find_column(table: Table, content: str, names: Sequence[str]) -> str:
    found = {column.lower(): column for column in reversed(table.columns)}
    for name in names:
        if name in found:
            return found[name]
    raise EncoderError(
        f"{table.name} has no column for the {content} of an article, one of {', '.join(names)}; "
        f"it has: {', '.join(table.columns)}. Rename one."
    )


def _read_lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").split("\n")
