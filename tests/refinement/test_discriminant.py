"""The default method: against its plain version, and what each part is there for."""

import numpy as np
import pytest
import reference
from problems import long_and_short, score, topics, word_counts
from scipy.sparse import csr_matrix

from ulr.refinement import METHODS, refine
from ulr.refinement.constants import Constants

SKEWED = [0.55, 0.35, 0.06, 0.04]
REPEATED = {"n": 800, "n_labels": 8, "n_dims": 64, "spread": 2.0, "off": 1.5, "repeated": 4.0}


def accuracy(result, truth):
    return float((result.predictions == truth).mean())


def assert_scores(result, expected, share=0.02):
    """Float32 passes may flip a document near a border, which moves all scores a little."""
    scale = np.abs(expected - expected.mean(axis=1, keepdims=True)).max()
    np.testing.assert_allclose(result.scores, expected, atol=share * scale)


CASES = {
    "balanced": {},
    "skewed": {"sizes": SKEWED},
    "few": {"n": 40, "n_labels": 6},
    "two labels": {"n": 90, "n_labels": 2, "spread": 2.0},
    "many labels": {"n": 600, "n_labels": 30, "n_dims": 64, "spread": 2.0},
    "many labels, skewed": {"n": 600, "n_labels": 9, "sizes": np.arange(9) / 36},
    "known": {"spread": 1.4},
    "known of one label": {"spread": 1.4},
    "repeated": REPEATED,
    "repeated, known": REPEATED,
    "words": {"spread": 1.6, "off": 1.0},
    "skewed, words": {"spread": 1.6, "sizes": SKEWED},
    "known, words": {"spread": 1.6, "off": 1.0},
}


@pytest.mark.parametrize("case", CASES)
def test_scores_are_those_of_the_plain_version_in_every_case(case):
    documents, anchors, truth = topics(5, **CASES[case])
    known = np.where(np.arange(len(truth)) % 9 == 0, truth, -1) if "known" in case else None
    if "one label" in case:
        known[truth > 0] = -1
    counts = word_counts(truth, seed=5) if "words" in case else None
    result = refine(documents, anchors, known=known, word_counts=counts)
    assert_scores(result, reference.discriminant(documents, anchors, known, counts), share=0.01)


@pytest.mark.parametrize("prior", ["balanced", [0.7, 0.1, 0.1, 0.1], [7, 1, 1, 1]])
def test_a_prior_is_that_of_the_plain_version(prior):
    documents, anchors, _ = topics(5, spread=1.3, sizes=SKEWED)
    expected = reference.discriminant(documents, anchors, prior=prior)
    assert_scores(refine(documents, anchors, prior=prior), expected)


@pytest.mark.parametrize("lost", [(0.05, 0.15), (0.0, 0.5), (0.1, 0.8)])
def test_collapsed_clusters_count_as_in_the_plain_version(lost):
    documents, anchors, _ = long_and_short(1, n=600)
    constants = Constants(small_entropy_loss=lost[0], large_entropy_loss=lost[1])
    result = refine(documents, anchors, constants=constants)
    assert_scores(result, reference.discriminant(documents, anchors, c=constants))


CHANGED = {
    "centring": 0.9,
    "mean_rest": 0.9,
    "examples": 20.0,
    "cluster_passes": 3,
    "gaussian_passes": 2,
    "first_anchor_weight": 0.9,
    "last_anchor_weight": 0.1,
    "few_documents": 200.0,
    "sharpness": 6.0,
    "size_share": 0.5,
    "size_count": 50.0,
    "balanced": 0.9,
    "skewed": 0.5,
    "shrink": 0.9,
    "tie": 0.1,
    "temper": 1.0,
    "lead": 4.0,
    "agreement_lead": 2.0,
    "cluster_share": 1.0,
    "reliable": 2.0,
}


