"""Workers: results in order, whatever happens to those who compute them."""

import multiprocessing
import os
import time

import pytest
import tasks

from ulr.distributed import open_workers
from ulr.errors import ClusterError


@pytest.fixture(scope="module")
def processes():
    with open_workers("local", 2) as workers:
        yield workers


@pytest.fixture(params=["this process", "processes"])
def workers(request, processes):
    return open_workers(None) if request.param == "this process" else processes


def test_results_have_the_order_of_the_items(workers):
    assert list(workers.map(tasks.square, range(7), 10, 20)) == [i * i + 30 for i in range(7)]
    assert list(workers.map(tasks.square, [])) == []


def test_late_results_keep_their_place(processes):
    items = [0.5, 0.0, 0.0]
    assert list(processes.map(tasks.wait_and_return, items)) == items


def test_items_are_taken_when_a_worker_is_free(processes, tmp_path):
    most = []

    def items():
        for i in range(10):
            most.append(i + 1 - len(list(tmp_path.iterdir())))
            yield i

    assert list(processes.map(tasks.wait_and_mark, items(), str(tmp_path))) == list(range(10))
    assert max(most) == 2


def test_an_error_of_the_work_is_raised(workers):
    with pytest.raises(ValueError, match="1 is refused"):
        list(workers.map(tasks.refuse, [1]))


def test_items_of_dead_workers_are_run_again(processes, tmp_path):
    results = processes.map(tasks.die_once, [1, 2, 3], str(tmp_path))
    assert list(results) == [1, 2, 3]


def test_workers_that_died_idle_are_replaced(processes):
    before = set(processes.map(tasks.process_id, [1]))
    for process in multiprocessing.active_children():
        process.kill()
        process.join()
    time.sleep(0.5)
    assert before.isdisjoint(processes.map(tasks.process_id, [1, 2]))


def test_an_item_that_kills_every_worker_is_named_and_not_its_neighbours(processes):
    with pytest.raises(ClusterError, match="3 workers died at poison"):
        list(processes.map(tasks.die_of_poison, ["bread", "poison", "soup", "salad"]))


def test_closing_ends_the_processes():
    before = set(multiprocessing.active_children())
    workers = open_workers("local", 2)
    results = workers.map(tasks.wait_and_return, [0.0, 60.0])
    assert next(results) == 0.0
    pids = [each.pid for each in set(multiprocessing.active_children()) - before]
    assert len(pids) == 2
    started = time.monotonic()
    workers.close()
    assert time.monotonic() - started < 30
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_no_more_workers_are_started_than_cores_have_use_for(monkeypatch):
    monkeypatch.setenv("LOKY_MAX_CPU_COUNT", "1")
    with open_workers("local", 10**23) as workers:
        assert 1 <= workers.n_workers <= 4


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("local", 0), "must be positive; got 0"),
        (("127.0.0.1:1",), r"no Dask scheduler at 127.0.0.1:1"),
        (("nonsense",), r"no Dask scheduler at nonsense: missing port number"),
        (("tcp://127.0.0.1:8786", 3), "leave --workers out"),
    ],
)
def test_workers_that_cannot_be_had_are_one_sentence(arguments, message):
    with pytest.raises(ClusterError, match=message):
        open_workers(*arguments)
