"""Label Studio, Argilla and doccano: suggestions out, corrections in, and what they do to a fit."""

import json
import uuid

import numpy as np
import pytest

from ulr import ZeroShotClassifier
from ulr.errors import InputError, TableError
from ulr.integrations import (
    Corrections,
    LabelledTexts,
    from_argilla,
    from_doccano,
    from_label_studio,
    label_studio_config,
    to_argilla,
    to_doccano,
    to_label_studio,
)

# Argilla and what it imports warn of their own code.
quiet = pytest.mark.filterwarnings("ignore::DeprecationWarning")


@pytest.fixture(scope="session")
def labelled(clf, messages):
    return LabelledTexts.of(clf, [*messages[:20], " "])


def annotated(tasks, chosen):
    """Tasks as Label Studio exports them, after people chose a label for the first of them."""
    for number, (task, labels) in enumerate(zip(tasks, chosen, strict=False)):
        task["annotations"] = [
            {
                "id": number * 10 + i,
                "was_cancelled": label is None,
                "result": [
                    {
                        "from_name": "label",
                        "to_name": "text",
                        "type": "choices",
                        "value": {"choices": [label or "delivery"]},
                    }
                ],
            }
            for i, label in enumerate(labels)
        ]
    return tasks


def test_labels_and_confidence_are_those_of_the_classifier(labelled, clf, messages):
    assert [each[0] for each in labelled.labels[:20]] == clf.predict(messages[:20]).tolist()
    best = clf.predict_proba(messages[:20]).max(axis=1)
    np.testing.assert_allclose(labelled.confidence[:20], best, atol=1e-4)
    assert (labelled.labels[20], labelled.confidence[20]) == ((), 0.0)
    assert sorted(labelled.names) == clf.classes_.tolist()


def test_a_classified_table_gives_the_same_suggestions(classified, clf, messages):
    read = LabelledTexts.read(classified.output)
    expected = LabelledTexts.of(clf, messages)
    assert (read.texts, read.labels) == (expected.texts, expected.labels)
    assert read.confidence == pytest.approx(expected.confidence)
    assert (set(read.names), read.several) == (set(expected.names), False)


@pytest.mark.parametrize("name", ["several.csv", "several.jsonl"])
def test_a_table_with_several_labels_a_text(command, several, messages, classified, tmp_path, name):
    arguments = [classified.source, *classified.task, "--multi", "1.5", "-o", tmp_path / name]
    assert command("classify", *arguments).code == 0
    expected = LabelledTexts.of(several, messages)
    assert LabelledTexts.read(tmp_path / name, "message").labels == expected.labels
    assert max(map(len, expected.labels)) > 1


def test_a_table_without_labels_is_refused(classified):
    with pytest.raises(TableError, match="ulr_label"):
        LabelledTexts.read(classified.source)


def test_label_studio_accepts_interface_and_tasks(labelled, several, messages, tmp_path):
    interface = pytest.importorskip("label_studio_sdk.label_interface").LabelInterface
    odd = LabelledTexts(["a"], [('"<&> b',)], [0.5], ('"<&> b', "c"))
    both = LabelledTexts.of(several, messages)
    for number, each in enumerate((labelled, both, odd)):
        found = interface(label_studio_config(each))
        found.validate()
        to_label_studio(each, tmp_path / f"{number}.json")
        tasks = json.loads((tmp_path / f"{number}.json").read_text())
        predictions = [one for task in tasks for one in task.get("predictions", ())]
        assert len(predictions) == sum(map(bool, each.labels))
        for prediction in predictions:
            assert found.validate_prediction(prediction, return_errors=True) == []
        wrong = {"result": [{**predictions[0]["result"][0], "value": {"choices": ["other"]}}]}
        assert found.validate_prediction(wrong, return_errors=True)


def test_tasks_have_text_label_score_and_model(labelled, tmp_path):
    to_label_studio(labelled, tmp_path / "tasks.json")
    first, *_, last = json.loads((tmp_path / "tasks.json").read_text())
    assert first["data"] == {"text": labelled.texts[0]}
    (prediction,) = first["predictions"]
    assert prediction["score"] == labelled.confidence[0]
    assert prediction["model_version"].endswith("static")
    assert prediction["result"][0]["value"] == {"choices": list(labelled.labels[0])}
    assert "predictions" not in last
    with pytest.raises(TableError, match=r"already exists.*overwrite=True"):
        to_label_studio(labelled, tmp_path / "tasks.json")


