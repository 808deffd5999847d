"""Accuracy by name and refined on the paper's four datasets, as a Markdown table.

    python benchmarks/four_datasets.py --data DIR
    python benchmarks/four_datasets.py --data DIR --all --encoder static --encoder glove
        [--cache VECTORS] [--write docs/results.md]

DIR (or the environment variable ULR_DATA) holds agnews/test.csv, dbpedia14/test_7600.jsonl,
yahoo/test_4798.jsonl and 20newsgroups/test.jsonl. Label names are the paper's, in examples/paper.
The truth is used to report, never to choose.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from ulr.classifier import DatalessClassifier
from ulr.jobs import EvaluationReport, evaluate_file
from ulr.labels import read_labels
from ulr.tables import TableFormat, open_table

LABELS = Path(__file__).resolve().parent.parent / "examples" / "paper"


@dataclass(frozen=True)
class Dataset:
    """Where a dataset lies and how its rows are read."""

    name: str
    share: str
    file: str
    labels: str
    columns: tuple[str, ...] = ("text",)
    truth: str = "label"
    header: bool = True


DATASETS = (
    Dataset(
        "AG News", "whole test set", "agnews/test.csv", "agnews.txt", ("c2", "c3"), "c1", False
    ),
    Dataset("DBpedia", "sample of 70,000", "dbpedia14/test_7600.jsonl", "dbpedia.txt"),
    Dataset("Yahoo Answers", "sample of 60,000", "yahoo/test_4798.jsonl", "yahoo.txt"),
    Dataset("20 Newsgroups", "whole test set", "20newsgroups/test.jsonl", "20newsgroups.txt"),
)


def subject_and_body(post: str) -> str:
    """A newsgroup post without its headers but for the subject line."""
    headers, _, body = post.partition("\n\n")
    subject = re.search(r"^Subject:(.*(?:\n[ \t].*)*)", headers, re.MULTILINE)
    return f"{subject.group(1).strip() if subject else ''}\n{body}"


def without_headers(posts: Path, folder: Path) -> Path:
    """A copy of a file of newsgroup posts, each reduced to its subject and body."""
    plain = folder / posts.name
    with posts.open(encoding="utf-8") as rows, plain.open("w", encoding="utf-8") as out:
        for row in map(json.loads, rows):
            out.write(json.dumps(row | {"text": subject_and_body(row["text"])}) + "\n")
    return plain


def measure(
    dataset: Dataset,
    data: Path,
    encoder: str,
    distance: str,
    method: str = "auto",
    cache: str | None = None,
) -> EvaluationReport:
    """Classify one dataset and compare with its truth."""
    with tempfile.TemporaryDirectory() as folder:
        path = data / dataset.file
        if dataset.name == "20 Newsgroups":
            path = without_headers(path, Path(folder))
        with open_table(str(path), TableFormat(header=dataset.header)) as source:
            classifier = DatalessClassifier(
                read_labels(LABELS / dataset.labels),
                encoder=encoder,
                distance=distance,
                method=method,
                cache=cache,
            )
            return evaluate_file(source, dataset.columns, dataset.truth, classifier)


def in_detail(data: Path, encoder: str, distance: str, method: str, cache: str | None) -> str:
    """A row a dataset."""
    columns = ("dataset", "documents", "by name", "refined", "macro-F1 by name", "macro-F1 refined")
    lines = [f"| {' | '.join(columns)} | passes | seconds |", "|---" * (len(columns) + 2) + "|"]
    for dataset in DATASETS:
        report = measure(dataset, data, encoder, distance, method, cache)
        figures = (
            report.before.accuracy,
            report.after.accuracy,
            report.before.macro_f1,
            report.after.macro_f1,
        )
        cells = " | ".join(f"{100 * figure:.1f}" for figure in figures)
        lines.append(
            f"| {dataset.name} | {report.job.documents:,} ({dataset.share}) | {cells} | "
            f"{report.job.iterations} | {report.job.seconds:.1f} |"
        )
    return "\n".join(lines)


def side_by_side(data: Path, encoders: list[str], cache: str | None) -> str:
    """A row an encoder: accuracy by name, by the paper's refinement and by ours."""
    names = " | ".join(dataset.name for dataset in DATASETS)
    lines = [f"| encoder | distance | {names} |", "|---" * (len(DATASETS) + 2) + "|"]
    for encoder in encoders:
        for distance, methods in (("cosine", ("ulr", "mixture")), ("l2", ("ulr",))):
            cells = []
            for dataset in DATASETS:
                reports = [measure(dataset, data, encoder, distance, m, cache) for m in methods]
                figures = [reports[0].before, *(report.after for report in reports)]
                cells.append(" → ".join(f"{100 * each.accuracy:.1f}" for each in figures))
            name, _, rest = encoder.partition(":")
            shown = f"{name}:{Path(rest).name}" if rest else name
            lines.append(f"| `{shown}` | {distance} | {' | '.join(cells)} |")
            print(lines[-1], file=sys.stderr, flush=True)
    return "\n".join(lines)


def main() -> None:
    """Print the table, and put it into a page where asked."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    default = os.environ.get("ULR_DATA")
    parser.add_argument("--data", default=default, required=default is None, type=Path)
    parser.add_argument("--encoder", action="append", help="static by default; may be repeated")
    parser.add_argument("--distance", default="auto")
    parser.add_argument("--method", default="auto")
    parser.add_argument("--all", action="store_true", help="distances and methods, side by side")
    parser.add_argument("--cache", help="folder to keep vectors in")
    parser.add_argument("--write", type=Path, help="Markdown page to put the table of --all into")
    options = parser.parse_args()
    encoders = options.encoder or ["static"]
    if options.all:
        report = side_by_side(options.data, encoders, options.cache)
        if options.write:
            from report import replace_part

            replace_part(options.write, "encoders", report)
        print(report)
        return
    for encoder in encoders:
        print(in_detail(options.data, encoder, options.distance, options.method, options.cache))


if __name__ == "__main__":
    main()
