"""Several phrases a label: one vector of them, or an ensemble, on the paper's four datasets.

    python benchmarks/ensembles.py --data DIR --encoder static --encoder minilm
        [--cache VECTORS] [--sets 64] [--write docs/results.md]

Phrases are those of `wordings.py`; of their combinations a seeded draw is taken. Beside them stand
the paper's names alone, what a set of the draw gives in the mean, and the set that an audit
recommends. The truth is used to report, never to choose.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ulr.audit import audit, run_sweep
from ulr.classifier import DatalessClassifier
from ulr.encoders import in_batches
from ulr.experiments import DATASETS, Documents, read_documents
from ulr.experiments.pages import replace_part
from ulr.experiments.wordings import label_set
from ulr.refine import refine, refine_ensemble
from ulr.tasks import encode, prepare
from wordings import CHOICES

METHODS = {"none": "by name", "ulr": "the paper's refinement", "mixture": "the default"}
COLUMNS = ("names alone", "a set, mean", "worst set", "average", "ensemble", "recommended")


def measure(
    documents: Documents, encoder: str, method: str, n_sets: int, cache: str | None
) -> list[float]:
    """The accuracy of each of the columns."""
    dataset = documents.dataset
    labels = dict(zip(dataset.labels, CHOICES[dataset.title], strict=True))
    worded = DatalessClassifier(
        labels,
        encoder=encoder,
        method=method,
        wordings="combinations",
        sample=n_sets,
        cache=cache,
    )
    task = prepare(worded)
    given = encode(task, worded, in_batches(documents.texts), None, None, None)
    usual = DatalessClassifier(label_set(dataset.name), encoder=encoder, method=method)
    # The paper's names are among the phrases, but a draw of sets may lack some of them.
    alone = encode(prepare(usual), usual, in_batches(documents.texts[:1]), None, None, None)

    def accuracy(predictions: NDArray[np.integer]) -> float:
        return float((predictions == documents.truth).mean())

    with tempfile.TemporaryDirectory() as folder:
        sweep = run_sweep(given, task.wordings, Path(folder))
        chosen = audit(sweep, task.wordings, task.labels).recommendation.number - 1
        predicted = np.concatenate([part for _, part in sweep.blocks("after")], axis=1)
    each = [accuracy(one) for one in predicted]
    settings = given.settings
    return [
        accuracy(refine(given.documents, alone.anchors, **settings).predictions),
        float(np.mean(each)),
        min(each),
        accuracy(refine(given.documents, given.anchors, **settings).predictions),
        accuracy(refine_ensemble(given.documents, given.sets, **settings).predictions),
        each[chosen],
    ]


def main() -> None:
    """Print the table, and put it into a page where asked."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    default = os.environ.get("ULR_DATA")
    parser.add_argument("--data", default=default, required=default is None, type=Path)
    parser.add_argument("--encoder", action="append", help="static by default; may be repeated")
    parser.add_argument("--sets", type=int, default=64, help="combinations to draw")
    parser.add_argument("--cache", help="folder to keep vectors in")
    parser.add_argument("--write", type=Path, help="Markdown page to put the table into")
    options = parser.parse_args()
    lines = [f"| dataset | encoder | method | {' | '.join(COLUMNS)} |", "|---" * 9 + "|"]
    for name in DATASETS:
        documents = read_documents(name, options.data)
        for encoder in options.encoder or ["static"]:
            for method, shown in METHODS.items():
                figures = measure(documents, encoder, method, options.sets, options.cache)
                cells = " | ".join(f"{100 * figure:.1f}" for figure in figures)
                lines.append(f"| {documents.dataset.title} | `{encoder}` | {shown} | {cells} |")
                print(lines[-1], file=sys.stderr, flush=True)
    if options.write:
        replace_part(options.write, "wordings", "\n".join(lines))
    print("\n".join(lines))


if __name__ == "__main__":
    main()
