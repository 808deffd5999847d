"""Confidence without labels: what the expected accuracy depends on, and what it does not."""

import numpy as np
import pytest
from problems import topics, word_counts
from scipy.special import softmax

from tiny_task import Recorder
from ulr.metrics import calibration_error
from ulr.refinement import calibrate, mean_lead, refine


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


STORED = {
    "easy": 0.990,
    "hard": 0.735,
    "few": 0.479,
    "known": 0.787,
    "words": 0.941,
    "half of the dimensions empty": 0.769,
}


@pytest.mark.parametrize("case", STORED)
def test_mean_confidence_is_the_stored_one(case):
    """It follows from agreements and the lead as measured on many datasets, see docs/refinement.md."""
    n, spread = 30 if case == "few" else 600, 1.2 if case == "easy" else 3.0
    documents, anchors, truth = task(n, spread, seed=3)
    if case == "half of the dimensions empty":
        documents, anchors = (np.pad(rows, ((0, 0), (0, 64))) for rows in (documents, anchors))
    known = np.where((case == "known") & (np.arange(n) < 400), truth, -1)
    counts = word_counts(truth) if case == "words" else None
    probabilities, _ = confidence(documents, anchors, known, word_counts=counts)
    assert probabilities[known < 0].max(axis=1).mean() == pytest.approx(STORED[case], abs=0.01)


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
    assert progress.stages == [("Calibrating", 4)]
    assert progress.counts[-1] == 4


@pytest.mark.parametrize(
    "settings", [{"method": "ulr"}, {"method": "none"}, {"distance": "l2"}, {"distance": "dot"}]
)
def test_every_method_is_calibrated(settings):
    documents, anchors, truth = task(900, spread=3.0)
    probabilities, result = confidence(documents, anchors, **settings)
    accuracy = (result.predictions == truth).mean()
    assert abs(probabilities.max(axis=1).mean() - accuracy) < 0.25


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


@pytest.mark.parametrize("n_known", [0, 295, 298, 299, 300])
@pytest.mark.parametrize("n", [1, 2, 3, 19, 20, 21, 300])
def test_a_handful_of_documents_is_enough_and_empty_ones_do_no_harm(n, n_known):
    documents, anchors, truth = topics(1, n=n, n_labels=3, n_dims=16)
    known = np.where(np.arange(n) < n_known, truth, -1)
    assert np.isfinite(confidence(documents, anchors, known)[0]).all()
    documents[1::3] = 0.0
    assert np.isfinite(confidence(documents, anchors, known)[0]).all()
