"""Accuracy of encoders trained with `ulr train` on the paper's four datasets, as Markdown tables.

    python -m benchmarks.training --data DIR --base ENCODER --dot FOLDER --l2 FOLDER
        --single FOLDER [--few-shot FOLDER] [--keep figures.json] [--cache VECTORS]
        [--write docs/results.md]
    python -m benchmarks.training --data DIR --base ENCODER --compare FOLDER --compare FOLDER ...
        [--cache VECTORS] [--write docs/results.md]

DIR (or the environment variable ULR_DATA) holds the datasets, as for four_datasets.py; the folders
are outputs of `ulr train`. ``--few-shot`` is a folder for encoders that are fine-tuned on 30 documents
per label, for datasets with a training set. Figures are kept in a file as they are measured, so that
a run can be interrupted. The second form compares dual encoders that were trained in different ways,
on a sample of every dataset. The truth is used to report, never to choose.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.four_datasets import data_parser, figures_of, measure
from benchmarks.measuring import markdown, publish, shown
from reproduction.datasets import DATASETS
from reproduction.documents import Documents, read_documents
from reproduction.experiments import EXPERIMENTS
from reproduction.names import label_set
from ulr.classifier import ZeroShotClassifier
from ulr.encoders import CrossEncoder
from ulr.errors import InputError
from ulr.train import draw_examples, few_shot_instances, train

SAMPLE, SEED, PAIR_TOKENS = 1000, 1, 64
PAPER = (
    ("dual, dot: cosine", "table-3", "cosine", ("baseline", "ulr")),
    ("dual, l2: l2", "table-3", "l2", ("baseline", "ulr")),
    ("single", "table-4", "js", ("baseline", "ulr")),
    ("dual, dot, + 30 per label: cosine", "table-8", "cosine", ("labelled", "ulr")),
)
Figures = dict[str, Any]


def sample(name: str, data: Path) -> Documents:
    """A sample of a dataset."""
    return read_documents(name, data, at_most=SAMPLE, random_state=SEED)


def of_dual(encoder: str, distance: str, documents: Documents, cache: str | None) -> str:
    """Accuracy by name, by the paper's refinement and, for cosine, by the default."""
    methods = ("ulr", "discriminant") if distance == "cosine" else ("ulr",)
    found = [figures_of(measure(documents, encoder, distance, each, cache)) for each in methods]
    return arrows([found[0][0].accuracy, *(after.accuracy for _, after in found)])


def of_single(folder: Path, documents: Documents) -> str:
    """Accuracy by name and by Algorithm 2, on a sample."""
    scorer = CrossEncoder(folder, max_tokens=PAIR_TOKENS)
    found = figures_of(measure(documents, scorer, "auto", "ulr"))  # type: ignore[arg-type]
    return arrows([each.accuracy for each in found])


def of_few_shot(base: Path, output: Path, documents: Documents, data: Path, cache: str) -> str:
    """Accuracy by name after training on 30 documents per label, and by Algorithm 3."""
    labels = label_set(documents.dataset.name)
    training = read_documents(documents.dataset.name, data, split="train")
    names = labels.names
    truth = [names[label] for label in training.truth]
    examples = draw_examples(training.texts, truth, names, random_state=SEED)
    if not output.is_dir():
        sources, settings = few_shot_instances(base, labels, examples)
        train(base, sources, output, settings, resume=True)
    by_name = ZeroShotClassifier(labels, encoder=f"hf:{output}", method="none", cache=cache)
    before = by_name.fit(documents.texts).refinement_.predictions
    refined = ZeroShotClassifier(labels, encoder=f"hf:{output}", method="ulr", cache=cache)
    known = [None] * documents.rows + examples.labels
    refined.fit([*documents.texts, *examples.texts], known)
    after = refined.refinement_.predictions[: documents.rows]
    return arrows([float((each == documents.truth).mean()) for each in (before, after)])


def arrows(accuracies: list[float]) -> str:
    """Accuracies in percent, one after the other."""
    return " → ".join(f"{100 * each:.1f}" for each in accuracies)


def keep(
    figures: Figures,
    path: Path | None,
    row: str,
    documents: Documents,
    make: Callable[[Documents], str],
) -> None:
    """Measure a cell unless it is in the file, and add it."""
    cells, column = figures.setdefault(row, {}), documents.dataset.title
    if column in cells:
        return
    began = time.perf_counter()
    try:
        cells[column] = make(documents)
    except InputError as error:
        cells[column] = "–"
        print(f"{row}, {column}: {error}", file=sys.stderr)
    print(f"{row}, {column}: {cells[column]} ({time.perf_counter() - began:.0f} s)", flush=True)
    if path is not None:
        path.write_text(json.dumps(figures, indent=1), encoding="utf-8")


