"""From a file to a file: every row gets its category, or nothing is written and it is told why."""

import csv
import os
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ulr.classifier import DatalessClassifier
from ulr.encoders import StaticEncoder
from ulr.errors import LabelError, TableError
from ulr.jobs import Output, classify_file, evaluate_file, predict_file, text_columns
from ulr.tables import TableFormat, open_table

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
    assert [row["ulr_label"] for row in many.written] == fitted.predict(texts).tolist()
    unrefined = fitted.classes_[fitted.refinement_.unrefined]
    assert [row["ulr_unrefined"] for row in many.written] == unrefined.tolist()
    best = fitted.predict_proba(texts).max(axis=1).round(4)
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
    refinement = many.classifier.refinement_
    assert (report.iterations, report.kept_iteration, report.converged) == (
        refinement.n_iterations,
        refinement.kept,
        refinement.converged,
    )


def test_documents_worth_a_look_are_the_rows_they_name(many):
    report, written = many.report, many.written
    for shown in [*report.least_certain, *report.moved_documents]:
        row = written[shown.row - 1]
        assert (shown.label, shown.unrefined) == (row["ulr_label"], row["ulr_unrefined"])
        assert shown.confidence == float(row["ulr_confidence"])
        assert shown.text == row["text"].strip()
    lowest = sorted(float(row["ulr_confidence"]) for row in written)[:5]
    assert [shown.confidence for shown in report.least_certain] == lowest
    surest = sorted(
        (float(r["ulr_confidence"]) for r in written if r["ulr_label"] != r["ulr_unrefined"]),
        reverse=True,
    )
    assert [shown.confidence for shown in report.moved_documents] == surest[:5]


def test_listener_hears_every_document_of_every_stage_and_every_pass(many):
    assert many.diary.stages == [("Reading", None), ("Encoding", 5000), ("Writing", 5000)]
    assert many.diary.documents == [5000] * 3
    assert [done.iteration for done in many.diary.passes] == list(range(many.report.iterations))


def test_predicting_the_same_file_gives_the_same_labels(many, tmp_path):
    with open_table(str(many.source)) as table:
        report = predict_file(table, ["text"], many.classifier, Output(str(tmp_path / "new.csv")))
    new = read_rows(tmp_path / "new.csv")
    assert list(new[0]) == [*HEADER, "ulr_label", "ulr_confidence"]
    assert [r["ulr_label"] for r in new] == [r["ulr_label"] for r in many.written]
    assert [float(r["ulr_confidence"]) for r in new] == pytest.approx(
        [float(r["ulr_confidence"]) for r in many.written], abs=2e-4
    )
    assert [each.before for each in report.labels] == [None] * 3
    assert (report.moved, report.moved_documents, report.iterations) == (None, (), None)
    assert report.least_certain[0].unrefined is None


def test_report_is_made_of_plain_values(many):
    report = many.report.as_dict()
    assert report["labels"][0].keys() == {"label", "before", "after"}
    assert report["least_certain"][0].keys() == {"row", "text", "label", "unrefined", "confidence"}


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
        assert predict_file(table, ["text"], short).truncated_documents == cut
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


def test_several_columns_make_one_document(tmp_path, encoder):
    rows = [(i, *text.partition(" ")[::2]) for i, (text, _) in enumerate(DOCUMENTS)]
    split = write_rows(tmp_path / "split.csv", rows, ["id", "head", "rest"])
    together = write_rows(
        tmp_path / "together.csv", [(i, text, "") for i, (text, _) in enumerate(DOCUMENTS)]
    )
    one, other = (DatalessClassifier(LABELS, encoder=encoder) for _ in range(2))
    classify(split, one, columns=["head", "rest"])
    classify(together, other)
    assert np.array_equal(one.refinement_.scores, other.refinement_.scores)


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


