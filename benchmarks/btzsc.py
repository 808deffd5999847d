"""BTZSC, a benchmark of zero-shot classification: `ulr` beside the published models.

    python -m benchmarks.btzsc --encoder static [--tasks topic intent] [--json FILE]
    python -m benchmarks.btzsc --encoder static --encoder minilm --data DIR [--samples 5]
        [--cache VECTORS] [--write docs/results.md]

The first form runs the benchmark of the package ``btzsc`` itself, which downloads its datasets from
the Hugging Face hub (pip install btzsc). Labels are the benchmark's own, and refinement uses the
texts of each split alone.

With ``--data`` nothing is downloaded (pip install --no-deps btzsc is enough, for its published
figures). AG News and Yahoo Answers are read from DIR, as in docs/reproduce.md, with the paper's
label names: the whole test set, and seeded samples of 1,000 documents, which is the size of the
benchmark's. The benchmark has other samples and other label phrases, so that the rows are close to
each other but not the same measurement.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np
from btzsc import BaseModel, BTZSCBenchmark
from btzsc.baselines import get_baselines
from btzsc.metrics import compute_metrics
from numpy.typing import NDArray

from benchmarks.measuring import markdown, publish
from reproduction.documents import read_documents
from reproduction.names import MAIN_NAMES
from ulr.classifier import ZeroShotClassifier

DATASETS = {"agnews": "agnews", "yahoo": "yahootopics"}  # our names, and the benchmark's
SAMPLE = 1000
PUBLISHED = "BTZSC's own sample"
BEST = 3

Rows = dict[str, list[tuple[str, str, float, float]]]


class UlrModel(BaseModel):
    """Adapter of BTZSC: encodes texts and labels, and refines the labels on the same texts.

    Parameters
    ----------
    encoder
        Name of the encoder.
    method
        Method of refinement; ``none`` for the nearest label.
    cache
        Folder of the vector cache.
    """

    model_type = "embedding"

    def __init__(self, encoder: str, method: str = "auto", cache: str | None = None) -> None:
        self.model_name = f"ulr, {encoder}" + (", by name" if method == "none" else "")
        self._settings: dict[str, Any] = {"encoder": encoder, "method": method, "cache": cache}

    def _fitted(self, texts: list[str], labels: list[str]) -> ZeroShotClassifier:
        return ZeroShotClassifier(labels, **self._settings).fit(texts)

    def predict(
        self, texts: list[str], labels: list[str], batch_size: int = 32
    ) -> NDArray[np.intp]:
        """Index of the label of each text, (n_texts,)."""
        numbers = {label: number for number, label in enumerate(labels)}
        predicted = self._fitted(texts, labels).predict(texts)
        return np.array([numbers[label] for label in predicted])

    def predict_scores(
        self, texts: list[str], labels: list[str], batch_size: int = 32
    ) -> NDArray[np.floating]:
        """Probabilities of the labels, (n_texts, n_labels)."""
        fitted = self._fitted(texts, labels)
        order = [list(fitted.classes_).index(label) for label in labels]
        return fitted.predict_proba(texts)[:, order]


def measure_local(models: list[UlrModel], data: Path, n_samples: int) -> Rows:
    """Per dataset, rows of model, documents, accuracy and macro-F1 in percent."""
    rows: Rows = {}
    for name, published in DATASETS.items():
        documents = read_documents(name, data)
        draws = [
            np.random.default_rng(seed).permutation(documents.rows) for seed in range(n_samples)
        ]
        parts = {
            f"{documents.rows:,}, {documents.note}": [np.arange(documents.rows)],
            f"{SAMPLE:,}, mean of {n_samples} samples": [draw[:SAMPLE] for draw in draws],
        }
        for title, samples in parts.items():
            for model in models:
                found = []
                for rows_of_sample in samples:
                    texts = [documents.texts[row] for row in rows_of_sample]
                    predicted = model.predict(texts, list(MAIN_NAMES[name]))
                    found.append(compute_metrics(predicted, documents.truth[rows_of_sample]))
                accuracy, f1 = (
                    100 * float(np.mean([each[key] for each in found]))
                    for key in ("accuracy", "macro_f1")
                )
                rows.setdefault(published, []).append((model.model_name, title, accuracy, f1))
                print(f"{model.model_name}, {title}: {accuracy:.1f}", file=sys.stderr, flush=True)
    return rows


def published_rows(dataset: str) -> list[tuple[str, str, float, float]]:
    """The best published models on a dataset, by accuracy."""
    accuracy, f1 = (
        get_baselines(metric).set_index("mdl")[dataset] for metric in ("accuracy", "f1")
    )
    best = accuracy.sort_values(ascending=False).index[:BEST]
    return [(name, PUBLISHED, 100 * accuracy[name], 100 * f1[name]) for name in best]


def table(rows: Rows) -> str:
    """A Markdown table, the published models first."""
    cells = [
        [dataset, model, documents, f"{accuracy:.1f}", f"{f1:.1f}"]
        for dataset, ours in rows.items()
        for model, documents, accuracy, f1 in [*published_rows(dataset), *ours]
    ]
    return markdown(["dataset", "model", "documents", "accuracy", "macro-F1"], cells)


def main() -> None:
    """Print our figures beside the published ones."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--encoder", action="append", help="static by default; may be repeated")
    parser.add_argument(
        "--data", type=Path, help="folder of the datasets; without it, from the hub"
    )
    parser.add_argument("--samples", type=int, default=5, help="samples of 1,000 documents")
    parser.add_argument("--by-name", action="store_true", help="also without refinement")
    parser.add_argument("--tasks", nargs="+", help="task groups or datasets of BTZSC; default: all")
    parser.add_argument("--json", type=Path, help="file for BTZSC's leaderboard, for one encoder")
    parser.add_argument("--cache", help="folder of the vector cache")
    parser.add_argument("--write", type=Path, help="page to write the table of --data into")
    options = parser.parse_args()
    methods = ("none", "auto") if options.by_name else ("auto",)
    models = [
        UlrModel(encoder, method, options.cache)
        for encoder in options.encoder or ["static"]
        for method in methods
    ]
    if options.json and len(models) > 1:
        parser.error("--json is for one encoder, without --by-name.")
    if options.data is not None:
        report = table(measure_local(models, options.data, options.samples))
        publish(report, options.write, "btzsc")
        return
    rows: Rows = {}
    for model in models:
        results = BTZSCBenchmark(tasks=options.tasks).evaluate(model)
        for dataset, found in results.per_dataset_results.items():
            row = model.model_name, PUBLISHED, 100 * found["accuracy"], 100 * found["macro_f1"]
            rows.setdefault(dataset, []).append(row)
        if options.json:
            results.to_json(options.json)
    print(table(rows))


if __name__ == "__main__":
    main()
