"""Rows of CSV files are those of Python's csv module, and are copied as they were written."""

import csv
import io
import random

import pytest
from table_files import convert, read, written

from ulr.errors import TableError
from ulr.tables import TableFormat, open_table

ROWS = {
    "plain": b"id,text\n1,a\n2,b\n",
    "no line end at the end": b"id,text\n1,a\n2,b",
    "CRLF": b"id,text\r\n1,a\r\n2,b\r\n",
    "line ends of both kinds": b"id,text\r\n1,a\n2,b\r\n",
    "returns only": b"id,text\r1,a\r2,b\r",
    "a return inside of a row": b"id,text\n1,a\r2,b\n",
    "byte order mark": b"\xef\xbb\xbfid,text\n1,a\n",
    "second byte order mark": b"\xef\xbb\xbf\xef\xbb\xbfid,text\n1,a\n",
    "blank rows": b"\n\nid,text\n\n1,a\n\r\n\n2,b\n\n",
    "blank rows of one column": b"text\na\n\n\r\nb\n",
    "blank rows before one column": b"\n\ntext\na\n\n",
    "column without a name": b",text\n0,x\n",
    "values as they are": b'a,b,c,d\n007,1e5,NA, leading \nnull,None,,""\n',
    "quoted": b'"id","text"\n1,"a, b"\n"2","say ""hi"""\n3,""""\n4,""\n',
    "two lines in a field": b'id,text\n1,"one\ntwo\r\nthree"\n2,"\n"\n3,"a\rb"\n',
    "null bytes": b"id,text\n1,a\x00b\n",
    "beyond ASCII": 'id,text\n1,café\n2,"日本, 語"\n3,😀\n'.encode(),
    "line separators": "id,text\n1,a\u2028b\x0bc\x1dd\x85\n".encode(),
    "tabs": b"id\ttext\n1\ta\n",
    "long field": b"id,text\n1," + b"x" * 300_000 + b"\n2,b\n",
    "header only": b"id,text\n",
    "quote inside of a field": b'id,text\n1,5" pipe\n2,b\n',
    "two quotes inside of a field": b'id,text\n1,the "best" one\n2,b\n',
    "quotes of several rows that look balanced": b'id,text\n1,5" a\n2,6" b\n',
    "long field with a quote inside": b'id,text\n1,5" ' + b"x" * 300_000 + b"\n",
}
BROKEN = {
    "unclosed quote": (
        b'2,"b\n3,c\n',
        "the row that begins on line {} is broken: a quote is never",
    ),
    "text after a quote": (b'2,"b" c\n', "the row that begins on line {} is broken: ',' expected"),
    "too many fields": (b"2,b,c\n", "line {} has 3 fields, but 2 were expected: id, text"),
    "too few fields": (b"2\n", "line {} has 1 fields, but 2 were expected"),
    "as many delimiters as rows": (b"2,a,b\n3\n", "line {} has 3 fields"),
    "not UTF-8": (b"2,caf\xe9\n", "in.csv is not UTF-8: byte 0xe9"),
}


def rows_of_csv_module(content, delimiter=","):
    """Column names and rows; None if the file is broken."""
    text = io.StringIO(content.decode("utf-8-sig"), newline="")
    try:
        rows = list(csv.reader(text, delimiter=delimiter, strict=True))
    except csv.Error:
        return None
    while rows and not rows[0]:
        del rows[0]
    width = len(rows[0]) if rows else 0
    rows = [row or [""] for row in rows if row or width == 1]
    return rows if all(len(row) == width for row in rows) else None


@pytest.mark.parametrize("name", ROWS)
def test_rows_are_those_of_the_csv_module(tmp_path, name):
    content = ROWS[name]
    with open_table(str(written(tmp_path / "in.csv", content))) as table:
        found = [list(row.values()) for batch in table.batches() for row in batch.records()]
        header = list(table.columns)
    expected = rows_of_csv_module(content, "\t" if name == "tabs" else ",")
    assert [header, *found] == expected


def test_random_files_give_the_rows_of_the_csv_module_or_an_error(tmp_path):
    draw, n_read = random.Random(0), 0
    for _ in range(600):
        pieces = ['"', '""', '"a\nb"', ",", "\n", "\r\n", "a", "é", " ", "\r", "\0"]
        weights = [1, 1, 2, 4, 4, 1, 4, 1, 1, 0.1, 0.1]
        body = "".join(draw.choices(pieces, weights, k=draw.randrange(16)))
        content = draw.choice(["i,t\n", "t\n"]).encode() + body.encode()
        expected = rows_of_csv_module(content)
        written(tmp_path / "in.csv", content)
        if expected is None:
            with pytest.raises(TableError, match=r"in\.csv.* line \d"):
                read(tmp_path / "in.csv", delimiter=",")
        else:
            found = [list(row.values()) for row in read(tmp_path / "in.csv", delimiter=",")]
            assert found == expected[1:]
            n_read += 1
    assert 100 < n_read < 500


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("text\nHello, world\nplain\n", "line 2 has 2 fields, but 1 were expected: text"),
        ("a;b;c\n1;2\n", "line 2 has 2 fields, but 3 were expected: a, b, c"),
    ],
)
def test_header_decides_on_the_delimiter_of_a_ragged_file(tmp_path, content, message):
    with pytest.raises(TableError, match=message):
        read(written(tmp_path / "in.csv", content))


