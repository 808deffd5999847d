"""Files by address: the same jobs in an S3 store on the loopback, and in one without ETags."""

import json
import urllib.request
from types import SimpleNamespace

import fsspec
import numpy as np
import pytest
from partitioned import LABELS, OnStage, content, run_job, run_single, write_partitions

from ulr.distributed import find_partitions, open_workers
from ulr.errors import ClusterError, TableError

SIZES = [60, 1, 130, 0, 90]
HERE = open_workers(None)

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
        address, content = f"{self.address}/moto-api/reset-auth", str(n_requests).encode()
        request = urllib.request.Request(address, content, {"Content-Type": "text/plain"})
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
def expected(tmp_path_factory, word_vectors):
    """Partitions, and what one process makes of them."""
    folder = tmp_path_factory.mktemp("expected")
    source = write_partitions(folder / "in", SIZES, "csv")
    run_single(source, word_vectors, folder / "single")
    return SimpleNamespace(source=source, content=content(folder / "single"))


@pytest.fixture
def bucket(store, expected, request, tmp_path):
    """A bucket with the partitions in a folder."""
    files = s3fs.S3FileSystem()
    name = f"bucket-{abs(hash(request.node.name))}"
    files.mkdir(name)
    files.put(str(expected.source), f"{name}/in", recursive=True)

    def download(folder):
        files.invalidate_cache()
        files.get(f"{name}/{folder}/", str(tmp_path / folder), recursive=True)
        return tmp_path / folder

    return SimpleNamespace(
        files=files,
        name=name,
        source=f"s3://{name}/in/*.csv",
        output=f"s3://{name}/out",
        download=download,
    )


@pytest.mark.cluster
def test_files_of_a_store_are_those_of_one_process(bucket, expected, word_vectors):
    vectors = f"s3://{bucket.name}/vectors"
    with open_workers("local", 2) as workers:
        report = run_job(bucket.source, word_vectors, bucket.output, workers, vectors=vectors)
    copy = bucket.download("out")
    assert content(copy) == expected.content
    assert (report.labelled, report.job.documents) == (len(SIZES), sum(SIZES))
    assert json.loads((copy / "_SUCCESS.json").read_text())["documents"] == sum(SIZES)
    assert np.load(bucket.download("vectors") / "part-002.csv.npy").shape[0] == 130


@pytest.mark.parametrize("protocol", ["s3", "memory"], ids=["ETags", "no ETags"])
def test_a_second_run_labels_nothing_unless_a_file_has_changed(
    bucket, expected, word_vectors, protocol
):
    files, root = fsspec.filesystem(protocol), f"{protocol}://{bucket.name}"
    if protocol == "memory":
        files.put(str(expected.source), f"{root}/in", recursive=True)

    def run(**settings):
        return run_job(f"{root}/in", word_vectors, f"{root}/out", HERE, **settings)

    assert (run().labelled, run().resumed) == (len(SIZES), len(SIZES))
    assert files.cat_file(f"{root}/out/part-002.csv") == expected.content["part-002.csv"]
    changed = files.cat_file(f"{root}/in/part-000.csv").replace(b"trade", b"snows")
    files.pipe_file(f"{root}/in/part-000.csv", changed)
    assert run().labelled > 0
    assert b"snows" in files.cat_file(f"{root}/out/part-000.csv")
    with pytest.raises(ClusterError, match="another job"):
        run(random_state=1)
    files.rm_file(f"{root}/out/part-002.csv")
    assert run().labelled == 1


def test_a_job_goes_on_when_the_store_is_back(bucket, store, expected, word_vectors):
    progress = OnStage("Labelling", store.stop)
    with pytest.raises(ClusterError, match="cannot be reached: Could not connect"):
        run_job(bucket.source, word_vectors, bucket.output, HERE, progress=progress)
    store.start()
    report = run_job(bucket.source, word_vectors, bucket.output, HERE)
    assert report.resumed > 0
    assert content(bucket.download("out")) == expected.content


def test_an_input_that_is_removed_is_broken(bucket, word_vectors):
    files = find_partitions([bucket.source])
    bucket.files.rm_file(f"{bucket.name}/in/part-002.csv")
    with pytest.raises(TableError, match=r"there is no file s3://\S+/part-002.csv"):
        run_job(None, word_vectors, bucket.output, HERE, files=files)
    report = run_job(None, word_vectors, bucket.output, HERE, files=files, skip_broken=True)
    assert len(report.broken) == 1
    assert report.job.documents == sum(SIZES) - 130


def test_what_a_store_refuses_is_one_sentence(bucket, store, word_vectors):
    with pytest.raises(TableError, match=r"there is no file s3://no-such-bucket/\*.csv"):
        find_partitions(["s3://no-such-bucket/*.csv"])
    with pytest.raises(ClusterError, match="no such file, folder or bucket"):
        run_job(bucket.source, word_vectors, "s3://no-such-bucket/out", HERE)
    store.check_keys_after(0)
    try:
        with pytest.raises(TableError, match=r"s3://bucket-\S+ cannot be reached: .*Key"):
            find_partitions([bucket.source])
    finally:
        store.check_keys_after("inf")
    with pytest.raises(TableError, match="with: pip install gcsfs"):
        find_partitions(["gs://bucket/*.csv"])


def test_an_address_of_a_local_file_is_its_path(expected, word_vectors, tmp_path):
    files = find_partitions([f"file://{expected.source}/*.csv"])
    assert files == find_partitions([str(expected.source)])
    run_job(None, word_vectors, f"file://{tmp_path}/out", HERE, files=files)
    assert content(tmp_path / "out") == expected.content


def test_the_command_reads_and_writes_addresses(bucket, command, word_vectors, tmp_path):
    model = tmp_path / "model"
    arguments = ["-l", ", ".join(LABELS), "--encoder", word_vectors, "-o", f"{bucket.output}/"]
    arguments += ["--part"]
    for part in ("0/1", "1/1"):
        options = [part, "--save-model", model, "--force"]
        result = command("classify", bucket.source, *arguments, *options)
        assert result.code == 0, result.err
    assert "281 documents, 3 labels" in result.out
    assert bucket.files.exists(f"{bucket.name}/out/_SUCCESS.json")
    assert (model / "model.json").exists()
    missing = f"s3://{bucket.name}/in/part-9.csv"
    result = command("classify", missing, *arguments, "0/1")
    assert result.code == 1
    assert "there is no file s3://" in result.err
