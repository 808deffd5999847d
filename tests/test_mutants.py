"""Every mutant of `make mutants` must still change the source that it is meant for."""

import pytest

import mutants


@pytest.mark.parametrize("mutant", mutants.MUTANTS, ids=lambda mutant: mutant.name)
def test_the_line_that_a_mutant_changes_occurs_once(mutant):
    source = (mutants.PACKAGE / "refinement" / mutant.file).read_text(encoding="utf-8")
    assert source.count(mutant.old) == 1


def test_mutants_have_different_names():
    names = [mutant.name for mutant in mutants.MUTANTS]
    assert len(names) == len(set(names))
