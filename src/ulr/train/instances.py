"""Training instances from several sources, mixed by share, and their batches.

The order and every draw depend only on the random state, the source and the text, so that any step
can be repeated without those before it. Texts are kept in a temporary file; memory holds 16 bytes
per text and the names of the categories.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from ulr.errors import TrainingError
from ulr.train.categories import Categories, NegativeSampler
from ulr.train.sources import MalformedRows, PairSource, read_rows

_VALIDATION_ROUND = 2**31
_MOST_HELD_OUT = 0.1
_WINDOW = 50


@dataclass(frozen=True)
class Instance:
    """A text with categories, of which the first is true and the others are false."""

    text: str
    categories: tuple[str, ...]


@dataclass(frozen=True)
class SourceSummary:
    """Content of a source.

    Attributes
    ----------
    files
        Names of its files.
    texts, held_out
        Number of texts (or passages) to train on, and of those held out for validation.
    categories
        Number of different true categories.
    share
        Share of the instances.
    malformed, named
        Number of malformed rows, and descriptions of the first few.
    negatives
        How false categories are drawn.
    """

    files: tuple[str, ...]
    texts: int
    held_out: int
    categories: int
    share: float
    malformed: int
    named: tuple[str, ...]
    negatives: str


class Instances:
    """Instances of a training run, by their position in its order.

    Parameters
    ----------
    sources
        Sources of the texts.
    scratch
        A file to keep the texts in.
    random_state
        Seed of the order and of every draw.
    n_negatives
        False categories per text; fewer where there are not as many.
    n_held_out
        Texts held out for validation, at most a tenth.
    as_words
        Whether names of categories are split into words.

    Attributes
    ----------
    summaries
        Content of each source.
    shares
        Share of each source, with a sum of one.
    digest
        Hash of the texts and categories.
    """

    def __init__(
        self,
        sources: Sequence[PairSource],
        scratch: IO[bytes],
        *,
        random_state: int = 1,
        n_negatives: int = 7,
        n_held_out: int = 1000,
        as_words: bool = True,
    ) -> None:
        if not sources:
            raise TrainingError("at least one source of pairs is needed; got none.")
        self.categories = Categories(as_words)
        self.random_state = random_state
        self._n_negatives = n_negatives
        self._scratch = scratch
        self._permutations: dict[int, tuple[int, NDArray[np.int64]]] = {}
        self._texts = [_SourceTexts(source, self.categories, scratch) for source in sources]
        scratch.flush()
        if len(self.categories) < 2:
            raise TrainingError(
                f"training needs at least two categories; the pairs have {len(self.categories)}."
            )
        self.shares = _shares(sources, [len(each.offsets) for each in self._texts])
        for texts, share in zip(self._texts, self.shares, strict=True):
            texts.split(max(1, round(n_held_out * share)) if n_held_out else 0, random_state)
        self.digest = " ".join(each.digest for each in self._texts)
        self._all_categories = NegativeSampler(np.arange(len(self.categories)))
        self.summaries = tuple(
            texts.summary(share) for texts, share in zip(self._texts, self.shares, strict=True)
        )

    @cached_property
    def natural_length(self) -> int:
        """The largest number of instances, mixed by share, that uses no text twice."""
        pairs = zip(self._texts, self.shares, strict=True)
        return max(1, int(min(len(texts.training) / share for texts, share in pairs)))

    @property
    def n_held_out(self) -> int:
        """Number of texts held out for validation."""
        return sum(len(texts.held_out) for texts in self._texts)

    def order(self, n_instances: int) -> NDArray[np.int64]:
        """Source of each instance and its position in that source's order, (n_instances, 2)."""
        exact = np.array(self.shares) * n_instances
        counts = exact.astype(np.int64)
        for source in np.argsort(counts - exact, kind="stable")[: n_instances - counts.sum()]:
            counts[source] += 1
        sources = np.repeat(np.arange(len(counts)), counts)
        np.random.default_rng((self.random_state, 0)).shuffle(sources)
        positions = np.empty(n_instances, dtype=np.int64)
        for source, count in enumerate(counts):
            positions[sources == source] = np.arange(count)
        return np.stack([sources, positions], axis=1)

    def take(self, order: NDArray[np.int64]) -> list[Instance]:
        """The instances of some rows of `order`."""
        taken = []
        for source, position in order.tolist():
            training = self._texts[source].training
            round_, index = divmod(position, len(training))
            row = int(training[self._permutation(source, round_)[index]])
            taken.append(self._instance(source, row, round_))
        return taken

    def held_out(self) -> list[Instance]:
        """The instances held out for validation."""
        return [
            self._instance(source, row, _VALIDATION_ROUND)
            for source, texts in enumerate(self._texts)
            for row in texts.held_out.tolist()
        ]

    def _permutation(self, source: int, round_: int) -> NDArray[np.int64]:
        """Order of the texts of a source in one of its rounds; the last one is cached."""
        if self._permutations.get(source, (-1,))[0] != round_:
            rng = np.random.default_rng((self.random_state, 1, source, round_))
            self._permutations[source] = (
                round_,
                rng.permutation(len(self._texts[source].training)),
            )
        return self._permutations[source][1]

    def _instance(self, source: int, row: int, round_: int) -> Instance:
        """Draw the categories of one text."""
        texts = self._texts[source]
        rng = np.random.default_rng((self.random_state, 2, source, round_, row))
        self._scratch.seek(int(texts.offsets[row]))
        text, true, given = json.loads(self._scratch.readline())
        excluded = self.categories.with_ancestors(true)
        drawn: list[int] = []
        if texts.source.negative_sampling == "given":
            drawn = [each for each in dict.fromkeys(given) if each not in excluded]
            drawn = drawn[: self._n_negatives]
        for sampler in (texts.sampler, self._all_categories):
            wanted = self._n_negatives - len(drawn)
            if wanted:
                drawn += sampler.draw(rng, wanted, excluded | set(drawn))
        numbers = [int(rng.choice(true)), *drawn]
        return Instance(text, tuple(self.categories.words[each] for each in numbers))


