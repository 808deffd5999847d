"""Descriptions of labels by their documents and words."""

import numpy as np
import pytest

from tiny_task import LABELS, StaticVectors, generated_texts
from ulr import ZeroShotClassifier


@pytest.fixture(scope="module")
def task():
    texts, _ = generated_texts(120, own=0.4)
    texts[7] = ""
    return texts, ZeroShotClassifier(LABELS, encoder=StaticVectors(), method="ulr").fit(texts)


def test_every_label_is_described_by_its_own_documents(task):
    texts, classifier = task
    found = classifier.describe(texts)
    names = classifier.predict(texts)
    proba = classifier.predict_proba(texts)
    labelled = np.array([bool(text) for text in texts])
    assert list(found) == LABELS
    for column, name in enumerate(classifier.classes_):
        own = np.flatnonzero((names == name) & labelled)
        description = found[name]
        assert description.size == len(own)
        best = own[np.argsort(-proba[own, column], kind="stable")[:5]]
        assert description.representative == tuple(best)
        ordered = np.sort(proba[own], axis=1)
        closest = own[np.argsort(ordered[:, -1] - ordered[:, -2], kind="stable")[:5]]
        assert [row for row, _ in description.borderline] == closest.tolist()
        for row, other in description.borderline:
            assert other == classifier.classes_[np.argsort(proba[row])[-2]]


def test_the_words_of_a_label_are_those_of_its_topic(task):
    texts, classifier = task
    found = classifier.describe(texts, n_words=4, n_documents=2)
    assert {"goal", "coach", "tennis", "cup", "striker", "match"} & set(found["sports"].words)
    assert {"bank", "shares", "profit", "bonds", "market"} & set(found["business"].words)
    everywhere = {"today", "people", "said"}
    assert all(everywhere.isdisjoint(each.words) for each in found.values())
    for each in found.values():
        assert len(each.words) <= 4
        assert len(each.representative) == len(each.borderline) == 2


def test_new_texts_and_the_none_label_are_described(task):
    texts, _ = task
    classifier = ZeroShotClassifier(
        LABELS, encoder=StaticVectors(), method="ulr", none_share=0.2
    ).fit(texts)
    new, _ = generated_texts(40, seed=9)
    found = classifier.describe([*new, ""])
    assert list(found) == [*LABELS, "none of these"]
    assert sum(each.size for each in found.values()) == 41
    empty = classifier.describe(["goal for the striker"])
    assert [each.size for each in empty.values()].count(1) == 1
