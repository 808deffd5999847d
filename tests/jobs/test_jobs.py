"""Jobs from file to file: every row gets a label, or nothing is written."""

import csv
import os
from types import SimpleNamespace

import numpy as np
import pyarrow.parquet as pq
import pytest

from ulr.classifier import DatalessClassifier
from ulr.encoders import StaticEncoder
from ulr.errors import InputError, LabelError, TableError
from ulr.jobs import Output, classify_file, evaluate_file, predict_file, text_columns
from ulr.tables import open_table

LABELS = ["sports", "business", "weather"]
DOCUMENTS = [
    ("The striker scored twice before half time", "sports"),
    ("Shares fell after the bank raised interest rates", "business"),
    ("Heavy rain and storms are expected on Sunday", "weather"),
    ("The goalkeeper saved a late penalty", "sports"),
    ("The retailer closed forty shops and cut its profit forecast", "business"),
    ("", ""),
    ("Fog will clear by noon, with sunshine on the coast", "weather"),
    ("Our team lost the final in the rain", "sports"),
    ("Farmers fear for their income as the drought goes on", ""),
    ("Investors bet on a cold winter and higher gas prices", "business"),
]
HEADER = ["id", "text", "truth"]


@pytest.fixture(scope="module")
def encoder():
    return StaticEncoder.embedded()


@pytest.fixture
def classifier(encoder):
    return DatalessClassifier(LABELS, encoder=encoder)


def write_rows(path, rows, header=HEADER):
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([header, *rows])
    return path


def read_rows(path):
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.fixture
def source(tmp_path):
    rows = [(i, text, truth) for i, (text, truth) in enumerate(DOCUMENTS, 1)]
    return write_rows(tmp_path / "in.csv", rows)


def classify(source, classifier, output=None, listener=None, columns=("text",), **options):
    with open_table(str(source)) as table:
        target = Output(None if output is None else str(output), **options)
        return classify_file(table, columns, classifier, target, listener)


def evaluate(source, classifier, truth="truth"):
    with open_table(str(source)) as table:
        return evaluate_file(table, ["text"], truth, classifier)


class Diary:
    """A listener that notes what it hears."""

    def __init__(self):
        self.stages, self.documents, self.passes = [], [], []

    def stage(self, name, total, unit="documents"):
        self.stages.append((name, total))
        self.documents.append(0)

    def advance(self, documents):
        self.documents[-1] += documents

    def passed(self, done):
        self.passes.append(done)


@pytest.fixture(scope="module")
def many(tmp_path_factory, encoder):
    """A file of several batches, classified, with what was heard on the way."""
    folder = tmp_path_factory.mktemp("many")
    rows = [(i, f"{DOCUMENTS[i % 10][0]} {DOCUMENTS[i % 7][0]}", "") for i in range(5000)]
    source, output = write_rows(folder / "in.csv", rows), folder / "out.csv"
    classifier, diary = DatalessClassifier(LABELS, encoder=encoder), Diary()
    report = classify(source, classifier, output, diary)
    return SimpleNamespace(
        source=source, written=read_rows(output), classifier=classifier, diary=diary, report=report
    )


def test_rows_and_columns_stay_and_three_are_added(many):
    before = read_rows(many.source)
    assert [{name: row[name] for name in HEADER} for row in many.written] == before
    assert list(many.written[0]) == [*HEADER, "ulr_label", "ulr_confidence", "ulr_unrefined"]


def test_written_labels_are_those_of_the_classifier(many, encoder):
    texts = [row["text"] for row in many.written]
    fitted = DatalessClassifier(LABELS, encoder=encoder).fit(texts)
    predictions, names = fitted.model_.predict(texts), fitted.model_.names
    assert [row["ulr_label"] for row in many.written] == names[predictions.labels].tolist()
    assert [row["ulr_unrefined"] for row in many.written] == names[predictions.unrefined].tolist()
    empty = np.array([not text.strip() for text in texts])
    best = np.where(empty, 0.0, fitted.predict_proba(texts).max(axis=1).round(4))
    assert [float(row["ulr_confidence"]) for row in many.written] == pytest.approx(best)


