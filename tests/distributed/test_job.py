"""Jobs over many files: the answers of one process, and what a second run finds and does."""

import json
import multiprocessing
import os
import shutil
from types import SimpleNamespace

import numpy as np
import pytest
from partitioned import (
    LABELS,
    N_SAMPLED,
    TOPICS,
    OnStage,
    content,
    labels_by_id,
    read_rows,
    run_job,
    run_single,
    write_partitions,
)

from ulr.classifier import load
from ulr.distributed import find_partitions, open_first, open_workers
from ulr.encoders import load_encoder
from ulr.errors import ClusterError, TableError

SIZES = [150, 90, 260]
HERE = open_workers(None)


@pytest.fixture
def job(word_vectors, tmp_path):
    """A folder of partitions, and functions that run jobs over it."""
    source = write_partitions(tmp_path / "in", SIZES)
    output = tmp_path / "out"

    def run(workers=HERE, **settings):
        return run_job(source, word_vectors, output, workers, **settings)

    def expected(**settings):
        target = tmp_path / f"single-{len(list(tmp_path.iterdir()))}"
        run_single(source, word_vectors, target, **settings)
        return content(target)

    def manifest():
        return json.loads((output / "_SUCCESS.json").read_text())

    return SimpleNamespace(
        source=source, output=output, run=run, expected=expected, manifest=manifest
    )


@pytest.mark.parametrize("fit_sample", [N_SAMPLED, None], ids=["sample", "all"])
@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
@pytest.mark.parametrize(
    "sizes", [[500], [0, 1, 480, 19], [20] * 25], ids=["one", "uneven and empty", "many small"]
)
def test_files_are_those_of_one_process(tmp_path, word_vectors, sizes, ending, fit_sample):
    if ending == "jsonl":
        sizes = [size for size in sizes if size]  # one process refuses a file of 0 bytes
    source = write_partitions(tmp_path / "in", sizes, ending)
    single = run_single(source, word_vectors, tmp_path / "single", fit_sample=fit_sample)
    report = run_job(source, word_vectors, tmp_path / "out", HERE, fit_sample=fit_sample)
    files = find_partitions([str(source)])[::-1]
    run_job(None, word_vectors, tmp_path / "reversed", HERE, files, fit_sample=fit_sample)
    expected = content(tmp_path / "single")
    assert expected == content(tmp_path / "out") == content(tmp_path / "reversed")
    ignored = {"seconds": 0, "output": ""}
    assert report.job.as_dict() | ignored == single.as_dict() | ignored


@pytest.mark.cluster
@pytest.mark.parametrize("stage", ["Sampling", "Encoding", "Labelling"])
def test_a_process_killed_in_any_stage_changes_nothing(job, stage):
    def kill():
        multiprocessing.active_children()[0].kill()

    progress = OnStage(stage, kill)
    with open_workers("local", 2) as workers:
        job.run(workers, progress=progress)
    assert progress.called
    assert content(job.output) == job.expected()


def test_a_text_file_of_0_bytes_is_an_empty_partition(job):
    expected = job.expected()
    (job.source / "part-000b.jsonl").touch()
    job.run()
    assert content(job.output) == expected | {"part-000b.jsonl": b""}


@pytest.mark.parametrize(
    "first_words", [1, 400], ids=["fewer documents than it looks", "more documents than it looks"]
)
def test_the_sample_is_that_of_one_reading_whatever_the_sizes_of_files(
    tmp_path, word_vectors, first_words
):
    long, short = " ".join(TOPICS["sports"] * 40), "rain"
    texts = [f"{long if first_words > 1 else short} {i}" for i in range(100)]
    texts += [f"{short if first_words > 1 else long} {i}" for i in range(100, 900)]
    source = write_partitions(tmp_path / "in", [100] * 9, texts=texts)
    report = run_job(source, word_vectors, tmp_path / "out", HERE, fit_sample=90)
    run_single(source, word_vectors, tmp_path / "single", fit_sample=90)
    assert content(tmp_path / "out") == content(tmp_path / "single")
    assert report.job.fitted_documents == 90


@pytest.mark.parametrize("sizes", [[1_300], [400, 900], [100] * 13])
def test_files_full_of_copies_give_the_model_of_one_process(tmp_path, word_vectors, sizes):
    texts = [f"rain {i}" for i in range(100)] + ["snow"] * 600 + ["fog"] * 600
    source = write_partitions(tmp_path / "in", sizes, texts=texts)
    single = run_single(source, word_vectors, tmp_path / "single")
    report = run_job(source, word_vectors, tmp_path / "out", HERE)
    assert report.job.fitted_documents == single.fitted_documents == 106
    assert content(tmp_path / "out") == content(tmp_path / "single")


