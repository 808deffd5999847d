"""Teacher and student: a slow encoder reads a part of many texts, and a student labels the others."""

from dataclasses import replace

import numpy as np
import pytest

from tiny_task import LABELS, Recorder, generated_texts, static
from ulr import ZeroShotClassifier
from ulr.classifier import (
    Settings,
    correct,
    explain,
    fit,
    load,
    resolve,
    save,
    share_to_read,
    suggest,
    teach,
    words_to_read,
)

BUDGET = 200_000  # words, as the documentation states
N_TEXTS = 26_000  # of eight words


class SlowEncoder:
    """The embedded encoder without the mark of encoders that read any number of texts."""

    spec, fingerprint = "static", static().fingerprint

    def __init__(self):
        self.given = []

    def encode(self, texts):
        self.given += texts
        return static().encode(list(texts))

    def words(self):
        return words_to_read([text for text in self.given if "text about" not in text])


@pytest.fixture(scope="module")
def task():
    texts, truth = generated_texts(N_TEXTS)
    return [f"{text} {number}" for number, text in enumerate(texts)], np.array(truth)


@pytest.fixture(scope="module")
def fitted(task):
    encoder = SlowEncoder()
    found = fit(task[0], Settings(LABELS, encoder=encoder, strong_share="budget"))
    assert encoder.words() <= 1.1 * BUDGET
    return found


def accuracy(predictions, truth):
    return np.mean(np.array(LABELS)[predictions.labels] == truth)


def test_the_student_labels_what_the_encoder_did_not_read(task, fitted):
    predictions = fitted.predictions
    n_read = N_TEXTS - int(predictions.by_student.sum())
    assert 0.8 * BUDGET < 9 * n_read < 1.1 * BUDGET
    all_read = fit(task[0], Settings(LABELS, encoder=SlowEncoder(), strong_share=1.0))
    assert not all_read.predictions.by_student.any()
    assert accuracy(predictions, task[1]) > 0.97 * accuracy(all_read.predictions, task[1])


def test_its_confidence_is_that_of_the_teacher(fitted):
    predictions = fitted.predictions
    student = predictions.confidence[predictions.by_student].mean()
    assert abs(student - predictions.confidence[~predictions.by_student].mean()) < 0.1


@pytest.mark.parametrize("share", [0.0, 0.3])
def test_a_share_of_the_other_texts_is_read_as_well(task, fitted, share):
    texts = task[0][:5_000]
    encoder = SlowEncoder()
    settings = replace(fitted.settings, encoder=encoder)
    found = replace(fitted, settings=settings).predict(texts, strong_share=share)
    assert abs(np.mean(~found.by_student) - share) < 0.1
    assert len(encoder.given) == np.count_nonzero(~found.by_student)


def test_predictions_do_not_depend_on_the_other_texts(task, fitted):
    texts = task[0][:2_000]
    whole = fitted.predict(texts, strong_share=0.2)
    parts = [fitted.predict(texts[i : i + 500], strong_share=0.2) for i in range(0, 2_000, 500)]
    for name in ("labels", "by_student"):
        found = np.concatenate([getattr(part, name) for part in parts])
        np.testing.assert_array_equal(found, getattr(whole, name))


def test_few_texts_are_read_by_the_encoder(fitted):
    assert not fitted.predict(["The striker scored a goal"]).by_student.any()


def test_a_saved_classifier_keeps_its_student(task, fitted, tmp_path):
    save(fitted, tmp_path / "model")
    loaded = load(tmp_path / "model", encoder=SlowEncoder())
    for share in (0.1, None):
        found, expected = (
            each.predict(task[0][:1_000], strong_share=share) for each in (loaded, fitted)
        )
        np.testing.assert_array_equal(found.by_student, expected.by_student)
        np.testing.assert_array_equal(found.labels, expected.labels)


def test_a_classifier_of_few_texts_teaches_a_student_for_many(task):
    texts, truth = task
    classifier = ZeroShotClassifier(LABELS, encoder=SlowEncoder(), strong_share="budget")
    classifier.fit(texts[:300])
    assert classifier.fitted_.student is None
    taught = teach(classifier.fitted_, texts, words_to_read(texts))
    assert taught.student is not None
    assert accuracy(taught.predict(texts), truth) > 0.9 * accuracy(
        classifier.fitted_.predict(texts[:2_000]), truth[:2_000]
    )
    assert teach(classifier.fitted_, texts[:10], 100) is classifier.fitted_


def test_known_labels_stay_and_the_progress_names_what_the_encoder_reads(task):
    texts, truth = task
    wrong = [LABELS[(LABELS.index(name) + 1) % 3] for name in truth[:20]]
    settings = Settings(LABELS, encoder=SlowEncoder(), strong_share=0.05)
    progress = Recorder()
    found = fit(texts, settings, progress, y=[*wrong, *[None] * (N_TEXTS - 20)])
    assert np.array(LABELS)[found.predictions.labels[:20]].tolist() == wrong
    stages = dict(progress.stages)
    assert stages["Encoding by the fast encoder"] == N_TEXTS
    assert 0 < stages["Encoding a sample"] < N_TEXTS


def test_a_correction_reads_no_more_than_the_newly_known_texts(task, fitted):
    encoder, read = fitted.settings.encoder, fitted.documents.strong.rows
    given = len(encoder.given)
    new = np.setdiff1d(np.arange(N_TEXTS), read)[:4].tolist()
    rows = [int(read[0]), *new]
    found = correct(fitted, rows, ["business"] * 5)
    assert len(encoder.given) - given == 4
    assert np.array(LABELS)[found.predictions.labels[rows]].tolist() == ["business"] * 5
    assert accuracy(found.predictions, task[1]) > 0.98 * accuracy(fitted.predictions, task[1])
    assert found.predictions.by_student.mean() == pytest.approx(
        fitted.predictions.by_student.mean(), abs=0.01
    )


def test_a_text_is_explained_by_what_labelled_it(task, fitted):
    predictions = fitted.predictions.rows(np.arange(200))
    found = explain(fitted, task[0][:200], predictions=predictions)
    assert [each.exact for each in found] == predictions.by_student.tolist()


def test_an_encoder_that_is_chosen_reads_everything():
    settings = resolve(Settings(LABELS, encoder=SlowEncoder()))
    assert share_to_read(settings, 100 * BUDGET) == 1.0
    budget = replace(settings, strong_share="budget")
    assert share_to_read(budget, BUDGET) == 1.0
    assert share_to_read(budget, 100 * BUDGET) == pytest.approx(0.01)


def test_suggestions_are_found_on_documents_that_the_encoder_has_read(task, fitted):
    before = len(fitted.settings.encoder.given)
    found = suggest(fitted)
    assert set(task[0]).isdisjoint(fitted.settings.encoder.given[before:])
    shown = [position for each in found.missing for position in each.members]
    shown += [position for each in found.split for half in each.documents for position in half]
    assert not fitted.predictions.by_student[shown].any()
    assert found.examined == 5_000
