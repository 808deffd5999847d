"""ONNX folders are used as their own files state: pooling, prompts, length and precision."""

import json

import numpy as np
import pytest
from onnxruntime import quantization
from tiny_onnx import (
    TOKEN_VECTORS,
    WORDS,
    hidden_states,
    save_folder,
    save_model,
    save_settings,
    save_tokenizer,
)

from ulr.encoders import (
    CachedEncoder,
    JoinedEncoder,
    OnnxEncoder,
    inspect_cache,
    label_encoder,
    load_encoder,
)
from ulr.errors import EncoderError

TEXTS = ["rain", "the goal of the team", "a bank", "", "sun sun the rate of a bank and rain"]


def unit(vector):
    return vector / np.linalg.norm(vector)


def means(texts, prefix=""):
    return np.array([unit(hidden_states(prefix + text).mean(axis=0)) for text in texts])


def firsts(texts):
    return np.array([unit(hidden_states(text)[0]) for text in texts])


def load(folder):
    return load_encoder(f"onnx:{folder}")


def test_the_pooling_is_that_of_the_folder_or_the_mean(tmp_path):
    encoder = load(save_folder(tmp_path))
    np.testing.assert_allclose(encoder.encode(TEXTS), means(TEXTS), atol=1e-5)
    assert (encoder.n_dims, encoder.max_tokens, encoder.label_encoder) == (8, 256, None)
    encoder = load(save_folder(tmp_path, pooling="cls_token"))
    np.testing.assert_allclose(encoder.encode(TEXTS), firsts(TEXTS), atol=1e-5)


def test_an_output_that_is_pooled_is_used_as_it_is(tmp_path):
    save_folder(tmp_path, pooling="cls_token")
    save_model(tmp_path / "model.onnx", output="sentence_embedding")
    ids = [WORDS.index(word) for word in ("[CLS]", "rain", "[SEP]")]
    expected = unit(TOKEN_VECTORS[ids].sum(axis=0))
    np.testing.assert_allclose(load(tmp_path).encode(["rain"])[0], expected, atol=1e-6)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"pooling": "max_tokens"}, r"has the pooling .*only .*mean or cls"),
        ({"pooling": "lasttoken"}, r"has the pooling .*only .*mean or cls"),
        ({"pooling": "mean_sqrt_len_tokens"}, r"has the pooling .*only .*mean or cls"),
        (
            {"prompts": {"query": "query: "}, "include_prompt": False},
            "has a pooling without the prompt",
        ),
    ],
)
def test_other_poolings_are_refused(tmp_path, settings, message):
    save_folder(tmp_path, **settings)
    with pytest.raises(EncoderError, match=message):
        load(tmp_path)


@pytest.mark.parametrize(
    ("prompts", "default", "expected"),
    [
        ({"query": "query: ", "passage": "passage: "}, None, ("passage: ", "query: ")),
        ({"query": "query: ", "document": "passage: "}, "query", ("passage: ", "query: ")),
        ({"query": "query: "}, None, ("", "query: ")),
        ({"query": "query: "}, "query", ("query: ", "query: ")),
        ({"other": "rain "}, "other", ("rain ", "rain ")),
        ({"other": "rain "}, None, ("", "")),
    ],
)
def test_documents_and_labels_have_the_prompts_of_the_folder(tmp_path, prompts, default, expected):
    encoder = load(save_folder(tmp_path, prompts=prompts, default=default))
    prefix, label_prefix = expected
    np.testing.assert_allclose(encoder.encode(TEXTS), means(TEXTS, prefix), atol=1e-5)
    labels = label_encoder(encoder)
    np.testing.assert_allclose(labels.encode(TEXTS), means(TEXTS, label_prefix), atol=1e-5)
    assert (labels is encoder) == (prefix == label_prefix)


@pytest.fixture
def prompted(tmp_path):
    (tmp_path / "model").mkdir()
    prompts = {"query": "query: ", "passage": "passage: "}
    return load(save_folder(tmp_path / "model", prompts=prompts))


def test_a_joined_encoder_uses_the_prompts_of_its_parts(prompted):
    static = load_encoder("static")
    joined = JoinedEncoder([static, prompted], [1, 3])
    labels = label_encoder(joined).encode(["sun"])
    np.testing.assert_allclose(labels[:, :256], joined.encode(["sun"])[:, :256], atol=1e-6)
    expected = np.sqrt(0.75) * means(["sun"], "query: ")
    np.testing.assert_allclose(labels[:, 256:], expected, atol=1e-5)
    assert JoinedEncoder([static, static]).label_encoder is None


