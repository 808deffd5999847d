"""`ulr predict`: a saved model gives the labels that the classifier gave."""

import json
import os

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from ulr.files import sha256
from ulr.persistence import _hash


def test_saved_model_gives_the_labels_that_classify_gave(classified, tmp_path, ulr, read_csv):
    output = tmp_path / "out.csv"
    result = ulr(
        "predict", classified.model, classified.source, "-t", "message", "-o", output, "--json"
    )
    assert (result.code, result.err) == (0, "")
    summary = json.loads(result.out)
    before, after = read_csv(classified.output), read_csv(output)
    assert list(after[0])[-2:] == ["ulr_label", "ulr_confidence"]
    assert (summary["documents"], summary["moved"], summary["iterations"]) == (
        len(after),
        None,
        None,
    )
    for column in ("id", "message", "ulr_label", "ulr_confidence"):
        assert [row[column] for row in after] == [row[column] for row in before]


def test_new_documents_through_pipes(classified, command):
    documents = b'{"text": "I forgot my password and cannot log in"}\n{"text": null}\n'
    result = command("predict", classified.model, "-", "-o", "-", "--prefix", "", stdin=documents)
    assert (result.code, result.err) == (0, "")
    first, second = map(json.loads, result.out.splitlines())
    assert list(first) == ["text", "label", "confidence"]
    assert first["label"] == "account access"
    assert (second["text"], second["label"]) == (None, "")


def test_one_text_gets_probabilities(classified, command):
    text = "I forgot my password and cannot log in"
    found = json.loads(command("predict", classified.model, text, "--json").out)
    assert found["label"] == "account access" == next(iter(found["probabilities"]))
    assert sum(found["probabilities"].values()) == pytest.approx(1, abs=0.01)
    lines = command("predict", classified.model, text).out.splitlines()
    assert len(lines) == 6
    assert lines[0].endswith("account access")


def test_output_of_one_text_has_no_effect_and_that_is_said(classified, command, tmp_path):
    result = command("predict", classified.model, "some text", "-o", tmp_path / "out.csv")
    assert result.code == 0
    assert "-o has no effect" in result.err
    assert os.listdir(tmp_path) == []


def test_name_of_a_missing_file_is_no_text(classified, command):
    result = command("predict", classified.model, "missing.csv")
    assert (result.code, result.err) == (1, "ulr: there is no file missing.csv.\n")


def test_folder_without_a_model_is_one_error(tmp_path, command):
    result = command("predict", tmp_path, "in.csv")
    assert (result.code, result.err) == (
        1,
        f"ulr: {tmp_path} is not a saved model; it has no model.json.\n",
    )


def changed_model(classified, folder, change=None, arrays=None):
    """A copy of the model with other content, and hashes that match it."""
    folder.mkdir()
    content = json.loads((classified.model / "model.json").read_text())
    values = load_file(classified.model / "arrays.safetensors")
    if arrays is not None:
        arrays(values)
    save_file(values, folder / "arrays.safetensors")
    content["arrays_sha256"] = sha256(folder / "arrays.safetensors")
    if change is not None:
        change(content)
    content["sha256"] = _hash(content)
    (folder / "model.json").write_text(json.dumps(content))
    return folder


@pytest.mark.parametrize(
    "change",
    [
        lambda content: content.update(labels=[{"name": "a", "phrases": "b"}]),
        lambda content: content.update(labels=content["labels"][1:]),
        lambda content: content.update(labels=5),
        lambda content: content.update(temperature="warm"),
        lambda content: content.update(temperature=float("nan")),
        lambda content: content.update(temperature=-1),
        lambda content: content.update(none=["other", None, 1]),
        lambda content: content.update(settings=None),
        lambda content: content["settings"].update(method="unknown"),
        lambda content: content["settings"].update(template="no braces"),
        lambda content: content.pop("encoder_fingerprint"),
        lambda content: content.update(format=[[[]]]),
        lambda content: content.update(encoder="glove:words.txt"),
        lambda content: content.update(encoder="hf:somebody/something"),
        lambda content: content.update(encoder=None),
    ],
)
def test_model_with_other_values_is_one_error(classified, command, tmp_path, change):
    model = changed_model(classified, tmp_path / "model", change)
    result = command("predict", model, "some text")
    assert (result.code, result.out) == (1, "")
    assert str(model) in result.err
    assert result.err.count("\n") == 1
    assert sorted(os.listdir(tmp_path)) == ["model"]


@pytest.mark.parametrize("name", ["anchors", "rule.offsets", "rule.view0.weights"])
@pytest.mark.parametrize(
    "wrong",
    [
        lambda array: array[..., :-1].copy(),
        lambda array: array[None].copy(),
        lambda array: array[:0].copy(),
        lambda array: array.astype(np.complex64),
    ],
    ids=["too short", "one dimension more", "empty", "complex numbers"],
)
def test_model_with_arrays_of_another_shape_is_one_error(
    classified, command, tmp_path, name, wrong
):
    def change(arrays):
        arrays[name] = wrong(arrays[name])

    try:
        model = changed_model(classified, tmp_path / "model", arrays=change)
    except ValueError:
        pytest.skip("safetensors does not write such arrays")
    result = command("predict", model, "some text")
    assert (result.code, result.out) == (1, "")
    assert str(model) in result.err


@pytest.mark.parametrize(
    "content",
    ["[" * 100_000, '{"format":' + "[" * 900 + "]" * 900 + "}", '{"format":' + "1" * 4301 + "}", "{}"],
    ids=["deep", "less deep", "digits", "nothing"],
)  # fmt: skip
def test_hostile_model_json_is_one_short_error(command, tmp_path, content):
    (tmp_path / "model.json").write_text(content)
    result = command("predict", tmp_path, "some text")
    assert (result.code, result.out) == (1, "")
    assert len(result.err) < 500


def test_changed_label_is_detected(classified, command, tmp_path):
    model = changed_model(classified, tmp_path / "model")
    text = (model / "model.json").read_text()
    (model / "model.json").write_text(text.replace("account access", "delivery time"))
    assert "damaged" in command("predict", model, "some text").err
