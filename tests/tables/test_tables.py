"""Rows and columns are written as they were read; a bad file is one error that names it."""

import gzip
import json
import os
import subprocess
from datetime import UTC, date, datetime

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ulr.errors import TableError
from ulr.tables import TableFormat, format_of_name, open_table, write_table

ADDED = {"label": str, "confidence": float}
ENDINGS = ["csv", "tsv", "tab", "jsonl", "ndjson", "json", "xlsx", "parquet", "pq"]
ENDINGS += ["csv.gz", "tsv.gz", "jsonl.gz", "json.gz"]
ROWS = [
    {"id": "1", "text": "Where is my parcel?", "note": ""},
    {"id": "2", "text": 'She said "now", twice;\nthen hung up', "note": "a\tb,c"},
    {"id": "3", "text": "caf\u00e9 \u2013 \u6771\u4eac \U0001f600", "note": "one\rtwo\r\nthree"},
    {"id": "4", "text": "", "note": " spaces kept "},
]


def rows_of(path, **how):
    with open_table(str(path), TableFormat(**how)) as table:
        return [record for batch in table.batches() for record in batch.as_records()]


def columns_of(path, **how):
    with open_table(str(path), TableFormat(**how)) as table:
        return list(table.columns)


def convert(source, target, **how):
    """Write the rows of `source` to `target` with two more columns."""
    with open_table(str(source), TableFormat(**how)) as table:
        rows = (
            (batch, {"label": ["a"] * len(batch), "confidence": [0.25] * len(batch)})
            for batch in table.batches()
        )
        write_table(str(target), table.sources, rows, ADDED)
    return target


def jsonl(path, records):
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def written(path, content):
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("ending", ENDINGS)
def test_texts_survive_every_format(tmp_path, ending):
    first = convert(jsonl(tmp_path / "in.jsonl", ROWS), tmp_path / f"first.{ending}")
    found = rows_of(first)
    # An empty cell of Excel is None.
    read = [{key: row[key] if row[key] is not None else "" for key in ROWS[0]} for row in found]
    assert read == ROWS
    assert [(row["label"], float(row["confidence"])) for row in found] == [("a", 0.25)] * 4
    assert columns_of(first) == ["id", "text", "note", "label", "confidence"]


@pytest.mark.parametrize("ending", ENDINGS)
def test_format_written_is_the_format_read(tmp_path, ending):
    path = jsonl(tmp_path / "in.jsonl", [{"text": "a"}])
    first = convert(path, tmp_path / f"first.{ending}")
    unnamed = first.rename(tmp_path / "first")
    with open_table(str(unnamed)) as table:
        assert table.sources[0].format == format_of_name(f"first.{ending}")
    assert ending.endswith("gz") == unnamed.read_bytes().startswith(b"\x1f\x8b")


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
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


UNEVEN = [
    {"text": "a", "tags": ["x", "\u00fc"], "n": 1, "price": 2, "flag": True},
    {"text": "b", "n": 2, "price": 2.5, "who": {"name": "Ann"}, "mixed": 1, "nothing": None},
    {"mixed": "one", "text": "c", "flag": None, "long": 2**62, "huge": 2**70, "sum": 2**60},
    {"text": None, "sum": 0.5},
]
UNEVEN_COLUMNS = ["text", "tags", "n", "price", "flag", "who", "mixed", "nothing"]
UNEVEN_COLUMNS += ["long", "huge", "sum", "label", "confidence"]


def test_jsonl_stays_as_it_is(tmp_path):
    target = convert(jsonl(tmp_path / "in.jsonl", UNEVEN), tmp_path / "out.jsonl")
    assert rows_of(target) == [row | {"label": "a", "confidence": 0.25} for row in UNEVEN]


