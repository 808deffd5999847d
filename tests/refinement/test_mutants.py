"""Every mutant of `make mutants` must still change the source that it is meant for."""

import runpy
from pathlib import Path

TOOL = runpy.run_path(str(Path(__file__).parents[2] / "tools" / "mutants.py"))


def test_the_text_that_each_mutant_changes_occurs_once():
    for mutant in TOOL["MUTANTS"]:
        source = (TOOL["PACKAGE"] / "refinement" / mutant.file).read_text(encoding="utf-8")
        assert source.count(mutant.old) == 1, mutant.name
    names = [mutant.name for mutant in TOOL["MUTANTS"]]
    assert len(names) == len(set(names))
