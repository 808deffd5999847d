"""Kill jobs at system calls that write, fill their disk, and replace models that others read.

Each kill is drawn from its seed: a job and the number of the call, before which strace ends it with
SIGKILL. Every output must then be absent, the older one, or that of an undisturbed run; the same command
must complete afterwards with the same content, and leave nothing else. On a small tmpfs (as root), a
full disk must be an error of one sentence that keeps older outputs and leaves nothing.

    python tools/chaos.py --kills 200 --seed 0     # goes on where it was stopped
    python tools/chaos.py --repeat 17              # one kill, whose files stay in the state folder
"""

from __future__ import annotations

import argparse
import io
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import fuzz

WORDS = {
    "sports": "goal match striker coach team penalty".split(),
    "business": "bank profit shares loan market investor".split(),
    "weather": "rain fog snow wind storm sunshine".split(),
}
LABELS = "sports: sports; team; goal, business: business; bank, weather: weather; rain; snow"
OTHERS = "sports, business, weather"  # of the older outputs
CALLS = (
    "write,writev,pwrite64,pwritev,rename,renameat,renameat2,link,linkat,symlink,unlink,unlinkat,mkdir,"
    "mkdirat,rmdir,fsync,fdatasync,truncate,ftruncate,fallocate,chmod,fchmod,copy_file_range,sendfile"
)
PARTIAL = re.compile(r"\..*\.partial")
FIT = ["-l", LABELS, "--encoder"]
SECONDS = 60  # of a job under strace


@dataclass(frozen=True)
class Job:
    """A command, what it writes, and whether older outputs are there before."""

    arguments: list[str]
    outputs: tuple[str, ...]
    replaces: bool = False
    expected: dict[str, bytes] = field(default_factory=dict)
    older: dict[str, bytes] = field(default_factory=dict)
    calls: int = 0  # that write, of an undisturbed run
    n_bytes: int = 0  # of its outputs


def list_jobs(encoder: str) -> dict[str, Job]:
    """The jobs, by name."""
    fit, use = [*FIT, encoder], ["--encoder", encoder]
    both = ("out.csv", "model", "report.html")
    all_three = ["-o", "out.csv", "--save-model", "model", "--report", "report.html"]
    jobs = {
        "new": Job(["classify", "in.csv", *fit, *all_three], both),
        "replace": Job(["classify", "in.csv", *fit, *all_three, "--force"], both, True),
        "cache": Job(["classify", "in.csv", *fit, "--cache", "cache", "-o", "out.csv.gz"], ("out.csv.gz",)),
        "folder": Job(["classify", "several", *fit, "-o", "out/"], ("out",)),
        "update": Job(["update", "model", "in.csv", *use, "--in-place"], ("model",), True),
        "ask": Job(["ask", "in.csv", *fit, "-o", "ask.jsonl", "--force"], ("ask.jsonl",), True),
        "suggest": Job(["suggest", "in.csv", *fit, "--labels-out", "names.yaml"], ("names.yaml",)),
    }  # fmt: skip
    for ending in ("csv", "tsv", "jsonl", "json.gz", "parquet", "xlsx"):
        name = f"out.{ending}"
        jobs[f"predict {ending}"] = Job(
            ["predict", "fitted", "in.csv", *use, "-o", name, "--force"], (name,), True
        )
    return jobs


def write_inputs(folder: Path, n_documents: int) -> str:
    """Word vectors and documents; the name of the encoder."""
    draw = random.Random(0)
    every = [word for words in WORDS.values() for word in words]
    lines = []
    for name, words in WORDS.items():
        topic = [draw.gauss(0, 1) for _ in range(16)]
        for word in (name, *words):
            numbers = (f"{x + draw.gauss(0, 1):.4f}" for x in topic)
            lines.append(" ".join([word, *numbers]))
    (folder / "words.txt").write_text("\n".join(lines) + "\n")
    rows = ["id,text"]
    for i in range(n_documents):
        own = WORDS[draw.choice(list(WORDS))]
        rows.append(f"{i},{' '.join([*draw.choices(own, k=3), *draw.choices(every, k=2)])}")
    (folder / "in.csv").write_text("\n".join(rows) + "\n")
    (folder / "several").mkdir()
    for i in range(3):
        (folder / "several" / f"{i}.csv").write_text("\n".join(rows[: 100 * (i + 1)]) + "\n")
    return f"glove:{folder / 'words.txt'}"


def command(arguments: list[str]) -> Callable[[], None]:
    """A function that runs a command in this process."""
    from ulr.cli import main as run_command

    def work() -> None:
        sys.argv = ["ulr", *arguments]
        run_command()

    return work


