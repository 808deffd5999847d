"""Word counts: hashed columns that are the same in every process."""

import subprocess
import sys

import numpy as np

from ulr.classifier.word_counts import N_COLUMNS, count_words


def counts_of(text):
    """Counts of one text by column."""
    row = count_words([text])
    return dict(zip(row.indices.tolist(), row.data.tolist(), strict=True))


def test_words_are_counted_in_lower_case_without_order_and_punctuation():
    counts = count_words(["The cat and THE dog", "", "a I é", "cat 42 42nd"])
    assert counts.shape == (4, N_COLUMNS)
    assert counts.dtype == np.float32
    assert counts.sum(axis=1).ravel().tolist() == [[5, 0, 0, 3]]
    assert sorted(counts[0].data) == [1, 1, 1, 2]
    assert counts_of("cat").items() <= counts_of("The CAT").items()
    assert counts_of("to be, or not to be!") == counts_of("be be not or (to) to")
    assert len(counts_of("ab\ud800cd")) >= 1


def test_columns_are_the_same_in_every_process():
    code = "from ulr.classifier import count_words; print(count_words(['zebra']).indices[0])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(run.stdout) == count_words(["zebra"]).indices[0]
