"""What several workers bring and cost, beside one process, in one run; and what sampling costs.

    python -m benchmarks.cluster [--rows 1000000] [--files 20] [--rounds 3] [--write docs/scaling.md]
    python -m benchmarks.cluster --end-to-end [--rows 1000000] [--files 20] [--write docs/scaling.md]
    python -m benchmarks.cluster --data DIR [--write docs/scaling.md]

The first generates short texts, labels them with the embedded encoder in one process that may use
one core, and in two worker processes, both local ones and Dask's, and once more with a worker that
is killed. The outputs are compared. The second is one job over the texts with two local processes,
stage by stage. The third measures accuracy by the size of the sample that the model is fitted on;
DIR holds the datasets, see docs/reproduce.md.

The files are in a temporary folder (TMPDIR): the texts and two outputs, some 430 bytes a row; with
--end-to-end the texts and one output, some 260 bytes a row.
"""

from __future__ import annotations

import argparse
import filecmp
import json
import multiprocessing
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from benchmarks.measuring import markdown, publish
from reproduction.datasets import DATASETS
from reproduction.documents import read_documents
from reproduction.names import label_set
from ulr.classifier import Settings, encode, fit
from ulr.distributed import Workers, classify_partitions, find_partitions, open_first, open_workers
from ulr.encoders import load_encoder
from ulr.jobs import Documents, Output, classify
from ulr.tables import open_table

TOPICS = {
    "sports": "match goal team striker coach league football tennis player cup season champion",
    "business": "bank shares market profit investor company trade loan price stock economy sales",
    "weather": "rain storm snow wind cloud sunny forecast temperature cold heat fog flood thunder",
    "health": "doctor hospital patient disease vaccine medicine surgery drug cancer nurse virus",
}
LABELS = list(TOPICS)
FIT_SAMPLE = 100_000
SINGLE = "one process on one core"
RUNS = {
    SINGLE: ("", False),
    "two local processes": ("local", False),
    "two local processes, one killed": ("local", True),
    "two Dask workers": ("dask", False),
}
STAGES = {
    "Sampling": "read, hash and sample",
    "Encoding": "encode and fit the sample, in one process",
    "Calibrating": "calibrate, in one process",
    "Labelling": "read, encode, predict and write",
}
SAMPLES = (1_000, 2_000, 4_000, 10_000, 20_000, 40_000, 100_000, 200_000)
GENERATED = 500_000
SEEDS = 5


def generated_texts(n_rows: int) -> Iterator[tuple[str, str]]:
    """Labels and short texts: words of a topic among words of a long-tailed vocabulary."""
    draw = random.Random(0)
    letters = "etaoinshrdlucmfwypvbgk"
    words = ["".join(draw.choices(letters, k=draw.randint(2, 9))) for _ in range(30_000)]
    weights = np.cumsum(1 / np.arange(1, len(words) + 1)).tolist()
    topics = {name: text.split() for name, text in TOPICS.items()}
    for _ in range(n_rows):
        label = draw.choice(LABELS)
        text = draw.choices(words, cum_weights=weights, k=draw.randint(3, 10))
        text += draw.choices(topics[label], k=draw.randint(1, 5))
        draw.shuffle(text)
        yield label, " ".join(text)


