"""Every code block of the README runs, the Python ones with the output they show."""

import doctest
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```", (ROOT / "README.md").read_text(), re.M | re.S)
COMMANDS = [line for kind, block in BLOCKS if kind == "sh" for line in block.splitlines()]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Where a reader's clone would be: the examples, and room for outputs."""
    folder = tmp_path_factory.mktemp("clone")
    shutil.copytree(ROOT / "examples", folder / "examples")
    return folder


# The README opens a file without closing it, as people do in three lines.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_python_blocks_show_what_they_say(folder, monkeypatch):
    monkeypatch.chdir(folder)
    source = "\n".join(block for kind, block in BLOCKS if kind == "python")
    test = doctest.DocTestParser().get_doctest(source, {}, "README.md", None, 0)
    runner = doctest.DocTestRunner()
    runner.run(test)
    assert runner.summarize().failed == 0
    assert runner.tries > 10


@pytest.mark.parametrize("command", [line for line in COMMANDS if line.startswith("ulr ")])
def test_commands_run(command, folder):
    arguments = [sys.executable, "-m", *shlex.split(command)]
    result = subprocess.run(arguments, cwd=folder, capture_output=True, text=True, timeout=120)
    assert result.returncode == 0, result.stderr
    assert "documents" in result.stdout


def test_the_other_commands_are_targets_of_the_makefile():
    targets = set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), re.M))
    others = [shlex.split(line, comments=True) for line in COMMANDS if not line.startswith("ulr ")]
    assert [words[0] for words in others] == ["make", "make"]
    assert {words[1] for words in others} <= targets