@pytest.mark.parametrize(("chosen", "missing"), [([], "text"), (["body", "titel"], "titel")])
def test_missing_text_column_lists_those_that_exist(tmp_path, chosen, missing):
    path = write_rows(tmp_path / "in.csv", [["x", "y"]], ["title", "body"])
    with (
        open_table(str(path)) as table,
        pytest.raises(
            TableError,
            match=rf"has no column '{missing}'; it has: title, body\. .* --text-column\.$",
        ),
    ):
        text_columns(table, chosen)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("out.txt", r"out\.txt: the ending must be one of \.csv, "),
        ("taken.csv", r"taken\.csv already exists; .* replace it with --force\.$"),
        ("folder.csv", r"folder\.csv is a folder; name a file to write\.$"),
        ("missing/out.csv", r"there is no folder .*missing to write out\.csv into\.$"),
    ],
)
def test_bad_output_is_refused_before_anything_is_read(tmp_path, source, classifier, name, message):
    (tmp_path / "taken.csv").write_text("kept")
    (tmp_path / "folder.csv").mkdir()
    diary = Diary()
    with pytest.raises(TableError, match=message):
        classify(source, classifier, tmp_path / name, diary)
    assert diary.stages == []
    assert (tmp_path / "taken.csv").read_text() == "kept"


def test_existing_output_is_replaced_when_forced(tmp_path, source, classifier):
    (tmp_path / "out.csv").write_text("old")
    classify(source, classifier, tmp_path / "out.csv", force=True)
    assert len(read_rows(tmp_path / "out.csv")) == len(DOCUMENTS)


def test_input_can_be_the_output(source, classifier):
    before = read_rows(source)
    classify(source, classifier, source, force=True)
    after = read_rows(source)
    assert [{name: row[name] for name in HEADER} for row in after] == before
    assert all(row["ulr_label"] in LABELS for row in after)


def test_taken_column_is_refused_and_another_prefix_helps(tmp_path, source, classifier):
    first, second = tmp_path / "first.csv", tmp_path / "second.parquet"
    classify(source, classifier, first)
    with pytest.raises(
        TableError, match=r"first\.csv already has a column 'ulr_label'; .* with --prefix\.$"
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


def test_nulls_are_empty_documents(tmp_path, classifier):
    pq.write_table(pa.table({"text": ["goal", None], "n": [1, 2]}), tmp_path / "in.parquet")
    report = classify(tmp_path / "in.parquet", classifier, tmp_path / "out.parquet")
    assert (report.documents, report.empty_documents) == (2, 1)
    table = pq.read_table(tmp_path / "out.parquet")
    assert table["text"].to_pylist() == ["goal", None]
    assert table["ulr_label"].null_count == 0


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
    assert diary.stages == [("Reading", None)]
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
    names = classifier.classes_[classifier.refinement_.predictions]
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


def test_truth_may_have_other_spaces(tmp_path, encoder):
    rows = [(1, "goal", " winter  sports\n"), (2, "rain", "weather")]
    path = write_rows(tmp_path / "in.csv", rows)
    report = evaluate(path, DatalessClassifier(["winter sports", "weather"], encoder=encoder))
    assert [each.documents for each in report.after.classes] == [1, 1]


def test_truth_that_is_no_label_is_named(tmp_path, classifier):
    path = write_rows(tmp_path / "in.csv", [(1, "goal", "sports"), (2, "rain", "Weather")])
    with pytest.raises(
        LabelError,
        match=r"in\.csv row 2: the truth 'Weather' is not a label; the labels are: sports, "
        r"business, weather\. A label file can give a name other words to encode: 'name: phrase'",
    ):
        evaluate(path, classifier)


def test_file_without_any_truth_is_refused(tmp_path, classifier):
    path = write_rows(tmp_path / "in.csv", [(1, "goal", ""), (2, "rain", " ")])
    with pytest.raises(TableError, match=r"column 'truth' has no truth for any row\.$"):
        evaluate(path, classifier)


def test_missing_truth_column_lists_those_that_exist(source, classifier):
    with pytest.raises(
        TableError, match=r"has no column 'gold'; it has: id, text, truth\. .* with --truth\.$"
    ):
        evaluate(source, classifier, truth="gold")


def test_file_without_header_is_evaluated_by_column_number(tmp_path, classifier):
    path = tmp_path / "in.csv"
    path.write_text("goal,sports\nrain,weather\n")
    with open_table(str(path), TableFormat(header=False)) as table:
        report = evaluate_file(table, ["c1"], "c2", classifier)
    assert report.job.documents == 2
