"""Jobs from file to file: every row gets a label, or nothing is written."""

import os
from types import SimpleNamespace

import numpy as np
import pyarrow.parquet as pq
import pytest

from running import DOCUMENTS, LABELS, read_rows, run_classify, run_predict, write_rows
from tiny_task import Recorder, StaticVectors, generated_texts
from ulr import ZeroShotClassifier, load_encoder
from ulr.encoders import StaticEncoder
from ulr.errors import TableError
from ulr.jobs import text_columns
from ulr.tables import open_table

HEADER = ["id", "text", "truth"]


@pytest.fixture(scope="module")
def encoder():
    return load_encoder("static")


@pytest.fixture
def source(tmp_path):
    rows = [(i, text, truth) for i, (text, truth) in enumerate(DOCUMENTS, 1)]
    return write_rows(tmp_path / "in.csv", rows)


def classify(source, *arguments, labels=LABELS, **settings):
    return run_classify(source, labels, *arguments, **settings)[1]


def evaluate(source, truth="truth", **settings):
    return classify(source, truth=truth, **settings)


@pytest.fixture(scope="module")
def many(tmp_path_factory, encoder):
    """A file of several batches, classified, with the recorded progress."""
    folder = tmp_path_factory.mktemp("many")
    rows = [(i, f"{DOCUMENTS[i % 10][0]} {DOCUMENTS[i % 7][0]}", "") for i in range(5000)]
    source, output = write_rows(folder / "in.csv", rows), folder / "out.csv"
    progress = Recorder()
    fitted, result = run_classify(source, LABELS, output, progress, encoder=encoder)
    return SimpleNamespace(
        source=source, written=read_rows(output), fitted=fitted, progress=progress, result=result
    )


def test_rows_and_columns_stay_and_three_are_added(many):
    before = read_rows(many.source)
    assert [{name: row[name] for name in HEADER} for row in many.written] == before
    assert list(many.written[0]) == [*HEADER, "ulr_label", "ulr_confidence", "ulr_unrefined"]


def test_written_labels_are_those_of_the_classifier(many, encoder):
    texts = [row["text"] for row in many.written]
    fitted = ZeroShotClassifier(LABELS, encoder=encoder).fit(texts)
    predictions, names = fitted.fitted_.predict(texts), fitted.fitted_.names
    assert [row["ulr_label"] for row in many.written] == names[predictions.labels].tolist()
    assert [row["ulr_unrefined"] for row in many.written] == names[predictions.unrefined].tolist()
    empty = np.array([not text.strip() for text in texts])
    best = np.where(empty, 0.0, fitted.predict_proba(texts).max(axis=1).round(4))
    assert [float(row["ulr_confidence"]) for row in many.written] == pytest.approx(best)


def test_report_counts_what_is_written(many):
    labels = [row["ulr_label"] for row in many.written]
    unrefined = [row["ulr_unrefined"] for row in many.written]
    report = many.result
    assert report.documents == 5000
    assert [each.label for each in report.labels] == LABELS
    assert [each.after for each in report.labels] == [labels.count(name) for name in LABELS]
    assert [each.before for each in report.labels] == [unrefined.count(name) for name in LABELS]
    assert report.moved == sum(a != b for a, b in zip(labels, unrefined, strict=True)) > 0
    assert report.empty_documents == labels.count("") > 0
    refinement = many.fitted.refinement
    assert (report.iterations, report.converged) == (refinement.n_iter, refinement.converged)


def test_documents_worth_a_look_are_the_rows_they_name(many):
    report, written = many.result, many.written
    for shown in [*report.least_certain, *report.moved_documents]:
        row = written[shown.row - 1]
        assert (shown.label, shown.unrefined) == (row["ulr_label"], row["ulr_unrefined"])
        assert shown.confidence == float(row["ulr_confidence"])
        assert shown.text == row["text"].strip()
    lowest = sorted(float(row["ulr_confidence"]) for row in written if row["ulr_label"])[:5]
    assert [shown.confidence for shown in report.least_certain] == lowest
    surest = sorted(
        (float(r["ulr_confidence"]) for r in written if r["ulr_label"] != r["ulr_unrefined"]),
        reverse=True,
    )
    assert [shown.confidence for shown in report.moved_documents] == surest[:5]


def test_progress_counts_every_document_of_every_stage(many):
    (first, estimate), *others = many.progress.stages
    assert (first, estimate) == ("Reading", pytest.approx(5000, rel=0.05))
    names = [name for name, _ in others]
    assert names == ["Encoding", "Refining", "Calibrating", "Writing"]
    assert [total for name, total in others if name in ("Encoding", "Writing")] == [5000, 5000]
    assert many.progress.counts[:3] == [5000, 5000, many.result.iterations]
    assert many.progress.counts[-1] == 5000