def test_report_counts_what_is_written(many):
    labels = [row["ulr_label"] for row in many.written]
    unrefined = [row["ulr_unrefined"] for row in many.written]
    report = many.report
    assert report.documents == 5000
    assert [each.label for each in report.labels] == LABELS
    assert [each.after for each in report.labels] == [labels.count(name) for name in LABELS]
    assert [each.before for each in report.labels] == [unrefined.count(name) for name in LABELS]
    assert report.moved == sum(a != b for a, b in zip(labels, unrefined, strict=True)) > 0
    assert report.empty_documents == labels.count("") > 0
    refinement = many.classifier.refinement_
    assert (report.iterations, report.converged) == (refinement.n_iter, refinement.converged)


def test_documents_worth_a_look_are_the_rows_they_name(many):
    report, written = many.report, many.written
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


def test_listener_hears_every_document_of_every_stage_and_every_pass(many):
    (first, estimate), *others = many.diary.stages
    assert (first, estimate) == ("Reading", pytest.approx(5000, rel=0.05))
    assert others == [("Encoding", 5000), ("Calibrating", 4), ("Writing", 5000)]
    assert many.diary.documents == [5000, 5000, 4, 5000]
    assert [done.iteration for done in many.diary.passes] == list(range(many.report.iterations))


def test_predicting_the_same_file_gives_the_same_labels(many, tmp_path):
    with open_table(str(many.source)) as table:
        report = predict_file(
            table, ["text"], many.classifier.model_, Output(str(tmp_path / "new.csv"))
        )
    new = read_rows(tmp_path / "new.csv")
    assert list(new[0]) == [*HEADER, "ulr_label", "ulr_confidence"]
    assert [r["ulr_label"] for r in new] == [r["ulr_label"] for r in many.written]
    assert [float(r["ulr_confidence"]) for r in new] == pytest.approx(
        [float(r["ulr_confidence"]) for r in many.written], abs=2e-4
    )
    assert [each.before for each in report.labels] == [None] * 3
    assert (report.moved, report.moved_documents, report.iterations) == (None, (), None)
    assert report.least_certain[0].unrefined is None


def test_without_an_output_nothing_is_written(source, classifier, tmp_path):
    report = classify(source, classifier)
    assert report.documents == len(DOCUMENTS)
    assert report.output is None
    assert os.listdir(tmp_path) == ["in.csv"]


def test_empty_and_cut_documents_are_counted(source):
    short = DatalessClassifier(LABELS, encoder=StaticEncoder.embedded(max_tokens=8))
    report = classify(source, short)
    cut = report.truncated_documents
    assert report.empty_documents == 1
    assert 0 < cut < len(DOCUMENTS)
    with open_table(str(source)) as table:
        assert predict_file(table, ["text"], short.model_).truncated_documents == cut
    assert classify(source, short).truncated_documents == cut


def test_documents_of_an_encoder_that_counts_no_cuts(source, encoder):
    plain = SimpleNamespace(encode=encoder.encode)
    report = classify(source, DatalessClassifier(LABELS, encoder=plain))
    assert report.truncated_documents is None


def test_long_document_is_shown_in_one_line(tmp_path, classifier):
    rows = [("1", "goal\n\n scored " * 100, ""), ("2", "rain", "")]
    report = classify(write_rows(tmp_path / "in.csv", rows), classifier)
    shown = next(each.text for each in report.least_certain if each.row == 1)
    assert shown.startswith("goal scored goal")
    assert shown.endswith("…")
    assert len(shown) <= 160


