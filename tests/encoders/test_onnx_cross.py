"""The single encoder on onnxruntime: scores of a real tiny model, chosen by files, no PyTorch."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
from python_process import run_python
from tiny_onnx import HEAD, TOKEN_VECTORS, TYPE_VECTORS, WORDS, save_model, save_pair_scorer

from ulr import ZeroShotClassifier
from ulr.encoders import KNOWN_MODELS, CrossEncoder, download_model, load_encoder
from ulr.encoders.cross import uses_onnx
from ulr.errors import EncoderError

TEXTS = ["rain the sun", "", "goal team goal", "bank rate of the bank", "a goal " * 8, "sun"]
LABELS = ["rain", "goal team", "the bank"]


def logits(first, second, n_outputs=1):
    """Outputs for one pair, by NumPy alone, (n_outputs,)."""
    parts = ["[CLS]", *first.split(), "[SEP]"], [*second.split(), "[SEP]"]
    vectors = [TOKEN_VECTORS[[WORDS.index(word) for word in part]].sum(axis=0) for part in parts]
    return (vectors[0] * TYPE_VECTORS[0] + vectors[1] * TYPE_VECTORS[1]) @ HEAD[:, :n_outputs]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return save_pair_scorer(tmp_path_factory.mktemp("scorer") / "pairs")


def test_scores_are_the_output_of_the_head_for_label_then_text(folder):
    scorer = CrossEncoder(folder)
    texts = [*TEXTS, *["rain " * (i % 60) for i in range(90)]]  # more than one batch
    scores = scorer.score(texts, LABELS)
    assert scores.dtype == np.float32
    expected = [[logits(label, text)[0] for label in LABELS] for text in texts]
    np.testing.assert_allclose(scores, expected, atol=1e-3)
    np.testing.assert_allclose(scores[: len(TEXTS)], expected[: len(TEXTS)], atol=1e-5)


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


def test_outputs_are_read_by_the_names_of_the_config(tmp_path):
    names = ["contradiction", "neutral", "ENTAILMENT"]
    scorer = CrossEncoder(save_pair_scorer(tmp_path, 3, names))
    expected = logits("sun", "rain", 3)[2]  # the text comes first
    np.testing.assert_allclose(scorer.score(["sun"], ["rain"]), [[expected]], atol=1e-5)


def unlink_tokenizer(folder):
    (folder / "tokenizer.json").unlink()


@pytest.mark.parametrize(
    ("n_outputs", "change", "settings", "message"),
    [
        (3, None, {}, r"has 3 outputs \(label_0, label_1, label_2\)"),
        (1, None, {"device": "cuda"}, r"is an ONNX model, .*device='cuda'"),
        (1, None, {"batch_size": 8}, r"is an ONNX model, .*batch_size=8"),
        (1, None, {"max_tokens": 3}, "max_tokens must be at least 4"),
        (1, None, {"max_tokens": 65}, "max_tokens must be at most 64"),
        (
            1,
            lambda folder: save_model(folder / "model.onnx"),
            {},
            r"not a model that scores pairs: .* shape \(2, 4, 8\)",
        ),
        (
            1,
            lambda folder: (folder / "model.onnx").write_bytes(b"not a model"),
            {},
            "cannot be loaded",
        ),
        (1, unlink_tokenizer, {}, r"lacks tokenizer\.json"),
    ],
)
def test_bad_settings_and_models_are_refused(tmp_path, n_outputs, change, settings, message):
    folder = save_pair_scorer(tmp_path, n_outputs, model_max_length=64)
    if change is not None:
        change(folder)
    with pytest.raises(EncoderError, match=message):
        CrossEncoder(folder, **{"max_tokens": 20} | settings)


def test_fingerprint_spec_and_pickle_tell_the_model(folder, tmp_path):
    scorer, shorter = CrossEncoder(folder), CrossEncoder(folder, max_tokens=20)
    other = CrossEncoder(save_pair_scorer(tmp_path, 2))
    assert len({each.fingerprint for each in (scorer, other, shorter)}) == 3
    assert (scorer.spec, shorter.spec) == (f"cross:{folder}", None)
    packed = pickle.dumps(shorter)
    assert len(packed) < 1000
    again = pickle.loads(packed)
    assert again.fingerprint == shorter.fingerprint
    np.testing.assert_array_equal(again.score(TEXTS, LABELS), shorter.score(TEXTS, LABELS))


def test_a_downloaded_scorer_has_a_name(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    model = replace(KNOWN_MODELS["cross-minilm"], installed=())
    monkeypatch.setitem(KNOWN_MODELS, "cross-minilm", model)
    with pytest.raises(EncoderError, match="ulr encoders download cross-minilm"):
        load_encoder("cross-minilm")
    source = save_pair_scorer(tmp_path / "source")
    (source / "onnx").mkdir()
    (source / "model.onnx").rename(source / "onnx/model.onnx")
    download_model("cross-minilm", source)
    scorer = load_encoder("cross-minilm")
    again = pickle.loads(pickle.dumps(scorer))
    assert (again.spec, again.languages) == (scorer.spec, ("en",)) == ("cross-minilm", ("en",))
    np.testing.assert_allclose(again.score(["sun"], ["rain"]), [logits("rain", "sun")], atol=1e-5)


def test_a_folder_with_safetensors_is_for_pytorch_where_it_is_installed(folder, tmp_path):
    pytest.importorskip("torch", reason="torch is not installed: pip install 'ulr[torch]'")
    assert uses_onnx(folder)
    assert uses_onnx(folder / "model.onnx")
    both = save_pair_scorer(tmp_path)
    (both / "model.safetensors").write_bytes(b"")
    assert not uses_onnx(both)
    assert not uses_onnx("cross-encoder/ms-marco-MiniLM-L-12-v2")
    code = (
        "import sys; sys.modules['torch'] = None\n"
        "from ulr.encoders import load_encoder\n"
        f"print(load_encoder({f'cross:{both}'!r}).score(['sun'], ['rain', 'goal']).shape)"
    )
    done = run_python("-c", code)
    assert (done.stdout, done.returncode) == ("(1, 2)\n", 0), done.stderr


def test_the_papers_method_uses_the_distance_of_algorithm_2(folder):
    texts = [text for text in TEXTS if text] * 8
    encoder = load_encoder(f"cross:{folder}")
    classifier = ZeroShotClassifier(LABELS, encoder=encoder, method="ulr").fit(texts)
    assert classifier.distance_ == "jensen-shannon"
    nearest = ZeroShotClassifier(LABELS, encoder=f"cross:{folder}", method="none").fit(texts)
    expected = [LABELS[label] for label in encoder.score(texts, LABELS).argmax(axis=1)]
    assert nearest.predict(texts).tolist() == expected