def test_without_an_output_nothing_is_written(source, tmp_path, encoder):
    report = classify(source, encoder=SimpleNamespace(encode=encoder.encode))
    assert report.documents == len(DOCUMENTS)
    assert report.truncated_documents is None  # such an encoder counts none
    assert report.output is None
    assert os.listdir(tmp_path) == ["in.csv"]


def test_long_document_is_shown_in_one_line(tmp_path, encoder):
    rows = [("1", "goal\n\n scored " * 100, ""), ("2", "rain", "")]
    report = classify(write_rows(tmp_path / "in.csv", rows), encoder=encoder)
    shown = next(each.text for each in report.least_certain if each.row == 1)
    assert shown.startswith("goal scored goal")
    assert shown.endswith("…")
    assert len(shown) <= 160


def test_empty_and_cut_documents_are_counted(source):
    short = StaticEncoder.embedded(max_tokens=8)
    fitted, result = run_classify(source, LABELS, encoder=short)
    cut = result.truncated_documents
    assert result.empty_documents == 1
    assert 0 < cut < len(DOCUMENTS)
    assert run_predict(source, fitted).truncated_documents == cut
    assert classify(source, encoder=short).truncated_documents == cut


@pytest.mark.parametrize(
    ("header", "chosen", "expected"),
    [
        (["id", "text"], [], ["text"]),
        (["message"], [], ["message"]),
        (["title", "text", "body"], ["body", "title"], ["body", "title"]),
    ],
)
def test_text_is_the_chosen_columns_or_text_or_the_only_one(tmp_path, header, chosen, expected):
    path = write_rows(tmp_path / "in.csv", [["x"] * len(header)], header)
    with open_table(str(path)) as table:
        assert text_columns(table, chosen) == expected


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("out.txt", r"out\.txt: the ending must be one of \.csv, "),
        ("taken.csv", r"taken\.csv already exists; .* --force"),
        ("missing/out.csv", r"there is no folder .*missing to write out\.csv"),
        ("missing/out/", r"there is no folder .*missing to write out"),
    ],
)
def test_bad_output_is_refused_before_anything_is_read(tmp_path, source, name, message):
    (tmp_path / "taken.csv").write_text("kept")
    progress = Recorder()
    with pytest.raises(TableError, match=message):
        classify(source, f"{tmp_path}/{name}", progress)
    assert progress.stages == []
    assert (tmp_path / "taken.csv").read_text() == "kept"


def test_input_can_be_the_output(source):
    before = read_rows(source)
    classify(source, source, force=True)
    after = read_rows(source)
    assert [{name: row[name] for name in HEADER} for row in after] == before
    assert all((row["ulr_label"] in LABELS) == bool(row["text"]) for row in after)


def test_taken_column_is_refused_and_another_prefix_helps(tmp_path, source):
    first, second = tmp_path / "first.csv", tmp_path / "second.parquet"
    classify(source, first)
    with pytest.raises(
        TableError, match=r"first\.csv already has a column 'ulr_label'; .* --prefix"
    ):
        classify(first, second)
    classify(first, second, prefix="again_")
    table = pq.read_table(second)
    assert table.column_names[-3:] == ["again_label", "again_confidence", "again_unrefined"]
    assert table["again_label"].to_pylist() == [row["ulr_label"] for row in read_rows(first)]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("id,text\n", r"in\.csv has no rows\.$"),
        ("id,text\n" + "1,goal\n" * 3000 + "2\n", r"line 3002 has 1 fields, but 2 were expected"),
    ],
)
def test_bad_rows_are_met_before_encoding(tmp_path, content, message):
    (tmp_path / "in.csv").write_text(content)
    progress = Recorder()
    with pytest.raises(TableError, match=message):
        classify(tmp_path / "in.csv", tmp_path / "out.csv", progress)
    assert [name for name, _ in progress.stages] == ["Reading"]
    assert os.listdir(tmp_path) == ["in.csv"]


@pytest.mark.parametrize("rows", [DOCUMENTS * 2, DOCUMENTS[:3]], ids=["longer", "shorter"])
def test_file_that_changes_on_the_way_is_refused(tmp_path, source, rows):
    class Meddler(Recorder):
        def stage(self, name, total=None, unit="documents"):
            super().stage(name, total, unit)
            if name == "Writing":
                write_rows(source, [(i, *row) for i, row in enumerate(rows)])

    with pytest.raises(TableError, match=r"in\.csv changed while it was being read\.$"):
        classify(source, tmp_path / "out.csv", Meddler())
    assert os.listdir(tmp_path) == ["in.csv"]


