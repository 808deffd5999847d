"""Questions are uncertain and spread; corrections refit without encoding anything again."""

import re

import numpy as np
import pytest

from tiny_task import LABELS, CountingEncoder, StaticVectors, generated_texts
from ulr import ZeroShotClassifier
from ulr.classifier import Settings, ask, correct, fit, load, save
from ulr.errors import ArrayError, LabelError, ModelError, TextError

N = 240


@pytest.fixture(scope="module")
def task():
    texts, truth = generated_texts(N)
    return [*texts, ""], [*truth, None]


@pytest.fixture(scope="module")
def fitted(task):
    return fit(task[0], Settings(LABELS, encoder=StaticVectors()))


def labels_of(fitted):
    return fitted.names[fitted.predictions.labels]


# What is asked


def test_questions_are_unknown_documents_with_words_in_the_same_order_every_time(task, fitted):
    asked = ask(fitted, 50)
    assert len(set(asked.tolist())) == 50
    np.testing.assert_array_equal(asked[:20], ask(fitted, 20))
    everything = ask(fitted, 10_000)
    assert sorted(everything.tolist()) == list(range(N))  # not the empty text
    corrected = correct(fitted, asked, [task[1][row] for row in asked])
    assert not set(ask(corrected, 50).tolist()) & set(asked.tolist())


def test_questions_are_less_certain_than_the_documents(fitted):
    confidence = fitted.predictions.confidence
    assert confidence[ask(fitted, 20)].mean() < 0.9 * confidence[:N].mean()


def test_copies_are_not_asked_for_twice(task):
    texts, _ = task
    doubtful = "the striker bought shares of the laboratory"
    copies = fit([*texts, *[doubtful] * 30], Settings(LABELS, encoder=StaticVectors()))
    assert np.count_nonzero(ask(copies, 20) >= len(texts)) <= 1


@pytest.mark.parametrize("n", [0, -1, 1.5, True, "many"])
def test_a_number_that_is_none_is_refused(fitted, n):
    with pytest.raises(ArrayError, match="n must be an integer of at least 1"):
        ask(fitted, n)


def test_a_loaded_classifier_has_no_documents_to_ask_for(task, tmp_path):
    save(fit(task[0][:30], Settings(LABELS, encoder="static")), tmp_path / "model")
    with pytest.raises(ModelError, match="without the texts"):
        ask(load(tmp_path / "model"))


# Corrections


def test_a_correction_is_a_fit_with_known_labels(task, fitted):
    texts, truth = task
    rows = ask(fitted, 12).tolist()
    y = [truth[i] if i in rows else None for i in range(len(texts))]
    expected = fit(texts, Settings(LABELS, encoder=StaticVectors()), y=y)
    for documents in (rows, [texts[row] for row in rows]):
        found = correct(fitted, documents, [truth[row] for row in rows])
        np.testing.assert_array_equal(found.known[rows], expected.known[rows])
    found = correct(fitted, rows, [truth[row] for row in rows])
    np.testing.assert_array_equal(found.refinement.scores, expected.refinement.scores)
    assert found.temperature == fitted.temperature
    assert (labels_of(found)[rows] == [truth[row] for row in rows]).all()
    assert not (fitted.known >= 0).any()


def test_no_text_is_encoded_again_except_a_new_one(task):
    encoder = CountingEncoder()
    classifier = ZeroShotClassifier(LABELS, encoder=encoder, extra_labels=["weather"])
    classifier.fit(task[0], extra_texts=["sun and rain"])
    n_encoded = encoder.n_encoded
    classifier.correct([3, 4], ["sports", "business"])
    assert encoder.n_encoded == n_encoded
    new = "a text that was not fitted"
    classifier.correct([new, task[0][5]], ["sports", "business"])
    assert encoder.n_encoded == n_encoded + 1
    fitted = classifier.fitted_
    assert fitted.documents.texts == [*task[0], new]
    assert labels_of(fitted)[[3, 4, 5, -1]].tolist() == ["sports", "business", "business", "sports"]
    classifier.correct([3, new], [None, "business"])
    assert fitted.known[3] == 0
    assert classifier.fitted_.known[[3, 4, -1]].tolist() == [-1, 1, 1]


def test_a_text_stands_for_all_of_its_copies():
    texts = [*generated_texts(60)[0], "a draw", "a draw"]
    found = correct(fit(texts, Settings(LABELS, encoder="static")), ["a draw"], ["business"])
    assert labels_of(found)[-2:].tolist() == ["business", "business"]
    assert len(found.documents.texts) == len(texts)


def test_the_none_label_can_be_an_answer(task):
    settings = Settings(LABELS, encoder=StaticVectors(), none_share=0.1)
    fitted = fit(task[0], settings)
    row = int(np.flatnonzero(fitted.predictions.labels < 3)[0])
    found = correct(fitted, [row], ["none of these"])
    assert labels_of(found)[row] == "none of these"
    assert row not in ask(found, 500)


def test_answers_help(task, fitted):
    truth = task[1]
    rows = ask(fitted, 40).tolist()
    found = correct(fitted, rows, [truth[row] for row in rows])
    others = np.setdiff1d(np.arange(N), rows)
    right = [
        np.mean(labels_of(each)[others] == np.array(truth)[others]) for each in (fitted, found)
    ]
    assert right[1] >= right[0]


@pytest.mark.parametrize(
    ("documents", "labels", "error", "message"),
    [
        ([0], ["tennis"], LabelError, "labels must be label names, and None (or -1) where unknown"),
        ([0, 1], ["sports"], LabelError, "labels must have one label per text"),
        ("text", ["sports"], TextError, "documents must be a list"),
        (["text"], "sports", LabelError, "labels must be a list"),
        ([N + 1], ["sports"], ArrayError, f"from 0 to {N}"),
        ([1.5], ["sports"], TextError, "number 0 is 1.5"),
        ([" "], ["sports"], TextError, "has no words"),
    ],
)
def test_what_is_no_correction_is_refused(fitted, documents, labels, error, message):
    with pytest.raises(error, match=re.escape(message)):
        correct(fitted, documents, labels)


def test_a_new_text_needs_the_space_of_the_fitted_ones(task):
    texts, _ = task
    vectors = np.random.default_rng(0).normal(size=(len(texts), 7))
    names = np.eye(3, 7)
    settings = Settings(LABELS, encoder="static")
    fitted = fit(texts, settings, embeddings=vectors, label_embeddings=names)
    assert correct(fitted, [0], ["business"]).predictions.labels[0] == 1
    with pytest.raises(ArrayError, match="7 dimensions"):
        correct(fitted, ["new"], ["business"])
