"""Rows that are split block by block are those that are split line by line."""

import csv
import io
import random

import pytest

from ulr.errors import TableError
from ulr.tables import TableFormat, open_table
from ulr.tables.csv_blocks import read_blocks, split_block
from ulr.tables.csv_files import parse_rows

REGULAR = {
    "plain": b"id,text\n1,a\n2,b\n",
    "no line end at the end": b"id,text\n1,a\n2,b",
    "CRLF": b"id,text\r\n1,a\r\n2,b\r\n",
    "line ends of both kinds": b"id,text\r\n1,a\n2,b\r\n",
    "byte order mark": b"\xef\xbb\xbfid,text\n1,a\n",
    "blank rows": b"\n\nid,text\n\n1,a\n\r\n\n2,b\n\n",
    "blank rows of one column": b"text\na\n\n\r\nb\n",
    "blank rows before one column": b"\n\ntext\na\n\n",
    "values as they are": b'a,b,c,d\n007,1e5,NA, leading \nnull,None,,""\n',
    "quoted": b'id,text\n1,"a, b"\n"2","say ""hi"""\n3,""""\n4,""\n',
    "two lines in a field": b'id,text\n1,"one\ntwo\r\nthree"\n2,"\n"\n',
    "null bytes": b"id,text\n1,a\x00b\n",
    "beyond ASCII": 'id,text\n1,café\n2,"日本, 語"\n3,😀\n'.encode(),
    "line separators": "id,text\n1,a\u2028b\x0bc\x1dd\x85\n".encode(),
    "named delimiter": b"sep=;\nid;text\n1;a,b\n",
    "tabs": b"id\ttext\n1\ta\n",
    "long field": b"id,text\n1," + b"x" * 300_000 + b"\n2,b\n",
    "header only": b"id,text\n",
}
IRREGULAR = {
    "quote inside of a field": b'id,text\n1,5" pipe\n2,b\n',
    "two quotes inside of a field": b'id,text\n1,the "best" one\n2,b\n',
    "returns only": b"id,text\r1,a\r2,b\r",
    "a return inside of a row": b"id,text\n1,a\r2,b\n",
    "quotes of several rows that look balanced": b'id,text\n1,5" a\n2,6" b\n',
}
BROKEN = {
    "unclosed quote": b'id,text\n1,a\n2,"b\n3,c\n',
    "text after a quote": b'id,text\n1,"a" b\n',
    "too many fields": b"id,text\n1,a\n2,b,c\n",
    "too few fields": b"id,text\n1,a\n2\n",
    "as many delimiters as rows": b"id,text\n1,a,b\n2\n",
    "not UTF-8": b"id,text\n1,caf\xe9\n",
}


def line_by_line(content, delimiter, n_columns):
    """Fields and text of all rows but the header, or the number of the first bad line."""
    lines = io.StringIO(content.decode("utf-8-sig"), newline="")
    rows = list(parse_rows(lines, delimiter))
    if rows[0][2].lower() == f"sep={delimiter}":
        del rows[0]
    while not rows[0][2]:
        del rows[0]
    kept = [(fields, raw) for _, fields, raw in rows[1:] if raw or n_columns == 1]
    return [fields for fields, _ in kept], [raw.encode() for _, raw in kept]


def read(path):
    with open_table(str(path)) as table:
        batches = list(table.batches())
        rows = [row for batch in batches for row in batch.rows]
        raw = [each for batch in batches for each in batch.raw]
        return table.sources[0], rows, raw, batches


@pytest.mark.parametrize("content", [*REGULAR.values(), *IRREGULAR.values()])
def test_rows_are_those_of_the_careful_reader(tmp_path, content):
    (tmp_path / "in.csv").write_bytes(content)
    source, rows, raw, batches = read(tmp_path / "in.csv")
    expected = line_by_line(content, source.delimiter, len(source.columns))
    assert (rows, raw) == expected
    for batch in batches:
        for place, name in enumerate(source.columns):
            assert batch.column(name) == [row[place] for row in batch.rows]


