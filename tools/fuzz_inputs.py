"""Generated files for `tools/fuzz.py`: tables, label files and changed models, odd and damaged."""

from __future__ import annotations

import contextlib
import csv
import gzip
import hashlib
import io
import json
import random
import shutil
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

WORDS = "goal match team bank profit shares rain storm snow soup bread the of and 12 über".split()
ODD = ["", " ", "\t", "\0", "\ufeff", "\u2028", "\U0001f600", "a" * 3000, '"', "''", ",", ";", "|"]
ODD += ["=1+1", "NaN", "null", "-", "\u202e", "e\u0301", "\x1b[31m", "{}", "[bold]", "\\", "\r"]
ODD += [
    "<p>x</p>&nbsp;",
    "<script>",
    "n/a",
    "@x",
    "+1",
    "a" * 60_000,
    "\x85",
    "\u200b",
    "{{name}}",
    "1e309",
]


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
        *draw.sample(
            [
                "id",
                "truth",
                "ulr_label",
                "",
                " text",
                "text ",
                "ünï",
                "a,b",
                "x" * 5000,
                "a\nb",
                "label",
            ],
            2,
        ),
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
        cut = packed[: draw.randrange(2, len(packed))]
        return draw.choice([packed, packed, cut, packed + b"junk", gzip.compress(packed, mtime=0)])
    return content


def valid_table(draw: random.Random, ending: str) -> bytes:
    """A table with odd texts that can be read."""
    names = ["sports", "business", "weather", "food", ""]
    rows = [
        {"id": i, "text": text(draw), "truth": draw.choice(names)}
        for i in range(draw.choice([1, 3, 12, 40]))
    ]
    rows.append({"id": -1, "text": "goal bank", "truth": "sports"})
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
            for number, row in enumerate([{each: each for each in rows[0]}, *rows]):
                sheet.write_row(number, 0, list(row.values()))
    else:
        lines = io.StringIO()
        delimiter = "\t" if ending == "tsv" else draw.choice(",;|\t")
        writer = csv.writer(lines, delimiter=delimiter, quoting=csv.QUOTE_ALL)
        writer.writerows([list(rows[0]), *(row.values() for row in rows)])
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


# Labels and models


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
