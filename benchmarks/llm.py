"""What a language model as adviser changes: accuracy with a bounded number of questions, and its cost.

    python -m benchmarks.llm --data DIR [--budget 100] [--cache VECTORS] [--write docs/llm.md]
    python -m benchmarks.llm --data DIR --llm URL --llm-process PID --answers FOLDER [--set agnews]
        [--kept]

Without a model, advisers are simulated: they know the truth and err as often as is said, so that the
weighting of answers is measured for good and bad advisers. With one, it is asked, and what its process
spends on questions is added up beside the answers, which are kept. Of each set, so many random
documents are used (`--documents`); the truth is used to simulate and to report.
"""

from __future__ import annotations

import csv
import os
import random
import sys
import time
from argparse import Namespace
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binomtest

from benchmarks.four_datasets import data_parser
from reproduction.datasets import DATASETS
from reproduction.documents import read_documents
from reproduction.names import label_set
from reproduction.pages import replace_part
from ulr.advisers import Interview, OpenAIAdviser, ask_for_label
from ulr.classifier import Fitted, Settings, advise, encode_documents, fit, resolve
from ulr.classifier.advice import (
    Answers,
    ask_labels,
    ask_phrases,
    attracting,
    documents_to_ask,
    learn,
    random_documents,
    with_phrases,
)
from ulr.labels import LabelSet, as_label_set

Adviser = Callable[..., str]
EXAMPLES = Path(__file__).parent.parent / "examples"
_TIMED = 200  # documents that are encoded once more, to time it
_QUESTIONS = 100  # whose cost is told, and within which an adviser does what it does by default


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


class Bench:
    """A corpus that is encoded and fitted once, and then with several advisers."""

    def __init__(self, name: str, options: Namespace) -> None:
        self.name, self.corpus = name, read_corpus(name, options.data, options.documents)
        texts, labels = self.corpus.texts, self.corpus.labels
        settings = resolve(Settings(labels, encoder=options.encoder, cache=options.cache))
        documents = encode_documents(texts, settings)
        started = time.process_time()
        self.fitted = fit(documents, settings)
        fitting = time.process_time() - started
        encode_documents(texts[:_TIMED], replace(settings, cache=None))
        encoding = time.process_time() - started - fitting
        self.seconds = fitting / len(texts) + encoding / len(texts[:_TIMED])  # of CPU, per document
        self.alone = self.accuracy(self.fitted)

    def accuracy(self, fitted: Fitted) -> float:
        """Accuracy of all documents, in percent."""
        assert fitted.predictions is not None
        return 100 * float((fitted.predictions.labels == self.corpus.truth).mean())

    def advised(self, adviser: Adviser, budget: int) -> Fitted:
        """The fit with an adviser, as a user gets it."""
        settings = replace(self.fitted.settings, adviser=adviser, adviser_budget=budget)
        return advise(replace(self.fitted, settings=settings))


def simulated_table(benches: list[Bench], budgets: list[int]) -> str:
    """Accuracy with simulated advisers; a row per corpus and number of questions."""
    accuracies = (1.0, 0.9, 0.7, 0.5)
    columns = ["set", "questions", "alone", *(f"{each:.0%} right" for each in accuracies)]
    lines = [f"| {' | '.join([*columns, 'at random', 'one label'])} |"]
    lines.append("|---" * (len(columns) + 2) + "|")
    for bench in benches:
        corpus, alone = bench.corpus, bench.alone
        name = corpus.labels.names[0]
        advisers: list[Adviser] = [Simulated(corpus, each) for each in accuracies]
        advisers.append(Simulated(corpus, 1 / len(corpus.labels)))
        advisers.append(lambda prompt, name=name: f'{{"label": "{name}"}}')
        for budget in budgets:
            fits = [bench.advised(each, budget) for each in advisers]
            cells = [f"{bench.accuracy(each):.1f}" for each in fits]
            lines.append(f"| {corpus.title} | {budget} | {alone:.1f} | {' | '.join(cells)} |")
            print(lines[-1], file=sys.stderr, flush=True)
    return "\n".join(lines)


