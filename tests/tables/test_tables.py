"""Several files as one table, addresses of stores, documents of rows, and columns of JSON files."""

import os
import subprocess
from datetime import date

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from table_files import ADDED, convert, jsonl, read, written

from ulr.errors import TableError
from ulr.tables import Table, find_files, open_source, open_table, write_table


@pytest.fixture
def store():
    """Addresses of a folder that is neither on this disk nor in another test."""
    address = "memory:///ulr-tables"
    system = fsspec.filesystem("memory")
    yield address
    system.rm("/ulr-tables", recursive=True)


def test_folder_pattern_and_list_are_one_table(tmp_path, monkeypatch):
    for name in ("b.csv", "a.csv", "c.csv"):
        written(tmp_path / name, f"id,text\n{name},x\n")
    written(tmp_path / "notes.md", "no table")
    written(tmp_path / "_SUCCESS.json", "[]")
    expected = ["a.csv", "b.csv", "c.csv"]
    assert [row["id"] for row in read(tmp_path)] == expected
    assert [row["id"] for row in read(tmp_path / "*.csv")] == expected
    assert [row["id"] for row in read(tmp_path / "c.csv", tmp_path / "a.csv")] == ["c.csv", "a.csv"]
    target = convert([tmp_path / "*.csv"], tmp_path / "all.jsonl")
    assert [row["id"] for row in read(target)] == expected
    monkeypatch.chdir(tmp_path)
    assert find_files("*.csv") == expected
    assert find_files("./a.csv") == ["./a.csv"]


def test_files_of_a_store_are_read_and_written_by_their_address(store, tmp_path):
    for ending in ("csv", "jsonl", "parquet", "xlsx", "csv.gz"):
        local = convert(jsonl(tmp_path / "in.jsonl", [{"text": "a"}]), tmp_path / f"x.{ending}")
        with fsspec.open(f"{store}/{ending}/x.{ending}", "wb") as file:
            file.write(local.read_bytes())
        for name in (f"{store}/{ending}/x.{ending}", f"{store}/{ending}", f"{store}/{ending}/*"):
            assert find_files(name) == [f"{store}/{ending}/x.{ending}"]
        with open_table(f"{store}/{ending}") as table:
            assert table.estimated_rows() in (1, 2, None)
            assert [batch.column("text") for batch in table.batches()] == [["a"]]
            rows = ((batch, {"more": ["x"]}) for batch in table.batches())
            write_table(f"{store}/out/y.{ending}", table, rows, {"more": str})
        (row,) = read(f"{store}/out/y.{ending}")
        assert (row["text"], row["more"]) == ("a", "x")
    with fsspec.open(f"{store}/in.csv", "wb") as file:
        file.write(b"id,text\n1,a\n2\n")
    with pytest.raises(TableError, match=r"memory:///ulr-tables/in\.csv line 3 has 1 fields"):
        convert(f"{store}/in.csv", f"{store}/out.csv")
    with pytest.raises(TableError, match=r"there is no file memory:///ulr-tables/out\.csv"):
        read(f"{store}/out.csv")  # a failed output is not uploaded


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("gs://bucket/x.csv", r"gs://bucket/x\.csv needs 'gcsfs', .* pip install gcsfs"),
        ("nowhere://x.csv", r"nowhere://x\.csv cannot be reached: Protocol not known"),
        ("missing.csv", "there is no file missing.csv"),
        ("*.csv", "there is no file"),
        (".", "the folder .* has no"),
        ("", "name of a file is empty"),
        ("-", "standard input, which is not available"),
    ],
)
def test_names_that_stand_for_no_file_are_refused(tmp_path, monkeypatch, name, message):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(TableError, match=message):
        read(name)


@pytest.mark.skipif(not os.path.isdir("/dev/fd"), reason="needs /dev/fd")
def test_pipe_can_be_read_twice(tmp_path):
    path = written(tmp_path / "in.csv", b"text\none\ntwo\n")
    with (
        subprocess.Popen(["cat", path], stdout=subprocess.PIPE) as cat,
        open_table(f"/dev/fd/{cat.stdout.fileno()}") as table,
    ):
        for _ in range(2):
            (batch,) = table.batches()
            assert batch.column("text") == ["one", "two"]


def test_standard_streams_keep_the_format(tmp_path):
    source = written(tmp_path / "in.txt", "one\n")
    for content, expected in (
        (b"text,n\na,1\n", b"text,n,label,confidence\na,1,x,0.5\n"),
        (b'{"text": "a"}\n', b'{"text": "a", "label": "x", "confidence": 0.5}\n'),
    ):
        with (
            written(tmp_path / "in", content).open("rb") as stdin,
            (tmp_path / "out").open("wb") as stdout,
            open_table("-", stdin=stdin) as table,
        ):
            assert table.name == "standard input"
            rows = ((batch, {"label": ["x"], "confidence": [0.5]}) for batch in table.batches())
            write_table("-", table, rows, ADDED, stdout)
        assert (tmp_path / "out").read_bytes() == expected
    with (tmp_path / "out").open("wb") as stdout, open_table(str(source)) as table:
        rows = ((batch, {"label": ["x"]}) for batch in table.batches())
        write_table("-", table, rows, {"label": str}, stdout)
        with pytest.raises(TableError, match="standard output, which is not available"):
            write_table("-", table, rows, {"label": str})
    assert (tmp_path / "out").read_bytes() == b'{"text": "one", "label": "x"}\n'


