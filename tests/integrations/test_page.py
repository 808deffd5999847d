"""The blocks of docs/integrations.md run, those that need a package where it is there."""

import re
import shutil
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
BLOCKS = re.findall(
    r"^```python\n(.*?)^```", (ROOT / "docs/integrations.md").read_text(), re.M | re.S
)
COMMON = [block for block in BLOCKS if "# not run" not in block]
OPTIONAL = [block for block in BLOCKS if "# not run without" in block]


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """The folder and the names after the blocks that need no further package."""
    folder = tmp_path_factory.mktemp("page")
    shutil.copytree(ROOT / "examples", folder / "examples")
    names = {"__name__": "page"}
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for block in COMMON:
            exec(compile(block, "integrations.md", "exec"), names)
    return folder, names


@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.parametrize("block", OPTIONAL, ids=lambda block: block.partition("\n")[0])
def test_blocks_of_other_packages_run(block, page, monkeypatch, capsys):
    for package in re.findall(r"^import (duckdb|spacy|datasets|polars|onnxruntime)\b", block, re.M):
        pytest.importorskip(package)
    if "spacy" in block:
        pytest.importorskip("ulr.integrations.spacy")
    folder, names = page
    monkeypatch.chdir(folder)
    own = dict(names)
    exec(compile(block, "integrations.md", "exec"), own)
    own.clear()  # DuckDB complains at exit of what is still open
    printed = capsys.readouterr().out
    assert any(name in printed for name in names["labelled"].names)


def test_every_block_runs_somewhere():
    others = [block for block in BLOCKS if block not in COMMON + OPTIONAL]
    assert len(OPTIONAL) == 5
    assert all("# not run: it needs" in block for block in others)
    assert len(others) == 2