def test_manifest_and_progress_count_everything(job):
    progress = OnStage()
    report = job.run(progress=progress)
    found = job.manifest()
    assert found["documents"] == sum(found["labels"].values()) + report.job.empty_documents == 500
    assert [each["documents"] for each in found["partitions"]] == SIZES
    assert list(found["labels"]) == LABELS
    assert found["broken"] == []
    rows = [label for label in labels_by_id(job.output).values() if label]
    assert {name: rows.count(name) for name in LABELS} == found["labels"]
    assert progress.rows["Sampling"] == progress.rows["Labelling"] == 500
    assert progress.rows["Encoding"] == N_SAMPLED


def test_the_model_is_saved_and_predicts_the_same(job, word_vectors):
    report = job.run()
    fitted = load(report.model, encoder=word_vectors)
    rows = read_rows(job.output / "part-001.jsonl")
    names = fitted.names[fitted.predict([row["text"] for row in rows]).labels]
    assert names.tolist() == [row["ulr_label"] for row in rows]


def test_a_second_run_labels_nothing_and_reports_the_same(job):
    first = job.run()
    written = {path: path.stat().st_mtime_ns for path in job.output.glob("part-*")}
    second = job.run()
    assert (first.labelled, first.resumed, second.labelled, second.resumed) == (3, 0, 0, 3)
    assert written == {path: path.stat().st_mtime_ns for path in written}
    assert second.job.as_dict() | {"seconds": 0} == first.job.as_dict() | {"seconds": 0}
    assert (second.texts, second.rows) == (first.texts, first.rows)


def test_an_output_that_is_missing_or_cut_is_written_again(job):
    job.run()
    expected = content(job.output)
    (job.output / "part-000.jsonl").unlink()
    (job.output / "part-002.jsonl").write_text("")
    assert job.run().labelled == 2
    assert content(job.output) == expected


def test_a_damaged_record_or_model_is_not_trusted(job):
    job.run()
    expected = content(job.output)
    (job.output / "_ulr/done/part-001.jsonl.json").write_text("{")
    assert job.run().labelled == 1
    (job.output / "_ulr/model/model.json").write_text("{}")
    progress = OnStage()
    job.run(progress=progress)
    assert "Sampling" in progress.rows
    assert content(job.output) == expected


def test_a_changed_input_is_never_skipped(job):
    job.run()
    changed = job.source / "part-001.jsonl"
    stat = changed.stat()
    text = changed.read_text()
    word = next(word for word in TOPICS["sports"] if len(word) == 5 and word in text)
    changed.write_text(text.replace(word, "trade"))  # of the same size, with the same time
    os.utime(changed, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert changed.stat().st_size == stat.st_size
    job.run()
    assert content(job.output) == job.expected()


def test_an_input_that_changes_during_a_job_is_refused(job):
    def change():
        with (job.source / "part-002.jsonl").open("a") as file:
            file.write('{"id": 500, "text": "rain"}\n')

    with pytest.raises(TableError, match=r"part-002.jsonl changed since it was sampled"):
        job.run(progress=OnStage("Labelling", change))
    assert not (job.output / "_SUCCESS.json").exists()
    assert not (job.output / "part-002.jsonl").exists()
    job.run()
    assert content(job.output) == job.expected()


def test_another_job_in_the_same_folder_is_refused_or_replaces_it(job):
    job.run()
    with pytest.raises(ClusterError, match="another job"):
        job.run(random_state=1)
    job.run(random_state=1, force=True)
    assert content(job.output) == job.expected(random_state=1)


def test_files_of_others_are_not_replaced(job):
    job.output.mkdir()
    own = job.output / "part-001.jsonl"
    own.write_text("mine")
    with pytest.raises(ClusterError, match=r"part-001.jsonl already exists"):
        job.run()
    assert own.read_text() == "mine"
    job.run(force=True)
    assert content(job.output) == job.expected()


def test_the_output_of_an_input_that_is_no_longer_given_is_not_mixed_in(job):
    job.run()
    (job.source / "part-002.jsonl").unlink()
    with pytest.raises(ClusterError, match=r"also holds part-002.jsonl"):
        job.run()
    job.run(force=True)
    assert content(job.output) == job.expected()


def test_a_broken_file_is_named_with_its_row_and_skipped_on_request(job):
    broken = job.source / "part-001.jsonl"
    lines = broken.read_text().splitlines()
    broken.write_text("\n".join([*lines[:40], '{"id": 1, "text": ', *lines[41:]]))
    with pytest.raises(TableError, match=r"part-001.jsonl line 41 is not JSON"):
        job.run()
    assert content(job.output) == {}
    report = job.run(skip_broken=True)
    assert len(report.broken) == 1
    assert "part-001.jsonl line 41" in report.broken[0]
    assert job.manifest()["broken"] == list(report.broken)
    assert job.run(skip_broken=True).resumed == 2
    with pytest.raises(TableError, match="line 41"):
        job.run()
    broken.unlink()
    assert content(job.output) == job.expected()


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("part-001.csv", "id,body\n1,rain\n", r"part-001.csv has the columns id, body"),
        ("part-000.csv", "text,ulr_label\nrain,x\n", r"already has a column 'ulr_label'"),
    ],
)
def test_files_of_other_columns_or_of_one_to_be_added_are_broken(
    tmp_path, word_vectors, name, text, message
):
    source = write_partitions(tmp_path / "in", [3, 3], "csv")
    (source / name).write_text(text)
    with pytest.raises(TableError, match=message):
        run_job(source, word_vectors, tmp_path / "out", HERE)


