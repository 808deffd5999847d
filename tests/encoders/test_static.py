"""The embedded encoder: means of token vectors, in any batch."""

import json
import os
import pickle
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import load_file
from tokenizers import Tokenizer, models, pre_tokenizers

from ulr.encoders import StaticEncoder
from ulr.errors import EncoderError

TEXTS = ["Stocks fell on Monday", "", "Ein Straßenfest – 日本語 😀", "goal " * 40, "a\tb\nc"]


@pytest.fixture(scope="module")
def encoder():
    return StaticEncoder.embedded()


@pytest.fixture(scope="module")
def packaged():
    """The tokenizer and the token vectors, read without any of our code."""
    folder = Path(find_spec("wordllama").origin).parent
    tokenizer = Tokenizer.from_file(
        str(folder / "tokenizers" / "l2_supercat_tokenizer_config.json")
    )
    tokenizer.no_padding()
    tokenizer.no_truncation()
    vectors = load_file(folder / "weights" / "l2_supercat_256.safetensors")["embedding.weight"]
    return tokenizer, vectors.astype(np.float64)


def words(vocabulary):
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="?"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    return tokenizer


@pytest.fixture
def tiny():
    """Three words and the unknown one, on the axes of a plane."""
    vectors = np.array([[0, 0], [1, 0], [0, 1], [3, 3]], dtype=np.float32)
    return StaticEncoder(vectors, words({"?": 0, "east": 1, "north": 2, "far": 3}), max_tokens=4)


@pytest.mark.parametrize("text", [text for text in TEXTS if text])
def test_vector_is_the_mean_of_the_token_vectors(encoder, packaged, text):
    tokenizer, vectors = packaged
    expected = vectors[tokenizer.encode(text, add_special_tokens=False).ids].mean(axis=0)
    found = encoder.encode([text])[0]
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_vectors_have_the_stated_dimensions(encoder):
    assert encoder.encode(TEXTS).shape == (len(TEXTS), encoder.n_dims) == (5, 256)
    assert encoder.encode([]).shape == (0, 256)


def test_empty_text_is_zero(encoder):
    vectors = encoder.encode(["", "word", ""])
    assert not vectors[[0, 2]].any()
    assert vectors[1].any()


@settings(deadline=None, max_examples=50)
@given(st.lists(st.text(max_size=30), min_size=1, max_size=8), st.integers(0, 8))
def test_vector_does_not_depend_on_batches_or_neighbours(encoder, texts, cut):
    whole = encoder.encode(texts)
    parts = [encoder.encode(texts[:cut]), encoder.encode(texts[cut:])]
    np.testing.assert_array_equal(np.concatenate(parts), whole)
    for text, vector in zip(texts, whole, strict=True):
        np.testing.assert_array_equal(encoder.encode([text])[0], vector)


def test_half_an_emoji_counts_as_an_unknown_character(encoder):
    found = encoder.encode(["goal \ud83d", "fine", "\ud83d\ude00"])
    np.testing.assert_array_equal(found, encoder.encode(["goal \ufffd", "fine", "😀"]))


def test_longer_texts_are_truncated_and_counted(tiny):
    long, exact = "east north far far far far far", "east north far far"
    vectors = tiny.encode([long, exact, "east"])
    np.testing.assert_array_equal(vectors[0], vectors[1])
    assert tiny.truncated == 1
    tiny.encode([long, long])
    assert tiny.truncated == 3


