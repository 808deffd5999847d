"""Samples by hash: the same texts whatever the files and their order, not filled by one text."""

import random
from collections import Counter

import pytest

from ulr.jobs import HashSample

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
    return sample.finish(len(texts), 0, 0)


def always_drawn():
    """A text that is in every sample, since its hash is the smallest of very many."""
    sample = HashSample(1, 0)
    texts = [f"snow {i}" for i in range(100_000)]
    sample.add(range(len(texts)), texts)
    return sample.finish(len(texts), 0, 0).texts[0]


def test_a_frequent_text_is_at_most_a_hundredth_of_the_sample():
    frequent = always_drawn()
    found = draw(with_copies(2_000, {frequent: 50_000}), 1_000)
    assert len(found.texts) == MOST
    assert Counter(found.texts)[frequent] == MOST // 100


@pytest.mark.parametrize("size", [1, 7, 1_000])
def test_the_sample_depends_on_neither_order_nor_batches(size):
    texts = with_copies(2_000, {always_drawn(): 40, "fog": 3_000})
    expected = Counter(draw(texts, 100).texts)
    random.Random(size).shuffle(texts)
    found = draw(texts, size)
    assert Counter(found.texts) == expected
    assert [texts[row] for row in found.rows] == found.texts


@pytest.mark.parametrize("size", [100, 700])
def test_samples_of_partitions_merge_into_the_sample_of_all(size):
    texts = with_copies(2_000, {always_drawn(): 40, "fog": 300})
    merged = HashSample(MOST, 0)
    for start in range(0, len(texts), size):
        part = texts[start : start + size]
        own = HashSample(MOST, 0, merged.limit)
        own.add(range(start, start + len(part)), part)
        found = own.finish(len(part), 0, 0)
        rows = range(start, start + len(part)) if found.rows is None else found.rows.tolist()
        merged.add(rows, found.texts)
    found, expected = merged.finish(len(texts), 0, 0), draw(texts, 100)
    assert found.texts == expected.texts
    assert found.rows.tolist() == expected.rows.tolist()


def test_few_different_texts_give_a_smaller_sample_and_few_documents_are_all_kept():
    found = draw(["rain", "snow"] * 1_000, 100)
    assert Counter(found.texts) == {"rain": 3, "snow": 3}
    assert found.n_rows == 2_000
    found = draw(["rain", "snow"] * (MOST // 2), 100)
    assert found.rows is None
    assert len(found.texts) == MOST
