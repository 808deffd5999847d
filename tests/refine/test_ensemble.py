"""Ensembles against their members refined one by one, and many sets with what is beside them."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import softmax

from ulr.errors import ArrayError
from ulr.refine import Rule, ensemble, many, refine, refine_ensemble, refine_many

WAYS = [
    ("cosine", "ulr"),
    ("cosine", "none"),
    ("cosine", "mixture"),
    ("l2", "ulr"),
    ("l2", "none"),
    ("dot", "ulr"),
    ("dot", "none"),
]


def task(n=200, n_labels=3, n_sets=4, n_dims=12, seed=0, off=0.9):
    """Documents of some topics with something in common, and several wordings of the topics."""
    random = np.random.default_rng(seed)
    common = random.normal(size=n_dims)
    topics = random.normal(size=(n_labels, n_dims))
    documents = common + topics[random.integers(n_labels, size=n)]
    documents += 0.8 * random.normal(size=documents.shape)
    sets = common + topics + off * random.normal(size=(n_sets, n_labels, n_dims))
    return documents.astype(np.float32), list(sets.astype(np.float32))


def mean_scores(documents, sets, **options):
    """The mean of the scores of the sets that have a say, each refined alone."""
    members = [refine(documents, labels, **options) for labels in sets]
    learnt = [member for member in members if member.rule is not None]
    total = np.mean([m.scores.astype(np.float64) for m in learnt or members], axis=0)
    if options.get("distance") == "l2":  # an ensemble leaves out what all labels have in common
        total += np.einsum("ij,ij->i", documents, documents, dtype=np.float64)[:, None]
    return total


def assert_decides(result, expected):
    """The scores are those expected, and every label is one of the best by them."""
    limit = 3e-5 * max(1.0, np.abs(expected).max())
    np.testing.assert_allclose(result.scores, expected, atol=limit)
    own = expected[np.arange(len(expected)), result.predictions]
    assert (own >= expected.max(axis=1) - limit).all()
    np.testing.assert_array_equal(result.scores.argmax(axis=1), result.predictions)


@pytest.mark.parametrize(("distance", "method"), WAYS)
def test_the_largest_mean_of_the_members_scores_decides(distance, method):
    documents, sets = task(seed=1)
    options = {"distance": distance, "method": method}
    result = refine_ensemble(documents, sets, **options)
    expected = mean_scores(documents, sets, **options)
    assert_decides(result, expected)
    np.testing.assert_array_equal(result.predictions, expected.argmax(axis=1))
    assert len({tuple(refine(documents, s, **options).predictions) for s in sets}) > 1
    assert (result.n_sets, result.method, result.distance) == (4, method, distance)


@settings(deadline=None, max_examples=20)
@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from(WAYS),
    st.integers(1, 40),
    st.integers(2, 5),
    st.integers(1, 5),
    st.booleans(),
)
def test_any_data_is_decided_by_the_mean(seed, way, n, n_labels, n_sets, rounded):
    random = np.random.default_rng(seed)
    documents = random.normal(size=(n, 4)).astype(np.float32)
    sets = random.normal(size=(n_sets, n_labels, 4)).astype(np.float32)
    if rounded:  # duplicates, ties and zero rows
        documents, sets = documents.round(), sets.round() + 0.25
    options = dict(zip(("distance", "method"), way, strict=True))
    result = refine_ensemble(documents, sets, **options)
    assert_decides(result, mean_scores(documents, sets, **options))
    found, scores = result.rule.decide(documents)
    np.testing.assert_array_equal(found, result.predictions)
    np.testing.assert_array_equal(scores, result.scores)


@pytest.mark.parametrize(("distance", "method"), WAYS)
def test_a_set_repeated_decides_as_the_set_alone(distance, method):
    documents, sets = task(seed=2)
    alone = refine(documents, sets[0], distance=distance, method=method)
    result = refine_ensemble(documents, sets[:1] * 5, distance=distance, method=method)
    np.testing.assert_array_equal(result.predictions, alone.predictions)
    np.testing.assert_array_equal(result.unrefined, alone.unrefined)
    np.testing.assert_array_equal(result.changed, 5 * alone.changed)
    np.testing.assert_allclose(result.objective, alone.objective, rtol=1e-12)
    np.testing.assert_allclose(result.centroids, alone.centroids, rtol=1e-12)


@pytest.mark.parametrize(("distance", "method"), WAYS)
def test_the_order_of_the_sets_does_not_matter(distance, method):
    documents, sets = task(seed=3)
    results = [
        refine_ensemble(documents, order, distance=distance, method=method)
        for order in itertools.islice(itertools.permutations(sets), 0, 24, 7)
    ]
    for other in results[1:]:
        np.testing.assert_array_equal(other.predictions, results[0].predictions)
        np.testing.assert_allclose(other.scores, results[0].scores, rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(other.objective, results[0].objective, rtol=1e-12)
        np.testing.assert_array_equal(other.changed, results[0].changed)


@pytest.mark.parametrize(("distance", "method"), WAYS)
def test_new_documents_are_decided_as_the_fitted_ones(distance, method):
    documents, sets = task(seed=4)
    result = refine_ensemble(documents, sets, distance=distance, method=method)
    found, scores = result.rule.decide(documents)
    np.testing.assert_array_equal(found, result.predictions)
    np.testing.assert_array_equal(scores, result.scores)
    alone = [result.rule.decide(row[None])[0][0] for row in documents[:30]]
    np.testing.assert_array_equal(alone, found[:30])


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("distance", ["cosine", "l2", "dot"])
def test_documents_of_any_precision(kind, distance):
    documents, sets = task(seed=5)
    documents = documents.astype(kind)
    result = refine_ensemble(documents, sets, distance=distance)
    expected = mean_scores(documents, sets, distance=distance)
    np.testing.assert_array_equal(result.predictions, expected.argmax(axis=1))
    np.testing.assert_array_equal(result.rule.decide(documents)[0], result.predictions)


@pytest.mark.parametrize("distance", ["cosine", "l2", "dot"])
def test_the_first_of_equal_labels_is_taken(distance):
    documents, (one, other, *_) = task(seed=6, n_labels=4)
    # Labels 1 and 2 go by each other's words in the second set, so that together they are equal.
    swapped = one[[0, 2, 1, 3]]
    result = refine_ensemble(documents, [one, swapped], distance=distance, method="none")
    assert set(result.predictions) == set(result.unrefined) == {0, 1, 3}
    twice = [each[[0, 0, 1, 2]] for each in (one, other)]
    assert 1 not in refine_ensemble(documents, twice, distance=distance, method="none").predictions


@pytest.mark.parametrize(("distance", "method"), WAYS)
def test_documents_that_are_known_stay_and_pull(distance, method):
    documents, sets = task(seed=7)
    free = refine_ensemble(documents, sets, distance=distance, method=method)
    known = np.full(len(documents), -1)
    known[:12] = (free.predictions[:12] + 1) % 3
    result = refine_ensemble(documents, sets, distance=distance, method=method, known=known)
    np.testing.assert_array_equal(result.predictions[:12], known[:12])
    expected = mean_scores(documents, sets, distance=distance, method=method, known=known)
    np.testing.assert_array_equal(result.predictions[12:], expected.argmax(axis=1)[12:])
    np.testing.assert_array_equal(result.unrefined, free.unrefined)
    moved = not np.array_equal(result.scores, free.scores)
    assert moved == (method != "none")


@pytest.mark.parametrize(("distance", "method"), WAYS)
def test_unrefined_is_what_the_names_say_together(distance, method):
    documents, sets = task(seed=8)
    result = refine_ensemble(documents, sets, distance=distance, method=method)
    by_name = mean_scores(documents, sets, distance=distance, method="none").argmax(axis=1)
    np.testing.assert_array_equal(result.unrefined, by_name)
    assert (result.n_moved == 0) == (method == "none")


@pytest.mark.parametrize(("distance", "method"), WAYS)
@pytest.mark.parametrize("most", [2, 100])
def test_objectives_are_means_and_changes_sums(distance, method, most):
    documents, sets = task(seed=9, n_sets=6)
    documents[:3] = 0.0
    options = {"distance": distance, "method": method, "max_iterations": most}
    members = [refine(documents, labels, **options) for labels in sets]
    result = refine_ensemble(documents, sets, **options)
    length = max(member.n_iterations for member in members)
    objective, changed = np.zeros(length), np.zeros(length, dtype=int)
    for member in members:
        last, n = member.objective[-1], member.n_iterations
        objective += np.append(member.objective, np.full(length - n, last)) / len(members)
        changed[:n] += member.changed
    np.testing.assert_allclose(result.objective, objective, rtol=1e-9)
    np.testing.assert_array_equal(result.changed, changed)
    assert (result.n_iterations, result.kept) == (length, length - 1)
    assert result.converged == all(member.converged for member in members)
    assert result.n_zero_documents == 3


def test_one_set_that_has_not_settled_is_told():
    documents, sets = task(seed=10, n_sets=3)
    settled = refine(documents, sets[0], method="ulr").centroids
    options = {"method": "ulr", "max_iterations": 2, "anchor_weight": 1.0}
    assert refine_ensemble(documents, [settled], **options).converged
    assert not refine_ensemble(
        documents, [settled, *sets], method="ulr", max_iterations=2
    ).converged


def test_centroids_are_the_means_of_the_members():
    documents, sets = task(seed=11)
    members = [refine(documents, labels, distance="dot") for labels in sets]
    result = refine_ensemble(documents, sets, distance="dot")
    expected = np.mean([member.centroids for member in members], axis=0)
    np.testing.assert_allclose(result.centroids, expected, rtol=1e-9)


def opinions(seed=0):
    """Documents of two topics, names of the topics, and names that do not explain the clusters."""
    random = np.random.default_rng(seed)
    topic, opinion = random.normal(size=(2, 40)), 0.15 * random.normal(size=40)
    which, likes = random.integers(2, size=800), random.choice([-1, 1], size=800)
    documents = topic[which] + likes[:, None] * opinion + 0.5 * random.normal(size=(800, 40))
    common = 3 * random.normal(size=40)
    names = np.stack([opinion, -opinion]) + 0.3 * 0.15 * random.normal(size=(2, 40))
    return common + documents, common + topic, common + names / np.linalg.norm(opinion)


def test_a_set_given_back_to_the_paper_has_no_say_unless_all_are():
    documents, good, bad = opinions()
    assert refine(documents, good).rule is not None
    assert refine(documents, bad).rule is None
    alone = refine(documents, good)
    for sets in ([good, bad], [bad, bad, good]):
        result = refine_ensemble(documents, sets)
        np.testing.assert_array_equal(result.predictions, alone.predictions)
        np.testing.assert_allclose(result.scores, alone.scores, rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(result.centroids, alone.centroids)
        assert result.n_sets == len(sets)
    paper = refine(documents, bad, method="ulr")
    result = refine_ensemble(documents, [bad, bad])
    np.testing.assert_array_equal(result.predictions, paper.predictions)
    np.testing.assert_allclose(result.scores, paper.scores, atol=1e-5)


def test_sets_are_taken_a_few_at_a_time_and_each_is_told(monkeypatch):
    documents, sets = task(seed=12, n_sets=7)
    whole = refine_ensemble(documents, sets)
    monkeypatch.setattr(ensemble, "_SETS_AT_A_TIME", 3)
    told = []
    result = refine_ensemble(documents, sets, on_set=told.append)
    assert told == [7] * 7
    np.testing.assert_array_equal(result.predictions, whole.predictions)
    np.testing.assert_array_equal(result.scores, whole.scores)
    np.testing.assert_array_equal(result.objective, whole.objective)
    unequal = [*sets[:3], sets[3][:2]]
    with pytest.raises(ArrayError, match="equally many labels; the first has 3, number 3 has 2"):
        refine_ensemble(documents, unequal)


def test_what_takes_part_beside_is_as_in_refine():
    documents, sets = task(300, seed=13)
    own, extra, further = documents[:120], documents[120:], sets[3][:1] + 0.5
    beside = {"extra_documents": extra, "extra_labels": further}
    result = refine_ensemble(own, sets[:3], **beside)
    assert result.scores.shape == (120, 3)
    expected = mean_scores(own, sets[:3], **beside)
    np.testing.assert_array_equal(result.predictions, expected.argmax(axis=1))
    assert not np.array_equal(result.scores, refine_ensemble(own, sets[:3]).scores)


def test_threads_change_nothing():
    documents, sets = task(seed=14)
    one, three = (refine_ensemble(documents, sets, threads=threads) for threads in (1, 3))
    np.testing.assert_array_equal(one.predictions, three.predictions)
    np.testing.assert_array_equal(one.scores, three.scores)


@pytest.mark.parametrize(
    ("sets", "options", "message"),
    [
        ([np.eye(3)], {"distance": "jensen-shannon"}, "needs vectors; use cosine, l2 or dot"),
        ([], {}, "an ensemble needs at least one set of labels; got none"),
        ([np.eye(3)], {"distance": "cos"}, "distance must be one of cosine, l2, dot"),
        ([np.eye(3), np.eye(4)], {}, "labels has n_dims=4, but the documents have 3"),
        ([np.eye(3), np.eye(3)[:2]], {}, "equally many labels; the first has 3, number 1 has 2"),
        ([np.eye(3)], {"known": [0, 1, 5, -1]}, "known must be label indices from 0 to 2, or -1"),
    ],
)
def test_ensembles_that_cannot_be_are_one_sentence(sets, options, message):
    with pytest.raises(ArrayError, match=message):
        refine_ensemble(np.ones((4, 3)), sets, **options)


# The rule without a centre


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 2**32 - 1), st.integers(1, 30), st.integers(2, 6), st.booleans())
def test_documents_as_they_are_are_scored_by_slope_and_offset(seed, n, n_labels, rounded):
    random = np.random.default_rng(seed)
    documents = 100 * random.normal(size=(n, 5)).astype(np.float32)
    slopes, offsets = random.normal(size=(n_labels, 5)), random.normal(size=n_labels)
    if rounded:
        documents, slopes, offsets = documents.round(-2), slopes.round(), offsets.round()
    found, scores = Rule(None, slopes, offsets).decide(documents)
    exact = documents.astype(np.float64) @ slopes.T + offsets
    np.testing.assert_allclose(scores, exact, atol=1e-3)
    # Whole numbers are exact in float64, so that here even ties are decided by hand.
    assert (exact[np.arange(n), found] >= exact.max(axis=1) - 1e-9).all()
    if rounded:
        np.testing.assert_array_equal(found, exact.argmax(axis=1))


def test_a_zero_document_has_the_offsets_as_scores():
    rule = Rule(None, np.ones((3, 2)), np.array([0.5, 2.0, 2.0]))
    found, scores = rule.decide(np.zeros((1, 2)))
    np.testing.assert_array_equal(scores, [[0.5, 2.0, 2.0]])
    assert found.tolist() == [1]
    with pytest.raises(ArrayError, match=r"must have n_dims=2, .*; got 3"):
        rule.decide(np.zeros((1, 3)))


# Many sets with something beside them


def assert_same(together, alone):
    together = list(together)
    assert len(together) == len(alone)
    for one, other in zip(together, alone, strict=True):
        for name in ("predictions", "unrefined", "changed"):
            np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
        np.testing.assert_allclose(one.objective, other.objective, rtol=1e-6)
        np.testing.assert_allclose(one.centroids, other.centroids, rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose(one.scores, other.scores, rtol=1e-4, atol=1e-4)
        assert (one.kept, one.converged, one.method) == (other.kept, other.converged, other.method)


def known_ones(n):
    known = np.full(n, -1)
    known[::9] = np.arange(len(known[::9])) % 3
    return known


BESIDE = {
    "nothing": lambda documents, sets: {},
    "known": lambda documents, sets: {"known": known_ones(120)},
    "documents": lambda documents, sets: {"extra_documents": documents[120:]},
    "labels": lambda documents, sets: {"extra_labels": sets[-1][:2] + 0.7},
    "all": lambda documents, sets: {
        "known": known_ones(120),
        "extra_documents": documents[120:],
        "extra_labels": sets[-1][:2] + 0.7,
    },
}


@pytest.mark.parametrize("beside", BESIDE)
@pytest.mark.parametrize(("distance", "method"), WAYS)
def test_each_of_many_sets_is_refined_as_if_alone(distance, method, beside):
    documents, sets = task(200, seed=15)
    options = {"distance": distance, "method": method, **BESIDE[beside](documents, sets)}
    alone = [refine(documents[:120], labels, **options) for labels in sets]
    for threads in (1, 3):
        assert_same(refine_many(documents[:120], sets, threads=threads, **options), alone)


@pytest.mark.parametrize("prior", ["balanced", [0.5, 0.3, 0.2]])
def test_sizes_of_labels_are_the_same_for_all_sets(prior):
    documents, sets = task(seed=16)
    alone = [refine(documents, labels, prior=prior) for labels in sets]
    assert_same(refine_many(documents, sets, prior=prior, threads=2), alone)
    plain = [refine(documents, labels) for labels in sets]
    assert any((a.scores != b.scores).any() for a, b in zip(plain, alone, strict=True))


def test_distributions_with_known_ones_are_refined_as_if_alone():
    documents, sets = task(60, n_dims=5, seed=17)
    documents, sets = softmax(documents, axis=1), [softmax(labels, axis=1) for labels in sets]
    options = {"distance": "jensen-shannon", "known": known_ones(60)}
    alone = [refine(documents, labels, **options) for labels in sets]
    assert_same(refine_many(documents, sets, threads=2, **options), alone)


def test_large_and_streamed_problems_are_solved_one_after_another(monkeypatch, tmp_path):
    documents, sets = task(seed=18)
    alone = [refine(documents, labels) for labels in sets]
    np.save(tmp_path / "documents.npy", documents)
    streamed = np.load(tmp_path / "documents.npy", mmap_mode="r")
    assert_same(refine_many(streamed, sets, threads=2), alone)
    monkeypatch.setattr(many, "_LARGEST_SIDE_BY_SIDE", 0)
    assert_same(refine_many(documents, sets, threads=2), alone)


def test_results_that_nobody_waits_for_are_let_go():
    documents, sets = task(seed=19, n_sets=20)
    results = refine_many(documents, sets, threads=2)
    first = next(results)
    results.close()
    np.testing.assert_array_equal(first.predictions, refine(documents, sets[0]).predictions)


@pytest.mark.parametrize(
    ("sets", "options", "message"),
    [
        (
            [np.eye(3), np.eye(3)[1:]],
            {"prior": [1, 1, 1]},
            "proportions need sets of equally many labels; use prior 'estimate'",
        ),
        (
            [np.eye(3)],
            {"prior": [1, 1, 1], "extra_labels": np.ones((1, 3))},
            "proportions do not go with extra_labels; use prior 'estimate'",
        ),
        ([np.eye(3)], {"extra_labels": np.zeros((1, 3))}, "extra_labels has a zero vector"),
        ([np.eye(3)], {"extra_documents": np.ones((1, 2))}, "extra_documents has n_dims=2, but"),
        ([np.eye(3)], {"known": [0, 1, 2, 0]}, "every document is known; at least one must be -1"),
        ([np.eye(3)], {"prior": "balanced", "method": "ulr"}, "method 'ulr' has no prior"),
    ],
)
def test_many_sets_that_cannot_be_are_one_sentence(sets, options, message):
    with pytest.raises(ArrayError, match=message):
        list(refine_many(np.ones((4, 3)), sets, **options))
