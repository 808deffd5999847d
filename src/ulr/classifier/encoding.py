"""Texts and labels to vectors: the one way in which documents and phrases are encoded."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from itertools import repeat

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_matrix, vstack

from ulr.classifier.settings import Settings
from ulr.classifier.word_counts import WordCounter, count_words
from ulr.encoders import (
    CachedEncoder,
    Encoder,
    JoinedEncoder,
    LabelScores,
    SplitTexts,
    batch_texts,
    batch_threads,
    check_vectors,
    encode_texts,
    label_encoder,
)
from ulr.errors import ArrayError, LabelError
from ulr.labels import in_template
from ulr.markup import readable_texts
from ulr.progress import NO_PROGRESS, Progress
from ulr.refinement import DISTANCES
from ulr.threads import machine_memory, run_ahead
from ulr.vectors import unit_rows

Vectors = NDArray[np.float32]
# Words that a strong encoder reads in a job: `minilm-int8+use-multilingual` takes some 70 CPU seconds
# for them. Of more, it reads a sample, and a student labels the others.
READ_WORDS = 200_000
_WORDS_PER_TEXT = 100  # are read at most, by an encoder of 128 tokens
_MOST_DISTINCT = 0.8  # share of distinct texts; encoding repeated ones once gains less above it
_MEMORY_SHARE = 0.25  # vectors that need more of the machine's memory are in a temporary file


@dataclass(frozen=True, eq=False)
class EncodedTexts:
    """Texts with their vectors and, where the method uses them, counts of their words.

    With `strong`, the vectors are those of the fast encoder, and the strong one reads some texts.
    """

    texts: list[str]
    vectors: Vectors
    word_counts: csr_matrix | None = None
    strong: StrongVectors | None = None

    def rows(self, rows: NDArray[np.intp]) -> EncodedTexts:
        """Some of the texts, by the strong encoder if there is one."""
        vectors = self.vectors[rows] if self.strong is None else self.strong.of(rows)
        counts = None if self.word_counts is None else self.word_counts[rows]
        return EncodedTexts([self.texts[i] for i in rows.tolist()], vectors, counts)


@dataclass(frozen=True, eq=False)
class FitInputs:
    """What a fit was given beside documents and known labels, so that it can be repeated."""

    settings: Settings  # as asked for: the method may differ from the one that was used
    labels: Vectors | None  # (n_labels, n_dims); None where a label starts as its own certainty
    extra_labels: Vectors | None = None  # (n_extra, n_dims)
    extra_texts: Vectors | None = None  # (n_texts, n_dims)
    n_words: int | None = None  # of all documents of the job
    sample: NDArray[np.intp] | None = None  # positions of those that a strong encoder read


class StrongVectors:
    """Vectors of some of the texts by the strong encoder; none is encoded twice."""

    def __init__(self, texts: list[str], encoder: Encoder) -> None:
        self._texts, self._encoder = texts, encoder
        self._places: dict[int, int] = {}
        self._parts: list[Vectors] = []

    @property
    def rows(self) -> NDArray[np.intp]:
        """Positions of the texts that were encoded, in ascending order."""
        return np.sort(np.array(list(self._places), dtype=np.intp))

    def extended(self, texts: list[str]) -> StrongVectors:
        """The same vectors for the texts and further ones after them."""
        found = StrongVectors(texts, self._encoder)
        found._places, found._parts = dict(self._places), self._parts
        return found

    def of(self, rows: NDArray[np.intp], progress: Progress = NO_PROGRESS) -> Vectors:
        """(n_rows, n_dims) vectors of the texts at some positions."""
        new = [row for row in rows.tolist() if row not in self._places]
        progress.advance(len(rows) - len(new))
        if new:
            read = readable_texts([self._texts[row] for row in new])
            found = encode_texts(self._encoder, read, progress)
            self._places |= {row: len(self._places) + i for i, row in enumerate(new)}
            self._parts = [np.concatenate([*self._parts, found])]
        places = [self._places[row] for row in rows.tolist()]
        return self._parts[0][places]


def text_encoder(settings: Settings) -> Encoder:
    """What encodes texts: the encoder, or its scores of the labels, behind the cache if any."""
    encoder = settings.loaded_encoder
    if not isinstance(encoder, Encoder):
        template = None if settings.template == "auto" else settings.template
        phrases = settings.label_set.phrases(template)
        # The paper's distance compares probabilities, all others log ratios.
        encoder = LabelScores(encoder, phrases, not DISTANCES[settings.distance].linear)
    if settings.cache is None:
        return encoder
    if isinstance(encoder, JoinedEncoder):
        return encoder.cached(settings.cache)
    return CachedEncoder(encoder, settings.cache)


def words_to_read(texts: Sequence[str]) -> int:
    """Words of texts, as far as a strong encoder reads them."""
    blanks = np.fromiter(map(str.count, texts, repeat(" ")), np.int64, count=len(texts))
    return int(np.minimum(blanks + 1, _WORDS_PER_TEXT).sum())


def share_to_read(settings: Settings, n_words: int, n_read: int = 0) -> float:
    """Share of the documents that the strong encoder reads, of those not read for the fit."""
    if n_words <= READ_WORDS or not settings.may_sample:
        return 1.0
    if settings.strong_share == "budget":
        return max(READ_WORDS - n_read, 0) / max(n_words - n_read, 1)
    return float(settings.strong_share)


def encode_documents(
    texts: Sequence[str],
    settings: Settings,
    progress: Progress = NO_PROGRESS,
    n_extra: int = 0,
) -> EncodedTexts:
    """Encode the texts to fit on: all by the encoder, or many by the fast one."""
    texts = texts if isinstance(texts, list) else list(texts)
    if not settings.may_sample or words_to_read(texts) <= READ_WORDS:
        progress.stage("Encoding", len(texts) + n_extra)
        encoder, words = text_encoder(settings), settings.uses_words
        return encode(texts, encoder, progress, with_words=words, n_jobs=settings.n_jobs)
    progress.stage("Encoding by the fast encoder", len(texts))
    documents = encode(texts, text_encoder(settings.fast), progress, n_jobs=settings.n_jobs)
    return replace(documents, strong=StrongVectors(texts, text_encoder(settings)))


def encode(
    texts: Sequence[str],
    encoder: Encoder,
    progress: Progress = NO_PROGRESS,
    *,
    with_words: bool = True,
    n_jobs: int | None = None,
) -> EncodedTexts:
    """Encode documents and count their words.

    Batches are shared by threads where the encoder allows it. Vectors that are large for the
    machine's memory are a memory map of a temporary file.
    """
    texts = texts if isinstance(texts, list) else list(texts)
    distinct = list(dict.fromkeys(texts))
    if len(distinct) <= _MOST_DISTINCT * len(texts):
        once = encode(distinct, encoder, progress, with_words=with_words, n_jobs=n_jobs)
        progress.advance(len(texts) - len(distinct))
        return _repeated(once, texts)
    if batch_threads(encoder, n_jobs) == 1:  # slow, or of the user: never encoded twice
        read = readable_texts(texts)
        vectors = encode_texts(encoder, read, progress)
        return EncodedTexts(texts, vectors, count_words(read) if with_words else None)
    size, counter = batch_texts(encoder), WordCounter()
    starts = range(0, len(texts), size)
    n_threads = min(batch_threads(encoder, n_jobs), len(starts))

    def encode_batch(start: int) -> tuple[int, Vectors, csr_matrix | None]:
        # Threads share the work of a batch only where there is a single one.
        read = readable_texts(texts[start : start + size])
        batch = SplitTexts(read, 1 if n_threads > 1 else None)
        return start, check_vectors(encoder, batch), counter(batch) if with_words else None

    vectors, counts = np.empty((0, 0), np.float32), list[csr_matrix]()
    with ThreadPoolExecutor(n_threads, thread_name_prefix="ulr") as pool:
        calls = (partial(encode_batch, start) for start in starts)
        for start, found, words in run_ahead(pool, calls, n_threads):
            if not start:
                vectors = _new_vectors(len(texts), found.shape[1])
            vectors[start : start + len(found)] = found
            if words is not None:
                counts.append(words)
            progress.advance(len(found))
    return EncodedTexts(texts, vectors, vstack(counts, format="csr") if counts else None)


def _repeated(once: EncodedTexts, texts: list[str]) -> EncodedTexts:
    """Texts whose distinct ones were encoded."""
    numbers = {text: number for number, text in enumerate(once.texts)}
    rows = np.fromiter((numbers[text] for text in texts), np.intp, count=len(texts))
    vectors = _new_vectors(len(texts), once.vectors.shape[1])
    np.take(once.vectors, rows, axis=0, out=vectors)
    counts = once.word_counts
    return EncodedTexts(texts, vectors, None if counts is None else counts[rows])


def _new_vectors(n_rows: int, n_dims: int) -> Vectors:
    """An array in memory or, if it is large for the machine, in a temporary file."""
    if 4 * n_rows * n_dims <= _MEMORY_SHARE * machine_memory():
        return np.empty((n_rows, n_dims), dtype=np.float32)
    with tempfile.TemporaryFile() as file:  # the map keeps its content
        if hasattr(os, "posix_fallocate"):  # writing to a map of a full disk would end the process
            os.posix_fallocate(file.fileno(), 0, 4 * n_rows * n_dims)
        return np.memmap(file, np.float32, "w+", 0, (n_rows, n_dims))


def encode_labels(settings: Settings) -> Vectors | None:
    """(n_labels, n_dims) anchors: the vector of a phrase, or the mean of several unit vectors.

    None where a label starts as its own certainty, in the paper's method for scores of pairs.
    """
    if settings.scores_pairs:
        if not DISTANCES[settings.distance].linear:
            return None
        n_labels = len(settings.labels)
        return (np.eye(n_labels) - 1 / n_labels).astype(np.float32)
    owners = {
        phrase: f"label {label.name!r}" for label in settings.label_set for phrase in label.phrases
    }
    vectors = _encode_phrases(settings, owners)
    anchors = []
    for label in settings.label_set:
        own = np.stack([vectors[phrase] for phrase in label.phrases])
        anchors.append(own[0] if len(own) == 1 else unit_rows(own).mean(axis=0))
    return np.stack(anchors).astype(np.float32)


def encode_extra_labels(settings: Settings) -> Vectors | None:
    """(n_extra, n_dims) vectors of the extra labels; None without any."""
    if not settings.extra_labels:
        return None
    owners = {name: f"extra label {name!r}" for name in settings.extra_labels}
    return np.stack(list(_encode_phrases(settings, owners).values()))


def encode_phrases(settings: Settings, phrases: Iterable[str]) -> dict[str, Vectors]:
    """Vectors of phrases, whatever their case; zero where the encoder knows no word."""
    phrases = list(phrases)
    if not phrases:
        return {}
    encoder = label_encoder(text_encoder(settings))
    found = [
        encode_texts(encoder, [in_template(each.lower(), template) for each in phrases])
        for template in settings.templates
    ]
    known = found[0].any(axis=1, keepdims=True)
    vectors = found[0] if len(found) == 1 else np.mean([unit_rows(each) for each in found], axis=0)
    return dict(zip(phrases, (vectors * known).astype(np.float32), strict=True))


def _encode_phrases(settings: Settings, owners: dict[str, str]) -> dict[str, Vectors]:
    """Vectors of phrases; `owners` says what each belongs to, for errors."""
    found = encode_phrases(settings, owners)
    for phrase, vector in found.items():
        if not vector.any():
            raise LabelError(
                f"{owners[phrase]}: the encoder knows no word of {phrase!r}; use other words."
            )
    return found


def given_vectors(name: str, given: ArrayLike, n_rows: int) -> Vectors:
    """Vectors from the user, one row per text or label."""
    try:
        vectors = np.asarray(given)
    except ValueError:
        raise ArrayError(f"{name} must be rows of equal length.") from None
    if vectors.ndim != 2 or len(vectors) != n_rows or vectors.dtype.kind not in "fiu":
        raise ArrayError(
            f"{name} must be numbers of shape ({n_rows}, n_dims); got shape {vectors.shape} of "
            f"{vectors.dtype}."
        )
    return vectors if vectors.dtype.kind == "f" else vectors.astype(np.float32)