@pytest.mark.parametrize(
    ("header", "chosen", "expected"),
    [
        (["id", "text"], [], ["text"]),
        (["message"], [], ["message"]),
        (["id", "text"], ["id"], ["id"]),
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
def test_bad_output_is_refused_before_anything_is_read(tmp_path, source, classifier, name, message):
    (tmp_path / "taken.csv").write_text("kept")
    diary = Diary()
    with pytest.raises(TableError, match=message):
        classify(source, classifier, f"{tmp_path}/{name}", diary)
    assert diary.stages == []
    assert (tmp_path / "taken.csv").read_text() == "kept"


def test_input_can_be_the_output(source, classifier):
    before = read_rows(source)
    classify(source, classifier, source, force=True)
    after = read_rows(source)
    assert [{name: row[name] for name in HEADER} for row in after] == before
    assert all((row["ulr_label"] in LABELS) == bool(row["text"]) for row in after)


def test_taken_column_is_refused_and_another_prefix_helps(tmp_path, source, classifier):
    first, second = tmp_path / "first.csv", tmp_path / "second.parquet"
    classify(source, classifier, first)
    with pytest.raises(
        TableError, match=r"first\.csv already has a column 'ulr_label'; .* --prefix"
    ):
        classify(first, classifier, second)
    classify(first, classifier, second, prefix="again_")
    table = pq.read_table(second)
    assert table.column_names[-3:] == ["again_label", "again_confidence", "again_unrefined"]
    assert table["again_label"].to_pylist() == [row["ulr_label"] for row in read_rows(first)]


def test_column_taken_in_a_later_record_is_refused(tmp_path, classifier):
    path = tmp_path / "in.jsonl"
    path.write_text('{"text": "goal"}\n{"text": "rain", "ulr_label": "old"}\n')
    with pytest.raises(TableError, match="already has a column 'ulr_label'"):
        classify(path, classifier, tmp_path / "out.csv")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("id,text\n", r"in\.csv has no rows\.$"),
        ("id,text\n" + "1,goal\n" * 3000 + "2\n", r"line 3002 has 1 fields, but 2 were expected"),
    ],
)
def test_bad_rows_are_met_before_encoding(tmp_path, classifier, content, message):
    (tmp_path / "in.csv").write_text(content)
    diary = Diary()
    with pytest.raises(TableError, match=message):
        classify(tmp_path / "in.csv", classifier, tmp_path / "out.csv", diary)
    assert [name for name, _ in diary.stages] == ["Reading"]
    assert os.listdir(tmp_path) == ["in.csv"]


@pytest.mark.parametrize("rows", [DOCUMENTS * 2, DOCUMENTS[:3]], ids=["longer", "shorter"])
def test_file_that_changes_on_the_way_is_refused(tmp_path, source, classifier, rows):
    class Meddler(Diary):
        def stage(self, name, total, unit="documents"):
            if name == "Writing":
                write_rows(source, [(i, *row) for i, row in enumerate(rows)])

        def advance(self, documents):
            pass

    with pytest.raises(TableError, match=r"in\.csv changed while it was being read\.$"):
        classify(source, classifier, tmp_path / "out.csv", Meddler())
    assert os.listdir(tmp_path) == ["in.csv"]


def test_evaluation_leaves_out_rows_without_truth(source, classifier):
    report = evaluate(source, classifier)
    known = [(i, truth) for i, (_, truth) in enumerate(DOCUMENTS) if truth]
    assert report.without_truth == len(DOCUMENTS) - len(known) == 2
    assert report.after.confusion.sum() == len(known)
    names = classifier.model_.names[classifier.refinement_.predictions]
    assert report.after.accuracy == np.mean([names[i] == truth for i, truth in known])
    assert report.as_dict()["documents_without_truth"] == 2


def test_truth_changes_no_prediction(tmp_path, encoder):
    scores = []
    for name, truth in (("right.csv", LABELS), ("wrong.csv", LABELS[::-1])):
        rows = [(i, text, truth[i % 3]) for i, (text, _) in enumerate(DOCUMENTS)]
        classifier = DatalessClassifier(LABELS, encoder=encoder)
        evaluate(write_rows(tmp_path / name, rows), classifier)
        scores.append(classifier.refinement_.scores)
    assert np.array_equal(*scores)


def test_truth_is_compared_ignoring_case_and_blanks_which_is_counted(tmp_path, encoder):
    rows = [(1, "goal", " Winter  sports\n"), (2, "rain", "weather"), (3, "fog", "weather ")]
    path = write_rows(tmp_path / "in.csv", rows)
    report = evaluate(path, DatalessClassifier(["winter sports", "weather"], encoder=encoder))
    assert [each.documents for each in report.after.labels] == [1, 2]
    assert report.folded_truth == report.as_dict()["truth_matched_ignoring_case"] == 2


def test_case_matters_where_names_differ_only_in_case(tmp_path, encoder):
    path = write_rows(tmp_path / "in.csv", [(1, "goal", "US"), (2, "rain", "Us")])
    with pytest.raises(LabelError, match="row 2: the true label 'Us' is not a label"):
        evaluate(path, DatalessClassifier({"us": "we", "US": "America"}, encoder=encoder))