def test_uneven_jsonl_to_csv_has_every_key_as_a_column(tmp_path):
    target = convert(jsonl(tmp_path / "in.jsonl", UNEVEN), tmp_path / "out.csv")
    assert columns_of(target) == UNEVEN_COLUMNS
    first, second, third, last = rows_of(target)
    assert first["tags"] == '["x", "\u00fc"]'
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
    first, last = rows_of(convert(tmp_path / "in.parquet", tmp_path / "out.csv"))
    assert list(first.values()) == [
        *("a", "1", "2024-05-01 12:00:00+00:00", "2024-05-01", "x", '[{"on": "2024-05-01"}]'),
        *("a", "0.25"),
    ]
    assert (last["text"], last["day"], last["parts"]) == ("", "", "[]")
    first, last = rows_of(convert(tmp_path / "in.parquet", tmp_path / "out.jsonl"))
    assert (first["n"], first["day"], first["parts"]) == (1, "2024-05-01", [{"on": "2024-05-01"}])
    assert (last["text"], last["day"], last["parts"]) == (None, None, [])


@pytest.mark.parametrize(
    ("content", "how", "expected"),
    [
        pytest.param(
            b'id,text\r\n1,"two\r\nlines"\r\n',
            {},
            [{"id": "1", "text": "two\r\nlines"}],
            id="quoted newline",
        ),
        pytest.param(
            b'\xef\xbb\xbf"text",id\nhello,1\n', {}, [{"text": "hello", "id": "1"}], id="BOM"
        ),
        pytest.param(
            b"text,id\ncaf\xe9,1\n",
            {"encoding": "latin-1"},
            [{"text": "caf\u00e9", "id": "1"}],
            id="latin-1",
        ),
        pytest.param(
            "text,id\ncaf\u00e9,1\n".encode("utf-16"),
            {"encoding": "utf-16"},
            [{"text": "caf\u00e9", "id": "1"}],
            id="UTF-16",
        ),
        pytest.param(
            b"\n\na,b\n\n1,2\n\n3,4\n\n\n",
            {},
            [{"a": "1", "b": "2"}, {"a": "3", "b": "4"}],
            id="blank lines",
        ),
        pytest.param(
            b'text\none\n\n""\n',
            {},
            [{"text": "one"}, {"text": ""}, {"text": ""}],
            id="blank lines of a single column are empty texts",
        ),
        pytest.param(b"a;b\n1,5;2\n", {"delimiter": ";"}, [{"a": "1,5", "b": "2"}], id="delimiter"),
        pytest.param(
            b"1,x\n2,y\n",
            {"header": False},
            [{"c1": "1", "c2": "x"}, {"c1": "2", "c2": "y"}],
            id="no header",
        ),
        pytest.param(b"a,b\r1,2\r", {}, [{"a": "1", "b": "2"}], id="old Macintosh line ends"),
        pytest.param(b"a,b\n1,2", {}, [{"a": "1", "b": "2"}], id="no newline at the end"),
        pytest.param(b",text\n0,x\n", {}, [{"": "0", "text": "x"}], id="column without a name"),
        pytest.param(
            b'\xef\xbb\xbf{"a": 1}\n\n  \n{"b": "\\u00e9 \\ud83d\\ude00"}',
            {"format": "jsonl"},
            [{"a": 1}, {"b": "\u00e9 \U0001f600"}],
            id="JSONL with a BOM and blank lines",
        ),
    ],
)
def test_text_files_as_people_have_them(tmp_path, content, how, expected):
    assert rows_of(written(tmp_path / "in.csv", content), **how) == expected
    assert rows_of(written(tmp_path / "in.csv", gzip.compress(content)), **how) == expected


def test_field_of_several_megabytes(tmp_path):
    text = 'long "text", ' * 400_000
    source = jsonl(tmp_path / "in.jsonl", [{"id": 1, "text": text}, {"id": 2, "text": "short"}])
    assert [row["text"] for row in rows_of(convert(source, tmp_path / "out.csv"))] == [
        text,
        "short",
    ]


def test_file_without_header_is_written_without_header(tmp_path):
    target = convert(written(tmp_path / "in.csv", b"1,x\n"), tmp_path / "out.csv", header=False)
    assert target.read_bytes() == b"1,x,a,0.25\n"


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
def test_format_is_told_from_the_content_when_the_name_says_nothing(tmp_path, content, expected):
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
        ("a.xlsx", "xlsx"),
        ("a.xlsx.gz", None),
        ("a.txt.gz", "txt"),
        ("a.xls", None),
        ("csv", None),
    ],
)
def test_endings_stand_for_formats(name, expected):
    assert format_of_name(name) == expected


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


