"""Vectors on disk: the same answer as in memory, with bounded memory."""

import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ulr.errors import TableError
from ulr.refine import nearest, refine
from ulr.vectors import open_vectors


@pytest.fixture(scope="module")
def data():
    random = np.random.default_rng(0)
    means = random.normal(size=(5, 24))
    documents = means[random.integers(5, size=20_000)] + random.normal(size=(20_000, 24))
    return documents.astype(np.float32), (means + random.normal(size=means.shape)).astype("f4")


def write(path, documents, fixed=True):
    if path.suffix == ".npy":
        np.save(path, documents)
        return
    flat = pa.array(documents.ravel())
    lists = (
        pa.FixedSizeListArray.from_arrays(flat, documents.shape[1])
        if fixed
        else pa.array(list(documents))
    )
    ids = pa.array(range(len(documents)))
    pq.write_table(pa.table({"id": ids, "vector": lists}), path, row_group_size=3000)


@pytest.mark.parametrize("name", ["vectors.npy", "vectors.parquet"])
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("distance", ["cosine", "l2"])
def test_predictions_are_those_in_memory(data, tmp_path, name, dtype, distance):
    documents, labels = data[0].astype(dtype), data[1]
    write(tmp_path / name, documents)
    expected = refine(documents, labels, distance=distance)
    stored = open_vectors(tmp_path / name)
    assert stored.shape == documents.shape
    for threads in (1, 2):
        result = refine(stored, labels, distance=distance, threads=threads, block_rows=1700)
        np.testing.assert_array_equal(result.predictions, expected.predictions)
        np.testing.assert_array_equal(result.changed, expected.changed)
    np.testing.assert_array_equal(nearest(stored, labels, distance=distance)[0], expected.unrefined)


def test_slices_are_right_in_any_order(data, tmp_path):
    write(tmp_path / "v.parquet", data[0], fixed=False)
    stored = open_vectors(tmp_path / "v.parquet", column="vector")
    for rows in (
        slice(0, 5),
        slice(100, 9000),
        slice(3, 4),
        slice(19_990, 20_000),
        slice(0, 20_000),
    ):
        np.testing.assert_array_equal(stored[rows], data[0][rows])


def test_a_bad_row_in_a_file_is_named(data, tmp_path):
    documents = data[0].copy()
    documents[12_345, 3] = np.nan
    write(tmp_path / "v.npy", documents)
    with pytest.raises(ValueError, match="NaN or infinity in row 12345"):
        refine(open_vectors(tmp_path / "v.npy"), data[1])


def test_an_error_while_reading_ahead_comes_out(data, tmp_path):
    lists = pa.array([[1.0, 2.0]] * 5000 + [[1.0]] * 5000, type=pa.list_(pa.float32()))
    pq.write_table(pa.table({"v": lists}), tmp_path / "v.parquet")
    with pytest.raises(TableError, match="must have 2 numbers; one from row 4097 on has not"):
        refine(open_vectors(tmp_path / "v.parquet"), np.eye(2), block_rows=1000)


def test_files_that_hold_no_vectors_are_refused(tmp_path):
    with pytest.raises(TableError, match="there is no file"):
        open_vectors(tmp_path / "no.npy")
    (tmp_path / "text.npy").write_text("hello")
    with pytest.raises(TableError, match=r"is not a \.npy file of numbers"):
        open_vectors(tmp_path / "text.npy")
    np.save(tmp_path / "flat.npy", np.ones(3))
    with pytest.raises(TableError, match=r"must hold float vectors, .* shape \(3,\)"):
        open_vectors(tmp_path / "flat.npy")
    (tmp_path / "text.parquet").write_text("hello")
    with pytest.raises(TableError, match="cannot be read as Parquet"):
        open_vectors(tmp_path / "text.parquet")
    pq.write_table(pa.table({"a": [1]}), tmp_path / "a.parquet")
    with pytest.raises(
        TableError, match="needs a column of lists of floats to be named; it has: none"
    ):
        open_vectors(tmp_path / "a.parquet")
    empty = pa.table({"v": pa.array([], type=pa.list_(pa.float32()))})
    pq.write_table(empty, tmp_path / "empty.parquet")
    with pytest.raises(TableError, match="has no rows"):
        open_vectors(tmp_path / "empty.parquet")


MEASURE = """
import sys, numpy as np
from ulr.refine import refine
from ulr.vectors import open_vectors

def anonymous():  # memory of our own, without the pages of files
    line = next(line for line in open("/proc/self/status") if line.startswith("RssAnon"))
    return int(line.split()[1]) / 1024

documents = open_vectors(sys.argv[1])
labels = np.array(documents[0:8], dtype=np.float32)
before, peak = anonymous(), []
result = refine(documents, labels, max_iterations=4, on_pass=lambda _: peak.append(anonymous()))
print(max(peak) - before, result.n_iterations)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_memory_is_bounded_whatever_the_size_of_the_file(tmp_path):
    documents = np.lib.format.open_memmap(
        tmp_path / "big.npy", "w+", dtype=np.float16, shape=(400_000, 512)
    )
    random = np.random.default_rng(0)
    for start in range(0, len(documents), 50_000):
        documents[start : start + 50_000] = random.normal(size=(50_000, 512))
    documents.flush()
    arguments = [sys.executable, "-c", MEASURE, str(tmp_path / "big.npy")]
    run = subprocess.run(arguments, capture_output=True, text=True, timeout=300, check=True)
    megabytes, passes = map(float, run.stdout.split())
    assert passes == 4
    # The file has 400 MB; documents x labels x 4 bytes are 13 MB of what is allowed.
    assert megabytes < 200
