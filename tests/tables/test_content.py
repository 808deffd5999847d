"""What is decided from the content of files is said, and options settle it."""

import gzip

import pytest
from table_files import ADDED, convert, read, written

from ulr.errors import TableError
from ulr.tables import TableFormat, open_table, write_table


def opened(path, **how):
    """Format, columns, rows and notes of a file."""
    with open_table(str(path), TableFormat(**how)) as table:
        source = table.sources[0]
        rows = [list(record.values()) for batch in table.batches() for record in batch.records()]
        return source.format, list(table.columns), rows, " ".join(table.notes)


PROSE = {
    "without commas": "a late goal\nrain again\n",
    "some commas": "a goal, late\nrain\nsnow, wind, fog\n",
    "a comma in every line": "Hello, world\nGood morning, sir\n",
    "one line": "a goal, late",
    "quotes": '"Goal," she said\nrain\n',
    "semicolons": "it rained; we lost\nit snowed; we won\n",
    "numbers": "7 goals, 3 cards\n2 goals, 1 card\n",
    "mark and CRLF": "\ufeffa late goal\r\nrain again\r\n",
}


@pytest.mark.parametrize("name", PROSE)
def test_lines_of_prose_are_documents_and_the_first_is_not_lost(tmp_path, name):
    path = written(tmp_path / "download", PROSE[name])
    format_, columns, rows, notes = opened(path)
    assert (format_, columns) == ("txt", ["text"])
    assert [row[0] for row in rows] == PROSE[name].removeprefix("\ufeff").splitlines()
    assert "is read as text, one document per line; --format csv" in notes


TABLES = {
    "names": ("id,body\n1,a late goal\n2,rain\n", ["id", "body"], 2),
    "one column": ("text\na late goal\nrain\n", ["text"], 2),
    "one quoted column": ('"text"\n"a, late"\n"rain"\n', ["text"], 2),
    "no names, numbers": ("1,a late goal\n2,rain\n", ["c1", "c2"], 2),
    "no names, sentences": ("x;It rained.\ny;We lost.\n", ["c1", "c2"], 2),
    "a question as a name": ("when,How was it?\n2024-01-02,fine\n2024-01-03,bad\n", ["when"], 2),
    "blanks after commas": ("id, body\n1, a goal\n2, rain\n", ["id", " body"], 2),
}


@pytest.mark.parametrize("name", TABLES)
def test_tables_are_told_from_text_and_names_from_rows(tmp_path, name):
    content, columns, n_rows = TABLES[name]
    path = written(tmp_path / "download", content)
    format_, found, rows, notes = opened(path)
    assert format_ == "csv"
    assert found[: len(columns)] == columns
    assert len(rows) == n_rows
    assert "is read as CSV: " in notes
    assert "--format txt" in notes
    assert opened(path, format="txt")[::3] == ("txt", "")
    assert opened(path, format="csv", header=False)[::3] == ("csv", "")


def test_a_broken_row_does_not_make_a_table_text(tmp_path):
    path = written(tmp_path / "download", "id,body\n1,a goal,late\n2,rain\n")
    with pytest.raises(TableError, match="line 2 has 3 fields"):
        opened(path)


@pytest.mark.parametrize(
    ("name", "content", "doubt"),
    [
        ("in.csv", "3,It rained\n4,We lost\n", "--no-header if it is a document"),
        ("in.txt", "id\tbody\n1\train\n2\tsnow\n", "looks like a table"),
        ("in.csv", "id,body\n3,It rained\n", ""),
        ("in.csv", "Customer feedback\nIt rained\n", ""),
        ("in.txt", "a goal, late\nrain\n", ""),
    ],
)
def test_a_name_decides_and_doubts_are_said(tmp_path, name, content, doubt):
    format_, _, _, notes = opened(written(tmp_path / name, content))
    assert format_ == name[-3:]
    assert doubt in notes
    assert bool(doubt) == bool(notes)


# Several text files