def test_several_columns_are_joined_without_their_nulls(tmp_path):
    records = [{"title": "A", "body": "b"}, {"title": None, "body": "b"}, {"title": "A"}, {}]
    with open_table(str(jsonl(tmp_path / "in.jsonl", records))) as table:
        (batch,) = table.batches()
        assert table.texts(batch, ["title", "body"]) == ["A b", "b", "A", ""]
        assert table.texts(batch, ["body", "title"]) == ["b A", "b", "A", ""]
        assert table.texts(batch, ["title"]) == ["A", "", "A", ""]


def test_value_that_is_no_text_is_named(tmp_path):
    records = [{"text": "fine"}] * 20_000 + [{"text": ["no", "text"]}]
    with open_table(str(jsonl(tmp_path / "in.jsonl", records))) as table:
        _, last = table.batches()
        with pytest.raises(
            TableError,
            match=r"in\.jsonl row 20001: column 'text' holds .*'no', 'text'.* not a text",
        ):
            table.texts(last, ["text"])


def test_numbers_and_dates_count_as_texts_and_bytes_do_not(tmp_path):
    columns = {"n": [7, None], "day": [date(2024, 5, 1)] * 2, "raw": [b"a", b"b"]}
    pq.write_table(pa.table(columns), tmp_path / "in.parquet")
    with open_table(str(tmp_path / "in.parquet")) as table:
        (batch,) = table.batches()
        assert table.texts(batch, ["n", "day"]) == ["7 2024-05-01", "2024-05-01"]
        with pytest.raises(TableError, match=r"row 1: column 'raw' holds .* not a text"):
            table.texts(batch, ["raw"])


PACKED = gzip.compress(b"text\n" + os.urandom(50_000).hex().encode())