def run(folder: Path, arguments: list[str]) -> None:
    """Run a command that must complete."""
    outcome = fuzz.run_forked(command(arguments), folder)
    if outcome.code != 0:
        raise RuntimeError(f"{' '.join(arguments)} ended with {outcome.code}: {outcome.err[-800:]}")


def content(path: Path) -> dict[str, bytes]:
    """The files of an output by their names; without what depends on the time."""
    return {str(each.relative_to(path.parent)): without_times(each) for each in files_of(path)}


def files_of(path: Path) -> list[Path]:
    """A file, or the files of a folder."""
    files = sorted(path.rglob("*")) if path.is_dir() else [path]
    return [each for each in files if each.is_file()]


def without_times(path: Path) -> bytes:
    found = path.read_bytes()
    if path.suffix == ".xlsx":
        with zipfile.ZipFile(io.BytesIO(found)) as archive:
            return archive.read("xl/worksheets/sheet1.xml")
    if path.suffix == ".html":
        return found[-20:]  # a report says when it was made
    return found


def contents(folder: Path, job: Job) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    for name in job.outputs:
        found |= content(folder / name)
    return found


def incomplete_output(folder: Path, job: Job, only_new: bool = False) -> str:
    """The name of an output that is neither as it was nor as an undisturbed run leaves it."""
    for name in job.outputs:
        found = content(folder / name) if (folder / name).exists() else {}
        states = [
            {path: each for path, each in files.items() if Path(path).parts[0] == name}
            for files in (job.expected, job.older)
        ]
        if found not in states[: 1 if only_new else 2]:
            return name
    return ""


def reset(folder: Path, job: Job) -> None:
    """Remove the outputs of a job, or put the older ones in their place."""
    for name in (*job.outputs, "cache"):
        path = folder / name
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
        older = folder / "older" / name
        if job.replaces and older.exists():
            shutil.copytree(older, path) if older.is_dir() else shutil.copy(older, path)


def make_jobs(folder: Path, n_documents: int, wanted: str) -> dict[str, Job]:
    """The jobs, each run once undisturbed, and once to count its calls."""
    from dataclasses import replace

    encoder = write_inputs(folder, n_documents)
    run(folder, ["classify", "in.csv", *FIT, encoder, "--save-model", "fitted"])
    (folder / "older").mkdir()
    others = ["-l", OTHERS, "--encoder", encoder]
    written = ["--save-model", "older/model", "--report", "older/report.html"]
    run(folder, ["classify", "in.csv", *others, *written])
    for ending in ("csv", "tsv", "jsonl", "json.gz", "parquet", "xlsx"):
        run(folder, ["classify", "in.csv", *others, "-o", f"older/out.{ending}"])
    (folder / "older" / "ask.jsonl").write_text("{}\n")
    jobs = {}
    for name, job in list_jobs(encoder).items():
        if not re.search(wanted, name):
            continue
        reset(folder, job)
        older = contents(folder, job)
        run(folder, job.arguments)
        expected = contents(folder, job)
        n_bytes = sum(
            each.stat().st_size for name in job.outputs for each in files_of(folder / name)
        )
        reset(folder, job)
        calls = count_calls(folder, job) if shutil.which("strace") else 0
        reset(folder, job)
        jobs[name] = replace(job, expected=expected, older=older, calls=calls, n_bytes=n_bytes)
    return jobs


def count_calls(folder: Path, job: Job) -> int:
    """Calls that write, by the first thread of a job."""
    trace = folder / ".trace"
    strace(folder, job.arguments, ["-e", f"trace={CALLS}", "-o", str(trace)])
    lines = trace.read_text().splitlines()
    trace.unlink()
    first = lines[0].partition(" ")[0]
    return sum(line.startswith(f"{first} ") and "(" in line for line in lines)


def strace(folder: Path, arguments: list[str], options: list[str]) -> int:
    """The exit code of a command, run in a fork of this process to which strace is attached."""

    def wait_for_strace() -> None:
        signal.alarm(SECONDS)
        os.kill(os.getpid(), signal.SIGSTOP)
        command(arguments)()

    process = os.fork()
    if process == 0:
        for number, name in enumerate((os.devnull, ".stdout", ".stderr")):
            flags = os.O_RDONLY if number == 0 else os.O_WRONLY | os.O_CREAT | os.O_TRUNC
            os.dup2(os.open(folder / name if number else name, flags), number)
        os.chdir(folder)
        try:
            wait_for_strace()
            os._exit(0)
        except SystemExit as end:
            os._exit(end.code if isinstance(end.code, int) else 1)
        except BaseException:
            os._exit(70)
    os.waitpid(process, os.WUNTRACED)
    tracer = ["strace", "-f", "-p", str(process), *options]
    with subprocess.Popen(
        tracer, stderr=subprocess.PIPE, text=True, stdout=subprocess.DEVNULL
    ) as tracing:
        assert tracing.stderr is not None
        while (line := tracing.stderr.readline()) and "attached" not in line:
            pass
        if not line:
            os.kill(process, signal.SIGKILL)
        os.kill(process, signal.SIGCONT)
        tracing.stderr.read()
    _, status = os.waitpid(process, 0)
    if not line:
        raise RuntimeError("strace could not be attached")
    return os.waitstatus_to_exitcode(status)


