"""ONNX folders are used as their own files state: pooling, prompts, length and precision."""

import json
import pickle

import numpy as np
import onnxruntime
import pytest
from onnxruntime import quantization
from tiny_onnx import hidden_states, onnx, save_folder, save_model, save_settings, save_tokenizer

from ulr import DatalessClassifier, load_encoder
from ulr.encoders import CachedEncoder, JoinedEncoder, OnnxEncoder, label_encoder
from ulr.encoders.cache import inspect_cache
from ulr.errors import EncoderError
from ulr.inputs import PhraseVectors

TEXTS = ["rain", "the goal of the team", "a bank", "", "sun sun the rate of a bank and rain"]


def unit(vector):
    return vector / np.linalg.norm(vector)


def means(texts, prefix=""):
    return np.array([unit(hidden_states(prefix + text).mean(axis=0)) for text in texts])


def load(folder):
    return load_encoder(f"onnx:{folder}")


def test_without_settings_the_mean_is_used(tmp_path):
    encoder = load(save_folder(tmp_path))
    np.testing.assert_allclose(encoder.encode(TEXTS), means(TEXTS), atol=1e-5)
    assert (encoder.n_dims, encoder.max_tokens, encoder.label_encoder) == (8, 256, None)


def test_the_pooling_is_that_of_the_folder(tmp_path):
    encoder = load(save_folder(tmp_path, pooling="cls_token"))
    expected = [unit(hidden_states(text)[0]) for text in TEXTS]
    np.testing.assert_allclose(encoder.encode(TEXTS), expected, atol=1e-5)


def test_an_output_that_is_pooled_is_used_as_it_is(tmp_path):
    save_folder(tmp_path, pooling="cls_token")
    save_model(tmp_path / "model.onnx", output="sentence_embedding")
    vectors = load(tmp_path).encode(TEXTS)
    assert not np.allclose(vectors, [unit(hidden_states(text)[0]) for text in TEXTS], atol=0.1)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)
    (direct,) = onnxruntime.InferenceSession(
        str(tmp_path / "model.onnx"), providers=["CPUExecutionProvider"]
    ).run(
        ["sentence_embedding"],
        {"input_ids": np.array([[2, 7, 3]]), "attention_mask": np.ones((1, 3), dtype=np.int64)},
    )
    np.testing.assert_allclose(vectors[0], unit(direct[0]), atol=1e-6)


@pytest.mark.parametrize("pooling", ["max_tokens", "lasttoken", "mean_sqrt_len_tokens"])
def test_other_poolings_are_refused(tmp_path, pooling):
    save_folder(tmp_path, pooling=pooling)
    with pytest.raises(EncoderError, match=r"has the pooling .*only .*mean or cls"):
        load(tmp_path)


def test_a_pooling_without_the_prompt_is_refused(tmp_path):
    save_folder(tmp_path, pooling="mean_tokens", include_prompt=False)
    load(tmp_path)
    save_settings(tmp_path, prompts={"query": "query: "}, include_prompt=False)
    with pytest.raises(EncoderError, match="has a pooling without the prompt"):
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


def test_only_the_phrases_of_labels_have_the_prompt_of_labels(prompted):
    vectors = PhraseVectors(prompted, {"sun": "label 'weather'", "team": "label 'sports'"})
    np.testing.assert_allclose(
        vectors.of(["sun", "team"]), means(["sun", "team"], "query: "), atol=1e-5
    )


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


def test_the_folder_states_the_length(tmp_path):
    encoder = load(save_folder(tmp_path, max_tokens=6))
    assert encoder.max_tokens == 6
    vectors = encoder.encode(["rain sun goal team", "rain sun goal team bank"])
    assert encoder.truncated == 1
    np.testing.assert_allclose(vectors[0], vectors[1], atol=1e-6)


def test_the_length_is_at_most_that_of_the_model_and_256(tmp_path):
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


def test_half_precision_gives_nearly_the_same_vectors(tmp_path):
    save_tokenizer(tmp_path)
    save_model(tmp_path / "onnx/model_fp16.onnx", precision=np.float16)
    vectors = load(tmp_path).encode(TEXTS)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(vectors, means(TEXTS), atol=5e-3)
    assert not np.allclose(vectors, means(TEXTS), atol=1e-6)


@pytest.mark.parametrize("name", ["model_quantized.onnx", "model_int8.onnx"])
def test_eight_bits_give_nearly_the_same_vectors(tmp_path, name):
    save_tokenizer(tmp_path)
    save_model(tmp_path / "plain.onnx")
    quantization.quantize_dynamic(tmp_path / "plain.onnx", tmp_path / name)
    used = {node.op_type for node in onnx.load(tmp_path / name).graph.node}
    assert {"MatMulInteger", "DynamicQuantizeLinear"} <= used
    cosines = (load(tmp_path).encode(TEXTS) * means(TEXTS)).sum(axis=1)
    assert (cosines > 0.99).all()
    assert (cosines < 0.999999).any()


def test_the_file_with_full_precision_is_preferred_and_another_can_be_named(tmp_path):
    save_folder(tmp_path, "onnx/model.onnx", pooling="cls_token")
    save_model(tmp_path / "onnx/model_fp16.onnx", precision=np.float16)
    expected = np.array([unit(hidden_states(text)[0]) for text in TEXTS])
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


def test_incomplete_folders_are_refused(tmp_path):
    with pytest.raises(EncoderError, match="it lacks the model"):
        load(tmp_path)
    save_model(tmp_path / "model.onnx")
    with pytest.raises(EncoderError, match=r"it lacks tokenizer\.json"):
        load(tmp_path)
    save_tokenizer(tmp_path)
    save_settings(tmp_path)
    (tmp_path / "modules.json").write_text("[{")
    with pytest.raises(EncoderError, match="is not a complete model of sentence-transformers"):
        load(tmp_path)


def test_damaged_models_are_refused(tmp_path):
    save_folder(tmp_path)
    (tmp_path / "model.onnx").write_bytes(b"no model")
    with pytest.raises(EncoderError, match="cannot be loaded"):
        load(tmp_path)


def test_models_with_other_inputs_are_refused(tmp_path):
    save_folder(tmp_path)
    save_model(tmp_path / "model.onnx", further_input="position_ids")
    with pytest.raises(EncoderError, match=r"needs the inputs position_ids; only input_ids"):
        load(tmp_path)


def test_it_is_pickled_by_its_folder(prompted):
    again = pickle.loads(pickle.dumps(prompted))
    assert (again.spec, again.fingerprint) == (prompted.spec, prompted.fingerprint)
    np.testing.assert_array_equal(again.encode(TEXTS), prompted.encode(TEXTS))
    np.testing.assert_array_equal(
        again.label_encoder.encode(TEXTS), prompted.label_encoder.encode(TEXTS)
    )


def test_a_saved_classifier_needs_the_folder_named(prompted, tmp_path):
    texts = ["rain and sun", "the goal of the team", "sun", "a goal"]
    classifier = DatalessClassifier(["rain", "goal"], encoder=prompted).fit(texts)
    classifier.save(tmp_path / "saved")
    again = DatalessClassifier.load(tmp_path / "saved", encoder=prompted.spec)
    np.testing.assert_array_equal(again.predict(texts), classifier.predict(texts))


def test_an_unknown_pooling_is_refused(tmp_path):
    save_folder(tmp_path)
    with pytest.raises(EncoderError, match="pooling must be one of mean, cls; got 'max'"):
        OnnxEncoder(tmp_path / "model.onnx", tmp_path / "tokenizer.json", pooling="max")