def test_rows_are_numbered_within_their_file(tmp_path):
    for name in ("a.csv", "b.csv"):
        written(tmp_path / name, "text\n" + "x\n" * 20_000)
    with open_table(str(tmp_path)) as table:
        found = [(batch.name, batch.first_row, len(batch)) for batch in table.batches()]
        last = list(table.batches())[-1]
        assert table.name == f"{tmp_path / 'a.csv'} and 1 more"
        assert [part.name for part in table.files()] == [str(tmp_path / "a.csv"), last.name]
    for name in ("a.csv", "b.csv"):
        parts = [(start, size) for file, start, size in found if file == str(tmp_path / name)]
        assert [start for start, _ in parts] == [0, parts[0][1]]
        assert sum(size for _, size in parts) == 20_000
    assert last.where(len(last) - 1) == f"{tmp_path / 'b.csv'} row 20000"


def test_files_of_different_delimiters_and_formats_become_one(tmp_path):
    sources = [
        written(tmp_path / "a.csv", "id;text\n1;one\n"),
        written(tmp_path / "b.csv", "id,text\n2,two\n"),
        written(tmp_path / "c.tsv", "id\ttext\n3\tthree\n"),
    ]
    lines = convert(sources, tmp_path / "out.csv").read_text().splitlines()
    assert [line.split(";")[:2] for line in lines[1:]] == [
        ["1", "one"],
        ["2", "two"],
        ["3", "three"],
    ]
    sources.append(written(tmp_path / "d.csv", "number,text\n1,x\n"))
    message = r"d\.csv has the columns number, text, but .*a\.csv has id"
    with pytest.raises(TableError, match=message):
        read(*sources)
    records = [
        written(tmp_path / "a.jsonl", '{"a": 1}'),
        written(tmp_path / "b.json", '[{"b": 2}]'),
    ]
    target = convert(records, tmp_path / "out.parquet")
    assert pq.read_table(target).column_names == ["a", "b", "label", "confidence"]


@pytest.mark.parametrize("read_before", [False, True])
def test_late_keys_of_a_long_jsonl_file_become_columns(tmp_path, read_before):
    records = [{"text": "x" * 100}] * 2000 + [{"text": "a", "late": 1}]
    source = jsonl(tmp_path / "in.jsonl", records)
    with open_table(str(source)) as table:
        assert table.columns == ("text",)
        if read_before:
            assert sum(map(len, table.batches())) == 2001
            source.unlink()  # the keys are known by now
        assert table.all_columns() == table.columns == ("text", "late")
        assert table.files()[0].columns == ("text", "late")
        table.check_columns(["late"], "--text-column")
        with pytest.raises(TableError, match=r"no column 'no'; it has: text, late\. .*--truth"):
            table.check_columns(["no"], "--truth")


@pytest.mark.parametrize("ending", ["csv", "jsonl", "txt", "parquet", "csv.gz", "json"])
def test_number_of_rows_is_estimated_where_that_is_cheap(tmp_path, ending):
    source = written(tmp_path / "in.txt", "a text of a few words\n" * 20_000)
    path = source if ending == "txt" else convert(source, tmp_path / f"in.{ending}")
    with open_table([str(path)] * 2) as table:
        expected = None if ending in ("csv.gz", "json") else pytest.approx(40_000, rel=0.01)
        assert table.estimated_rows() == expected


def test_several_columns_are_joined_without_their_nulls(tmp_path):
    records = [{"title": "A", "body": "b"}, {"title": None, "body": "b"}, {"title": "A"}, {}]
    with open_table(str(jsonl(tmp_path / "in.jsonl", records))) as table:
        (batch,) = table.batches()
    assert batch.texts(["title", "body"]) == ["A b", "b", "A", ""]
    assert batch.texts(["body", "title"]) == ["b A", "b", "A", ""]
    assert batch.texts(["title"]) == ["A", "", "A", ""]


def test_numbers_and_dates_count_as_texts_and_other_values_are_named(tmp_path):
    columns = {"n": [7, None], "day": [date(2024, 5, 1)] * 2, "raw": [b"a", b"b"]}
    pq.write_table(pa.table(columns), tmp_path / "in.parquet")
    with open_table(str(tmp_path / "in.parquet")) as table:
        (batch,) = table.batches()
    assert batch.texts(["n", "day"]) == ["7 2024-05-01", "2024-05-01"]
    with pytest.raises(TableError, match=r"row 1: column 'raw' holds .* not a text"):
        batch.texts(["raw"])
    records = [{"text": "fine"}] * 20_000 + [{"text": ["no", "text"]}]
    with open_table(str(jsonl(tmp_path / "in.jsonl", records))) as table:
        _, last = table.batches()
    message = r"in\.jsonl row 20001: column 'text' holds .*'no', 'text'.* not a text"
    with pytest.raises(TableError, match=message):
        last.texts(["text"])


def test_file_is_opened_under_another_name(tmp_path):
    with pytest.raises(TableError, match=r"cannot be reached: Is a directory"):
        open_source(str(tmp_path), path=tmp_path)
    source = open_source("upload.csv", path=written(tmp_path / "data", "id,text\n1\n"))
    with pytest.raises(TableError, match=r"^upload\.csv line 2 has 1 fields"):
        list(Table([source]).batches())