def kill(folder: Path, jobs: dict[str, Job], seed: int) -> tuple[str, str]:
    """Kill a job at one of its calls, and run it again: what was done, and what is wrong."""
    draw = random.Random(seed)
    name = list(jobs)[seed % len(jobs)]
    job, temporary = jobs[name], Path(os.environ["TMPDIR"])
    number = draw.randrange(1, job.calls + 1)
    what = f"{name} before call {number} of {job.calls}"
    reset(folder, job)
    before = {each.name for each in folder.iterdir()}
    inject = f"inject={CALLS}:signal=SIGKILL:when={number}"
    code = strace(folder, job.arguments, ["-e", f"trace={CALLS}", "-e", inject, "-o", os.devnull])
    if code not in (0, -signal.SIGKILL):
        return what, f"exit code {code}: {(folder / '.stderr').read_text()[-500:]}"
    if output := incomplete_output(folder, job):
        return what, f"{output} is neither the older one nor that of an undisturbed run"
    left = {each.name for each in folder.iterdir()} - before - set(job.outputs) - {"cache"}
    if strange := [each for each in left if not PARTIAL.fullmatch(each)]:
        return what, f"left behind: {strange}"
    reset(folder, job)
    run(folder, job.arguments)
    if contents(folder, job) != job.expected:
        return what, "the run afterwards differs from an undisturbed one"
    left = {each.name for each in folder.iterdir()} - before - set(job.outputs) - {"cache"}
    left |= {each.name for each in temporary.iterdir()}
    return what, f"left behind by the run afterwards: {sorted(left)}" if left else ""


