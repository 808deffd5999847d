"""Labelled examples and extra texts: read by column, refused by row, never written."""

import csv
import re

import numpy as np
import pytest

from ulr.classifier import DatalessClassifier
from ulr.encoders import StaticEncoder
from ulr.errors import LabelError, TableError
from ulr.jobs import Output, classify_file, evaluate_file, read_support
from ulr.tables import open_table

LABELS = {"sports": ["sports", "football"], "business": ["business", "money"], "weather": "weather"}
NAMES = tuple(LABELS)
TEXTS = [
    "The striker scored twice before half time",
    "Shares fell after the bank raised interest rates",
    "Heavy rain and storms are expected on Sunday",
    "The goalkeeper saved a late penalty",
    "The retailer closed forty shops and cut its profit forecast",
    "Fog will clear by noon, with sunshine on the coast",
]
TRUTH = ["sports", "business", "weather", "sports", "business", "weather"]
EXAMPLES = [
    ("Our team lost the final in the rain", "sports"),
    ("Snow is bad for sales", "business"),
]
FURTHER = ["Investors bet on a cold winter", "The coach bought a bank", "A windy match"]


@pytest.fixture(scope="module")
def encoder():
    return StaticEncoder.embedded()


def write_rows(path, header, rows):
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([header, *rows])
    return path


def read(path, columns=("text",), extra=None):
    with open_table(str(path)) as table:
        return read_support(NAMES, columns, table, extra)


def read_extra(path, columns=("text",)):
    with open_table(str(path)) as table:
        support = read_support(NAMES, columns, None, table)
        return support.extra_texts


# Which columns are read


@pytest.mark.parametrize(
    ("header", "columns"),
    [
        (["text", "label"], ["text"]),
        (["label", "text"], ["text"]),
        (["message", "label"], ["message"]),
        (["message", "label"], ["text"]),
        (["id", "text", "label"], ["body"]),
        (["text", "body", "label"], ["subject", "body"]),
    ],
)
def test_examples_are_read_by_the_columns_of_the_documents_or_their_own(tmp_path, header, columns):
    values = {"label": "sports", "id": "7", "body": "-", "message": "a goal", "text": "a goal"}
    path = write_rows(tmp_path / "few.csv", header, [[values[name] for name in header]])
    support = read(path, columns)
    assert (support.examples, support.labels) == (("a goal",), ("sports",))
    assert support.extra_texts == ()


@pytest.mark.parametrize(
    ("header", "expected"),
    [(["text"], "text"), (["note"], "note"), (["id", "text"], "text"), (["id", "body"], "body")],
)
def test_further_texts_are_read_by_the_columns_of_the_documents_or_their_own(
    tmp_path, header, expected
):
    rows = [[f"{name} {i}" for name in header] for i in range(3)]
    path = write_rows(tmp_path / "more.csv", header, rows)
    assert read_extra(path, ["body"]) == tuple(f"{expected} {i}" for i in range(3))


# What is refused, and where


@pytest.mark.parametrize(
    ("content", "error", "message"),
    [
        ("text,category\na,sports\n", TableError, "has no column 'label'; it has: text, category."),
        ("label\nsports\n", TableError, "has no column 'text'; it has: label."),
        ("id,body,label\n1,a,sports\n", TableError, "has no column 'text'; it has: id, body, labe"),
        ("text,label\n", TableError, "few.csv has no rows."),
        (
            "text,label\na,sports\nb,tennis\n",
            LabelError,
            "few.csv row 2: the label 'tennis' is not",
        ),
        ("text,label\na,sports\nb,\n", LabelError, "few.csv row 2: the label is empty"),
        ("text,label\na,  \n", LabelError, "few.csv row 1: the label is empty"),
        ("text,label\na,sports\nb\n", TableError, "line 3 has 1 fields, but 2 were expected"),
    ],
)
def test_examples_that_cannot_be_used_are_refused_by_row(tmp_path, content, error, message):
    (tmp_path / "few.csv").write_text(content)
    with pytest.raises(error, match=re.escape(message)):
        read(tmp_path / "few.csv")


