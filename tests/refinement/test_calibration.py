"""Confidence without labels: what the expected accuracy depends on, and what it does not."""

import numpy as np
import pytest
from problems import Recorder, topics, word_counts
from scipy.special import softmax

from ulr.metrics import calibration_error
from ulr.refinement import calibrate, mean_lead, refine
from ulr.refinement.calibration import Sample, expected_accuracy, temperature


def task(n=900, spread=1.6, seed=0, **kind):
    return topics(seed, n=n, n_labels=5, n_dims=64, spread=spread, off=0.8, **kind)


def confidence(documents, anchors, known=None, **settings):
    """Probabilities of the labels, and the refinement."""
    result = refine(documents, anchors, known=known, **settings)
    heat = calibrate(documents, anchors, result, known=known, **settings)
    return softmax(result.scores.astype(np.float64) / heat, axis=1), result


def test_confidence_is_near_the_accuracy_of_easy_data():
    documents, anchors, truth = task(2000, spread=1.5)
    probabilities, result = confidence(documents, anchors)
    assert calibration_error(result.predictions == truth, probabilities.max(axis=1)) < 0.15


@pytest.mark.parametrize("spread", [3.0, 4.0, 8.0])
def test_confidence_is_not_above_the_accuracy_of_hard_data(spread):
    documents, anchors, truth = task(2000, spread=spread)
    probabilities, result = confidence(documents, anchors)
    np.testing.assert_array_equal(probabilities.argmax(axis=1), result.predictions)
    assert probabilities.max(axis=1).mean() < (result.predictions == truth).mean() + 0.05


def test_the_temperature_gives_the_expected_mean_confidence():
    scores = np.random.default_rng(0).normal(size=(500, 4)).astype(np.float32)
    for expected in (0.4, 0.7, 0.95):
        found = softmax(scores / temperature(scores, expected), axis=1).max(axis=1).mean()
        assert found == pytest.approx(expected, abs=1e-3)


def test_agreement_of_halves_does_not_depend_on_which_dimensions_are_used():
    """A rotation mixes dimensions, so it does not matter which of them tell labels apart."""
    documents, anchors, _ = task(500, spread=0.3)
    both = []
    for one_sided in (False, True):
        vectors, names = documents.copy(), anchors.copy()
        if one_sided:  # the same information in the first half of twice as many dimensions
            vectors = np.concatenate([vectors, np.zeros_like(vectors)], axis=1)
            names = np.concatenate([names, np.zeros_like(names)], axis=1)
        result = refine(vectors, names)
        settings = {"method": "auto", "distance": "cosine"}
        sample = Sample(
            vectors, names.astype(float), result.predictions, np.full(500, -1), settings
        )
        both.append(sample.in_half(0) + sample.in_half(1))
    assert both[1] > 0.9 * both[0]


def test_neighbours_agree_where_labels_are_groups_and_not_where_they_are_random():
    documents, anchors, truth = task(500, spread=0.3)
    grouped, random = (
        Sample(documents, anchors, labels, np.full(500, -1), {}).neighbours()
        for labels in (truth, np.random.default_rng(0).permutation(truth))
    )
    assert grouped > 0.99
    assert random < 0.4


def test_a_document_does_not_vote_for_itself():
    documents = np.random.default_rng(0).normal(size=(11, 16)).astype(np.float32)
    # Of the ten others, the majority always has the other label; ties go to the first label.
    labels = np.array(5 * [0] + 6 * [1])
    sample = Sample(documents, np.eye(2, 16), labels, np.full(11, -1), {})
    assert sample.neighbours() == 0.0


def test_only_documents_of_unknown_label_count_for_agreement():
    documents, anchors, truth = task(400, spread=0.3)
    codes = np.where(np.arange(400) % 2, truth, -1)
    wrong = np.where(codes >= 0, truth, (truth + 1) % len(anchors))
    settings = {"method": "auto", "distance": "cosine"}
    sample = Sample(documents, anchors.astype(float), wrong, codes, settings)
    assert sample.in_half(0) < 0.1


@pytest.mark.parametrize("order", ["shuffled", "by class", "interleaved", "easy first"])
def test_order_matters_little_above_the_sampling_threshold(order):
    easy, anchors, truth = task(6_000, spread=1.0)
    hard = task(6_000, spread=5.0)[0]
    documents, labels = np.concatenate([easy, hard]), np.concatenate([truth, truth])
    shuffled = np.random.default_rng(5).permutation(len(documents))
    within = np.empty(len(labels))  # position of each document among those of its class
    for label in range(5):
        own = shuffled[labels[shuffled] == label]
        within[own] = np.arange(len(own))
    rows = {
        "shuffled": np.random.default_rng(6).permutation(len(documents)),
        "by class": shuffled[np.argsort(labels[shuffled], kind="stable")],
        "interleaved": np.lexsort([labels, within]),
        "easy first": np.arange(len(documents)),
    }[order]
    one = confidence(documents[shuffled], anchors)[0].max(axis=1).mean()
    other = confidence(documents[rows], anchors)[0].max(axis=1).mean()
    assert abs(one - other) < 0.05


