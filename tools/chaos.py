"""Kill jobs at random moments and compare what they leave with an undisturbed run.

`ulr classify` and `predict` run as processes, which are killed (SIGKILL) after a random time. The
output must then be absent or identical to that of an undisturbed run, nothing else may be left next
to it, and the same command must complete afterwards with the same bytes.

    python tools/chaos.py --kills 60 --seed 0
"""

from __future__ import annotations

import argparse
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

WORDS = {
    "sports": "goal match striker coach team penalty".split(),
    "business": "bank profit shares loan market investor".split(),
    "weather": "rain fog snow wind storm sunshine".split(),
}
LABELS = (
    "sports: sports; team; goal, business: business; bank; profit, weather: weather; rain; snow"
)
SECONDS = 120  # of one command


@dataclass(frozen=True)
class Job:
    """A command, what it writes, and how long it takes undisturbed."""

    name: str
    arguments: list[str]
    outputs: tuple[str, ...]
    expected: dict[str, bytes]
    seconds: float


def write_inputs(folder: Path, n_documents: int) -> str:
    """Word vectors and documents; the name of the encoder."""
    draw = random.Random(0)
    every = [word for words in WORDS.values() for word in words]
    with (folder / "words.txt").open("w") as file:
        for name, words in WORDS.items():
            topic = [draw.gauss(0, 1) for _ in range(16)]
            for word in (name, *words):
                print(word, *(f"{x + draw.gauss(0, 1):.4f}" for x in topic), file=file)
    with (folder / "in.csv").open("w") as file:
        print("id,text", file=file)
        for i in range(n_documents):
            own = WORDS[draw.choice(list(WORDS))]
            print(
                f"{i},{' '.join([*draw.choices(own, k=3), *draw.choices(every, k=2)])}", file=file
            )
    return f"glove:{folder / 'words.txt'}"


def content(folder: Path, outputs: tuple[str, ...]) -> dict[str, bytes]:
    """The files of some outputs, by their paths."""
    found = {}
    for name in outputs:
        path = folder / name
        files = sorted(path.rglob("*")) if path.is_dir() else [path]
        found |= {
            str(each.relative_to(folder)): each.read_bytes() for each in files if each.is_file()
        }
    return found


def start(folder: Path, arguments: list[str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "ulr", *arguments],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def run(folder: Path, arguments: list[str]) -> float:
    """Seconds of a command that completes."""
    started = time.perf_counter()
    with start(folder, arguments) as process:
        _, errors = process.communicate(timeout=SECONDS)
    if process.returncode != 0:
        raise RuntimeError(f"{arguments[0]} failed: {errors.decode()}")
    return time.perf_counter() - started


def make_jobs(folder: Path, encoder: str) -> list[Job]:
    """The jobs, each run once undisturbed."""
    task = ["in.csv", "-t", "text", "--encoder", encoder]
    run(folder, ["classify", *task, "-l", LABELS, "--save-model", "fitted"])
    given = {
        "classify": (
            ["-l", LABELS, "-o", "out.csv.gz", "--save-model", "model"],
            ("out.csv.gz", "model"),
        ),
        "predict": (["-o", "predicted.jsonl"], ("predicted.jsonl",)),
    }
    jobs = []
    for name, (options, outputs) in given.items():
        arguments = [name, *(["fitted"] if name == "predict" else []), *task, *options]
        seconds = run(folder, arguments)
        jobs.append(Job(name, arguments, outputs, content(folder, outputs), seconds))
        remove(folder, outputs)
    return jobs


def remove(folder: Path, outputs: tuple[str, ...]) -> None:
    for name in outputs:
        path = folder / name
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)


def disturb(folder: Path, job: Job, draw: random.Random) -> tuple[str, str]:
    """Kill a job at a random moment and run it again: what happened, and what is wrong."""
    before = {each.name for each in folder.iterdir()}
    with start(folder, job.arguments) as process:
        time.sleep(draw.uniform(0.1, 1.05) * job.seconds)
        process.kill()
        process.communicate(timeout=SECONDS)
    event = "completed" if process.returncode == 0 else "killed"
    left = {each.name for each in folder.iterdir()} - before - set(job.outputs)
    # A folder has a name while it is filled, so that one may be left; files are never.
    if any(not (folder / name).is_dir() for name in left):
        return event, f"left behind: {sorted(left)}"
    for name in left:
        shutil.rmtree(folder / name)
    for name in job.outputs:
        found = content(folder, (name,)) if (folder / name).exists() else {}
        if found and found != {each: job.expected.get(each) for each in found}:
            return event, f"{name} differs from an undisturbed run"
        if found and (folder / name).is_dir() and len(found) != 2:
            return event, f"{name} is not complete"
    remove(folder, job.outputs)
    run(folder, job.arguments)
    same = content(folder, job.outputs) == job.expected
    remove(folder, job.outputs)
    return event, "" if same else "the run afterwards differs from an undisturbed one"


def run_kills(
    kills: int, seed: int = 0, n_documents: int = 20_000
) -> Iterator[tuple[str, str, str]]:
    """Name of the job, what happened and what is wrong, for some kills."""
    draw = random.Random(seed)
    with tempfile.TemporaryDirectory(prefix="ulr-chaos-") as root:
        folder = Path(root)
        jobs = make_jobs(folder, write_inputs(folder, n_documents))
        for number in range(kills):
            job = jobs[number % len(jobs)]
            yield job.name, *disturb(folder, job, draw)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    events: Counter[tuple[str, str]] = Counter()
    n_problems = 0
    for number, (name, event, problem) in enumerate(run_kills(arguments.kills, arguments.seed), 1):
        events[name, event] += 1
        if problem:
            n_problems += 1
            print(f"kill {number}, {name}: {problem}", flush=True)
    counts = ", ".join(f"{name} {event} {count}" for (name, event), count in sorted(events.items()))
    print(f"{arguments.kills} kills ({counts}); {n_problems} problems.")
    return int(n_problems > 0)


if __name__ == "__main__":
    sys.exit(main())