def how_trained(folder: Path) -> str:
    """One line on how a folder was trained."""
    content = json.loads((folder / "training.json").read_text(encoding="utf-8"))
    plan, settings = content["plan"], content["plan"]["settings"]
    return (
        f"| `{folder.name}` | {plan['n_instances']:,} | {settings['max_tokens']} | "
        f"{settings['random_state']} | {content['seconds'] / 60:.0f} min | "
        f"{content['instances_per_second']:.1f} | "
        f"{100 * content['accuracy_before']:.1f} → {100 * content['accuracy']:.1f} |"
    )


def tables(figures: Figures, folders: list[Path]) -> str:
    """The figures, and how the encoders were trained."""
    names = [dataset.title for dataset in DATASETS.values()]
    lines = [f"| encoder | {' | '.join(names)} |", "|---" * (len(names) + 1) + "|"]
    for title, table, distance, steps in PAPER:
        printed = [[EXPERIMENTS[table].figure(distance, s, d) for s in steps] for d in DATASETS]
        shown = [" → ".join(f"{each.value:.1f}" for each in pair if each) for pair in printed]
        lines.append(f"| paper, RoBERTa-base, {title} | {' | '.join(shown)} |")
    for row, cells in figures.items():
        lines.append(f"| {row} | {' | '.join(cells.get(name, '–') for name in names)} |")
    lines += [
        "",
        "| folder | instances | tokens | seed | time | instances/s | ranking accuracy, base → kept |",
        "|---|---|---|---|---|---|---|",
        *map(how_trained, folders),
    ]
    return "\n".join(lines)


def comparison(base: str | None, folders: list[Path], data: Path, cache: str) -> str:
    """Dual encoders by name and by the paper's refinement, on a sample of every dataset."""
    samples = [sample(name, data) for name in DATASETS]
    names = [dataset.title for dataset in DATASETS.values()]
    encoders = [(f"`{folder.name}`", how_drawn(folder), f"hf:{folder}") for folder in folders]

    def rows() -> Iterator[list[str]]:
        for name, how, encoder in [("untrained base", [""] * 4, base)] * bool(base) + encoders:
            results = [measure(each, encoder, "cosine", "ulr", cache) for each in samples]
            yield [name, *how, *(arrows([e.accuracy for e in figures_of(r)]) for r in results)]

    return markdown(["", "instances", "rate", "sources", "negatives", *names], shown(rows()))


def how_drawn(folder: Path) -> list[str]:
    """What a folder was trained on: cells of a table."""
    plan = json.loads((folder / "training.json").read_text(encoding="utf-8"))["plan"]
    settings = plan["settings"]
    sources = ", ".join(
        f"{re.split('[._]', each['files'][0])[0]} {100 * each['share']:.0f} %"
        for each in plan["sources"]
    )
    negatives = ", ".join(dict.fromkeys(each["negatives"] for each in plan["sources"]))
    return [
        f"{settings['n_instances']:,}",
        f"{settings['learning_rate']:g}",
        sources,
        negatives,
    ]


def cells(options: argparse.Namespace) -> dict[str, Callable[[Documents], str]]:
    """The measurements of each dataset, by the title of their row."""
    rows: dict[str, Callable[[Documents], str]] = {}
    duals = [("untrained base", options.base, each) for each in ("cosine", "l2")]
    duals += [("dual, dot", options.dot and f"hf:{options.dot}", "cosine")]
    duals += [("dual, l2", options.l2 and f"hf:{options.l2}", "l2")]
    for name, encoder, distance in duals:
        if encoder:
            rows[f"{name}: {distance}"] = partial(
                lambda encoder, distance, d: of_dual(encoder, distance, d, options.cache),
                encoder,
                distance,
            )
    if options.single:
        rows[f"single (sample of {SAMPLE:,})"] = lambda d: of_single(
            options.single,
            read_documents(d.dataset.name, options.data, at_most=SAMPLE, random_state=SEED),
        )
    if options.dot and options.few_shot:
        rows["dual, dot, + 30 per label: cosine"] = lambda d: of_few_shot(
            options.dot, options.few_shot / d.dataset.name, d, options.data, options.cache
        )
    return rows


def main() -> None:
    """Measure, and print the tables."""
    parser = data_parser(__doc__)
    parser.set_defaults(cache="vectors")
    for name in ("dot", "l2", "single", "few-shot", "keep"):
        parser.add_argument(f"--{name}", type=Path)
    parser.add_argument("--base", help="the encoder that training began with")
    parser.add_argument("--compare", type=Path, action="append", help="a dual encoder's folder")
    parser.add_argument("--only", action="append", help="a dataset; all by default")
    options = parser.parse_args()
    if options.compare:
        report = comparison(options.base, options.compare, options.data, options.cache)
        publish(report, options.write, "compared")
        return
    figures: Figures = {}
    if options.keep and options.keep.is_file():
        figures = json.loads(options.keep.read_text(encoding="utf-8"))
    for name in options.only or DATASETS:
        documents = read_documents(name, options.data)
        for row, make in cells(options).items():
            keep(figures, options.keep, row, documents, make)
    folders = [each for each in (options.dot, options.l2, options.single) if each]
    publish(tables(figures, folders), options.write, "training")


if __name__ == "__main__":
    main()
