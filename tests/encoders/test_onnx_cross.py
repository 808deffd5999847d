"""The single encoder on onnxruntime: scores of a real tiny model, chosen by files, no PyTorch."""

import json
import pickle
import subprocess
import sys

import numpy as np
import pytest
from tiny_onnx import TOKEN_VECTORS, WORDS, onnx, save_model, save_tokenizer

from ulr import DatalessClassifier
from ulr.encoders import load_encoder
from ulr.encoders.cross import CrossEncoder
from ulr.encoders.downloads import model_folder
from ulr.encoders.onnx_cross import uses_onnx
from ulr.errors import EncoderError
from ulr.files import sha256

TEXTS = ["rain the sun", "", "goal team goal", "bank rate of the bank", "a goal " * 8, "sun"]
LABELS = ["rain", "goal team", "the bank"]
NLI = ["contradiction", "neutral", "ENTAILMENT"]
_RANDOM = np.random.default_rng(1)
TYPE_VECTORS = _RANDOM.normal(size=(2, TOKEN_VECTORS.shape[1])).astype(np.float32)
HEAD = _RANDOM.normal(size=(TOKEN_VECTORS.shape[1], 3)).astype(np.float32)


def save_pair_scorer(folder, n_outputs=1, names=None, **settings):
    """A model whose outputs depend on the tokens and on which text of the pair each is from."""
    make, helper = onnx.helper.make_node, onnx.helper
    nodes = [
        make("Gather", ["tokens", "input_ids"], ["token"]),
        make("Gather", ["types", "token_type_ids"], ["type"]),
        make("Mul", ["token", "type"], ["product"]),
        make("Cast", ["attention_mask"], ["mask"], to=onnx.TensorProto.FLOAT),
        make("Unsqueeze", ["mask", "last"], ["column"]),
        make("Mul", ["product", "column"], ["kept"]),
        make("ReduceSum", ["kept", "first"], ["sum"], keepdims=0),
        make("MatMul", ["sum", "head"], ["logits"]),
    ]
    constants = {
        "tokens": TOKEN_VECTORS,
        "types": TYPE_VECTORS,
        "head": HEAD[:, :n_outputs],
        "first": np.array([1], dtype=np.int64),
        "last": np.array([2], dtype=np.int64),
    }
    names_of_inputs = ("input_ids", "attention_mask", "token_type_ids")
    inputs = [
        helper.make_tensor_value_info(name, onnx.TensorProto.INT64, ["b", "t"])
        for name in names_of_inputs
    ]
    output = helper.make_tensor_value_info("logits", onnx.TensorProto.FLOAT, ["b", n_outputs])
    initial = [onnx.numpy_helper.from_array(array, name) for name, array in constants.items()]
    graph = helper.make_graph(nodes, "pairs", inputs, [output], initial)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    folder.mkdir(exist_ok=True)
    onnx.save(model, folder / "model.onnx")
    save_tokenizer(folder)
    if names is not None:
        config = {"id2label": {str(number): name for number, name in enumerate(names)}}
        (folder / "config.json").write_text(json.dumps(config))
    if settings:
        (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    return folder


def logits(first, second, n_outputs=1):
    """Outputs for one pair, by NumPy alone, (n_outputs,)."""
    parts = ["[CLS]", *first.split(), "[SEP]"], [*second.split(), "[SEP]"]
    vectors = [TOKEN_VECTORS[[WORDS.index(word) for word in part]].sum(axis=0) for part in parts]
    return (vectors[0] * TYPE_VECTORS[0] + vectors[1] * TYPE_VECTORS[1]) @ HEAD[:, :n_outputs]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return save_pair_scorer(tmp_path_factory.mktemp("scorer") / "pairs")


@pytest.fixture(scope="module")
def scorer(folder):
    return CrossEncoder(folder)


def test_scores_are_the_output_of_the_head_for_label_then_text(scorer):
    scores = scorer.score(TEXTS, LABELS)
    assert scores.dtype == np.float32
    expected = [[logits(label, text)[0] for label in LABELS] for text in TEXTS]
    np.testing.assert_allclose(scores, expected, atol=1e-5)


def test_scores_do_not_depend_on_order_and_batches(folder, scorer):
    together = scorer.score(TEXTS, LABELS)
    small = CrossEncoder(folder, batch_tokens=20)
    np.testing.assert_allclose(small.score(TEXTS, LABELS), together, atol=1e-5)
    backwards = small.score(TEXTS[::-1], LABELS[::-1])[::-1, ::-1]
    np.testing.assert_allclose(backwards, together, atol=1e-5)


def test_only_the_text_is_truncated_and_counted(folder):
    scorer = CrossEncoder(folder, max_tokens=8)
    scores = scorer.score(["sun " * 9, "sun"], ["goal team", "rain"])
    expected = [logits("goal team", "sun sun sun")[0], logits("rain", "sun sun sun sun")[0]]
    np.testing.assert_allclose(scores[0], expected, atol=1e-5)
    assert scorer.truncated == 1


def test_the_tokenizers_own_side_is_truncated(tmp_path):
    scorer = CrossEncoder(save_pair_scorer(tmp_path, truncation_side="left"), max_tokens=6)
    found = scorer.score(["rain sun goal"], ["team"])
    np.testing.assert_allclose(found, [[logits("team", "sun goal")[0]]], atol=1e-5)


def test_two_outputs_are_one_against_the_other(tmp_path):
    out = logits("rain", "sun", 2)
    plain = CrossEncoder(save_pair_scorer(tmp_path / "plain", 2)).score(["sun"], ["rain"])
    np.testing.assert_allclose(plain, [[out[1] - out[0]]], atol=1e-5)
    folder = save_pair_scorer(tmp_path / "named", 2, ["Positive", "Negative"])
    named = CrossEncoder(folder).score(["sun"], ["rain"])
    np.testing.assert_allclose(named, [[out[0] - out[1]]], atol=1e-5)


def test_three_outputs_are_scored_by_entailment_and_read_the_text_first(tmp_path):
    found = CrossEncoder(save_pair_scorer(tmp_path, 3, NLI)).score(["sun goal"], LABELS)
    expected = [[logits("sun goal", label, 3)[2] for label in LABELS]]
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_a_head_without_a_score_is_refused(tmp_path):
    with pytest.raises(EncoderError, match=r"has 3 outputs \(label_0, label_1, label_2\)"):
        CrossEncoder(save_pair_scorer(tmp_path, 3))


def test_an_encoder_of_texts_is_refused(tmp_path):
    save_tokenizer(tmp_path)
    save_model(tmp_path / "model.onnx")
    with pytest.raises(EncoderError, match=r"not a model that scores pairs: .* shape \(2, 4, 8\)"):
        CrossEncoder(tmp_path)


def test_bad_settings_are_refused(folder, tmp_path):
    with pytest.raises(EncoderError, match=r"is an ONNX model, .*device='cuda'"):
        CrossEncoder(folder, device="cuda")
    with pytest.raises(EncoderError, match="precision='float16'"):
        CrossEncoder(folder, precision="float16")
    with pytest.raises(EncoderError, match="batch_tokens must be at least 1; got 0"):
        CrossEncoder(folder, batch_tokens=0)
    with pytest.raises(EncoderError, match="max_tokens must be at least 4"):
        CrossEncoder(folder, max_tokens=3)
    limited = save_pair_scorer(tmp_path, model_max_length=64)
    with pytest.raises(EncoderError, match="max_tokens must be at most 64"):
        CrossEncoder(limited)


def test_incomplete_and_damaged_folders_are_refused(tmp_path):
    folder = save_pair_scorer(tmp_path)
    (folder / "model.onnx").write_bytes(b"not a model")
    with pytest.raises(EncoderError, match="cannot be loaded"):
        CrossEncoder(folder)
    (folder / "tokenizer.json").unlink()
    with pytest.raises(EncoderError, match=r"lacks tokenizer\.json"):
        CrossEncoder(folder)


def test_fingerprint_spec_and_pickle_tell_the_model(folder, scorer, tmp_path):
    other = CrossEncoder(save_pair_scorer(tmp_path, 2))
    shorter = CrossEncoder(folder, max_tokens=20)
    assert len({each.fingerprint for each in (scorer, other, shorter)}) == 3
    assert (scorer.spec, shorter.spec) == (f"cross:{folder}", None)
    packed = pickle.dumps(shorter)
    assert len(packed) < 1000
    again = pickle.loads(packed)
    assert again.fingerprint == shorter.fingerprint
    np.testing.assert_array_equal(again.score(TEXTS, LABELS), shorter.score(TEXTS, LABELS))


def test_a_downloaded_scorer_has_a_name(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(EncoderError, match="ulr encoders download cross-minilm"):
        load_encoder("cross-minilm")
    model_folder("cross-minilm").parent.mkdir(parents=True)
    folder = save_pair_scorer(model_folder("cross-minilm"))
    files = {name: sha256(folder / name) for name in ("model.onnx", "tokenizer.json")}
    (folder / "source.json").write_text(json.dumps({"sha256": files}))
    scorer = load_encoder("cross-minilm")
    again = pickle.loads(pickle.dumps(scorer))
    assert (again.spec, again.languages) == (scorer.spec, ("en",)) == ("cross-minilm", ("en",))
    np.testing.assert_allclose(again.score(["sun"], ["rain"]), [logits("rain", "sun")], atol=1e-5)


def test_a_folder_with_safetensors_is_for_pytorch(folder, tmp_path):
    pytest.importorskip("torch", reason="torch is not installed: pip install 'ulr[torch]'")
    assert uses_onnx(folder)
    assert uses_onnx(folder / "model.onnx")
    both = save_pair_scorer(tmp_path)
    (both / "model.safetensors").write_bytes(b"")
    assert not uses_onnx(both)
    assert not uses_onnx("cross-encoder/ms-marco-MiniLM-L-12-v2")


def run_without_torch(code):
    """Run code in a Python where PyTorch cannot be imported."""
    blocked = "import sys; sys.modules['torch'] = None\n"
    return subprocess.run(
        [sys.executable, "-c", blocked + code], capture_output=True, text=True, check=False
    )


def test_pytorch_is_not_needed(tmp_path):
    folder = save_pair_scorer(tmp_path)
    (folder / "model.safetensors").write_bytes(b"")
    done = run_without_torch(
        "from ulr.encoders import load_encoder\n"
        f"print(load_encoder({f'cross:{folder}'!r}).score(['sun'], ['rain', 'goal']).shape)"
    )
    assert (done.stdout, done.returncode) == ("(1, 2)\n", 0), done.stderr


def test_the_papers_method_uses_the_distance_of_algorithm_2(folder):
    texts = [text for text in TEXTS if text] * 8
    encoder = load_encoder(f"cross:{folder}")
    classifier = DatalessClassifier(LABELS, encoder=encoder, method="ulr").fit(texts)
    assert classifier.distance_ == "jensen-shannon"
    nearest = DatalessClassifier(LABELS, encoder=f"cross:{folder}", method="none").fit(texts)
    scores = load_encoder(f"cross:{folder}").score(texts, LABELS)
    expected = [LABELS[label] for label in scores.argmax(axis=1)]
    assert nearest.predict(texts).tolist() == expected