def test_it_is_the_same_every_time_and_for_any_number_of_threads():
    documents, anchors, _ = task(spread=2.5)
    result = refine(documents, anchors)
    assert len({calibrate(documents, anchors, result, n_jobs=n) for n in (1, 2, 1)}) == 1
    progress = Recorder()
    calibrate(documents, anchors, result, progress=progress)
    assert progress.stages == [("Calibrating", 4, "agreements")]
    assert progress.advanced == 4


@pytest.mark.parametrize(
    "settings", [{"method": "ulr"}, {"method": "none"}, {"distance": "l2"}, {"distance": "dot"}]
)
def test_every_method_is_calibrated(settings):
    documents, anchors, truth = task(900, spread=3.0)
    probabilities, result = confidence(documents, anchors, **settings)
    accuracy = (result.predictions == truth).mean()
    assert abs(probabilities.max(axis=1).mean() - accuracy) < 0.25


@pytest.mark.parametrize("by_words", [None, 0.6])
def test_the_expected_accuracy_follows_from_the_agreements_and_the_lead(by_words):
    """Measured on many datasets, see docs/refinement.md; the same for every method."""

    def expected(n_documents):
        return expected_accuracy(n_documents, 200, 0.7, 0.9, by_words, 0.7, 0.9)

    def combined(neighbours, few, words_weight):
        others = neighbours - 0.5
        if by_words is not None:
            others = (words_weight * np.log(1.5) + others) / (words_weight + 1)
        log_odds = 0.4 * np.log(4) + 0.8 * others + 0.6 * np.log(0.7) - 0.7 + few
        return pytest.approx(1 / (1 + np.exp(-log_odds)))

    assert expected(10**9) == combined(np.log(9), 0.0, 125_000)
    # With one document per label, neighbours count half, and words hardly.
    assert expected(200) == combined((np.log(9) + np.log(4)) / 2, 0.5, 1 / 40)


def test_the_lead_is_that_of_cosines_in_their_standard_deviations():
    documents = np.array([[2.0, 0.0], [0.0, 3.0], [3.0, 4.0]], dtype=np.float32)
    sample = Sample(documents, 5 * np.eye(2), np.zeros(3, int), np.full(3, -1), {})
    assert sample.lead() == pytest.approx(2.2 / 3 / np.std([1.0, 0.0, 0.0, 1.0, 0.6, 0.8]))


def test_words_that_contradict_the_labels_lower_the_confidence():
    documents, anchors, truth = topics(2, n=400)
    result = refine(documents, anchors)
    assert (result.predictions == truth).mean() > 0.9
    fitting, others = word_counts(truth), word_counts(np.random.default_rng(0).permutation(truth))
    agree, alone, differ = (
        calibrate(documents, anchors, result, word_counts=counts)
        for counts in (fitting, None, others)
    )
    assert agree < alone < differ


@pytest.mark.parametrize("n", [1, 2, 3, 19, 20, 21])
def test_a_handful_of_documents_is_enough_and_empty_ones_do_no_harm(n):
    documents, anchors, _ = topics(1, n=n, n_labels=3, n_dims=16)
    assert np.isfinite(confidence(documents, anchors)[0]).all()
    documents[1::3] = 0.0
    assert np.isfinite(confidence(documents, anchors)[0]).all()


def test_mean_lead_is_that_by_hand():
    scores = np.array([[3.0, 1.0, 0.0], [0.0, 4.0, 3.0]], dtype=np.float32)
    assert mean_lead(scores) == pytest.approx(1.5)
    assert mean_lead(np.zeros((4, 2), dtype=np.float32)) == 1.0


def test_documents_of_known_label_do_not_count_as_agreement():
    documents, anchors, truth = task(600, spread=4.0)
    known = np.where(np.arange(600) < 500, truth, -1)
    probabilities, result = confidence(documents, anchors, known)
    free = known < 0
    accuracy = (result.predictions == truth)[free].mean()
    assert accuracy < 0.95
    assert accuracy - 0.3 < probabilities.max(axis=1)[free].mean() < accuracy + 0.05


@pytest.mark.parametrize("n_free", [0, 1, 2, 5])
def test_hardly_any_document_of_unknown_label_is_enough(n_free):
    documents, anchors, truth = task(300)
    known = np.where(np.arange(300) < n_free, -1, truth)
    assert np.isfinite(confidence(documents, anchors, known)[0]).all()
