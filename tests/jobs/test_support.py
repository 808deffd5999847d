"""Labelled examples and extra texts: read by column, refused by row, never written."""

import re

import numpy as np
import pytest

from running import DOCUMENTS, read_rows, run_classify, write_rows
from ulr import ZeroShotClassifier
from ulr.errors import LabelError, TableError
from ulr.jobs import read_support
from ulr.tables import open_table

LABELS = {"sports": ["sports", "football"], "business": ["business", "money"], "weather": "weather"}
NAMES = tuple(LABELS)
TEXTS, TRUTH = map(list, zip(*DOCUMENTS[:6], strict=True))
EXAMPLES = [
    ("Our team lost the final in the rain", "sports"),
    ("Snow is bad for sales", "business"),
]
FURTHER = ["Investors bet on a cold winter", "The coach bought a bank", "A windy match"]


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
    path = write_rows(tmp_path / "few.csv", [[values[name] for name in header]], header)
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
    path = write_rows(tmp_path / "more.csv", rows, header)
    assert read_extra(path, ["body"]) == tuple(f"{expected} {i}" for i in range(3))


# What is refused, and where


@pytest.mark.parametrize(
    ("read_file", "content", "error", "message"),
    [
        (
            read,
            "text,category\na,sports\n",
            TableError,
            "no column 'label'; it has: text, category.",
        ),
        (read, "label\nsports\n", TableError, "has no column 'text'; it has: label."),
        (read, "id,body,label\n1,a,sports\n", TableError, "no column 'text'; it has: id, body, la"),
        (read, "text,label\n", TableError, "few.csv has no rows."),
        (read, "text,label\na,sports\nb,tennis\n", LabelError, "row 2: 'tennis' is not a label"),
        (read, "text,label\na,\nb, \n", LabelError, "few.csv: the label of every row is empty"),
        (read, "text,label\na,sports\nb\n", TableError, "line 3 has 1 fields, but 2 were expected"),
        (read_extra, "text\n", TableError, "few.csv has no rows."),
        (read_extra, "id,body\n1,a\n", TableError, "has no column 'text'; it has: id, body."),
        (read_extra, "id,text\n1,a\n2\n", TableError, "line 3 has 1 fields, but 2 were expected"),
    ],
)
def test_what_cannot_be_used_is_refused_by_row(tmp_path, read_file, content, error, message):
    (tmp_path / "few.csv").write_text(content)
    with pytest.raises(error, match=re.escape(message)):
        read_file(tmp_path / "few.csv")


def test_rows_are_counted_through_all_batches(tmp_path):
    rows = [["goal", "sports"]] * 6000 + [["goal", "football"]]
    path = write_rows(tmp_path / "few.csv", rows, ["text", "label"])
    with pytest.raises(LabelError, match=r"few\.csv row 6001: 'football'"):
        read(path)


# What a job makes of them


@pytest.fixture
def files(tmp_path):
    rows = list(zip(TEXTS, TRUTH, strict=True))
    return (
        write_rows(tmp_path / "in.csv", rows, ["text", "truth"]),
        write_rows(tmp_path / "few.csv", EXAMPLES, ["text", "label"]),
        write_rows(tmp_path / "more.csv", [[text] for text in FURTHER], ["note"]),
    )


def run(files, *arguments, **options):
    """Classify with examples and further texts beside the documents."""
    source, *beside = files
    with open_table(str(beside[0])) as few, open_table(str(beside[1])) as more:
        support = read_support(NAMES, ["text"], few, more)
    return run_classify(source, LABELS, *arguments, support=support, **options)


def test_a_job_fits_on_all_and_writes_the_documents_only(files, tmp_path):
    options = {"encoder": "static", "method": "ulr", "extra_labels": ["art"]}
    output = tmp_path / "out.csv"
    fitted, result = run(files, output, **options)
    y = [*[None] * len(TEXTS), *(label for _, label in EXAMPLES)]
    expected = ZeroShotClassifier(LABELS, **options)
    expected.fit([*TEXTS, *(text for text, _ in EXAMPLES)], y, extra_texts=FURTHER)
    np.testing.assert_array_equal(fitted.refinement.scores, expected.refinement_.scores)
    written = read_rows(output)
    assert [row["text"] for row in written] == TEXTS
    names = fitted.names[expected.refinement_.predictions[: len(TEXTS)]]
    assert [row["ulr_label"] for row in written] == names.tolist()
    found = (result.documents, result.examples, result.extra_texts, result.extra_labels)
    assert found == (6, 2, 3, 1)
    assert sum(each.after for each in result.labels) == 6


def test_figures_of_an_evaluation_are_of_the_documents_only(files):
    fitted, result = run(files, truth="truth")
    assert result.comparison.after.confusion.sum() == 6
    predicted = fitted.names[fitted.refinement.predictions[:6]]
    assert result.comparison.after.accuracy == pytest.approx((predicted == np.array(TRUTH)).mean())
    assert result.as_dict()["examples"] == 2
