"""`ulr suggest`: what it prints, the JSON, and the file of labels that it writes."""

import csv
import json

import pytest

from tiny_task import generated_texts
from ulr.labels import as_label_set, labels_as_text, read_labels

TASK = ["in.csv", "-l", "sports, business"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    texts, _ = generated_texts(300, own=0.8)
    with open("in.csv", "w", newline="") as file:
        csv.writer(file).writerows([["id", "text"], *enumerate([*texts, "", "=" * 20000])])
    return tmp_path


def test_labels_out_is_read_back_with_the_missing_label(folder, command):
    result = command("suggest", *TASK, "--json", "--labels-out", "more.yaml", "--phrases")
    assert (result.code, result.err) == (0, "")
    found = json.loads(result.out)
    labels = read_labels("more.yaml")
    new = [each["name"] for each in found["missing"] if each["better_name_for"] is None]
    assert new
    assert labels.names == ("sports", "business", *new)
    assert (found["rows"], found["examined"]) == (302, 301)
    for document in found["missing"][0]["documents"]:
        assert 1 <= document["row"] <= 300
        assert document["text"]
    assert next(iter(labels)).phrases == ("sports", *found["phrases"].get("sports", ()))
    again = command("suggest", *TASK, "--labels-out", "more.yaml")
    assert (again.code, again.out) == (1, "")
    assert "already exists" in again.err
    assert command("suggest", "in.csv", "-l", "more.yaml").code == 0


def test_summary_shows_groups_and_says_what_has_no_effect(folder, command):
    result = command("suggest", *TASK, "--phrases")
    assert result.code == 0
    assert "--phrases has no effect without --labels-out" in result.err
    for part in ("Groups of documents that no label explains", "a new label", "row "):
        assert part in result.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["in.csv", "-l", "a, b", "--labels-out", "more.docx"], "must end in"),
        (["in.csv", "-l", "a, b", "-t", "no"], "no column 'no'"),
        (["in.csv", "-l", "sports"], "at least 2 labels"),
        (["empty.csv", "-l", "a, b"], "empty.csv"),
    ],
)
def test_errors_are_one_sentence(arguments, message, folder, command):
    (folder / "empty.csv").write_text("")
    result = command("suggest", *arguments)
    assert (result.code, result.out) == (1, "")
    assert message in result.err
    assert not (folder / "more.docx").exists()


@pytest.mark.parametrize("ending", [".txt", ".csv", ".tsv", ".json", ".yaml"])
def test_every_format_of_labels_is_read_back(ending, tmp_path):
    labels = as_label_set({"no": ["no", "nein"], "1.0": "one", "größe": "a, b"})
    path = tmp_path / f"labels{ending}"
    path.write_text(labels_as_text(labels, ending), encoding="utf-8")
    assert read_labels(path) == labels


def test_a_format_that_would_change_labels_is_refused():
    labels = as_label_set({"a": ["x; y"], "b": "b"})
    with pytest.raises(ValueError, match=r"as \.json or \.yaml"):
        labels_as_text(labels, ".txt")
    assert labels_as_text(labels, ".json")
