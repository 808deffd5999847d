"""Jobs on a real Dask cluster of processes: the same files whatever happens to workers."""

import os
import signal
import subprocess
import sys
import threading
import time
import warnings

import pytest
import tasks
from partitioned import OnStage, content, run_job, run_single, write_partitions

from ulr.distributed.dask import DaskExecutor
from ulr.distributed.executors import open_executor
from ulr.errors import ClusterError

SIZES = [60, 1, 130, 40, 0, 90, 25, 75, 80]

pytest.importorskip("distributed")


@pytest.fixture(scope="module")
def cluster():
    from distributed import LocalCluster

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with LocalCluster(
            n_workers=2, processes=True, threads_per_worker=1, dashboard_address=":0"
        ) as cluster:
            yield cluster


@pytest.fixture(scope="module")
def task(tmp_path_factory, word_vectors):
    """A folder of partitions, and what one process makes of it."""
    folder = tmp_path_factory.mktemp("task")
    source = write_partitions(folder / "in", SIZES, "csv")
    run_single(source, word_vectors, folder / "single")
    return source, content(folder / "single")


@pytest.fixture
def executor(cluster):
    with open_executor(cluster.scheduler_address) as executor:
        yield executor


def scale(cluster, n_workers):
    cluster.scale(n_workers)
    deadline = time.monotonic() + 30
    while len(cluster.scheduler.workers) != n_workers:
        assert time.monotonic() < deadline
        time.sleep(0.05)


def worker_pids(cluster):
    return [nanny.pid for nanny in cluster.workers.values() if nanny.pid]


def kill(pids):
    for pid in pids:
        os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize("n_workers", [1, 2, 3])
def test_files_are_those_of_one_process(cluster, executor, task, word_vectors, tmp_path, n_workers):
    source, expected = task
    scale(cluster, n_workers)
    assert executor.n_workers == n_workers
    report = run_job(source, word_vectors, tmp_path / "out", executor)
    assert content(tmp_path / "out") == expected
    assert (report.labelled, report.job.documents) == (len(SIZES), sum(SIZES))


@pytest.mark.parametrize("stage", ["Sampling", "Encoding", "Labelling"])
def test_a_worker_killed_in_any_stage_changes_nothing(
    cluster, executor, task, word_vectors, tmp_path, stage
):
    source, expected = task
    scale(cluster, 2)
    listener = OnStage(stage, lambda: kill(worker_pids(cluster)[:1]))
    run_job(source, word_vectors, tmp_path / "out", executor, listener)
    assert listener.called
    assert content(tmp_path / "out") == expected


def test_a_job_goes_on_when_all_workers_are_lost_and_new_ones_join(
    cluster, executor, task, word_vectors, tmp_path
):
    source, expected = task
    scale(cluster, 2)
    nannies = []

    def lose_all():
        nannies.extend(cluster.workers.values())
        cluster.scale(0)
        threading.Timer(0.5, cluster.scale, [2]).start()
        while cluster.scheduler.workers:
            time.sleep(0.01)

    listener = OnStage("Labelling", lose_all)
    run_job(source, word_vectors, tmp_path / "out", executor, listener)
    assert listener.called
    assert set(cluster.workers.values()).isdisjoint(nannies)
    assert content(tmp_path / "out") == expected


def test_tasks_that_dask_gives_up_are_submitted_again(cluster, executor, tmp_path):
    scale(cluster, 2)
    allowed = cluster.scheduler.allowed_failures
    cluster.scheduler.allowed_failures = 0
    try:
        results = list(executor.map(tasks.die_once, [1, 2], str(tmp_path)))
    finally:
        cluster.scheduler.allowed_failures = allowed
    assert results == [1, 2]


def test_errors_of_the_work_reach_the_driver(executor):
    with pytest.raises(ValueError, match="7 is refused"):
        list(executor.map(tasks.refuse, [7]))


def start_worker(address, tmp_path, **preload):
    """A worker in a process of its own, changed by a script that it runs first."""
    script = tmp_path / "preload.py"
    script.write_text(preload["script"])
    command = [sys.executable, "-m", "distributed.cli.dask_worker", address, "--no-nanny"]
    options = ["--nthreads", "1", "--no-dashboard", "--preload", str(script)]
    return subprocess.Popen(
        [*command, *options], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("import ulr; ulr.__version__ = '0.0.1'", r"has ulr 0\.0\.1, but the job was started with"),
        (
            "from ulr.encoders.registry import ENCODERS; ENCODERS.pop('glove', None)",
            "cannot load the encoder 'glove:",
        ),
    ],
    ids=["version", "encoder"],
)
def test_a_late_worker_that_cannot_do_the_work_is_refused(
    cluster, executor, task, word_vectors, tmp_path, script, message
):
    source, expected = task
    scale(cluster, 1)
    started = []

    def join():
        started.append(start_worker(cluster.scheduler_address, tmp_path, script=script))
        deadline = time.monotonic() + 30
        while len(cluster.scheduler.workers) < 2:
            assert time.monotonic() < deadline
            time.sleep(0.05)

    try:
        with pytest.raises(ClusterError, match=message):
            run_job(source, word_vectors, tmp_path / "out", executor, OnStage("Sampling", join))
    finally:
        for process in started:
            process.kill()
            process.wait()
    scale(cluster, 1)
    with open_executor(cluster.scheduler_address) as again:
        run_job(source, word_vectors, tmp_path / "out", again)
    assert content(tmp_path / "out") == expected


def test_a_lost_scheduler_is_one_sentence_and_the_job_goes_on_elsewhere(
    cluster, task, word_vectors, tmp_path
):
    from distributed import LocalCluster

    source, expected = task
    own = LocalCluster(n_workers=1, processes=True, threads_per_worker=1, dashboard_address=":0")
    listener = OnStage("Labelling", own.close)
    with (
        DaskExecutor(own.scheduler_address, timeout=2) as executor,
        pytest.raises(ClusterError, match="is gone; run the same command again"),
    ):
        run_job(source, word_vectors, tmp_path / "out", executor, listener)
    assert set(content(tmp_path / "out").items()) <= set(expected.items())
    scale(cluster, 2)
    with open_executor(cluster.scheduler_address) as executor:
        report = run_job(source, word_vectors, tmp_path / "out", executor)
    assert report.resumed > 0
    assert content(tmp_path / "out") == expected