@contextlib.contextmanager
def open_instances(sources: Sequence[PairSource], **options: Any) -> Iterator[Instances]:
    """`Instances` whose temporary file is deleted when the block ends."""
    with tempfile.TemporaryFile() as scratch:
        yield Instances(sources, scratch, **options)


class _SourceTexts:
    """Texts of one source: written to the scratch file, then split into training and held out."""

    def __init__(self, source: PairSource, categories: Categories, scratch: IO[bytes]) -> None:
        self.source = source
        self._malformed = MalformedRows()
        self._counts: Counter[int] = Counter()
        offsets, documents, digest = [], [], hashlib.blake2b(digest_size=16)
        for row in read_rows(source, self._malformed):
            true = list(dict.fromkeys(n for path in row.paths for n in categories.path(path)))
            self._counts.update(true)
            false = [categories.number(name) for name in row.false]
            offsets.append(scratch.tell())
            documents.append(hashlib.blake2b(row.document.encode(), digest_size=8).digest())
            line = json.dumps([row.text, true, false]).encode() + b"\n"
            digest.update(line)
            scratch.write(line)
        if not offsets:
            first = f"; the first row: {self._malformed.named[0]}" if self._malformed.named else ""
            raise TrainingError(f"{', '.join(source.paths)} has no row to train on{first}.")
        self.digest = digest.hexdigest()
        self.offsets = np.array(offsets, dtype=np.int64)
        self._documents = np.frombuffer(b"".join(documents), dtype=">u8").astype(np.uint64)
        pool = np.array(list(self._counts), dtype=np.int64)
        weights = np.array(list(self._counts.values()), dtype=np.float64)
        uniform = source.negative_sampling == "uniform"
        self.sampler = NegativeSampler(pool, None if uniform else weights)
        self.training = np.arange(len(offsets))
        self.held_out = self.training[:0]

    def split(self, n_held_out: int, random_state: int) -> None:
        """Hold out the texts of some documents, chosen by hash."""
        n_held_out = min(n_held_out, int(_MOST_HELD_OUT * len(self.offsets)))
        if not n_held_out:
            return
        salt = np.random.default_rng((random_state, 3)).integers(2**63, dtype=np.uint64)
        hashes = (self._documents ^ salt) * np.uint64(0x9E3779B97F4A7C15)
        out = hashes <= np.partition(hashes, n_held_out - 1)[n_held_out - 1]
        if not out.all():
            self.training = np.flatnonzero(~out)
            self.held_out = np.flatnonzero(out)[:n_held_out]

    def summary(self, share: float) -> SourceSummary:
        """Content of the source."""
        return SourceSummary(
            files=tuple(path.name for path in self.source.files()),
            texts=len(self.training),
            held_out=len(self.held_out),
            categories=len(self._counts),
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
    weights = stated or [float(n) for n in n_rows]
    return [weight / sum(weights) for weight in weights]


@dataclass(frozen=True)
class TrainingBatch:
    """Texts of one step with their categories.

    Attributes
    ----------
    texts
        The texts.
    categories
        The different categories of the batch.
    indices
        (n_texts, n_categories_per_text) indices into `categories`, the true one first.
    mask
        (n_texts, n_categories_per_text) False for padding.
    """

    texts: list[str]
    categories: list[str]
    indices: NDArray[np.int64]
    mask: NDArray[np.bool_]

    @classmethod
    def of(cls, instances: Sequence[Instance]) -> TrainingBatch:
        """Collate instances."""
        width = max(2, *(len(each.categories) for each in instances))
        numbers: dict[str, int] = {}
        indices = np.zeros((len(instances), width), dtype=np.int64)
        mask = np.zeros((len(instances), width), dtype=bool)
        for row, each in enumerate(instances):
            found = [numbers.setdefault(category, len(numbers)) for category in each.categories]
            indices[row, : len(found)] = found
            mask[row, : len(found)] = True
        return cls([each.text for each in instances], list(numbers), indices, mask)


class Batches:
    """Batches of a run, by step.

    The instances of `window` batches at a time are sorted by length and cut into batches, whose
    order is then shuffled, so that batches need little padding.
    """

    def __init__(
        self, instances: Instances, n_instances: int, size: int = 32, window: int = _WINDOW
    ) -> None:
        self._instances = instances
        self._order = instances.order(n_instances)
        self._size, self._window = size, window

    def __len__(self) -> int:
        return -(-len(self._order) // self._size)

    def __iter__(self) -> Iterator[list[Instance]]:
        return self.from_step(0)

    def from_step(self, step: int) -> Iterator[list[Instance]]:
        """The batches from a step on."""
        first, skipped = divmod(step, self._window)
        for number in range(first, -(-len(self) // self._window)):
            batches = self.sorted_window(number)
            rng = np.random.default_rng((self._instances.random_state, 4, number))
            for index in rng.permutation(len(batches))[skipped:]:
                yield batches[index]
            skipped = 0

    def sorted_window(self, number: int) -> list[list[Instance]]:
        """The batches of a window, from short to long texts."""
        span = self._window * self._size
        taken = self._instances.take(self._order[number * span : (number + 1) * span])
        taken.sort(key=lambda each: len(each.text))
        return [taken[start : start + self._size] for start in range(0, len(taken), self._size)]
