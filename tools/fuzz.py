"""Run the command line and the page on generated bad and odd inputs.

Each case is drawn from its seed: files of documents, labels, possibly a model folder, options, or a
series of requests to the page. A command must end with exit code 0, 1 or 2 in bounded time and memory,
print no traceback, no warning of Python and no message of several lines, and leave a complete output or
the one that was there. The page must answer with a status below 500 and an error of one sentence.

    python tools/fuzz.py --count 10000 --seed 0     # goes on where it was stopped
    python tools/fuzz.py --repeat 4711              # one case, whose files stay in the state folder

Cases run in forks of a process that has everything imported, so that an abort or a hang is one case's
only; every 50th runs as a process of its own.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import json
import os
import pkgutil
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import ulr
from fuzz_inputs import (
    TABLES,
    changed_model,
    damaged,
    label_argument,
    table_file,
    text,
    valid_table,
    value,
    write_word_vectors,
)
from ulr.errors import UlrError
from ulr.tables import TableFormat, open_table

SECONDS = 20  # of one case, of the processor
WAIT = 120  # seconds until a case has ended, on a machine that does other things
MEGABYTES = 1500  # of one case
EVERY = 50  # cases, one of which runs as a process of its own
ERROR_CHARACTERS = 1300  # of a line

# Options

NUMBERS = [*"0 1 2 -1 3 1e9 nan inf 1e309 x 99999999999999999999 1.5".split(), ""]
NAMES = ["x", "", "a" * 300, "/dev/full", "/dev/full/x", "/proc/x"]
CLASSIFIER = {
    "--method": ["auto", "ulr", "none", "discriminant", "best", ""],
    "--distance": ["cosine", "l2", "dot", "jensen-shannon", "x"],
    "--prior": ["balanced", "1,1,1", "1,1", "1e308,1e308", "nan,1", "0,1", "-1,2", "x", ""],
    "--max-iter": NUMBERS,
    "--seed": NUMBERS,
    "--strong-share": ["auto", "budget", "0.5", *NUMBERS],
    "--multi": ["0.5", "1.8", *NUMBERS],
    "--path-threshold": ["0.9", *NUMBERS],
    "--fit-sample": ["all", "50", *NUMBERS],
    "--none": ["0.1", "0.9", *NUMBERS],
    "--none-label": ["other", "sports", ""],
    "--template": ["about {}", "no braces", "", "{} {}", "{0}", "{}" * 1000],
    "--extra-labels": ["food", "sports", ",", "stackexchange", ""],
}
INPUT = {
    "--encoding": ["utf-8", "latin-1", "utf-16", "idna", "utf-7", "rot13", "x", ""],
    "--delimiter": [";", ",", "\t", "ab", '"', "", "é", "\n"],
    "--format": [*TABLES, "xls", ""],
    "--sheet": ["Sheet1", "x", ""],
    "-t": ["text", "id", "none", "c1", "", "label"],
    "--n-jobs": NUMBERS,
    "--cache": ["cache", *NAMES],
}
FLAGS = ["--no-header", "--json", "--force", "--lines"]
ENDINGS = ["csv", "tsv", "jsonl", "json", "parquet", "xlsx", "csv.gz", "txt", "dat", ""]
# What a command has beside files, the encoder and the options above.
COMMANDS: dict[str, dict[str, list[str]]] = {
    "classify": {
        **CLASSIFIER,
        "--prefix": ["", "x_", "a,b", "\n", "=", "x" * 5000],
        "--save-model": ["saved", *NAMES],
        "--report": ["report.html", "x.txt", *NAMES],
        "--part": ["0/1", "1/1", "2/1", "x", "1/0", "-1/2", ""],
    },
    "predict": {"--prefix": ["", "x_", "\n"]},
    "update": {"--save-model": ["saved", *NAMES], "--prefix": ["", "x_"]},
    "evaluate": CLASSIFIER,
    "report": {**CLASSIFIER, "--truth": ["truth", "text", "none", ""]},
    "audit": CLASSIFIER,
    "ask": {**CLASSIFIER, "-n": NUMBERS},
    "suggest": {**CLASSIFIER, "--labels-out": ["out.yaml", "out.txt", *NAMES]},
}
COMMAND_WEIGHTS = {"classify": 6, "predict": 4, "evaluate": 2}
WITH_OUTPUT = ("classify", "predict", "update", "ask")


@dataclass(frozen=True)
class Case:
    """A command with its files; or the seed of requests to the page, without arguments."""

    arguments: list[str]
    source: str = ""
    output: Path | None = None
    stdin: bytes = b""
    before: bytes | None = None  # what the output was


def make_case(seed: int, folder: Path, encoder: str, model: Path) -> Case:
    """The case of a seed; its files are written into a folder."""
    draw = random.Random(seed)
    if draw.random() < 0.12:
        return Case([])
    parts = ["table", "labels", "model", "options", "output", "examples", "files"]
    odd = set(draw.sample(parts, draw.choice([0, 1, 1, 1, 2])))
    source = table_file(draw, folder, "in", "table" in odd)
    stdin = b""
    name = draw.choice([each for each in COMMANDS for _ in range(COMMAND_WEIGHTS.get(each, 1))])
    given = [source]
    if "files" in odd:
        given, stdin = several_files(draw, folder, source)
    arguments = [name]
    if name in ("predict", "update"):
        arguments += [changed_model(draw, folder, model) if "model" in odd else str(model)]
        if name == "predict" and draw.random() < 0.15:
            given = [draw.choice([text(draw) + " goal x", "goal", "é" * 5000, "<p>", "a\u2028b c"])]
        arguments += given
    else:
        labels = label_argument(draw, folder, "labels" in odd)
        if name == "audit" and "labels" not in odd:  # which compares phrases
            labels = "sports: goal; team; match, weather: rain; storm, bank"
        arguments += [*given, "-l", labels]
    arguments += ["--encoder", encoder]
    if name == "evaluate":
        arguments += ["--truth", draw.choice(["truth", "truth", "truth", "text", "id", "none"])]
    if "options" in odd:
        options = {**INPUT, **COMMANDS[name]}
        for option in draw.sample(list(options), draw.choice([1, 2, 3])):
            value = draw.choice(options[option])
            local = option in ("--cache", "--save-model", "--report", "--labels-out")
            arguments += [option, str(folder / value) if local and value[:1] not in "/" else value]
        arguments += [each for each in FLAGS if draw.random() < 0.15]
    if "examples" in odd and name not in ("predict", "update", "audit"):
        option = draw.choice(["--examples", "--examples", "--extra-texts"])
        arguments += [option, table_file(draw, folder, "examples", True)]
    output, before = None, None
    if name == "report":
        output = folder / draw.choice(["out.html", "out.html", "out.txt", "x/out.html"])
    elif name in WITH_OUTPUT and draw.random() < 0.7:
        ending = draw.choice(ENDINGS if "output" in odd else ENDINGS[:7])
        output = folder / (f"out.{ending}" if ending else "out")
    if output is not None:
        arguments += ["-o", str(output)]
        if "output" in odd:
            before = odd_output(draw, output)
    if given != [source]:
        source = ""
    arguments = [each.replace("\0", "") for each in arguments]  # which no argument can have
    return Case(arguments, source, output, stdin, before)


def several_files(draw: random.Random, folder: Path, source: str) -> tuple[list[str], bytes]:
    """Standard input, a folder, a pattern, a pipe, or the same or another file twice."""
    kind = draw.choice(["-", "folder", "pattern", "fifo", "twice", "two", "missing", "dangling"])
    if kind == "-":
        return ["-"], Path(source).read_bytes()
    if kind in ("folder", "pattern"):
        inner = folder / "several"
        inner.mkdir()
        for i in range(draw.randrange(4)):
            table_file(draw, inner, f"in{i}", draw.random() < 0.3)
        return [str(inner) if kind == "folder" else str(inner / "*.*")], b""
    if kind == "fifo":
        pipe = folder / "pipe.csv"
        os.mkfifo(pipe)
        subprocess.Popen(["timeout", "5", "cp", source, str(pipe)])  # ends when it is read, or not
        return [str(pipe)], b""
    if kind == "dangling":
        (folder / "link.csv").symlink_to(folder / "nothing")
        return [str(folder / "link.csv")], b""
    other = table_file(draw, folder, "in2", False) if kind == "two" else source
    return [source, str(folder / "none.csv") if kind == "missing" else other], b""


def odd_output(draw: random.Random, output: Path) -> bytes | None:
    """Something under the name of the output; its content if it is a file."""
    kind = draw.choice(["file", "file", "folder", "link", "fifo", "none"])
    if not output.parent.is_dir() or kind == "none":
        return None
    if kind == "folder":
        output.mkdir()
    elif kind == "fifo":
        os.mkfifo(output)
    elif kind == "link":
        output.symlink_to(output.parent / "nowhere" / "x")
    else:
        output.write_bytes(b"the output before")
        return b"the output before"
    return None


# The page


def ask_page(seed: int, encoder: Any, model: Any) -> None:
    """Send requests to a page; raises for an answer that must not be."""
    from starlette.testclient import TestClient

    from ulr.web import ServerSettings, create_app

    draw = random.Random(seed)
    draw.random()  # that decided for the page
    token = draw.choice([None, None, None, "secret"])
    settings = ServerSettings(
        encoder=encoder, model=model, max_upload=1 << 18, max_rows=500, token=token
    )
    headers = {"Content-Type": "application/json"}
    if token and draw.random() < 0.9:
        headers["Authorization"] = "Bearer secret"
    app = create_app(settings)
    with TestClient(
        app, base_url="http://localhost", headers=headers, raise_server_exceptions=False
    ) as client:
        ending = draw.choice(list(TABLES))
        content = (
            damaged(draw, TABLES[ending](draw))
            if draw.random() < 0.4
            else valid_table(draw, ending)
        )
        name = draw.choice(
            [f"in.{ending}", f"in.{ending}", "", "../../x.csv", "a\nb.csv", "x" * 299, "\0"]
        )
        begun = client.post("/api/sessions", params={"name": name}, content=content)
        check_answer(begun, "upload")
        session = (
            begun.json()["id"] if begun.status_code == 201 else draw.choice(["x", "..", "%00", "é"])
        )
        for _ in range(draw.randrange(3, 9)):
            request = page_request(draw, f"/api/sessions/{session}")
            check_answer(client.request(**request), str(request)[:300])
            for _ in range(200):
                state = client.get(f"/api/sessions/{session}/job", headers=headers)
                if state.status_code != 200 or state.json()["state"] not in ("waiting", "running"):
                    break
                time.sleep(0.01)
            error = state.json().get("error")
            if error and ("log has the details" in error or not error.isprintable()):
                raise AssertionError(f"a job ended with {error!r} after {str(request)[:300]}")


def page_request(draw: random.Random, path: str) -> dict[str, Any]:
    """A request that is right in most parts."""
    labels: Any = [{"name": each} for each in ("sports", "business", "weather")]
    if draw.random() < 0.4:
        odd = draw.choice(
            [
                text(draw),
                "",
                "a" * 190,
                "=1",
                "\ud800".encode(errors="replace").decode(),
                "\0",
                "\x1b[",
            ]
        )
        labels = draw.choice(
            [
                [],
                labels[:1],
                [*labels, {"name": odd}],
                [*labels, labels[0]],
                [{"name": odd, "phrases": [odd]}, *labels],
                {},
                None,
                "x",
                [{"id": draw.choice([0, -1, 10**30]), **labels[0]}],
            ]
        )
    columns = draw.choice(
        [["text"], ["text"], ["text"], ["id", "text"], [], ["none"], "text", None, [""]]
    )
    row = draw.choice([1, 2, 0, -1, 10**20, "x", 3])
    junk: Any = value(draw)
    run = {
        "columns": columns,
        "labels": labels,
        "none_share": draw.choice([None, None, 0.2, 0, 1, "x", 1e308]),
    }
    if draw.random() < 0.2:
        run |= {draw.choice(["encoder", "columns", "labels", "x"]): "x"}
    requests: list[tuple[str, str, Any]] = [
        *[("POST", path + "/run", run)] * 5,
        ("POST", path + "/run", junk),
        ("POST", path + "/corrections", {"rows": [row, 1], "label": draw.choice(["sports", None, "x", "none of these", 1])}),
        ("POST", path + "/corrections", {"rows": junk, "label": "sports"}),
        ("POST", path + "/undo", None),
        ("POST", path + "/suggestions", None),
        ("GET", path + draw.choice(["", "/view", "/suggestions", "/job", "/x", "/../..", "/%2e%2e/%2e%2e/etc/passwd"]), None),
        ("GET", f"{path}/documents/{row}{draw.choice(['', '/why'])}", None),
        ("GET", f"{path}/download/{draw.choice(['table', 'labels', 'examples', 'model', 'report', 'x'])}"
                f"?format={draw.choice(['csv', 'xlsx', 'jsonl', 'parquet', 'x'])}", None),
        ("DELETE", path + draw.choice(["/job", "/job", ""]), None),
        ("POST", "/api/labels", {"text": draw.choice(["a, b", "[" * 9000, text(draw), "a: &a [b]\nc: *a", ""]),
                                 "name": draw.choice([None, "x.yaml", "x.json", "x.csv", "../x.txt", "x"])}),
        ("POST", "/api/predict", {"texts": draw.choice(["goal", ["goal", ""], [], junk, ["x"] * 1001, "a" * 100_001])}),
        (draw.choice(["GET", "PUT", "TRACE", "PATCH"]), draw.choice(["/", "/api/status", "/static/../x", "/api"]), None),
    ]  # fmt: skip
    method, url, body = draw.choice(requests)
    request: dict[str, Any] = {"method": method, "url": url}
    if method == "POST" and draw.random() < 0.05:
        request["content"] = draw.choice([b"{", b"[" * 50_000, b"\xff", b"1" * 5000, b"NaN", b""])
    elif body is not None:
        request["content"] = json.dumps(body).encode()
    if draw.random() < 0.1:
        request["headers"] = draw.choice(
            [{"host": "evil.example"}, {"origin": "http://evil.example"}, {"cookie": "ulr_token=é;=\x01".encode()},
             {"sec-fetch-site": "cross-site"}, {"content-type": "x"}, {"content-encoding": "gzip"}, {"host": "[::1"},
             {"range": "bytes=-1"}, {"authorization": "Bearer \xff".encode("latin-1")}]
        )  # fmt: skip
    return request


def check_answer(answer: Any, what: str) -> None:
    if answer.status_code >= 500:
        raise AssertionError(f"status {answer.status_code} for {what}: {answer.text[:300]}")
    if answer.status_code >= 400 and answer.headers.get("content-type") == "application/json":
        error = answer.json()["error"]
        if "\n" in error or len(error) > ERROR_CHARACTERS:
            raise AssertionError(f"an error that is no sentence for {what}: {error[:300]!r}")


# Running


# What the package and its libraries import when it is used.
IMPORTED_LATE = """
    anyio._backends._asyncio anyio.streams.memory encodings.utf_16 encodings.utf_8_sig fastapi.telemetry
    fsspec.implementations.local jinja2 joblib platformdirs.unix pyarrow.compute pyarrow.csv pyarrow.parquet
    rich._unicode_data rich.console rich.table scipy.fft scipy.optimize scipy.sparse scipy.special scipy.stats
    sklearn.metrics starlette.testclient typer._adapters typer._click xlsxwriter
