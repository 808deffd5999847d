"""`ulr evaluate`: its figures are those of the predictions that classify writes."""

import json

import pytest
from sklearn.metrics import accuracy_score, confusion_matrix


@pytest.fixture(scope="module")
def figures(classified, command):
    result = command(
        "evaluate", classified.source, *classified.task, "--truth", "category", "--json"
    )
    assert (result.code, result.err) == (0, "")
    return json.loads(result.out)


@pytest.mark.parametrize(("when", "column"), [("before", "ulr_unrefined"), ("after", "ulr_label")])
def test_figures_are_those_of_the_written_predictions(classified, read_csv, figures, when, column):
    rows = read_csv(classified.output)
    truth, found = [row["category"] for row in rows], [row[column] for row in rows]
    figures = figures["comparison"][when]
    names = [each["label"] for each in figures["labels"]]
    assert figures["accuracy"] == pytest.approx(accuracy_score(truth, found))
    assert figures["confusion"] == confusion_matrix(truth, found, labels=names).tolist()


def test_confidence_is_compared_with_the_share_correct(classified, read_csv, figures):
    gaps = [0.0] * 10
    for row in read_csv(classified.output):
        sure = float(row["ulr_confidence"])
        gaps[min(int(sure * 10), 9)] += (row["ulr_label"] == row["category"]) - sure
    expected = sum(map(abs, gaps)) / figures["documents"]
    assert figures["comparison"]["calibration_error"] == pytest.approx(expected)


def test_tables_show_the_figures(tmp_path, command, word_vectors):
    path = tmp_path / "in.csv"
    path.write_text("text,truth\nstriker goal,Sports\nrain fog, weather\nShares fell,\n")
    result = command(
        "evaluate", path, "-l", "sports, weather", "--truth", "truth", "--encoder", word_vectors
    )
    assert (result.code, result.err) == (0, "")
    lines = [line.split() for line in result.out.splitlines()]
    assert ["accuracy", "100.0", "%", "100.0", "%", "+0.0"] in lines
    assert ["macro-F1", "100.0", "%", "100.0", "%", "+0.0"] in lines
    assert ["sports", "1", "100.0", "100.0", "100.0", "100.0"] in lines
    for when in ("by name: true", "refined: true"):
        assert [*when.split(), "\\", "predicted", "sports", "weather"] in lines
    assert ["weather", "0", "1"] in lines
    assert "without a true label, not counted: 1." in result.out
    assert "2 true labels equal a name only if case and blanks are ignored" in result.out


def test_many_labels_show_the_most_confused_pairs(tmp_path, command):
    labels = ", ".join(["sports", "weather", "cooking", *map(str, range(10))])
    path = tmp_path / "in.csv"
    path.write_text("text,truth\nThe striker scored,sports\nHeavy rain on Sunday,cooking\n")
    result = command("evaluate", path, "-l", labels, "--truth", "truth")
    lines = [line.split() for line in result.out.splitlines()]
    for when in ("by name: true", "refined: true"):
        assert ["most", "confused", *when.split(), "predicted", "documents"] in lines
    assert ["cooking", "weather", "1"] in lines
