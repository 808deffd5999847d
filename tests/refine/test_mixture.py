"""Refinement by mixture: what it finds, what it leaves alone, and that it is one rule for all."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ulr.errors import ArrayError
from ulr.metrics import calibration_error
from ulr.refine import calibrate, refine, refine_many
from ulr.refine.calibration import typical_lead


def topics(n=900, n_labels=4, n_dims=48, seed=0, off=0.9, shares=None):
    """Documents of some topics with much in common, label vectors beside the topics, the truth."""
    random = np.random.default_rng(seed)
    common = 2.0 * random.normal(size=n_dims)
    means = random.normal(size=(n_labels, n_dims))
    truth = random.choice(n_labels, size=n, p=shares)
    documents = common + means[truth] + 1.1 * random.normal(size=(n, n_dims))
    labels = common + means + off * random.normal(size=(n_labels, n_dims))
    return documents.astype(np.float32), labels.astype(np.float32), truth


def accuracy(result, truth):
    return float((result.predictions == truth).mean())


@pytest.mark.parametrize("seed", range(4))
def test_it_is_better_than_the_names_and_the_papers_refinement(seed):
    documents, labels, truth = topics(seed=seed, off=1.4)
    mixture, paper = refine(documents, labels), refine(documents, labels, method="ulr")
    assert mixture.method == "mixture"
    assert accuracy(mixture, truth) > 0.9
    assert accuracy(mixture, truth) >= accuracy(paper, truth)
    np.testing.assert_array_equal(mixture.unrefined, paper.unrefined)


@pytest.mark.parametrize("seed", range(3))
def test_skewed_sizes_are_found(seed):
    shares = np.array([0.7, 0.2, 0.07, 0.03])
    documents, labels, truth = topics(3000, seed=seed, shares=shares)
    found = refine(documents, labels).predictions
    assert np.abs(np.bincount(found, minlength=4) / 3000 - shares).max() < 0.05
    assert (found == truth).mean() > 0.95


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64])
def test_fitted_documents_are_decided_as_new_ones(kind):
    documents, labels, _ = topics(seed=3)
    result = refine(documents.astype(kind), labels)
    found, scores = result.rule.decide(documents.astype(kind))
    np.testing.assert_array_equal(found, result.predictions)
    np.testing.assert_array_equal(scores, result.scores)
    np.testing.assert_array_equal(scores.argmax(axis=1), found)
    one_by_one = [result.rule.decide(row[None])[0][0] for row in documents[:50].astype(kind)]
    np.testing.assert_array_equal(one_by_one, found[:50])


@settings(max_examples=30, deadline=None)
@given(
    st.integers(2, 60),
    st.integers(2, 6),
    st.integers(2, 12),
    st.integers(0, 2**32 - 1),
    st.booleans(),
)
def test_any_data_gives_an_answer_that_its_own_rule_repeats(n, n_labels, n_dims, seed, rounded):
    random = np.random.default_rng(seed)
    documents = random.normal(size=(n, n_dims)).astype(np.float32)
    labels = random.normal(size=(n_labels, n_dims)).astype(np.float32)
    if rounded:  # duplicates, ties and zero rows
        documents, labels = documents.round(), labels.round() + 0.25
    result = refine(documents, labels, method="mixture")
    assert np.isfinite(result.scores).all()
    assert ((result.predictions >= 0) & (result.predictions < n_labels)).all()
    if result.rule is not None:
        np.testing.assert_array_equal(result.rule.decide(documents)[0], result.predictions)


def test_the_number_of_threads_and_where_the_documents_lie_change_nothing(tmp_path):
    documents, labels, _ = topics(2500, seed=4)
    np.save(tmp_path / "documents.npy", documents)
    mapped = np.load(tmp_path / "documents.npy", mmap_mode="r")
    expected = refine(documents, labels, block_rows=300, threads=1)
    for given_documents, threads in ((documents, 3), (mapped, 2)):
        result = refine(given_documents, labels, block_rows=300, threads=threads)
        np.testing.assert_array_equal(result.predictions, expected.predictions)
        np.testing.assert_array_equal(result.scores, expected.scores)
    in_one = refine(documents, labels)
    np.testing.assert_array_equal(in_one.predictions, expected.predictions)
    np.testing.assert_allclose(in_one.scores, expected.scores, rtol=1e-3, atol=1e-3)


def test_only_directions_count():
    documents, labels, _ = topics(seed=5)
    lengths = np.random.default_rng(0).uniform(0.1, 9, size=(len(documents), 1))
    result = refine((documents * lengths).astype(np.float32), 7 * labels)
    np.testing.assert_array_equal(result.predictions, refine(documents, labels).predictions)


def test_sizes_may_be_given_or_equal():
    shares = [0.85, 0.05, 0.05, 0.05]
    documents, labels, truth = topics(1500, seed=6, off=1.5, shares=shares)
    given_shares = refine(documents, labels, prior=shares)
    assert accuracy(given_shares, truth) > 0.9
    scaled = refine(documents, labels, prior=[17, 1, 1, 1])
    np.testing.assert_array_equal(scaled.predictions, given_shares.predictions)
    even, truth = topics(1500, seed=6, off=1.5)[::2]
    assert accuracy(refine(even, labels, prior="balanced"), truth) > 0.9


def test_known_documents_stay_and_help():
    documents, labels, truth = topics(seed=7, off=3.0)
    known = np.full(len(documents), -1)
    for label in range(4):
        known[np.flatnonzero(truth == label)[:5]] = label
    result = refine(documents, labels, known=known)
    assert result.method == "mixture"
    np.testing.assert_array_equal(result.predictions[known >= 0], known[known >= 0])
    assert accuracy(result, truth) > max(0.95, accuracy(refine(documents, labels), truth))


def test_extra_labels_take_documents_and_are_never_predicted():
    documents, labels, truth = topics(1200, seed=8)
    own = truth < 3
    result = refine(documents, labels[:3], extra_labels=labels[3:])
    assert result.scores.shape == (1200, 3)
    assert result.predictions.max() == 2
    np.testing.assert_array_equal(
        result.unrefined, refine(documents, labels[:3], method="none").predictions
    )
    without = refine(documents, labels[:3])
    assert accuracy(result, truth) >= (without.predictions == truth)[own].mean() * own.mean() - 0.02


def test_extra_documents_take_part_and_get_no_answer():
    documents, labels, truth = topics(1000, seed=9, off=1.5)
    result = refine(documents[:60], labels, extra_documents=documents[60:])
    assert len(result.predictions) == len(result.scores) == 60
    assert accuracy(result, truth[:60]) > 0.9


@pytest.mark.parametrize("seed", range(3))
def test_documents_that_do_not_fall_into_the_named_classes_are_left_to_the_paper(seed):
    random = np.random.default_rng(seed)
    topic, opinion = random.normal(size=(2, 40)), 0.15 * random.normal(size=40)
    which, likes = random.integers(2, size=800), random.choice([-1, 1], size=800)
    documents = topic[which] + likes[:, None] * opinion + 0.5 * random.normal(size=(800, 40))
    common = 3 * random.normal(size=40)
    names = np.stack([opinion, -opinion]) + 0.3 * 0.15 * random.normal(size=(2, 40))
    labels = common + names / np.linalg.norm(opinion)
    result = refine(common + documents, labels)
    paper = refine(common + documents, labels, method="ulr")
    assert result.rule is None
    np.testing.assert_array_equal(result.predictions, paper.predictions)


def test_zero_documents_are_counted_and_harm_nothing():
    documents, labels, truth = topics(seed=10)
    with_zero = np.concatenate([documents, np.zeros((7, 48), dtype=np.float32)])
    result = refine(with_zero, labels)
    assert result.n_zero_documents == 7
    assert accuracy(refine(documents, labels), truth) == (result.predictions[:-7] == truth).mean()
    assert len(set(result.predictions[-7:])) == 1


@pytest.mark.parametrize("n", [1, 2, 3])
def test_next_to_no_documents_are_no_trouble(n):
    documents, labels, _ = topics(n)
    result = refine(documents, labels)
    assert np.isfinite(result.scores).all()
    assert len(result.predictions) == n


def test_more_dimensions_than_a_covariance_is_worth(monkeypatch):
    documents, labels, truth = topics(seed=11)
    from ulr.refine import mixture

    monkeypatch.setattr(mixture, "MOST_DIMS", 16)
    result = refine(documents, labels, method="mixture")
    assert accuracy(result, truth) > 0.9
    np.testing.assert_array_equal(result.rule.decide(documents)[0], result.predictions)


def test_every_pass_is_told():
    documents, labels, _ = topics(seed=12)
    told = []
    result = refine(documents, labels, on_pass=told.append)
    assert [each.iteration for each in told] == list(range(result.n_iterations))
    np.testing.assert_array_equal([each.changed for each in told], result.changed)
    np.testing.assert_array_equal([each.objective for each in told], result.objective)
    assert refine(documents, labels, max_iterations=4).n_iterations == 4
    one = refine(documents, labels, max_iterations=1)
    np.testing.assert_array_equal(one.predictions, one.unrefined)


def test_many_sets_are_as_each_alone():
    documents, labels, _ = topics(seed=13)
    sets = [labels, labels[::-1], labels + 0.1]
    for together, own in zip(refine_many(documents, sets), sets, strict=True):
        np.testing.assert_array_equal(together.predictions, refine(documents, own).predictions)


def test_auto_is_the_papers_where_only_the_paper_has_what_is_asked():
    documents, labels, _ = topics(80)
    for asked in (
        {"distance": "l2"},
        {"anchor_weight": 0.5},
        {"keep": "last"},
        {"empty_cluster": "mean"},
        {"known_weight": 0.5},
        {"start": "random"},
    ):
        assert refine(documents, labels, **asked).method == "ulr"
    wide = np.random.default_rng(0).normal(size=(20, 2049))
    assert refine(wide, wide[:3]).method == "ulr"
    assert refine(wide[:, 1:], wide[:3, 1:]).method == "mixture"
    for asked in ({"distance": "l2"}, {"anchor_weight": 0.5}, {"start": "random"}):
        with pytest.raises(ArrayError, match=r"method 'mixture' has no .*; use method 'ulr', or"):
            refine(documents, labels, method="mixture", **asked)


@pytest.mark.parametrize(
    ("message", "options"),
    [
        ("prior must be one of estimate, balanced; got 'even'", {"prior": "even"}),
        ("a positive proportion for each of the 4 labels; got", {"prior": [0.5, 0.5]}),
        ("a positive proportion for each of the 4 labels; got", {"prior": [1, 1, 1, 0]}),
        ("a positive proportion for each of the 4 labels; got", {"prior": [1, 1, 1, "x"]}),
        ("method 'ulr' has no prior; use", {"prior": "balanced", "method": "ulr"}),
        ("method 'none' has no prior; use", {"prior": [1, 1, 1, 1], "method": "none"}),
    ],
)
def test_priors_that_cannot_be_are_one_sentence(message, options):
    documents, labels, _ = topics(30)
    with pytest.raises(ArrayError, match=message):
        refine(documents, labels, **options)


def test_documents_of_other_dimensions_are_refused():
    documents, labels, _ = topics(200)
    mixture = refine(documents, labels).rule
    with pytest.raises(ArrayError, match=r"must have n_dims=48, .*; got 47"):
        mixture.decide(documents[:, 1:])


@pytest.mark.parametrize("method", ["mixture", "ulr"])
def test_calibrated_confidence_is_near_the_share_of_right_answers(method):
    for seed, off in ((0, 0.8), (1, 1.2), (2, 1.5)):
        documents, labels, truth = topics(1500, n_labels=6, seed=seed, off=off)
        result = refine(documents, labels, method=method)
        sharp = calibrate(documents, labels, result, method=method)
        for factor, limit in ((1.0, 0.3), (0.01, 0.5)):
            scores = factor * sharp * (result.scores - result.scores.max(axis=1, keepdims=True))
            error = calibration_error(result.predictions == truth, 1 / np.exp(scores).sum(axis=1))
            assert (error < limit) == (factor == 1.0)


def test_few_dimensions_are_calibrated_by_the_lead_alone():
    documents, labels, _ = topics(50, n_dims=5)
    result = refine(documents, labels)
    assert calibrate(documents, labels, result) == 1 / typical_lead(result.scores)
