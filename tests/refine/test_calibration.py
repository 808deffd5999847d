"""How sure to be of a refinement: what the expected accuracy hangs on, and what it does not."""

import numpy as np
import pytest
from scipy.special import softmax

from ulr.metrics import calibration_error
from ulr.refine import calibrate, refine
from ulr.refine.calibration import typical_lead


def topics(n=900, n_labels=5, n_dims=64, spread=1.6, off=0.8, seed=0):
    """Documents of some topics with much in common, label vectors beside the topics, the truth."""
    random = np.random.default_rng(seed)
    common = 2.0 * random.normal(size=n_dims)
    means = random.normal(size=(n_labels, n_dims))
    truth = random.integers(n_labels, size=n)
    documents = common + means[truth] + spread * random.normal(size=(n, n_dims))
    labels = common + means + off * random.normal(size=(n_labels, n_dims))
    return documents.astype(np.float32), labels.astype(np.float32), truth


def confidence(documents, labels, known=None, **settings):
    """Confidence in the predicted labels, and the refinement."""
    result = refine(documents, labels, known=known, **settings)
    sharpness = calibrate(documents, labels, result, known, **settings)
    return softmax(sharpness * result.scores.astype(np.float64), axis=1), result


def test_the_label_of_the_highest_probability_is_the_prediction():
    documents, labels, _ = topics(spread=3.0)
    probabilities, result = confidence(documents, labels)
    np.testing.assert_array_equal(probabilities.argmax(axis=1), result.predictions)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)


@pytest.mark.parametrize("spread", [1.5, 3.0, 4.0])
def test_confidence_is_near_the_accuracy_of_easy_and_hard_data(spread):
    documents, labels, truth = topics(2000, spread=spread)
    probabilities, result = confidence(documents, labels)
    assert result.rule is not None
    right = result.predictions == truth
    raw = softmax(result.scores.astype(np.float64), axis=1).max(axis=1)
    error = calibration_error(right, probabilities.max(axis=1))
    assert error < max(0.15, calibration_error(right, raw))


def test_topics_that_run_together_are_less_sure():
    sure = [
        confidence(*topics(spread=spread)[:2])[0].max(axis=1).mean() for spread in (1.5, 2.5, 4.0)
    ]
    assert sure == sorted(sure, reverse=True)
    assert sure[0] - sure[2] > 0.1


def test_turning_the_space_changes_confidence_little():
    documents, labels, _ = topics(spread=2.5)
    stretched = np.linspace(0.2, 2.0, 64, dtype=np.float32)  # axes sorted by how much they say
    documents, labels = documents * stretched, labels * stretched
    turn = np.linalg.qr(np.random.default_rng(1).normal(size=(64, 64)))[0].astype(np.float32)
    one, other = (
        confidence(*given)[0].max(axis=1).mean()
        for given in ((documents, labels), (documents @ turn, labels @ turn))
    )
    assert abs(one - other) < 0.06


def test_more_documents_of_the_same_kind_do_not_make_it_surer():
    few, many = (
        confidence(*topics(n, spread=3.0)[:2])[0].max(axis=1).mean() for n in (3_000, 12_000)
    )
    assert abs(few - many) < 0.05


def test_it_is_the_same_every_time_and_for_any_threads():
    documents, labels, _ = topics(spread=2.5)
    result = refine(documents, labels)
    found = {calibrate(documents, labels, result, threads=threads) for threads in (1, 2, 1)}
    assert len(found) == 1


def test_nothing_given_is_changed():
    documents, labels, truth = topics(200)
    known = np.where(np.arange(200) < 20, truth, -1)
    before = documents.copy(), labels.copy(), known.copy()
    confidence(documents, labels, known)
    for array, copy in zip((documents, labels, known), before, strict=True):
        np.testing.assert_array_equal(array, copy)


def test_documents_of_known_label_do_not_count_as_agreement():
    documents, labels, truth = topics(600, spread=4.0)
    known = np.where(np.arange(600) < 500, truth, -1)
    probabilities, result = confidence(documents, labels, known)
    free = known < 0
    accuracy = (result.predictions == truth)[free].mean()
    assert accuracy < 0.95
    assert abs(probabilities.max(axis=1)[free].mean() - accuracy) < 0.15


@pytest.mark.parametrize(
    "settings", [{"prior": "balanced"}, {"prior": [0.2] * 5}, {"max_iterations": 3}]
)
def test_settings_of_the_refinement_are_used(settings):
    documents, labels, _ = topics(300)
    probabilities, _ = confidence(documents, labels, **settings)
    assert 0.22 - 1e-3 <= probabilities.max(axis=1).mean() <= 0.99 + 1e-3


def test_documents_may_be_read_from_a_file(tmp_path):
    documents, labels, _ = topics(300)
    np.save(tmp_path / "documents.npy", documents)
    mapped = np.load(tmp_path / "documents.npy", mmap_mode="r")
    result = refine(documents, labels)
    assert calibrate(mapped, labels, result) == calibrate(documents, labels, result)


@pytest.mark.parametrize(
    "settings", [{"method": "ulr"}, {"method": "none"}, {"distance": "l2"}, {"distance": "dot"}]
)
def test_every_method_is_calibrated(settings):
    documents, labels, _ = topics(300)
    probabilities, result = confidence(documents, labels, **settings)
    assert result.rule is None
    assert 0.22 - 1e-3 <= probabilities.max(axis=1).mean() <= 0.99 + 1e-3


@pytest.mark.parametrize("n", [1, 2, 3, 19, 20, 21])
def test_a_handful_of_documents_is_enough(n):
    documents, labels, _ = topics(n, n_labels=3)
    probabilities, _ = confidence(documents, labels)
    assert np.isfinite(probabilities).all()


@pytest.mark.parametrize("n_dims", [8, 9, 17, 50])
def test_few_dimensions_are_enough(n_dims):
    documents, labels, _ = topics(100, n_dims=n_dims)
    assert np.isfinite(confidence(documents, labels)[0]).all()


def test_empty_texts_do_no_harm():
    documents, labels, _ = topics(60)
    documents[::3] = 0.0
    assert np.isfinite(confidence(documents, labels)[0]).all()


@pytest.mark.parametrize("n_free", [1, 2, 5])
def test_hardly_any_document_of_unknown_label_is_enough(n_free):
    documents, labels, truth = topics(300)
    known = np.where(np.arange(300) < n_free, -1, truth)
    assert np.isfinite(confidence(documents, labels, known)[0]).all()


def test_where_every_label_of_the_sample_is_known_the_lead_is_all_there_is():
    documents, labels, truth = topics(60)
    result = refine(documents, labels)
    assert calibrate(documents, labels, result, truth) == 1.0 / typical_lead(result.scores)
