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

from ulr.distributed import open_workers
from ulr.errors import ClusterError

SIZES = [60, 1, 130, 40, 0, 90, 25, 75, 80]

pytest.importorskip("distributed")
pytestmark = pytest.mark.cluster


@pytest.fixture(scope="module")
def cluster():
    import dask

    from distributed import LocalCluster

    # On a busy machine a killed worker takes longer to come back than the cluster waits for it.
    patience = {"distributed.deploy.lost-worker-timeout": "10 minutes"}
    options = {"processes": True, "threads_per_worker": 1, "dashboard_address": ":0"}
    with warnings.catch_warnings(), dask.config.set(patience):
        warnings.simplefilter("ignore")
        with LocalCluster(n_workers=2, **options) as cluster:
            yield cluster


@pytest.fixture(scope="module")
def task(tmp_path_factory, word_vectors):
    """A folder of partitions, and what one process makes of it."""
    folder = tmp_path_factory.mktemp("task")
    source = write_partitions(folder / "in", SIZES, "csv")
    run_single(source, word_vectors, folder / "single")
    return source, content(folder / "single")


@pytest.fixture
def workers(cluster):
    with open_workers(cluster.scheduler_address) as workers:
        yield workers


def scale(cluster, n_workers):
    cluster.scale(n_workers)
    wait_until(lambda: len(cluster.scheduler.workers) == n_workers)


@pytest.mark.parametrize("stage", ["never", "Sampling", "Labelling"])
def test_files_are_those_of_one_process_even_if_a_worker_is_killed(
    cluster, workers, task, word_vectors, tmp_path, stage
):
    source, expected = task
    scale(cluster, 2)
    pid = next(nanny.pid for nanny in cluster.workers.values() if nanny.pid)
    progress = OnStage(stage, lambda: os.kill(pid, signal.SIGKILL))
    report = run_job(source, word_vectors, tmp_path / "out", workers, progress=progress)
    assert progress.called == (stage != "never")
    assert content(tmp_path / "out") == expected
    assert (report.labelled, report.job.documents) == (len(SIZES), sum(SIZES))


def test_a_job_goes_on_when_all_workers_are_lost_and_new_ones_join(
    cluster, workers, task, word_vectors, tmp_path
):
    source, expected = task
    scale(cluster, 2)
    nannies = []

    def lose_all():
        nannies.extend(cluster.workers.values())
        cluster.scale(0)
        # Nannies that are not closed yet would be kept when the cluster grows again.
        wait_until(lambda: not cluster.scheduler.workers and not cluster.workers)
        threading.Timer(0.5, cluster.scale, [2]).start()

    progress = OnStage("Labelling", lose_all)
    run_job(source, word_vectors, tmp_path / "out", workers, progress=progress)
    assert progress.called
    assert set(cluster.workers.values()).isdisjoint(nannies)
    assert content(tmp_path / "out") == expected


def test_tasks_that_dask_gives_up_are_submitted_again_and_errors_are_raised(
    cluster, workers, tmp_path, monkeypatch
):
    scale(cluster, 2)
    monkeypatch.setattr(cluster.scheduler, "allowed_failures", 0)
    assert list(workers.map(tasks.die_once, [1, 2], str(tmp_path))) == [1, 2]
    with pytest.raises(ValueError, match="7 is refused"):
        list(workers.map(tasks.refuse, [7]))


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
    deadline = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


OTHER_VERSION = "import ulr; ulr.__version__ = '0.0.1'"


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("from ulr.encoders import ENCODERS; ENCODERS.pop('glove', 0)", "cannot load the encoder"),
        ("import sys; sys.modules['ulr.distributed.tasks'] = None", "it cannot run ulr"),
    ],
    ids=["no encoder", "no ulr"],
)
def test_a_job_goes_on_without_a_late_worker_that_cannot_do_the_work(
    cluster, workers, task, word_vectors, tmp_path, start_worker, script, message
):
    source, expected = task
    scale(cluster, 1)
    refused = []
    workers.on_refused = refused.append
    progress = OnStage("Sampling", lambda: start_worker(script))
    report = run_job(source, word_vectors, tmp_path / "out", workers, progress=progress)
    assert content(tmp_path / "out") == expected
    assert report.labelled == len(SIZES)
    assert workers.n_workers == 1
    assert len(refused) == 1
    assert message in refused[0]


def test_a_refused_worker_gets_no_task_and_new_good_ones_do(
    cluster, workers, task, word_vectors, tmp_path, start_worker
):
    source, expected = task
    scale(cluster, 1)
    start_worker(OTHER_VERSION)

    def replace_workers():
        cluster.scale(0)
        wait_until(lambda: len(cluster.scheduler.workers) == 1)
        threading.Timer(0.5, cluster.scale, [2]).start()

    progress = OnStage("Labelling", replace_workers)
    run_job(source, word_vectors, tmp_path / "out", workers, progress=progress)
    assert progress.called
    assert content(tmp_path / "out") == expected


def test_a_job_without_any_fit_worker_stops_with_one_sentence(
    cluster, workers, task, word_vectors, tmp_path, start_worker
):
    start_worker(OTHER_VERSION)
    cluster.scale(0)
    wait_until(lambda: len(cluster.scheduler.workers) == 1)
    with pytest.raises(ClusterError, match=r"no worker at .* can be used: .* has ulr 0\.0\.1 and"):
        run_job(task[0], word_vectors, tmp_path / "out", workers)
    assert not (tmp_path / "out").exists()


def test_a_lost_scheduler_is_one_sentence_and_the_job_goes_on_elsewhere(
    cluster, task, word_vectors, tmp_path
):
    from distributed import LocalCluster

    source, expected = task
    own = LocalCluster(n_workers=1, processes=True, threads_per_worker=1, dashboard_address=":0")
    progress = OnStage("Labelling", own.close)
    with (
        open_workers(own.scheduler_address) as workers,
        pytest.raises(ClusterError, match="is gone; run the same command again"),
    ):
        run_job(source, word_vectors, tmp_path / "out", workers, progress=progress)
    assert set(content(tmp_path / "out").items()) <= set(expected.items())
    scale(cluster, 2)
    with open_workers(cluster.scheduler_address) as workers:
        report = run_job(source, word_vectors, tmp_path / "out", workers)
    assert report.resumed > 0
    assert content(tmp_path / "out") == expected
