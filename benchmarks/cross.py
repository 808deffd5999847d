"""Algorithm 2 with a pair scorer on samples of the paper's four datasets, as a Markdown table.

    python -m benchmarks.cross --data DIR --encoder cross:FOLDER [--sample 1000]
        [--scores FOLDER] [--write docs/results.md]

Every document of a seeded sample is scored with every phrase of the paper once; each set of label
names is then a softmax over its own columns, refined with the Jensen-Shannon distance. The table
shows the paper's main names, also with the default method on log ratios and words, the mean over
all sets of its appendix, and the best of them, which the truth chooses. ``--scores`` keeps the
scores, so that a stopped run continues.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from benchmarks.four_datasets import data_parser
from benchmarks.measuring import markdown, publish, shown
from reproduction.cells import short_name
from reproduction.datasets import DATASETS
from reproduction.documents import Documents, read_documents
from reproduction.experiments import EXPERIMENTS
from reproduction.names import ALTERNATIVES, MAIN_NAMES, all_phrasings
from ulr.classifier import count_words
from ulr.encoders import PairScorer, fingerprint, load_encoder
from ulr.files import atomic_file
from ulr.metrics import accuracy
from ulr.refinement import refine

BATCH = 100
Scores = NDArray[np.float32]


def phrases_of(dataset: str) -> tuple[list[str], list[str]]:
    """The main names of a dataset, and the further phrases of its other sets of names."""
    names = list(MAIN_NAMES[dataset])
    further = (phrase for choices in ALTERNATIVES.get(dataset, ()) for phrase in choices)
    return names, [phrase for phrase in dict.fromkeys(further) if phrase not in names]


def scores_of(
    documents: Documents, phrases: list[str], scorer: Any, folder: Path | None
) -> dict[str, Scores]:
    """Scores of all documents with each phrase, (n_documents,); kept in a folder, if given."""
    if not phrases:
        return {}
    key = f"{fingerprint(scorer)} {documents.fingerprint} {phrases}"
    name = f"{documents.dataset.name}-{hashlib.sha256(key.encode()).hexdigest()[:12]}.npy"
    if folder is not None and (folder / name).is_file():
        return dict(zip(phrases, np.load(folder / name).T, strict=True))
    start = time.perf_counter()
    batches = range(0, documents.rows, BATCH)
    scores = np.concatenate(
        [scorer.score(documents.texts[i : i + BATCH], phrases) for i in batches]
    )
    speed = scores.size / (time.perf_counter() - start)
    title = documents.dataset.title
    print(f"{title}: {scores.size:,} pairs, {speed:.0f} per second", file=sys.stderr, flush=True)
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        with atomic_file(folder / name) as file:
            np.save(file, scores)
    return dict(zip(phrases, scores.T, strict=True))


def accuracies(
    documents: Documents, scores: dict[str, Scores], names: tuple[str, ...]
) -> tuple[float, float]:
    """Accuracy by name and refined, in percent, with one set of label names."""
    columns = np.stack([scores[name] for name in names], axis=1).astype(np.float64)
    points = softmax(columns, axis=1).astype(np.float32)
    result = refine(points, distance="jensen-shannon", method="ulr", max_iter=100)
    return (
        100 * accuracy(documents.truth, result.unrefined),
        100 * accuracy(documents.truth, result.predictions),
    )


def default_accuracy(
    documents: Documents, scores: dict[str, Scores], names: tuple[str, ...]
) -> float:
    """Accuracy of the default method, in percent, with one set of label names."""
    columns = np.stack([scores[name] for name in names], axis=1)
    ratios = columns - columns.mean(axis=1, keepdims=True)
    anchors = np.eye(len(names)) - 1 / len(names)
    result = refine(ratios, anchors, word_counts=count_words(documents.texts))
    return 100 * accuracy(documents.truth, result.predictions)


def measure(documents: Documents, scorer: Any, main_only: bool, folder: Path | None) -> list[str]:
    """The cells of one dataset: main names, mean over sets, best set, improved sets."""
    dataset = documents.dataset.name
    names, further = phrases_of(dataset)
    scores = scores_of(documents, names, scorer, folder)
    main = (
        *accuracies(documents, scores, MAIN_NAMES[dataset]),
        default_accuracy(documents, scores, MAIN_NAMES[dataset]),
    )
    if main_only or not further:
        return [arrow(main), "–", "–", "–"]
    scores |= scores_of(documents, further, scorer, folder)
    sets = np.array([accuracies(documents, scores, each) for each in all_phrasings(dataset)])
    best = sets[sets[:, 1].argmax()]
    better = int((sets[:, 1] > sets[:, 0]).sum())
    return [arrow(main), arrow(sets.mean(axis=0)), arrow(best), f"{better:,} of {len(sets):,}"]


def arrow(figures: Any) -> str:
    """Figures by name, refined, and by the default if there is one."""
    return " → ".join(f"{figure:.1f}" for figure in figures)


def main() -> None:
    """Print the table, and write it into a page."""
    parser = data_parser(__doc__)
    parser.add_argument("--encoder", action="append", required=True, help="may be repeated")
    parser.add_argument("--sample", type=int, default=1000)
    parser.add_argument("--main-only", action="store_true", help="only the paper's main names")
    parser.add_argument("--dataset", action="append", choices=list(DATASETS), help="default: all")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--scores", type=Path, help="folder to keep scores in")
    options = parser.parse_args()
    head = "encoder,dataset,documents,main names,mean of all sets,best set,improved".split(",")
    publish(markdown(head, shown(rows_of(options))), options.write, "cross")


def rows_of(options: argparse.Namespace) -> Iterator[list[str]]:
    """The paper's figures and ours, dataset by dataset."""
    table = EXPERIMENTS["table-4"]
    for name in options.dataset or DATASETS:
        dataset = DATASETS[name]
        printed = [table.figure("js", step, name) for step in ("baseline", "ulr")]
        figures = arrow([each.value for each in printed if each is not None])
        n_rows = f"{dataset.official_rows['test']:,}"
        yield ["the paper, RoBERTa", dataset.title, n_rows, figures, *"–––"]
        documents = read_documents(
            name, options.data, at_most=options.sample, random_state=options.seed
        )
        for encoder in options.encoder:
            scorer = load_encoder(encoder)
            if not isinstance(scorer, PairScorer):
                raise SystemExit(f"{encoder} does not score pairs; give cross:FOLDER.")
            cells = measure(documents, scorer, options.main_only, options.scores)
            yield [f"`{short_name(encoder)}`", dataset.title, f"{documents.rows:,}", *cells]


if __name__ == "__main__":
    main()