def test_truth_that_is_no_label_is_named(tmp_path, classifier):
    path = write_rows(tmp_path / "in.csv", [(1, "goal", "sports"), (2, "rain", "wether")])
    with pytest.raises(LabelError, match=r"in\.csv row 2: the true label 'wether' .* sports, bus"):
        evaluate(path, classifier)


def test_file_without_any_truth_is_refused(tmp_path, classifier):
    path = write_rows(tmp_path / "in.csv", [(1, "goal", ""), (2, "rain", " ")])
    with pytest.raises(TableError, match=r"no row has a true label in column 'truth'"):
        evaluate(path, classifier)


# The none label


@pytest.fixture(scope="module")
def rejecting(tmp_path_factory, encoder):
    """A file classified with a none label, its rows and its report."""
    folder = tmp_path_factory.mktemp("none")
    rows = [(i, f"{DOCUMENTS[i % 10][0]} {i}", DOCUMENTS[i % 10][1]) for i in range(60)]
    source, output = write_rows(folder / "in.csv", [*rows, (60, "", "")]), folder / "out.csv"
    classifier = DatalessClassifier(LABELS, encoder=encoder, none_share=0.2, none_label="other")
    report = classify(source, classifier, output)
    return SimpleNamespace(
        source=source, rows=read_rows(output), report=report, classifier=classifier
    )


def test_rejected_rows_carry_the_probability_of_none(rejecting):
    texts = [row["text"] for row in rejecting.rows]
    classes = rejecting.classifier.classes_.tolist()
    probabilities = rejecting.classifier.predict_proba(texts)[:, classes.index("other")]
    rejected = [i for i, row in enumerate(rejecting.rows) if row["ulr_label"] == "other"]
    assert len(rejected) >= 12
    assert texts[rejected[-1]] == ""
    for i in rejected[:-1]:
        assert float(rejecting.rows[i]["ulr_confidence"]) == pytest.approx(
            probabilities[i], abs=1e-4
        )
        assert rejecting.rows[i]["ulr_unrefined"] in LABELS


def test_rejected_rows_are_in_no_count_and_no_list_of_moves(rejecting):
    report, rows = rejecting.report, rejecting.rows
    labels = [row["ulr_label"] for row in rows]
    assert [each.label for each in report.labels] == LABELS
    assert [each.after for each in report.labels] == [labels.count(name) for name in LABELS]
    assert report.without_label == labels.count("other")
    moved = [r for r in rows if r["ulr_label"] not in ("other", r["ulr_unrefined"])]
    assert report.moved == len(moved)
    assert "other" not in {each.label for each in (*report.moved_documents, *report.least_certain)}


def test_none_label_is_evaluated_like_any_other(rejecting, tmp_path, encoder):
    rows = [
        (row["id"], row["text"], "Other" if row["truth"] == "weather" else row["truth"])
        for row in rejecting.rows
    ]
    path = write_rows(tmp_path / "in.csv", rows)
    classifier = DatalessClassifier(LABELS, encoder=encoder, none_share=0.2, none_label="other")
    report = evaluate(path, classifier)
    assert [each.label for each in report.after.labels] == [*LABELS, "other"]
    correct = [
        row["ulr_label"] == truth.lower()
        for row, (_, _, truth) in zip(rejecting.rows, rows, strict=True)
        if truth
    ]
    assert report.after.accuracy == pytest.approx(np.mean(correct))
    assert report.after.confusion.shape == (4, 4)


# Samples, several files, and outputs that others use


def test_documents_outside_of_the_sample_are_labelled_too(tmp_path, encoder):
    rows = [(i, f"{DOCUMENTS[i % 10][0]} {i}", "") for i in range(400)]
    source = write_rows(tmp_path / "in.csv", rows)
    classifier = DatalessClassifier(LABELS, encoder=encoder, fit_sample=100)
    report = classify(source, classifier, tmp_path / "out.csv")
    assert (report.documents, report.fitted_documents) == (400, 100)
    texts = [row["text"] for row in read_rows(tmp_path / "out.csv")]
    expected = classifier.model_.predict(texts)
    assert [row["ulr_label"] for row in read_rows(tmp_path / "out.csv")] == (
        classifier.model_.names[expected.labels].tolist()
    )


