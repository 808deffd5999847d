"""Training instances: texts of several sources, mixed by share, with their negatives.

Every draw depends only on the random state, the source and the text. Texts are kept in a temporary
file; memory holds 16 bytes per text and the names of the categories.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import PurePath
from typing import IO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ulr.errors import TrainingError
from ulr.train.pairs import MalformedRows, PairSource, read_rows
from ulr.train.settings import SourceSummary, TrainingSettings

_VALIDATION_ROUND = 2**31
_MOST_HELD_OUT = 0.1
_WINDOW = 50
_SEPARATORS = re.compile(r"[_./\s]+")
# Words run together: MensRights, TwoXChromosomes; not iPhone, and not WTF.
_CAMEL_CASE = re.compile(r"(?<=[a-z]{2})(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z]{2})")


class Instance(NamedTuple):
    """A text with categories, of which the first is true and the others are false."""

    text: str
    categories: list[str]


class Instances:
    """Instances of a training run.

    `natural_length` is the largest number of instances, mixed by share, that uses no text twice;
    `digest` is a hash of the texts and categories.
    """

    def __init__(
        self, sources: Sequence[PairSource], scratch: IO[bytes], settings: TrainingSettings
    ) -> None:
        if not sources:
            raise TrainingError("at least one source of pairs is needed; got none.")
        self._settings, self._seed, self._scratch = settings, settings.random_state, scratch
        self._categories = _Categories(settings.as_words)
        self._texts = [_SourceTexts(source, self._categories, scratch) for source in sources]
        self.n_categories = len(self._categories.words)
        if self.n_categories < 2:
            raise TrainingError(
                f"training needs at least two categories; the pairs have {self.n_categories}."
            )
        self._any_category = _NegativeSampler(
            np.arange(self.n_categories), np.ones(self.n_categories)
        )
        self._shares = _shares(sources, [len(each.offsets) for each in self._texts])
        pairs = list(zip(self._texts, self._shares, strict=True))
        for texts, share in pairs:
            texts.split(
                settings.n_held_out and max(1, round(settings.n_held_out * share)), settings
            )
        self.digest = " ".join(each.digest for each in self._texts)
        self.summaries = tuple(texts.summary(share) for texts, share in pairs)
        self.natural_length = max(1, int(min(len(t.training) / share for t, share in pairs)))

    def held_out(self) -> list[Instance]:
        """The instances held out for validation."""
        return [
            self._instance(source, row, _VALIDATION_ROUND)
            for source, texts in enumerate(self._texts)
            for row in texts.held_out.tolist()
        ]

    def in_training_order(self, n_instances: int) -> Iterator[list[Instance]]:
        """The instances of a run, fifty batches at a time.

        Texts of similar lengths share a batch, which needs little padding; the order of complete
        batches is random.
        """
        order, size, number = self._order(n_instances), self._settings.batch_size, 0
        while rows := list(islice(order, _WINDOW * size)):
            window = sorted((self._instance(*row) for row in rows), key=lambda one: len(one.text))
            starts = np.arange(0, len(window), size)
            np.random.default_rng((self._seed, 4, number)).shuffle(starts[: len(window) // size])
            yield [each for start in starts for each in window[start : start + size]]
            number += 1

    def _order(self, n_instances: int) -> Iterator[tuple[int, int, int]]:
        """Source, row and round of each instance, before batches are made."""
        exact = np.array(self._shares) * n_instances
        counts = exact.astype(np.int64)
        counts[np.argsort(counts - exact, kind="stable")[: n_instances - counts.sum()]] += 1
        sources = np.repeat(np.arange(len(counts)), counts)
        np.random.default_rng((self._seed, 0)).shuffle(sources)
        rows = [self._rows(source, count) for source, count in enumerate(counts.tolist())]
        for source in map(int, sources):
            yield source, *next(rows[source])

    def _rows(self, source: int, count: int) -> Iterator[tuple[int, int]]:
        """Rows of a source and their round: all rows in random order, then all again."""
        training = self._texts[source].training
        for round_ in range(-(-count // len(training))):
            rng = np.random.default_rng((self._seed, 1, source, round_))
            for row in training[rng.permutation(len(training))].tolist():
                yield row, round_

    def _instance(self, source: int, row: int, round_: int) -> Instance:
        """Draw the categories of one text."""
        texts = self._texts[source]
        rng = np.random.default_rng((self._seed, 2, source, round_, row))
        self._scratch.seek(int(texts.offsets[row]))
        text, true, given = json.loads(self._scratch.readline())
        excluded, n_negatives = self._categories.with_ancestors(true), self._settings.n_negatives
        drawn: list[int] = []
        if texts.source.negative_sampling == "given":
            drawn = [each for each in dict.fromkeys(given) if each not in excluded][:n_negatives]
        for sampler in (texts.sampler, self._any_category):
            if wanted := n_negatives - len(drawn):
                drawn += sampler.draw(rng, wanted, excluded | set(drawn))
        numbers = [int(rng.choice(true)), *drawn]
        return Instance(text, [self._categories.words[each] for each in numbers])


class _SourceTexts:
    """Texts of one source: written to the scratch file, then split into training and held out."""

    def __init__(self, source: PairSource, categories: _Categories, scratch: IO[bytes]) -> None:
        self.source = source
        self._malformed = MalformedRows()
        counts: Counter[int] = Counter()
        offsets, documents, digest = [], [], hashlib.blake2b(digest_size=16)
        for row in read_rows(source, self._malformed):
            true = list(dict.fromkeys(n for path in row.paths for n in categories.path(path)))
            counts.update(true)
            false = [categories.number(name) for name in row.false]
            offsets.append(scratch.tell())
            documents.append(hashlib.blake2b(row.document.encode(), digest_size=8).digest())
            line = json.dumps([row.text, true, false]).encode() + b"\n"
            digest.update(line)
            scratch.write(line)
        self.digest, self._n_categories = digest.hexdigest(), len(counts)
        self.offsets = np.array(offsets, dtype=np.int64)
        self._documents = np.frombuffer(b"".join(documents), dtype=">u8").astype(np.uint64)
        weights = np.array(list(counts.values()), dtype=np.float64)
        if source.negative_sampling == "uniform":
            weights = np.ones(len(weights))
        self.sampler = _NegativeSampler(np.array(list(counts), dtype=np.int64), weights)
        self.training = np.arange(len(offsets))
        self.held_out: NDArray[np.int64] = self.training[:0]

    def split(self, n_held_out: int, settings: TrainingSettings) -> None:
        """Hold out the texts of some documents, chosen by hash."""
        n_held_out = min(n_held_out, int(_MOST_HELD_OUT * len(self.offsets)))
        if not n_held_out:
            return
        rng = np.random.default_rng((settings.random_state, 3))
        salted = self._documents ^ rng.integers(2**63, dtype=np.uint64)
        hashes = salted * np.uint64(0x9E3779B97F4A7C15)
        out = hashes <= np.partition(hashes, n_held_out - 1)[n_held_out - 1]
        if not out.all():
            self.training = np.flatnonzero(~out)
            self.held_out = np.flatnonzero(out)[:n_held_out]

    def summary(self, share: float) -> SourceSummary:
        return SourceSummary(
            files=tuple(PurePath(file).name for file in self.source.files()) or ("examples",),
            texts=len(self.training),
            held_out=len(self.held_out),
            categories=self._n_categories,
            share=share,
            malformed=self._malformed.count,
            named=tuple(self._malformed.named),
            negatives=self.source.negative_sampling,
        )


def _shares(sources: Sequence[PairSource], n_rows: Sequence[int]) -> list[float]:
    """Shares of the sources: the stated ones, or in proportion to the rows."""
    stated = [source.share for source in sources if source.share is not None]
    if stated and len(stated) != len(sources):
        raise TrainingError(
            f"either every source has a share or none has; got {len(stated)} shares for "
            f"{len(sources)} sources."
        )
    weights = stated or n_rows
    return [weight / sum(weights) for weight in weights]


class _Categories:
    """Categories, numbered in order of appearance; names that differ only in case are one."""

    def __init__(self, as_words: bool) -> None:
        self.words: list[str] = []
        self._as_words = as_words
        self._numbers: dict[str, int] = {}
        self._ancestors: dict[int, set[int]] = {}

    def number(self, name: str) -> int:
        """The number of a category; a new one is added."""
        words = _SEPARATORS.sub(" ", name).strip() if self._as_words else " ".join(name.split())
        if self._as_words and " " not in name.strip():
            words = _CAMEL_CASE.sub(" ", words)
        number = self._numbers.setdefault(words.casefold(), len(self.words))
        if number == len(self.words):
            self.words.append(words)
        return number

    def path(self, names: Iterable[str]) -> list[int]:
        """The numbers of a path from the root down; its ancestors are remembered."""
        numbers = [self.number(name) for name in names]
        for depth, number in enumerate(numbers[1:], 1):
            self._ancestors.setdefault(number, set()).update(numbers[:depth])
        return numbers

    def with_ancestors(self, numbers: Iterable[int]) -> set[int]:
        """Some categories and all of their ancestors, from any row."""
        found: set[int] = set()
        waiting = list(numbers)
        while waiting:
            number = waiting.pop()
            if number not in found:
                found.add(number)
                waiting.extend(self._ancestors.get(number, ()))
        return found


class _NegativeSampler:
    """Draws categories that a text does not have, out of a pool with relative frequencies."""

    def __init__(self, pool: NDArray[np.int64], weights: NDArray[np.float64]) -> None:
        self._pool, self._weights = pool, weights
        self._cumulative = np.cumsum(weights)

    def draw(self, rng: np.random.Generator, wanted: int, excluded: set[int]) -> list[int]:
        """Draw `wanted` different categories, or as many as there are, none of them excluded."""
        drawn: dict[int, None] = {}
        if len(self._pool) > 4 * (wanted + len(excluded)):
            # A few rejected draws are cheaper than a pass over the whole pool.
            draws = rng.random(8 * wanted) * self._cumulative[-1]
            for index in np.searchsorted(self._cumulative, draws, side="right"):
                number = int(self._pool[index])
                if number not in excluded and len(drawn) < wanted:
                    drawn[number] = None
        if len(drawn) < wanted:
            free = ~np.isin(self._pool, [*excluded, *drawn])
            if more := min(wanted - len(drawn), int(free.sum())):
                p = self._weights[free] / self._weights[free].sum()
                rest = rng.choice(self._pool[free], more, replace=False, p=p)
                drawn.update(dict.fromkeys(rest.tolist()))
        return list(drawn)