class Model:
    """A language model that is asked about the documents of a corpus."""

    def __init__(self, bench: Bench, options: Namespace) -> None:
        self.bench, self._process = bench, options.llm_process
        self._costs = Path(options.answers) / "cost.csv"
        self.adviser = OpenAIAdviser(
            options.llm,
            options.llm_model,
            timeout=900.0,
            cache=options.answers,
            dry_run=options.kept,
        )

    @contextmanager
    def measured(self, about: str) -> Iterator[Interview]:
        """Questions without a bound; what those that are sent cost is added to the file of costs."""
        sent, seconds = self.adviser.sent, self._cpu_seconds()
        yield Interview(self.adviser, sys.maxsize)
        if self.adviser.sent > sent and self._process is not None:
            row = [self.bench.name, about, self.adviser.sent - sent, self._cpu_seconds() - seconds]
            with self._costs.open("a", newline="") as file:
                csv.writer(file).writerow(row)

    def _cpu_seconds(self) -> float:
        """CPU seconds of the process of the server so far (Linux)."""
        if self._process is None:
            return 0.0
        fields = Path(f"/proc/{self._process}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def labels(self, rows: NDArray[np.intp]) -> Answers:
        """Its labels of documents."""
        with self.measured("documents") as interview:
            return ask_labels(interview, self.bench.fitted, rows, self.bench.corpus.labels)

    def compare(self, answers: Answers) -> None:
        """Print how often the model and the classifier are right on the same documents."""
        predictions, truth = self.bench.fitted.predictions, self.bench.corpus.truth[answers.rows]
        assert predictions is not None
        own, others = answers.labels == truth, predictions.labels[answers.rows] == truth
        counts = f"the model is right on {own.sum()}, the classifier on {others.sum()}"
        print(f"{self.bench.corpus.title}: of {len(own)}, {counts}", file=sys.stderr)

    def alone(self, rows: NDArray[np.intp]) -> tuple[Answers, int]:
        """Its labels of random documents, and how many were asked about.

        Of kept answers, those up to the first one that is missing: answers that were given for
        documents that were chosen are not of random ones.
        """
        for n in range(len(rows) if self.adviser.dry_run else 0):
            sent = self.adviser.sent
            self.labels(rows[n : n + 1])
            if self.adviser.sent > sent:
                rows = rows[:n]
                break
        return self.labels(rows), len(rows)

    def seconds(self) -> float:
        """CPU seconds per question about a document, of all that were sent."""
        rows = list(csv.reader(self._costs.open(newline="")))
        own = [row for row in rows if row[:2] == [self.bench.name, "documents"]]
        return sum(float(row[3]) for row in own) / sum(int(row[2]) for row in own)

    def cell(self, fitted: Callable[[], Fitted]) -> str:
        """The accuracy of a fit; a dash where not all of its questions are answered."""
        sent = self.adviser.sent
        found = fitted()
        missing = self.adviser.dry_run and self.adviser.sent > sent
        return "–" if missing else f"{self.bench.accuracy(found):.1f}"


def model_rows(model: Model, budgets: list[int], n_random: int) -> tuple[str, str]:
    """A row of accuracy and one of cost: the model, the classifier, and both."""
    bench, fitted, truth = model.bench, model.bench.fitted, model.bench.corpus.truth
    free = random_documents(fitted)
    own, n_own = model.alone(free[:n_random])
    model.compare(own)
    right = int((own.labels == truth[own.rows]).sum())
    low, high = binomtest(right, n_own).proportion_ci(method="wilson")

    def learnt(budget: int, at_random: bool) -> Fitted:
        judged, others = np.split(free[:budget], [min(50, budget // 3)])
        rows = others if at_random else documents_to_ask(fitted, judged, len(others))
        answers = model.labels(rows)
        model.compare(answers)
        return learn(fitted, answers, model.labels(judged))[0]

    def described() -> Fitted:
        with model.measured("labels") as interview:
            found = ask_phrases(interview, fitted, list(bench.corpus.labels))
        return with_phrases(fitted, attracting(fitted, found))

    def advised() -> Fitted:
        with model.measured("all"):
            return bench.advised(model.adviser, _QUESTIONS)

    guessing = Simulated(bench.corpus, 1 / len(bench.corpus.labels))
    cells = [f"{right / n_own:.0%}, {low:.0%} to {high:.0%} ({n_own})", f"{bench.alone:.1f}"]
    cells += [model.cell(partial(learnt, budget, False)) for budget in budgets]
    cells += [model.cell(partial(learnt, budget, True)) for budget in budgets]
    cells += [f"{bench.accuracy(bench.advised(guessing, _QUESTIONS)):.1f}"]
    cells += [model.cell(described), model.cell(advised)]
    question, alone = model.seconds(), 10_000 * bench.seconds
    asked, both = 10_000 * question, alone + _QUESTIONS * question
    costs = [f"{each:,.0f}" for each in (asked, alone, both)] + [f"1/{asked / both:.0f}"]
    rows = [" | ".join(row) for row in (cells, [f"{question:.1f}", *costs])]
    return f"| {bench.corpus.title} | {rows[0]} |", f"| {bench.corpus.title} | {rows[1]} |"


def model_tables(models: list[Model], budgets: list[int], n_random: int) -> str:
    """Accuracy and cost with a real model, a row per corpus."""
    accuracy = ["set", "model alone (documents)", "`ulr` alone"]
    accuracy += [f"{budget} chosen" for budget in budgets]
    accuracy += [f"{budget} random" for budget in budgets]
    accuracy += [f"{_QUESTIONS} guessed", "phrases", f"both, {_QUESTIONS}"]
    cost = ["set", "a question", "model", "`ulr`", f"`ulr` and {_QUESTIONS} questions", "share"]
    tables = [[f"| {' | '.join(each)} |", "|---" * len(each) + "|"] for each in (accuracy, cost)]
    for model in models:
        for table, row in zip(tables, model_rows(model, budgets, n_random), strict=True):
            table.append(row)
            print(row, file=sys.stderr, flush=True)
    return "\n\n".join("\n".join(table) for table in tables)


def main() -> None:
    """Print the table, and write it into a page."""
    parser = data_parser(__doc__)
    parser.add_argument("--encoder", default="minilm-int8+use-multilingual")
    parser.add_argument("--documents", type=int, default=2000)
    parser.add_argument("--set", action="append", choices=[*DATASETS, "tickets"], dest="sets")
    parser.add_argument("--llm", help="address of a server")
    parser.add_argument("--llm-model", default="model")
    parser.add_argument(
        "--llm-process", type=int, help="its process, whose CPU seconds are counted"
    )
    parser.add_argument("--answers", default="answers", help="folder for the answers of the model")
    parser.add_argument(
        "--kept", action="store_true", help="use kept answers only, and ask nothing"
    )
    parser.add_argument("--budget", type=int, action="append", help="questions; repeatable")
    parser.add_argument("--random", type=int, default=100, help="documents for the model alone")
    options = parser.parse_args()
    benches = [Bench(name, options) for name in options.sets or [*DATASETS, "tickets"]]
    if options.llm:
        models = [Model(bench, options) for bench in benches]
        table = model_tables(models, options.budget or [30, 100, 300], options.random)
    else:
        table = simulated_table(benches, options.budget or [100])
    if options.write:
        replace_part(options.write, "model" if options.llm else "simulated", table)
    print(table)


if __name__ == "__main__":
    main()
