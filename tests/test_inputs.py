"""Inputs of a refinement: vectors of phrases, ensembles of phrasings, extra labels and texts."""

from itertools import product

import numpy as np
import pytest

from tiny_task import (
    LABELS,
    NEW,
    PHRASES,
    SETS,
    TEXTS,
    CosineScorer,
    CountingEncoder,
    assert_same,
    static,
)
from ulr import DatalessClassifier
from ulr.errors import LabelError, TextError
from ulr.inputs import AnchorSets, PhraseVectors, encode_inputs, resolve
from ulr.labels import as_label_set
from ulr.phrasings import Phrasings, combinations
from ulr.refinement import EXCLUDED, UNKNOWN, refine_ensemble

TASK = as_label_set({"sports": ["ball", "goal"], "money": ["bank", "coin", "cash"], "rain": None})
FULL = TEXTS[:-1]


class Letters:
    """Counts of each letter; remembers the texts that it encoded."""

    def __init__(self):
        self.given = []

    def encode(self, texts):
        self.given += texts
        letters = "abcdefghijklmnopqrstuvwxyz"
        return np.array([[text.count(each) for each in letters] for text in texts], np.float32)


def setup(labels=TASK, **arguments):
    defaults = {"method": "auto", "distance": "auto", "template": None, "phrasings": "average"}
    defaults |= {"sample": None, "random_state": 0, "extra_labels": None, "cache": None}
    return resolve(labels, **{**defaults, "encoder": Letters(), **arguments})


# Vectors of phrases


def test_every_phrase_is_encoded_once_inside_the_template():
    arguments = setup(phrasings="combinations", extra_labels=["tea"], template="About {}.")
    inputs = encode_inputs(arguments, ["a goal", "some cash"])
    assert len(inputs.anchor_sets[:]) == 6
    phrases = ["ball", "goal", "bank", "coin", "cash", "rain", "tea"]
    encoded = arguments.encoder.given
    assert encoded == [f"About {each}." for each in phrases] + ["a goal", "some cash"]
    np.testing.assert_array_equal(inputs.extra_anchors, Letters().encode(["About tea."]))


def test_an_anchor_is_the_mean_of_unit_vectors_or_the_vector_of_its_only_phrase():
    averages = PhraseVectors.of_setup(setup()).averages(TASK)
    ball, goal = Letters().encode(["ball", "goal"]).astype(np.float64)
    mean = (ball / np.linalg.norm(ball) + goal / np.linalg.norm(goal)) / 2
    np.testing.assert_allclose(averages[0], mean, rtol=1e-6)
    np.testing.assert_array_equal(averages[2], Letters().encode(["rain"])[0])
    assert averages.dtype == np.float32


def test_the_anchors_of_a_set_are_the_vectors_of_its_phrases():
    phrasings = combinations(TASK)
    sets = AnchorSets(PhraseVectors.of_setup(setup()), phrasings)
    assert len(sets) == len(phrasings) == 6
    for own, phrases in zip(sets, phrasings, strict=True):
        np.testing.assert_array_equal(own, Letters().encode(phrases))
    np.testing.assert_array_equal(sets[1:3], [sets[1], sets[2]])
    np.testing.assert_array_equal(sets[-1], sets[5])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"labels": {"sports": ["ball", "12"], "b": "c"}}, "label 'sports': the encoder knows no"),
        ({"extra_labels": ["5"]}, "extra label '5': the encoder knows no word of '5'; use other"),
        ({"template": "About"}, r"a template must contain \{\}"),
    ],
)
def test_phrases_that_cannot_be_encoded_are_refused(arguments, message):
    with pytest.raises(LabelError, match=message):
        encode_inputs(setup(**arguments), ["a goal"])


def test_empty_texts_are_excluded_unless_their_label_is_known():
    known = np.array([-1, 0, -1, 1, -1], dtype=np.int32)
    inputs = encode_inputs(setup(), ["goal", "", " ", "bank", "\n"], known)
    assert inputs.known.tolist() == [UNKNOWN, 0, EXCLUDED, 1, EXCLUDED]
    assert known.tolist() == [-1, 0, -1, 1, -1]
    assert inputs.word_counts.sum(axis=1).tolist() == [[1], [0], [0], [1], [0]]


def test_words_are_counted_only_where_the_method_uses_them():
    for arguments in ({"method": "ulr"}, {"method": "none"}, {"phrasings": "combinations"}):
        assert encode_inputs(setup(**arguments), ["goal", "bank"]).word_counts is None


def test_encoded_texts_are_reported_batch_by_batch():
    reported = []
    texts = ["goal", "bank"] * 2000
    encode_inputs(setup(), texts, extra_texts=["a", "", "b"], on_texts=reported.append)
    assert len(reported) > 2
    assert sum(reported) == 4002
    assert reported[-1] == 2


# Ensembles of phrasings


def with_phrases(labels=PHRASES, **arguments):
    # With the paper's method, the sets differ even on few texts.
    defaults = {"encoder": static(), "method": "ulr", "max_iter": 20}
    return DatalessClassifier(labels, **{**defaults, **arguments})


@pytest.fixture(scope="module")
def ensemble():
    return with_phrases(phrasings="combinations").fit(FULL)


