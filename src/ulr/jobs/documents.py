"""Documents of a table: validated, counted and sampled in one reading, labelled in a second."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from functools import partial
from hashlib import blake2b
from itertools import chain, repeat
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ulr.encoders.batching import batch_threads
from ulr.errors import TableError
from ulr.jobs.progress import Listener
from ulr.jobs.reports import LabelCounts, ShownDocument
from ulr.model import Model, Predictions
from ulr.refinement.blocks import run_ahead
from ulr.tables import Batch, Table
from ulr.texts import empty_texts

_SHOWN = 5
_EXCERPT = 160
LARGEST_HASH = (1 << 64) - 1
_SHARE_OF_TEXT = 100  # one text is at most a hundredth of a sample

Item = TypeVar("Item")


@dataclass(frozen=True, eq=False)
class Sample:
    """Documents of a table after the first reading.

    Attributes
    ----------
    n_rows, n_empty
        Documents in all, and those without words.
    texts
        All documents, or a sample of them in their order.
    rows
        (n_texts,) their positions; None for all documents.
    """

    n_rows: int
    n_empty: int
    texts: list[str]
    rows: NDArray[np.intp] | None


def read_documents(
    table: Table, columns: Sequence[str], listener: Listener, most: int | None, random_state: int
) -> tuple[Table, Sample]:
    """Read all documents once, and keep at most so many of them.

    The sample has the documents with the smallest seeded hashes of their text, so that it does not
    depend on their order or on the files they are in.

    Parameters
    ----------
    table, columns
        The table, and the columns that make up a document.
    listener
        Hears the progress.
    most
        Most documents to keep; None for all, 0 to count them only.
    random_state
        Seed of the hashes.

    Returns
    -------
    table, sample
        The table with the keys of all records, if it is of JSON files, and the documents.
    """
    listener.stage("Reading", table.estimated_rows())
    sample = HashSample(most, random_state)
    n_rows = n_empty = 0
    keys: dict[str, None] = {}
    for batch, texts in read_ahead(_with_texts(table, columns)):
        keys.update(dict.fromkeys(chain.from_iterable(batch.records or ())))
        n_empty += int(empty_texts(texts).sum())
        if most != 0:
            sample.add(range(n_rows, n_rows + len(texts)), texts)
        n_rows += len(texts)
        listener.advance(len(texts))
    if n_rows == 0:
        raise TableError(f"{table.name} has no rows.")
    return table.with_keys(keys), sample.finish(n_rows, n_empty)


def _with_texts(table: Table, columns: Sequence[str]) -> Iterator[tuple[Batch, list[str]]]:
    for batch in table.batches():
        yield batch, table.texts(batch, columns)


def read_ahead(items: Iterator[Item]) -> Iterator[Item]:
    """Items of an iterator; another thread makes the next one while one is used."""
    with ThreadPoolExecutor(1, thread_name_prefix="ulr") as reader:
        for item in run_ahead(reader, repeat(partial(next, items, None)), 1):
            if item is None:
                return
            yield item


class HashSample:
    """The texts with the smallest hashes: a sample that depends on the texts alone.

    Equal texts have the same hash, so that all copies of a text would be drawn or none. One text is
    therefore at most a hundredth of the sample; otherwise a frequent one whose hash is small would
    be all of it. Copies could be drawn one by one only by their order or their number in all files,
    but the sample must not depend on the first, and the second is not known while they are read.

    Parameters
    ----------
    most
        Most texts to keep; None for all.
    random_state
        Seed of the hashes.
    limit
        Texts with a larger hash are not kept.

    Attributes
    ----------
    limit
        No text with a larger hash is kept from now on.
    """

    def __init__(self, most: int | None, random_state: int, limit: int = LARGEST_HASH) -> None:
        self._most, self._key = most, str(random_state).encode()
        self._texts: list[str] = []
        self._rows: list[int] = []
        self._hashes: list[int] = []
        self.limit = limit

    def add(self, rows: Sequence[int], texts: list[str]) -> None:
        """Add documents and their positions, in order."""
        whole = self.limit == LARGEST_HASH and not self._hashes
        if self._most is None or (whole and len(self._texts) + len(texts) <= self._most):
            self._texts += texts
            self._rows += rows
            return
        self._hash()
        hashes = text_hashes(texts, self._key)
        kept = np.flatnonzero(hashes <= self.limit)
        self._texts += [texts[place] for place in kept.tolist()]
        self._rows += [rows[place] for place in kept.tolist()]
        self._hashes += hashes[kept].tolist()
        if len(self._texts) > 2 * self._most:
            self._prune()

    def _hash(self) -> None:
        if not self._hashes:
            self._hashes = text_hashes(self._texts, self._key).tolist()

    def _prune(self) -> None:
        """Keep the texts that are in the sample so far."""
        if self._most is None:
            return
        hashes = np.array(self._hashes, dtype=np.uint64)
        order = np.argsort(hashes, kind="stable")
        first = np.searchsorted(hashes[order], hashes[order])
        few = order[np.arange(len(order)) - first < max(1, self._most // _SHARE_OF_TEXT)]
        if len(few) >= self._most:
            few = few[: self._most]
            self.limit = int(hashes[few].max(initial=0))
        kept = np.sort(few).tolist()
        self._texts = [self._texts[i] for i in kept]
        self._rows = [self._rows[i] for i in kept]
        self._hashes = [self._hashes[i] for i in kept]

    def finish(self, n_rows: int, n_empty: int) -> Sample:
        """The sample of so many documents, of which some are empty."""
        if self._most is not None and n_rows > self._most:
            self._hash()
            self._prune()
        rows = None if len(self._rows) == n_rows else np.array(self._rows, dtype=np.intp)
        return Sample(n_rows, n_empty, self._texts, rows)


def text_hashes(texts: Iterable[str], key: bytes) -> NDArray[np.uint64]:
    """(n_texts,) a seeded hash of each text."""
    seeded, digests = blake2b(digest_size=8, key=key), []
    for text in texts:
        text_hash = seeded.copy()  # takes half as long as another one with the key
        text_hash.update(text.encode("utf-8", "surrogatepass"))
        digests.append(text_hash.digest())
    return np.frombuffer(b"".join(digests), ">u8").astype(np.uint64)


class LabelledRows:
    """The rows of a table with predictions, in order.

    Parameters
    ----------
    table, columns
        The table, and the columns that make up a document.
    model
        Predicts the documents that have no prediction yet.
    n_rows
        Rows of the table when it was first read.
    predictions
        Of all rows, or of some; None to predict them all while the table is read.
    rows
        (n_predictions,) ascending positions of the rows that have a prediction; None for all.
    """

    def __init__(
        self,
        table: Table,
        columns: Sequence[str],
        model: Model,
        n_rows: int,
        predictions: Predictions | None = None,
        rows: NDArray[np.intp] | None = None,
    ) -> None:
        self._table, self._columns, self._model = table, columns, model
        self.n_rows, self._predictions = n_rows, predictions
        self._rows = np.arange(n_rows if predictions is not None else 0) if rows is None else rows
        self._row = 0

    def of(self, batches: Iterable[Batch]) -> Iterator[tuple[Batch, list[str], Predictions]]:
        """The next batches of the table, their documents and predictions.

        Documents are predicted by other threads, while batches are read and used. Each predicts a
        batch of its own where threads can share the encoder; otherwise there is one.
        """
        n_threads = batch_threads(self._model.text_encoder, self._model.n_jobs)
        predict = self._model.predict
        if n_threads > 1:
            predict = partial(predict, n_threads=1)
        with ThreadPoolExecutor(n_threads, thread_name_prefix="ulr") as workers:
            yield from run_ahead(workers, self._calls(batches, predict), n_threads)

    def _calls(
        self, batches: Iterable[Batch], predict: Callable[[list[str]], Predictions]
    ) -> Iterator[Callable[[], tuple[Batch, list[str], Predictions]]]:
        for batch in batches:
            texts = self._table.texts(batch, self._columns)
            start, self._row = self._row, self._row + len(texts)
            if self._row > self.n_rows:
                self.finish()
            yield partial(self._labelled, batch, texts, start, predict)

    def _labelled(
        self,
        batch: Batch,
        texts: list[str],
        start: int,
        predict: Callable[[list[str]], Predictions],
    ) -> tuple[Batch, list[str], Predictions]:
        """A batch that begins at a row, with its documents and predictions."""
        first, last = np.searchsorted(self._rows, [start, start + len(texts)])
        if self._predictions is None or first == last:
            return batch, texts, predict(texts)
        known = self._predictions.rows(slice(int(first), int(last)))
        if last - first == len(texts):
            return batch, texts, known
        has = np.zeros(len(texts), dtype=bool)
        has[self._rows[first:last] - start] = True
        others = predict([texts[row] for row in np.flatnonzero(~has).tolist()])
        return batch, texts, known.merged(others, has)

    def finish(self) -> None:
        """Refuse a table that has more or fewer rows than when it was first read."""
        if self._row != self.n_rows:
            raise TableError(f"{self._table.name} changed while it was being read.")


class Tally:
    """Counts of labels, and some documents worth a look, over all rows of a table.

    Attributes
    ----------
    moved
        Documents whose label differs from the one before refinement.
    unlabelled
        Documents without words, or without a word that the encoder knows.
    """

    def __init__(self, model: Model, refined: bool) -> None:
        self._names, self._n_labels, self._refined = model.names, model.n_labels, refined
        self._before = np.zeros(len(self._names), dtype=np.intp)
        self._after = np.zeros(len(self._names), dtype=np.intp)
        self.moved = self.unlabelled = 0
        self._certain: list[ShownDocument] = []
        self._doubtful: list[ShownDocument] = []
        self._row = 0

    def add(self, texts: list[str], predictions: Predictions) -> None:
        """Add the next documents of the table."""
        labels, unrefined = predictions.labels, predictions.unrefined
        confidence, first_row = predictions.confidence, self._row
        self._row += len(texts)
        self._after += np.bincount(labels + 1, minlength=len(self._names))
        self._before += np.bincount(unrefined + 1, minlength=len(self._names))
        self.unlabelled += int(predictions.empty.sum())
        labelled = np.flatnonzero((labels >= 0) & (labels < self._n_labels))
        doubtful = labelled[np.argsort(confidence[labelled], kind="stable")[:_SHOWN]]
        moved = labelled[labels[labelled] != unrefined[labelled]]
        self.moved += len(moved)
        certain = moved[np.argsort(-confidence[moved], kind="stable")[:_SHOWN]]

        def show(row: int) -> ShownDocument:
            before = str(self._names[unrefined[row]]) if self._refined else None
            name, text = str(self._names[labels[row]]), excerpt(texts[row])
            return ShownDocument(first_row + row + 1, text, name, before, float(confidence[row]))

        self._show(map(show, doubtful.tolist()), map(show, certain.tolist()))

    def _show(self, doubtful: Iterable[ShownDocument], certain: Iterable[ShownDocument]) -> None:
        """Keep the best of the documents so far and further ones."""
        self._doubtful += doubtful
        self._doubtful.sort(key=lambda each: (each.confidence, each.row))
        self._certain += certain
        self._certain.sort(key=lambda each: (-each.confidence, each.row))
        del self._doubtful[_SHOWN:], self._certain[_SHOWN:]

    def as_dict(self) -> dict[str, Any]:
        """The counts and documents as plain values."""
        return {
            "documents": self._row,
            "before": self._before.tolist(),
            "after": self._after.tolist(),
            "moved": self.moved,
            "unlabelled": self.unlabelled,
            "doubtful": [asdict(each) for each in self._doubtful],
            "certain": [asdict(each) for each in self._certain],
        }

    def add_counts(self, counts: dict[str, Any]) -> None:
        """Add the next documents of the table, given what `as_dict` of their tally returned."""
        shown = (
            [replace(document, row=self._row + document.row) for document in documents]
            for documents in (
                [ShownDocument(**each) for each in counts[name]] for name in ("doubtful", "certain")
            )
        )
        self._show(*shown)
        self._before += np.array(counts["before"], dtype=np.intp)
        self._after += np.array(counts["after"], dtype=np.intp)
        self.moved += counts["moved"]
        self.unlabelled += counts["unlabelled"]
        self._row += counts["documents"]

    @property
    def least_certain(self) -> tuple[ShownDocument, ...]:
        """Documents with the lowest confidence."""
        return tuple(self._doubtful)

    @property
    def surest_moves(self) -> tuple[ShownDocument, ...]:
        """Documents whose label refinement changed, those with the highest confidence."""
        return tuple(self._certain) if self._refined else ()

    def counts(self) -> tuple[LabelCounts, ...]:
        """Documents of each label, without the none label."""
        before = self._before[1 : self._n_labels + 1].tolist()
        after = self._after[1 : self._n_labels + 1].tolist()
        return tuple(
            LabelCounts(str(name), b if self._refined else None, a)
            for name, b, a in zip(self._names, before, after, strict=False)
        )

    @property
    def without_label(self) -> int | None:
        """Documents with the none label; None where there is none."""
        if len(self._names) == self._n_labels + 1:
            return None
        return int(self._after[self._n_labels + 1])


def excerpt(text: str) -> str:
    """The beginning of a text, on one line."""
    text = " ".join(text[: 4 * _EXCERPT].split())
    return text if len(text) <= _EXCERPT else text[: _EXCERPT - 1].rstrip() + "…"
