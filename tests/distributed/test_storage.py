"""Files by address: the same jobs in an S3 store on the loopback, and in one without ETags."""

import json
import os
import signal
import urllib.request
from types import SimpleNamespace

import fsspec
import numpy as np
import pytest
from partitioned import LABELS, OnStage, content, run_job, run_single, write_partitions

from ulr.distributed.executors import ProcessExecutor, SerialExecutor
from ulr.distributed.job import find_partitions
from ulr.distributed.storage import storage_of
from ulr.errors import ClusterError, TableError

SIZES = [60, 1, 130, 0, 90]

s3fs = pytest.importorskip("s3fs")


class Store:
    """An S3 server in this process, which keeps its objects when it is stopped."""

    def __init__(self):
        self.port = 0
        self.start()

    def start(self):
        from moto.server import ThreadedMotoServer

        self._server = ThreadedMotoServer("127.0.0.1", self.port, verbose=False)
        self._server.start()
        self.port = self._server.get_host_and_port()[1]

    def stop(self):
        self._server.stop()

    @property
    def address(self):
        return f"http://127.0.0.1:{self.port}"

    def check_keys_after(self, n_requests):
        """Refuse unknown access keys after so many requests."""
        request = urllib.request.Request(
            f"{self.address}/moto-api/reset-auth",
            str(n_requests).encode(),
            {"Content-Type": "text/plain"},
        )
        urllib.request.urlopen(request).close()


@pytest.fixture(scope="module")
def store():
    """A store that this process and its workers reach."""
    store = Store()
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {
            "AWS_ACCESS_KEY_ID": "key",
            "AWS_SECRET_ACCESS_KEY": "secret",
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_ENDPOINT_URL": store.address,
            "AWS_MAX_ATTEMPTS": "1",
        }.items():
            patch.setenv(name, value)
        yield store
    s3fs.S3FileSystem.clear_instance_cache()
    store.stop()


@pytest.fixture(scope="module")
def processes(store):
    with ProcessExecutor(2) as executor:
        yield executor


@pytest.fixture(scope="module")
def expected(tmp_path_factory, word_vectors):
    """Partitions, and what one process makes of them."""
    folder = tmp_path_factory.mktemp("expected")
    source = write_partitions(folder / "in", SIZES, "csv")
    run_single(source, word_vectors, folder / "single")
    return SimpleNamespace(source=source, content=content(folder / "single"))


@pytest.fixture
def bucket(store, expected, request):
    """A bucket with the partitions in a folder."""
    files = s3fs.S3FileSystem()
    name = f"bucket-{abs(hash(request.node.name))}"
    files.mkdir(name)
    files.put(str(expected.source), f"{name}/in", recursive=True)
    return SimpleNamespace(files=files, name=name, source=f"s3://{name}/in/*.csv")


def download(bucket, folder, target):
    bucket.files.invalidate_cache()
    bucket.files.get(f"{bucket.name}/{folder}/", str(target), recursive=True)
    return target


def test_files_are_those_of_one_process(bucket, processes, expected, word_vectors, tmp_path):
    output, vectors = f"s3://{bucket.name}/out/", f"s3://{bucket.name}/vectors"
    report = run_job(bucket.source, word_vectors, output, processes, vectors=vectors)
    copy = download(bucket, "out", tmp_path / "out")
    assert content(copy) == expected.content
    assert (report.labelled, report.job.documents) == (len(SIZES), sum(SIZES))
    assert json.loads((copy / "_SUCCESS.json").read_text())["documents"] == sum(SIZES)
    kept = np.load(download(bucket, "vectors", tmp_path / "vectors") / "part-002.csv.npy")
    assert kept.shape[0] == 130
    # One PUT each: the ETag of a multipart upload has a dash.
    tags = [each["ETag"] for each in bucket.files.find(bucket.name, detail=True).values()]
    assert not [tag for tag in tags if "-" in tag]


def test_local_files_can_be_written_to_a_store_and_remote_ones_to_a_folder(
    bucket, expected, word_vectors, tmp_path
):
    output = f"s3://{bucket.name}/deep/folder/out"
    run_job(expected.source, word_vectors, output, SerialExecutor())
    assert content(download(bucket, "deep/folder/out", tmp_path / "copy")) == expected.content
    run_job(f"s3://{bucket.name}/in", word_vectors, tmp_path / "out", SerialExecutor())
    assert content(tmp_path / "out") == expected.content


def test_a_killed_process_changes_nothing(bucket, processes, expected, word_vectors, tmp_path):
    listener = OnStage("Labelling", lambda: os.kill(processes.pids[0], signal.SIGKILL))
    run_job(bucket.source, word_vectors, f"s3://{bucket.name}/out", processes, listener)
    assert listener.called
    assert content(download(bucket, "out", tmp_path / "out")) == expected.content


def test_a_second_run_labels_nothing_unless_an_input_has_changed(bucket, word_vectors):
    def run():
        output = f"s3://{bucket.name}/out"
        return run_job(bucket.source, word_vectors, output, SerialExecutor())

    assert (run().labelled, run().resumed) == (len(SIZES), len(SIZES))
    changed = bucket.files.cat_file(f"{bucket.name}/in/part-000.csv").replace(b"trade", b"snows")
    bucket.files.pipe_file(f"{bucket.name}/in/part-000.csv", changed)
    assert run().labelled > 0
    assert b"snows" in bucket.files.cat_file(f"{bucket.name}/out/part-000.csv")
    bucket.files.rm_file(f"{bucket.name}/out/part-002.csv")
    assert run().labelled == 1


