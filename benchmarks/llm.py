"""What a language model as adviser changes: accuracy with a bounded number of questions.

    python -m benchmarks.llm --data DIR [--encoder static] [--cache VECTORS] [--write docs/llm.md]
    python -m benchmarks.llm --data DIR --llm URL --llm-model NAME --budget 64 --set agnews

Without a model, advisers are simulated: they know the truth and err as often as is said, so that the
weighting of answers is measured for good and bad advisers. With one, it is asked. Of each set, so many
random documents are used (`--documents`); the truth is used to simulate and to report.
"""

from __future__ import annotations

import csv
import random
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.four_datasets import data_parser
from reproduction.datasets import DATASETS
from reproduction.documents import read_documents
from reproduction.names import label_set
from reproduction.pages import replace_part
from ulr.advisers import OpenAIAdviser, ask_for_label
from ulr.classifier import Advice, EncodedTexts, Settings, advise, encode_documents, fit, resolve
from ulr.labels import LabelSet, as_label_set

Adviser = Callable[..., str]
EXAMPLES = Path(__file__).parent.parent / "examples"


@dataclass(frozen=True)
class Corpus:
    """Documents with their labels and true ones."""

    title: str
    texts: list[str]
    truth: NDArray[np.intp]
    labels: LabelSet


def read_corpus(name: str, data: Path, n_documents: int) -> Corpus:
    """Random documents of a dataset, or the shipped tickets with the bare names of their labels."""
    if name == "tickets":
        with (EXAMPLES / "support_messages.csv").open(newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        names = sorted({row["category"] for row in rows})
        truth = np.array([names.index(row["category"]) for row in rows])
        return Corpus("tickets", [row["message"] for row in rows], truth, as_label_set(names))
    found = read_documents(name, data)
    rows = np.sort(np.random.default_rng(0).permutation(len(found.texts))[:n_documents])
    texts, truth = [found.texts[i] for i in rows], np.array([found.truth[i] for i in rows])
    return Corpus(found.dataset.title, texts, truth, label_set(name))


class Simulated:
    """Knows the true labels of documents, and errs so often, all errors alike."""

    def __init__(self, corpus: Corpus, accuracy: float) -> None:
        self._labels, self._accuracy = corpus.labels, accuracy
        self._truth = {
            ask_for_label(corpus.labels, text).prompt: int(label)
            for text, label in zip(corpus.texts, corpus.truth, strict=True)
        }

    def __call__(self, prompt: str) -> str:
        """A label; nothing to questions about labels."""
        if prompt not in self._truth:
            return ""
        draw, names = random.Random(prompt), self._labels.names
        label = self._truth[prompt]
        if draw.random() >= self._accuracy:
            label = draw.choice([each for each in range(len(names)) if each != label])
        return f'{{"label": "{names[label]}"}}'


class Only:
    """An adviser that answers questions about documents only, or about labels only."""

    uses_schema, shared_by_threads = True, 4

    def __init__(self, adviser: OpenAIAdviser, corpus: Corpus, about: str) -> None:
        self._adviser, self._about = adviser, about
        self._rows = {ask_for_label(corpus.labels, t).prompt: i for i, t in enumerate(corpus.texts)}
        self.labels: dict[int, int | None] = {}
        self.asked: list[int] = []
        self._corpus = corpus

    def __call__(self, prompt: str, schema: dict[str, object]) -> str:
        """The answer, or nothing."""
        row = self._rows.get(prompt)
        if self._about != "all" and (row is not None) != (self._about == "documents"):
            return ""
        if row is not None:
            self.asked.append(row)
        answer = self._adviser(prompt, schema)
        if row is not None:
            question = ask_for_label(self._corpus.labels, self._corpus.texts[row])
            self.labels[row] = question.parse(answer)
        return answer


class Bench:
    """A corpus that is encoded once, and fitted with several advisers."""

    def __init__(self, corpus: Corpus, encoder: str, cache: str | None) -> None:
        self.corpus = corpus
        self._settings = resolve(Settings(corpus.labels, encoder=encoder, cache=cache))
        self._documents: EncodedTexts = encode_documents(corpus.texts, self._settings)

    def measure(self, adviser: Adviser | None, budget: int = 1) -> tuple[float, Advice | None]:
        """Accuracy of all documents, in percent, and what the adviser was asked."""
        settings = replace(self._settings, adviser=adviser, adviser_budget=budget)
        fitted = advise(fit(self._documents, settings))
        assert fitted.predictions is not None
        return 100 * float((fitted.predictions.labels == self.corpus.truth).mean()), fitted.advice


def simulated_table(benches: list[Bench], budgets: list[int]) -> str:
    """Accuracy with simulated advisers; a row per corpus and number of questions."""
    accuracies = (1.0, 0.9, 0.7, 0.5)
    columns = ["set", "questions", "alone", *(f"{each:.0%} right" for each in accuracies)]
    lines = [f"| {' | '.join([*columns, 'at random', 'one label'])} |"]
    lines.append("|---" * (len(columns) + 2) + "|")
    for bench in benches:
        corpus, alone = bench.corpus, bench.measure(None)[0]
        name = corpus.labels.names[0]
        advisers: list[Adviser] = [Simulated(corpus, each) for each in accuracies]
        advisers.append(Simulated(corpus, 1 / len(corpus.labels)))
        advisers.append(lambda prompt, name=name: f'{{"label": "{name}"}}')
        for budget in budgets:
            cells = [f"{bench.measure(each, budget)[0]:.1f}" for each in advisers]
            lines.append(f"| {corpus.title} | {budget} | {alone:.1f} | {' | '.join(cells)} |")
            print(lines[-1], file=sys.stderr, flush=True)
    return "\n".join(lines)


ABOUT = {"labels": "phrases", "documents": "labels", "all": "both"}


def model_table(benches: list[Bench], adviser: OpenAIAdviser, budget: int, about: list[str]) -> str:
    """Accuracy with a real model: its phrases, its labels, and both."""
    columns = [
        "set",
        "questions",
        "model alone",
        "alone",
        *map(ABOUT.get, about),
        "judge",
        "seconds",
    ]
    lines = [f"| {' | '.join(map(str, columns))} |", "|---" * len(columns) + "|"]
    for bench in benches:
        corpus, cells, started = bench.corpus, [], time.perf_counter()
        for each in about:
            asked = Only(adviser, corpus, each)
            accuracy, advice = bench.measure(asked, budget)
            cells.append(f"{accuracy:.1f}")
            print(corpus.title, each, accuracy, advice, file=sys.stderr, flush=True)
        assert advice is not None
        # Documents that judge are asked about first, and drawn at random.
        judged = asked.asked[: advice.judged]
        right = sum(asked.labels[row] == corpus.truth[row] for row in judged)
        low, high = advice.interval or (0.0, 1.0)
        lines.append(
            f"| {corpus.title} | {advice.questions} | {right} of {len(judged)} | "
            f"{bench.measure(None)[0]:.1f} | {' | '.join(cells)} | "
            f"{100 * low:.0f} to {100 * high:.0f} | {time.perf_counter() - started:.0f} |"
        )
        print(lines[-1], file=sys.stderr, flush=True)
    return "\n".join(lines)


def main() -> None:
    """Print the table, and write it into a page."""
    parser = data_parser(__doc__)
    parser.add_argument("--encoder", default="static")
    parser.add_argument("--documents", type=int, default=2000)
    parser.add_argument("--set", action="append", choices=[*DATASETS, "tickets"], dest="sets")
    parser.add_argument("--llm", help="address of a server")
    parser.add_argument("--llm-model", default="model")
    parser.add_argument("--about", action="append", choices=["labels", "documents", "all"])
    parser.add_argument("--answers", help="folder for the answers of the model")
    parser.add_argument("--budget", type=int, action="append", help="questions; repeatable")
    options = parser.parse_args()
    benches = [
        Bench(read_corpus(name, options.data, options.documents), options.encoder, options.cache)
        for name in options.sets or [*DATASETS, "tickets"]
    ]
    if options.llm:
        adviser = OpenAIAdviser(
            options.llm, options.llm_model, timeout=900.0, cache=options.answers
        )
        about = options.about or list(ABOUT)
        table = model_table(benches, adviser, (options.budget or [160])[0], about)
    else:
        table = simulated_table(benches, options.budget or [30, 160, 300])
    if options.write:
        part = "model" if options.llm else "simulated"
        replace_part(options.write, part, table)
    print(table)


if __name__ == "__main__":
    main()
