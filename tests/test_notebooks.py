"""The notebooks of the documentation run, and show what the present code gives."""

import pytest

import notebooks
from shown import differences

TOLERANCE = 2.5  # points, for numbers that follow an encoder's last digits on another processor


@pytest.mark.notebook
@pytest.mark.parametrize("path", notebooks.NOTEBOOKS, ids=lambda path: path.stem)
def test_outputs_are_those_of_the_present_code(path, tmp_path):
    """Of the file that is on the site; `python tools/notebooks.py` writes them again."""
    shown = notebooks.nbformat.read(path, as_version=4)
    found = notebooks.executed(path, tmp_path)
    problems = [
        problem
        for one, other in zip(notebooks.outputs(shown), notebooks.outputs(found), strict=True)
        for problem in differences(one, other, TOLERANCE)
    ]
    assert problems == []


def test_differences_are_found():
    assert differences("names: 77.9", "names: 78.1", 1) == []
    assert differences("names: 77.9", "names: 79.1", 1) == ["77.9 is now 79.1"]
    assert differences("names: 77.9", "file: 77.9", 1) != []
    assert differences("one\n", "", 1) != []
