"""The classifier: what it fits and predicts, known labels, vectors, caches and diagnosis."""

import re
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone

from tiny_task import (
    LABELS,
    NEW,
    TEXTS,
    CosineScorer,
    CountingEncoder,
    HashingEncoder,
    StaticVectors,
    assert_same,
    generated_texts,
    static,
)
from ulr import UlrWarning, ZeroShotClassifier, refine
from ulr.classifier import count_words
from ulr.errors import ArrayError, EncoderError, LabelError, ParameterError, TextError
from ulr.refinement import EXCLUDED


@pytest.fixture(scope="module")
def fitted():
    return ZeroShotClassifier(LABELS, encoder=StaticVectors(), template=None).fit(TEXTS)


def refined(method="auto", known=-1, **options):
    """`refine` on the vectors of the texts, of which the last is empty."""
    codes = np.array([known, *[-1] * (len(TEXTS) - 2), EXCLUDED])
    if method != "ulr":
        options["word_counts"] = count_words(TEXTS)
    vectors, anchors = static().encode(TEXTS), static().encode(LABELS)
    return refine(vectors, anchors, known=codes, method=method, **options)


# Fitting and predicting


@pytest.mark.parametrize(
    "options", [{}, {"prior": [0.8, 0.1, 0.1]}, {"method": "ulr", "max_iter": 2}], ids=str
)
def test_it_refines_as_refine_does_on_the_same_vectors(options):
    classifier = ZeroShotClassifier(LABELS, encoder="static", **options).fit(TEXTS)
    expected = refined(**options)
    np.testing.assert_array_equal(classifier.refinement_.scores, expected.scores)
    np.testing.assert_array_equal(classifier.centroids_, expected.centroids)
    assert (classifier.n_iter_, classifier.method_) == (expected.n_iter, expected.method)


@pytest.mark.parametrize(
    ("method", "distance"),
    [("discriminant", "cosine"), ("ulr", "cosine"), ("ulr", "l2"), ("ulr", "dot"), ("none", "l2")],
)
def test_fitted_texts_are_predicted_as_they_were_fitted(method, distance):
    texts, _ = generated_texts(19, own=0.3)
    classifier = ZeroShotClassifier(LABELS, encoder=static(), method=method, distance=distance)
    names = classifier.fit_predict(texts)
    np.testing.assert_array_equal(names, np.array(LABELS)[classifier.refinement_.predictions])
    np.testing.assert_array_equal(classifier.predict(texts), names)
    scores = classifier.fitted_.predict(texts).scores
    np.testing.assert_allclose(scores, classifier.refinement_.scores, rtol=1e-5, atol=1e-5)
    assert (classifier.method_, classifier.distance_) == (method, distance)


def test_refitting_forgets_the_earlier_fit():
    classifier = ZeroShotClassifier(["cooking", "gardening"], encoder=static(), none_share=0.2)
    classifier.fit(TEXTS, ["cooking", *[None] * (len(TEXTS) - 1)])
    classifier.set_params(labels=LABELS, none_share=None).fit(TEXTS)
    fresh = ZeroShotClassifier(LABELS, encoder=static()).fit(TEXTS)
    assert vars(classifier).keys() == vars(fresh).keys()
    assert_same(classifier, fresh)


def test_a_failed_refit_keeps_the_earlier_fit():
    classifier = ZeroShotClassifier(LABELS, encoder=static()).fit(TEXTS)
    before = classifier.predict_proba(NEW)
    for texts, message in ((["a", 5], "number 1 is 5"), (["", " \n", None], "all texts are empty")):
        with pytest.raises(TextError, match=message):
            classifier.fit(texts)
    np.testing.assert_array_equal(classifier.predict_proba(NEW), before)


# Known labels


