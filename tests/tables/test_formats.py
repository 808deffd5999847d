"""Every format keeps every cell, reads files as people have them, and names what is broken."""

import gzip
import io
import json
import os
import random
import zipfile
from datetime import UTC, date, datetime

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import xlsxwriter
from python_calamine import CalamineWorkbook
from table_files import columns_of, convert, jsonl, read, written

from ulr.errors import TableError
from ulr.tables import (
    FORMAT_NAMES,
    TableFormat,
    check_output_name,
    format_of_name,
    open_table,
    write_table,
)

ENDINGS = ["csv", "tsv", "tab", "jsonl", "ndjson", "json", "xlsx", "parquet", "pq"]
ENDINGS += ["csv.gz", "tsv.gz", "jsonl.gz", "json.gz"]
CELLS = {
    "plain": "Where is my parcel?",
    "empty": "",
    "quotes": 'She said "now", twice',
    "quotes only": '""',
    "line feed": "one\ntwo",
    "return": "one\rtwo",
    "both": "one\r\ntwo\r\n",
    "line break only": "\n",
    "delimiters": "a,b;c\td|e",
    "letters": "caf\u00e9 \u2013 \u6771\u4eac \U0001f600",
    "line separators": "a\u2028b\x85c",
    "byte order mark": "\ufeffa",
    "spaces": " kept ",
    "backslashes": 'C:\\new\\"x\\',
    "number": "007",
    "null": "null",
    "formula": "=1+1",
    "address": "http://a.b",
    "long": "long, " * 5000,
}
BEYOND_EXCEL = {"null byte": "a\x00b", "very long": 'very "long", ' * 100_000}


@pytest.mark.parametrize("ending", ENDINGS)
def test_every_cell_survives_every_format(tmp_path, ending):
    cells = CELLS if ending == "xlsx" else CELLS | BEYOND_EXCEL
    rows = [{"id": name, "text": cell} for name, cell in cells.items()]
    first = convert(jsonl(tmp_path / "in.jsonl", rows), tmp_path / f"first.{ending}")
    again = copy(first, tmp_path / f"again.{ending}")
    back = copy(first, tmp_path / "back.csv")
    for path in (first, again, back):
        found = {
            row["id"]: row["text"] or "" for row in read(path)
        }  # an empty cell of Excel is None
        assert found == cells
        assert {(row["label"], float(row["confidence"])) for row in read(path)} == {("a; b", 0.25)}
        assert columns_of(path)[:4] == ["id", "text", "label", "confidence"]


def copy(source, target):
    """A copy of a file with one more column."""
    with open_table(str(source)) as table:
        rows = ((batch, {"more": ["x"] * len(batch)}) for batch in table.batches())
        write_table(str(target), table, rows, {"more": str})
    return target


@pytest.mark.parametrize("ending", ENDINGS)
def test_format_written_is_the_format_read(tmp_path, ending):
    first = convert(jsonl(tmp_path / "in.jsonl", [{"text": "a"}]), tmp_path / f"first.{ending}")
    unnamed = first.rename(tmp_path / "first")
    with open_table(str(unnamed)) as table:
        assert table.sources[0].format == format_of_name(f"first.{ending}")
    assert ending.endswith("gz") == unnamed.read_bytes().startswith(b"\x1f\x8b")


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet", "json", "xlsx"])
def test_rows_keep_their_order_over_many_batches(tmp_path, ending):
    source = jsonl(tmp_path / "in.jsonl", [{"n": i, "text": f"text {i}"} for i in range(20_000)])
    target = convert(source, tmp_path / f"out.{ending}")
    with open_table(str(target)) as table:
        batches = list(table.batches())
    assert [int(n) for batch in batches for n in batch.column("n")] == list(range(20_000))
    assert len(batches) > 1
    assert [batch.first_row for batch in batches] == [
        int(batch.column("n")[0]) for batch in batches
    ]


# Text formats