@pytest.mark.parametrize("name", sorted(CHANGED))
def test_every_constant_does_what_the_plain_version_says(name):
    documents, anchors, truth = topics(21, spread=1.2, sizes=SKEWED)
    known = np.where(np.arange(len(truth)) % 20 == 0, truth, -1)
    usual = reference.discriminant(documents, anchors, known)
    constants = Constants(**{name: CHANGED[name]})
    expected = reference.discriminant(documents, anchors, known, c=constants)
    assert np.abs(expected - usual).max() > 1e-3  # the constant matters on this data
    result = refine(documents, anchors, known=known, constants=constants)
    assert_scores(result, expected)


def test_the_defaults_are_those_that_were_measured():
    assert Constants() == Constants(
        centring=0.3, mean_rest=0.45, examples=5.0, cluster_passes=8, gaussian_passes=4,
        first_anchor_weight=0.7, last_anchor_weight=0.3, few_documents=20.0, sharpness=3.0,
        size_share=0.05, size_count=5.0, balanced=0.98, skewed=0.95, shrink=0.3, tie=1.0,
        temper=0.5, lead=2.0, agreement_lead=0.35, cluster_share=0.25, reliable=0.15,
        least_differing=0.02, small_entropy_loss=0.05, large_entropy_loss=0.15,
    )  # fmt: skip
    assert METHODS["discriminant"].options().fit_sample == 200_000


@pytest.mark.parametrize("seed", [0, 2])
def test_the_nearest_anchor_where_clusters_collapse_onto_a_few_labels(seed):
    documents, anchors, truth = long_and_short(seed)
    nearest = accuracy(refine(documents, anchors, method="none"), truth)
    never = Constants(small_entropy_loss=8.0, large_entropy_loss=9.0)
    assert accuracy(refine(documents, anchors, constants=never), truth) < nearest - 0.2
    assert accuracy(refine(documents, anchors), truth) > nearest - 0.02


@pytest.mark.parametrize("seed", range(4))
def test_a_label_with_half_of_the_documents_keeps_them(seed):
    documents, anchors, truth = topics(seed, n=1500, n_dims=32, spread=1.2, sizes=SKEWED)
    result = refine(documents, anchors)
    large = truth == 0
    assert (result.predictions[large] == 0).mean() > 0.95
    assert (result.predictions[~large] == truth[~large]).mean() > 0.95
    assert accuracy(result, truth) > accuracy(refine(documents, anchors, method="none"), truth)


@pytest.mark.parametrize("seed", [0, 2, 3])
def test_what_is_repeated_in_all_documents_does_not_group_them(seed):
    documents, anchors, truth = topics(seed, **REPEATED | {"repeated": 0.0})
    clean = accuracy(refine(documents, anchors), truth)
    documents, anchors, _ = topics(seed, **REPEATED)
    assert accuracy(refine(documents, anchors, method="none"), truth) < clean - 0.3
    assert accuracy(refine(documents, anchors), truth) > clean - 0.08


@pytest.mark.parametrize("prior", ["estimate", "balanced"])
def test_labels_without_documents_take_few(prior):
    sizes = [0.4, 0.3, 0.3, 0.0, 0.0]
    documents, anchors, truth = topics(3, n=1500, n_labels=5, n_dims=32, spread=1.0, sizes=sizes)
    result = refine(documents, anchors, prior=prior)
    assert (result.predictions >= 3).mean() < 0.2
    assert accuracy(result, truth) > 0.8


@pytest.mark.parametrize("signal", [0.2, 0.8, 2.0])
def test_groups_that_have_nothing_to_do_with_the_labels_do_not_replace_them(signal):
    random = np.random.default_rng(0)
    n, n_dims = 1500, 32
    groups, axis, direction = random.integers(2, size=n), np.eye(n_dims)[0], np.eye(n_dims)[1]
    truth = random.integers(2, size=n)
    documents = 3 + np.outer(4 * groups - 2, axis) + np.outer(signal * (truth - 0.5), direction)
    documents = (documents + 0.3 * random.normal(size=documents.shape)).astype(np.float32)
    anchors = np.stack([3 - 2 * direction, 3 + 2 * direction])
    nearest, result = (refine(documents, anchors, method=m) for m in ("none", "auto"))
    assert accuracy(result, truth) > accuracy(nearest, truth) - 0.03