def generate(folder: Path, n_rows: int, n_files: int) -> None:
    """Generated texts in files of the same size."""
    texts = enumerate(generated_texts(n_rows))
    for number in range(n_files):
        with (folder / f"part-{number:04}.jsonl").open("w") as file:
            for row, (_, text) in islice(texts, n_rows // n_files):
                file.write(json.dumps({"id": row, "text": text}) + "\n")


@dataclass
class Watch:
    """Progress that measures stages, and calls a function after the first labelled file.

    Attributes
    ----------
    cpu
        CPU time of all processes so far.
    action
        Called once.
    seconds, work
        Wall and CPU time of every stage.
    """

    cpu: Callable[[], float]
    action: Callable[[], None] | None = None
    seconds: dict[str, float] = field(default_factory=dict)
    work: dict[str, float] = field(default_factory=dict)
    _stage: str = ""
    _since: tuple[float, float] = (0.0, 0.0)

    def stage(self, name: str, total: int | None = None, unit: str = "documents") -> None:
        """Begin a stage."""
        now = time.perf_counter(), self.cpu()
        if self._stage:
            for each, start, end in zip((self.seconds, self.work), self._since, now, strict=True):
                each[self._stage] = each.get(self._stage, 0.0) + end - start
        self._stage, self._since = name, now

    def advance(self, count: int = 1) -> None:
        """Some documents are done."""
        if self._stage == "Labelling" and self.action is not None:
            action, self.action = self.action, None
            action()

    def figures(self, memory: float) -> Figures:
        """What was measured."""
        self.stage("", None)
        last = "Labelling" if "Labelling" in self.seconds else "Writing"
        return Figures(sum(self.seconds.values()), self.seconds[last], self.work[last], memory)


@dataclass(frozen=True)
class Figures:
    """Seconds in all and of the labelling, CPU seconds of the labelling, and memory in MB."""

    seconds: float
    labelling: float
    labelling_cpu: float
    memory: float


def new_settings(fit_sample: int = FIT_SAMPLE) -> Settings:
    """The settings of all runs."""
    return Settings(LABELS, encoder="static", fit_sample=fit_sample)


def run_single(source: str, output: str, results: Any) -> None:
    """One process on one core."""
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    watch = Watch(time.process_time)
    with open_table(source) as table:
        documents = Documents(table, ("text",))
        classify(documents, new_settings(), Output(output, force=True), watch)
    results.put(watch.figures(peak_memory(os.getpid())))


def run_workers(
    source: Path, output: Path, workers: Workers, pids: Callable[[], list[int]], kill: bool
) -> Figures:
    """Several workers; optionally one of them is killed after the first labelled file."""
    lost: list[float] = []

    def kill_one() -> None:
        lost.append(cpu_seconds(pids()[0]))
        os.kill(pids()[0], signal.SIGKILL)

    def cpu() -> float:
        return time.process_time() + sum(map(cpu_seconds, pids())) + sum(lost)

    files = find_partitions([str(source)])
    watch = Watch(cpu, kill_one if kill else None)
    first = Documents(open_first(files), ("text",))
    classify_partitions(files, first, new_settings(), str(output), workers, watch)
    return watch.figures(max(map(peak_memory, pids())))


def cpu_seconds(pid: int) -> float:
    """CPU time of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def peak_memory(pid: int) -> float:
    """Most memory that a process has had, in MB."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) / 1000


def same_files(one: Path, other: Path) -> bool:
    """Whether two folders hold the same outputs."""
    names = [path.name for path in one.glob("part-*")]
    return filecmp.cmpfiles(one, other, names, shallow=False)[0] == names


def measure_workers(n_rows: int, n_files: int, n_rounds: int) -> str:
    """The table of one process and two workers, which take turns."""
    runs: dict[str, list[Figures]] = {title: [] for title in RUNS}
    with tempfile.TemporaryDirectory() as name:
        source = Path(name, "in")
        source.mkdir()
        generate(source, n_rows, n_files)
        for number in range(n_rounds):
            folder = Path(name, f"round-{number}")
            folder.mkdir()
            for title, found in runs.items():
                found.append(_measure(title, source, folder / title))
                assert same_files(folder / SINGLE, folder / title), title
                if title != SINGLE:
                    shutil.rmtree(folder / title)
            shutil.rmtree(folder)
    lines = []
    for title, found in runs.items():
        ratios = [
            one.labelling_cpu / each.labelling_cpu
            for one, each in zip(runs[SINGLE], found, strict=True)
        ]
        n_cores = 1 if title == SINGLE else 2
        seconds, labelling, cpu, memory = (
            median(getattr(each, name) for each in found)
            for name in ("seconds", "labelling", "labelling_cpu", "memory")
        )
        lines.append(
            f"| {title} | {seconds:.1f} | {labelling:.1f} | {n_rows / labelling / n_cores:,.0f} | "
            f"{1e6 * cpu / n_rows:.1f} | {median(ratios):.2f} ({min(ratios):.2f}–{max(ratios):.2f}) | "
            f"{memory:.0f} MB |"
        )
    return (
        f"{n_rows:,} generated texts in {n_files} JSONL files, embedded encoder, fitted on "
        f"{FIT_SAMPLE:,}; {os.cpu_count()} cores; medians of {n_rounds} rounds. All runs wrote the "
        "same files.\n\n| | seconds | of it labelling | texts/s per core | labelling, CPU s per "
        "million texts | efficiency | peak memory of a worker |\n|---|---|---|---|---|---|---|\n"
        + "\n".join(lines)
    )


def _measure(title: str, source: Path, output: Path) -> Figures:
    if title == SINGLE:
        output.mkdir()
        context = multiprocessing.get_context("spawn")
        results = context.SimpleQueue()
        process = context.Process(target=run_single, args=(str(source), str(output), results))
        process.start()
        figures: Figures = results.get()
        process.join()
        return figures
    engine, kill = RUNS[title]
    if engine == "local":
        with open_workers("local", 2) as workers:
            return run_workers(source, output, workers, local_pids, kill)
    from distributed import LocalCluster

    cluster = LocalCluster(
        n_workers=2, processes=True, threads_per_worker=1, dashboard_address=":0"
    )
    with cluster, open_workers(cluster.scheduler_address) as workers:
        return run_workers(
            source, output, workers, lambda: [each.pid for each in cluster.workers.values()], kill
        )


def local_pids() -> list[int]:
    """The local worker processes."""
    return [process.pid or 0 for process in multiprocessing.active_children()]


def measure_end_to_end(n_rows: int, n_files: int) -> str:
    """The table of the stages of one job with two local processes."""
    with tempfile.TemporaryDirectory() as name, open_workers("local", 2) as workers:
        source, output = Path(name, "in"), Path(name, "out")
        source.mkdir()
        generate(source, n_rows, n_files)

        def cpu() -> float:
            return time.process_time() + sum(map(cpu_seconds, local_pids()))

        watch = Watch(cpu)
        files = find_partitions([str(source)])
        first = Documents(open_first(files), ("text",))
        classify_partitions(files, first, new_settings(200_000), str(output), workers, watch)
        worker = watch.figures(max(map(peak_memory, local_pids()))).memory
        bytes_in, bytes_out = (
            sum(path.stat().st_size for path in folder.glob("part-*"))
            for folder in (source, output)
        )
    lines = [
        f"| {STAGES.get(stage, stage.lower())} | {seconds:.1f} | {watch.work[stage]:.1f} |"
        for stage, seconds in watch.seconds.items()
    ]
    total, work = sum(watch.seconds.values()), sum(watch.work.values())
    lines.append(f"| all, {n_rows / total:,.0f} texts/s | {total:.1f} | {work:.1f} |")
    return (
        f"{n_rows:,} generated texts in {n_files} JSONL files, embedded encoder, fitted on 200,000; "
        f"two local processes on {os.cpu_count()} cores. {bytes_in / 1e9:.2f} GB in, "
        f"{bytes_out / 1e9:.2f} GB out; peak memory {worker:.0f} MB of a worker, "
        f"{peak_memory(os.getpid()):.0f} MB of the driver.\n\n"
        "| stage | seconds | CPU s |\n|---|---|---|\n" + "\n".join(lines)
    )


def measure_samples(data: Path) -> str:
    """The table of the accuracy that is lost, by the size of the sample."""
    rows = []
    for name in DATASETS:
        titles = name == "yahoo"  # of these, all titles are there, but only some of the answers
        found = read_documents(name, data, variant="titles" if titles else "full")
        truth = np.array(found.labels, dtype=object)[found.truth]
        title = f"{found.dataset.title}, {'titles, ' if titles else ''}{found.rows:,}"
        rows.append(sampling_loss(title, found.texts, truth, label_set(name)))
        print(rows[-1], file=sys.stderr)
    labels, texts = zip(*generated_texts(GENERATED), strict=True)
    truth = np.array(labels, dtype=object)
    rows.append(sampling_loss(f"generated, {GENERATED:,}", list(texts), truth, LABELS))
    table = markdown(["texts", "fitted on all", *(f"{size:,}" for size in SAMPLES)], rows)
    return (
        f"Accuracy in percent, and what is lost by a fit on so many texts; embedded encoder, mean of "
        f"{SEEDS} samples, in brackets the largest minus the smallest.\n\n{table}"
    )


def sampling_loss(title: str, texts: list[str], truth: Any, labels: Any) -> list[str]:
    """A row of the table; all texts are predicted by each model."""
    encoded = encode(texts, load_encoder("static"))

    def accuracy(size: int | None, seed: int) -> float:
        fitted = fit(
            encoded, Settings(labels, encoder="static", fit_sample=size, random_state=seed)
        )
        assert fitted.predictions is not None
        return 100 * float((fitted.names[fitted.predictions.labels] == truth).mean())

    whole = accuracy(None, 0)
    cells = [title, f"{whole:.2f}"]
    for size in SAMPLES:
        found = [accuracy(size, seed) for seed in range(SEEDS)] if size < len(texts) else []
        cells.append(f"{np.mean(found) - whole:+.2f} ({np.ptp(found):.2f})" if found else "")
    return cells


def main() -> None:
    """Measure, print, and write."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--files", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--end-to-end", action="store_true")
    parser.add_argument("--data", type=Path)
    parser.add_argument("--write", type=Path)
    options = parser.parse_args()
    if options.data is not None:
        part, text = "sampling", measure_samples(options.data)
    elif options.end_to_end:
        part, text = "end to end", measure_end_to_end(options.rows, options.files)
    else:
        part, text = "workers", measure_workers(options.rows, options.files, options.rounds)
    publish(text, options.write, part)


if __name__ == "__main__":
    main()