@pytest.mark.parametrize("unknown", [None, -1, np.int64(-1), float("nan"), pd.NA])
def test_known_texts_keep_their_label_and_move_its_centroid(fitted, unknown):
    assert fitted.predict(TEXTS[:1]).tolist() == ["sports"]
    classifier = ZeroShotClassifier(LABELS, encoder=static())
    names = classifier.fit_predict(TEXTS, ["business", *[unknown] * (len(TEXTS) - 1)])
    assert names[0] == "business"
    expected = refined(known=LABELS.index("business"))
    np.testing.assert_array_equal(classifier.centroids_, expected.centroids)
    assert not np.array_equal(classifier.centroids_, fitted.centroids_)


@pytest.mark.parametrize(
    "kind",
    [tuple, iter, pd.Series, pl.Series, lambda y: pd.Series(y, dtype="category"), pa.array],
)
def test_known_labels_may_be_any_list(kind):
    y = [None, "business", *[None] * (len(TEXTS) - 2)]
    expected = ZeroShotClassifier(LABELS, encoder=static()).fit(TEXTS, y)
    assert_same(ZeroShotClassifier(LABELS, encoder=static()).fit(TEXTS, kind(y)), expected)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (["sports", "football", None], "number 1 is 'football'. The labels are: sports, business"),
        (["sports", 0, None], "number 0 is 'sports'"),
        ([0, 3, 1], "number 1 is 3"),
        (["sports", None], "got 2 for 3 texts."),
        ("sports", "y must be a list of labels, None (or -1) where unknown; got str."),
        (5, "y must be a list of labels, None (or -1) where unknown; got int."),
        (np.full((3, 2), "sports"), "got shape (3, 2)."),
    ],
)
def test_known_labels_that_do_not_fit_are_refused(y, message):
    with pytest.raises(LabelError, match=re.escape(message)):
        ZeroShotClassifier(LABELS, encoder=HashingEncoder()).fit(TEXTS[:3], y)


# Vectors of the user, and the cache


def test_given_vectors_replace_the_encoder(fitted):
    vectors, anchors = static().encode(TEXTS), static().encode(LABELS)
    encoder = CountingEncoder()
    classifier = ZeroShotClassifier(LABELS, encoder=encoder)
    classifier.fit(TEXTS, embeddings=vectors, label_embeddings=anchors)
    np.testing.assert_array_equal(classifier.refinement_.scores, fitted.refinement_.scores)
    new = static().encode(NEW)
    for given in (new, new.tolist(), new.astype(np.float64)):
        found = classifier.predict_proba(NEW, embeddings=given)
        np.testing.assert_allclose(found, fitted.predict_proba(NEW), rtol=1e-6)
    assert classifier.predict(NEW, embeddings=new).tolist() == LABELS
    assert classifier.decision_function(NEW, embeddings=new).shape == (3, 3)
    assert encoder.n_encoded == 0


@pytest.mark.parametrize(
    ("embeddings", "message"),
    [
        (np.ones((2, 256)), "embeddings must be numbers of shape (3, n_dims); got shape (2, 256)"),
        (np.ones(3), "got shape (3,)"),
        ([[1.0], [1.0, 2.0], [3.0]], "embeddings must be rows of equal length."),
        (np.full((3, 4), "a"), "embeddings must be numbers"),
        (np.full((3, 256), np.nan), "NaN or infinity in 3 rows"),
        (np.ones((3, 7)), "256"),
    ],
)
def test_vectors_that_do_not_fit_are_refused(fitted, embeddings, message):
    with pytest.raises(ArrayError, match=re.escape(message)):
        fitted.predict(NEW, embeddings=embeddings)
    with pytest.raises(ArrayError, match=re.escape(message)):
        clone(fitted).fit(NEW, embeddings=embeddings)


@pytest.mark.parametrize("arguments", [{"extra_labels": ["cooking"]}, {"encoder": CosineScorer()}])
def test_label_vectors_are_refused_where_they_would_be_ignored(arguments):
    classifier = ZeroShotClassifier(LABELS, **{"encoder": StaticVectors(), **arguments})
    with pytest.raises(ArrayError, match="label_embeddings give one vector per label"):
        classifier.fit(TEXTS, label_embeddings=static().encode(LABELS))