def test_known_documents_keep_their_label_and_teach_the_others():
    documents, anchors, truth = topics(4, n=1200, spread=1.2)
    wrong = anchors[[1, 0, 2, 3]]  # the names of two labels are exchanged
    known = np.where(np.arange(len(truth)) % 10 == 0, truth, -1)
    result = refine(documents, wrong, known=known)
    free = known < 0
    np.testing.assert_array_equal(result.predictions[~free], truth[~free])
    without = refine(documents, wrong)
    assert (result.predictions == truth)[free].mean() > (without.predictions == truth).mean() + 0.2
    everything = refine(documents, wrong, known=truth)  # the supervised limit
    np.testing.assert_array_equal(everything.predictions, truth)
    assert (score(documents, everything.rule)[0] == truth).mean() > 0.8


@pytest.mark.parametrize("seed", range(4))
def test_examples_of_one_label_do_not_take_the_documents_of_others(seed):
    documents, names, truth = topics(seed, n=1200, n_labels=8, spread=1.2, off=1.5)
    known = np.full(len(truth), -1)
    known[np.flatnonzero(truth == 0)[:8]] = 0
    without, result = refine(documents, names), refine(documents, names, known=known)
    assert accuracy(result, truth) > accuracy(without, truth) - 0.02
    before = max(np.sum(truth == 0), np.sum(without.predictions == 0))
    assert np.sum(result.predictions == 0) < 1.2 * before


@pytest.mark.parametrize("max_iter", [1, 2, 3, 5, 13, 100])
def test_no_more_passes_than_max_iter(max_iter):
    documents, anchors, _ = topics(6)
    result = refine(documents, anchors, max_iter=max_iter)
    assert result.n_iter == min(max_iter, 13)
    if max_iter >= 13:
        stages = [done.stage for done in result.trace]
        assert stages == ["nearest label"] + 8 * ["clusters"] + 4 * ["gaussians"]
    assert all(np.isfinite(done.objective) for done in result.trace)


def test_too_many_dimensions_fall_back_to_the_papers_method_and_say_so():
    documents, anchors, _ = topics(6, n=50, n_dims=2100)
    result = refine(documents, anchors)
    assert result.method == "ulr"
    assert "2,100 dimensions" in result.reason
    plain = refine(documents, anchors, method="ulr")
    np.testing.assert_array_equal(result.predictions, plain.predictions)
    assert plain.reason is None


def test_words_that_tell_the_labels_apart_help_and_random_ones_do_no_harm():
    documents, anchors, truth = topics(5, n=1500, spread=2.0, off=1.0)
    plain = accuracy(refine(documents, anchors), truth)
    told = refine(documents, anchors, word_counts=word_counts(truth, n_words=200))
    assert accuracy(told, truth) > plain + 0.03
    shuffled = np.random.default_rng(1).permutation(truth)
    noise = refine(documents, anchors, word_counts=word_counts(shuffled, n_words=200))
    assert accuracy(noise, truth) > plain - 0.02


def test_a_sample_is_random_and_the_rest_is_scored():
    documents, anchors, truth = topics(7, n=6000, n_dims=32, spread=1.2)
    sampled = refine(documents, anchors, fit_sample=1500)
    assert sampled.n_fitted == 1500
    assert len(sampled.predictions) == 6000
    whole = refine(documents, anchors, fit_sample=None)
    assert whole.n_fitted == 6000
    assert abs(accuracy(sampled, truth) - accuracy(whole, truth)) < 0.02
    other = refine(documents, anchors, fit_sample=1500, random_state=1)
    assert not np.array_equal(sampled.scores, other.scores)


@pytest.mark.parametrize(
    ("fit_sample", "n_labels", "expected"),
    [(200_000, 4, 16_384), (200_000, 40, 20_480), (None, 4, 21_000), (10_000, 4, 10_000)],
)
def test_vectors_are_fitted_on_a_part_of_the_sample(fit_sample, n_labels, expected):
    documents, anchors, _ = topics(7, n=21_000, n_labels=n_labels, n_dims=8)
    assert refine(documents, anchors, fit_sample=fit_sample).n_fitted == expected