def test_an_input_that_changes_during_a_job_is_refused(bucket, word_vectors):
    def change():
        bucket.files.pipe_file(f"{bucket.name}/in/part-002.csv", b"id,text\n1,rain\n")

    with pytest.raises(TableError, match=r"part-002.csv changed since it was sampled"):
        run_job(
            bucket.source,
            word_vectors,
            f"s3://{bucket.name}/out",
            SerialExecutor(),
            OnStage("Labelling", change, at_start=True),
        )
    assert not bucket.files.exists(f"{bucket.name}/out/_SUCCESS.json")
    assert not bucket.files.exists(f"{bucket.name}/out/part-002.csv")


def test_an_input_that_is_removed_is_broken(bucket, word_vectors):
    files = find_partitions([bucket.source])
    bucket.files.rm_file(f"{bucket.name}/in/part-000.csv")
    output = f"s3://{bucket.name}/out"
    with pytest.raises(TableError, match=r"there is no file s3://\S+/part-000.csv"):
        run_job(None, word_vectors, output, SerialExecutor(), files=files)
    report = run_job(None, word_vectors, output, SerialExecutor(), files=files, skip_broken=True)
    assert len(report.broken) == 1
    assert report.job.documents == sum(SIZES[1:])


def test_files_of_others_and_other_jobs_are_not_replaced(bucket, word_vectors):
    own = f"{bucket.name}/out/part-001.csv"
    bucket.files.pipe_file(own, b"mine")
    output = f"s3://{bucket.name}/out"
    with pytest.raises(ClusterError, match=r"out/part-001.csv already exists"):
        run_job(bucket.source, word_vectors, output, SerialExecutor())
    assert bucket.files.cat_file(own) == b"mine"
    run_job(bucket.source, word_vectors, output, SerialExecutor(), force=True)
    with pytest.raises(ClusterError, match="another job"):
        run_job(bucket.source, word_vectors, output, SerialExecutor(), random_state=1)


def test_a_job_goes_on_when_the_store_is_back(bucket, store, expected, word_vectors, tmp_path):
    output = f"s3://{bucket.name}/out"
    listener = OnStage("Labelling", store.stop)
    with pytest.raises(ClusterError, match="cannot be reached: Could not connect"):
        run_job(bucket.source, word_vectors, output, SerialExecutor(), listener)
    store.start()
    report = run_job(bucket.source, word_vectors, output, SerialExecutor())
    assert report.resumed > 0
    assert content(download(bucket, "out", tmp_path / "out")) == expected.content


def test_a_bucket_that_does_not_exist_is_one_sentence(bucket, word_vectors):
    with pytest.raises(TableError, match=r"there is no file s3://no-such-bucket/\*.csv"):
        find_partitions(["s3://no-such-bucket/*.csv"])
    with pytest.raises(ClusterError, match="no such file, folder or bucket"):
        run_job(bucket.source, word_vectors, "s3://no-such-bucket/out", SerialExecutor())


def test_a_store_without_permission_is_one_sentence(bucket, store):
    store.check_keys_after(0)
    try:
        with pytest.raises(ClusterError, match=r"s3://bucket-\S+ cannot be reached: .*Key"):
            find_partitions([bucket.source])
    finally:
        store.check_keys_after("inf")


def test_a_package_that_is_missing_is_named():
    with pytest.raises(ClusterError, match="with: pip install gcsfs"):
        find_partitions(["gs://bucket/*.csv"])
    with pytest.raises(ClusterError, match="nothing://bucket/x cannot be reached"):
        find_partitions(["nothing://bucket/x"])


def test_without_etags_a_changed_input_is_found_by_its_content(expected, word_vectors, tmp_path):
    memory = fsspec.filesystem("memory")
    memory.put(str(expected.source), "/in", recursive=True)

    def run():
        return run_job("memory://in", word_vectors, "memory://out", SerialExecutor())

    assert (run().labelled, run().resumed) == (len(SIZES), len(SIZES))
    memory.get("/out/", str(tmp_path / "out"), recursive=True)
    assert content(tmp_path / "out") == expected.content
    changed = memory.cat_file("/in/part-004.csv").replace(b"trade", b"snows")
    memory.pipe_file("/in/part-004.csv", changed)
    assert run().labelled > 0
    assert b"snows" in memory.cat_file("/out/part-004.csv")


def test_an_address_of_a_local_file_is_its_path(expected, word_vectors, tmp_path):
    files = find_partitions([f"file://{expected.source}/*.csv"])
    assert files == find_partitions([str(expected.source)])
    output = f"file://{tmp_path}/out"
    run_job(None, word_vectors, output, SerialExecutor(), files=files)
    assert content(tmp_path / "out") == expected.content


def test_a_file_whose_writing_fails_does_not_appear(bucket):
    name = f"s3://{bucket.name}/new.csv"

    def write():
        with storage_of(name).replacing(name) as path:
            path.write_text("half")
            raise RuntimeError("stopped")

    with pytest.raises(RuntimeError, match="stopped"):
        write()
    assert storage_of(name).size(name) is None


def test_the_command_reads_and_writes_addresses(bucket, command, word_vectors, tmp_path):
    output, model = f"s3://{bucket.name}/out/", tmp_path / "model"
    arguments = ["-l", ", ".join(LABELS), "--encoder", word_vectors, "-o", output]
    result = command("classify", bucket.source, *arguments, "--workers", "1", "--save-model", model)
    assert result.code == 0, result.err
    assert "281 documents, 3 labels" in result.out
    assert bucket.files.exists(f"{bucket.name}/out/_SUCCESS.json")
    assert (model / "model.json").exists()
    result = command("classify", f"s3://{bucket.name}/in/part-9.csv", *arguments)
    assert result.code == 1
    assert "there is no file s3://" in result.err
