"""Delimiters, encodings, workbooks, several files, and files that are no tables."""

import csv
import io
import json
import random
import zipfile
from datetime import datetime

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from python_calamine import CalamineWorkbook

from ulr.errors import TableError
from ulr.tables import TableFormat, open_table, write_table
from ulr.tables.batch import BATCH_ROWS
from ulr.tables.csv_files import delimiter_of, parse_rows

ADDED = {"label": str, "confidence": float}


def read(*names, **how):
    with open_table([str(name) for name in names], TableFormat(**how)) as table:
        return [record for batch in table.batches() for record in batch.as_records()]


def convert(sources, target, **how):
    """Write the rows of some files with two more columns."""
    names = [str(name) for name in (sources if isinstance(sources, list) else [sources])]
    with open_table(names, TableFormat(**how)) as table:
        rows = (
            (batch, {"label": ["a; b"] * len(batch), "confidence": [0.25] * len(batch)})
            for batch in table.batches()
        )
        write_table(str(target), table.sources, rows, ADDED)
    return target


def written(path, content):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


# Delimiters


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        ("a,b\n1,2\n", ","),
        ("a;b\n1,5;2\n", ";"),
        ("a;b\n1,5;2,5\n", ";"),
        ("a\tb, c\n1\t2, 3, 4\n", "\t"),
        ("a|b\nx, y|2\n", "|"),
        ('text;"a;b,c"\n"x,y;z";2\n', ";"),
        ('id;text\n1;"two\nlines, here"\n2;x\n', ";"),
        ("text\nHello, world\nplain\n", ","),
        ("text\none\ntwo\n", ","),
        ("a;b;c\n1;2\n", ";"),  # a ragged file: the header decides
        ('id,text\n1,"never closed\n', ","),
        ("", ","),
    ],
)
def test_delimiter_is_detected(head, expected):
    assert delimiter_of(head) == (expected, False)


@pytest.mark.parametrize("delimiter", [";", "\t", "|", ","])
@pytest.mark.parametrize("named", [False, True])
def test_output_keeps_delimiter_and_text_of_the_rows(tmp_path, delimiter, named):
    rows = [f"id{delimiter}text", f'1{delimiter}"quoted ""text"""', f"2{delimiter} plain "]
    first = [f"sep={delimiter}"] if named else []
    source = written(tmp_path / "in.csv", "\r\n".join([*first, *rows]) + "\r\n")
    assert read(source) == [
        {"id": "1", "text": 'quoted "text"'},
        {"id": "2", "text": " plain "},
    ]
    lines = convert(source, tmp_path / "out.csv").read_text().splitlines()
    label = '"a; b"' if delimiter == ";" else "a; b"
    assert lines[0] == delimiter.join([rows[0], "label", "confidence"])
    assert lines[1:] == [delimiter.join([row, label, "0.25"]) for row in rows[1:]]


def test_other_format_gets_its_own_delimiter(tmp_path):
    source = written(tmp_path / "in.csv", "id;text\n1;a\n")
    assert convert(source, tmp_path / "out.tsv").read_text() == (
        "id\ttext\tlabel\tconfidence\n1\ta\ta; b\t0.25\n"
    )
    assert read(convert(tmp_path / "out.tsv", tmp_path / "again.jsonl"), format="jsonl")[0][
        "text"
    ] == "a"  # fmt: skip


def test_named_delimiter_wins_over_the_detected_one(tmp_path):
    source = written(tmp_path / "in.csv", "a;b,c\n1;2,3\n")
    assert read(source, delimiter=",") == [{"a;b": "1;2", "c": "3"}]


def test_rows_are_those_of_the_csv_module():
    draw = random.Random(0)
    pieces = ["", "a", "b c", '"', '""', ",", "\n", "\r\n", "é", ";"]
    for _ in range(300):
        rows = [
            ["".join(draw.choices(pieces, k=draw.randrange(5))) for _ in range(3)]
            for _ in range(draw.randrange(1, 6))
        ]
        text = io.StringIO()
        csv.writer(text, quoting=draw.choice([csv.QUOTE_MINIMAL, csv.QUOTE_ALL])).writerows(rows)
        found = [fields for _, fields, _ in parse_rows(io.StringIO(text.getvalue(), ""), ",")]
        assert found == rows


# Encodings


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-8-sig"])
@pytest.mark.parametrize("name", ["in.csv", "in.jsonl", "in.json", "in.txt"])
def test_unicode_encodings_are_detected(tmp_path, encoding, name):
    content = {
        "in.csv": "id;text\n1;café\n",
        "in.jsonl": '{"id": "1", "text": "café"}\n',
        "in.json": '[{"id": "1", "text": "café"}]',
        "in.txt": "café\n",
    }[name]
    source = written(tmp_path / name, content.encode(encoding))
    assert [row["text"] for row in read(source)] == ["café"]
    if name != "in.txt":
        target = convert(source, tmp_path / f"out.{name}")
        assert "café" in target.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["in.csv", "in.jsonl", "in.json", "in.txt"])
