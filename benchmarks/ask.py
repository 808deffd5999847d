"""Accuracy after answers to `ask`, to the most uncertain documents, and to random ones.

    python -m benchmarks.ask --data DIR [--encoder static] [--encoder minilm+use-multilingual]
        [--cache VECTORS] [--draws 10] [--copies 1] [--seconds] [--write docs/ask.md]

A draw takes 2,000 documents of a dataset that can be asked for, and 1,000 others. The truth answers 10,
then 20, then 70 questions; after each round the classifier is fitted again with `correct`. Figures are
means over the draws of the accuracy on the 1,000 documents that could not be asked for, and of that on
the 2,000 with their answers. With ``--copies 5``, these are 400 documents, five times each. With
``--seconds``, the time of six corrections on 10,000 documents.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.four_datasets import data_parser
from benchmarks.measuring import markdown, publish, shown, timed
from reproduction.datasets import DATASETS
from reproduction.documents import Documents, read_documents
from reproduction.names import label_set
from ulr.classifier import (
    EncodedTexts,
    Fitted,
    Settings,
    ask,
    correct,
    encode_documents,
    fit,
    resolve,
)
from ulr.encoders import encode_texts, load_encoder
from ulr.refinement import UNKNOWN

POOL, HELD_OUT = 2_000, 1_000
ANSWERS = (10, 30, 100)
TIMED_DOCUMENTS, TIMED_CORRECTIONS, TIMES = 10_000, 6, 5
Rows = NDArray[np.intp]


def at_random(fitted: Fitted, n: int) -> Rows:
    """Unknown documents in the order of a seeded permutation."""
    draw = np.random.default_rng(len(fitted.documents.texts) + int((fitted.known >= 0).sum()))
    return draw.permutation(np.flatnonzero(fitted.known == UNKNOWN))[:n]


def most_uncertain(fitted: Fitted, n: int) -> Rows:
    """Unknown documents with the smallest lead of the best label over the next."""
    unknown = np.flatnonzero(fitted.known == UNKNOWN)
    best = np.sort(fitted.predictions.probabilities[unknown], axis=1)
    return unknown[np.argsort(best[:, -1] - best[:, -2], kind="stable")[:n]]


CHOICES: dict[str, Callable[[Fitted, int], Rows]] = {
    "random": at_random,
    "most uncertain": most_uncertain,
    "`ask`": ask,
}


def curve(
    fitted: Fitted, truth: NDArray[np.intp], choose: Callable[[Fitted, int], Rows], held_out: tuple
) -> list[tuple[float, float]]:
    """Accuracy on documents that cannot be asked for, and on those that can, by round."""
    names, n_asked, found = fitted.settings.label_set.names, 0, []
    for n_answers in (0, *ANSWERS):
        if n_answers:
            rows = choose(fitted, n_answers - n_asked).tolist()
            fitted = correct(fitted, rows, [names[truth[row]] for row in rows])
            n_asked = n_answers
        encoded, expected = held_out
        labels = fitted.predict(encoded.texts, encoded.vectors).labels
        own = fitted.predictions.labels == truth
        found.append((float((labels == expected).mean()), float(own.mean())))
    return found


def measure(
    documents: Documents, encoder: str, cache: str | None, draws: int, copies: int = 1
) -> dict[str, list]:
    """Mean accuracies of each choice by round, and their standard error."""
    rows = np.random.default_rng(0).permutation(documents.rows)[: POOL + HELD_OUT]
    texts, truth = [documents.texts[row] for row in rows.tolist()], documents.truth[rows]
    settings = Settings(label_set(documents.dataset.name), encoder=encoder, cache=cache)
    settings = resolve(settings)
    encoded = encode_documents(texts, settings)
    curves: dict[str, list] = {name: [] for name in CHOICES}
    for number in range(draws):
        order = np.random.default_rng(number).permutation(len(rows))
        pool, others = np.repeat(order[: POOL // copies], copies), order[POOL:]
        fitted = fit(encoded.rows(pool), settings)
        held_out = encoded.rows(others), truth[others]
        for name, choose in CHOICES.items():
            curves[name].append(curve(fitted, truth[pool], choose, held_out))
    return {name: np.array(each) for name, each in curves.items()}  # (draws, rounds, 2)


def table(data: Path, encoder: str, cache: str | None, draws: int, copies: int = 1) -> str:
    """One row per dataset and choice."""
    columns = [f"{n} answers" for n in (0, *ANSWERS)] + [f"own, {n}" for n in ANSWERS]
    totals: dict[str, list] = {name: [] for name in CHOICES}

    def rows() -> Iterator[list[str]]:
        for dataset in DATASETS.values():
            found = measure(read_documents(dataset.name, data), encoder, cache, draws, copies)
            for name, curves in found.items():
                totals[name].append(curves)
                yield _row(dataset.title, name, curves)
        for name, each in totals.items():
            yield _row("mean", name, np.concatenate(each))

    return markdown([f"`{encoder}`", "documents", *columns], shown(rows()))


def _row(title: str, name: str, curves: NDArray[np.float64]) -> list[str]:
    means = 100 * curves.mean(axis=0)
    return [title, name, *(f"{cell:.1f}" for cell in [*means[:, 0], *means[1:, 1]])]


def seconds_of_corrections(data: Path, n_dims: int) -> str:
    """Median time of six corrections on 10,000 documents, with vectors of so many dimensions."""
    documents = read_documents("agnews", data)
    draw = np.random.default_rng(0)
    texts = [documents.texts[i] for i in draw.integers(0, documents.rows, TIMED_DOCUMENTS).tolist()]
    settings = resolve(Settings(label_set("agnews"), encoder="static"))
    encoded = encode_documents(texts, settings)
    # The time depends on the number of dimensions, not on what they mean.
    turn = draw.normal(size=(encoded.vectors.shape[1], n_dims)) / np.sqrt(n_dims)
    vectors = (encoded.vectors @ turn).astype(np.float32)
    vectors += draw.normal(0.0, 0.1 * vectors.std(), vectors.shape).astype(np.float32)
    phrases = [label.phrases[0] for label in settings.label_set]
    labels = encode_texts(load_encoder("static"), phrases) @ turn
    encoded = EncodedTexts(texts, vectors, encoded.word_counts)
    fitted = fit(encoded, settings, label_embeddings=labels)
    names, n_done = settings.label_set.names, 0

    def correct_some() -> None:
        nonlocal fitted, n_done
        rows = list(range(n_done, n_done + TIMED_CORRECTIONS))
        n_done += TIMED_CORRECTIONS
        fitted = correct(fitted, rows, [names[row % len(names)] for row in rows])

    times = [timed(correct_some) for _ in range(TIMES)]
    wall, cpu = [each.wall for each in times], [each.cpu for each in times]
    return (
        f"{n_dims} dimensions: median {statistics.median(wall):.2f} s, best {min(wall):.2f} s, "
        f"{statistics.median(cpu):.2f} CPU seconds"
    )


def main() -> None:
    """Print the tables, and write them into a page."""
    parser = data_parser(__doc__)
    parser.add_argument("--encoder", action="append", help="static by default; may be repeated")
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--copies", type=int, default=1, help="of each document to be asked for")
    parser.add_argument("--seconds", action="store_true", help="time corrections instead")
    options = parser.parse_args()
    if options.seconds:
        for n_dims in (256, 896):
            print(seconds_of_corrections(options.data, n_dims))
        return
    tables = [
        table(options.data, encoder, options.cache, options.draws, options.copies)
        for encoder in options.encoder or ["static"]
    ]
    publish("\n\n".join(tables), options.write, "answers")


if __name__ == "__main__":
    main()