def test_each_text_file_of_a_folder_is_one_document_with_its_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "texts"
    folder.mkdir()
    written(folder / "b.txt", "one\r\ntwo\r\n")
    written(folder / "a.txt", "caf\u00e9".encode("utf-16"))
    written(folder / "c.txt.gz", gzip.compress(b"packed\n"))
    written(folder / "empty.txt", b"")
    expected = [
        ["a.txt", "caf\u00e9"],
        ["b.txt", "one\ntwo"],
        ["c.txt.gz", "packed"],
        ["empty.txt", ""],
    ]
    for name in ("texts", "texts/*.txt*"):
        format_, columns, rows, notes = opened(name)
        assert (format_, columns, rows) == ("txt", ["file", "text"], expected)
        assert "each of the 4 text files is one document" in notes
    (folder / "empty.txt").unlink()
    assert [row["text"] for row in read("texts", lines=True)] == [
        "caf\u00e9",
        "one",
        "two",
        "packed",
    ]
    assert [row["text"] for row in read("texts/b.txt")] == ["one", "two"]
    assert [row["text"] for row in read("texts/b.txt", "texts/a.txt")] == ["one\ntwo", "caf\u00e9"]
    assert read(convert("texts", tmp_path / "out.csv"))[1]["text"] == "one\ntwo"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"caf\xe9", "b.txt is not UTF-8"),
        (b"%PDF-1", "b.txt is a PDF"),
        (b"x" * 10_000_001, "10,000,000"),
    ],
    ids=["cp1252", "PDF", "long"],
)
def test_a_bad_text_file_of_a_folder_is_named(tmp_path, content, message):
    written(tmp_path / "a.txt", "fine")
    written(tmp_path / "b.txt", content)
    with pytest.raises(TableError, match=message):
        read(tmp_path)


# Long cells


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet", "csv.gz"])
def test_a_document_of_too_many_letters_is_refused(tmp_path, ending):
    long = [{"text": "short"}, {"text": "a" * 10_000_001}]
    source = tmp_path / f"in.{ending}"
    if ending == "parquet":
        import pyarrow as pa
        import pyarrow.parquet as pq

        pq.write_table(pa.Table.from_pylist(long), source)
    elif ending == "jsonl":
        source.write_text("".join(f'{{"text": "{row["text"]}"}}\n' for row in long))
    else:
        content = "text,n\n" + "".join(f"{row['text']},1\n" for row in long)
        written(source, gzip.compress(content.encode()) if ending.endswith("gz") else content)
    with open_table(str(source)) as table:
        batches = list(table.batches())
    with pytest.raises(TableError, match="row 2: a document of 10,000,001 letters"):
        [batch.texts(["text"]) for batch in batches]


@pytest.mark.parametrize("ending", ["csv", "jsonl", "txt"])
def test_a_line_without_end_is_refused_before_it_fills_the_memory(tmp_path, ending):
    start = "text\n" if ending == "csv" else ""
    source = written(
        tmp_path / f"in.{ending}.gz", gzip.compress(start.encode() + b"a" * (70 << 20), 1)
    )
    with pytest.raises(TableError, match="a line of more than 64 MB"):
        read(source)


def test_a_field_of_many_lines_that_is_too_long_is_refused(tmp_path):
    source = written(tmp_path / "in.csv", b'text\n"' + b"a word\n" * 1_500_000 + b'"\n')
    with pytest.raises(
        TableError, match="line 2 is broken: a field has more than 10,000,000 letters"
    ):
        read(source)


# What Excel needs to read accents


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_byte_order_mark_and_line_ends_of_csv_are_kept(tmp_path, mark, line_end):
    content = line_end.join(["id,text", "1,caf\u00e9", '2,"a, b"', ""])
    source = written(tmp_path / "in.csv", mark + content)
    found = convert(source, tmp_path / "out.csv").read_bytes().decode()
    lines = ["id,text,label,confidence", "1,caf\u00e9,a; b,0.25", '2,"a, b",a; b,0.25', ""]
    assert found == mark + line_end.join(lines)
    assert convert(source, tmp_path / "out.jsonl").read_bytes().startswith(b'{"id"')


def test_a_mark_of_utf_16_becomes_one_of_utf_8(tmp_path):
    source = written(tmp_path / "in.csv", "id,text\n1,caf\u00e9\n".encode("utf-16"))
    assert convert(source, tmp_path / "out.csv").read_bytes().startswith(b"\xef\xbb\xbfid,text")


def test_standard_output_keeps_the_mark(tmp_path):
    source = written(tmp_path / "in.csv", b"\xef\xbb\xbftext\r\na\r\n")
    with (tmp_path / "out").open("wb") as stdout, open_table(str(source)) as table:
        rows = ((batch, {"label": ["x"], "confidence": [0.5]}) for batch in table.batches())
        write_table("-", table, rows, ADDED, stdout)
    expected = b"\xef\xbb\xbftext,label,confidence\r\na,x,0.5\r\n"
    assert (tmp_path / "out").read_bytes() == expected