@pytest.mark.parametrize(
    ("distance", "method"), [("cosine", "auto"), ("l2", "ulr"), ("dot", "none")]
)
def test_an_ensemble_is_that_of_all_combinations(distance, method):
    options = {"distance": distance, "method": method, "max_iter": 20}
    classifier = with_phrases(phrasings="combinations", **options)
    names = classifier.fit_predict(FULL)
    phrases = [[each] if isinstance(each, str) else each for each in PHRASES.values()]
    sets = [static().encode(list(each)) for each in product(*phrases)]
    expected = refine_ensemble(static().encode(FULL), sets, **options)
    np.testing.assert_array_equal(classifier.refinement_.scores, expected.scores)
    np.testing.assert_array_equal(names, np.array(LABELS)[expected.predictions])
    assert (classifier.refinement_.n_sets, len(classifier.phrasings_)) == (6, 6)


def test_an_ensemble_predicts_the_fitted_texts_as_it_fitted_them(ensemble):
    names = np.array(LABELS)[ensemble.refinement_.predictions]
    np.testing.assert_array_equal(ensemble.predict(FULL), names)
    assert ensemble.predict(NEW).tolist() == LABELS


def test_sets_may_be_lists_a_file_or_phrasings(tmp_path):
    path = tmp_path / "sets.txt"
    path.write_text("# two\nfootball; money; science\nsport; trade; technology\n")
    kinds = [SETS, tuple(map(tuple, SETS)), path, Phrasings(tuple(map(tuple, SETS)), 2)]
    first, *others = [with_phrases(LABELS, phrasings=kind).fit(FULL) for kind in kinds]
    sets = [static().encode(each) for each in SETS]
    expected = refine_ensemble(static().encode(FULL), sets, method="ulr", max_iter=20)
    np.testing.assert_array_equal(first.refinement_.scores, expected.scores)
    for other in others:
        assert_same(other, first)


def test_every_finished_set_is_reported():
    reported = []
    with_phrases(phrasings="combinations")._fit(FULL, on_set=reported.append)
    assert reported == [6] * 6


def test_known_texts_keep_their_label_in_an_ensemble(ensemble):
    assert ensemble.predict(FULL[:1]).tolist() == ["sports"]
    classifier = with_phrases(phrasings="combinations")
    assert classifier.fit_predict(FULL, ["business", *[None] * (len(FULL) - 1)])[0] == "business"
    assert not np.array_equal(classifier.predict_proba(NEW), ensemble.predict_proba(NEW))


# Extra labels and texts


@pytest.mark.parametrize("phrasings", ["average", "combinations"])
def test_extra_labels_take_part_and_are_never_predicted(phrasings):
    extra = ["tennis tournament", "cooking"]
    without = with_phrases(phrasings=phrasings).fit(FULL)
    classifier = with_phrases(phrasings=phrasings, extra_labels=extra).fit(FULL)
    assert classifier.classes_.tolist() == sorted(LABELS)
    assert (classifier.extra_labels_, without.extra_labels_) == (tuple(extra), ())
    assert set(classifier.predict([*FULL, *NEW, *extra])) <= set(LABELS)
    assert classifier.refinement_.scores.shape == (len(FULL), 3)
    assert not np.array_equal(classifier.centroids_, without.centroids_)


@pytest.mark.parametrize("phrasings", ["average", "combinations"])
def test_extra_texts_are_refined_on_and_get_no_label(phrasings):
    extra = ["The striker bought shares", "A goal for the bank", "The team of researchers", ""] * 4
    without = with_phrases(phrasings=phrasings).fit(FULL)
    classifier = with_phrases(phrasings=phrasings).fit(FULL, extra_texts=extra)
    assert len(classifier.refinement_.predictions) == len(FULL)
    assert not np.array_equal(classifier.refinement_.scores, without.refinement_.scores)
    names = np.array(LABELS)[classifier.refinement_.predictions]
    np.testing.assert_array_equal(classifier.predict(FULL), names)


def test_only_extra_texts_may_be_unknown():
    y = ["sports", "business", "sports"]
    classifier = DatalessClassifier(LABELS, encoder=static())
    classifier.fit(TEXTS[:3], y, extra_texts=TEXTS[3:])
    assert np.array(LABELS)[classifier.refinement_.predictions].tolist() == y
    assert classifier.predict(NEW).tolist() == LABELS


def test_extra_texts_must_be_texts():
    with pytest.raises(TextError, match="texts must be strings; number 1 is 5"):
        with_phrases().fit(FULL, extra_texts=["a", 5])
    with pytest.raises(TextError, match="there are no texts; at least one is needed"):
        with_phrases().fit(FULL, extra_texts=[])


def test_a_cache_is_put_before_encoders_and_scorers(tmp_path):
    for encoder in (CountingEncoder(), CosineScorer()):
        text_encoder = setup(encoder=encoder, cache=tmp_path).text_encoder
        first, again = text_encoder.encode(["goal"]), text_encoder.encode(["goal"])
        np.testing.assert_array_equal(first, again)
        assert (text_encoder.encoded, text_encoder.found) == (1, 1)


def test_a_loaded_model_may_use_a_cache(tmp_path):
    DatalessClassifier(LABELS, encoder=CountingEncoder()).fit(TEXTS).save(tmp_path / "model")
    encoder = CountingEncoder()
    for _ in range(2):
        DatalessClassifier.load(
            tmp_path / "model", encoder=encoder, cache=tmp_path / "vectors"
        ).predict(NEW)
    assert encoder.n_encoded == len(NEW)
