"""Values of every type survive a conversion, or are spelled out where a format has no such type."""

import json
import os
from datetime import UTC, date, datetime

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import xlsxwriter
from table_files import ENDINGS, columns_of, convert, jsonl, read, written

from ulr.errors import TableError

UNEVEN = [
    {"text": "a", "tags": ["x", "\u00fc"], "n": 1, "price": 2, "flag": True},
    {"text": "b", "n": 2, "price": 2.5, "who": {"name": "Ann"}, "mixed": 1, "nothing": None},
    {"mixed": "one", "text": "c", "flag": None, "long": 2**62, "huge": 2**70, "sum": 2**60},
    {"text": None, "sum": 0.5},
]
UNEVEN_COLUMNS = ["text", "tags", "n", "price", "flag", "who", "mixed", "nothing"]
UNEVEN_COLUMNS += ["long", "huge", "sum", "label", "confidence"]


def test_jsonl_stays_as_it_is(tmp_path):
    source = jsonl(tmp_path / "in.jsonl", UNEVEN)
    with source.open("a") as file:
        file.write('\n  {"price" : 1.500, "big": 1e3, "text":"d" }  \n\n')
    target = convert(source, tmp_path / "out.jsonl")
    added = {"label": "a; b", "confidence": 0.25}
    assert read(target)[:-1] == [row | added for row in UNEVEN]
    assert target.read_text().splitlines()[-1] == (
        '{"price" : 1.500, "big": 1e3, "text":"d", "label": "a; b", "confidence": 0.25}'
    )


def test_uneven_jsonl_to_csv_has_every_key_as_a_column(tmp_path):
    target = convert(jsonl(tmp_path / "in.jsonl", UNEVEN), tmp_path / "out.csv")
    assert columns_of(target) == UNEVEN_COLUMNS
    first, second, third, last = read(target)
    assert (first["tags"], first["flag"]) == ('["x", "\u00fc"]', "True")
    assert (second["who"], second["price"], second["tags"]) == ('{"name": "Ann"}', "2.5", "")
    assert (third["huge"], third["mixed"]) == (str(2**70), "one")
    assert last["text"] == ""


def test_uneven_jsonl_to_parquet_gets_types_that_lose_nothing(tmp_path):
    target = convert(jsonl(tmp_path / "in.jsonl", UNEVEN), tmp_path / "out.parquet")
    table = pq.read_table(target)
    assert table.column_names == UNEVEN_COLUMNS
    numbers = {"n": "int64", "price": "double", "flag": "bool", "long": "int64"}
    assert {field.name: str(field.type) for field in table.schema} == (
        dict.fromkeys(UNEVEN_COLUMNS, "string") | numbers | {"confidence": "double"}
    )
    assert table.column("tags").to_pylist() == ['["x", "\u00fc"]', None, None, None]
    assert table.column("mixed").to_pylist() == [None, "1", "one", None]
    assert table.column("price").to_pylist() == [2.0, 2.5, None, None]
    assert table.column("long")[2].as_py() == 2**62
    assert table.column("huge")[2].as_py() == str(2**70)
    assert table.column("sum").to_pylist() == [None, None, str(2**60), "0.5"]
    assert table.column("text").to_pylist() == ["a", "b", "c", None]


def test_json_array_is_written_as_an_array_without_nan(tmp_path):
    source = written(tmp_path / "in.json", '[{"a": [NaN, {"b": 1}]},\n {"c": -Infinity}]')
    target = convert(source, tmp_path / "out.json")
    found = json.loads(target.read_text(), parse_constant=pytest.fail)
    added = {"label": "a; b", "confidence": 0.25}
    assert found == [{"a": [None, {"b": 1}]} | added, {"c": None} | added]


def test_table_without_rows_is_written_as_one(tmp_path):
    source = written(tmp_path / "in.csv", "id,text\n")
    for ending in ENDINGS:
        target = convert(source, tmp_path / f"out.{ending}")
        if not ending.startswith(("json", "ndjson")):  # their columns are those of their rows
            assert columns_of(target) == ["id", "text", "label", "confidence"]
            assert read(target) == []
    assert json.loads((tmp_path / "out.json").read_text()) == []


def test_text_file_has_one_document_per_line(tmp_path):
    source = written(tmp_path / "in.txt", "first, with comma\r\n\r\nlast")
    assert read(source) == [{"text": "first, with comma"}, {"text": ""}, {"text": "last"}]
    lines = convert(source, tmp_path / "out.csv").read_text().splitlines()
    assert lines[:2] == ["text,label,confidence", '"first, with comma",a; b,0.25']