def test_truth_changes_no_prediction(tmp_path, encoder):
    scores = []
    for name, truth in (("right.csv", LABELS), ("wrong.csv", LABELS[::-1])):
        rows = [(i, text, truth[i % 3]) for i, (text, _) in enumerate(DOCUMENTS)]
        path = write_rows(tmp_path / name, rows)
        fitted, _ = run_classify(path, LABELS, truth="truth", encoder=encoder)
        scores.append(fitted.refinement.scores)
    assert np.array_equal(*scores)


def test_truth_is_compared_ignoring_case_and_blanks_which_is_counted(tmp_path, encoder):
    rows = [(1, "goal", " Winter  sports\n"), (2, "rain", "weather"), (3, "fog", "weather ")]
    path = write_rows(tmp_path / "in.csv", rows)
    result = evaluate(path, labels=["winter sports", "weather"], encoder=encoder)
    assert [each.documents for each in result.comparison.after.labels] == [1, 2]
    assert result.comparison.folded_truth == 2


@pytest.mark.parametrize(
    ("truth", "labels", "error", "message"),
    [
        ("wether", LABELS, TableError, "it has 'wether', and the labels are sports, business"),
        ("Us", {"us": "we", "US": "America"}, TableError, "it has 'Us', and the labels"),
        (" ", LABELS, TableError, "no row has a true label in column 'truth'"),
    ],
    ids=["no label", "case matters", "empty"],
)
def test_truth_that_cannot_be_compared_is_refused(tmp_path, encoder, truth, labels, error, message):
    path = write_rows(tmp_path / "in.csv", [(1, "goal", ""), (2, "rain", truth)])
    with pytest.raises(error, match=message):
        evaluate(path, labels=labels, encoder=encoder)


@pytest.mark.parametrize("none_share", [None, 0.3])
def test_true_values_that_are_no_label_are_counted(tmp_path, none_share):
    truth = ["sports", "off topic", "weather", "off topic", "spam"]
    rows = [(i, DOCUMENTS[i][0], value) for i, value in enumerate(truth)]
    path = write_rows(tmp_path / "in.csv", rows)
    result = evaluate(path, none_share=none_share)
    found = result.comparison
    assert (found.other_truth, found.other_values) == (3, ("off topic", "spam"))
    # Without a none label they are in no figure; with one, it is the right label of these documents.
    assert found.documents == (2 if none_share is None else 5)
    assert found.after.labels[-1].documents == (1 if none_share is None else 3)


class Cancelled(Exception):
    pass


@pytest.mark.parametrize("stage", ["Reading", "Encoding", "Refining", "Calibrating", "Writing"])
def test_progress_can_cancel_a_job_in_every_stage(tmp_path, stage):
    class Cancelling(Recorder):
        def advance(self, count=1):
            if self.stages[-1][0] == stage:
                raise Cancelled(f"in {stage}")

    rows = [(i, f"{DOCUMENTS[i % 6][0]} {i}", "") for i in range(200)]
    source = write_rows(tmp_path / "in.csv", rows)
    with pytest.raises(Cancelled, match=f"in {stage}"):
        classify(source, tmp_path / "out.csv", Cancelling())
    assert os.listdir(tmp_path) == ["in.csv"]


# The none label


@pytest.fixture(scope="module")
def rejecting(tmp_path_factory, encoder):
    """A file classified with a none label, its rows and its report."""
    folder = tmp_path_factory.mktemp("none")
    rows = [(i, f"{DOCUMENTS[i % 10][0]} {i}", DOCUMENTS[i % 10][1]) for i in range(60)]
    source, output = write_rows(folder / "in.csv", [*rows, (60, "", "")]), folder / "out.csv"
    fitted, result = run_classify(
        source, LABELS, output, encoder=encoder, none_share=0.2, none_label="other"
    )
    return SimpleNamespace(rows=read_rows(output), report=result, fitted=fitted)


def test_rejected_rows_carry_the_probability_of_none_and_are_in_no_count(rejecting):
    report, rows = rejecting.report, rejecting.rows
    labels = np.array([row["ulr_label"] for row in rows])
    probabilities = rejecting.fitted.predict([row["text"] for row in rows]).probabilities[:, -1]
    rejected = np.flatnonzero(labels == "other")
    assert len(rejected) >= 12
    assert rows[rejected[-1]]["text"] == ""
    found = [float(rows[i]["ulr_confidence"]) for i in rejected[:-1]]
    assert found == pytest.approx(probabilities[rejected[:-1]], abs=1e-4)
    assert {rows[i]["ulr_unrefined"] for i in rejected[:-1]} <= set(LABELS)
    assert [(each.label, each.after) for each in report.labels] == [
        (name, np.count_nonzero(labels == name)) for name in LABELS
    ]
    assert report.without_label == len(rejected)
    moved = [row for row in rows if row["ulr_label"] not in ("other", row["ulr_unrefined"])]
    assert report.moved == len(moved)
    assert "other" not in {each.label for each in (*report.moved_documents, *report.least_certain)}


