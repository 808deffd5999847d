"""Some generated inputs and a few kills; `make fuzz` and `make chaos` do many more."""

import shutil
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import fuzz

TOOLS = Path(fuzz.__file__).parent
GOOD = fuzz.Outcome(0, "", "", 0.1, 100.0)


def run_tool(name, *arguments):
    command = [sys.executable, TOOLS / name, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


def test_generated_inputs_give_an_output_or_one_short_error(tmp_path):
    first = run_tool("fuzz.py", "--count", 24, "--seed", 1, "--state", tmp_path)
    assert "0 problems." in first.stdout
    assert first.returncode == 0
    assert not (tmp_path / "7").exists()
    again = run_tool("fuzz.py", "--count", 24, "--seed", 1, "--state", tmp_path)
    assert again.stdout == first.stdout  # everything was done before


def test_generated_cases_depend_on_their_seed_only(tmp_path):
    cases = []
    for name in ("a", "b"):
        folder = tmp_path / name
        (folder / "model").mkdir(parents=True)
        (folder / "case").mkdir()
        case = fuzz.make_case(8, folder / "case", "static", folder / "model")
        arguments = [each.replace(str(folder), "") for each in case.arguments]
        cases.append((arguments, Path(case.source).read_bytes()))
    assert cases[0] == cases[1]


@pytest.mark.parametrize(
    ("outcome", "problem"),
    [
        (GOOD, ""),
        (replace(GOOD, code=1, err="ulr: one sentence.\n"), ""),
        (replace(GOOD, code=1, err="ulr: a note.\nof two lines\n"), "several lines"),
        (replace(GOOD, err="x.py:1: RuntimeWarning: divide by zero\n"), "several lines"),
        (replace(GOOD, code=1), "without a message"),
        (replace(GOOD, code=1, err="ulr: " + "a" * 5000), "5,005 characters"),
        (replace(GOOD, code=70, err="Traceback (most recent call last):\n"), "traceback"),
        (replace(GOOD, code=-signal.SIGSEGV), "exit code -11"),
        (replace(GOOD, code=-signal.SIGALRM), "hangs"),
        (replace(GOOD, megabytes=4000.0), "4,000 MB"),
        (replace(GOOD, out="\x1b[31m"), "escape sequence"),
    ],
)
def test_faults_of_a_command_are_found(outcome, problem):
    assert problem in fuzz.problem_of(fuzz.Case(["classify"]), outcome)
    assert bool(problem) == bool(fuzz.problem_of(fuzz.Case(["classify"]), outcome))


def test_faults_of_an_output_are_found(tmp_path):
    source, output = tmp_path / "in.csv", tmp_path / "out.csv"
    source.write_text("text\na\nb\n")
    case = fuzz.Case(["classify"], str(source), output)
    assert "no output" in fuzz.problem_of(case, GOOD)
    output.write_text("text,ulr_label\na,x\n")
    assert "2 rows became 1" in fuzz.problem_of(case, GOOD)
    failed = replace(GOOD, code=1, err="ulr: an error.\n")
    assert "in spite of an error" in fuzz.problem_of(case, failed)
    assert "was changed" in fuzz.problem_of(replace(case, before=b"old"), failed)
    (tmp_path / ".out.csv.x.partial").touch()
    assert "left behind" in fuzz.problem_of(case, GOOD)


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")
def test_killed_jobs_leave_nothing_and_complete_afterwards(tmp_path):
    few = ("--documents", 200, "--jobs", "^replace$", "--disks", 1, "--readers", 0.5)
    found = run_tool("chaos.py", "--kills", 3, "--state", tmp_path, *few)
    assert "0 problems." in found.stdout, found.stdout + found.stderr
    assert found.returncode == 0
