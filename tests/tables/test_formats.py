"""Every format keeps every cell, reads files as people have them, and names what is broken."""

import gzip
import io
import os
import random
import zipfile

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from table_files import ENDINGS, columns_of, convert, jsonl, read, written

from ulr.errors import TableError
from ulr.tables import (
    FORMAT_NAMES,
    TableFormat,
    check_output_name,
    format_of_name,
    open_table,
    write_table,
)

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
        found = read(path)
        # An empty cell of Excel is None.
        assert {row["id"]: row["text"] or "" for row in found} == cells
        assert {(row["label"], float(row["confidence"])) for row in found} == {("a; b", 0.25)}
        assert columns_of(path)[:4] == ["id", "text", "label", "confidence"]
    unnamed = first.rename(tmp_path / "first")
    with open_table(str(unnamed)) as table:
        assert table.sources[0].format == format_of_name(f"first.{ending}")
    assert ending.endswith("gz") == unnamed.read_bytes().startswith(b"\x1f\x8b")


def copy(source, target):
    """A copy of a file with one more column."""
    with open_table(str(source)) as table:
        rows = ((batch, {"more": ["x"] * len(batch)}) for batch in table.batches())
        write_table(str(target), table, rows, {"more": str})
    return target


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet", "json", "xlsx"])
def test_rows_keep_their_order_over_many_batches(tmp_path, ending):
    source = jsonl(tmp_path / "in.jsonl", [{"n": i, "text": f"text {i}"} for i in range(20_000)])
    with open_table(str(convert(source, tmp_path / f"out.{ending}"))) as table:
        batches = list(table.batches())
    assert [int(n) for batch in batches for n in batch.column("n")] == list(range(20_000))
    assert len(batches) > 1
    assert all(batch.first_row == int(batch.column("n")[0]) for batch in batches)


# Odd files that are read

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


def test_texts_can_be_web_pages_if_the_format_is_named(tmp_path):
    source = written(tmp_path / "in.txt", "<html>one\n<html>two\n")
    assert [row["text"] for row in read(source, format="txt")] == ["<html>one", "<html>two"]


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


ENDINGS_OF_FORMATS = {
    "a.CSV": "csv",
    "a.b.tab": "tsv",
    "a.jsonl.GZ": "jsonl",
    "a.pq": "parquet",
    "a.txt.gz": "txt",
    **dict.fromkeys(["a.parquet.gz", "a.gz", "a.xlsx.gz", "a.xls", "csv"]),
}


@pytest.mark.parametrize("name", ENDINGS_OF_FORMATS)
def test_endings_stand_for_formats_and_an_output_needs_one(tmp_path, name):
    expected = ENDINGS_OF_FORMATS[name]
    assert format_of_name(name) == expected
    if expected in (None, "txt"):
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


# Files that are refused


def archive_of(name):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(name, "x")
    return file.getvalue()


