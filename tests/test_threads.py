"""The number of cores follows the limits of the process."""

import os
import subprocess
import sys
import threading

import numpy as np
import pytest
from threadpoolctl import threadpool_info

from ulr.threads import available_cores, single_threaded_blas

PRINT_CORES = "from ulr.threads import available_cores; print(available_cores())"


def test_limit_in_the_environment_is_respected(monkeypatch):
    assert 1 <= available_cores() <= os.cpu_count()
    monkeypatch.setenv("LOKY_MAX_CPU_COUNT", "1")
    assert available_cores() == 1


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="needs CPU affinity")
def test_affinity_is_respected():
    code = f"import os; os.sched_setaffinity(0, {{min(os.sched_getaffinity(0))}}); {PRINT_CORES}"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "1"


def blas_threads():
    return {each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas"}


def test_the_limit_of_blas_holds_in_every_thread_and_is_restored_by_the_last_user():
    np.ones((2, 2)) @ np.ones((2, 2))
    before, inside, left = blas_threads(), [], threading.Event()

    def work():
        with single_threaded_blas():
            inside.append(blas_threads())
            left.wait()

    for _ in range(2):
        left.clear()
        worker = threading.Thread(target=work)
        with single_threaded_blas():
            worker.start()
            inside.append(blas_threads())
        left.set()
        worker.join()
        assert blas_threads() == before
        alone = threading.Thread(target=work)
        alone.start()
        alone.join()
    assert inside == [{1}] * 6
    assert blas_threads() == before
