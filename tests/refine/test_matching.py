from itertools import permutations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ulr.refine import match_one_to_one


@given(st.integers(0, 1000), st.integers(2, 5))
def test_no_other_matching_costs_less(seed, n):
    cost = np.random.default_rng(seed).normal(size=(n, n))
    matched = match_one_to_one(cost)
    assert sorted(matched.tolist()) == list(range(n))
    best = min(sum(cost[i, j] for i, j in enumerate(order)) for order in permutations(range(n)))
    assert np.isclose(cost[np.arange(n), matched].sum(), best)
