"""Readers and writers of CSV and JSON lines: CPU time, and whether unusual files come out unchanged.

    python -m benchmarks.tables [--rows 300000] [--write docs/performance.md]

Every reader makes lists of the values of a generated file, as text; a copy has two more columns.
*Unusual files* counts those that give the rows of Python's csv module in strict mode, or an error
where that gives one. DuckDB is measured if it is installed. For one thread, set
POLARS_MAX_THREADS=1; CPU time is that of all threads.
"""

from __future__ import annotations

import argparse
import csv
import json
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from benchmarks.end_to_end import generate
from benchmarks.measuring import markdown, publish, timed
from ulr.errors import TableError
from ulr.tables import open_table, write_table

UNUSUAL = {
    "values as they are": b"id,text\n007,1e5\nNA, leading\n1,null\n2,\n3,1.50\n4,true\n",
    "blank rows": b"id,text\n\n1,a\n\n",
    "CRLF": b"id,text\r\n1,a\r\n",
    "byte order mark": b"\xef\xbb\xbfid,text\n1,a\n",
    "two lines": b'id,text\n1,"a\nb"\n',
    "doubled quotes": b'id,text\n1,"say ""hi"""\n',
    "quote inside of a field": b'id,text\n1,5" pipe\n2,b\n',
    "null byte": b"id,text\n1,a\x00b\n",
    "long field": b"id,text\n1," + b"x" * 200_000 + b"\n",
    "quoted empty field": b'id,text\n1,""\n',
    "unclosed quote": b'id,text\n1,"a\n2,b\n',
    "text after a quote": b'id,text\n1,"a" b\n',
    "too many fields": b"id,text\n1,a\n2,b,c\n",
    "too few fields": b"id,text\n1,a\n2\n",
    "not UTF-8": b"id,text\n1,caf\xe9\n",
}
Columns = list[list[Any]]


def csv_by_python(path: Path) -> Columns:
    """Python's csv module, strict; rows of unequal length are errors, blank ones are left out."""
    with path.open(newline="", encoding="utf-8-sig") as file:
        rows = [row for row in csv.reader(file, strict=True) if row]
    if any(len(row) != len(rows[0]) for row in rows):
        raise ValueError("a row of another length")
    return [list(column) for column in zip(*rows[1:], strict=True)]


def csv_by_us(path: Path) -> Columns:
    """The reader of this project."""
    with open_table(str(path)) as table:
        batches = list(table.batches())
        return [
            list(chain.from_iterable(batch.column(name) for batch in batches))
            for name in table.columns
        ]


def csv_by_polars(path: Path) -> Columns:
    """Polars, all columns as text."""
    import polars as pl

    frame = pl.read_csv(path, infer_schema=False, empty_string_is_null=False)
    return [column.to_list() for column in frame.get_columns()]


def csv_by_pyarrow(path: Path) -> Columns:
    """Arrow, all columns as text."""
    import pyarrow as pa
    import pyarrow.csv as pc

    as_text = pc.ConvertOptions(column_types={"id": pa.string(), "text": pa.string()})
    lines = pc.ParseOptions(newlines_in_values=True)
    table = pc.read_csv(path, parse_options=lines, convert_options=as_text)
    return [column.to_pylist() for column in table.columns]


def csv_by_duckdb(path: Path) -> Columns:
    """DuckDB, all columns as text."""
    import duckdb

    with duckdb.connect() as connection:
        connection.execute("set threads = 1")
        found = connection.read_csv(str(path), header=True, all_varchar=True)
        columns = found.fetchnumpy().values()
        return [["" if each is None else each for each in column.tolist()] for column in columns]


def jsonl_by_python(path: Path) -> list[str]:
    """Python's json module."""
    with path.open(encoding="utf-8") as file:
        return [json.loads(line)["text"] for line in file]


def texts_by_us(path: Path) -> list[str]:
    """The reader of this project, which keeps each line too."""
    with open_table(str(path)) as table:
        return [text for batch in table.batches() for text in batch.column("text")]


def jsonl_by_polars(path: Path) -> list[str]:
    """Polars."""
    import polars as pl

    return list(pl.read_ndjson(path)["text"].to_list())


def jsonl_by_pyarrow(path: Path) -> list[str]:
    """Arrow."""
    import pyarrow.json

    return list(pyarrow.json.read_json(path)["text"].to_pylist())


def jsonl_by_duckdb(path: Path) -> list[str]:
    """DuckDB."""
    import duckdb

    with duckdb.connect() as connection:
        connection.execute("set threads = 1")
        return [row[0] for row in connection.read_json(str(path)).project("text").fetchall()]


def write_by_us(path: Path) -> None:
    """Read and write, rows copied."""
    with open_table(str(path)) as table:
        rows = (
            (batch, {"label": ["sports"] * len(batch), "confidence": [0.5] * len(batch)})
            for batch in table.batches()
        )
        target = str(path.with_name(f"out{path.suffix}"))
        write_table(target, table, rows, {"label": str, "confidence": float})