TEXTS = {
    "csv": "id,text\n1,caf\u00e9\n2,b\n",
    "tsv": "id\ttext\n1\tcaf\u00e9\n2\tb\n",
    "jsonl": '{"id": "1", "text": "caf\u00e9"}\n{"id": "2", "text": "b"}\n',
    "json": '[{"id": "1", "text": "caf\u00e9"},\n{"id": "2", "text": "b"}]\n',
    "txt": "caf\u00e9\nb\n",
}
VARIANTS = {
    "as it is": (str.encode, {}),
    "no last line end": (lambda text: text.removesuffix("\n").encode(), {}),
    "CRLF": (lambda text: text.replace("\n", "\r\n").encode(), {}),
    "returns only": (lambda text: text.replace("\n", "\r").encode(), {}),
    "byte order mark": (lambda text: text.encode("utf-8-sig"), {}),
    "UTF-16": (lambda text: text.encode("utf-16"), {}),
    "UTF-16 without mark": (lambda text: text.encode("utf-16-le"), {}),
    "UTF-16 of the other order": (lambda text: text.encode("utf-16-be"), {}),
    "UTF-16, named": (lambda text: text.encode("utf-16"), {"encoding": "utf-16"}),
    "cp1252, named": (lambda text: text.encode("cp1252"), {"encoding": "cp1252"}),
    "UTF-8, named": (lambda text: text.encode("utf-8-sig"), {"encoding": "UTF_8"}),
    "gzip": (lambda text: gzip.compress(text.encode()), {}),
    "two parts of gzip": (
        lambda text: gzip.compress(text[:5].encode()) + gzip.compress(text[5:].encode()),
        {},
    ),
}


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("format_", TEXTS)
def test_text_files_are_read_as_people_have_them(tmp_path, format_, variant):
    encode, how = VARIANTS[variant]
    source = written(tmp_path / f"in.{format_}", encode(TEXTS[format_]))
    assert [row["text"] for row in read(source, **how)] == ["caf\u00e9", "b"]
    if format_ != "txt":
        target = convert(source, tmp_path / f"out.{format_}", **how)
        assert [row["text"] for row in read(target)] == ["caf\u00e9", "b"]


@pytest.mark.parametrize("format_", TEXTS)
def test_wrong_encoding_is_named_with_advice(tmp_path, format_):
    source = written(tmp_path / f"in.{format_}", TEXTS[format_].encode("latin-1"))
    with pytest.raises(TableError, match=r"is not UTF-8: byte 0xe9 .* --encoding cp1252"):
        read(source)


@pytest.mark.parametrize("format_", TEXTS)
@pytest.mark.parametrize("damage", ["cut", "zeros inside", "no gzip"])
def test_damaged_gzip_is_named(tmp_path, format_, damage):
    text = TEXTS[format_].replace("b", random.Random(0).randbytes(50_000).hex())
    packed = gzip.compress(text.encode())
    content = {
        "cut": packed[:-500],
        "zeros inside": packed[:9000] + bytes(100) + packed[9100:],
        "no gzip": packed[:2] + b"garbage",
    }[damage]
    with pytest.raises(TableError, match=rf"in\.{format_}\.gz is a damaged gzip file: "):
        read(written(tmp_path / f"in.{format_}.gz", content))


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"a,b\n1,2\n", "csv"),
        (b"a\tb\n1\t2\n", "tsv"),
        (b'\n{"a": 1}\n', "jsonl"),
        (b"\xef\xbb\xbf a,b\tc\n", "csv"),
        (b' [{"a": 1}]', "json"),
    ],
)
def test_format_is_recognised_by_content_when_the_name_says_nothing(tmp_path, content, expected):
    with open_table(str(written(tmp_path / "download", content))) as table:
        assert table.sources[0].format == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("a.CSV", "csv"),
        ("a.b.tab", "tsv"),
        ("a.jsonl.GZ", "jsonl"),
        ("a.pq", "parquet"),
        ("a.parquet.gz", None),
        ("a.gz", None),
        ("a.xlsx.gz", None),
        ("a.txt.gz", "txt"),
        ("a.xls", None),
        ("csv", None),
    ],
)
def test_endings_stand_for_formats(name, expected):
    assert format_of_name(name) == expected


