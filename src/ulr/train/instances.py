"""Instances out of many sources: mixed by shares, in an order that a seed decides, on disk.

Texts are kept in a scratch file and read when they are needed; in memory are eight bytes for the
place of each text, eight for its document, and the names of the categories.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import IO

import numpy as np
from numpy.typing import NDArray

from ulr.errors import TrainingError
from ulr.files import scratch_file
from ulr.train.categories import Categories, Negatives
from ulr.train.sources import Malformed, Source, read_rows

_VALIDATION_ROUND = 2**31
_MOST_HELD_OUT = 0.1


@dataclass(frozen=True)
class Instance:
    """A text with its categories, of which the first is true and the others are false."""

    text: str
    categories: tuple[str, ...]


@dataclass(frozen=True)
class SourceFigures:
    """What was found in a source.

    Attributes
    ----------
    files
        Names of its files.
    texts, held_out
        Texts to train on (passages where texts are split), and those kept for validation.
    categories
        Different true ones.
    share
        Share of the instances.
    malformed, named
        Rows that could not be used, and the first few of them.
    negatives
        Where its false categories come from.
    """

    files: tuple[str, ...]
    texts: int
    held_out: int
    categories: int
    share: float
    malformed: int
    named: tuple[str, ...]
    negatives: str


@dataclass(frozen=True)
class _Kept:
    """The texts of a source: where they are in the scratch file, and what can be drawn there."""

    source: Source
    malformed: Malformed
    offsets: NDArray[np.int64]
    training: NDArray[np.int64]
    held_out: NDArray[np.int64]
    true: NDArray[np.int64]
    negatives: Negatives


class Instances:
    """Instances by their place in the order of a run.

    Parameters
    ----------
    sources
        Where texts come from.
    scratch
        A file to keep them in.
    seed
        Decides the order and every draw.
    n_negatives
        False categories a text; fewer where there are not as many.
    n_held_out
        Texts kept for validation, at most a tenth.
    as_words
        Whether the names of categories go through `category_words`.

    Attributes
    ----------
    figures
        What was found in each source.
    shares
        Of each source, adding up to one.
    digest
        Tells these texts and categories from others.
    """

    def __init__(
        self,
        sources: Sequence[Source],
        scratch: IO[bytes],
        *,
        seed: int = 1,
        n_negatives: int = 7,
        n_held_out: int = 1000,
        as_words: bool = True,
    ) -> None:
        if not sources:
            raise TrainingError("there are no pairs to train on; give at least one source.")
        if n_negatives < 1:
            raise TrainingError(f"n_negatives must be at least 1; got {n_negatives}.")
        self.categories = Categories(as_words)
        self.seed = seed
        self._n_negatives = n_negatives
        self._scratch = scratch
        self._permutations: dict[int, tuple[int, NDArray[np.int64]]] = {}
        read = [_Reading(source, self.categories, scratch) for source in sources]
        self.shares = _shares([each.source for each in read], [len(each.offsets) for each in read])
        self.digest = " ".join(each.digest for each in read)
        self._kept = [
            each.kept(_at_least_one(n_held_out * share) if n_held_out else 0, seed)
            for each, share in zip(read, self.shares, strict=True)
        ]
        self._everywhere = Negatives(np.arange(len(self.categories)))
        if len(self.categories) < 2:
            raise TrainingError(
                f"training needs at least two categories; the pairs have {len(self.categories)}."
            )
        scratch.flush()
        self.figures = tuple(map(self._figures, self._kept, self.shares))

    @cached_property
    def natural_length(self) -> int:
        """Most instances, mixed by the shares, that use no text twice."""
        each = zip(self._kept, self.shares, strict=True)
        return max(1, int(min(len(kept.training) / share for kept, share in each)))

    @cached_property
    def n_held_out(self) -> int:
        """Texts kept for validation."""
        return sum(len(kept.held_out) for kept in self._kept)

    def order(self, n_instances: int) -> NDArray[np.int64]:
        """The source and the turn of each instance of a run, (n_instances, 2), by the shares."""
        exact = np.array(self.shares) * n_instances
        counts = exact.astype(np.int64)
        for place in np.argsort(counts - exact, kind="stable")[: n_instances - counts.sum()]:
            counts[place] += 1
        of_source = np.repeat(np.arange(len(counts)), counts)
        np.random.default_rng((self.seed, 0)).shuffle(of_source)
        turn = np.empty(n_instances, dtype=np.int64)
        for number in range(len(counts)):
            turn[of_source == number] = np.arange(counts[number])
        return np.stack([of_source, turn], axis=1)

    def take(self, order: NDArray[np.int64]) -> list[Instance]:
        """The instances of some rows of `order`."""
        taken = []
        for number, turn in order.tolist():
            training = self._kept[number].training
            round_, place = divmod(turn, len(training))
            row = int(training[self._permutation(number, round_)[place]])
            taken.append(self._instance(number, row, round_))
        return taken

    def held_out(self) -> list[Instance]:
        """The instances kept for validation, always the same."""
        return [
            self._instance(number, row, _VALIDATION_ROUND)
            for number, kept in enumerate(self._kept)
            for row in kept.held_out.tolist()
        ]

    def _permutation(self, number: int, round_: int) -> NDArray[np.int64]:
        """The order of a source's texts in one of its rounds; the last one asked for is kept."""
        if self._permutations.get(number, (-1,))[0] != round_:
            n_texts = len(self._kept[number].training)
            drawn = np.random.default_rng((self.seed, 1, number, round_)).permutation(n_texts)
            self._permutations[number] = (round_, drawn)
        return self._permutations[number][1]

    def _instance(self, number: int, row: int, round_: int) -> Instance:
        """The draw of one text: which of its categories, and beside which false ones."""
        kept = self._kept[number]
        rng = np.random.default_rng((self.seed, 2, number, round_, row))
        self._scratch.seek(int(kept.offsets[row]))
        text, true, given = json.loads(self._scratch.readline())
        never = self.categories.with_ancestors(true)
        drawn = [each for each in dict.fromkeys(given) if each not in never]
        drawn = drawn[: self._n_negatives] if kept.source.draws == "given" else []
        for pool in (kept.negatives, self._everywhere):
            wanted = self._n_negatives - len(drawn)
            if wanted:
                drawn += pool.draw(rng, wanted, never | set(drawn))
        numbers = [int(rng.choice(true)), *drawn]
        return Instance(text, tuple(self.categories.words[each] for each in numbers))

    def _figures(self, kept: _Kept, share: float) -> SourceFigures:
        return SourceFigures(
            files=tuple(path.name for path in kept.source.files()),
            texts=len(kept.training),
            held_out=len(kept.held_out),
            categories=len(kept.true),
            share=share,
            malformed=kept.malformed.count,
            named=tuple(kept.malformed.named),
            negatives=kept.source.draws,
        )