"""


@dataclass(frozen=True)
class Outcome:
    """How a case ended; a signal is a negative code, as in subprocess."""

    code: int
    out: str
    err: str
    seconds: float
    megabytes: float


def run_forked(work: Callable[[], object], folder: Path, stdin: bytes = b"") -> Outcome:
    """Run a function in a fork of this process, as a process of its own would run it."""
    streams = [folder / f".{name}" for name in ("stdin", "stdout", "stderr")]
    streams[0].write_bytes(stdin)
    process = os.fork()
    if process == 0:
        code = 70
        try:
            os.setsid()
            signal.alarm(WAIT)
            resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS + 5))
            resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            flags = (os.O_RDONLY, *[os.O_WRONLY | os.O_CREAT | os.O_TRUNC] * 2)
            for number, path in enumerate(streams):
                os.dup2(os.open(path, flags[number]), number)
            os.chdir(folder)
            sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
            sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
            sys.stderr = open(  # noqa: SIM115
                2, "w", encoding="utf-8", errors="backslashreplace", closefd=False
            )
            try:
                work()
                code = 0
            except SystemExit as end:
                code = end.code if isinstance(end.code, int) else int(end.code is not None)
        except BaseException:
            traceback.print_exc()
        gc.collect()  # what complains when it is freed, as at the end of a process
        with contextlib.suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)
    _, status, usage = os.wait4(process, 0)
    seconds = usage.ru_utime + usage.ru_stime
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process, signal.SIGKILL)  # what it has started
    out, err = (path.read_text(errors="replace") for path in streams[1:])
    return Outcome(os.waitstatus_to_exitcode(status), out, err, seconds, usage.ru_maxrss / 1024)


def run_process(arguments: list[str], folder: Path, stdin: bytes) -> Outcome:
    """Run the command itself."""
    command, before = [sys.executable, "-m", "ulr", *arguments], cpu_seconds()
    try:
        run = subprocess.run(command, input=stdin, capture_output=True, timeout=WAIT, cwd=folder)
    except subprocess.TimeoutExpired:
        return Outcome(-signal.SIGALRM, "", "", 0, 0)
    out, err = (each.decode(errors="replace") for each in (run.stdout, run.stderr))
    return Outcome(run.returncode, out, err, cpu_seconds() - before, 0)


def cpu_seconds() -> float:
    """Time of the processor that ended processes have used."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def import_everything() -> None:
    """Import what a case needs, but start no thread: those are lost in forks."""
    for module in pkgutil.walk_packages(ulr.__path__, "ulr."):
        if not re.search(r"__main__|excel_process|train|torch|distributed", module.name):
            with contextlib.suppress(ImportError, UlrError):
                import_module(module.name)
    for name in IMPORTED_LATE.split():
        with contextlib.suppress(ImportError):
            import_module(name)
    gc.freeze()  # so that the collector of a fork does not touch, and copy, all of this