def test_none_label_is_evaluated_like_any_other(rejecting, tmp_path, encoder):
    rows = [
        (row["id"], row["text"], "Other" if row["truth"] == "weather" else row["truth"])
        for row in rejecting.rows
    ]
    path = write_rows(tmp_path / "in.csv", rows)
    result = evaluate(path, encoder=encoder, none_share=0.2, none_label="other")
    report = result.comparison
    assert [each.label for each in report.after.labels] == [*LABELS, "other"]
    correct = [
        row["ulr_label"] == truth.lower()
        for row, (_, _, truth) in zip(rejecting.rows, rows, strict=True)
        if truth
    ]
    assert report.after.accuracy == pytest.approx(np.mean(correct))
    assert report.after.confusion.shape == (4, 4)


# Samples, several files, and outputs that others use


def test_sample_depends_on_neither_order_nor_files(tmp_path, encoder):
    rows = [(i, f"{DOCUMENTS[i % 9][0]} {i}", "") for i in range(300)]
    whole = write_rows(tmp_path / "whole.csv", rows)
    (tmp_path / "parts").mkdir()
    for part in range(3):
        write_rows(tmp_path / "parts" / f"{part}.csv", rows[::-1][part::3])
    labels = []
    for source in (whole, tmp_path / "parts"):
        options = {"encoder": encoder, "fit_sample": 80, "n_jobs": 1, "force": True}
        classify(source, tmp_path / "out.csv", **options)
        written = read_rows(tmp_path / "out.csv")
        labels.append({row["id"]: row["ulr_label"] for row in written})
    assert labels[0] == labels[1]


def test_folder_gets_one_file_per_input(tmp_path):
    (tmp_path / "in").mkdir()
    rows = [(i, *row) for i, row in enumerate(DOCUMENTS)]
    write_rows(tmp_path / "in" / "a.csv", rows[:4])
    write_rows(tmp_path / "in" / "b.csv", rows[4:])
    classify(tmp_path / "in", f"{tmp_path}/out/")
    written = [read_rows(tmp_path / "out" / name) for name in ("a.csv", "b.csv")]
    assert [len(each) for each in written] == [4, 6]
    together = classify(tmp_path / "in", tmp_path / "all.csv")
    assert together.documents == 10
    assert read_rows(tmp_path / "all.csv") == [row for each in written for row in each]
    with pytest.raises(TableError, match=r"a\.csv already exists"):
        classify(tmp_path / "in", tmp_path / "out")
    (tmp_path / "in" / "c.csv").write_text("id,text,truth\n1,goal\n")
    with pytest.raises(TableError, match=r"c\.csv line 2 has 2 fields"):
        classify(tmp_path / "in", f"{tmp_path}/new/")
    assert sorted(os.listdir(tmp_path)) == ["all.csv", "in", "out"]


def test_texts_become_csv_in_a_folder_which_inputs_of_one_name_cannot_share(tmp_path):
    (tmp_path / "in.txt").write_text("The striker scored\nHeavy rain\n")
    classify(tmp_path / "in.txt", f"{tmp_path}/out/")
    texts = [row["text"] for row in read_rows(tmp_path / "out" / "in.csv")]
    assert texts == ["The striker scored", "Heavy rain"]
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "in.csv").write_text("text\ngoal\n")
    with pytest.raises(TableError, match=r"two inputs are called 'in\.csv'"):
        classify([f"{tmp_path}/in.txt", f"{tmp_path}/other"], f"{tmp_path}/new/")


@pytest.mark.skipif(os.geteuid() == 0, reason="root can write everywhere")
def test_folder_without_permission_is_refused_before_anything_is_read(tmp_path, source):
    (tmp_path / "locked").mkdir(mode=0o500)
    progress = Recorder()
    with pytest.raises(TableError, match="cannot be written to"):
        classify(source, tmp_path / "locked" / "out.csv", progress)
    assert progress.stages == []


# A student


def test_a_model_of_few_texts_labels_many_within_the_budget_of_its_encoder(tmp_path):
    texts, _ = generated_texts(27_000)
    numbered = [(i, f"{text} {i}", "") for i, text in enumerate(texts)]
    few = write_rows(tmp_path / "few.csv", numbered[:200])
    many = write_rows(tmp_path / "many.csv", numbered)
    fitted, _ = run_classify(few, LABELS, encoder=StaticVectors(), strong_share="budget")
    result = run_predict(many, fitted, tmp_path / "out.csv")
    assert len(read_rows(tmp_path / "out.csv")) == 27_000
    n_read = 27_000 - result.student_documents
    assert 0 < 9 * n_read < 1.2 * 200_000