@pytest.mark.parametrize("name", BROKEN)
@pytest.mark.parametrize("n_before", [0, 100_000])
def test_broken_row_is_named_by_its_line_and_leaves_no_output(tmp_path, name, n_before):
    content, message = BROKEN[name]
    before = b"id,text\n" + b'0,"two\nlines"\n' * n_before + b"1,a\n\n"
    source = written(tmp_path / "in.csv", before + content)
    with pytest.raises(TableError, match=message.format(2 * n_before + 4)):
        convert(source, tmp_path / "out.csv")
    assert [path.name for path in tmp_path.iterdir()] == ["in.csv"]


def test_irregular_rows_far_into_a_file_are_read_with_the_others(tmp_path):
    regular = b'0,"a ""b"""\n' * 100_000
    odd = b'1,5" pipe\n2,"c\nd"\n'
    content = b"id,text\n" + regular + odd + regular + b'3,"e\nf"'
    source = written(tmp_path / "in.csv", content)
    with open_table(str(source)) as table:
        batches = list(table.batches())
    rows = [tuple(row.values()) for batch in batches for row in batch.records()]
    assert rows[100_000:100_002] == [("1", '5" pipe'), ("2", "c\nd")]
    assert set(rows[:100_000] + rows[100_002:-1]) == {("0", 'a "b"')}
    assert (len(rows), rows[-1]) == (200_003, ("3", "e\nf"))
    starts = [batch.first_row for batch in batches]
    assert starts == [sum(map(len, batches[:number])) for number in range(len(batches))]
    lines = convert(source, tmp_path / "out.csv").read_bytes().split(b"\n")
    assert lines[100_001:100_004] == [b'1,5" pipe,a; b,0.25', b'2,"c', b'd",a; b,0.25']


@pytest.mark.parametrize("quoting", [csv.QUOTE_MINIMAL, csv.QUOTE_ALL])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_rows_of_many_lines_are_never_cut(tmp_path, quoting, encoding):
    text = io.StringIO()
    writer = csv.writer(text, quoting=quoting)
    writer.writerow(["n", "text", "note"])
    writer.writerows([i, "a\n" * 50, 'b "c"'] for i in range(30_000))
    rows = read(written(tmp_path / "in.csv", text.getvalue().encode(encoding)))
    assert [row["n"] for row in rows] == [str(i) for i in range(30_000)]
    assert {(row["text"], row["note"]) for row in rows} == {("a\n" * 50, 'b "c"')}


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
        ("text\nHello\nplain\n", ","),
        ("sep=;\na;b\n1;2,3\n", ";"),
        ('"SEP=|"\r\na|b\r\n1|2,3\r\n', "|"),
    ],
)
def test_delimiter_is_detected_unless_it_is_named(tmp_path, head, expected):
    source = written(tmp_path / "in.csv", head)
    with open_table(str(source)) as table:
        assert table.sources[0].delimiter == expected
        assert sum(map(len, table.batches())) in (1, 2)
    with open_table(str(source), TableFormat(delimiter="#")) as table:
        assert table.sources[0].delimiter == "#"


@pytest.mark.parametrize("delimiter", [";", "\t", "|", ",", "·"])
@pytest.mark.parametrize("named", [False, True])
def test_output_keeps_delimiter_and_text_of_the_rows(tmp_path, delimiter, named):
    rows = [f"id{delimiter}text", f'1{delimiter}"quoted ""text"""', f'"2"{delimiter} plain ']
    first = [f"sep={delimiter}"] if named else []
    source = written(tmp_path / "in.csv", "\r\n".join([*first, *rows]) + "\r\n")
    how = {} if named or delimiter != "·" else {"delimiter": "·"}
    assert read(source, **how) == [
        {"id": "1", "text": 'quoted "text"'},
        {"id": "2", "text": " plain "},
    ]
    lines = convert(source, tmp_path / "out.csv", **how).read_text().splitlines()
    label = '"a; b"' if delimiter == ";" else "a; b"
    assert lines[0] == delimiter.join([rows[0], "label", "confidence"])
    assert lines[1:] == [delimiter.join([row, label, "0.25"]) for row in rows[1:]]


@pytest.mark.parametrize(
    ("content", "name", "expected"),
    [
        ("id;text\n1;a\n", "out.tsv", "id\ttext\tlabel\tconfidence\n1\ta\ta; b\t0.25\n"),
        ("text\n\n", "out.csv", 'text,label,confidence\n"",a; b,0.25\n'),
    ],
    ids=["another delimiter", "empty row of one column"],
)
def test_rows_are_written_so_that_they_can_be_read(tmp_path, content, name, expected):
    source = written(tmp_path / "in.csv", content)
    assert convert(source, tmp_path / name).read_text() == expected


@pytest.mark.parametrize("content", [b"1,x\n2,y\n", b'1,x\n2,5" y\n'])
def test_file_without_header_is_written_without_header(tmp_path, content):
    source = written(tmp_path / "in.csv", content)
    assert [row["c1"] for row in read(source, header=False)] == ["1", "2"]
    target = convert(source, tmp_path / "out.csv", header=False)
    assert target.read_bytes() == content.replace(b"\n", b",a; b,0.25\n")
    assert read(convert(source, tmp_path / "out.jsonl", header=False))[0]["c1"] == "1"