@pytest.mark.parametrize("name", ["out.xls", "out", "out.parquet.gz"])
def test_output_ending_must_stand_for_a_format(tmp_path, name):
    message = rf"{name}: the ending must be one of \.csv, .*; \.gz may follow"
    with pytest.raises(TableError, match=message):
        convert(jsonl(tmp_path / "in.jsonl", [{"text": "a"}]), tmp_path / name)
    assert os.listdir(tmp_path) == ["in.jsonl"]
    with pytest.raises(TableError, match=message):
        check_output_name(name)


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"format": "xls"}, "format must be one of csv, .*, txt; got 'xls'"),
        ({"delimiter": "||"}, r"delimiter must be one character, .*; got '\|\|'"),
        ({"delimiter": '"'}, "delimiter must be one character"),
        ({"delimiter": ""}, "delimiter must be one character"),
        ({"encoding": "utf-9"}, "there is no encoding 'utf-9'"),
        ({"encoding": "hex"}, "there is no encoding 'hex'"),
    ],
)
def test_impossible_formats_are_refused(how, message):
    with pytest.raises(TableError, match=message):
        TableFormat(**how)


# Files that are no tables


@pytest.mark.parametrize("format_", FORMAT_NAMES)
def test_empty_file_is_named(tmp_path, format_):
    with pytest.raises(TableError, match=rf"in\.{format_} is empty\."):
        read(written(tmp_path / f"in.{format_}", b""))


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (b"%PDF-1.7\n", "PDF"),
        (b"\x89PNG\r\n\x1a\n", "PNG picture"),
        (b"\xff\xd8\xff\xe0", "JPEG picture"),
        (b"GIF89a", "GIF picture"),
        (b"SQLite format 3\0", "SQLite"),
        (b"BZh91AY", "bzip2"),
        (b"\xfd7zXZ\0", "xz"),
        (b"ARROW1\0\0", "Arrow"),
        (b"\x80\x04\x95", "pickle"),
        (b"\x7fELF\x02\x01", "program"),
        (b"<!DOCTYPE html><html>", "web page"),
    ],
)
@pytest.mark.parametrize("ending", [*FORMAT_NAMES, "dat"])
def test_actual_type_of_another_file_is_named(tmp_path, content, kind, ending):
    source = written(tmp_path / f"in.{ending}", content)
    with pytest.raises(TableError, match=rf"in\.{ending} is an? .*{kind}"):
        read(source)


def test_texts_can_be_web_pages_if_the_format_is_named(tmp_path):
    source = written(tmp_path / "in.txt", "<html>one\n<html>two\n")
    assert [row["text"] for row in read(source, format="txt")] == ["<html>one", "<html>two"]


@pytest.mark.parametrize(
    ("name", "inner", "kind"),
    [
        ("in.zip", "a.csv", "zip archive"),
        ("in.docx", "word/document.xml", "Word"),
        ("in.pptx", "ppt/presentation.xml", "PowerPoint"),
        ("in.xlsx", "word/document.xml", "Word"),
    ],
)
def test_actual_type_of_another_archive_is_named(tmp_path, name, inner, kind):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(inner, "x")
    with pytest.raises(TableError, match=rf"is a {kind}"):
        read(written(tmp_path / name, file.getvalue()))


def test_binary_table_with_the_name_of_another_says_so(tmp_path):
    pq.write_table(pa.table({"text": ["a"]}), tmp_path / "in.parquet")
    workbook = convert(tmp_path / "in.parquet", tmp_path / "out.xlsx")
    assert CalamineWorkbook.from_path(str(workbook)).sheet_names == ["ulr"]
    for source, named, actual in (
        (workbook, "csv", "xlsx"),
        (workbook, "parquet", "xlsx"),
        (tmp_path / "in.parquet", "jsonl", "parquet"),
        (tmp_path / "in.parquet", "xlsx", "parquet"),
    ):
        wrong = written(tmp_path / f"wrong.{named}", source.read_bytes())
        with pytest.raises(TableError, match=rf"looks like \.{actual}"):
            read(wrong)
        assert read(wrong, format=actual)[0]["text"] == "a"


