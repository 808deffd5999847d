"""`ulr predict`: a saved model gives the labels that the classifier gave."""

import json
import os
import subprocess
import sys

import pytest


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


def test_one_text_is_classified_without_the_slow_imports(classified):
    run = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "ulr", "predict", classified.model, "some text"],
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0
    loaded = {line.rpartition("|")[2].strip() for line in run.stderr.splitlines()}
    assert "numpy" in loaded
    assert loaded.isdisjoint({"joblib", "pyarrow", "sklearn", "pandas", "torch", "rich"})


def test_output_of_one_text_has_no_effect_and_that_is_said(classified, command, tmp_path):
    result = command("predict", classified.model, "some text", "-o", tmp_path / "out.csv")
    assert result.code == 0
    assert "-o has no effect" in result.err
    assert os.listdir(tmp_path) == []


def test_name_of_a_missing_file_is_no_text(classified, command):
    result = command("predict", classified.model, "missing.csv")
    assert (result.code, result.err) == (1, "ulr: there is no file missing.csv.\n")


def test_an_encoder_that_reads_files_must_be_named(command, word_vectors, tmp_path):
    source, model = tmp_path / "in.csv", tmp_path / "model"
    source.write_text("text\nstriker goal\nheavy rain\n")
    task = ["-l", "sports, weather", "--encoder", word_vectors, "--save-model", model]
    assert command("classify", source, *task).code == 0
    result = command("predict", model, "cold wind")
    assert (result.code, result.out) == (1, "")
    assert "or --encoder." in result.err
    assert "weather" in command("predict", model, "cold wind", "--encoder", word_vectors).out


def test_one_word_is_a_text_and_the_name_of_a_file_is_not(classified, command, tmp_path):
    assert "account access" in command("predict", classified.model, "password").out
    for name in ("missing.csv", str(tmp_path / "missing"), "no-such-*"):
        result = command("predict", classified.model, name)
        assert result.code == 1
        assert "account access" not in result.out
