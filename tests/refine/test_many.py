"""Many label sets at once against one after another."""

from functools import partial
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import softmax

from ulr.errors import ArrayError
from ulr.refine import DISTANCES, many, refine, refine_many

pytestmark = pytest.mark.usefixtures("either_loops")

# The paper's method is what these tests are about.
refine = partial(refine, method="ulr")
refine_many = partial(refine_many, method="ulr")


def sets_of(random, documents, counts):
    """Every combination of some wordings of each label, as the vectors of each set."""
    n_dims = documents.shape[1]
    wordings = [
        documents[random.integers(len(documents))] + 0.5 * random.normal(size=(count, n_dims))
        for count in counts
    ]
    return [np.stack(choice) for choice in product(*wordings)]


def assert_same(together, alone):
    assert len(together) == len(alone)
    for one, other in zip(together, alone, strict=True):
        np.testing.assert_array_equal(one.predictions, other.predictions)
        np.testing.assert_array_equal(one.unrefined, other.unrefined)
        np.testing.assert_array_equal(one.changed, other.changed)
        np.testing.assert_allclose(one.objective, other.objective, rtol=1e-9)
        np.testing.assert_allclose(one.centroids, other.centroids, rtol=1e-9, atol=1e-12)
        scale = np.abs(other.scores).max()
        np.testing.assert_allclose(one.scores, other.scores, atol=1e-5 * scale)
        assert (one.kept, one.converged) == (other.kept, other.converged)


@given(st.integers(0, 10_000), st.sampled_from(["cosine", "l2", "dot"]), st.integers(1, 3))
@settings(deadline=None, max_examples=25)
def test_each_set_is_refined_as_if_alone(seed, distance, threads):
    random = np.random.default_rng(seed)
    documents = random.normal(size=(random.integers(1, 300), 6)).astype(np.float32)
    sets = sets_of(random, documents, [2, 3, 2])
    together = list(refine_many(documents, sets, distance=distance, threads=threads))
    assert_same(together, [refine(documents, labels, distance=distance) for labels in sets])


def test_sets_may_differ_in_size_and_come_in_groups(monkeypatch):
    monkeypatch.setattr(many, "_MOST_SETS", 3)
    random = np.random.default_rng(0)
    documents = random.normal(size=(500, 8))
    documents[3] = 0.0
    sets = [random.normal(size=(n, 8)) for n in (2, 5, 5, 3, 9, 2, 4)]
    assert_same(list(refine_many(documents, sets)), [refine(documents, s) for s in sets])


@pytest.mark.parametrize("distance", sorted(DISTANCES))
def test_settings_and_methods_are_those_of_refine(distance):
    random = np.random.default_rng(1)
    documents = random.normal(size=(200, 4))
    sets = [random.normal(size=(4, 4)) for _ in range(3)]
    if distance == "jensen-shannon":
        documents, sets = softmax(documents, axis=1), [softmax(s, axis=1) for s in sets]
    for options in (
        {"method": "none"},
        {"max_iterations": 2, "keep": "last"},
        {"anchor_weight": 0.2, "empty_cluster": "previous"},
    ):
        together = list(refine_many(documents, sets, distance=distance, **options))
        assert_same(together, [refine(documents, s, distance=distance, **options) for s in sets])


def test_no_sets_are_no_results():
    assert list(refine_many(np.ones((2, 2)), [])) == []


def test_what_cannot_be_used_gets_one_clear_sentence():
    with pytest.raises(ArrayError, match="labels has n_dims=3, but the documents have 2"):
        list(refine_many(np.ones((2, 2)), [np.eye(2), np.eye(3)]))
    with pytest.raises(ArrayError, match="method must be one of auto, ulr, none, mixture; got 'x'"):
        list(refine_many(np.ones((2, 2)), [np.eye(2)], method="x"))
