"""Executors: results in order, at least once, whatever happens to the workers."""

import os
import signal
import time

import pytest
import tasks

from ulr.distributed.dask import DaskExecutor
from ulr.distributed.executors import ProcessExecutor, SerialExecutor, open_executor
from ulr.errors import ClusterError


@pytest.fixture(scope="module")
def processes():
    with ProcessExecutor(2) as executor:
        yield executor


@pytest.fixture(params=["serial", "processes"])
def executor(request, processes):
    return SerialExecutor() if request.param == "serial" else processes


def test_results_have_the_order_of_the_items(executor):
    assert list(executor.map(tasks.square, range(7), 10, 20)) == [i * i + 30 for i in range(7)]


def test_no_items_give_no_results(executor):
    assert list(executor.map(tasks.square, [])) == []


def test_late_results_keep_their_place_and_early_ones_are_reported_first(processes):
    heard = []
    items = [0.3, 0.0, 0.0]
    results = list(processes.map(tasks.wait_and_return, items, on_result=heard.append))
    assert results == items
    assert heard == [0.0, 0.0, 0.3]


def test_items_are_taken_when_a_worker_is_free(processes):
    taken = []

    def items():
        for i in range(20):
            taken.append(i)
            yield i

    results = processes.map(tasks.square, items())
    assert next(results) == 0
    assert len(taken) <= 4
    assert len(list(results)) == 19


def test_an_error_of_the_work_is_raised(executor):
    with pytest.raises(ValueError, match="1 is refused"):
        list(executor.map(tasks.refuse, [1]))


def test_items_of_dead_workers_are_run_again(processes, tmp_path):
    results = processes.map(tasks.die_once, [1, 2, 3], str(tmp_path))
    assert list(results) == [1, 2, 3]


def test_a_worker_that_died_idle_is_replaced(processes):
    before = set(processes.map(tasks.process_id, [1]))
    for pid in processes.pids:
        os.kill(pid, signal.SIGKILL)
    assert before.isdisjoint(processes.map(tasks.process_id, [1, 2]))


def test_an_item_that_kills_every_worker_is_named(processes):
    with pytest.raises(ClusterError, match="4 workers died at poison"):
        list(processes.map(tasks.die, ["poison"]))


def test_closing_ends_the_processes():
    executor = ProcessExecutor(2)
    started = time.monotonic()
    results = executor.map(tasks.wait_and_return, [0.0, 60.0])
    assert next(results) == 0.0
    pids = executor.pids
    executor.close()
    assert time.monotonic() - started < 30
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_workers_must_be_a_positive_number():
    with pytest.raises(ClusterError, match="must be positive; got 0"):
        ProcessExecutor(0)


def test_an_address_without_a_scheduler_is_one_sentence():
    with pytest.raises(ClusterError, match=r"no Dask scheduler at 127.0.0.1:1"):
        DaskExecutor("127.0.0.1:1", timeout=0.5)


def test_the_number_of_workers_of_a_cluster_cannot_be_chosen():
    with pytest.raises(ClusterError, match="leave --workers out"):
        open_executor("tcp://127.0.0.1:8786", 3)
