"""`fit` and its inputs: vectors of phrases, extra labels and texts, the cache, progress."""

import numpy as np
import pytest

from tiny_task import (
    LABELS,
    NEW,
    PHRASES,
    TEXTS,
    CosineScorer,
    CountingEncoder,
    HashingEncoder,
    StaticVectors,
    static,
)
from ulr import ZeroShotClassifier
from ulr.classifier import Settings, encode, encode_labels, fit, load, resolve, save, text_encoder
from ulr.errors import LabelError, TextError

TASK = {"sports": ["ball", "goal"], "money": ["bank", "coin", "cash"], "rain": ["rain"]}
FULL = TEXTS[:-1]


class Letters:
    """Counts of each letter; remembers the texts that it encoded."""

    def __init__(self):
        self.given = []

    def encode(self, texts):
        self.given += texts
        letters = "abcdefghijklmnopqrstuvwxyz"
        return np.array([[text.count(each) for each in letters] for text in texts], np.float32)


def settings(labels=TASK, **arguments):
    return resolve(Settings(labels, **{"encoder": Letters(), "template": None, **arguments}))


def with_phrases(**arguments):
    # With the paper's method, phrases matter even on few texts.
    return ZeroShotClassifier(
        PHRASES, **{"encoder": static(), "method": "ulr", "max_iter": 20, **arguments}
    )


def test_every_phrase_is_encoded_once_inside_the_template():
    arguments = settings(extra_labels=["tea"], template="About {}.")
    fit(["a goal", "some cash"], arguments)
    phrases = ["ball", "goal", "bank", "coin", "cash", "rain", "tea"]
    encoded = [*(f"About {each}." for each in phrases), "a goal", "some cash"]
    assert arguments.encoder.given == encoded


def test_an_anchor_is_the_mean_of_unit_vectors_or_the_vector_of_its_only_phrase():
    anchors = encode_labels(settings())
    ball, goal = Letters().encode(["ball", "goal"]).astype(np.float64)
    mean = (ball / np.linalg.norm(ball) + goal / np.linalg.norm(goal)) / 2
    np.testing.assert_allclose(anchors[0], mean, rtol=1e-6)
    np.testing.assert_array_equal(anchors[2], Letters().encode(["rain"])[0])
    assert anchors.dtype == np.float32


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"labels": {"sports": ["ball", "12"], "b": "c"}}, "label 'sports': the encoder knows no"),
        ({"extra_labels": ["5"]}, "extra label '5': the encoder knows no word of '5'; use other"),
    ],
)
def test_phrases_that_cannot_be_encoded_raise(arguments, message):
    with pytest.raises(LabelError, match=message):
        fit(["a goal"], settings(**arguments))


def test_texts_that_were_encoded_before_are_fitted_the_same():
    arguments = settings(LABELS, encoder=static())
    encoded = encode(TEXTS, text_encoder(arguments))
    np.testing.assert_array_equal(
        fit(encoded, arguments).predictions.scores, fit(TEXTS, arguments).predictions.scores
    )
    assert encoded.word_counts.shape[0] == len(TEXTS)
    assert arguments.uses_words
    assert not settings(method="ulr").uses_words


# Extra labels and texts


def test_extra_labels_take_part_and_are_never_predicted():
    extra = ["tennis tournament", "cooking"]
    without = with_phrases().fit(FULL)
    classifier = with_phrases(extra_labels=extra).fit(FULL)
    assert classifier.classes_.tolist() == sorted(LABELS)
    assert (classifier.extra_labels_, without.extra_labels_) == (tuple(extra), ())
    assert set(classifier.predict([*FULL, *NEW, *extra])) <= set(LABELS)
    assert classifier.refinement_.scores.shape == (len(FULL), 3)
    assert not np.array_equal(classifier.centroids_, without.centroids_)


@pytest.mark.parametrize("encoder", [StaticVectors(), CosineScorer()], ids=["vectors", "pairs"])
def test_extra_texts_are_fitted_on_and_get_no_label(encoder):
    extra = ["The striker bought shares", "A goal for the bank", "The team of researchers", ""] * 4
    without = with_phrases(encoder=encoder).fit(FULL)
    classifier = with_phrases(encoder=encoder).fit(FULL, extra_texts=extra)
    assert len(classifier.refinement_.predictions) == len(FULL)
    assert not np.array_equal(classifier.refinement_.scores, without.refinement_.scores)


def test_only_extra_texts_may_be_unknown_and_must_be_texts():
    y = ["sports", "business", "sports"]
    classifier = ZeroShotClassifier(LABELS, encoder=static())
    classifier.fit(TEXTS[:3], y, extra_texts=TEXTS[3:])
    assert np.array(LABELS)[classifier.refinement_.predictions].tolist() == y
    assert classifier.predict(NEW).tolist() == LABELS
    with pytest.raises(TextError, match="texts must be strings; number 1 is 5"):
        with_phrases().fit(FULL, extra_texts=["a", 5])
    with pytest.raises(TextError, match="there are no texts; at least one is needed"):
        with_phrases().fit(FULL, extra_texts=[])


# Cache


def test_a_cache_is_put_before_encoders_scorers_and_those_of_loaded_models(tmp_path):
    for encoder in (CountingEncoder(), CosineScorer()):
        cached = text_encoder(settings(encoder=encoder, cache=tmp_path))
        np.testing.assert_array_equal(cached.encode(["goal"]), cached.encode(["goal"]))
        assert (cached.encoded, cached.found) == (1, 1)
    save(fit(TEXTS, Settings(LABELS, encoder=CountingEncoder())), tmp_path / "model")
    encoder = CountingEncoder()
    for _ in range(2):
        load(tmp_path / "model", encoder=encoder, cache=tmp_path / "vectors").predict(NEW)
    assert encoder.n_encoded == len(NEW)


def test_settings_can_be_changed_after_the_fit():
    fitted = fit(TEXTS, Settings(LABELS, encoder=HashingEncoder()))
    changed = fitted.with_settings(n_jobs=1)
    assert (fitted.settings.n_jobs, changed.settings.n_jobs) == (None, 1)
    np.testing.assert_array_equal(fitted.predict(NEW).scores, changed.predict(NEW).scores)
