"""Messages are one line of bounded length, whatever a file contains."""

import pickle

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
