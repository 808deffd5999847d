"""How often a job reads its file, what it encodes, and what it learns about it on the way."""

import json
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from running import LABELS, read_rows, run_classify, write_rows
from tiny_task import CountingEncoder
from ulr.encoders import StaticEncoder
from ulr.errors import TableError
from ulr.jobs import text_columns
from ulr.tables import open_table

WORDS = "goal team bank profit rain storm match shares cloud striker market sunny".split()


def some_texts(n_texts):
    draw = np.random.default_rng(0)
    return [f"{' '.join(draw.choice(WORDS, 12))} {draw.bytes(8).hex()}" for _ in range(n_texts)]


@pytest.fixture(scope="module")
def encoder():
    return StaticEncoder.embedded()


def write(path, texts):
    ids = range(len(texts))
    if path.suffix == ".parquet":
        pq.write_table(pa.table({"id": ids, "text": texts}), path)
    elif path.suffix == ".csv":
        write_rows(path, zip(ids, texts, strict=True), ["id", "text"])
    else:
        lines = (json.dumps({"id": i, "text": text}) for i, text in zip(ids, texts, strict=True))
        path.write_text("\n".join(lines))
    return path


def classify(source, target, encoder, stdin=None, **options):
    options = {"encoder": encoder, "stdin": stdin, "force": True, **options}
    return run_classify(source, LABELS, target, **options)[0]


def bytes_read():
    """What this process has read from files so far."""
    with open("/proc/self/io") as file:
        return int(file.readline().removeprefix("rchar:"))


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize(
    ("ending", "given", "times"),
    [("csv", None, 2), ("jsonl", None, 2), ("parquet", None, 2), ("csv", "-", 3.2)],
)
def test_a_file_is_read_twice_and_standard_input_once_more(tmp_path, encoder, ending, given, times):
    source = write(tmp_path / f"in.{ending}", some_texts(30_000))
    for _ in range(2):  # the first time, modules are read too
        before = bytes_read()
        with source.open("rb") as stdin:
            classify(given or source, tmp_path / f"out.{ending}", encoder, stdin)
        read = bytes_read() - before
    n_bytes = source.stat().st_size
    assert n_bytes > 1_200_000
    # Beginning and end are read more often, to recognise the format and the columns.
    assert 1.5 * n_bytes < read < times * n_bytes + 2_000_000


@pytest.mark.parametrize("fit_sample", [None, 2000, 300])
def test_no_text_is_encoded_twice(tmp_path, fit_sample):
    source = write(tmp_path / "in.csv", some_texts(6_000))
    counting = CountingEncoder()
    classify(source, tmp_path / "out.csv", counting, fit_sample=fit_sample, template=None)
    assert counting.n_encoded == 6_000 + len(LABELS)


def test_sampled_rows_get_the_labels_that_the_model_predicts(tmp_path, encoder):
    texts = some_texts(20_000)
    source = write(tmp_path / "in.csv", texts)
    fitted = classify(source, tmp_path / "out.csv", encoder, fit_sample=3000)
    rows = read_rows(tmp_path / "out.csv")
    expected, names = fitted.predict(texts), fitted.names
    assert [row["text"] for row in rows] == texts
    assert [row["ulr_label"] for row in rows] == names[expected.labels].tolist()
    assert [row["ulr_unrefined"] for row in rows] == names[expected.unrefined].tolist()
    found = [float(row["ulr_confidence"]) for row in rows]
    assert found == pytest.approx(expected.confidence, abs=1.1e-4)


# Keys of JSON records that only later ones have


def late_records(tmp_path, late):
    records = [{"id": i, "text": text} for i, text in enumerate(some_texts(3000))]
    records[2500] |= late
    path = tmp_path / "in.jsonl"
    path.write_text("\n".join(map(json.dumps, records)))
    assert path.stat().st_size > 200_000
    return path, records


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_late_keys_are_written(tmp_path, encoder, ending):
    source, records = late_records(tmp_path, {"note": "late"})
    classify(source, tmp_path / f"out.{ending}", encoder)
    with open_table(str(tmp_path / f"out.{ending}")) as table:
        assert "note" in table.all_columns()
        rows = [row for batch in table.batches() for row in batch.records()]
    assert [row["text"] for row in rows] == [record["text"] for record in records]
    assert [bool(row.get("note")) for row in rows] == ["note" in record for record in records]


def test_a_late_key_like_an_added_column_is_refused(tmp_path, encoder):
    source, _ = late_records(tmp_path, {"ulr_label": "mine"})
    with pytest.raises(TableError, match="already has a column 'ulr_label'"):
        classify(source, tmp_path / "out.jsonl", encoder)
    assert [path.name for path in tmp_path.iterdir()] == ["in.jsonl"]


def test_a_late_column_can_be_chosen_and_a_missing_one_names_all(tmp_path):
    source, _ = late_records(tmp_path, {"note": "late"})
    with open_table(str(source)) as table:
        assert text_columns(table, ["note"]) == ["note"]
        with pytest.raises(TableError, match="no column 'body'; it has: id, text, note"):
            text_columns(table, ["body"])
