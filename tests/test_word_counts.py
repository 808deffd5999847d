"""Word counts: hashed columns that are the same in every process, and their part in a model."""

import subprocess
import sys

import numpy as np

from tiny_task import LABELS, assert_same, generated_texts, static
from ulr import DatalessClassifier
from ulr.word_counts import N_COLUMNS, count_words


def counts_of(text):
    """Counts of one text by column."""
    row = count_words([text])
    return dict(zip(row.indices.tolist(), row.data.tolist(), strict=True))


def test_words_are_counted_in_lower_case():
    counts = count_words(["The cat and THE dog", "", "a I é", "cat 42 42nd"])
    assert counts.shape == (4, N_COLUMNS)
    assert counts.dtype == np.float32
    assert counts.sum(axis=1).ravel().tolist() == [[5, 0, 0, 3]]
    assert sorted(counts[0].data) == [1, 1, 1, 2]
    assert counts_of("cat").items() <= counts_of("The CAT").items()


def test_punctuation_and_order_do_not_matter():
    assert counts_of("to be, or not to be!") == counts_of("be be not or (to) to")


def test_half_characters_are_counted():
    assert len(counts_of("ab\ud800cd")) >= 1


def test_columns_are_the_same_in_every_process():
    code = "from ulr.word_counts import count_words; print(count_words(['zebra']).indices[0])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(run.stdout) == count_words(["zebra"]).indices[0]


def test_word_weights_are_part_of_a_saved_model(tmp_path):
    texts, _ = generated_texts(60, own=0.3)
    original = DatalessClassifier(LABELS, encoder=static()).fit(texts)
    original.save(tmp_path / "model")
    loaded = DatalessClassifier.load(tmp_path / "model", encoder=static())
    assert original.model_.uses_words
    assert loaded.model_.uses_words
    assert_same(loaded, original, texts)
    vectors = static().encode(["striker"] * 2)
    by_words = original.model_.predict(["striker goal", "profit bank"], vectors)
    assert not np.array_equal(by_words.scores[0], by_words.scores[1])