def test_a_cache_keeps_labels_and_documents_apart(prompted, tmp_path):
    for _ in range(2):
        cached = CachedEncoder(prompted, tmp_path / "cache")
        np.testing.assert_allclose(cached.encode(["sun"]), means(["sun"], "passage: "), atol=1e-5)
        found = label_encoder(cached).encode(["sun"])
        np.testing.assert_allclose(found, means(["sun"], "query: "), atol=1e-5)
    assert [entry.texts for entry in inspect_cache(tmp_path / "cache")] == [1, 1]
    assert CachedEncoder(load_encoder("static"), tmp_path / "cache").label_encoder is None


def test_the_length_is_at_most_that_of_the_model_and_256(tmp_path):
    assert load(save_folder(tmp_path, max_tokens=6)).max_tokens == 6
    save_folder(tmp_path, max_tokens=512)
    assert load(tmp_path).max_tokens == 256
    (tmp_path / "config.json").write_text(json.dumps({"max_position_embeddings": 64}))
    assert load(tmp_path).max_tokens == 64
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"model_max_length": 1e30}))
    assert load(tmp_path).max_tokens == 64
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"model_max_length": 32}))
    assert load(tmp_path).max_tokens == 32
    assert OnnxEncoder.from_folder(str(tmp_path), max_tokens=16).max_tokens == 16
    with pytest.raises(EncoderError, match="max_tokens must be at most 32"):
        OnnxEncoder.from_folder(str(tmp_path), max_tokens=33)


@pytest.mark.parametrize(
    "name", ["onnx/model_fp16.onnx", "model_quantized.onnx", "model_int8.onnx"]
)
def test_fewer_bits_give_nearly_the_same_vectors(tmp_path, name):
    save_tokenizer(tmp_path)
    if name == "onnx/model_fp16.onnx":
        save_model(tmp_path / name, precision=np.float16)
    else:
        save_model(tmp_path / "plain.onnx")
        quantization.quantize_dynamic(tmp_path / "plain.onnx", tmp_path / name)
    vectors = load(tmp_path).encode(TEXTS)
    assert vectors.dtype == np.float32
    assert ((vectors * means(TEXTS)).sum(axis=1) > 0.99).all()
    assert not np.allclose(vectors, means(TEXTS), atol=1e-6)


def test_the_file_with_full_precision_is_preferred_and_another_can_be_named(tmp_path):
    save_folder(tmp_path, "onnx/model.onnx", pooling="cls_token")
    save_model(tmp_path / "onnx/model_fp16.onnx", precision=np.float16)
    expected = firsts(TEXTS)
    np.testing.assert_allclose(load(tmp_path).encode(TEXTS), expected, atol=1e-5)
    named = load(tmp_path / "onnx/model_fp16.onnx")
    np.testing.assert_allclose(named.encode(TEXTS), expected, atol=5e-3)
    assert named.fingerprint != load(tmp_path).fingerprint
    assert load_encoder(named.spec).fingerprint == named.fingerprint


def test_settings_change_the_fingerprint(tmp_path):
    found = {load(save_folder(tmp_path)).fingerprint}
    for settings in (
        {"pooling": "cls_token"},
        {"max_tokens": 9},
        {"prompts": {"passage": "passage: "}},
    ):
        found.add(load(save_folder(tmp_path, **settings)).fingerprint)
    assert len(found) == 4


def test_incomplete_and_damaged_folders_are_refused(tmp_path):
    with pytest.raises(EncoderError, match="it lacks the model"):
        load(tmp_path)
    save_model(tmp_path / "model.onnx", further_input="position_ids")
    with pytest.raises(EncoderError, match=r"it lacks tokenizer\.json"):
        load(tmp_path)
    save_tokenizer(tmp_path)
    with pytest.raises(EncoderError, match=r"needs the inputs position_ids; only input_ids"):
        load(tmp_path)
    (tmp_path / "model.onnx").write_bytes(b"no model")
    with pytest.raises(EncoderError, match="cannot be loaded"):
        load(tmp_path)
    save_settings(tmp_path)
    (tmp_path / "modules.json").write_text("[{")
    with pytest.raises(EncoderError, match="cannot be read as a model of sentence-transformers"):
        load(tmp_path)