# Checks


def problem_of(case: Case, outcome: Outcome) -> str:
    """What is wrong with the result of a case, empty if nothing is."""
    code, err = outcome.code, outcome.err
    if "Traceback" in err + outcome.out or code == 70:
        return f"traceback: {err[-1500:]}"
    if code in (-signal.SIGALRM, -signal.SIGXCPU):
        return f"hangs: no end after {SECONDS} s of the processor, or {WAIT} s"
    if code not in (0, 1, 2):
        return f"exit code {code}: {err[-500:]}"
    if outcome.seconds > SECONDS / 2:
        return f"{outcome.seconds:.1f} s"
    if outcome.megabytes > MEGABYTES or "not enough memory" in err:
        return f"{outcome.megabytes:,.0f} MB"
    lines = err.splitlines()
    if code < 2 and (strange := [each for each in lines if not each.startswith("ulr: ")]):
        return f"a message of several lines, or none of ulr: {strange[0][:300]!r}"
    if code == 1 and not lines:
        return "an error without a message"
    if code < 2 and max(map(len, lines), default=0) > ERROR_CHARACTERS:
        return f"a message of {max(map(len, lines)):,} characters"
    if "\x1b" in err or ("\x1b" in outcome.out and "-" not in case.arguments):
        return "an escape sequence for the terminal"
    return output_problem(case, code)


