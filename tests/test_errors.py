"""Messages are one line of bounded length, whatever a file contains."""

import pickle

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ulr.errors import InputError, TableError, one_line
from ulr.tables import open_table


@pytest.mark.parametrize(
    "text", ["a\nb", "a\r\nb", "a\u2028b", "a\tb", "\x1b[2Jb", "\ud800", "word " * 5000], ids=ascii
)
def test_a_message_is_one_printable_line(text):
    shown = str(InputError(text))
    assert shown.isprintable()
    assert len(shown) < 1_010
    assert shown == one_line(shown) == str(pickle.loads(pickle.dumps(InputError(text))))


def test_what_to_do_stands_at_the_end_of_a_long_message(tmp_path):
    columns = [f"column {i} with\nlines" for i in range(1_000)]
    source = tmp_path / "in.csv"
    header = ",".join(f'"{name}"' for name in columns)
    source.write_text(header + "\n" + ",".join("x" for _ in columns) + "\n")
    with (
        open_table(str(source)) as table,
        pytest.raises(TableError, match=r"no column 'text'; it has: .* … .* with --text-column\.$"),
    ):
        table.check_columns(["text"], "--text-column")


def test_a_message_keeps_letters_of_any_script():
    assert one_line("caf\u00e9 \u6771\u4eac → “x”  y") == "caf\u00e9 \u6771\u4eac → “x”  y"


@pytest.mark.parametrize("start", [-60, -200, 4])
def test_damaged_parquet_is_named_in_one_line(tmp_path, start):
    source = tmp_path / "in.parquet"
    pq.write_table(pa.table({"text": ["short text"] * 3}), source)
    content = bytearray(source.read_bytes())
    content[start : start + 40] = b"\n" * 40
    source.write_bytes(content)
    with pytest.raises(TableError, match=r"in\.parquet cannot be read as Parquet: ") as raised:
        read_all(source)
    assert str(raised.value).isprintable()


def read_all(source):
    with open_table(str(source)) as table:
        list(table.batches())
