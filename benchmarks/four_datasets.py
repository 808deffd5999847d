"""Accuracy by name and refined on the paper's four datasets, as a Markdown table.

    python benchmarks/four_datasets.py --data DIR

DIR (or the environment variable ULR_DATA) holds agnews/test.csv, dbpedia14/test_7600.jsonl,
yahoo/test_4798.jsonl and 20newsgroups/test.jsonl. Label names are the paper's, in examples/paper.
The truth is used to report, never to choose.
"""

from __future__ import annotations

import argparse
import json
import os
import re
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


def measure(dataset: Dataset, data: Path, encoder: str, distance: str) -> EvaluationReport:
    """Classify one dataset and compare with its truth."""
    with tempfile.TemporaryDirectory() as folder:
        path = data / dataset.file
        if dataset.name == "20 Newsgroups":
            path = without_headers(path, Path(folder))
        with open_table(str(path), TableFormat(header=dataset.header)) as source:
            classifier = DatalessClassifier(
                read_labels(LABELS / dataset.labels), encoder=encoder, distance=distance
            )
            return evaluate_file(source, dataset.columns, dataset.truth, classifier)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument(
        "--data", default=os.environ.get("ULR_DATA"), required="ULR_DATA" not in os.environ
    )
    parser.add_argument("--encoder", default="static")
    parser.add_argument("--distance", default="cosine")
    options = parser.parse_args()
    columns = ("dataset", "documents", "by name", "refined", "macro-F1 by name", "macro-F1 refined")
    print(f"| {' | '.join(columns)} | passes | seconds |")
    print("|---" * (len(columns) + 2) + "|")
    for dataset in DATASETS:
        report = measure(dataset, Path(options.data), options.encoder, options.distance)
        figures = (
            report.before.accuracy,
            report.after.accuracy,
            report.before.macro_f1,
            report.after.macro_f1,
        )
        cells = " | ".join(f"{100 * figure:.1f}" for figure in figures)
        print(
            f"| {dataset.name} | {report.job.documents:,} ({dataset.share}) | {cells} | "
            f"{report.job.iterations} | {report.job.seconds:.1f} |"
        )


if __name__ == "__main__":
    main()