def test_old_excel_files_are_named(tmp_path):
    source = written(tmp_path / "in.xls", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600))
    with pytest.raises(TableError, match=r"old Excel .*save it as \.xlsx"):
        read(source)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("in.jsonl", b'{"a": 1}\n\n{"a": }\n', r"line 3 is not JSON: Expecting value\."),
        ("in.jsonl", b'{"a": 1} {"b": 2}\n', r"line 1 is not JSON: Extra data\."),
        ("in.jsonl", b'[{"text": "a"}]\n', r'line 1 must be a JSON object; got \[{"text": "a"}\]'),
        (
            "in.jsonl",
            b'{"text": "half \\ud83d"}\n',
            r"line 1 is not JSON: .* surrogates not allowed",
        ),
        ("in.jsonl", b'{"text": ' + b"[" * 100_000, "line 1 is not JSON: maximum recursion depth"),
        ("in.jsonl", b'{"n": ' + b"1" * 5000 + b"}", "line 1 is not JSON: Exceeds the limit"),
        ("in.jsonl", b"{}\n", r"in\.jsonl has no rows\."),
        ("in.json", b'\n[{"a": 1},\n{"a": }]', r"line 3 is not JSON: Expecting value\."),
        (
            "in.json",
            b'[{"a": "\\udead"}]',
            r"in\.json line 1 is not JSON: .* surrogates not allowed",
        ),
        ("in.json", b"[" * 100_000, "is not JSON: maximum recursion depth"),
        ("in.json", b'{"a": 1}', r"must hold an array of objects; it holds one dict\. .*\.jsonl"),
        ("in.json", b'[{"a": 1}, "b"]', r'item 2 must be an object; got "b"\.'),
        ("in.json", b"[]", r"in\.json has no rows\."),
        ("in.csv", b"\n\n", r"in\.csv has no rows\."),
        ("in.csv.gz", gzip.compress(b""), r"in\.csv\.gz has no rows\."),
        ("in.csv", b"a,text,a\n1,2,3\n", r"has more than one column 'a'; rename one\."),
        (
            "in.parquet",
            b"id,text\n1,a\n",
            "cannot be read as Parquet: Parquet magic bytes not found",
        ),
        ("in.xlsx", b"id,text\n1,a\n", "cannot be read as an Excel workbook: "),
    ],
)
def test_broken_file_is_one_sentence_that_names_it(tmp_path, name, content, message):
    path = written(tmp_path / name, content)
    with pytest.raises(TableError, match=message) as raised:
        read(path)
    assert str(path) in str(raised.value)
    assert raised.value.__cause__ is None


@pytest.mark.parametrize("name", ["in.parquet", "in.xlsx"])
def test_cut_binary_file_is_one_sentence_that_names_it(tmp_path, name):
    path = convert(jsonl(tmp_path / "in.jsonl", [{"text": "a"}] * 50), tmp_path / name)
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(TableError, match=rf"{name} (cannot be read as|is a zip archive)"):
        read(path)


# JSON

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


# Text files and workbooks


def test_text_file_has_one_document_per_line(tmp_path):
    source = written(tmp_path / "in.txt", "first, with comma\r\n\r\nlast")
    assert read(source) == [{"text": "first, with comma"}, {"text": ""}, {"text": "last"}]
    lines = convert(source, tmp_path / "out.csv").read_text().splitlines()
    assert lines[:2] == ["text,label,confidence", '"first, with comma",a; b,0.25']
    with pytest.raises(TableError, match=r"out\.txt: the ending must be one of"):
        convert(source, tmp_path / "out.txt")


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


# Parquet

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
