"""Accuracy by name and refined on the paper's four datasets, as a Markdown table.

    python benchmarks/four_datasets.py --data DIR
    python benchmarks/four_datasets.py --data DIR --all --encoder static --encoder glove
        [--cache VECTORS] [--write docs/results.md]

DIR (or the environment variable ULR_DATA) holds the official archives, what they unpack to, or
samples; docs/reproduce.md describes the layout. Label names are the paper's. The truth is used to
report, never to choose.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from pathlib import Path

from ulr.classifier import DatalessClassifier
from ulr.experiments import DATASETS, Documents, read_documents
from ulr.experiments.phrasings import label_set
from ulr.experiments.plan import short_name
from ulr.experiments.report import replace_part
from ulr.jobs import EvaluationReport, evaluate_file
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
) -> EvaluationReport:
    """Classify one dataset and compare with its truth."""
    classifier = DatalessClassifier(
        label_set(documents.dataset.name),
        encoder=encoder,
        distance=distance,
        method=method,
        cache=cache,
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "documents.jsonl"
        with path.open("w", encoding="utf-8") as rows:
            for text, label in zip(documents.texts, documents.truth, strict=True):
                rows.write(json.dumps({"text": text, "label": documents.labels[label]}) + "\n")
        with open_table(str(path)) as source:
            return evaluate_file(source, ["text"], "label", classifier)


def in_detail(data: Path, encoder: str, distance: str, method: str, cache: str | None) -> str:
    """One row per dataset."""
    columns = ("dataset", "documents", "by name", "refined", "macro-F1 by name", "macro-F1 refined")
    lines = [f"| {' | '.join(columns)} | passes | seconds |", "|---" * (len(columns) + 2) + "|"]
    for dataset in DATASETS.values():
        documents = read_documents(dataset.name, data)
        report = measure(documents, encoder, distance, method, cache)
        figures = (
            report.before.accuracy,
            report.after.accuracy,
            report.before.macro_f1,
            report.after.macro_f1,
        )
        cells = " | ".join(f"{100 * figure:.1f}" for figure in figures)
        lines.append(
            f"| {dataset.title} | {report.job.documents:,} ({share(documents)}) | {cells} | "
            f"{report.job.iterations} | {report.job.seconds:.1f} |"
        )
    return "\n".join(lines)


def side_by_side(data: Path, encoders: list[str], cache: str | None) -> str:
    """One row per encoder: accuracy by name, by the paper's refinement and by the default."""
    names = " | ".join(dataset.title for dataset in DATASETS.values())
    all_documents = [read_documents(name, data) for name in DATASETS]
    lines = [f"| encoder | distance | {names} |", "|---" * (len(DATASETS) + 2) + "|"]
    for encoder in encoders:
        for distance, methods in (("cosine", ("ulr", "discriminant")), ("l2", ("ulr",))):
            cells = []
            for documents in all_documents:
                reports = [measure(documents, encoder, distance, m, cache) for m in methods]
                figures = [reports[0].before, *(report.after for report in reports)]
                cells.append(" → ".join(f"{100 * each.accuracy:.1f}" for each in figures))
            lines.append(f"| `{short_name(encoder)}` | {distance} | {' | '.join(cells)} |")
            print(lines[-1], file=sys.stderr, flush=True)
    return "\n".join(lines)


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
        if options.write:
            replace_part(options.write, "encoders", report)
        print(report)
        return
    for encoder in encoders:
        print(in_detail(options.data, encoder, options.distance, options.method, options.cache))


if __name__ == "__main__":
    main()