def test_rare_labels_of_a_sample_are_warned_about(tmp_path, word_vectors):
    texts = [f"goal match {i}" for i in range(400)] + [f"bank profit {i}" for i in range(400)]
    texts += [f"rain fog {i}" for i in range(10)]
    source = write_partitions(tmp_path / "in", [405, 405], texts=texts)
    report = run_job(source, word_vectors, tmp_path / "out", HERE)
    warnings = [each for each in report.job.diagnosis.warnings if "are nearest to" in each]
    assert len(warnings) == 1
    assert "'weather'; a label needs some 20" in warnings[0]


def test_vectors_are_kept_as_float16(job, word_vectors, tmp_path):
    vectors = tmp_path / "vectors"
    job.run(vectors=str(vectors))
    assert content(job.output) == job.expected()
    texts = [row["text"] for row in read_rows(job.source / "part-002.jsonl")]
    kept = np.load(vectors / "part-002.jsonl.npy", mmap_mode="r")
    expected = np.asarray(load_encoder(word_vectors).encode(texts)).astype(np.float16)
    np.testing.assert_array_equal(kept, expected)
    (vectors / "part-000.jsonl.npy").unlink()
    assert job.run(vectors=str(vectors)).labelled == 1


def test_a_part_refuses_files_that_were_not_sampled(job):
    job.run(part=(0, 2))
    shutil.copy(job.source / "part-000.jsonl", job.source / "part-003.jsonl")
    with pytest.raises(ClusterError, match="no model for this job and these files"):
        job.run(part=(1, 2))


def test_an_encoder_object_is_refused(job, word_vectors):
    class Own:
        def encode(self, texts):
            return load_encoder(word_vectors).encode(texts)

    with pytest.raises(ClusterError, match="by its name"):
        run_job(job.source, Own(), job.output, HERE)


def test_standard_input_and_files_of_the_same_name_are_refused(job, tmp_path):
    with pytest.raises(ClusterError, match="standard input"):
        find_partitions(["-"])
    other = write_partitions(tmp_path / "other", [3])
    with pytest.raises(TableError, match=r"two inputs are called 'part-000.jsonl'"):
        find_partitions([str(job.source), str(other)])


def test_the_first_file_with_columns_is_found(job):
    files = find_partitions([str(job.source)])
    (job.source / "part-000.jsonl").write_text("")
    assert open_first(files).name == files[1]
    (job.source / "part-001.jsonl").write_text("{")
    with pytest.raises(TableError, match=r"part-001.jsonl line 1"):
        open_first(files)
    assert open_first(files, skip_broken=True).name == files[2]


def test_files_without_any_document_are_refused(tmp_path, word_vectors):
    source = write_partitions(tmp_path / "in", [0, 0], "csv")
    with pytest.raises(TableError, match="none of the 2 files can be used"):
        run_job(source, word_vectors, tmp_path / "out", HERE)