def fill_disks(
    folder: Path, jobs: dict[str, Job], seed: int, n_disks: int
) -> Iterator[tuple[str, str]]:
    """Run every job on a tmpfs that is too small in some way: what was done, and what is wrong."""
    draw, disk = random.Random(seed), folder / "disk"
    disk.mkdir(exist_ok=True)
    for name, job in jobs.items():
        for share in (0.0, *(draw.random() for _ in range(n_disks - 1)))[:n_disks]:
            pages = max(1, int(share * (job.n_bytes / 4096 + 4)))
            reset(folder, job)
            n_old = (
                sum(each.stat().st_size // 4096 + 2 for each in folder.glob("older/**/*"))
                if job.replaces
                else 2
            )
            what = f"{name} on a disk with {pages} free pages"
            subprocess.run(
                ["mount", "-t", "tmpfs", "-o", f"size={(n_old + 400) * 4096}", "none", disk],
                check=True,
            )
            try:
                for each in ("in.csv", "words.txt", "several", "fitted"):
                    (disk / each).symlink_to(folder / each)
                shutil.copytree(folder / "older", disk / "older") if job.replaces else None
                reset(disk, job)
                shutil.rmtree(disk / "older", ignore_errors=True)
                stat = os.statvfs(disk)
                (disk / "ballast").write_bytes(
                    bytes(max(0, (stat.f_bavail - pages) * stat.f_frsize))
                )
                (disk / "tmp").mkdir()
                before = {each.name for each in disk.iterdir()}
                yield what, _disk_problem(folder, disk, job, before)
            finally:
                subprocess.run(["umount", disk], check=True)


def _disk_problem(folder: Path, disk: Path, job: Job, before: set[str]) -> str:
    temporary = os.environ["TMPDIR"]
    os.environ["TMPDIR"] = str(disk / "tmp")
    streams = folder / "streams"
    streams.mkdir(exist_ok=True)
    try:
        outcome = fuzz.run_forked(lambda: (os.chdir(disk), command(job.arguments)()), streams)
    finally:
        os.environ["TMPDIR"] = temporary
    case = fuzz.Case(job.arguments)
    if problem := fuzz.problem_of(case, outcome):
        return problem
    if name := incomplete_output(disk, job, only_new=outcome.code == 0):
        return f"exit code {outcome.code}, and {name} is incomplete"
    left = {each.name for each in disk.iterdir()} - before - set(job.outputs) - {"cache"}
    left |= {each.name for each in (disk / "tmp").iterdir()}
    return f"left behind: {sorted(left)}" if left else ""


def read_while_replaced(folder: Path, encoder: str, seconds: float) -> str:
    """Load a model again and again while it is saved; what is wrong, or how often it was read."""
    from ulr.classifier import load, save

    models = [load(folder / name, encoder=encoder) for name in ("fitted", "older/model")]
    shared = folder / "shared"
    save(models[0], shared)

    def replace_it() -> None:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            for model in models:
                save(model, shared, overwrite=True)

    def read_it() -> None:
        deadline, count = time.monotonic() + seconds, 0
        while time.monotonic() < deadline:
            load(shared, encoder=encoder)
            count += 1
        print(count)

    writer = os.fork()
    if writer == 0:
        code = 1
        try:
            replace_it()
            code = 0
        finally:
            os._exit(code)
    outcome = fuzz.run_forked(read_it, folder)
    _, status = os.waitpid(writer, 0)
    shutil.rmtree(shared)
    if outcome.code or status:
        return f"a model that is replaced could not be read: {outcome.err[-500:]}"
    return f"a model was read {int(outcome.out):,} times while it was replaced"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0, help="seed of the first kill")
    parser.add_argument("--documents", type=int, default=4000)
    parser.add_argument("--jobs", default="", help="pattern of the names of jobs")
    parser.add_argument("--disks", type=int, default=5, help="full disks of each job")
    parser.add_argument("--readers", type=float, default=10, help="seconds to read a model")
    parser.add_argument(
        "--state", type=Path, default=Path(".chaos"), help="folder of state and failing kills"
    )
    parser.add_argument("--repeat", type=int, help="the kill of this seed only")
    given = parser.parse_args()
    base = given.state.resolve()
    base.mkdir(exist_ok=True)
    folder = base / "work"
    subprocess.run(["umount", folder / "disk"], stderr=subprocess.DEVNULL)  # of a stopped run
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    os.environ |= {"TMPDIR": str(base / "tmp"), "COLUMNS": "100"}
    shutil.rmtree(base / "tmp", ignore_errors=True)
    (base / "tmp").mkdir()
    fuzz.import_everything()
    jobs = make_jobs(folder, given.documents, given.jobs)
    if given.repeat is not None:
        what, problem = kill(folder, jobs, given.repeat)
        print(f"{what}: {problem or 'no problem'}")
        return int(bool(problem))
    record = base / f"state-{given.seed}-{given.kills}.json"
    state: dict[str, Any] = {"done": 0, "jobs": {}, "problems": []}
    if record.exists():
        state = json.loads(record.read_text())

    def note(what: str, problem: str, again: str) -> None:
        if problem:
            state["problems"].append({"what": what, "problem": problem, "again": again})
            print(f"{what}: {problem[-1200:]}\n  again: {again}", flush=True)

    counts = Counter(state["jobs"])
    started = time.perf_counter()
    n_kills = given.kills if shutil.which("strace") else 0
    for seed in range(given.seed + state["done"], given.seed + n_kills):
        what, problem = kill(folder, jobs, seed)
        counts[what.partition(" before")[0]] += 1
        again = f"python tools/chaos.py --repeat {seed}"
        if problem:
            kept = base / f"failed-{seed}"
            shutil.rmtree(kept, ignore_errors=True)
            shutil.copytree(folder, kept, symlinks=True)
        note(what, problem, again)
        state |= {"done": seed + 1 - given.seed, "jobs": counts}
        record.write_text(json.dumps(state, indent=1))
    again = f"python tools/chaos.py --kills 0 --seed {given.seed}"
    kills = f"{state['done']} kills from seed {given.seed} at calls that write of {len(jobs)} jobs"
    if not n_kills:
        kills = "nothing was killed, which needs strace" if given.kills else "no kills"
    n_disks, disks = 0, "no disk was filled, which needs root"
    if os.geteuid() == 0 and shutil.which("mount"):
        for what, problem in fill_disks(folder, jobs, given.seed, given.disks):
            n_disks += 1
            note(what, problem, again)
        disks = f"{n_disks} full disks"
    reading = read_while_replaced(folder, f"glove:{folder / 'words.txt'}", given.readers)
    note("readers", "" if "times" in reading else reading, again)
    record.write_text(json.dumps(state, indent=1))
    n_problems = len(state["problems"])
    print(
        f"{kills}, {disks}, {reading}, in {time.perf_counter() - started:.0f} s; {n_problems} problems."
    )
    return int(n_problems > 0)


if __name__ == "__main__":
    sys.exit(main())
