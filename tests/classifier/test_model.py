"""Fitted models: empty texts, the none label, and encoders that score pairs."""

import numpy as np
import pytest

from tiny_task import LABELS, NEW, TEXTS, CosineScorer, generated_texts, static
from ulr import ZeroShotClassifier, refine
from ulr.classifier import count_words
from ulr.encoders import LabelScores
from ulr.refinement import calibrate

FULL = TEXTS[:-1]


def classifier(**arguments):
    return ZeroShotClassifier(LABELS, **{"encoder": static(), **arguments})


# Empty texts


@pytest.mark.parametrize(
    "arguments",
    [{}, {"method": "ulr"}, {"distance": "l2"}, {"encoder": CosineScorer()}, {"none_share": 0.2}],
    ids=str,
)
def test_empty_texts_do_not_change_the_fit(arguments):
    texts, _ = generated_texts(19 if arguments else 60, own=0.3)
    without = classifier(**arguments).fit(texts)
    empty = ["", " \n\t"] * 50
    with_empty = classifier(**arguments).fit([*empty[:40], *texts, *empty[40:]])
    np.testing.assert_allclose(
        with_empty.predict_proba(texts), without.predict_proba(texts), atol=1e-6
    )
    np.testing.assert_array_equal(with_empty.predict(texts), without.predict(texts))
    assert with_empty.refinement_.n_without_label == 100
    assert with_empty.fitted_.temperature == pytest.approx(without.fitted_.temperature, rel=1e-5)


def test_an_empty_text_has_no_label_and_no_confidence():
    model = classifier().fit(TEXTS).fitted_
    found = model.predict(["", *NEW, " "])
    assert found.labels.tolist() == [-1, 0, 1, 2, -1]
    assert found.unrefined[[0, 4]].tolist() == [-1, -1]
    assert found.empty.tolist() == [True, False, False, False, True]
    assert found.confidence[[0, 4]].tolist() == [0, 0]
    assert (found.confidence[1:4] > 1 / 3).all()
    np.testing.assert_allclose(found.probabilities[0], 1 / 3)
    assert model.names[found.labels].tolist() == ["", *LABELS, ""]


def test_an_empty_text_has_no_label():
    fitted = classifier()
    assert fitted.fit_predict([*TEXTS[:3], ""]).tolist()[-1] == ""
    assert fitted.predict(["", None, float("nan"), TEXTS[0]])[:3].tolist() == [""] * 3


def test_a_text_without_known_words_has_no_label_either():
    class Letters:
        def encode(self, texts):
            return np.array([[float(text.count(c)) for c in "abc"] for text in texts])

    fitted = ZeroShotClassifier(["a", "b"], encoder=Letters()).fit(["aa b", "bb a", "xyz"])
    assert fitted.refinement_.predictions.tolist() == [0, 1, -1]
    assert fitted.fitted_.predict(["zzz", "a"]).confidence[0] == 0


# The none label


def test_the_texts_least_similar_to_their_label_get_the_none_label():
    texts = [*FULL, "qwe rty uio", "zxc vbn"]
    fitted = classifier(none_share=0.3, none_label="other")
    found = fitted.fit_predict(texts)
    vectors, anchors = static().encode(texts), static().encode(LABELS)
    units = [each / np.linalg.norm(each, axis=1, keepdims=True) for each in (vectors, anchors)]
    similarity = (units[0] * units[1][fitted.refinement_.predictions]).sum(axis=1)
    assert set(np.flatnonzero(found == "other")) == set(np.argsort(similarity)[:3])
    np.testing.assert_array_equal(fitted.predict(texts), found)
    assert fitted.classes_.tolist() == ["business", "other", "science and technology", "sports"]


