"""Workbooks: sheets are chosen and kept, and no workbook can end the process that reads it."""

import os
import zipfile

import pytest
import python_calamine
import xlsxwriter
from table_files import convert, read, written

from ulr.errors import TableError
from ulr.tables import TableFormat, open_table


@pytest.fixture
def book(tmp_path):
    path = tmp_path / "book.xlsx"
    with xlsxwriter.Workbook(path) as workbook:
        workbook.add_worksheet("Empty")
        workbook.add_worksheet("First").write_column(0, 0, ["text", "a goal", "rain"])
        second = workbook.add_worksheet("Second")
        second.write_column(1, 1, ["note", "snow"])
        second.write_formula(3, 1, "=1+1", None, 2)
    return path


def altered(book, old, new):
    """A workbook with other XML in the sheet that is read."""
    path = book.with_name("altered.xlsx")
    with zipfile.ZipFile(book) as source, zipfile.ZipFile(path, "w", 8) as target:
        for name in source.namelist():
            content = source.read(name)
            target.writestr(name, content.replace(old, new) if "sheet2" in name else content)
    return path


def test_the_first_sheet_is_read_and_the_others_are_named(book):
    with open_table(str(book)) as table:
        assert table.columns == ("text",)
        assert "'First' is read; --sheet reads another: 'Second'." in table.notes[0]
    assert [row["note"] for row in read(book, sheet="Second")] == ["snow", 2]
    with open_table(str(book), TableFormat(sheet="Second")) as table:
        assert table.notes == ()
    with pytest.raises(TableError, match="no sheet 'Third' with cells; it has: First, Second"):
        read(book, sheet="Third")


@pytest.mark.parametrize("sheet", [None, "Second"])
def test_the_other_sheets_survive_with_their_places(book, tmp_path, sheet):
    out = convert(book, tmp_path / "out.xlsx", sheet=sheet)
    workbook = python_calamine.CalamineWorkbook.from_path(out)
    assert workbook.sheet_names == ["Empty", "First", "Second"]
    cells = {
        name: workbook.get_sheet_by_name(name).to_python(skip_empty_area=False)
        for name in ("First", "Second")
    }
    label = ["a; b", 0.25]
    if sheet is None:
        assert cells["First"][1:] == [["a goal", *label], ["rain", *label]]
        assert cells["Second"] == [["", ""], ["", "note"], ["", "snow"], ["", 2]]
    else:
        assert cells["First"] == [["text"], ["a goal"], ["rain"]]
        assert cells["Second"][1:] == [["snow", *label], [2, *label]]


HOSTILE = {
    "far column": (b'r="A3"', b'r="ZZZZZZZZ1"'),
    "far corner": (b'<row r="3" spans="1:1"><c r="A3"', b'<row r="1048576"><c r="XFD1048576"'),
    "no such text": (b"<v>1</v>", b"<v>99999999999</v>"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_workbook_is_one_sentence(book, name):
    path = altered(book, *HOSTILE[name])
    assert path.read_bytes() != book.read_bytes()
    with pytest.raises(TableError, match=r"altered\.xlsx cannot be read as an Excel workbook: "):
        read(path)


@pytest.mark.parametrize("damage", ["cut", "middle", "directory"])
def test_a_damaged_workbook_is_one_sentence(book, tmp_path, damage):
    content = book.read_bytes()
    parts = {
        "cut": content[: len(content) // 2],
        "middle": content[:500] + bytes(800) + content[1300:],
        "directory": content[:-40] + b"y" * 20 + content[-20:],
    }
    path = written(tmp_path / "damaged.xlsx", parts[damage])
    with pytest.raises(TableError, match=r"damaged\.xlsx cannot be read as an Excel workbook: "):
        read(path)


def test_an_error_while_a_workbook_is_written_leaves_no_temporary_file(book, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    rows = "".join(f"{i},{'long ' * 10_000}\n" for i in range(3))
    source = written(tmp_path / "in.csv", "id,text\n" + rows)
    with pytest.raises(TableError, match="a cell of an Excel sheet has at most"):
        convert(source, tmp_path / "out.xlsx")
    assert os.listdir(tmp_path / "temporary") == []
    assert not (tmp_path / "out.xlsx").exists()
