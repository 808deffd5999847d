"""Some hundred generated inputs and a few kills; `make fuzz` runs many more."""

import pytest

import chaos
import fuzz


@pytest.mark.parametrize("first_seed", range(0, 200, 50))
def test_generated_inputs_give_an_output_or_one_short_error(first_seed):
    found = list(fuzz.run_cases(50, first_seed))
    problems = [f"seed {seed}: {problem}" for seed, _, problem, _ in found if problem]
    assert problems == []
    assert {code for *_, code in found} >= {0, 1}


def test_generated_cases_depend_on_their_seed_only(tmp_path):
    cases = []
    for name in ("a", "b"):
        folder = tmp_path / name
        (folder / "model").mkdir(parents=True)
        (folder / "case").mkdir()
        case = fuzz.make_case(7, folder / "case", "static", folder / "model")
        arguments = [each.replace(str(folder), "") for each in case.arguments]
        cases.append((arguments, (folder / "case").joinpath(case.source).read_bytes()))
    assert cases[0] == cases[1]


def test_killed_jobs_leave_nothing_and_complete_afterwards():
    found = list(chaos.run_kills(2, n_documents=600))
    assert [(name, problem) for name, _, problem in found if problem] == []
    assert {name for name, *_ in found} == {"classify", "predict"}
