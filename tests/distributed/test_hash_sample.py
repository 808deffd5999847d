"""Samples by hash: the same texts whatever the files and their order, not filled by one text."""

import random
from collections import Counter

import pytest
from partitioned import content, run_job, run_single, write_partitions

from ulr.distributed.executors import SerialExecutor
from ulr.jobs.documents import HashSample, text_hashes

MOST = 300


def with_copies(n_distinct, copies):
    """Different texts, and some of them many times."""
    texts = [f"rain {i}" for i in range(n_distinct)]
    return texts + [text for text, count in copies.items() for _ in range(count)]


def draw(texts, size):
    """The sample of batches of some size, drawn in one reading."""
    sample = HashSample(MOST, 0)
    for start in range(0, len(texts), size):
        batch = texts[start : start + size]
        sample.add(range(start, start + len(batch)), batch)
    return sample.finish(len(texts), 0)


def smallest_hashed(count):
    """The texts among many that have the smallest hashes, and so are in every sample."""
    return sorted((f"snow {i}" for i in range(100_000)), key=lambda t: text_hashes([t], b"0")[0])[
        :count
    ]


def test_a_frequent_text_is_at_most_a_hundredth_of_the_sample():
    frequent = smallest_hashed(1)[0]
    found = draw(with_copies(2_000, {frequent: 50_000}), 1_000)
    assert len(found.texts) == MOST
    assert Counter(found.texts)[frequent] == MOST // 100


@pytest.mark.parametrize("size", [1, 7, 1_000])
def test_the_sample_depends_on_neither_order_nor_batches(size):
    texts = with_copies(2_000, dict.fromkeys(smallest_hashed(5), 40) | {"fog": 3_000})
    expected = Counter(draw(texts, 100).texts)
    random.Random(size).shuffle(texts)
    found = draw(texts, size)
    assert Counter(found.texts) == expected
    assert [texts[row] for row in found.rows] == found.texts


def test_few_different_texts_give_a_smaller_sample():
    found = draw(["rain", "snow"] * 1_000, 100)
    assert Counter(found.texts) == {"rain": 3, "snow": 3}
    assert found.n_rows == 2_000


def test_all_documents_are_kept_if_they_are_few():
    found = draw(["rain", "snow"] * (MOST // 2), 100)
    assert found.rows is None
    assert len(found.texts) == MOST


@pytest.mark.parametrize("sizes", [[1_300], [400, 900], [100] * 13])
def test_files_full_of_copies_give_the_model_of_one_process(tmp_path, word_vectors, sizes):
    frequent = smallest_hashed(2)
    texts = with_copies(100, dict.fromkeys(frequent, 600))
    source = write_partitions(tmp_path / "in", sizes, texts=texts)
    single = run_single(source, word_vectors, tmp_path / "single")
    report = run_job(source, word_vectors, tmp_path / "out", SerialExecutor())
    assert report.job.fitted_documents == single.fitted_documents == 106
    assert content(tmp_path / "out") == content(tmp_path / "single")
