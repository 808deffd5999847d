"""Several labels a text."""

import numpy as np
import pytest

from tiny_task import LABELS, generated_texts, static
from ulr import ZeroShotClassifier
from ulr.errors import ParameterError


@pytest.fixture(scope="module")
def pairs():
    """Texts of two topics, and the indicator matrix in the order of sorted names."""
    first, one = generated_texts(240, own=0.6)
    second, other = generated_texts(240, seed=1, own=0.6)
    names = sorted(LABELS)
    truth = [[name in both for name in names] for both in zip(one, other, strict=True)]
    texts = [f"{a} {b}" for a, b in zip(first, second, strict=True)]
    return texts, np.array(truth, dtype=int)


def classifier(multilabel):
    return ZeroShotClassifier(LABELS, encoder=static(), multilabel=multilabel)


@pytest.fixture(scope="module")
def by_mean(pairs):
    return classifier(float(pairs[1].sum(axis=1).mean())).fit(pairs[0])


def test_predict_returns_the_indicator_matrix(pairs, by_mean):
    texts, truth = pairs
    found = by_mean.predict(texts)
    assert found.shape == truth.shape
    assert (found == truth).mean() > 0.75
    assert by_mean.score(texts, truth) == (found == truth).all(axis=1).mean()


def test_texts_get_as_many_labels_as_said_and_at_least_one(pairs, by_mean):
    found = by_mean.predict(pairs[0])
    assert found.sum(axis=1).mean() == pytest.approx(pairs[1].sum(axis=1).mean(), abs=0.02)
    assert found.any(axis=1).all()


def test_chances_add_up_to_the_number_of_labels(pairs, by_mean):
    chances = by_mean.predict_proba(pairs[0])
    assert chances.sum(axis=1).mean() == pytest.approx(pairs[1].sum(axis=1).mean(), abs=0.02)
    assert chances.sum(axis=1).std() > 0.01


def test_a_text_of_two_topics_has_two_higher_chances(pairs, by_mean):
    texts, truth = pairs
    chances, two = by_mean.predict_proba(texts), truth.sum(axis=1) == 2
    assert (
        np.sort(chances[two], axis=1)[:, -2].mean() > np.sort(chances[~two], axis=1)[:, -2].mean()
    )


def test_a_least_chance_is_kept(pairs):
    model = classifier(0.6).fit(pairs[0])
    chances, found = model.predict_proba(pairs[0]), model.predict(pairs[0])
    np.testing.assert_array_equal(found, chances >= 0.6)
    assert chances.sum(axis=1).mean() == pytest.approx(1.0, abs=0.02)


def test_texts_without_words_have_no_label(by_mean):
    assert by_mean.predict(["", "goal league"])[0].tolist() == [0, 0, 0]


def test_a_saved_model_gives_the_same_labels(pairs, by_mean, tmp_path):
    by_mean.save(tmp_path / "model")
    again = ZeroShotClassifier.load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict(pairs[0]), by_mean.predict(pairs[0]))


@pytest.mark.parametrize("number", [0, -1, 3.5, "two", None])
def test_numbers_without_a_meaning_are_refused(number):
    with pytest.raises(ParameterError, match="multilabel must be the least chance"):
        classifier(number).fit(["a"])


def test_several_labels_and_a_none_label_do_not_go_together():
    with pytest.raises(ParameterError, match="do not go together"):
        ZeroShotClassifier(LABELS, multilabel=True, none_share=0.1).fit(["a"])