def test_with_a_cache_no_text_is_encoded_twice(tmp_path):
    first, second = CountingEncoder(), CountingEncoder()
    plain = ZeroShotClassifier(LABELS, encoder=CountingEncoder(), template=None).fit(TEXTS)
    once = ZeroShotClassifier(LABELS, encoder=first, cache=tmp_path, template=None).fit(TEXTS)
    again = ZeroShotClassifier(LABELS, encoder=second, cache=tmp_path, template=None).fit(TEXTS)
    for each in (once, again):
        np.testing.assert_array_equal(each.refinement_.scores, plain.refinement_.scores)
    assert (first.n_encoded, second.n_encoded) == (len(TEXTS) + len(LABELS), 0)
    again.predict(TEXTS[:4] + NEW)
    assert second.n_encoded == len(NEW)
    again.set_params(labels=["cooking", "gardening", "sports"]).fit(TEXTS + NEW)
    assert second.n_encoded == len(NEW) + 2


# Arguments


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"labels": "a, b"}, LabelError, "labels must be a list of names or a mapping"),
        ({"template": "about"}, LabelError, r"a template must contain \{\}"),
        ({"encoder": "bert"}, EncoderError, "encoder must be one of static"),
        ({"distance": "cos"}, ParameterError, "distance must be one of cosine, l2, dot"),
        ({"method": "discriminant", "distance": "l2"}, ParameterError, "works with cosine"),
        ({"max_iter": 0}, ParameterError, "max_iter must be an integer of at least 1"),
        ({"n_jobs": 0}, ParameterError, "n_jobs must be an integer of at least 1"),
        ({"prior": [1, 2]}, ParameterError, "positive proportion for each of the 3 labels"),
        ({"prior": "balanced", "method": "ulr"}, ParameterError, "it is an option of discriminant"),
        ({"fit_sample": 0}, ParameterError, "fit_sample must be"),
        ({"none_share": 1.0}, ParameterError, "none_share must be between 0 and 1; got 1.0"),
        (
            {"none_share": 0.1, "none_label": "sports"},
            ParameterError,
            "none of the labels; got 'spo",
        ),
        (
            {"encoder": CosineScorer(), "distance": "l2"},
            ParameterError,
            "'l2' compares vectors, but",
        ),
        ({"encoder": CosineScorer(), "extra_labels": ["math"]}, LabelError, "scores pairs of text"),
        (
            {"distance": "jensen-shannon"},
            ParameterError,
            "compares probabilities of labels, but this",
        ),
    ],
)
def test_arguments_are_validated_by_fit(arguments, error, message):
    classifier = ZeroShotClassifier(**{"labels": LABELS, "encoder": HashingEncoder(), **arguments})
    with pytest.raises(error, match=message):
        classifier.fit(TEXTS)


# Diagnosis


@pytest.mark.parametrize("encoder", [StaticVectors(), CosineScorer()], ids=["vectors", "pairs"])
def test_the_diagnosis_names_labels_and_expects_an_accuracy(encoder):
    fitted = ZeroShotClassifier(LABELS, encoder=encoder).fit(TEXTS)
    diagnosis = fitted.diagnosis_
    assert [each.label for each in diagnosis.labels] == LABELS
    assert diagnosis.documents == len(TEXTS) - 1
    confidence = fitted.predict_proba(TEXTS[:-1]).max(axis=1)
    assert diagnosis.expected_accuracy == pytest.approx(confidence.mean(), abs=1e-3)
    assert any(
        "9 is a small number of documents for 3 labels" in each for each in diagnosis.warnings
    )


