"""Every code block of the README runs, and of some pages; Python blocks give the output they show."""

import csv
import doctest
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
ROWS = 60
NAMES = ("ask", "explain", "llm", "multilabel", "suggest", "trees", "update")
PAGES = ["README.md", *(f"docs/{name}.md" for name in NAMES)]


def blocks_of(page):
    return re.findall(r"^```(\w+)\n(.*?)^```", (ROOT / page).read_text(), re.M | re.S)


BLOCKS = blocks_of("README.md")


def shell_commands():
    """The lines of shell blocks that call `ulr`, with continued lines joined."""
    text = "".join(block for kind, block in BLOCKS if kind in ("sh", "bash", "console"))
    lines = [line.strip().removeprefix("$ ") for line in text.replace("\\\n", " ").splitlines()]
    return [line for line in lines if line.startswith("ulr ") and "# not run" not in line]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A copy of the examples where a clone has them, the largest with fewer rows, to save time."""
    folder = tmp_path_factory.mktemp("clone")
    shutil.copytree(ROOT / "examples", folder / "examples")
    for name in ("news_blurbs.csv", "support_messages.csv"):
        with (ROOT / "examples" / name).open(newline="") as source:
            rows = list(csv.reader(source))[:ROWS]
        with (folder / "examples" / name).open("w", newline="") as target:
            csv.writer(target).writerows(rows)
    return folder


# Short examples may leave a file open.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.parametrize("page", PAGES)
def test_python_blocks_run(page, folder, monkeypatch):
    monkeypatch.chdir(folder)
    blocks = [
        block for kind, block in blocks_of(page) if kind == "python" and "# not run" not in block
    ]
    assert blocks
    names = {"__name__": "readme"}
    for block in blocks:
        if ">>> " in block:
            test = doctest.DocTestParser().get_doctest(block, names, page, None, 0)
            result = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(
                test, clear_globs=False
            )
            assert result.failed == 0
            names = test.globs
        else:
            exec(compile(block, page, "exec"), names)


def test_there_are_shell_commands():
    assert shell_commands()


@pytest.mark.parametrize("command", shell_commands())
def test_shell_commands_run(command, folder):
    """In their order, since later ones may use what earlier ones wrote."""
    program = f"{shlex.quote(sys.executable)} -m ulr "
    result = subprocess.run(
        ["sh", "-c", program + command.removeprefix("ulr ").replace("| ulr ", f"| {program}")],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert result.returncode == 0, result.stderr
    assert "Traceback" not in result.stderr