@contextlib.contextmanager
def open_instances(
    sources: Sequence[Source],
    *,
    seed: int = 1,
    n_negatives: int = 7,
    n_held_out: int = 1000,
    as_words: bool = True,
) -> Iterator[Instances]:
    """`Instances` of some sources, whose scratch file goes when the block ends."""
    with scratch_file() as (scratch, _):
        yield Instances(
            sources,
            scratch,
            seed=seed,
            n_negatives=n_negatives,
            n_held_out=n_held_out,
            as_words=as_words,
        )


class _Reading:
    """One pass over a source: its texts go to the scratch file, their places stay here."""

    def __init__(self, source: Source, categories: Categories, scratch: IO[bytes]) -> None:
        self.source = source
        self._malformed = Malformed()
        self._counts: dict[int, int] = {}
        places, documents, digest = [], [], hashlib.blake2b(digest_size=16)
        for row in read_rows(source, self._malformed):
            true = list(dict.fromkeys(n for path in row.paths for n in categories.path(path)))
            for number in true:
                self._counts[number] = self._counts.get(number, 0) + 1
            false = [categories.number(name) for name in row.false]
            places.append(scratch.tell())
            documents.append(_hash(row.document))
            line = json.dumps([row.text, true, false]).encode() + b"\n"
            digest.update(line)
            scratch.write(line)
        if not places:
            first = f"; the first row: {self._malformed.named[0]}" if self._malformed.named else ""
            raise TrainingError(f"{', '.join(source.paths)} has no row to train on{first}.")
        self.digest = digest.hexdigest()
        self.offsets = np.array(places, dtype=np.int64)
        self._documents = np.array(documents, dtype=np.uint64)

    def kept(self, n_held_out: int, seed: int) -> _Kept:
        """The texts, those of some documents held out, whichever the seed decides."""
        n_held_out = min(n_held_out, int(_MOST_HELD_OUT * len(self.offsets)))
        salt = np.random.default_rng((seed, 3)).integers(2**63, dtype=np.uint64)
        drawn = (self._documents ^ salt) * np.uint64(0x9E3779B97F4A7C15)
        out = np.zeros(len(drawn), dtype=bool)
        if n_held_out:
            out = drawn <= np.partition(drawn, n_held_out - 1)[n_held_out - 1]
        if out.all():
            out[:] = False
        pool = np.array(list(self._counts), dtype=np.int64)
        weights = np.array(list(self._counts.values()), dtype=np.float64)
        alike = self.source.draws == "uniform"
        return _Kept(
            self.source,
            self._malformed,
            self.offsets,
            np.flatnonzero(~out),
            np.flatnonzero(out)[: max(1, n_held_out)],
            pool,
            Negatives(pool, None if alike else weights),
        )


def _hash(document: str) -> int:
    return int.from_bytes(hashlib.blake2b(document.encode(), digest_size=8).digest())


def _at_least_one(number: float) -> int:
    return max(1, round(number))


def _shares(sources: Sequence[Source], n_rows: Sequence[int]) -> list[float]:
    """The shares of the sources: those stated, all or none, or else by their rows."""
    stated = [source.share for source in sources if source.share is not None]
    if stated and len(stated) != len(sources):
        raise TrainingError(
            f"either every source has a share or none has; got {len(stated)} shares for "
            f"{len(sources)} sources."
        )
    weights = stated or [float(n) for n in n_rows]
    return [weight / sum(weights) for weight in weights]