def test_sample_depends_on_neither_order_nor_files(tmp_path, encoder):
    rows = [(i, f"{DOCUMENTS[i % 9][0]} {i}", "") for i in range(300)]
    whole = write_rows(tmp_path / "whole.csv", rows)
    (tmp_path / "parts").mkdir()
    for part in range(3):
        write_rows(tmp_path / "parts" / f"{part}.csv", rows[::-1][part::3])
    labels = []
    for source in (whole, tmp_path / "parts"):
        classifier = DatalessClassifier(LABELS, encoder=encoder, fit_sample=80, n_jobs=1)
        classify(source, classifier, tmp_path / "out.csv", force=True)
        written = read_rows(tmp_path / "out.csv")
        labels.append({row["id"]: row["ulr_label"] for row in written})
    assert labels[0] == labels[1]


def test_folder_gets_one_file_per_input(tmp_path, classifier):
    (tmp_path / "in").mkdir()
    rows = [(i, *row) for i, row in enumerate(DOCUMENTS)]
    write_rows(tmp_path / "in" / "a.csv", rows[:4])
    write_rows(tmp_path / "in" / "b.csv", rows[4:])
    classify(tmp_path / "in", classifier, f"{tmp_path}/out/")
    written = [read_rows(tmp_path / "out" / name) for name in ("a.csv", "b.csv")]
    assert [len(each) for each in written] == [4, 6]
    together = classify(tmp_path / "in", classifier, tmp_path / "all.csv")
    assert together.documents == 10
    assert read_rows(tmp_path / "all.csv") == [row for each in written for row in each]
    with pytest.raises(TableError, match=r"a\.csv already exists"):
        classify(tmp_path / "in", classifier, tmp_path / "out")
    (tmp_path / "in" / "c.csv").write_text("id,text,truth\n1,goal\n")
    with pytest.raises(TableError, match=r"c\.csv line 2 has 2 fields"):
        classify(tmp_path / "in", classifier, f"{tmp_path}/new/")
    assert sorted(os.listdir(tmp_path)) == ["all.csv", "in", "out"]


def test_text_file_in_a_folder_becomes_csv(tmp_path, classifier):
    (tmp_path / "in.txt").write_text("The striker scored\nHeavy rain\n")
    classify(tmp_path / "in.txt", classifier, f"{tmp_path}/out/")
    assert [row["text"] for row in read_rows(tmp_path / "out" / "in.csv")] == [
        "The striker scored",
        "Heavy rain",
    ]


def test_inputs_of_one_name_cannot_share_a_folder(tmp_path, classifier):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        write_rows(tmp_path / name / "x.csv", [(1, "goal", "")])
    with (
        open_table([f"{tmp_path}/a", f"{tmp_path}/b"]) as table,
        pytest.raises(TableError, match=r"two inputs are called 'x\.csv'"),
    ):
        classify_file(table, ["text"], classifier, Output(f"{tmp_path}/out/"))


def test_replaced_output_keeps_permissions_and_links(tmp_path, source, classifier):
    target, link = tmp_path / "target.csv", tmp_path / "link.csv"
    target.write_text("old")
    target.chmod(0o640)
    link.symlink_to(target)
    classify(source, classifier, link, force=True)
    assert link.is_symlink()
    assert target.stat().st_mode & 0o777 == 0o640
    assert len(read_rows(target)) == len(DOCUMENTS)


def test_output_that_another_process_wrote_meanwhile_is_kept(tmp_path, source, classifier):
    class Other(Diary):
        def advance(self, documents):
            super().advance(documents)
            if self.stages[-1][0] == "Writing":
                (tmp_path / "out.csv").write_text("of another process")

    with pytest.raises(InputError, match="was written by another process"):
        classify(source, classifier, tmp_path / "out.csv", Other())
    assert (tmp_path / "out.csv").read_text() == "of another process"
    assert sorted(os.listdir(tmp_path)) == ["in.csv", "out.csv"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root can write everywhere")
def test_folder_without_permission_is_refused_before_anything_is_read(tmp_path, source, classifier):
    (tmp_path / "locked").mkdir(mode=0o500)
    diary = Diary()
    with pytest.raises(TableError, match="cannot be written to"):
        classify(source, classifier, tmp_path / "locked" / "out.csv", diary)
    assert diary.stages == []
