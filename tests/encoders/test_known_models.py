"""Known models are loaded from downloaded files, and `best` is what is available."""

import json
import pickle

import numpy as np
import pytest
from tiny_onnx import hidden_states, save_folder

from ulr import DatalessClassifier, load_encoder
from ulr.encoders import ENCODERS, KNOWN_MODELS, label_encoder
from ulr.encoders.downloads import model_folder
from ulr.encoders.registry import BEST
from ulr.errors import EncoderError
from ulr.files import sha256

TEXTS = ["rain", "the goal of the team"]


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def put(name):
    """A tiny model where a download would put the model of that name."""
    folder = model_folder(name)
    folder.mkdir(parents=True)
    save_folder(folder, "onnx/model.onnx")
    files = ("onnx/model.onnx", "tokenizer.json")
    hashes = {file: sha256(folder / file) for file in files}
    (folder / "source.json").write_text(json.dumps({"source": "a test", "sha256": hashes}))
    return folder


def unit(rows):
    return np.array(rows) / np.linalg.norm(rows, axis=1, keepdims=True)


def test_the_table_states_the_pooling_and_the_prefixes():
    put("bge-small")
    encoder = load_encoder("bge-small")
    expected = unit([hidden_states(text)[0] for text in TEXTS])
    np.testing.assert_allclose(encoder.encode(TEXTS), expected, atol=1e-5)
    assert label_encoder(encoder) is encoder
    put("e5-small-multilingual")
    encoder = load_encoder("e5-small-multilingual")
    for prefix, part in (("passage: ", encoder), ("query: ", label_encoder(encoder))):
        expected = unit([hidden_states(prefix + text).mean(axis=0) for text in TEXTS])
        np.testing.assert_allclose(part.encode(TEXTS), expected, atol=1e-5)
    assert "de" in encoder.languages


def test_a_known_model_has_its_name_and_is_pickled_by_it():
    folder = put("bge-small")
    assert ENCODERS["bge-small"].installed
    encoder = load_encoder("bge-small")
    digest = sha256(folder / "onnx/model.onnx")[:16]
    assert (encoder.spec, encoder.fingerprint) == ("bge-small", f"bge-small {digest}, 256 tokens")
    again = pickle.loads(pickle.dumps(encoder))
    assert (again.spec, again.languages) == ("bge-small", ("en",))
    np.testing.assert_array_equal(again.encode(TEXTS), encoder.encode(TEXTS))


def test_changed_files_are_refused():
    folder = put("bge-small")
    (folder / "tokenizer.json").write_text("{}")
    with pytest.raises(EncoderError, match=r"damaged \(tokenizer\.json\).*download bge-small"):
        load_encoder("bge-small")


def test_best_is_the_first_combination_that_is_available():
    def first():
        return next(names for names in BEST if all(ENCODERS[name].installed for name in names))

    before = first()
    assert load_encoder("best").spec == "+".join(before)
    assert "bge-small" not in before
    put("bge-small")
    assert load_encoder("best").spec == "+".join(first())
    assert "bge-small" in first()
    assert BEST[-1] == ("static",)


def test_a_classifier_keeps_the_encoders_that_best_was(tmp_path):
    texts = ["rain and sun", "the goal of the team", "sun", "a goal"]
    classifier = DatalessClassifier(["rain", "goal"], encoder="best").fit(texts)
    classifier.save(tmp_path / "saved")
    used = classifier.model_.encoder.spec
    put("bge-small")
    again = DatalessClassifier.load(tmp_path / "saved")
    assert again.model_.encoder.spec == used != load_encoder("best").spec
    np.testing.assert_array_equal(again.predict(texts), classifier.predict(texts))


def test_best_is_not_joined():
    with pytest.raises(EncoderError, match="best is a combination itself and cannot be joined"):
        load_encoder("best+static")


def test_every_known_model_is_an_encoder():
    assert set(KNOWN_MODELS) < set(ENCODERS)
    for name, model in KNOWN_MODELS.items():
        assert ENCODERS[name].languages == model.languages
