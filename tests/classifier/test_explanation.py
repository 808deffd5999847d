"""Explanations: exact where scores are sums over words, by leaving words out otherwise."""

import numpy as np
import pytest

from tiny_task import LABELS, CosineScorer, StaticVectors, generated_texts, static
from ulr import ZeroShotClassifier
from ulr.classifier import Settings, explain, fit

TEXT = "The striker's goal (a late GOAL!) won the cup;\nshares fell — today."


@pytest.fixture(scope="module")
def texts():
    return generated_texts(200)[0]


@pytest.fixture(scope="module")
def fitted(texts):
    return fit(texts, Settings(LABELS, encoder="static"))


def words(evidence):
    return [each.word for each in evidence]


def test_words_that_speak_for_the_label_are_found_where_they_are(fitted):
    (found,) = explain(fitted, [TEXT])
    assert (found.label, found.exact) == ("sports", True)
    assert {"striker's", "goal"} & set(words(found.for_label))
    for each in (*found.for_label, *found.for_runner_up):
        assert each.weight > 0
        assert {TEXT[start:end].casefold() for start, end in each.spans} == {each.word.casefold()}
    weights = [each.weight for each in found.for_label]
    assert weights == sorted(weights, reverse=True)
    goal = next(each for each in explain(fitted, [TEXT], 50)[0].for_label if each.word == "goal")
    assert len(goal.spans) == 2


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"method": "none"},
        {"method": "ulr", "distance": "l2"},
        {"method": "ulr", "distance": "dot"},
    ],
)
def test_exact_weights_and_the_rest_add_up_to_the_log_odds(texts, parameters):
    fitted = fit(texts, Settings(LABELS, encoder="static", **parameters))
    some = [*texts[:20], TEXT, "goal", "\n\n goal \n"]
    predictions = fitted.predict(some)
    for row, found in enumerate(explain(fitted, some, n_words=100)):
        assert found.exact
        total = sum(each.weight for each in found.for_label)
        total -= sum(each.weight for each in found.for_runner_up)
        assert total + found.rest == pytest.approx(found.log_odds, abs=0.01)
        best, second = np.sort(predictions.probabilities[row])[::-1][:2]
        assert found.log_odds == pytest.approx(np.log(best / second), abs=0.01)


@pytest.mark.parametrize("encoder", [StaticVectors(), CosineScorer()])
def test_words_are_left_out_where_scores_are_not_sums(texts, encoder):
    fitted = fit(texts, Settings(LABELS, encoder=encoder))
    (found,) = explain(fitted, ["goal shares striker cup"])
    assert found.how == "left out"
    first = found.for_label[0]
    without = "goal shares striker cup".replace(first.word, "")
    before, after = fitted.predict(["goal shares striker cup", without]).scores / fitted.temperature
    places = [LABELS.index(name) for name in (found.label, found.runner_up)]
    fall = np.subtract(*before[places]) - np.subtract(*after[places])
    assert first.weight == pytest.approx(fall, abs=0.01)


def test_no_more_than_some_words_are_left_out(texts):
    class Counting(StaticVectors):
        n_encoded = 0

        def encode(self, texts):
            self.n_encoded += len(texts)
            return static().encode(texts)

    encoder = Counting()
    fitted = fit(texts, Settings(LABELS, encoder=encoder))
    encoder.n_encoded = 0
    explain(fitted, [" ".join(f"word{i}" for i in range(300)) + " goal"])
    assert encoder.n_encoded <= 25


def test_a_truncated_text_is_not_called_exact(texts):
    from ulr.encoders import StaticEncoder

    fitted = fit(texts, Settings(LABELS, encoder=StaticEncoder.embedded(max_tokens=8)))
    short, long = explain(fitted, ["goal shares", "goal " * 30])
    assert (short.how, long.how) == ("exact", "left out")


def test_named_words_matter_more_than_others(fitted, texts):
    draw, falls = np.random.default_rng(0), []
    for text, found in zip(texts[:60], explain(fitted, texts[:60], 2), strict=True):
        named = {each.word for each in found.for_label}
        others = set(draw.permutation(sorted(set(text.split()) - named))[: len(named)].tolist())
        shorter = [" ".join(w for w in text.split() if w not in out) for out in (named, others)]
        probability = fitted.predict(shorter).probabilities[:, LABELS.index(found.label)]
        falls.append(probability[1] - probability[0])
    assert np.mean(falls) > 0.1


def test_texts_without_a_label_have_no_words(fitted, texts):
    found = explain(fitted, ["", "  ", "goal"])
    assert [each.label for each in found] == ["", "", "sports"]
    assert found[0].for_label == found[1].for_runner_up == ()
    none = fit(texts, Settings(LABELS, encoder="static", none_share=0.2))
    rejected = [texts[i] for i in np.flatnonzero(none.predictions.labels == 3)[:5]]
    assert {each.label for each in explain(none, rejected)} <= set(LABELS)


def test_the_class_explains(texts):
    classifier = ZeroShotClassifier(LABELS, encoder="static").fit(texts)
    (found,) = classifier.explain(["goal"], n_words=1)
    assert words(found.for_label) == ["goal"]