def test_other_encodings_are_refused_with_advice_and_read_by_name(tmp_path, name):
    content = {"in.csv": 'text\n"café"\n', "in.txt": "café\n"}.get(name, '{"text": "café"}')
    content = f"[{content}]" if name == "in.json" else content
    source = written(tmp_path / name, content.encode("latin-1"))
    with pytest.raises(TableError, match=r"is not UTF-8: .* --encoding cp1252"):
        read(source)
    assert read(source, encoding="cp1252") == [{"text": "café"}]


# Workbooks, JSON arrays, text files


def test_workbook_keeps_texts_numbers_and_dates(tmp_path):
    when = datetime(2024, 5, 1, 12, 30)
    table = pa.table(
        {
            "text": ["=1+1", "http://a.b", None],
            "n": [1, 2, None],
            "long": [2**60, 1, 2],
            "x": [0.5, float("nan"), float("inf")],
            "at": pa.array([when, None, when], pa.timestamp("us")),
            "tags": [["a", "b"], [], None],
            "flag": [True, False, None],
        }
    )
    pq.write_table(table, tmp_path / "in.parquet")
    target = convert(tmp_path / "in.parquet", tmp_path / "out.xlsx")
    first, second, third = read(target)
    assert first == {
        "text": "=1+1", "n": 1, "long": str(2**60), "x": 0.5, "at": when, "tags": '["a", "b"]',
        "flag": True, "label": "a; b", "confidence": 0.25,
    }  # fmt: skip
    assert (second["text"], second["x"], second["flag"]) == ("http://a.b", "nan", False)
    assert (third["text"], third["n"], third["x"]) == (None, None, "inf")
    again = convert(target, tmp_path / "again.parquet", header=False)
    assert pq.read_table(again).num_rows == 4
    assert pq.read_table(again).column_names[:2] == ["c1", "c2"]


def test_first_sheet_with_content_is_read(tmp_path):
    import xlsxwriter

    with xlsxwriter.Workbook(tmp_path / "in.xlsx") as book:
        book.add_worksheet("empty")
        sheet = book.add_worksheet("full")
        sheet.write_row(2, 1, ["text", ""])
        sheet.write_row(3, 1, ["a", 2.0])
    assert read(tmp_path / "in.xlsx") == [{"text": "a", "c2": 2}]


def test_text_too_long_for_a_cell_leaves_no_workbook(tmp_path):
    source = written(tmp_path / "in.jsonl", json.dumps({"text": "x" * 40_000}))
    with pytest.raises(TableError, match="32,767 characters"):
        convert(source, tmp_path / "out.xlsx")
    assert [path.name for path in tmp_path.iterdir()] == ["in.jsonl"]


def test_json_array_is_written_as_an_array_without_nan(tmp_path):
    source = written(tmp_path / "in.json", '[{"a": [NaN, {"b": 1}]},\n {"c": -Infinity}]')
    found = json.loads(
        convert(source, tmp_path / "out.json").read_text(), parse_constant=pytest.fail
    )
    added = {"label": "a; b", "confidence": 0.25}
    assert found == [{"a": [None, {"b": 1}]} | added, {"c": None} | added]


def test_text_file_has_one_document_per_line(tmp_path):
    source = written(tmp_path / "in.txt", "first, with comma\r\n\r\nlast")
    assert read(source) == [{"text": "first, with comma"}, {"text": ""}, {"text": "last"}]
    lines = convert(source, tmp_path / "out.csv").read_text().splitlines()
    assert lines[:2] == ["text,label,confidence", '"first, with comma",a; b,0.25']
    with pytest.raises(TableError, match="no columns to write labels into"):
        convert(source, tmp_path / "out.txt")


# Several files


def test_folder_pattern_and_list_are_one_table(tmp_path):
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


def test_rows_of_several_files_are_numbered_on(tmp_path):
    for name in ("a.csv", "b.csv"):
        written(tmp_path / name, "text\n" + "x\n" * 20_000)
    with open_table(str(tmp_path)) as table:
        starts = [(batch.first_row, len(batch)) for batch in table.batches()]
    n_full = BATCH_ROWS
    first = [(0, n_full), (n_full, 20_000 - n_full)]
    assert starts == [*first, *((20_000 + start, size) for start, size in first)]


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
    with pytest.raises(
        TableError, match=r"d\.csv has the columns number, text, but .*a\.csv has id"
    ):
        read(*sources)
    records = [
        written(tmp_path / "a.jsonl", '{"a": 1}'),
        written(tmp_path / "b.json", '[{"b": 2}]'),
    ]
    target = convert(records, tmp_path / "out.parquet")
    assert pq.read_table(target).column_names == ["a", "b", "label", "confidence"]


# Files that are no tables


def archive(inner):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as out:
        out.writestr(inner, "x")
    return file.getvalue()


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
@pytest.mark.parametrize("ending", ["csv", "jsonl", "txt", "xlsx", "parquet", "dat"])
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
    with pytest.raises(TableError, match=rf"is a {kind}"):
        read(written(tmp_path / name, archive(inner)))


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


# Parquet with values that Python has not


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
