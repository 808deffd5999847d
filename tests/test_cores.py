"""The number of cores follows the limits of the process."""

import os
import subprocess
import sys

import pytest

from ulr.cores import available_cores

PRINT_CORES = "from ulr.cores import available_cores; print(available_cores())"


def test_there_is_at_least_one_core():
    assert 1 <= available_cores() <= os.cpu_count()


def test_limit_in_the_environment_is_respected(monkeypatch):
    monkeypatch.setenv("LOKY_MAX_CPU_COUNT", "1")
    assert available_cores() == 1


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="needs CPU affinity")
def test_affinity_is_respected():
    code = f"import os; os.sched_setaffinity(0, {{min(os.sched_getaffinity(0))}}); {PRINT_CORES}"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "1"
