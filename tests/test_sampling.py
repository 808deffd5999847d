"""A reservoir is a uniform sample of a stream."""

import random
from collections import Counter

from ulr.sampling import Reservoir


def sample(n_items, size, seed):
    reservoir = Reservoir(size, random.Random(seed).randrange)
    for item in range(n_items):
        reservoir.add(item)
    return reservoir


def test_a_short_stream_is_kept_completely():
    reservoir = sample(3, 5, seed=1)
    assert (reservoir.items, reservoir.n_added) == ([0, 1, 2], 3)


def test_every_item_is_equally_likely():
    counts = Counter(item for seed in range(4000) for item in sample(10, 3, seed).items)
    assert all(1080 <= counts[item] <= 1320 for item in range(10))  # 1,200 ± 4 deviations


def test_items_are_different_and_depend_on_the_seed():
    samples = [sample(1000, 20, seed).items for seed in (1, 1, 2)]
    assert len(set(samples[0])) == 20
    assert samples[0] == samples[1] != samples[2]
