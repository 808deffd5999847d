"""Documents of a table: counted and sampled in a first reading, labelled in a second."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

import numpy as np

from ulr.classifier import Fitted, Predictions, empty_texts, words_to_read
from ulr.encoders import batch_threads
from ulr.errors import TableError
from ulr.jobs.sample import HashSample, Sample
from ulr.progress import NO_PROGRESS, Progress
from ulr.tables import Batch, Table
from ulr.threads import run_ahead

Labelled = tuple[Batch, list[str], Predictions]


@dataclass(frozen=True)
class Documents:
    """The texts of some columns of a table."""

    table: Table
    columns: tuple[str, ...]

    def __iter__(self) -> Iterator[tuple[Batch, list[str]]]:
        """Batches of rows and their texts; another thread reads ahead."""
        batches = ((batch, batch.texts(self.columns)) for batch in self.table.batches())
        with ThreadPoolExecutor(1, thread_name_prefix="ulr") as reader:
            following = reader.submit(next, batches, None)
            while (found := following.result()) is not None:
                following = reader.submit(next, batches, None)
                yield found


def draw_sample(
    documents: Documents, most: int | None, random_state: int, progress: Progress = NO_PROGRESS
) -> Sample:
    """Read all documents once, and keep at most so many of them; 0 only counts them.

    A row that cannot be read raises here, before anything is written.
    """
    progress.stage("Reading", documents.table.estimated_rows())
    sample, n_rows, n_empty, n_words = HashSample(most, random_state), 0, 0, 0
    for _, texts in documents:
        n_empty += int(empty_texts(texts).sum())
        n_words += words_to_read(texts)
        if most != 0:
            sample.add(range(n_rows, n_rows + len(texts)), texts)
        n_rows += len(texts)
        progress.advance(len(texts))
    if n_rows == 0:
        raise TableError(f"{documents.table.name} has no rows.")
    return sample.finish(n_rows, n_empty, n_words)


def label_rows(documents: Documents, fitted: Fitted, sample: Sample) -> Iterator[Labelled]:
    """Read all documents again, with their predictions; the fitted ones have theirs already.

    Others are predicted by threads while batches are read and used. Each thread predicts a batch of
    its own where threads can share the encoder; otherwise there is one.
    """
    n_threads = batch_threads(fitted.fast.text_encoder, fitted.settings.n_jobs)
    predict = partial(
        fitted.predict,
        n_threads=1 if n_threads > 1 else None,
        strong_share=fitted.strong_share,
    )
    known = fitted.predictions if sample.texts else None
    rows = np.arange(len(sample.texts)) if sample.rows is None else sample.rows

    def label(batch: Batch, texts: list[str], start: int) -> Labelled:
        first, last = np.searchsorted(rows, [start, start + len(texts)]).tolist()
        if known is None or first == last:
            return batch, texts, predict(texts)
        own = known.rows(slice(first, last))
        if last - first == len(texts):
            return batch, texts, own
        has = np.zeros(len(texts), dtype=bool)
        has[rows[first:last] - start] = True
        others = predict([texts[row] for row in np.flatnonzero(~has).tolist()])
        return batch, texts, own.merged(others, has)

    def calls() -> Iterator[Callable[[], Labelled]]:
        n_read = 0
        for batch, texts in documents:
            start, n_read = n_read, n_read + len(texts)
            if n_read > sample.n_rows:
                break
            yield partial(label, batch, texts, start)
        if n_read != sample.n_rows:
            raise TableError(f"{documents.table.name} changed while it was being read.")

    with ThreadPoolExecutor(n_threads, thread_name_prefix="ulr") as workers:
        yield from run_ahead(workers, calls(), n_threads)
