"""From phrases to vectors: each encoded once, averaged, or put together as a wording has them."""

import numpy as np
import pytest

from ulr.anchors import PhraseVectors, WordingVectors, label_vectors, owners_of_phrases
from ulr.errors import LabelError
from ulr.labels import as_label_set
from ulr.wordings import combinations

LABELS = as_label_set({"sports": ["ball", "goal"], "money": ["bank", "coin", "cash"], "rain": None})


class Letters:
    """How often a text has each letter; remembers what it was given."""

    def __init__(self):
        self.given = []

    def encode(self, texts):
        self.given += texts
        letters = "abcdefghijklmnopqrstuvwxyz"
        return np.array([[text.count(each) for each in letters] for text in texts], np.float32)


def vectors_of(template=None, labels=LABELS, encoder=None):
    return PhraseVectors(encoder or Letters(), owners_of_phrases(labels), template)


def test_every_phrase_belongs_to_its_label():
    assert owners_of_phrases(LABELS) == {
        "ball": "label 'sports'",
        "goal": "label 'sports'",
        "bank": "label 'money'",
        "coin": "label 'money'",
        "cash": "label 'money'",
        "rain": "label 'rain'",
    }


def test_every_phrase_is_encoded_once_inside_the_template():
    encoder = Letters()
    vectors = vectors_of("About {}.", encoder=encoder)
    WordingVectors(vectors, combinations(LABELS))[:]
    vectors.averages(LABELS)
    assert encoder.given == [f"About {each}." for each in owners_of_phrases(LABELS)]
    np.testing.assert_array_equal(vectors.of(["coin"]), Letters().encode(["About coin."]))


def test_averages_are_of_unit_vectors_and_one_phrase_stays_as_it_is():
    averages = vectors_of().averages(LABELS)
    ball, goal = Letters().encode(["ball", "goal"]).astype(np.float64)
    by_hand = (ball / np.linalg.norm(ball) + goal / np.linalg.norm(goal)) / 2
    np.testing.assert_allclose(averages[0], by_hand, rtol=1e-6)
    np.testing.assert_array_equal(averages[2], Letters().encode(["rain"])[0])
    assert averages.dtype == np.float32
    np.testing.assert_array_equal(label_vectors(Letters(), LABELS), averages)


def test_the_vectors_of_a_wording_are_those_of_its_phrases():
    wordings = combinations(LABELS)
    sets = WordingVectors(vectors_of(), wordings)
    assert len(sets) == len(wordings) == 6
    for own, phrases in zip(sets, wordings, strict=True):
        np.testing.assert_array_equal(own, Letters().encode(phrases))
    np.testing.assert_array_equal(sets[1:3], [sets[1], sets[2]])
    np.testing.assert_array_equal(sets[-1], sets[5])


def test_a_phrase_without_a_known_word_is_named_with_what_it_belongs_to():
    labels = as_label_set({"sports": ["ball", "123"], "money": "bank"})
    message = r"label 'sports': the encoder knows no word of '123'; use other words\."
    with pytest.raises(LabelError, match=message):
        vectors_of(labels=labels)
    with pytest.raises(LabelError, match="extra label '5': the encoder knows no word of '5'"):
        PhraseVectors(Letters(), {"ball": "label 'sports'", "5": "extra label '5'"})


def test_a_template_without_a_place_is_refused():
    with pytest.raises(LabelError, match=r"a template must contain \{\}"):
        vectors_of("About")