@pytest.mark.parametrize("unit", ["qzj", "a", " ", "word ", "😀", "ab<s>"])
def test_an_endless_text_has_the_vector_of_its_first_tokens(packaged, unit):
    tokenizer, vectors = packaged
    text = unit * (2_000_000 // len(unit))
    encoder = StaticEncoder.embedded(max_tokens=64)
    start = time.process_time()
    found = encoder.encode([text])[0]
    assert time.process_time() - start < 0.5
    tokens = tokenizer.encode(text[:20_000], add_special_tokens=False).ids[:64]
    np.testing.assert_allclose(found, vectors[tokens].mean(axis=0), rtol=1e-5, atol=1e-6)
    assert encoder.truncated == 1


def test_a_text_cut_by_characters_counts_as_truncated(tiny):
    vectors = tiny.encode(["east" + " " * 4000 + "north", "east" + " " * 3900 + "north"])
    np.testing.assert_array_equal(vectors, np.array([[1, 0], [0.5, 0.5]], dtype=np.float32))
    assert tiny.truncated == 1


def test_words_and_languages_are_known(encoder, tiny):
    assert (encoder.languages, tiny.languages) == (("en",), None)
    words = ["sports", "business", "technology", "technolgy", "", "two words", "日本語", "\ud83d"]
    assert [word for word in words if encoder.knows_word(word)] == words[:3]
    assert [word for word in ("east", "west", "east north") if tiny.knows_word(word)] == ["east"]


def test_limit_of_the_embedded_encoder_can_be_set(encoder, packaged):
    tokenizer, vectors = packaged
    short = StaticEncoder.embedded(max_tokens=2)
    tokens = tokenizer.encode("stocks fell on Monday", add_special_tokens=False).ids
    found = short.encode(["stocks fell on Monday"])[0]
    np.testing.assert_allclose(found, vectors[tokens[:2]].mean(axis=0), rtol=1e-6)
    assert short.truncated == 1
    assert short.fingerprint != encoder.fingerprint


def test_own_tokenizer_and_vectors_work(tiny):
    found = tiny.encode(["east", "east north", "far west", "", "north north north east"])
    expected = [[1, 0], [0.5, 0.5], [1.5, 1.5], [0, 0], [0.25, 0.75]]
    np.testing.assert_array_equal(found, np.array(expected, dtype=np.float32))


def test_pickle_of_the_embedded_encoder_is_a_reference(encoder):
    pickled = pickle.dumps(StaticEncoder.embedded(max_tokens=7))
    again = pickle.loads(pickled)
    assert len(pickled) < 1000
    assert again.max_tokens == 7
    short = TEXTS[:3]
    np.testing.assert_array_equal(again.encode(short)[:2], encoder.encode(short)[:2])


def test_pickle_of_an_own_encoder_carries_its_vectors(tiny):
    again = pickle.loads(pickle.dumps(tiny))
    np.testing.assert_array_equal(again.encode(["far east"]), tiny.encode(["far east"]))
    assert again.fingerprint == tiny.fingerprint


@pytest.mark.parametrize("vocabulary", [{"?": 0, "a": 1, "b": 2}, {"?": 0, "a": 2}])
def test_tokens_without_a_vector_are_refused(vocabulary):
    with pytest.raises(EncoderError, match="tokens from 0 to 2, but there are only 2 token vec"):
        StaticEncoder(np.ones((2, 3), dtype=np.float32), words(vocabulary))


def test_limit_below_one_token_is_refused():
    with pytest.raises(EncoderError, match="max_tokens must be at least 1; got 0"):
        StaticEncoder(np.ones((1, 3), dtype=np.float32), words({"?": 0}), max_tokens=0)


def test_it_is_ready_without_torch_or_the_package_of_its_weights():
    code = (
        "import json, sys, ulr; ulr.load_encoder('static').encode(['a text']);"
        "print(json.dumps(list(sys.modules)))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert {"torch", "wordllama", "sklearn", "pandas"}.isdisjoint(json.loads(run.stdout))


def test_vectors_do_not_depend_on_the_number_of_cores():
    code = (
        "import hashlib, numpy as np; from ulr.encoders import StaticEncoder\n"
        "draw = np.random.default_rng(0)\n"
        "words = [f'word{i:x}' for i in range(3000)] + ['', ' ', '\\n']\n"
        "texts = [' '.join(draw.choice(words, 20)) for _ in range(5000)]\n"
        "vectors = StaticEncoder.embedded().encode(texts)\n"
        "print(hashlib.sha256(vectors.tobytes()).hexdigest())"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "LOKY_MAX_CPU_COUNT": cores},
        ).stdout
        for cores in ("1", "2")
    }
    assert len(found) == 1
