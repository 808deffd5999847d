"""A file of texts in, a file with labels out: time and memory, beside the same job built by hand.

    python -m benchmarks.end_to_end [--rows 1000000] [--write docs/performance.md]
    python -m benchmarks.end_to_end --data DIR [--rows 1000000] [--write docs/performance.md]
    python -m benchmarks.end_to_end --scaling [--most-rows 10000000] [--write docs/performance.md]

The first generates rows of some 20 words, as Parquet and as CSV, and labels them with 10 labels and
the embedded encoder. By hand, polars reads and writes the file, model2vec encodes with the same
weights, and scikit-learn's KMeans starts at the labels. Each runs in a process of its own; CPU time
and peak memory are those of the process, start and imports included. With `--data`, a row is two
questions of Yahoo Answers, drawn at random; a fifth has HTML in it, a tenth a web address.

The second varies the number of rows, of labels and of words, and draws time against size. Files are
generated in a temporary folder: set TMPDIR to one with space, 1 GB for 10,000,000 rows.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

# Other packages are imported on use, so that each process has only its own.

TOPICS = {
    "sports": "match goal team striker coach league football tennis player cup season champion",
    "business": "bank shares market profit investor company trade loan price stock economy sales",
    "weather": "rain storm snow wind cloud sunny forecast temperature cold heat fog flood thunder",
    "health": "doctor hospital patient disease vaccine medicine surgery drug cancer nurse virus",
    "music": "song album guitar concert band singer melody piano orchestra rhythm lyrics tune",
    "food": "recipe kitchen chef bread cheese soup dinner restaurant flavor baking meal sauce",
    "travel": "hotel flight airport tourist beach island passport luggage cruise holiday resort",
    "technology": "computer software internet chip phone robot data network programmer laptop code",
    "politics": "election president parliament senate vote minister campaign government party law",
    "education": "school teacher student university exam lesson classroom homework college pupil",
}
LABELS = list(TOPICS)
_CHUNK = 50_000


class Vocabulary:
    """Words with a long-tailed distribution, some with a comma or a capital, and topic words.

    Attributes
    ----------
    names
        Words that are one token each, for labels.
    """

    def __init__(self) -> None:
        import pyarrow as pa
        from tokenizers import Tokenizer

        draw = np.random.default_rng(0)
        tokens = Tokenizer.from_file(_weights()[1]).get_vocab()
        whole = sorted(token[1:] for token in tokens if re.fullmatch("▁[a-z]{2,}", token))
        pairs = draw.choice(whole, (30_000 - len(whole), 2))
        common = [*draw.permutation(whole).tolist(), *("".join(pair) for pair in pairs)]
        words = [*common, *(f"{word}," for word in common), *(word.title() for word in common)]
        weights = np.concatenate([f / np.arange(1, 30_001) for f in (0.85, 0.08, 0.07)])
        self._cumulative = np.cumsum(weights / weights.sum())
        own = [topic.split() for topic in TOPICS.values()]
        self._starts = np.cumsum([len(words), *map(len, own)])
        self._words = pa.array([*words, *(word for topic in own for word in topic)])
        self.names = common[: len(whole)]

    def texts(self, draw: np.random.Generator, n_texts: int, n_words: int) -> Any:
        """Texts of some `n_words` words each, a quarter of them of the text's topic."""
        import pyarrow as pa
        import pyarrow.compute as pc

        lengths = draw.integers(max(1, n_words * 6 // 10), n_words * 14 // 10 + 1, n_texts)
        topics = np.repeat(draw.integers(len(TOPICS), size=n_texts), lengths)
        words = np.searchsorted(self._cumulative, draw.random(len(topics)))
        places = draw.random(len(topics)) * (self._starts[topics + 1] - self._starts[topics])
        of_topic = self._starts[topics] + places.astype(np.int64)
        words = np.where(draw.random(len(topics)) < 0.25, of_topic, words)
        offsets = pa.array(np.append(0, np.cumsum(lengths)), pa.int32())
        lists = pa.ListArray.from_arrays(offsets, self._words.take(pa.array(words)))
        return pc.binary_join(lists, " ")


def generate(path: Path, n_rows: int, n_words: int = 20) -> None:
    """Write rows of an id and a text as Parquet, CSV or JSON lines."""
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet as pq

    draw, vocabulary = np.random.default_rng(1), Vocabulary()
    chunk = max(1, _CHUNK * 20 // max(20, n_words))
    schema = pa.schema([("id", pa.int64()), ("text", pa.string())])
    with path.open("wb") as file:
        writer = None
        if path.suffix == ".parquet":
            writer = pq.ParquetWriter(file, schema)
        elif path.suffix == ".csv":
            writer = pa.csv.CSVWriter(file, schema)
        for start in range(0, n_rows, chunk):
            size = min(chunk, n_rows - start)
            texts = vocabulary.texts(draw, size, n_words)
            if writer is not None:
                ids = pa.array(np.arange(start, start + size))
                writer.write_table(pa.table([ids, texts], schema=schema))
            else:
                lines = enumerate(texts.to_pylist(), start)
                file.writelines(f'{{"id": {i}, "text": "{text}"}}\n'.encode() for i, text in lines)
        if writer is not None:
            writer.close()


def generate_questions(path: Path, n_rows: int, data: Path) -> None:
    """Write rows of two questions each, some with HTML or an address, as Parquet or CSV."""
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet as pq

    lines = (data / "yahoo/test_titles_60000.jsonl").read_text(encoding="utf-8").splitlines()
    titles = [" ".join(json.loads(line)["text"].split()) for line in lines]
    draw, remains = random.Random(1), ("{} <s>{}</s>", "<p>{}</p><p>{}</p>", "{}<br/>{} &amp;")
    texts = []
    for kind in (draw.random() for _ in range(n_rows)):
        form = draw.choice(remains) if kind < 0.2 else "{} {}"
        if kind > 0.9:
            form = f"{{}} https://example.org/q?id={draw.randrange(16**8):08x} {{}}"
        texts.append(form.format(draw.choice(titles), draw.choice(titles)))
    table = pa.table({"id": range(n_rows), "text": texts})
    write = pq.write_table if path.suffix == ".parquet" else pa.csv.write_csv
    write(table, path)


def _weights() -> list[str]:
    """Files of the token vectors and of the tokenizer."""
    from ulr.encoders.static import FILES

    return [str(file.locate()) for file in FILES]


class Stages:
    """Progress that measures the CPU time of every stage."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._stage, self._since = "Start", 0.0

    def stage(self, name: str, total: int | None = None, unit: str = "documents") -> None:
        """Begin a stage."""
        now = time.process_time()
        self.seconds[self._stage] = self.seconds.get(self._stage, 0.0) + now - self._since
        self._stage, self._since = name, now

    def advance(self, count: int = 1) -> None:
        """Some documents are done."""


def run_ours(source: str, target: str, labels: Sequence[str], _: object) -> dict[str, float]:
    """Label a file; CPU seconds of each stage."""
    from ulr.classifier import Settings
    from ulr.jobs import Documents, Output, classify
    from ulr.tables import open_table

    stages = Stages()
    with open_table(source) as table:
        documents = Documents(table, ("text",))
        classify(documents, Settings(list(labels), encoder="static"), Output(target), stages)
    stages.stage("", None)
    return stages.seconds


def run_by_hand(
    source: str, target: str, labels: Sequence[str], weights: Sequence[str]
) -> dict[str, float]:
    """The same with common tools, and files of token vectors and tokenizer."""
    import polars as pl
    from model2vec import StaticModel
    from safetensors.numpy import load_file
    from sklearn.cluster import KMeans
    from tokenizers import Tokenizer

    stages = Stages()
    stages.stage("Reading", None)
    is_csv = source.endswith(".csv")
    frame = pl.read_csv(source) if is_csv else pl.read_parquet(source)
    stages.stage("Encoding", None)
    vectors = load_file(weights[0])["embedding.weight"].astype(np.float32)
    tokenizer = Tokenizer.from_file(weights[1])
    model = StaticModel(vectors, tokenizer, normalize=True)
    documents = model.encode(frame["text"].to_list(), use_multiprocessing=False)
    anchors = model.encode(list(labels))
    stages.stage("Refining", None)
    means = KMeans(len(labels), init=anchors, n_init=1).fit(documents)
    nearest = means.transform(documents)
    stages.stage("Writing", None)
    near = np.exp(-nearest)
    frame = frame.with_columns(
        label=pl.Series(np.array(labels)[means.labels_].tolist()),
        confidence=pl.Series((near.max(axis=1) / near.sum(axis=1)).round(4)),
    )
    frame.write_csv(target) if is_csv else frame.write_parquet(target)
    stages.stage("", None)
    return stages.seconds


RUNS: dict[str, Callable[..., dict[str, float]]] = {"ulr": run_ours, "by hand": run_by_hand}


@dataclass(frozen=True)
class Figures:
    """CPU and wall seconds, peak memory in MB, and CPU seconds of the stages."""

    cpu: float
    wall: float
    memory: float
    stages: dict[str, float]


def measure(name: str, source: Path, labels: Sequence[str] = LABELS) -> Figures:
    """Run in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / f"out{source.suffix}"
        command = [sys.executable, __file__, "--run", name, str(source), str(target)]
        started = time.perf_counter()
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(json.dumps([list(labels), _weights()]).encode())
            process.stdin.close()
            result = process.stdout.read()
            _, status, used = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise SystemExit(f"{name} failed on {source.name}.")
        seconds = time.perf_counter() - started
    return Figures(
        used.ru_utime + used.ru_stime, seconds, used.ru_maxrss / 1024, json.loads(result)
    )


def compare(folder: Path, n_rows: int, data: Path | None = None) -> str:
    """Both ways on both formats, as a table; rows of questions if there are data."""
    labels = LABELS
    if data is not None:
        labels = (data / "yahoo/labels.txt").read_text(encoding="utf-8").split("\n")[:10]
    lines = [
        f"{n_rows:,} rows, {len(labels)} labels, {os.cpu_count()} cores, load average "
        f"{os.getloadavg()[1]:.0f} at the start.",
        "",
        "| | CPU s | wall s | wall / CPU | peak MB | CPU s by stage |",
        "|---|---|---|---|---|---|",
    ]
    ratios = []
    for ending in ("parquet", "csv"):
        source = folder / f"texts.{ending}"
        if data is None:
            generate(source, n_rows)
        else:
            generate_questions(source, n_rows, data)
        found = {name: measure(name, source, labels) for name in RUNS}
        for name, each in found.items():
            stages = ", ".join(f"{stage.lower()} {s:.1f}" for stage, s in each.stages.items())
            lines.append(
                f"| {name}, {ending} | {each.cpu:.1f} | {each.wall:.1f} | "
                f"{each.wall / each.cpu:.2f} | {each.memory:,.0f} | {stages} |"
            )
            print(lines[-1], flush=True)
        ours, theirs = found["ulr"], found["by hand"]
        ratios.append(
            f"{ending}: {theirs.cpu / ours.cpu:.1f} times the CPU time and "
            f"{theirs.memory / ours.memory:.1f} times the memory"
        )
        source.unlink()
    lines += ["", f"By hand it takes, for {'; for '.join(ratios)}."]
    print(lines[-1])
    return "\n".join(lines)


def scale(folder: Path, most_rows: int) -> tuple[str, dict[str, dict[int, Figures]]]:
    """Rows, labels and words varied one at a time, as a table."""
    names = Vocabulary().names
    rows = [10**power for power in range(4, 8) if 10**power <= most_rows]
    plans: dict[str, list[tuple[int, int, int, Sequence[str]]]] = {
        "rows": [(n, n, 20, LABELS) for n in rows],
        "labels": [(n, 100_000, 20, names[:n]) for n in (4, 10, 100, 1000)],
        "words": [(n, 2000, n, LABELS) for n in (10, 100, 1000, 10_000)],
    }
    found: dict[str, dict[int, Figures]] = {}
    lines = ["| varied | size | CPU s | wall s | peak MB | slope |", "|---|---|---|---|---|---|"]
    for varied, points in plans.items():
        before: tuple[int, float] | None = None
        for size, n_rows, n_words, labels in points:
            source = folder / "texts.parquet"
            generate(source, n_rows, n_words)
            figures = found.setdefault(varied, {})[size] = measure("ulr", source, labels)
            slope = "" if before is None else f"{_slope(*before, size, figures.cpu):.2f}"
            before = size, figures.cpu
            lines.append(
                f"| {varied} | {size:,} | {figures.cpu:.1f} | {figures.wall:.1f} | "
                f"{figures.memory:,.0f} | {slope} |"
            )
            print(lines[-1], flush=True)
    return "\n".join(lines), found


def _slope(size: int, cpu: float, next_size: int, next_cpu: float) -> float:
    return float(np.log(next_cpu / cpu) / np.log(next_size / size))


def draw(found: dict[str, dict[int, Figures]], path: Path) -> None:
    """CPU seconds against size, both logarithmic, with the slope between the last two sizes."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.0, 3.2), layout="constrained")
    axes = figure.subplots(1, len(found), sharey=True)
    for axis, (varied, figures) in zip(axes, found.items(), strict=True):
        sizes, seconds = list(figures), [each.cpu for each in figures.values()]
        axis.loglog(sizes, seconds, marker="o")
        slope = _slope(sizes[-2], seconds[-2], sizes[-1], seconds[-1])
        axis.set_title(f"{varied}: slope {slope:.2f} at the end")
        axis.set_xlabel(varied)
        axis.grid(alpha=0.3, which="both")
    axes[0].set_ylabel("CPU seconds")
    figure.savefig(path, dpi=150)


def main() -> None:
    """Measure, print, and write into a page."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument(
        "--data", type=Path, help="folder with Yahoo Answers, for rows of questions"
    )
    parser.add_argument("--scaling", action="store_true")
    parser.add_argument("--most-rows", type=int, default=1_000_000)
    parser.add_argument("--write", type=Path, help="page to write the tables into")
    parser.add_argument("--run", nargs=3, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.run:
        name, source, target = given.run
        print(json.dumps(RUNS[name](source, target, *json.load(sys.stdin))))
        return
    from reproduction.pages import check_part, replace_part

    part = "end-to-end" if given.data is None else "questions"
    part = "scaling" if given.scaling else part
    if given.write:
        check_part(given.write, part)
    with tempfile.TemporaryDirectory() as folder:
        if given.scaling:
            text, found = scale(Path(folder), given.most_rows)
            if given.write:
                draw(found, given.write.with_name("scaling-end-to-end.png"))
        else:
            text = compare(Path(folder), given.rows, given.data)
    if given.write:
        replace_part(given.write, part, text)


if __name__ == "__main__":
    main()
