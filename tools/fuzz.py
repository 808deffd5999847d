"""Run the command line on generated bad and odd inputs.

Each case is drawn from a seed: a table, labels, possibly a model folder, and options. The command
must end with exit code 0, 1 or 2 in bounded time and memory, print no traceback and only a short
error, and write an output with as many rows as the input, or none.

    python tools/fuzz.py --count 10000 --seed 0
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import gzip
import hashlib
import io
import json
import os
import random
import resource
import shutil
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from typer.testing import CliRunner

from ulr.cli import app
from ulr.errors import UlrError
from ulr.tables import TableFormat, open_table

SECONDS = 20.0  # of one case
MEGABYTES = 1500  # of the process, over all cases
ERROR_CHARACTERS = 8000

WORDS = "goal match team bank profit shares rain storm snow soup bread the of and 12 über".split()
ODD = ["", " ", "\t", "\0", "\ufeff", "\u2028", "\U0001f600", "a" * 3000, '"', "''", ",", ";", "|"]
ODD += ["=1+1", "NaN", "null", "-", "\u202e", "e\u0301", "\x1b[31m", "{}", "[bold]", "\\", "\r"]


def write_word_vectors(path: Path) -> str:
    """A small file of word vectors, and its name as an encoder."""
    draw = random.Random(0)
    labels = "sports business weather food other".split()
    rows = [f"{word} " + " ".join(f"{draw.gauss(0, 1):.3f}" for _ in range(8))
            for word in [*WORDS[:-2], *labels]]  # fmt: skip
    path.write_text("\n".join(rows) + "\n")
    return f"glove:{path}"


# Tables


def text(draw: random.Random) -> str:
    words = draw.choices(WORDS, k=draw.randrange(6))
    if draw.random() < 0.2:
        words.insert(draw.randrange(len(words) + 1), draw.choice(ODD))
    return " ".join(words)


def value(draw: random.Random) -> object:
    return draw.choice(
        [None, True, 0, -1, 2**53 + 1, 2**70, 1.5, float("nan"), float("inf"), [], {}, [[{"a": None}]],
         {"k": [1]}, "", "x", text(draw)]
    )  # fmt: skip


def header(draw: random.Random) -> list[str]:
    names = [
        "text",
        *draw.sample(["id", "truth", "ulr_label", "", " text", "text ", "ünï", "a,b"], 2),
    ]
    draw.shuffle(names)
    if draw.random() < 0.1:
        names.append(draw.choice(names))
    if draw.random() < 0.1:
        names.remove("text")
    return names


def csv_table(draw: random.Random) -> bytes:
    names = header(draw)
    file = io.StringIO()
    writer = csv.writer(
        file,
        delimiter=draw.choice(",,,;;\t|"),
        lineterminator=draw.choice(["\n", "\r\n", "\r", "\n\n"]),
        quoting=draw.choice([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
    )
    if draw.random() < 0.1:
        file.write("sep=;\n")
    writer.writerow(names)
    for _ in range(draw.choice([0, 1, 2, 5, 30])):
        row = [text(draw) for _ in names]
        if draw.random() < 0.02:
            row = row[:-1]
        writer.writerow(row)
    content = file.getvalue()
    if draw.random() < 0.1:
        content = content.replace('"', "", 1)
    encoding = draw.choice(
        ["utf-8"] * 6 + ["utf-8-sig", "utf-16", "utf-16-le", "latin-1", "cp1252"]
    )
    return content.encode(encoding, "replace")


def records(draw: random.Random) -> list[object]:
    rows: list[object] = []
    for _ in range(draw.choice([0, 1, 3, 20])):
        row: dict[str, object] = {"text": text(draw)} if draw.random() < 0.95 else {}
        for name in draw.sample(["id", "truth", "n", "", "x"], draw.randrange(4)):
            row[name] = value(draw)
        rows.append(row if draw.random() < 0.98 else draw.choice([None, 1, "x", []]))
    return rows


def json_lines(draw: random.Random) -> bytes:
    return "".join(f"{json.dumps(row)}\n" for row in records(draw)).encode()


def json_array(draw: random.Random) -> bytes:
    if draw.random() < 0.1:
        odd = [b"{}", b"[", b"[" * 100_000, b"[" + b"1" * 4301 + b"]", b'"a"', b'["\\ud800"]']
        return draw.choice(odd)
    return json.dumps(records(draw), ensure_ascii=draw.random() < 0.5).encode()


def parquet_table(draw: random.Random) -> bytes:
    n = draw.choice([0, 1, 4, 30])
    columns: dict[str, pa.Array] = {"text": pa.array([text(draw) for _ in range(n)])}
    others: list[Callable[[], pa.Array]] = [
        lambda: pa.array([draw.choice([2**46, 0, None]) for _ in range(n)], pa.timestamp("ms")),
        lambda: pa.array([draw.choice([2**30, 0]) for _ in range(n)], pa.date32()),
        lambda: pa.array([draw.randbytes(3) for _ in range(n)]),
        lambda: pa.array([[draw.random()] for _ in range(n)]),
        lambda: pa.array([{"a": 1}] * n, pa.struct([("a", pa.int8())])),
        lambda: pa.array(["x"] * n).dictionary_encode(),
        lambda: pa.nulls(n),
        lambda: invalid_texts([draw.randbytes(2) for _ in range(n)]),
    ]  # fmt: skip
    for i, make in enumerate(draw.sample(others, draw.randrange(4))):
        columns[f"c{i}"] = make()
    if draw.random() < 0.1:
        columns["text"] = columns.pop("c0", pa.nulls(n))
    file = io.BytesIO()
    pq.write_table(pa.table(columns), file)
    return file.getvalue()


def invalid_texts(values: list[bytes]) -> pa.Array:
    offsets = np.cumsum([0, *map(len, values)]).astype(np.int32)
    return pa.StringArray.from_buffers(
        len(values), pa.py_buffer(offsets.tobytes()), pa.py_buffer(b"".join(values))
    )


def workbook(draw: random.Random) -> bytes:
    import xlsxwriter

    file = io.BytesIO()
    with xlsxwriter.Workbook(file, {"in_memory": True}) as book:
        sheet = book.add_worksheet()
        for row in range(draw.choice([0, 1, 5])):
            for column in range(draw.choice([1, 3])):
                cell = "text" if row == column == 0 else draw.choice([text(draw), 1, 2.5, True])
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    sheet.write(row, column, cell)
    return file.getvalue()


def plain_text(draw: random.Random) -> bytes:
    return "\n".join(text(draw) for _ in range(draw.randrange(10))).encode()


def noise(draw: random.Random) -> bytes:
    beginnings = [
        b"",
        b"PAR1",
        b"PK\x03\x04",
        b"%PDF",
        b"\x1f\x8b",
        b"{",
        b"[",
        b"text\n",
        b"\xff\xfe",
    ]
    return draw.choice(beginnings) + draw.randbytes(draw.choice([0, 1, 50, 5000]))


TABLES: dict[str, Callable[[random.Random], bytes]] = {
    "csv": csv_table,
    "tsv": csv_table,
    "jsonl": json_lines,
    "json": json_array,
    "parquet": parquet_table,
    "xlsx": workbook,
    "txt": plain_text,
}


def damaged(draw: random.Random, content: bytes) -> bytes:
    """Sometimes: cut, with changed bytes, or compressed."""
    kind = draw.random()
    if kind < 0.08:
        return content[: draw.randrange(len(content) + 1)]
    if kind < 0.16 and content:
        changed = bytearray(content)
        for _ in range(draw.randrange(1, 6)):
            changed[draw.randrange(len(changed))] = draw.randrange(256)
        return bytes(changed)
    if kind < 0.22:
        packed = gzip.compress(content, mtime=0)
        return packed if draw.random() < 0.5 else packed[: draw.randrange(2, len(packed))]
    return content


def valid_table(draw: random.Random, ending: str) -> bytes:
    """A table with odd texts that can be read."""
    rows = [{"id": i, "text": text(draw)} for i in range(draw.choice([1, 3, 12, 40]))]
    rows.append({"id": -1, "text": "goal bank"})
    if ending == "txt":
        return "\n".join("".join(str(row["text"]).splitlines()) for row in rows).encode()
    if ending == "json":
        return json.dumps(rows).encode()
    if ending == "jsonl":
        return "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows).encode()
    file = io.BytesIO()
    if ending == "parquet":
        pq.write_table(pa.Table.from_pylist(rows), file)
    elif ending == "xlsx":
        import xlsxwriter

        with xlsxwriter.Workbook(file, {"strings_to_formulas": False}) as book:
            sheet = book.add_worksheet()
            for number, row in enumerate([{"id": "id", "text": "text"}, *rows]):
                sheet.write_row(number, 0, list(row.values()))
    else:
        lines = io.StringIO()
        delimiter = "\t" if ending == "tsv" else draw.choice(",;|\t")
        writer = csv.writer(lines, delimiter=delimiter, quoting=csv.QUOTE_ALL)
        writer.writerows([["id", "text"], *(row.values() for row in rows)])
        return lines.getvalue().encode()
    return file.getvalue()


def table_file(draw: random.Random, folder: Path, name: str, odd: bool) -> str:
    if not odd:
        ending = draw.choice(list(TABLES))
        path = folder / f"{name}.{ending}"
        path.write_bytes(valid_table(draw, ending))
        return str(path)
    ending = draw.choice(list(TABLES))
    make = TABLES[ending] if draw.random() < 0.9 else noise
    if draw.random() < 0.07:
        ending = draw.choice([*TABLES, "dat", "csv.gz", "xls", ""])
    path = folder / (f"{name}.{ending}" if ending else name)
    path.write_bytes(damaged(draw, make(draw)))
    return str(path)


# Labels, models and options


def label_argument(draw: random.Random, folder: Path, odd: bool) -> str:
    kind = draw.random()
    if not odd:
        return draw.choice(
            ["sports, business, weather", "sports,business,", "sports: goal; team, weather: rain",
             "goal, bank"]
        )  # fmt: skip
    if kind < 0.4:
        return draw.choice(["", ",", "sports", "sports, sports", "a:, b", ":", "\u202e, x", "x" * 9000,
                            "none.yaml", "sports, zzz"])  # fmt: skip
    names = [
        "sports",
        "weather",
        *draw.sample(["food", "sports", "", "x:y", "no", "1", "~", "\0"], 2),
    ]
    contents = {
        "txt": "\n".join(names),
        "yaml": draw.choice(
            ["\n".join(f"- {name!r}" for name in names), "sports: [goal, team]\nweather: rain\n",
             "[" * 400, "a: &a [b]\nc: *a\n", "!!python/object:os.system x", "- [a, [b]]", ""]
        ),
        "json": draw.choice([json.dumps(names), '{"sports": ["goal"], "weather": "rain"}', "[" * 50_000,
                             "[" + "9" * 4301 + "]", "{", "[1, null]"]),
        "csv": draw.choice(["name,phrases\nsports,goal; team\nweather,rain\n", "a,b\n1,2\n", 'label\n"x',
                            "label\nsports\nweather\n", ""]),
    }  # fmt: skip
    ending = draw.choice(list(contents))
    path = folder / f"labels.{ending}"
    content = contents[ending].encode()
    path.write_bytes(
        content if draw.random() < 0.85 else damaged(draw, content + draw.randbytes(9))
    )
    return str(path)


def changed_model(draw: random.Random, folder: Path, model: Path) -> str:
    """A copy of a model, with changed content in most cases."""
    copy = folder / "model"
    shutil.copytree(model, copy)
    kind = draw.random()
    file = copy / draw.choice(["model.json", "arrays.safetensors"])
    if kind < 0.3:
        file.write_bytes(damaged(draw, file.read_bytes()))
    elif kind < 0.4:
        file.unlink()
    elif kind < 0.8:
        content = json.loads((copy / "model.json").read_text())
        inside = content["settings"] if draw.random() < 0.4 else content
        inside[draw.choice(list(inside))] = value(draw)
        with contextlib.suppress(TypeError, ValueError):
            content.pop("sha256", None)
            text = json.dumps(content, sort_keys=True)
            content["sha256"] = hashlib.sha256(text.encode()).hexdigest()
        (copy / "model.json").write_text(json.dumps(content))
    return str(copy)


NUMBERS = ["0", "1", "2", "-1", "3", "1e9", "nan", "x", "", "99999999999999999999"]
OPTIONS: dict[str, list[str]] = {
    "--method": ["auto", "ulr", "none", "discriminant", "best", ""],
    "--distance": ["cosine", "l2", "dot", "jensen-shannon", "x"],
    "--prior": ["balanced", "1,1,1", "1,1", "1e308,1e308", "nan,1", "0,1", "-1,2", "x", ""],
    "--max-iter": NUMBERS,
    "--seed": NUMBERS,
    "--n-jobs": NUMBERS,
    "--fit-sample": ["all", "50", *NUMBERS],
    "--none": ["0.1", "0.9", *NUMBERS],
    "--none-label": ["other", "sports", ""],
    "--template": ["about {}", "no braces", "", "{} {}", "{0}"],
    "--extra-labels": ["food", "sports", ",", "stackexchange", ""],
    "--prefix": ["", "x_", "a,b", "\n"],
    "--encoding": ["utf-8", "latin-1", "utf-16", "idna", "utf-7", "rot13", "x"],
    "--delimiter": [";", ",", "\t", "ab", '"', ""],
    "--format": [*TABLES, "xls", ""],
    "-t": ["text", "id", "none", "c1", ""],
}
FLAGS = ["--no-header", "--json", "--force"]
ENDINGS = ["csv", "tsv", "jsonl", "json", "parquet", "xlsx", "csv.gz", "txt", "dat", ""]
_FOR_PREDICT = ("--n-jobs", "--prefix", "--encoding", "--delimiter", "--format", "-t")


@dataclass(frozen=True)
class Case:
    """A command with its output file."""

    arguments: list[str]
    source: str
    output: Path | None


def make_case(seed: int, folder: Path, encoder: str, model: Path) -> Case:
    """The case of a seed; its files are written into a folder."""
    draw = random.Random(seed)
    parts = ["table", "labels", "model", "options", "output", "examples"]
    odd = set(draw.sample(parts, draw.choice([0, 1, 1, 1, 2])))
    source = table_file(draw, folder, "in", "table" in odd)
    name = draw.choice(["classify"] * 5 + ["predict"] * 3 + ["evaluate"] * 2 + ["audit"])
    arguments = [name]
    if name == "predict":
        arguments += [changed_model(draw, folder, model) if "model" in odd else str(model), source]
        names = draw.sample(_FOR_PREDICT, draw.choice([1, 2]) if "options" in odd else 0)
    else:
        arguments += [source, "-l", label_argument(draw, folder, "labels" in odd)]
        names = draw.sample(list(OPTIONS), draw.choice([1, 2, 3]) if "options" in odd else 0)
    arguments += ["--encoder", encoder]
    if name == "evaluate":
        arguments += ["--truth", draw.choice(["truth", "text", "id", "none"])]
    if name in ("audit", "evaluate"):
        names = [each for each in names if each != "--prefix"]
    for option in names:
        arguments += [option, draw.choice(OPTIONS[option])]
    if name in ("classify", "evaluate") and "examples" in odd:
        arguments += ["--examples", table_file(draw, folder, "examples", True)]
    output = None
    if name in ("classify", "predict") and draw.random() < 0.7:
        ending = draw.choice(ENDINGS if "output" in odd else ENDINGS[:7])
        output = folder / (f"out.{ending}" if ending else "out")
        arguments += ["-o", str(output)]
    arguments += [each for each in FLAGS if "options" in odd and draw.random() < 0.15]
    return Case(arguments, source, output)


# Checks


def problem_of(case: Case) -> tuple[str, int]:
    """What is wrong with the result of a case, empty if nothing is, and the exit code."""
    started = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        result = CliRunner().invoke(app, case.arguments)
    seconds = time.perf_counter() - started
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        lines = traceback.format_exception(result.exception)
        return f"traceback: {''.join(lines[-3:])}", -1
    code = result.exit_code
    if code not in (0, 1, 2):
        return f"exit code {code}", code
    if "Traceback" in result.output:
        return "a traceback was printed", code
    if code and len(result.stderr) > ERROR_CHARACTERS + 2 * max(map(len, case.arguments)):
        return f"an error of {len(result.stderr):,} characters", code
    if code == 1 and not result.stderr.startswith("ulr: "):
        return f"an error without a beginning: {result.stderr[:80]!r}", code
    if seconds > SECONDS:
        return f"{seconds:.1f} s", code
    return output_problem(case, code), code


def output_problem(case: Case, code: int) -> str:
    """Whether the output is absent after an error, and complete otherwise."""
    if case.output is None:
        return ""
    left = [each.name for each in case.output.parent.iterdir() if each.name.endswith(".partial")]
    if left:
        return f"left behind: {left}"
    if code != 0:
        return "an output in spite of an error" if case.output.exists() else ""
    if not case.output.exists():
        return "no output"
    given = {
        option: case.arguments[case.arguments.index(option) + 1]
        for option in ("--format", "--encoding", "--delimiter")
        if option in case.arguments
    }
    has_header = "--no-header" not in case.arguments
    how = TableFormat(
        given.get("--format"), given.get("--encoding"), given.get("--delimiter"), has_header
    )
    try:
        n_in = count_rows(case.source, how)
        n_out = count_rows(str(case.output), TableFormat(header=has_header))
        if n_in + 1 == n_out and not has_header:  # other formats get a header
            n_out -= 1
    except UlrError as error:
        return f"an output that cannot be read: {error}"
    return "" if n_in == n_out else f"{n_in} rows became {n_out}"


def count_rows(name: str, how: TableFormat) -> int:
    with open_table(name, how) as table:
        return sum(len(batch) for batch in table.batches())


def run_cases(count: int, first_seed: int = 0) -> Iterator[tuple[int, Case, str, int]]:
    """Seed, case, problem and exit code of some cases."""
    with tempfile.TemporaryDirectory(prefix="ulr-fuzz-") as root:
        base = Path(root)
        encoder = write_word_vectors(base / "words.txt")
        documents = base / "documents.csv"
        documents.write_text("text\n" + "\n".join(["goal match", "bank profit", "rain"] * 5) + "\n")
        model = base / "model"
        task = ["classify", str(documents), "-l", "sports, business, weather"]
        saved = CliRunner().invoke(app, [*task, "--encoder", encoder, "--save-model", str(model)])
        if saved.exit_code != 0:
            raise RuntimeError(saved.output)
        for seed in range(first_seed, first_seed + count):
            folder = base / str(seed)
            folder.mkdir()
            case = make_case(seed, folder, encoder, model)
            problem, code = problem_of(case)
            yield seed, case, problem, code
            shutil.rmtree(folder)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0, help="seed of the first case")
    arguments = parser.parse_args()
    codes: Counter[int] = Counter()
    n_problems = 0
    started = time.perf_counter()
    os.environ.setdefault("XDG_CACHE_HOME", tempfile.gettempdir())
    for seed, case, problem, code in run_cases(arguments.count, arguments.seed):
        codes[code] += 1
        if problem:
            n_problems += 1
            print(f"seed {seed}: {problem}\n  ulr {' '.join(case.arguments)}"[:2000], flush=True)
    seconds = time.perf_counter() - started
    megabytes = peak_megabytes()
    print(f"{arguments.count:,} cases in {seconds:.0f} s, exit codes {dict(codes)}; ", end="")
    print(f"at most {megabytes:.0f} MB; {n_problems:,} problems.")
    return int(n_problems > 0 or megabytes > MEGABYTES)


def peak_megabytes() -> float:
    """Most memory that this process has used."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1 << 20) if sys.platform == "darwin" else peak / 1024


if __name__ == "__main__":
    sys.exit(main())