def write_by_python(path: Path) -> None:
    """Read and write with the csv module."""
    with path.open(newline="") as source, path.with_name("out.csv").open("w", newline="") as file:
        csv.writer(file).writerows([*row, "sports", 0.5] for row in csv.reader(source))


def write_by_polars(path: Path) -> None:
    """Read and write with polars."""
    import polars as pl

    frame = pl.read_csv(path, infer_schema=False)
    added = {"label": pl.lit("sports"), "confidence": pl.lit(0.5)}
    frame.with_columns(**added).write_csv(path.with_name("out.csv"))


def write_by_pyarrow(path: Path) -> None:
    """Read and write with Arrow."""
    import pyarrow as pa
    import pyarrow.csv as pc

    table = pc.read_csv(path, parse_options=pc.ParseOptions(newlines_in_values=True))
    table = table.append_column("label", pa.repeat("sports", len(table)))
    table = table.append_column("confidence", pa.repeat(0.5, len(table)))
    pc.write_csv(table, path.with_name("out.csv"))


def jsonl_copy_by_python(path: Path) -> None:
    """Read and write with the json module."""
    with path.open(encoding="utf-8") as source, path.with_name("o.jsonl").open("w") as file:
        for line in source:
            record = json.loads(line) | {"label": "sports", "confidence": 0.5}
            file.write(json.dumps(record, ensure_ascii=False) + "\n")


def jsonl_copy_by_polars(path: Path) -> None:
    """Read and write with polars."""
    import polars as pl

    added = {"label": pl.lit("sports"), "confidence": pl.lit(0.5)}
    pl.read_ndjson(path).with_columns(**added).write_ndjson(path.with_name("o.jsonl"))


def write_by_duckdb(path: Path) -> None:
    """Read and write with DuckDB."""
    import duckdb

    with duckdb.connect() as connection:
        connection.execute("set threads = 1")
        found = connection.read_csv(str(path), header=True, all_varchar=True)
        added = found.project("*, 'sports' as label, 0.5 as confidence")
        added.write_csv(str(path.with_name("out.csv")))


TASKS: dict[str, dict[str, Callable[[Path], Any]]] = {
    "csv": {
        "ulr": csv_by_us,
        "Python csv": csv_by_python,
        "polars": csv_by_polars,
        "pyarrow": csv_by_pyarrow,
        "DuckDB": csv_by_duckdb,
    },
    "jsonl": {
        "ulr": texts_by_us,
        "Python json": jsonl_by_python,
        "polars": jsonl_by_polars,
        "pyarrow": jsonl_by_pyarrow,
        "DuckDB": jsonl_by_duckdb,
    },
    "copy csv": {
        "ulr": write_by_us,
        "Python csv": write_by_python,
        "polars": write_by_polars,
        "pyarrow": write_by_pyarrow,
        "DuckDB": write_by_duckdb,
    },
    "copy jsonl": {
        "ulr": write_by_us,
        "Python json": jsonl_copy_by_python,
        "polars": jsonl_copy_by_polars,
    },
}


def n_unchanged(read: Callable[[Path], Columns], folder: Path) -> int:
    """Unusual files that are read as Python's csv module reads them."""
    n_equal = 0
    for content in UNUSUAL.values():
        path = folder / "unusual.csv"
        path.write_bytes(content)
        n_equal += _outcome(read, path) == _outcome(csv_by_python, path)
    return n_equal


def _outcome(read: Callable[[Path], Columns], path: Path) -> Columns | None:
    try:
        return read(path)
    except (TableError, ValueError, csv.Error):
        return None
    except Exception as error:  # each library has errors of its own
        if type(error).__module__.split(".")[0] in ("polars", "pyarrow", "duckdb", "_duckdb"):
            return None
        raise


def main() -> None:
    """Measure, print, and write into a page."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--rows", type=int, default=300_000)
    parser.add_argument("--write", type=Path)
    given = parser.parse_args()
    csv.field_size_limit(sys.maxsize)
    names = {
        "csv": "reading CSV",
        "jsonl": "reading JSON lines",
        "copy csv": "copying CSV",
        "copy jsonl": "copying JSON lines",
    }
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for task, tools in TASKS.items():
            path = Path(folder) / f"texts.{task.split()[-1]}"
            generate(path, given.rows)
            cells = [
                _cell(lambda work=work, path=path: f"{timed(partial(work, path), 2).cpu:.2f}")
                for work in tools.values()
            ]
            rows.append([names[task], *cells, *["–"] * (5 - len(cells))])
        readers = [csv_by_us, csv_by_python, csv_by_polars, csv_by_pyarrow, csv_by_duckdb]
        cells = [_cell(lambda r=r: f"{n_unchanged(r, Path(folder))}") for r in readers]
        rows.append([f"unusual files, of {len(UNUSUAL)}", *cells])
    table = markdown(["", "ulr", "Python", "polars", "pyarrow", "DuckDB"], rows)
    publish(f"CPU seconds per {given.rows:,} rows.\n\n{table}", given.write, "tables")


def _cell(measure: Callable[[], str]) -> str:
    try:
        return measure()
    except ImportError:
        return "not installed"


if __name__ == "__main__":
    main()
