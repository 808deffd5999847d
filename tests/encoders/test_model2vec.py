"""model2vec folders: shared vectors, weights, unknown words and normalisation."""

import json

import numpy as np
import pytest
from safetensors.numpy import save_file
from tokenizers import Tokenizer, models, pre_tokenizers

from ulr.encoders import StaticEncoder, load_encoder
from ulr.errors import EncoderError

WORDS = ["[UNK]", "goal", "team", "bank", "money", "rain"]
VECTORS = np.random.default_rng(0).normal(size=(6, 8)).astype(np.float32)


@pytest.fixture
def folder(tmp_path):
    def write(tensors=None, **settings):
        tokenizer = Tokenizer(
            models.WordLevel({word: i for i, word in enumerate(WORDS)}, unk_token="[UNK]")
        )
        tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
        tokenizer.save(str(tmp_path / "tokenizer.json"))
        save_file(tensors or {"embeddings": VECTORS}, str(tmp_path / "model.safetensors"))
        (tmp_path / "config.json").write_text(json.dumps(settings))
        return tmp_path

    return write


def test_a_text_is_the_mean_of_its_known_words(folder):
    encoder = load_encoder(f"static:{folder()}")
    vectors = encoder.encode(["goal nobody team", "", "nothing known", "bank bank money"])
    expected = [VECTORS[[1, 2]].mean(0), 0 * VECTORS[0], 0 * VECTORS[0], VECTORS[[3, 3, 4]].mean(0)]
    np.testing.assert_allclose(vectors, expected, atol=1e-6)


def test_vectors_are_normalised_if_the_config_says_so(folder):
    vectors = load_encoder(f"static:{folder(normalize=True)}").encode(["goal team", "x"])
    mean = VECTORS[[1, 2]].mean(0)
    np.testing.assert_allclose(vectors, [mean / np.linalg.norm(mean), 0 * mean], atol=1e-6)


def test_tokens_may_share_vectors_and_have_weights(folder):
    mapping, weights = np.array([0, 1, 1, 0, 2, 2]), np.array([1, 2, 3, 0.5, 1, 1])
    tensors = {"embeddings": VECTORS[:3].astype(np.float16), "mapping": mapping, "weights": weights}
    vector = load_encoder(f"static:{folder(tensors)}").encode(["goal team rain"])[0]
    half = VECTORS.astype(np.float16).astype(np.float32)
    np.testing.assert_allclose(vector, (2 * half[1] + 3 * half[1] + half[2]) / 3, atol=1e-6)


def test_fingerprint_spec_and_length_are_those_of_the_folder(folder):
    encoder = load_encoder(f"static:{folder({'embedding.weight': VECTORS}, max_length=2)}")
    vectors = encoder.encode(["goal team rain", "goal team"])
    np.testing.assert_allclose(vectors, VECTORS[[1, 2]].mean(0) * np.ones((2, 1)), atol=1e-6)
    assert (encoder.truncated, encoder.spec) == (1, f"static:{folder()}")
    other = StaticEncoder.from_folder(str(folder({"embeddings": VECTORS + 1})))
    assert (encoder.max_tokens, other.max_tokens) == (2, 512)
    assert other.fingerprint != encoder.fingerprint


def test_vectors_are_those_of_model2vec(folder):
    model2vec = pytest.importorskip("model2vec", reason="model2vec is not installed")
    texts = ["goal team x rain", "bank", "", "money money rain goal"]
    for settings in ({}, {"normalize": True}):
        path = folder(**settings)
        expected = model2vec.StaticModel.from_pretrained(path).encode(texts)
        np.testing.assert_allclose(
            load_encoder(f"static:{path}").encode(texts), expected, atol=1e-6
        )


def test_other_folders_are_refused(folder, tmp_path):
    with pytest.raises(EncoderError, match="is neither a folder nor the name of a model on the"):
        load_encoder(f"static:{tmp_path / 'nowhere'}")
    with pytest.raises(EncoderError, match=r"is not a model2vec folder: it has no config\.json"):
        load_encoder(f"static:{tmp_path}")
    with pytest.raises(EncoderError, match=r"'embeddings' was expected; it has other\."):
        load_encoder(f"static:{folder({'other': VECTORS})}")
    with pytest.raises(EncoderError, match="from 0 to 5, but there are only 3 token vectors"):
        load_encoder(f"static:{folder({'embeddings': VECTORS[:3]})}")
    (folder() / "model.safetensors").write_bytes(b"no tensors")
    with pytest.raises(EncoderError, match="cannot be read as a model2vec folder"):
        load_encoder(f"static:{tmp_path}")
    (folder() / "tokenizer.json").write_text("{}")
    with pytest.raises(EncoderError, match="cannot be read as a model2vec folder"):
        load_encoder(f"static:{tmp_path}")
