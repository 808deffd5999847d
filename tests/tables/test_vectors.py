"""Vectors on disk: the same answer as in memory, with bounded memory."""

import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ulr.errors import TableError
from ulr.refinement import refine
from ulr.tables.vectors import open_vectors


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
        result = refine(stored, labels, distance=distance, n_jobs=threads)
        np.testing.assert_array_equal(result.predictions, expected.predictions)
        assert result.n_iter == expected.n_iter
        np.testing.assert_array_equal(result.unrefined, expected.unrefined)


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
        refine(open_vectors(tmp_path / "v.parquet"), np.eye(2))


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
from ulr.refinement import refine
from ulr.tables.vectors import open_vectors

def anonymous():  # memory of our own, without the pages of files
    line = next(line for line in open("/proc/self/status") if line.startswith("RssAnon"))
    return int(line.split()[1]) / 1024

documents = open_vectors(sys.argv[1])
labels = np.array(documents[0:8], dtype=np.float32)
before, peak = anonymous(), []
result = refine(documents, labels, method="ulr", max_iter=2, on_pass=lambda _: peak.append(anonymous()))
print(max(peak) - before, result.n_iter)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_memory_is_bounded_whatever_the_size_of_the_file(tmp_path):
    documents = np.lib.format.open_memmap(
        tmp_path / "big.npy", "w+", dtype=np.float16, shape=(200_000, 512)
    )
    random = np.random.default_rng(0)
    some = random.normal(size=(20_000, 512)).astype(np.float16)
    for start in range(0, len(documents), len(some)):
        documents[start : start + len(some)] = some
    documents.flush()
    arguments = [sys.executable, "-c", MEASURE, str(tmp_path / "big.npy")]
    run = subprocess.run(arguments, capture_output=True, text=True, timeout=300, check=True)
    megabytes, passes = map(float, run.stdout.split())
    assert passes == 2
    # The file has 200 MB.
    assert megabytes < 100


@pytest.mark.parametrize(
    "rows",
    [
        slice(3, 9000, 7),
        slice(0, None, 5000),
        slice(4095, 4098, 2),
        slice(-3, None),
        slice(9000, 100, -13),
        slice(None, None, -1),
        slice(5, 5),
        slice(7, 3),
        slice(30_000, 40_000),
    ],
)
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_slices_of_parquet_vectors_are_those_of_the_array(data, tmp_path, rows, dtype):
    documents = data[0].astype(dtype)
    write(tmp_path / "vectors.parquet", documents)
    stored = open_vectors(tmp_path / "vectors.parquet")
    stored[6000:6001]  # from anywhere in the file
    np.testing.assert_array_equal(stored[rows], documents[rows], strict=True)