OTHER_CONTENT = {
    b"": "is empty",
    b"%PDF-1.7\n": "is a PDF",
    b"\x89PNG\r\n\x1a\n": "is a PNG picture",
    b"\xff\xd8\xff\xe0": "is a JPEG picture",
    b"GIF89a": "is a GIF picture",
    b"SQLite format 3\0": "is a SQLite",
    b"BZh91AY": "is a bzip2",
    b"\xfd7zXZ\0": "is an xz",
    b"ARROW1\0\0": "is an Arrow",
    b"\x80\x04\x95": "is a pickle",
    b"\x7fELF\x02\x01": "is a program",
    b"<!DOCTYPE html><html>": "is a web page",
}
PACKED = gzip.compress(random.Random(0).randbytes(50_000).hex().encode())
DAMAGED = [
    PACKED[:-500],
    PACKED[:9000] + bytes(100) + PACKED[9100:],
    PACKED[:2] + b"garbage",
]
HALF = rb'{"text": "half \ud83d"}'
DEEP = b"[" * 100_000
NO_WORKBOOK = r"cannot be read as an Excel workbook: .*; if it is another zip archive, extract it"
REFUSED = [
    *[(f"in.{e}", c, m) for c, m in OTHER_CONTENT.items() for e in (*FORMAT_NAMES, "dat")],
    *[(f"in.{e}.gz", c, "is a damaged gzip file: ") for c in DAMAGED for e in TEXTS],
    *[
        (f"in.{e}", text.encode("latin-1"), r"is not UTF-8: byte 0xe9 .* --encoding cp1252")
        for e, text in TEXTS.items()
    ],
    ("in.csv.gz", gzip.compress(b""), "is empty"),
    ("in.xls", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600), r"old Excel .*save it as \.xlsx"),
    ("in.zip", archive_of("a.csv"), NO_WORKBOOK),
    ("in.docx", archive_of("word/document.xml"), NO_WORKBOOK),
    ("in.xlsx", archive_of("word/document.xml"), NO_WORKBOOK),
    ("in.xlsx", b"id,text\n1,a\n", NO_WORKBOOK),
    ("in.parquet", b"id,text\n1,a\n", "cannot be read as Parquet: Parquet magic bytes not found"),
    ("in.jsonl", b'{"a": 1}\n\n{"a": }\n', r"line 3 is not JSON: Expecting value\."),
    ("in.jsonl", b'{"a": 1} {"b": 2}\n', r"line 1 is not JSON: Extra data\."),
    ("in.jsonl", b'[{"text": "a"}]\n', r'line 1 must be a JSON object; got \[{"text": "a"}\]'),
    ("in.jsonl", HALF, r"line 1 is not JSON: Half of a surrogate pair"),
    ("in.jsonl", b'{"text": ' + DEEP, "line 1 is not JSON: maximum recursion depth"),
    ("in.jsonl", b'{"n": ' + b"1" * 5000 + b"}", "line 1 is not JSON: Exceeds the limit"),
    ("in.jsonl", b"{}\n", r"has no rows\."),
    ("in.json", b'\n[{"a": 1},\n{"a": }]', r"line 3 is not JSON: Expecting value\."),
    ("in.json", b"[" + HALF + b"]", r"line 1 is not JSON: Half of a surrogate pair"),
    ("in.json", DEEP, "is not JSON: maximum recursion depth"),
    ("in.json", b'{"a": 1}', r"must hold an array of objects; it holds one dict\. .*\.jsonl"),
    ("in.json", b'[{"a": 1}, "b"]', r'item 2 must be an object; got "b"\.'),
    ("in.json", b"[]", r"has no rows\."),
    ("in.csv", b"\n\n", r"has no rows\."),
    ("in.csv", b"a,text,a\n1,2,3\n", r"has more than one column 'a'; rename one\."),
]


@pytest.mark.parametrize(
    ("name", "content", "message"), REFUSED, ids=[f"{each[0]}-{each[2]}" for each in REFUSED]
)
def test_file_that_cannot_be_read_is_one_sentence_that_names_it(tmp_path, name, content, message):
    path = written(tmp_path / name, content)
    with pytest.raises(TableError, match=f"{path}.* {message}") as raised:
        read(path)
    assert raised.value.__cause__ is None


@pytest.mark.parametrize("name", ["in.parquet", "in.xlsx"])
def test_cut_binary_file_is_one_sentence_that_names_it(tmp_path, name):
    path = convert(jsonl(tmp_path / "in.jsonl", [{"text": "a"}] * 50), tmp_path / name)
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(TableError, match=rf"{name} cannot be read as"):
        read(path)


@pytest.mark.parametrize(
    ("actual", "named"),
    [("xlsx", "csv"), ("xlsx", "parquet"), ("parquet", "jsonl"), ("parquet", "xlsx")],
)
def test_binary_table_with_the_name_of_another_says_so(tmp_path, actual, named):
    pq.write_table(pa.table({"text": ["a"]}), tmp_path / "in.parquet")
    convert(tmp_path / "in.parquet", tmp_path / f"out.{actual}")
    wrong = (tmp_path / f"out.{actual}").rename(tmp_path / f"wrong.{named}")
    with pytest.raises(TableError, match=rf"looks like \.{actual}"):
        read(wrong)
    assert read(wrong, format=actual)[0]["text"] == "a"