def output_problem(case: Case, code: int) -> str:
    """Whether the output is as it was after an error, and complete otherwise."""
    if case.output is None:
        return ""
    left = (
        [each.name for each in case.output.parent.glob(".*.partial")]
        if case.output.parent.is_dir()
        else []
    )
    if left:
        return f"left behind: {left}"
    if code != 0:
        if case.before is not None and case.output.read_bytes() != case.before:
            return "the output before was changed in spite of an error"
        made = case.output.is_file() and not case.output.is_symlink() and case.before is None
        return "an output in spite of an error" if made else ""
    if case.output.is_dir() or "--part" in case.arguments:
        return ""
    if not case.output.exists():
        looked_up = case.arguments[0] == "predict" and not case.source
        return "" if looked_up else "no output"
    if case.arguments[0] in ("ask", "report") or not case.source:
        return ""
    given = {
        option: case.arguments[case.arguments.index(option) + 1]
        for option in ("--format", "--encoding", "--delimiter", "--sheet")
        if option in case.arguments
    }
    has_header = "--no-header" not in case.arguments
    how = TableFormat(
        given.get("--format"),
        given.get("--encoding"),
        given.get("--delimiter"),
        has_header,
        given.get("--sheet"),
    )
    try:
        n_in = count_rows(case.source, how)
        sheet = given.get("--sheet") if case.source.endswith(".xlsx") else None  # else there is one
        n_out = count_rows(str(case.output), TableFormat(header=has_header, sheet=sheet))
        if n_in + 1 == n_out and not has_header:  # other formats get a header
            n_out -= 1
    except UlrError as error:
        return f"an output that cannot be read: {error}"
    return "" if n_in == n_out else f"{n_in} rows became {n_out}"


