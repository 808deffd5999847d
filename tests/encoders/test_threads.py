"""One encoder used by several threads returns what it returns to one thread."""

import pickle
import shutil
import sys
from concurrent.futures import ThreadPoolExecutor
from itertools import chain

import numpy as np
import pytest
from tokenizers import Tokenizer

from ulr.encoders import (
    CachedEncoder,
    JoinedEncoder,
    LabelScores,
    OnnxEncoder,
    StaticEncoder,
    WordEncoder,
    static,
)
from ulr.encoders.counters import Counter
from ulr.encoders.tokenization import PieceTokenizer, WholeTextTokenizer
from ulr.encoders.word_vectors import WordVectors

N_THREADS = 8


def batches_of_texts(n_batches=48, n_texts=64, n_words=20):
    """Batches that share some words; every word occurs for the first time in many threads."""
    random = np.random.default_rng(0)
    words = [f"w{number:x}" for number in range(3000)]
    return [
        [" ".join(random.choice(words, n_words)) for _ in range(n_texts)] for _ in range(n_batches)
    ]


def encode_in_threads(encoder, batches):
    with ThreadPoolExecutor(N_THREADS) as pool:
        return list(pool.map(encoder.encode, batches))


@pytest.fixture(autouse=True)
def frequent_switches():
    """Let threads interrupt each other often, so that a race shows."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


def test_static_encoder_is_thread_safe():
    batches = batches_of_texts()
    expected = StaticEncoder.embedded().encode(list(chain.from_iterable(batches)))
    found = encode_in_threads(StaticEncoder.embedded(), batches)
    np.testing.assert_array_equal(np.concatenate(found), expected)


def test_tokens_are_right_while_the_memo_is_emptied():
    tokenizer = Tokenizer.from_file(str(static.FILES[1].locate()))
    small, whole = PieceTokenizer(tokenizer, max_pieces=500), WholeTextTokenizer(tokenizer)
    batches = batches_of_texts()
    with ThreadPoolExecutor(N_THREADS) as pool:
        found = list(pool.map(small, batches))
    for (tokens, counts), batch in zip(found, batches, strict=True):
        expected_tokens, expected_counts = whole(batch)
        np.testing.assert_array_equal(tokens, expected_tokens)
        np.testing.assert_array_equal(counts, expected_counts)


def test_word_encoder_is_thread_safe_while_its_memo_is_emptied():
    batches = batches_of_texts()
    words = sorted({word for batch in batches for text in batch for word in text.split()})
    matrix = np.random.default_rng(0).normal(size=(len(words), 8)).astype(np.float32)
    vectors = WordVectors.of(words, matrix)
    expected = WordEncoder(vectors).encode(list(chain.from_iterable(batches)))
    found = encode_in_threads(WordEncoder(vectors, max_pieces=100), batches)
    np.testing.assert_array_equal(np.concatenate(found), expected)


def test_cached_encoder_is_thread_safe(tmp_path):
    batches = batches_of_texts(n_texts=16) * 3
    expected = StaticEncoder.embedded().encode(list(chain.from_iterable(batches)))
    encoder = CachedEncoder(StaticEncoder.embedded(), tmp_path)
    found = encode_in_threads(encoder, batches)
    np.testing.assert_array_equal(np.concatenate(found), expected)
    assert encoder.found + encoder.encoded == len(expected)
    again = CachedEncoder(StaticEncoder.embedded(), tmp_path)
    np.testing.assert_array_equal(np.concatenate(encode_in_threads(again, batches)), expected)
    assert again.encoded == 0


def test_joined_encoder_is_thread_safe(tmp_path):
    batches = batches_of_texts(n_batches=24, n_texts=16)
    parts = [StaticEncoder.embedded(), StaticEncoder.embedded(max_tokens=5)]
    expected = JoinedEncoder(parts).encode(list(chain.from_iterable(batches)))
    encoder = JoinedEncoder([StaticEncoder.embedded(), StaticEncoder.embedded(max_tokens=5)])
    for shared in (encoder, encoder.cached(tmp_path)):
        found = encode_in_threads(shared, batches)
        np.testing.assert_array_equal(np.concatenate(found), expected)


class SharedWords:
    """Scores by the number of shared words."""

    def score(self, texts, labels, /):
        return np.array([[float(len({*a.split()} & {*b.split()})) for b in labels] for a in texts])


def test_label_scores_are_thread_safe(tmp_path):
    batches = batches_of_texts(n_batches=24, n_texts=8)
    encoder = LabelScores(SharedWords(), [[batch[0], batch[1]] for batch in batches[:5]])
    expected = encoder.encode(list(chain.from_iterable(batches)))
    for shared in (encoder, CachedEncoder(encoder, tmp_path)):
        found = encode_in_threads(shared, batches)
        np.testing.assert_array_equal(np.concatenate(found), expected)


def test_onnx_encoder_is_thread_safe():
    pytest.importorskip("onnxruntime")
    batches = batches_of_texts(n_batches=8, n_texts=2, n_words=3)
    encoder = OnnxEncoder.known("minilm", max_tokens=8)
    expected = [encoder.encode(batch) for batch in batches]
    n_truncated = encoder.truncated
    for found, vectors in zip(encode_in_threads(encoder, batches), expected, strict=True):
        np.testing.assert_array_equal(found, vectors)
    assert encoder.truncated == 2 * n_truncated > 0


def test_a_full_cache_warns_once_among_threads(tmp_path):
    batches = batches_of_texts(n_batches=24, n_texts=8)
    encoder = CachedEncoder(StaticEncoder.embedded(), tmp_path / "cache")
    shutil.rmtree(tmp_path / "cache")
    with pytest.warns(RuntimeWarning, match="cannot be written to") as warned:
        found = encode_in_threads(encoder, batches)
    assert len(warned) == 1
    expected = StaticEncoder.embedded().encode(list(chain.from_iterable(batches)))
    np.testing.assert_array_equal(np.concatenate(found), expected)


def test_truncated_texts_are_all_counted():
    batches = batches_of_texts(n_batches=200, n_texts=2, n_words=5)
    encoder = StaticEncoder.embedded(max_tokens=2)
    encode_in_threads(encoder, batches)
    assert encoder.truncated == 400


def test_counter_keeps_its_value_when_pickled():
    counter = Counter()
    counter.add(3)
    assert pickle.loads(pickle.dumps(counter)).value == 3
