"""Suggestions for labels: missing ones, some to merge or to split, and phrases."""

import csv
from pathlib import Path

import numpy as np
import pytest

from tiny_task import LABELS, CosineScorer, StaticVectors, generated_texts
from ulr import ZeroShotClassifier
from ulr.classifier import MissingLabel, Suggestions, suggest
from ulr.errors import ArrayError, LabelError
from ulr.labels import as_label_set, read_labels

EXAMPLES = Path(__file__).parents[2] / "examples"
HIDDEN = "science and technology"
WORDS = set("telescope protein neural laboratory physics software planet molecule".split()) | set(
    "experiment quantum microscope algorithm".split()
)


@pytest.fixture(scope="module")
def task():
    texts, truth = generated_texts(400, own=0.8)
    return ["", *texts], np.array(["", *truth])


@pytest.fixture(scope="module")
def without_one(task):
    """Suggestions of a classifier without the label of a third of the texts."""
    labels = [label for label in LABELS if label != HIDDEN]
    return ZeroShotClassifier(labels, encoder=StaticVectors()).fit(task[0])


def test_a_hidden_label_is_found_as_a_group_with_a_name_from_its_words(task, without_one):
    first, *_ = without_one.suggest().missing
    truth = task[1][list(first.members)]
    assert (truth == HIDDEN).mean() > 0.9
    assert set(first.name.split()) <= WORDS
    assert set(first.words) & WORDS
    assert set(first.documents) <= set(first.members)
    assert first.size == len(first.members) == len(set(first.members))
    assert 0.5 < first.attracts <= 1
    assert 0.5 < first.own <= 1
    assert sum(share for _, share in first.labels) == pytest.approx(1.0)


def test_nothing_is_missing_where_the_labels_are_complete():
    with (EXAMPLES / "news_blurbs.csv").open(encoding="utf-8", newline="") as file:
        texts = [f"{row['headline']} {row['summary']}" for row in csv.DictReader(file)]
    labels = EXAMPLES / "news_labels.txt"
    found = ZeroShotClassifier(labels, encoder=StaticVectors()).fit(["", *texts]).suggest()
    assert found.missing == found.merge == ()
    assert found.examined == len(texts)  # the empty text is none of them
    assert set(found.phrases) == set(read_labels(labels).names)


def test_the_same_texts_give_the_same_suggestions(task, without_one, tmp_path):
    found = without_one.suggest()
    assert without_one.suggest() == found
    assert without_one.suggest(task[0]).missing == found.missing
    with pytest.raises(ArrayError, match="give some texts"):
        suggest(loaded(without_one, tmp_path))


def loaded(classifier, folder):
    classifier.save(folder / "model")
    return ZeroShotClassifier.load(folder / "model", encoder=StaticVectors()).fitted_


def test_a_label_of_two_topics_is_split(task):
    labels = {"sports": "sports", "other": ["business", HIDDEN]}
    found = ZeroShotClassifier(labels, encoder=StaticVectors()).fit(task[0]).suggest()
    (split,) = found.split
    assert (split.label, len(split.words), len(split.documents)) == ("other", 2, 2)
    assert sum(split.sizes) > 200
    halves = [set(task[1][list(half)]) for half in split.documents]
    assert sorted(map(len, halves)) == [1, 1]
    assert halves[0] != halves[1]


def test_two_names_of_one_topic_are_merged(task):
    labels = ["sport", "sports", "business", HIDDEN]
    found = ZeroShotClassifier(labels, encoder=StaticVectors(), method="none").fit(task[0])
    (pair, *_) = found.suggest().merge
    assert (pair.first, pair.second) == ("sport", "sports")
    assert 0.5 < pair.overlap <= 1


def test_phrases_are_words_of_their_own_label_and_of_no_other(task):
    found = ZeroShotClassifier(LABELS, encoder=StaticVectors()).fit(task[0]).suggest().phrases
    assert found
    every = [phrase for phrases in found.values() for phrase in phrases]
    assert len(every) == len(set(every))
    assert all(1 <= len(phrases) <= 3 for phrases in found.values())
    assert set(found.get(HIDDEN, ())) <= {phrase for phrase in every if set(phrase.split()) & WORDS}


def test_few_or_equal_texts_give_no_suggestion():
    for texts in (["goal of the match", "shares of the bank"], ["the goal of the match"] * 100):
        found = ZeroShotClassifier(["sports", "business"], encoder=StaticVectors()).fit(texts)
        assert found.suggest().missing == ()


def test_labels_with_suggestions_can_be_fitted(task, without_one):
    found = without_one.suggest()
    labels = found.labels_with(without_one.label_set_, phrases=True)
    assert labels.names[:2] == without_one.label_set_.names
    assert len(labels) == 2 + sum(each.better_name_for is None for each in found.missing)
    more = ZeroShotClassifier(labels, encoder=StaticVectors()).fit_predict(task[0])
    new = more == found.missing[0].name
    assert (task[1][new] == HIDDEN).mean() > 0.8


def test_a_better_name_for_a_label_is_no_label_of_its_own():
    missing = MissingLabel("iraq", 9, (), (), (), 0.9, 0.9, (("world", 1.0),), "world")
    labels = as_label_set(["world", "sports"])
    assert Suggestions(9, (missing,), (), (), {}).labels_with(labels) == labels


def test_encoders_of_pairs_are_refused(task):
    classifier = ZeroShotClassifier(LABELS, encoder=CosineScorer()).fit(task[0][:50])
    with pytest.raises(LabelError, match="encoder of texts"):
        classifier.suggest()