@pytest.mark.parametrize("name", REGULAR)
def test_regular_files_are_split_as_blocks(name):
    content = REGULAR[name].removeprefix(b"\xef\xbb\xbf").removeprefix(b"sep=;\n")
    delimiter = {"named delimiter": ";", "tabs": "\t"}.get(name, ",")
    n_columns = content.lstrip(b"\n").split(b"\n")[0].count(delimiter.encode()) + 1
    assert split_block(content, delimiter, n_columns) is not None


@pytest.mark.parametrize("content", [*IRREGULAR.values(), *list(BROKEN.values())[:-1]])
def test_other_files_are_not_split_as_blocks(content):
    assert split_block(content, ",", 2) is None


@pytest.mark.parametrize("content", BROKEN.values())
def test_broken_rows_far_into_a_file_are_refused_with_their_line(tmp_path, content):
    before = b"id,text\n" + b'0,"two\nlines"\n' * 300_000
    (tmp_path / "in.csv").write_bytes(before + content.partition(b"\n")[2])
    message = "is not UTF-8" if content == BROKEN["not UTF-8"] else r"line 60000[23] "
    with pytest.raises(TableError, match=message):
        read(tmp_path / "in.csv")


def test_irregular_rows_far_into_a_file_follow_the_others(tmp_path):
    content = b"id,text\n" + b'0,"a ""b"""\n' * 400_000 + b'1,5" pipe\n2,"c\nd"\n'
    (tmp_path / "in.csv").write_bytes(content)
    _, rows, raw, batches = read(tmp_path / "in.csv")
    assert len(rows) == len(raw) == 400_002
    assert rows[0] == rows[399_999] == ["0", 'a "b"']
    assert rows[400_000:] == [["1", '5" pipe'], ["2", "c\nd"]]
    assert raw[400_000:] == [b'1,5" pipe', b'2,"c\nd"']
    starts = [batch.first_row for batch in batches]
    assert starts == [sum(map(len, batches[:number])) for number in range(len(batches))]


def test_random_bytes_give_the_rows_or_the_error_of_the_careful_reader(tmp_path):
    draw = random.Random(0)
    n_regular = 0
    for _ in range(3000):
        body = "".join(draw.choices(['"', '""', ",", "\n", "\r\n", "a", "é", " ", "\r"],
                                    [3, 1, 4, 4, 1, 4, 1, 1, 0.1], k=draw.randrange(12)))  # fmt: skip
        block = split_block(f"i,t\n{body}".encode(), ",", 2)
        if block is None:
            continue
        n_regular += 1
        rows, raw = line_by_line(f"i,t\n{body}".encode(), ",", 2)
        assert [list(row) for row in block][1:] == rows
        assert block.raw()[1:] == raw
    assert n_regular > 100


@pytest.mark.parametrize("quoting", [csv.QUOTE_MINIMAL, csv.QUOTE_ALL])
def test_blocks_end_with_rows(quoting):
    text = io.StringIO()
    csv.writer(text, quoting=quoting).writerows([i, "a\n" * 50, 'b "c"'] for i in range(60_000))
    content = text.getvalue().encode()
    blocks = list(read_blocks(io.BytesIO(content)))
    assert len(blocks) > 1
    assert b"".join(blocks) == content
    parts = [split_block(block, ",", 3) for block in blocks]
    assert [int(value) for part in parts for value in part.column(0)] == list(range(60_000))


def test_named_encoding_is_read_line_by_line(tmp_path):
    (tmp_path / "in.csv").write_bytes('id,text\n1,"caf\xe9"\n'.encode("latin-1"))
    with open_table(str(tmp_path / "in.csv"), TableFormat(encoding="latin-1")) as table:
        (batch,) = table.batches()
    assert list(batch.rows) == [["1", "café"]]
    assert list(batch.raw) == ['1,"café"'.encode()]
