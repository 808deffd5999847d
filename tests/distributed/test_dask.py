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
    wait_until(lambda: len(cluster.scheduler.workers) == n_workers)


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


@pytest.fixture
def start_worker(cluster, tmp_path):
    """Start workers in processes of their own, changed by a script that they run first."""
    started = []

    def start(script):
        n_workers = len(cluster.scheduler.workers)
        preload = tmp_path / "preload.py"
        preload.write_text(script)
        command = [sys.executable, "-m", "distributed.cli.dask_worker", cluster.scheduler_address]
        options = ["--no-nanny", "--nthreads", "1", "--no-dashboard", "--preload", str(preload)]
        started.append(
            subprocess.Popen(
                [*command, *options], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            )
        )
        wait_until(lambda: len(cluster.scheduler.workers) > n_workers)

    yield start
    for process in started:
        process.kill()
        process.wait()
    wait_until(lambda: len(cluster.scheduler.workers) == len(cluster.workers))


def wait_until(condition):
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


OTHER_VERSION = "import ulr; ulr.__version__ = '0.0.1'"
UNFIT = pytest.mark.parametrize(
    ("script", "message"),
    [
        (OTHER_VERSION, "has ulr 0.0.1, but the job was started with"),
        (
            "import platform; platform.python_version_tuple = lambda: ('3', '9', '1')",
            "has Python 3.9, but",
        ),
        (
            "from ulr.encoders.registry import ENCODERS; ENCODERS.pop('glove', None)",
            "cannot load the encoder 'glove:",
        ),
        ("import sys; sys.modules['ulr.distributed.partitions'] = None", "it cannot run ulr"),
    ],
    ids=["version", "Python", "encoder", "no ulr"],
)


@UNFIT
def test_a_job_goes_on_without_a_late_worker_that_cannot_do_the_work(
    cluster, executor, task, word_vectors, tmp_path, start_worker, script, message
):
    source, expected = task
    scale(cluster, 1)
    refused = []
    executor.on_refused = refused.append
    listener = OnStage("Sampling", lambda: start_worker(script))
    report = run_job(source, word_vectors, tmp_path / "out", executor, listener)
    assert content(tmp_path / "out") == expected
    assert report.labelled == len(SIZES)
    assert executor.n_workers == 1
    assert len(refused) == 1
    assert message in refused[0]


def test_a_refused_worker_gets_no_task_and_new_good_ones_do(
    cluster, executor, task, word_vectors, tmp_path, start_worker
):
    source, expected = task
    scale(cluster, 1)
    start_worker(OTHER_VERSION)

    def replace_workers():
        cluster.scale(0)
        wait_until(lambda: len(cluster.scheduler.workers) == 1)
        threading.Timer(0.5, cluster.scale, [2]).start()

    listener = OnStage("Labelling", replace_workers)
    run_job(source, word_vectors, tmp_path / "out", executor, listener)
    assert listener.called
    assert content(tmp_path / "out") == expected


def test_a_job_without_any_fit_worker_stops_with_one_sentence(
    cluster, executor, task, word_vectors, tmp_path, start_worker
):
    start_worker(OTHER_VERSION)
    scale_to_none = threading.Timer(0, cluster.scale, [0])
    scale_to_none.start()
    wait_until(lambda: len(cluster.scheduler.workers) == 1)
    with pytest.raises(ClusterError, match=r"no worker at .* can be used: .* has ulr 0\.0\.1"):
        run_job(task[0], word_vectors, tmp_path / "out", executor)
    assert not (tmp_path / "out").exists()


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