def test_rows_are_counted_through_all_batches(tmp_path):
    rows = [["goal", "sports"]] * 6000 + [["goal", "football"]]
    path = write_rows(tmp_path / "few.csv", ["text", "label"], rows)
    with pytest.raises(LabelError, match=r"few\.csv row 6001: the label 'football'"):
        read(path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("text\n", "more.csv has no rows."),
        ("id,body\n1,a\n", "has no column 'text'; it has: id, body."),
        ("id,text\n1,a\n2\n", "line 3 has 1 fields, but 2 were expected"),
    ],
)
def test_further_texts_that_cannot_be_read_are_refused(tmp_path, content, message):
    (tmp_path / "more.csv").write_text(content)
    with pytest.raises(TableError, match=re.escape(message)):
        read_extra(tmp_path / "more.csv")


# What a job makes of them


class Diary:
    """A listener that notes what it hears."""

    def __init__(self):
        self.stages, self.counts = [], []

    def stage(self, name, total, unit="documents"):
        self.stages.append((name, total, unit))
        self.counts.append(0)

    def advance(self, count):
        self.counts[-1] += count

    def passed(self, done):
        pass


@pytest.fixture
def files(tmp_path):
    rows = list(zip(TEXTS, TRUTH, strict=True))
    return (
        write_rows(tmp_path / "in.csv", ["text", "truth"], rows),
        write_rows(tmp_path / "few.csv", ["text", "label"], EXAMPLES),
        write_rows(tmp_path / "more.csv", ["note"], [[text] for text in FURTHER]),
    )


def run(files, job, classifier, **options):
    """Do a job with examples and further texts beside the documents."""
    source, examples, further = (open_table(str(file)) for file in files)
    with source as table, examples as few, further as more:
        support = read_support(NAMES, ["text"], few, more)
        return job(table, ["text"], classifier=classifier, support=support, **options)


@pytest.mark.parametrize("phrasings", ["average", "combinations"])
def test_a_job_refines_on_all_and_writes_the_documents_only(files, encoder, tmp_path, phrasings):
    options = {"encoder": encoder, "method": "ulr", "phrasings": phrasings, "extra_labels": ["art"]}
    classifier, diary = DatalessClassifier(LABELS, **options), Diary()
    output = tmp_path / "out.csv"
    report = run(files, classify_file, classifier, output=Output(str(output)), listener=diary)
    y = [*[None] * len(TEXTS), *(label for _, label in EXAMPLES)]
    expected = DatalessClassifier(LABELS, **options)
    expected.fit([*TEXTS, *(text for text, _ in EXAMPLES)], y, extra_texts=FURTHER)
    np.testing.assert_array_equal(classifier.refinement_.scores, expected.refinement_.scores)
    with output.open(newline="") as file:
        written = list(csv.DictReader(file))
    assert [row["text"] for row in written] == TEXTS
    names = expected.model_.names[expected.refinement_.predictions[: len(TEXTS)]]
    assert [row["ulr_label"] for row in written] == names.tolist()
    assert (report.documents, report.examples, report.extra_texts, report.extra_labels) == (
        6,
        2,
        3,
        1,
    )
    assert sum(each.after for each in report.labels) == 6
    sets = (4, 4) if phrasings == "combinations" else (None, None)
    assert (report.phrasings, report.possible_phrasings) == sets
    refining = [("Refining", 4, "phrasings")] if phrasings == "combinations" else []
    assert diary.stages[0][0] == "Reading"
    assert diary.stages[1:] == [
        ("Encoding", 11, "documents"),
        *refining,
        ("Writing", 6, "documents"),
    ]
    assert diary.counts == [6, 11, *[4] * len(refining), 6]


def test_figures_of_an_evaluation_are_of_the_documents_only(files, encoder):
    classifier = DatalessClassifier(LABELS, encoder=encoder, phrasings="combinations")
    report = run(files, evaluate_file, classifier, truth_column="truth")
    assert report.after.confusion.sum() == 6
    predicted = classifier.model_.names[classifier.refinement_.predictions[:6]]
    assert report.after.accuracy == pytest.approx((predicted == np.array(TRUTH)).mean())
    assert report.as_dict()["classification"]["examples"] == 2
