"""Several phrases per label, averaged or as an ensemble, on the paper's four datasets.

    python benchmarks/ensembles.py --data DIR --encoder static --encoder minilm
        [--cache VECTORS] [--sets 64] [--write docs/results.md]

The phrases are those of `phrasings.py`; a seeded sample of their combinations is used. The table
also shows the paper's names alone, the mean and the worst set of the sample, the least gain of a
set over its names, and the set that an audit recommends. The truth is used to report, never to choose.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from four_datasets import data_parser
from phrasings import CHOICES
from ulr.audit import Sweep, audit, run_sweep
from ulr.experiments import DATASETS, Documents, read_documents
from ulr.experiments.phrasings import label_set
from ulr.experiments.report import replace_part
from ulr.inputs import encode_inputs, resolve
from ulr.metrics import accuracy
from ulr.refinement import METHODS, refine, refine_ensemble
from ulr.word_counts import count_words

TITLES = {"none": "by name", "ulr": "the paper's refinement", "discriminant": "the default"}
COLUMNS = (
    "names alone",
    "a set, mean",
    "worst set",
    "least gain",
    "average",
    "ensemble",
    "recommended",
)


def of_sets(sweep: Sweep, phase: str, truth: NDArray[Any]) -> NDArray[np.float64]:
    """The accuracy of each set, before or after refinement."""
    predicted: NDArray[Any] = np.concatenate([part for _, part in sweep.blocks(phase)], axis=1)
    return np.array([accuracy(truth, predictions) for predictions in predicted])


def measure(
    documents: Documents, encoder: str, method: str, n_sets: int, cache: str | None
) -> list[float]:
    """The accuracy of each column."""
    dataset = documents.dataset
    arguments: dict[str, Any] = {
        "encoder": encoder,
        "method": method,
        "distance": "cosine",
        "template": None,
        "random_state": 0,
        "extra_labels": None,
        "cache": cache,
    }
    labels = dict(zip(dataset.labels, CHOICES[dataset.title], strict=True))
    setup = resolve(labels, phrasings="combinations", sample=n_sets, **arguments)
    inputs = encode_inputs(setup, documents.texts)
    # The paper's names are among the phrases, but a sample of sets may lack some of them.
    names = resolve(label_set(dataset.name), phrasings="average", sample=None, **arguments)
    alone = encode_inputs(names, documents.texts[:1]).anchors
    assert setup.phrasings is not None
    assert inputs.anchor_sets is not None
    settings = {"method": method, "distance": "cosine"}
    words = {"word_counts": count_words(documents.texts)} if METHODS[method].uses_words else {}

    def refined(anchors: Any) -> float:
        result = refine(inputs.documents, anchors, known=inputs.known, **settings, **words)
        return accuracy(documents.truth, result.predictions)

    with tempfile.TemporaryDirectory() as folder:
        sweep = run_sweep(inputs, settings, setup.phrasings, Path(folder))
        recommended = audit(sweep, setup.phrasings, setup.labels).recommendation.number - 1
        by_name, each = (of_sets(sweep, phase, documents.truth) for phase in ("before", "after"))
    ensemble = refine_ensemble(inputs.documents, inputs.anchor_sets, known=inputs.known, **settings)
    return [
        refined(alone),
        float(each.mean()),
        each.min(),
        (each - by_name).min(),
        refined(inputs.anchors),
        accuracy(documents.truth, ensemble.predictions),
        each[recommended],
    ]


def main() -> None:
    """Print the table, and write it into a page."""
    parser = data_parser(__doc__)
    parser.add_argument("--encoder", action="append", help="static by default; may be repeated")
    parser.add_argument("--sets", type=int, default=64, help="combinations to draw")
    options = parser.parse_args()
    lines = [
        f"| dataset | encoder | method | {' | '.join(COLUMNS)} |",
        "|---" * (3 + len(COLUMNS)) + "|",
    ]
    for name in DATASETS:
        documents = read_documents(name, options.data)
        for encoder in options.encoder or ["static"]:
            for method, title in TITLES.items():
                figures = measure(documents, encoder, method, options.sets, options.cache)
                cells = " | ".join(f"{100 * figure:.1f}" for figure in figures)
                lines.append(f"| {documents.dataset.title} | `{encoder}` | {title} | {cells} |")
                print(lines[-1], file=sys.stderr, flush=True)
    if options.write:
        replace_part(options.write, "phrasings", "\n".join(lines))
    print("\n".join(lines))


if __name__ == "__main__":
    main()
