"""Several labels a text: documents of different classes, joined in pairs.

    python -m benchmarks.multilabel --data DIR [--encoder NAME]

Of a share of the documents, the first 80 words are joined with those of a document of another class.
Reuters has classes of very unequal size. For every set and share: F1 and subset accuracy of the
calibrated probabilities and of the chances of `multilabel`, each with the true mean number of labels;
expected and real precision; and the same for a least chance of 0.5. The truth is used to report, never
to choose, but for the mean number.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.four_datasets import data_parser
from reproduction.documents import read_documents
from reproduction.names import label_set
from ulr.classifier import EncodedTexts, Fitted, Settings, encode_documents, fit, resolve
from ulr.labels import LabelSet, read_labels
from ulr.metrics import evaluate_sets

SETS = ("agnews", "yahoo", "20newsgroups", "dbpedia14", "reuters8")
Task = tuple[list[str], NDArray[np.intp], LabelSet]  # texts, true labels, labels
SHARES = (0.0, 0.5, 1.0)  # of documents that are joined
MOST, WORDS = 3_000, 80


def task(name: str, data: Path) -> Task:
    """The documents of a set."""
    if name != "reuters8":
        documents = read_documents(name, data)
        return documents.texts, documents.truth, label_set(name)
    labels = read_labels(data / name / "labels.txt")
    with (data / name / "test_2189.jsonl").open(encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    truth = np.array([labels.names.index(each["label"]) for each in rows], dtype=np.intp)
    return [each["text"] for each in rows], truth, labels


def joined(documents: Task, share: float) -> tuple[list[str], NDArray[np.bool_]]:
    """Texts of one or two documents, and their labels."""
    found, classes, labels = documents
    draw = np.random.default_rng(0)
    order = draw.permutation(len(found)).tolist()
    texts, truth = [], []
    while len(texts) < MOST and len(order) > 1:
        rows = [order.pop()]
        if draw.random() < share:
            others = (i for i in range(len(order)) if classes[order[i]] != classes[rows[0]])
            if (other := next(others, None)) is None:
                break
            rows.append(order.pop(other))
        words = [word for row in rows for word in found[row].split()[:WORDS]]
        texts.append(" ".join(words))
        truth.append(np.isin(np.arange(len(labels)), classes[rows]))
    return texts, np.array(truth)


def highest(chances: NDArray[np.float64], n: int) -> NDArray[np.bool_]:
    """The labels of the highest chances of all, so many."""
    return chances >= np.sort(chances, axis=None)[-n]


def row(
    name: str, truth: NDArray[np.bool_], given: NDArray[np.bool_], chances: NDArray[np.float64]
) -> str:
    """One row of the table."""
    figures = evaluate_sets(truth, given)
    shown = (figures.micro_f1, figures.macro_f1, figures.subset_accuracy, figures.precision)
    cells = " | ".join(f"{100 * figure:.1f}" for figure in shown)
    expected = f"{100 * chances[given].mean():.1f}" if given.any() else ""
    return f"| {name} | {cells} | {expected} | {figures.mean_predicted:.2f} |"


def several(documents: EncodedTexts, settings: Settings) -> Fitted:
    """A classifier that gives several labels."""
    fitted = fit(documents, settings)
    assert fitted.predictions is not None
    assert fitted.chances is not None
    return fitted


def main() -> None:
    """Print the table."""
    parser = data_parser(__doc__)
    parser.add_argument("--encoder", default="static")
    parser.add_argument("--only", action="append", choices=SETS)
    options = parser.parse_args()
    columns = ("", "micro-F1", "macro-F1", "subset", "precision", "expected", "labels a text")
    for name in options.only or SETS:
        source = task(name, options.data)
        for share in SHARES:
            texts, truth = joined(source, share)
            mean = float(truth.sum(axis=1).mean())
            arguments = {"encoder": options.encoder, "cache": options.cache}
            settings = resolve(Settings(source[2], multilabel=mean, **arguments))
            documents = encode_documents(texts, settings)
            print(f"\n{name}, {len(texts):,} texts, {mean:.2f} labels a text")
            print(f"| {' | '.join(columns)} |")
            by_mean = several(documents, settings)
            found, chances = by_mean.predictions, by_mean.chances
            given = highest(found.probabilities, int(truth.sum()))
            print(row("probabilities", truth, given, found.probabilities))
            own = chances.chances(found)
            print(row("mean number", truth, chances.assigned(found), own), flush=True)
            chances = several(
                documents, resolve(Settings(source[2], multilabel=0.5, **arguments))
            ).chances
            print(
                row("least chance 0.5", truth, chances.assigned(found), chances.chances(found)),
                flush=True,
            )


if __name__ == "__main__":
    main()