def test_words_are_fitted_on_more_documents_than_vectors():
    documents, anchors, truth = topics(7, n=40_000, n_dims=8, spread=1.2)
    counts = csr_matrix((np.ones(len(truth)), (np.arange(len(truth)), truth)))
    found = refine(documents, anchors, word_counts=counts)
    assert found.n_fitted == 16_384
    assert found.rule.words.idf.tolist() == pytest.approx(
        np.log(len(truth) / np.bincount(truth)).tolist(), rel=1e-3
    )


def test_documents_without_word_counts_are_scored_by_their_vectors_alone():
    """Also where words change the sizes of the labels, which their offsets undo."""
    documents, anchors, truth = topics(7, n=2_000, n_dims=16, spread=1.2)
    kept = np.flatnonzero((truth < 2) | (np.arange(len(truth)) % 10 == 0))
    documents, counts = documents[kept], word_counts(truth[kept])
    with_words = refine(documents, anchors, word_counts=counts)
    assert np.abs(with_words.rule.words.offsets).max() > 0.01
    alone = refine(documents, anchors)
    np.testing.assert_array_equal(score(documents, with_words.rule)[1], alone.scores)


def test_a_sample_keeps_known_documents_and_is_drawn_from_all_positions():
    """Sorted files have documents of one label first, and examples are few."""
    documents, anchors, truth = topics(7, n=6_000, n_dims=32, spread=1.2)
    order = np.argsort(truth, kind="stable")
    documents, truth = documents[order], truth[order]
    found = refine(documents, anchors, fit_sample=300)
    assert accuracy(found, truth) > accuracy(refine(documents, anchors), truth) - 0.03
    wrong = anchors[[1, 0, 3, 2]]
    known = np.where(np.random.default_rng(0).random(6_000) < 0.025, truth, -1)
    taught = refine(documents, wrong, fit_sample=300, known=known)
    assert (taught.predictions == truth)[known < 0].mean() > 0.9


def test_without_three_documents_per_label_the_nearest_label_is_used_and_the_result_says_so():
    documents, anchors, _ = topics(n=11, n_labels=4)
    result = refine(documents, anchors)
    assert (result.method, result.n_iter) == ("none", 1)
    assert "11 is too small a number of documents for 4 labels" in result.reason
    np.testing.assert_array_equal(result.predictions, result.unrefined)
    assert refine(documents, anchors, known=[0, 1, 2, 3, *[-1] * 7]).method == "discriminant"
    assert refine(*topics(n=12, n_labels=4)[:2]).method == "discriminant"


@pytest.mark.parametrize("n", [18, 30, 60])
def test_a_rule_of_few_documents_suits_new_documents(n):
    """Labels without documents in the fit are found in new documents by their anchors."""
    documents, anchors, truth = topics(n=2_000, n_labels=6, n_dims=64, common=0.5, off=1.2)
    new = slice(1_000, None)
    nearest = score(documents[new], refine(documents, anchors, method="none").rule)[0]
    found = []
    for seed in range(5):
        rows = np.random.default_rng(seed).permutation(1_000)[:n]
        found.append(score(documents[new], refine(documents[rows], anchors).rule)[0])
    gained = np.mean([(labels == truth[new]).mean() for labels in found])
    assert gained > (nearest == truth[new]).mean() - 0.02


def test_vectors_that_are_all_similar_are_refined_as_well_as_others():
    apart, anchors, truth = topics(n=1_000, n_labels=5, n_dims=40, common=0.0, off=1.0)
    shared = 8 * np.random.default_rng(3).normal(size=40).astype(np.float32)
    similar = refine(apart + shared, anchors + shared)
    assert np.linalg.norm(reference.unit(apart + shared).mean(axis=0)) > 0.9
    assert accuracy(similar, truth) > accuracy(refine(apart, anchors), truth) - 0.05


def test_converged_says_whether_labels_still_changed():
    documents, anchors, _ = topics(6, spread=0.3)
    assert refine(documents, anchors).converged
    documents, anchors, _ = topics(6, spread=4.0)
    result = refine(documents, anchors)
    assert result.converged == (result.trace[-1].changed <= 0.001 * len(documents))
    assert not result.converged