def test_probabilities_agree_with_labels_where_there_is_a_none_label():
    fitted = classifier(none_share=0.3).fit(TEXTS)
    texts = [*TEXTS, *NEW, "qwe rty"]
    proba = fitted.predict_proba(texts)
    np.testing.assert_allclose(proba.sum(axis=1), 1.0)
    np.testing.assert_array_equal(fitted.classes_[proba.argmax(axis=1)], fitted.predict(texts))
    found = fitted.fitted_.predict(texts)
    rejected = found.labels == fitted.fitted_.n_labels
    assert rejected.sum() >= 3
    own = found.probabilities[rejected & ~found.empty, -1]
    np.testing.assert_allclose(found.confidence[rejected & ~found.empty], own, atol=1e-4)


def test_an_empty_text_gets_the_none_label_without_confidence():
    model = classifier(none_share=0.2).fit(TEXTS).fitted_
    found = model.predict(["", NEW[0]])
    assert found.labels[0] == len(LABELS)
    assert model.predict([""], static().encode(["sports"])).labels.tolist() == [len(LABELS)]
    assert found.confidence[0] == 0
    assert found.probabilities[0, -1] > 0.99


def test_known_texts_never_get_the_none_label():
    y = ["business", None, "sports", *[None] * (len(TEXTS) - 4), "sports"]
    fitted = classifier(none_share=0.9)
    found = fitted.fit_predict(TEXTS, y)
    assert found[[0, 2, -1]].tolist() == ["business", "sports", "sports"]
    assert (found == "none of these").sum() == 6  # of 7 that are unknown
    np.testing.assert_allclose(fitted.fitted_.predictions.probabilities.sum(axis=1), 1.0)


# Encoders that score pairs


def test_scores_of_pairs_are_refined_by_the_default_as_log_ratios():
    fitted = classifier(encoder=CosineScorer()).fit(FULL)
    assert (fitted.distance_, fitted.method_) == ("cosine", "discriminant")
    scores = CosineScorer().score(FULL, LABELS)
    ratios = (scores - scores.mean(axis=1, keepdims=True)).astype(np.float32)
    anchors = np.eye(len(LABELS)) - 1 / len(LABELS)
    expected = refine(ratios, anchors, word_counts=count_words(FULL))
    np.testing.assert_array_equal(fitted.refinement_.predictions, expected.predictions)
    np.testing.assert_array_equal(fitted.refinement_.unrefined, scores.argmax(axis=1))
    assert fitted.predict(NEW).tolist() == LABELS
    np.testing.assert_allclose(fitted.predict_proba(NEW).sum(axis=1), 1.0)


def test_scores_of_pairs_are_refined_by_jensen_shannon_distance_as_in_the_paper():
    fitted = classifier(encoder=CosineScorer(), method="ulr").fit(FULL)
    assert (fitted.distance_, fitted.method_) == ("jensen-shannon", "ulr")
    scores = CosineScorer().score(FULL, LABELS).astype(np.float64)
    points = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    expected = refine(points.astype(np.float32), distance="jensen-shannon")
    np.testing.assert_array_equal(fitted.refinement_.predictions, expected.predictions)
    np.testing.assert_allclose(fitted.centroids_, expected.centroids, atol=1e-6)
    assert fitted.predict(NEW).tolist() == LABELS
    np.testing.assert_allclose(fitted.predict_proba(NEW).sum(axis=1), 1.0)
    two = ZeroShotClassifier(LABELS[:2], encoder=CosineScorer()).fit(FULL)
    assert (two.distance_, two.method_) == ("jensen-shannon", "ulr")


def test_texts_of_low_probability_get_the_none_label():
    fitted = classifier(encoder=CosineScorer(), method="ulr", none_share=0.4)
    found = fitted.fit_predict(FULL)
    points = LabelScores(CosineScorer(), [[name] for name in LABELS]).encode(FULL)
    own = points[np.arange(len(FULL)), fitted.refinement_.predictions]
    np.testing.assert_array_equal(found == "none of these", own < np.quantile(own, 0.4))


def test_confidence_is_calibrated_with_anchors_of_any_length():
    texts, _ = generated_texts(200)
    fitted = classifier(distance="l2").fit(texts)
    documents, anchors = static().encode(texts), static().encode(LABELS)
    expected = calibrate(documents, anchors, fitted.refinement_)
    assert fitted.fitted_.temperature == pytest.approx(expected, rel=1e-5)
