"""A model and the documents of later months: what it notices, what it keeps, what it adapts."""

from dataclasses import replace

import numpy as np
import pytest

from tiny_task import LABELS, CosineScorer, generated_texts, static
from ulr import ZeroShotClassifier
from ulr.classifier import Settings, fit, load, save, update
from ulr.errors import ModelError, TextError

TWO = LABELS[:2]
MONTH = 150


def month(seed, labels=LABELS, n=MONTH):
    return generated_texts(n, seed, labels=labels)[0]


@pytest.fixture(scope="module")
def model():
    return fit(month(0, n=600), Settings(LABELS, encoder=static()))


@pytest.fixture(scope="module")
def two_labels():
    return fit(month(0, TWO, n=600), Settings(TWO, encoder=static()))


def skewed(label, share, n=600, seed=7):
    """Documents of which a share has one label, and their true labels."""
    pairs = list(zip(*generated_texts(6 * n, seed), strict=True))
    own = [pair for pair in pairs if pair[1] == label][: round(share * n)]
    others = [pair for pair in pairs if pair[1] != label][: n - len(own)]
    texts, truth = zip(*own, *others, strict=True)
    return list(texts), np.array([LABELS.index(each) for each in truth])


def test_the_fitted_documents_keep_their_labels(model):
    updated, drift = update(model, model.documents.texts)
    changed = np.mean(updated.predictions.labels != model.predictions.labels)
    assert changed <= 0.01
    assert not drift.changed
    assert drift.warnings == ()
    assert [each.before for each in drift.labels] == [each.after for each in drift.labels]


def test_other_documents_of_the_same_kind_change_nothing(model):
    for seed in range(1, 9):
        updated, drift = update(model, month(seed))
        assert (drift.changed, drift.moved) == (False, 0)
        assert updated.rule is model.rule


def test_a_class_that_appears_in_the_fifth_of_ten_months_is_noticed_then(two_labels):
    model, noticed = two_labels, []
    for number in range(1, 11):
        texts = month(100 + number, TWO)
        if number >= 5:
            texts[: MONTH // 4] = month(200 + number, LABELS[2:], n=MONTH // 4)
        model, drift = update(model, texts)
        noticed.append(drift.unlike_changed)
    assert noticed[:4] == [False] * 4
    assert noticed[4]
    assert "a label may be missing" in drift.warnings[0]


def test_other_shares_of_the_labels_are_noticed_and_cost_no_accuracy(model):
    texts, truth = skewed("sports", 0.8)
    updated, drift = update(model, texts)
    assert drift.shares_changed
    assert drift.labels[0].changed
    assert drift.labels[0].after > drift.labels[0].before
    kept = np.mean(model.predict(texts).labels == truth)
    assert np.mean(updated.predictions.labels == truth) >= kept
    assert updated.reference.shares[0] > model.reference.shares[0]
    np.testing.assert_array_equal(updated.predict(texts).labels, updated.predictions.labels)


def test_the_same_month_again_is_no_news(model):
    texts, _ = skewed("sports", 0.8)
    updated, _ = update(model, texts)
    again, drift = update(updated, texts)
    assert (drift.shares_changed, drift.moved) == (False, 0)
    assert again.rule is updated.rule


def test_given_shares_are_kept():
    settings = Settings(LABELS, encoder=static(), prior="balanced")
    model = fit(month(0, n=600), settings)
    updated, drift = update(model, skewed("sports", 0.8)[0])
    assert drift.shares_changed
    assert updated.rule is model.rule


def test_a_loaded_model_notices_the_same(model, tmp_path):
    save(model, tmp_path / "model")
    texts = skewed("sports", 0.8)[0]
    updated, drift = update(load(tmp_path / "model", encoder=static()), texts)
    expected, expected_drift = update(model, texts)
    assert drift.moved == expected_drift.moved
    assert drift.unlike == pytest.approx(expected_drift.unlike, abs=0.01)
    np.testing.assert_array_equal(updated.predictions.labels, expected.predictions.labels)


def test_empty_texts_take_no_part(model):
    texts = month(3)
    _, expected = update(model, texts)
    _, drift = update(model, [*texts, "", " "])
    assert (drift.documents, drift.empty) == (len(texts) + 2, 2)
    assert (drift.labels, drift.unlike) == (expected.labels, expected.unlike)


def test_pair_scorers_have_a_drift_report():
    texts = month(0, n=90)
    model = fit(texts, Settings(LABELS, encoder=CosineScorer()))
    _, drift = update(model, texts)
    assert not drift.changed


def test_what_cannot_be_compared_is_refused(model, word_vectors):
    with pytest.raises(ModelError, match="no statistics to compare with"):
        update(replace(model, reference=None), month(1))
    with pytest.raises(TextError, match="all texts are empty"):
        update(model, ["", " "])
    model = fit(["goal match", "profit bank"] * 9, Settings(TWO, encoder=word_vectors))
    with pytest.raises(TextError, match="knows no word"):
        update(model, ["qwe rty"])


def test_the_estimator_stays_usable():
    classifier = ZeroShotClassifier(LABELS, encoder=static()).fit(month(0, n=600))
    drift = classifier.update(month(1))
    assert drift.documents == MONTH
    assert drift.as_dict()["labels"][0]["label"] == "sports"
    assert classifier.predict(["The coach praised the goalkeeper"]).tolist() == ["sports"]
