"""The embedded encoder: means of token vectors, in any batch."""

import pickle
import time
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from python_process import run_python
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


def test_half_an_emoji_counts_as_an_unknown_character(encoder):
    found = encoder.encode(["goal \ud83d", "fine", "\ud83d\ude00"])
    np.testing.assert_array_equal(found, encoder.encode(["goal \ufffd", "fine", "😀"]))


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


def test_own_tokenizer_and_vectors_work(tiny):
    texts = ["east", "east north", "far west", "", "north north north east far far far"]
    texts += ["east" + " " * 4000 + "north", "east" + " " * 3900 + "north"]  # 1,000 a token
    again = pickle.loads(pickle.dumps(tiny))
    expected = [[1, 0], [0.5, 0.5], [1.5, 1.5], [0, 0], [0.25, 0.75], [1, 0], [0.5, 0.5]]
    for encoder in (tiny, again):
        np.testing.assert_array_equal(encoder.encode(texts), np.array(expected, dtype=np.float32))
        assert (encoder.truncated, encoder.languages) == (2, None)
    assert again.fingerprint == tiny.fingerprint


def test_vectors_do_not_depend_on_the_number_of_cores():
    code = (
        "import hashlib, numpy as np; from ulr.encoders import StaticEncoder\n"
        "draw = np.random.default_rng(0)\n"
        "words = [f'word{i:x}' for i in range(3000)] + ['', ' ', '\\n']\n"
        "texts = [' '.join(draw.choice(words, 20)) for _ in range(5000)]\n"
        "vectors = StaticEncoder.embedded().encode(texts)\n"
        "print(hashlib.sha256(vectors.tobytes()).hexdigest())"
    )
    found = {run_python("-c", code, LOKY_MAX_CPU_COUNT=cores).stdout for cores in ("1", "2")}
    assert len(found) == 1
    assert len(found.pop()) == 65


@pytest.mark.parametrize(
    ("vocabulary", "max_tokens", "message"),
    [
        ({"?": 0, "a": 1, "b": 2}, 9, "tokens from 0 to 2, but there are only 2 token vectors"),
        ({"?": 0, "a": 2}, 9, "tokens from 0 to 2, but there are only 2 token vectors"),
        ({"?": 0}, 0, "max_tokens must be at least 1; got 0"),
    ],
)
def test_tokens_without_a_vector_and_limits_are_refused(vocabulary, max_tokens, message):
    with pytest.raises(EncoderError, match=message):
        StaticEncoder(np.ones((2, 3), dtype=np.float32), words(vocabulary), max_tokens=max_tokens)
