"""Accuracy by name and refined on the paper's four datasets, as a Markdown table.

    python -m benchmarks.four_datasets --data DIR
    python -m benchmarks.four_datasets --data DIR --all --encoder static --encoder glove
        [--cache VECTORS] [--write docs/results.md]

DIR (or the environment variable ULR_DATA) holds the official archives, what they unpack to, or
samples; docs/reproduce.md describes the layout. Label names are the paper's. The truth is used to
report, never to choose.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.measuring import markdown, publish, shown
from reproduction.cells import short_name
from reproduction.datasets import DATASETS
from reproduction.documents import Documents, read_documents
from reproduction.names import label_set
from ulr.classifier import Settings
from ulr.jobs import Documents as TableDocuments
from ulr.jobs import Result, classify
from ulr.metrics import Evaluation
from ulr.tables import open_table


def data_parser(description: str | None) -> argparse.ArgumentParser:
    """A parser with the options of all benchmarks on the datasets."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawTextHelpFormatter
    )
    default = os.environ.get("ULR_DATA")
    parser.add_argument("--data", default=default, required=default is None, type=Path)
    parser.add_argument("--cache", help="folder of the vector cache")
    parser.add_argument("--write", type=Path, help="Markdown page to write the table into")
    return parser


def share(documents: Documents) -> str:
    """Share of the official test set."""
    return f"sample of {documents.official_rows:,}" if documents.is_sample else documents.note


def measure(
    documents: Documents,
    encoder: str,
    distance: str,
    method: str = "auto",
    cache: str | None = None,
    template: str | None = "auto",
) -> Result:
    """Classify one dataset and compare with its truth."""
    settings = Settings(
        label_set(documents.dataset.name),
        encoder=encoder,
        distance=distance,
        method=method,
        template=template,
        cache=cache,
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "documents.jsonl"
        with path.open("w", encoding="utf-8") as rows:
            for text, label in zip(documents.texts, documents.truth, strict=True):
                rows.write(json.dumps({"text": text, "label": documents.labels[label]}) + "\n")
        with open_table(str(path)) as source:
            documents_of_file = TableDocuments(source, ("text",))
            return classify(documents_of_file, settings, truth_column="label")[1]


def figures_of(result: Result) -> tuple[Evaluation, Evaluation]:
    """Figures before and after refinement."""
    assert result.comparison is not None
    return result.comparison.before, result.comparison.after


def in_detail(data: Path, encoder: str, distance: str, method: str, cache: str | None) -> str:
    """One row per dataset."""
    columns = "dataset,documents,by name,refined,macro-F1 by name,macro-F1 refined,passes,seconds"
    rows = []
    for dataset in DATASETS.values():
        documents = read_documents(dataset.name, data)
        result = measure(documents, encoder, distance, method, cache)
        before, after = figures_of(result)
        figures = before.accuracy, after.accuracy, before.macro_f1, after.macro_f1
        cells = [f"{100 * figure:.1f}" for figure in figures]
        number = f"{result.documents:,} ({share(documents)})"
        rows.append(
            [dataset.title, number, *cells, str(result.iterations), f"{result.seconds:.1f}"]
        )
    return markdown(columns.split(","), rows)


def side_by_side(data: Path, encoders: list[str], cache: str | None) -> str:
    """One row per encoder: accuracy by name, by the paper's refinement and by the default."""
    all_documents = [read_documents(name, data) for name in DATASETS]
    head = ["encoder", "distance", *(dataset.title for dataset in DATASETS.values())]
    return markdown(head, shown(_compared(all_documents, encoders, cache)))


def _compared(
    all_documents: list[Documents], encoders: list[str], cache: str | None
) -> Iterator[list[str]]:
    for encoder in encoders:
        for distance, methods in (("cosine", ("ulr", "discriminant")), ("l2", ("ulr",))):
            cells = []
            for documents in all_documents:
                found = [
                    figures_of(measure(documents, encoder, distance, m, cache, None))
                    for m in methods
                ]
                figures = [found[0][0], *(after for _, after in found)]
                cells.append(" → ".join(f"{100 * each.accuracy:.1f}" for each in figures))
            yield [f"`{short_name(encoder)}`", distance, *cells]


def main() -> None:
    """Print the table, and write it into a page."""
    parser = data_parser(__doc__)
    parser.add_argument("--encoder", action="append", help="static by default; may be repeated")
    parser.add_argument("--distance", default="auto")
    parser.add_argument("--method", default="auto")
    parser.add_argument("--all", action="store_true", help="distances and methods, side by side")
    options = parser.parse_args()
    encoders = options.encoder or ["static"]
    if options.all:
        report = side_by_side(options.data, encoders, options.cache)
        publish(report, options.write, "encoders")
        return
    for encoder in encoders:
        print(in_detail(options.data, encoder, options.distance, options.method, options.cache))


if __name__ == "__main__":
    main()