def test_workbook_keeps_texts_numbers_and_dates(tmp_path):
    when = datetime(2024, 5, 1, 12, 30)
    table = pa.table(
        {
            "text": ["=1+1", "http://a.b", None],
            "n": [1, 2, None],
            "long": [2**60, 1, 2],
            "x": [0.5, float("nan"), float("inf")],
            "at": pa.array([when, None, when], pa.timestamp("us")),
            "zone": pa.array([when, None, when], pa.timestamp("us", "UTC")),
            "tags": [["a", "b"], [], None],
            "flag": [True, False, None],
        }
    )
    pq.write_table(table, tmp_path / "in.parquet")
    target = convert(tmp_path / "in.parquet", tmp_path / "out.xlsx")
    first, second, third = read(target)
    assert first == {
        "text": "=1+1", "n": 1, "long": str(2**60), "x": 0.5, "at": when,
        "zone": "2024-05-01T12:30:00+00:00", "tags": '["a", "b"]', "flag": True,
        "label": "a; b", "confidence": 0.25,
    }  # fmt: skip
    assert (second["text"], second["x"], second["flag"]) == ("http://a.b", "nan", False)
    assert (third["text"], third["n"], third["x"]) == (None, None, "inf")
    again = pq.read_table(convert(target, tmp_path / "again.parquet", header=False))
    assert again.num_rows == 4
    assert again.column_names[:2] == ["c1", "c2"]


def test_first_sheet_with_content_is_read(tmp_path):
    with xlsxwriter.Workbook(tmp_path / "in.xlsx") as book:
        book.add_worksheet("empty")
        sheet = book.add_worksheet("full")
        sheet.write_row(2, 1, ["text", ""])
        sheet.write_row(3, 1, ["a", 2.0])
    assert read(tmp_path / "in.xlsx") == [{"text": "a", "c2": 2}]


def test_text_too_long_for_a_cell_leaves_no_workbook(tmp_path):
    source = jsonl(tmp_path / "in.jsonl", [{"text": "a"}, {"text": "x" * 40_000}])
    with pytest.raises(TableError, match=r"in\.jsonl row 2: .* 32,767 characters"):
        convert(source, tmp_path / "out.xlsx")
    assert os.listdir(tmp_path) == ["in.jsonl"]


TYPED = pa.table(
    {
        "text": pa.array(["a", None]),
        "n": pa.array([1, 2], pa.int16()),
        "at": pa.array([datetime(2024, 5, 1, 12, tzinfo=UTC)] * 2, pa.timestamp("ms", "UTC")),
        "day": pa.array([date(2024, 5, 1), None]),
        "kind": pa.array(["x", "y"]).dictionary_encode(),
        "parts": pa.array([[{"on": date(2024, 5, 1)}], []]),
    }
)


def test_parquet_keeps_its_types(tmp_path):
    pq.write_table(TYPED, tmp_path / "in.parquet")
    table = pq.read_table(convert(tmp_path / "in.parquet", tmp_path / "out.parquet"))
    assert table.column_names == [*TYPED.column_names, "label", "confidence"]
    assert table.select(TYPED.column_names).equals(TYPED)


def test_parquet_values_are_spelled_out_in_text_formats(tmp_path):
    pq.write_table(TYPED, tmp_path / "in.parquet")
    first, last = read(convert(tmp_path / "in.parquet", tmp_path / "out.csv"))
    assert list(first.values()) == [
        *("a", "1", "2024-05-01 12:00:00+00:00", "2024-05-01", "x", '[{"on": "2024-05-01"}]'),
        *("a; b", "0.25"),
    ]
    assert (last["text"], last["day"], last["parts"]) == ("", "", "[]")
    first, last = read(convert(tmp_path / "in.parquet", tmp_path / "out.jsonl"))
    assert (first["n"], first["day"], first["parts"]) == (1, "2024-05-01", [{"on": "2024-05-01"}])
    assert (last["text"], last["day"], last["parts"]) == (None, None, [])


def test_invalid_text_in_any_parquet_column_is_one_error(tmp_path):
    offsets = pa.py_buffer(b"".join(n.to_bytes(4, "little") for n in (0, 2, 3)))
    bad = pa.StringArray.from_buffers(2, offsets, pa.py_buffer(b"\xff\xfeb"))
    pq.write_table(pa.table({"text": ["a", "b"], "note": bad}), tmp_path / "in.parquet")
    for ending in ("csv", "parquet", "jsonl"):
        with pytest.raises(TableError, match=r"in\.parquet cannot be read as Parquet: .*UTF8"):
            convert(tmp_path / "in.parquet", tmp_path / f"out.{ending}")


def test_dates_outside_of_python_are_written_as_text_or_refused(tmp_path):
    late = pa.array([300_000_000_000_000, 0], pa.timestamp("ms"))
    flat = pa.table({"text": ["a", "b"], "at": late, "day": pa.array([2**30, 0], pa.date32())})
    pq.write_table(flat, tmp_path / "flat.parquet")
    for ending in ("csv", "jsonl", "xlsx"):
        first, second = read(convert(tmp_path / "flat.parquet", tmp_path / f"flat.{ending}"))
        assert first["at"].startswith("11476-")
        assert str(second["at"]).startswith("1970-01-01")
    kept = pq.read_table(convert(tmp_path / "flat.parquet", tmp_path / "kept.parquet"))
    assert kept.select(["text", "at", "day"]).equals(flat)
    nested = pa.table({"text": ["a", "b"], "list": pa.array([[2**50], []], pa.list_(late.type))})
    pq.write_table(nested, tmp_path / "nested.parquet")
    with pytest.raises(TableError, match="out of range"):
        convert(tmp_path / "nested.parquet", tmp_path / "nested.csv")
    assert not (tmp_path / "nested.csv").exists()