def count_rows(name: str, how: TableFormat) -> int:
    with open_table(name, how) as table:
        return sum(len(batch) for batch in table.batches())


def run_cases(base: Path, seeds: range) -> Iterator[tuple[int, Case, str, int]]:
    """Seed, case, problem and exit code of some cases; their files are in folders of the seed."""
    if not seeds:
        return
    import_everything()
    from ulr.classifier import load
    from ulr.cli import main as run_command
    from ulr.encoders import load_encoder

    def command(arguments: list[str]) -> Callable[[], None]:
        def work() -> None:
            sys.argv = ["ulr", *arguments]
            run_command()

        return work

    os.environ |= {
        "XDG_CACHE_HOME": str(base / "cache"),
        "COLUMNS": "100",
        "TMPDIR": str(base / "tmp"),
    }
    (base / "tmp").mkdir(exist_ok=True)
    tempfile.tempdir = None  # look it up again
    encoder, model = write_word_vectors(base / "words.txt"), base / "model"
    if not model.exists():
        documents = base / "documents.csv"
        documents.write_text("text\n" + "\n".join(["goal match", "bank profit", "rain"] * 5) + "\n")
        task = [str(documents), "-l", "sports, business, weather", "--encoder", encoder]
        saved = run_forked(command(["classify", *task, "--save-model", str(model)]), base)
        if saved.code != 0:
            raise RuntimeError(saved.err)

    def page(seed: int) -> Callable[[], None]:
        return lambda: ask_page(seed, load_encoder(encoder), load(model, encoder=encoder))

    for seed in seeds:
        folder = base / str(seed)
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        case = make_case(seed, folder, encoder, model)
        if not case.arguments:
            outcome = run_forked(page(seed), folder)
        elif seed % EVERY:
            outcome = run_forked(command(case.arguments), folder, case.stdin)
        else:
            outcome = run_process(case.arguments, folder, case.stdin)
        problem = problem_of(case, outcome)
        if not problem and (left := [each.name for each in (base / "tmp").iterdir()]):
            problem = f"temporary files: {left[:3]}"
        for each in (base / "tmp").iterdir():
            shutil.rmtree(each) if each.is_dir() else each.unlink()
        yield seed, case, problem, outcome.code


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0, help="seed of the first case")
    parser.add_argument(
        "--state", type=Path, default=Path(".fuzz"), help="folder of state and failing cases"
    )
    parser.add_argument(
        "--repeat", type=int, help="run the case of this seed only, and keep its files"
    )
    arguments = parser.parse_args()
    base = arguments.state.resolve()
    base.mkdir(exist_ok=True)
    if arguments.repeat is not None:
        ((_, case, problem, code),) = run_cases(base, range(arguments.repeat, arguments.repeat + 1))
        print(
            f"ulr {' '.join(map(repr, case.arguments))}\nexit code {code}; {problem or 'no problem'}"
        )
        return int(bool(problem))
    record = base / f"state-{arguments.seed}-{arguments.count}.json"
    state: dict[str, Any] = {"done": 0, "seconds": 0.0, "codes": {}, "problems": []}
    if record.exists():
        state = json.loads(record.read_text())
    first, codes = arguments.seed + state["done"], Counter(state["codes"])
    before, started = state["seconds"], time.perf_counter()
    for seed, case, problem, code in run_cases(
        base, range(first, arguments.seed + arguments.count)
    ):
        codes[str(code) if case.arguments else "page"] += 1
        if problem:
            again = f"python tools/fuzz.py --repeat {seed}"
            state["problems"].append({"seed": seed, "problem": problem, "again": again})
            print(
                f"seed {seed}: {problem[-1500:]}\n  {' '.join(case.arguments)[:600]}\n  again: {again}",
                flush=True,
            )
        else:
            shutil.rmtree(base / str(seed))
        state |= {
            "done": seed + 1 - arguments.seed,
            "codes": codes,
            "seconds": before + time.perf_counter() - started,
        }
        if seed % 20 == 0 or problem or seed + 1 == arguments.seed + arguments.count:
            record.write_text(json.dumps(state, indent=1))
    n_problems = len(state["problems"])
    ends = ", ".join(f"{codes[name]:,} {name}" for name in sorted(codes))
    print(
        f"{state['done']:,} cases from seed {arguments.seed} in {state['seconds']:.0f} s (exit codes: {ends}); {n_problems} problems."
    )
    return int(n_problems > 0)


if __name__ == "__main__":
    sys.exit(main())