def test_corrections_of_label_studio_change_the_fit(labelled, messages, clf, tmp_path):
    to_label_studio(labelled, tmp_path / "tasks.json")
    tasks = json.loads((tmp_path / "tasks.json").read_text())
    # One answer; two against one; a tie; skipped; nobody.
    chosen = [["returns"], ["billing", "returns", "billing"], ["billing", "returns"], [None], []]
    (tmp_path / "export.json").write_text(json.dumps(annotated(tasks, chosen)))
    corrections = from_label_studio(tmp_path / "export.json")
    assert corrections == (messages[:2], ["returns", "billing"])
    again = ZeroShotClassifier(**clf.get_params(deep=False)).fit(messages).correct(*corrections)
    assert again.predict(messages)[:2].tolist() != clf.predict(messages)[:2].tolist()
    known = again.fitted_.known[:2]
    assert again.fitted_.names[known].tolist() == ["returns", "billing"]


def test_json_min_of_label_studio(tmp_path):
    records = [
        {"text": "one", "label": "billing", "id": 1},
        {"text": "two", "label": {"choices": ["returns"]}},
        {"text": "three"},
    ]
    (tmp_path / "min.json").write_text(json.dumps(records))
    assert from_label_studio(tmp_path / "min.json") == (["one", "two"], ["billing", "returns"])


def test_corrections_are_examples_of_the_command_line(command, classified, tmp_path):
    text = 'He said "no",\nthen left'
    Corrections([text, "Ünïcode"], ["returns", "billing"]).save(tmp_path / "examples.csv")
    arguments = [classified.source, *classified.task, "--examples", tmp_path / "examples.csv"]
    result = command("classify", *arguments, "--json")
    assert result.code == 0, result.err
    assert json.loads(result.out)["examples"] == 2
    with pytest.raises(TableError, match=r"must end in \.csv"):
        Corrections([text], ["returns"]).save(tmp_path / "examples.parquet")


@pytest.mark.parametrize("read", [from_label_studio, from_argilla, from_doccano])
@pytest.mark.parametrize("content", ["", "[]", "{", "[1]", '[{"x": 1}]', '[{"data": {}}]', "null"])
def test_other_files_are_refused_in_one_sentence(read, content, tmp_path):
    (tmp_path / "export.json").write_text(content)
    with pytest.raises(TableError, match=r"export\.json"):
        read(tmp_path / "export.json")


def test_doccano_lines_come_back(labelled, tmp_path):
    to_doccano(labelled, tmp_path / "lines.jsonl")
    lines = [json.loads(line) for line in (tmp_path / "lines.jsonl").read_text().splitlines()]
    assert lines[0]["label"] == list(labelled.labels[0])
    texts, labels = from_doccano(tmp_path / "lines.jsonl")
    assert (texts, labels) == (labelled.texts[:20], [each[0] for each in labelled.labels[:20]])


@quiet
def test_argilla_records_have_suggestions(labelled, several, messages):
    argilla = pytest.importorskip("argilla")
    records = to_argilla(labelled)
    assert all(isinstance(record, argilla.Record) for record in records)
    assert records[0].fields["text"] == labelled.texts[0]
    suggestion = records[0].to_dict()["suggestions"]["label"]
    assert suggestion["value"] == labelled.labels[0][0]
    assert suggestion["score"] == labelled.confidence[0]
    assert records[0].api_model().model_dump()["suggestions"]  # what is sent to a server
    assert not records[-1].suggestions.to_dict()
    both = LabelledTexts.of(several, messages[:3])
    values = [record.suggestions["label"].value for record in to_argilla(both)]
    assert values == [list(labels) for labels in both.labels]


@quiet
def test_responses_of_argilla_are_corrections(labelled, tmp_path):
    argilla = pytest.importorskip("argilla")

    def answer(record, value, status="submitted"):
        response = argilla.Response("label", value, user_id=uuid.uuid4(), status=status)
        record.responses.add(response)

    records = to_argilla(labelled)
    answer(records[0], "returns")
    answer(records[1], "billing")
    answer(records[1], "billing")
    answer(records[1], "returns")
    answer(records[2], "returns", "draft")
    answer(records[3], "returns", "discarded")
    assert from_argilla(records) == (labelled.texts[:2], ["returns", "billing"])
    from argilla.records._io import JsonIO  # what `dataset.records.to_json` calls

    JsonIO.to_json(records[:2], tmp_path / "records.json")
    assert from_argilla(tmp_path / "records.json") == from_argilla(records)


def test_a_missing_package_is_named_with_what_installs_it(labelled, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "argilla", None)
    with pytest.raises(InputError, match=r"'argilla' is not installed; .*\[argilla\]"):
        to_argilla(labelled)
