"""The exported rule gives the labels and the probabilities of the classifier, in onnxruntime."""

import json

import numpy as np
import pytest

from tiny_task import CosineScorer, HashingEncoder, static
from ulr import ZeroShotClassifier
from ulr.classifier import load
from ulr.errors import ModelError
from ulr.integrations import onnx_inputs, to_onnx

onnxruntime = pytest.importorskip("onnxruntime")
LABELS = ["delivery", "billing", "returns", "account access"]


def run(path, inputs):
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    assert {each.name for each in session.get_inputs()} == set(inputs)
    names = [each.name for each in session.get_outputs()]
    return dict(zip(names, session.run(None, inputs), strict=True))


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"none_share": 0.1},
        {"method": "ulr"},
        {"method": "ulr", "distance": "l2"},
        {"method": "ulr", "distance": "dot"},
        {"method": "none"},
        {"method": "ulr", "none_share": 0.2},
    ],
    ids=str,
)
def test_rule_gives_labels_and_probabilities_of_the_classifier(settings, messages, tmp_path):
    clf = ZeroShotClassifier(LABELS, encoder=static(), **settings).fit(messages)
    texts = [*messages, "", " \n", "?", "Where is my parcel? Where?"]
    to_onnx(clf, tmp_path / "rule.onnx")
    found, expected = (
        run(tmp_path / "rule.onnx", onnx_inputs(clf, texts)),
        clf.fitted_.predict(texts),
    )
    np.testing.assert_array_equal(found["label"], expected.labels)
    np.testing.assert_allclose(found["probabilities"], expected.probabilities, atol=1e-5)
    assert len(set(found["label"].tolist())) > 2


def test_rule_of_a_loaded_model_with_the_vectors_of_another_program(clf, model, messages, tmp_path):
    to_onnx(load(model), tmp_path / "rule.onnx")
    vectors = static().encode(messages)
    inputs = onnx_inputs(clf, messages, embeddings=vectors)
    assert set(inputs) == {"embeddings", "words", "counts"}
    labels = run(tmp_path / "rule.onnx", inputs)["label"]
    np.testing.assert_array_equal(labels, load(model).predict(messages).labels)


def test_file_is_valid_and_names_labels_and_encoder(clf, tmp_path):
    onnx = pytest.importorskip("onnx")
    to_onnx(clf, tmp_path / "rule.onnx")
    found = onnx.load(tmp_path / "rule.onnx")
    onnx.checker.check_model(found, full_check=True)
    metadata = {each.key: each.value for each in found.metadata_props}
    assert json.loads(metadata["labels"]) == clf.fitted_.names[:-1].tolist()
    assert metadata["encoder"] == "static"


def test_words_decide_in_the_exported_rule(clf, messages, tmp_path):
    to_onnx(clf, tmp_path / "rule.onnx")
    inputs = onnx_inputs(clf, messages)
    without = {**inputs, "counts": np.zeros_like(inputs["counts"])}
    both, vectors = (
        run(tmp_path / "rule.onnx", each)["probabilities"] for each in (inputs, without)
    )
    assert np.abs(both - vectors).max() > 0.1


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"encoder": CosineScorer()}, "scores pairs"),
        ({"encoder": HashingEncoder(), "multilabel": 1.5}, "gives several"),
    ],
)
def test_other_rules_are_refused(settings, reason, messages, tmp_path):
    clf = ZeroShotClassifier(LABELS, **settings).fit(messages[:60])
    with pytest.raises(ModelError, match=reason):
        to_onnx(clf, tmp_path / "rule.onnx")
    assert list(tmp_path.iterdir()) == []


def test_command_writes_the_same_file(clf, model, command, tmp_path):
    to_onnx(clf, tmp_path / "expected.onnx")
    result = command("export", model, "-o", tmp_path / "rule.onnx", "--json")
    assert result.code == 0, result.err
    assert (tmp_path / "rule.onnx").read_bytes() == (tmp_path / "expected.onnx").read_bytes()
    assert json.loads(result.out)["inputs"] == ["embeddings", "words", "counts"]
    result = command("export", model, "-o", tmp_path / "rule.onnx")
    assert (result.code, "--force" in result.err) == (1, True)
    result = command("export", model, "-o", tmp_path / "rule.onnx", "--force")
    assert (result.code, result.err) == (0, "")
    assert "6 labels" in result.out
    assert command("export", tmp_path / "no", "-o", tmp_path / "x.onnx").code == 1
