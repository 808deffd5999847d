"""A small task that many tests share: labels, texts, and encoders of a few lines."""

import random
import zlib
from functools import cache

import numpy as np

from ulr import load_encoder

LABELS = ["sports", "business", "science and technology"]
TEXTS = [
    "The striker scored twice before half time",
    "Shares fell on Monday after the bank raised its rates",
    "A late goal won the cup final",
    "Researchers trained a neural network on protein structures",
    "The company reported record profits this quarter",
    "The telescope found water on a distant planet",
    "Tennis champion retires after a knee injury",
    "Oil prices rose and investors sold bonds",
    "Physicists measured the mass of a new particle",
    "",
]
NEW = [
    "The coach praised the goalkeeper",
    "Quarterly revenue missed forecasts",
    "A new microscope for cells",
]
PHRASES = {
    "sports": ["sports", "football match", "tennis"],
    "business": ["business", "banks and money"],
    "science and technology": "science",
}
_WORDS = {
    "sports": "striker goal coach tennis cup match referee league injury penalty stadium athlete",
    "business": "shares profit bank investors revenue merger bonds dividend market quarter loan sales",
    "science and technology": "telescope protein neural laboratory physics software planet molecule "
    "experiment quantum microscope algorithm",
}
_COMMON = "today people report said new week city early after long about officials".split()


def generated_texts(n, seed=0, own=0.4, labels=LABELS):
    """Texts of eight words, a share of them from the topic of their label, and the labels."""
    draw = random.Random(seed)
    words = {label: _WORDS[label].split() for label in labels}
    others = [word for each in words.values() for word in each] + 2 * _COMMON
    truth = [draw.choice(labels) for _ in range(n)]
    texts = [
        " ".join(draw.choice(words[label] if draw.random() < own else others) for _ in range(8))
        for label in truth
    ]
    return texts, truth


@cache
def static():
    """The embedded encoder, loaded once."""
    return load_encoder("static")


class StaticVectors:
    """The embedded encoder as an object that is copied without its weights."""

    fingerprint = "static vectors"

    def encode(self, texts):
        return static().encode(texts)


class HashingEncoder:
    """A random vector for every word, seeded by its hash; a text is the sum of its words."""

    def __init__(self, n_dims=8):
        self.n_dims = n_dims

    def encode(self, texts):
        return np.array([self._vector(text) for text in texts])

    def _vector(self, text):
        draws = [np.random.default_rng(zlib.crc32(word.encode())) for word in text.split()]
        return sum((draw.standard_normal(self.n_dims) for draw in draws), np.zeros(self.n_dims))


class CountingEncoder(HashingEncoder):
    """Counts the texts that it encodes."""

    fingerprint = "counting"
    n_encoded = 0

    def encode(self, texts):
        self.n_encoded += len(texts)
        return super().encode(texts)


class CosineScorer:
    """Scores pairs of text and label by the cosine of their vectors."""

    fingerprint = "cosine scorer"

    def __repr__(self):
        return "CosineScorer()"  # names of tests contain it

    def score(self, texts, labels, /):
        vectors, names = static().encode(texts), static().encode(labels)
        lengths = np.outer(np.linalg.norm(vectors, axis=1), np.linalg.norm(names, axis=1))
        return 20.0 * (vectors @ names.T) / np.maximum(lengths, 1e-9)


class Recorder:
    """Records the stages of a progress, and how far each advanced."""

    def __init__(self):
        self.stages, self.counts = [], []

    def stage(self, name, total=None, unit="documents"):
        self.stages.append((name, total))
        self.counts.append(0)

    def advance(self, count=1):
        self.counts[-1] += count


def assert_same(one, other, texts=NEW):
    """Two classifiers give the same classes, labels and probabilities."""
    np.testing.assert_array_equal(one.classes_, other.classes_)
    np.testing.assert_array_equal(one.predict(texts), other.predict(texts))
    np.testing.assert_array_equal(one.predict_proba(texts), other.predict_proba(texts))
