"""Figures as files: equal figures give equal bytes, and unusable names are refused early."""

import subprocess
import sys

import pytest

from ulr.errors import InputError
from ulr.plots import ENDINGS, check_picture, new_figure, write_figure

BEGINNINGS = {".png": b"\x89PNG\r\n", ".svg": b"<?xml", ".pdf": b"%PDF-"}


def draw(height=1.0):
    figure = new_figure(3, 2)
    axes = figure.subplots()
    axes.plot([0, 1, 2], [0, height, 0.5], marker="o", label="a line")
    axes.set_title("Title")
    axes.legend()
    return figure


@pytest.mark.parametrize("ending", ENDINGS)
def test_the_same_figure_gives_the_same_bytes(tmp_path, ending):
    one, again, other = (tmp_path / f"{name}{ending}" for name in ("one", "again", "other"))
    write_figure(draw(), one)
    write_figure(draw(), again)
    write_figure(draw(0.3), other)
    assert one.read_bytes() == again.read_bytes() != other.read_bytes()
    assert one.read_bytes().startswith(BEGINNINGS[ending])
    assert {file.name for file in tmp_path.iterdir()} == {one.name, again.name, other.name}


def test_texts_of_an_svg_are_texts(tmp_path):
    write_figure(draw(), tmp_path / "a.SVG")
    assert ">Title<" in (tmp_path / "a.SVG").read_text()


def test_a_picture_is_replaced_only_by_a_complete_one(tmp_path):
    path = tmp_path / "a.png"
    write_figure(draw(), path)
    before, broken = path.read_bytes(), draw()
    broken.axes[0].set_title("$\\no such mathematics$")
    with pytest.raises(ValueError, match="no such mathematics"):
        write_figure(broken, path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]
    write_figure(draw(0.3), path)
    assert path.read_bytes() != before


@pytest.mark.parametrize("name", ["a.jpg", "png", "a.png.txt"])
def test_another_ending_is_refused(name):
    with pytest.raises(InputError, match=rf"{name}: a picture's name must end in \.png, \.svg, "):
        check_picture(name)


def test_missing_matplotlib_is_one_sentence():
    code = (
        "import sys; sys.modules['matplotlib'] = None\n"
        "from ulr.plots import check_picture\n"
        "try: check_picture('a.png')\n"
        "except ValueError as error: print(error)"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert result.stdout == (
        "'matplotlib' is not installed; install it with: pip install 'ulr[plots]'.\n"
    )