@pytest.mark.parametrize(
    ("name", "content", "how", "message"),
    [
        pytest.param(
            *("in.csv", b"text\ncaf\xe9\n", {}),
            r"in\.csv is not UTF-8: byte 0xe9 .* --encoding cp1252",
            id="latin-1",
        ),
        pytest.param(
            *("in.csv", b"text\n\x81\n", {"encoding": "cp1252"}),
            r"in\.csv is not CP1252: byte 0x81 ",
            id="other code page",
        ),
        pytest.param(
            *("in.csv", b"text\na\n", {"encoding": "utf-16"}),
            r"in\.csv is not UTF-16: .*BOM",
            id="UTF-16 without BOM",
        ),
        pytest.param(
            *("in.csv", b'id,text\n1,fine\n2,"never closed\n3,x\n', {}),
            r"the row that begins on line 3 is broken: a quote is never closed",
            id="unclosed quote",
        ),
        pytest.param(
            *("in.csv", b'id,text\n1,"closed" early\n', {}),
            r"the row that begins on line 2 is broken: ',' expected after the quote",
            id="text after a quote",
        ),
        pytest.param(
            *("in.csv", b'id,text\n1,"two\nlines"\n\n2,a,b\n', {}),
            r"in\.csv line 5 has 3 fields, but 2 were expected: id, text\.",
            id="ragged row",
        ),
        pytest.param(
            *("in.csv", b"a,text,a\n1,2,3\n", {}),
            r"in\.csv has more than one column 'a'; rename one\.",
            id="same column twice",
        ),
        pytest.param(*("in.csv", b"", {}), r"in\.csv is empty\.", id="empty"),
        pytest.param(*("in.parquet", b"", {}), r"in\.parquet is empty\.", id="empty Parquet"),
        pytest.param(*("in.csv", b"\n\n", {}), r"in\.csv has no rows\.", id="blank"),
        pytest.param(
            *("in.csv.gz", gzip.compress(b""), {}), r"in\.csv\.gz has no rows\.", id="packed empty"
        ),
        pytest.param(
            *("in.csv.gz", PACKED[:-500], {}),
            r"in\.csv\.gz is a damaged gzip file: .*ended before",
            id="cut gzip",
        ),
        pytest.param(
            *("in.csv.gz", PACKED[:9000] + bytes(100) + PACKED[9100:], {}),
            r"in\.csv\.gz is a damaged gzip file: ",
            id="damaged gzip",
        ),
        pytest.param(
            *("in", PACKED[:2] + b"garbage", {}), r"in is a damaged gzip file: ", id="no gzip"
        ),
        pytest.param(
            *("in.parquet", b"id,text\n1,this is no Parquet file\n", {}),
            r"in\.parquet cannot be read as Parquet: Parquet magic bytes not found",
            id="text named Parquet",
        ),
        pytest.param(
            *("in.jsonl", b'{"a": 1}\n\n{"a": }\n', {}),
            r"in\.jsonl line 3 is not JSON: Expecting value\.",
            id="broken JSON",
        ),
        pytest.param(
            *("in.jsonl", b'[{"text": "a"}]\n', {}),
            r'in\.jsonl line 1 must be a JSON object; got \[{"text": "a"}\]\.',
            id="JSON list",
        ),
        pytest.param(
            *("in.jsonl", b'{"text": "half \\ud83d"}\n', {}),
            r"in\.jsonl line 1 is not JSON: .* surrogates not allowed\.",
            id="half a surrogate pair",
        ),
        pytest.param(
            *("in.jsonl", b'{"text": ' + b"[" * 100_000, {}),
            r"in\.jsonl line 1 is not JSON: maximum recursion depth",
            id="JSON of great depth",
        ),
        pytest.param(
            *("in.jsonl", b'{"n": ' + b"1" * 5000 + b"}", {}),
            r"in\.jsonl line 1 is not JSON: Exceeds the limit",
            id="number of great length",
        ),
        pytest.param(*("in.jsonl", b"{}\n", {}), r"in\.jsonl has no rows\.", id="JSON of nothing"),
    ],
)
def test_bad_file_is_told_in_one_sentence(tmp_path, name, content, how, message):
    path = written(tmp_path / name, content)
    with pytest.raises(TableError, match=message) as raised:
        rows_of(path, **how)
    assert str(path) in str(raised.value)
    assert raised.value.__cause__ is None


def test_truncated_parquet_is_told_in_one_sentence(tmp_path):
    path = tmp_path / "in.parquet"
    pq.write_table(pa.table({"text": ["a", "b"]}), path)
    path.write_bytes(path.read_bytes()[:-10])
    with pytest.raises(TableError, match=r"in\.parquet cannot be read as Parquet: "):
        rows_of(path)


def test_names_that_stand_for_no_file_are_refused(tmp_path):
    for name, reason in (
        ("missing.csv", "there is no file .*missing.csv"),
        ("*.csv", "there is no file"),
        ("", "the folder .* has no"),
    ):
        with pytest.raises(TableError, match=reason):
            rows_of(tmp_path / name)
    with pytest.raises(TableError, match="name of a file is empty"):
        rows_of("")


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
def test_impossible_ways_to_read_are_refused(how, message):
    with pytest.raises(TableError, match=message):
        TableFormat(**how)


@pytest.mark.parametrize("name", ["out.xls", "out", "out.parquet.gz"])
def test_output_ending_must_stand_for_a_format(tmp_path, name):
    source = jsonl(tmp_path / "in.jsonl", ROWS)
    with pytest.raises(
        TableError, match=rf"{name}: the ending must be one of \.csv, .*; \.gz may follow"
    ):
        convert(source, tmp_path / name)
    assert os.listdir(tmp_path) == ["in.jsonl"]


def test_broken_row_leaves_no_output(tmp_path):
    source = written(tmp_path / "in.csv", b"a,b\n" + b"1,2\n" * 5000 + b"3\n")
    with pytest.raises(TableError, match="line 5002 has 1 fields"):
        convert(source, tmp_path / "out.csv")
    assert os.listdir(tmp_path) == ["in.csv"]
