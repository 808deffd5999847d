"""Ensembles against their members refined one by one."""

import itertools
import json

import numpy as np
import pytest
from problems import topics

from ulr.errors import ArrayError
from ulr.refinement import refine, refine_ensemble, rule_from_arrays, score

WAYS = [
    ("cosine", "ulr"),
    ("cosine", "none"),
    ("cosine", "discriminant"),
    ("l2", "ulr"),
    ("l2", "none"),
    ("dot", "ulr"),
]


def task(n_sets=4, seed=0, off=0.5, **kind):
    """Documents and several phrasings of their topics."""
    documents, anchors, _ = topics(seed, **kind)
    random = np.random.default_rng(seed)
    return documents, [anchors + off * random.normal(size=anchors.shape) for _ in range(n_sets)]


@pytest.mark.parametrize(("distance", "method"), WAYS)
def test_the_mean_of_the_members_scores_decides(distance, method):
    documents, sets = task(seed=1)
    options = {"distance": distance, "method": method}
    result = refine_ensemble(documents, sets, **options)
    members = [refine(documents, each, **options) for each in sets]
    expected = np.mean([member.scores.astype(np.float64) for member in members], axis=0)
    np.testing.assert_allclose(result.scores, expected, atol=1e-4 * np.abs(expected).max())
    assert (result.predictions == expected.argmax(axis=1)).mean() > 0.999
    assert len({tuple(member.predictions) for member in members}) > 1
    assert (result.n_sets, result.method, result.distance) == (4, method, distance)
    changed = sum(member.trace[1].changed for member in members if member.n_iter > 1)
    assert len(result.trace) == max(member.n_iter for member in members)
    if method != "none":
        assert result.trace[1].changed == changed


@pytest.mark.parametrize(("distance", "method"), WAYS)
def test_a_set_repeated_decides_as_the_set_alone(distance, method):
    documents, sets = task(seed=2)
    alone = refine(documents, sets[0], distance=distance, method=method)
    result = refine_ensemble(documents, sets[:1] * 5, distance=distance, method=method)
    np.testing.assert_array_equal(result.predictions, alone.predictions)
    np.testing.assert_array_equal(result.unrefined, alone.unrefined)
    np.testing.assert_allclose(result.centroids, alone.centroids, rtol=1e-12)
    assert [done.changed for done in result.trace] == [5 * done.changed for done in alone.trace]


@pytest.mark.parametrize(("distance", "method"), WAYS)
def test_the_order_of_the_sets_does_not_matter(distance, method):
    documents, sets = task(seed=3)
    results = [
        refine_ensemble(documents, order, distance=distance, method=method)
        for order in itertools.islice(itertools.permutations(sets), 0, 24, 11)
    ]
    for other in results[1:]:
        np.testing.assert_allclose(other.scores, results[0].scores, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("distance", "method"), WAYS)
def test_new_documents_are_scored_as_the_fitted_ones_after_saving(distance, method):
    documents, sets = task(seed=4)
    result = refine_ensemble(documents, sets, distance=distance, method=method)
    rule = rule_from_arrays(result.rule.arrays())
    labels, scores = score(documents, rule)
    np.testing.assert_array_equal(labels, result.predictions)
    np.testing.assert_array_equal(scores, result.scores)


@pytest.mark.parametrize("method", ["ulr", "discriminant"])
def test_known_and_excluded_documents_are_as_for_one_set(method):
    documents, sets = task(seed=5)
    known = np.full(len(documents), -1)
    known[:4], known[4:8] = 3, -2
    result = refine_ensemble(documents, sets, known=known, method=method)
    assert (result.predictions[:4] == 3).all()
    assert (result.predictions[4:8] == -1).all()
    assert (result.unrefined[4:8] == -1).all()


@pytest.mark.parametrize(("distance", "method"), WAYS)
def test_the_unrefined_labels_are_those_of_all_sets_for_any_number_of_threads(distance, method):
    documents, sets = task(seed=6, n_sets=5)
    options = {"distance": distance, "method": method}
    one, many = (refine_ensemble(documents, sets, n_jobs=n, **options) for n in (1, 3))
    np.testing.assert_array_equal(one.unrefined, many.unrefined)
    none = [refine(documents, each, distance=distance, method="none").scores for each in sets]
    np.testing.assert_array_equal(many.unrefined, np.mean(none, axis=0).argmax(axis=1))


def test_every_set_is_reported():
    documents, sets = task()
    seen = []
    refine_ensemble(documents, sets, on_set=seen.append)
    assert seen == [4, 4, 4, 4]


def test_sets_are_created_on_demand():
    documents, sets = task()

    class Lazy:
        created = 0

        def __len__(self):
            return len(sets)

        def __getitem__(self, index):
            Lazy.created += 1
            return sets[index]

    result = refine_ensemble(documents, Lazy())
    np.testing.assert_array_equal(result.scores, refine_ensemble(documents, sets).scores)
    assert Lazy.created <= len(sets) + 2


def test_what_cannot_be_averaged_is_refused():
    documents, sets = task()
    with pytest.raises(ArrayError, match="at least one set"):
        refine_ensemble(documents, [])
    with pytest.raises(ArrayError, match="number 1 has 3"):
        refine_ensemble(documents, [sets[0], sets[1][:3]])
    with pytest.raises(ArrayError, match="needs vectors"):
        refine_ensemble(documents, sets, distance="jensen-shannon")
    with pytest.raises(ArrayError, match="missing or disagree"):
        rule_from_arrays({"offsets": np.zeros(3)})


def test_a_rule_is_plain_arrays():
    documents, sets = task()
    arrays = refine_ensemble(documents, sets).rule.arrays()
    assert all(isinstance(array, np.ndarray) for array in arrays.values())
    json.dumps({name: array.shape for name, array in arrays.items()})