def test_the_diagnosis_notes_labels_that_differ_in_case():
    labels = ["Sports", "sports", "business"]
    classifier = ZeroShotClassifier(labels, encoder=static()).fit(TEXTS)
    [note] = classifier.diagnosis_.notes
    assert note == "The labels 'Sports', 'sports' differ only in upper and lower case."
    assert classifier.diagnosis_.warnings[-1] == note
    assert ZeroShotClassifier(LABELS, encoder=static()).fit(TEXTS).diagnosis_.notes == ()


def test_labels_are_not_refined_where_many_texts_are_in_other_languages():
    german = ["Der Hund und das Haus sind nicht auf dem Berg, und ich bin mit der Bahn da"] * 6
    classifier = ZeroShotClassifier(LABELS, encoder=static(), fit_sample=50, prior="balanced")
    found = classifier.fit(german + TEXTS)
    assert any("look like the language 'de'" in note for note in found.diagnosis_.notes)
    assert (found.method_, found.refinement_.n_moved) == ("none", 0)
    assert "languages that the encoder was not made for" in found.refinement_.reason
    known = classifier.fit(german + TEXTS, [*[None] * 5, "sports", *[None] * len(TEXTS)])
    assert known.method_ == "discriminant"


# Threads


def test_concurrent_fits_and_more_threads_give_the_results_of_sequential_ones(tmp_path):
    texts, truth = generated_texts(120, own=0.3)
    known = [name if i % 5 == 0 else None for i, name in enumerate(truth)]
    tasks = [
        {"method": "discriminant", "cache": tmp_path},
        {"method": "ulr", "extra_labels": ["football", "money", "research"]},
        {"method": "discriminant", "none_share": 0.1, "random_state": 3, "cache": tmp_path},
        {"encoder": CosineScorer(), "n_jobs": 2},
    ]

    def run(task):
        arguments = {"encoder": static(), "n_jobs": 1, **task}
        return ZeroShotClassifier(LABELS, **arguments).fit(texts, known).predict_proba(texts)

    sequential = [run({**task, "cache": None}) for task in tasks]
    with ThreadPoolExecutor(len(tasks)) as pool:
        concurrent = list(pool.map(run, tasks))
    others = [run({**task, "n_jobs": 3}) for task in tasks]
    for one, *same in zip(sequential, concurrent, others, strict=True):
        for other in same:
            np.testing.assert_array_equal(one, other)


# Warnings


def test_a_fit_that_cannot_be_trusted_warns():
    clf = ZeroShotClassifier(["xylophone", "quasar"], encoder="static")
    with pytest.warns(UlrWarning, match="names of the labels say little|expected to be right"):
        clf.fit([f"{text} {number}" for number in range(10) for text in TEXTS])
    assert not clf.diagnosis_.trusted


def test_placeholders_are_counted():
    texts = [*TEXTS, "n/a", " NULL ", "-", "na na"]
    notes = ZeroShotClassifier(LABELS, encoder="static").fit(texts).diagnosis_.notes
    (note,) = [each for each in notes if "placeholders" in each]
    assert note.startswith("3 of the texts look like placeholders ('n/a', 'NULL', '-')")


@pytest.mark.parametrize(
    ("text", "is_placeholder"),
    [
        *((text, True) for text in ("(null)", "[deleted]", "<br/>", "<p></p> &nbsp;", "{{name}}")),
        *((text, True) for text in ("#REF!", "Keine Angabe", "\u200b", "\x00", "--- ???", "[x]")),
        *(
            (text, False)
            for text in ("\U0001f600", "", "a < b", "1 > 0", "none of it works", "R&D")
        ),
    ],
)
def test_remains_of_forms_and_pages_are_placeholders(text, is_placeholder):
    diagnosis = ZeroShotClassifier(LABELS, encoder="static").fit([*TEXTS, text]).diagnosis_
    assert any("placeholder" in each for each in diagnosis.notes) == is_placeholder


def test_texts_that_are_keys_of_a_mapping_are_refused():
    with pytest.raises(TextError, match="texts must be a list of texts; got dict"):
        ZeroShotClassifier(LABELS, encoder="static").fit(dict.fromkeys(TEXTS))
