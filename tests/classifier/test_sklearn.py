"""scikit-learn's contract, verified by scikit-learn's own tools and by direct computation."""

import pickle

import numpy as np
import pytest
from sklearn import metrics
from sklearn.base import clone, is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import (
    GridSearchCV,
    StratifiedKFold,
    cross_val_predict,
    cross_val_score,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, LabelEncoder
from sklearn.utils import estimator_checks

from tiny_task import (
    LABELS,
    NEW,
    TEXTS,
    HashingEncoder,
    StaticVectors,
    assert_same,
    generated_texts,
    static,
)
from ulr import UlrWarning, ZeroShotClassifier

FOLDS = StratifiedKFold(3, shuffle=True, random_state=0)


@pytest.fixture(scope="module")
def encoder():
    return StaticVectors()


@pytest.fixture(scope="module")
def three():
    """Texts and names of three labels, with the classes not in the order of the labels."""
    texts, truth = generated_texts(90, own=0.25)
    return np.array(texts, dtype=object), np.array(truth)


@pytest.fixture(scope="module")
def two():
    texts, truth = generated_texts(90, own=0.25, labels=["sports", "business"])
    return np.array(texts, dtype=object), np.array(truth)


CHECKS = (
    "do_not_raise_errors_in_init_or_set_params estimator_cloneable estimator_repr "
    "estimator_tags_renamed estimators_unfitted get_params_invariance mixin_order "
    "no_attributes_set_in_init parameters_default_constructible set_params valid_tag_types"
).split()


@pytest.mark.parametrize("check", CHECKS)
def test_estimator_checks_without_numeric_input_pass(check):
    classifier = ZeroShotClassifier(LABELS, encoder=HashingEncoder())
    getattr(estimator_checks, f"check_{check}")("ZeroShotClassifier", classifier)


def test_parameters_are_stored_untouched_by_a_classifier_of_texts():
    tags = ZeroShotClassifier(LABELS, encoder="static").__sklearn_tags__().input_tags
    assert is_classifier(ZeroShotClassifier(LABELS, encoder="static"))
    assert (tags.string, tags.one_d_array, tags.two_d_array) == (True, True, False)
    given = {name: object() for name in ZeroShotClassifier(LABELS, encoder="static").get_params()}
    found = ZeroShotClassifier(**given).get_params(deep=False)
    assert found.keys() == given.keys()
    assert all(found[name] is given[name] for name in given)


def test_a_clone_is_not_fitted_shares_the_encoder_and_fits_the_same():
    fitted = ZeroShotClassifier(LABELS, encoder=static()).fit(TEXTS)
    learned = vars(fitted).keys() - fitted.get_params().keys()
    assert all(name.endswith("_") or name.startswith("_") for name in learned)
    copy = clone(fitted)
    assert not hasattr(copy, "classes_")
    assert copy.encoder is static()
    assert_same(copy.fit(TEXTS), fitted)
    reversed_labels = clone(copy).set_params(labels=LABELS[::-1]).fit(TEXTS)
    np.testing.assert_allclose(
        reversed_labels.predict_proba(NEW), fitted.predict_proba(NEW), atol=1e-6
    )


def test_a_pickle_predicts_the_same_and_leaves_out_the_weights_of_the_encoder():
    fitted = ZeroShotClassifier(LABELS, encoder=static()).fit(TEXTS)
    pickled = pickle.dumps(fitted)
    assert len(pickled) < 100_000
    assert_same(pickle.loads(pickled), fitted)


@pytest.mark.parametrize(
    "method", ["predict", "predict_proba", "decision_function", "describe", "save"]
)
def test_unfitted_use_is_refused(method, tmp_path):
    given = tmp_path / "model" if method == "save" else NEW
    with pytest.raises(NotFittedError, match="ZeroShotClassifier instance is not fitted yet"):
        getattr(ZeroShotClassifier(LABELS, encoder="static"), method)(given)
    assert not any(tmp_path.iterdir())


# Classes, probabilities and decision values


@pytest.mark.parametrize("labels", [LABELS, LABELS[::-1]], ids=["as given", "reversed"])
def test_columns_of_probabilities_and_decisions_are_the_sorted_classes(encoder, labels):
    classifier = ZeroShotClassifier(labels, encoder=encoder).fit(TEXTS)
    assert classifier.classes_.tolist() == sorted(LABELS)
    assert classifier.label_set_.names == tuple(labels)
    assert classifier.score(NEW, LABELS) == 1.0
    proba, decisions = classifier.predict_proba(NEW), classifier.decision_function(NEW)
    assert proba.shape == decisions.shape == (3, 3)
    np.testing.assert_allclose(proba.sum(axis=1), 1.0, rtol=1e-12)
    assert classifier.classes_[proba.argmax(axis=1)].tolist() == LABELS
    np.testing.assert_allclose(decisions, np.log(proba))
    scores = classifier.fitted_.predict(NEW).scores[:, np.argsort(labels)].astype(np.float64)
    np.testing.assert_allclose(
        decisions[:, 0] - decisions[:, 1],
        (scores[:, 0] - scores[:, 1]) / classifier.fitted_.temperature,
        rtol=1e-6,
    )


def test_the_decision_of_two_labels_is_one_number_positive_for_the_second_class(encoder, two):
    texts, _ = two
    classifier = ZeroShotClassifier(["sports", "business"], encoder=encoder).fit(texts)
    decision = classifier.decision_function(texts)
    assert decision.shape == (len(texts),)
    np.testing.assert_array_equal(
        classifier.predict(texts), np.where(decision > 0, "sports", "business")
    )
    second = classifier.predict_proba(texts)[:, 1]
    np.testing.assert_allclose(second, 1 / (1 + np.exp(-decision)))
    classifier.set_params(none_share=0.1).fit(texts)
    assert classifier.classes_.tolist() == ["business", "none of these", "sports"]
    assert classifier.decision_function(texts).shape == (90, 3)


# Complete and integer labels


def test_many_known_labels_outweigh_the_names(encoder):
    texts, truth = generated_texts(600, own=0.6)
    swap = dict(zip(LABELS, [*LABELS[1:], LABELS[0]], strict=True))
    classifier = ZeroShotClassifier(LABELS, encoder=encoder)
    classifier.fit(texts, [swap[name] for name in truth])
    new, expected = generated_texts(300, seed=5, own=0.6)
    assert classifier.score(new, [swap[name] for name in expected]) > 0.9


@pytest.mark.parametrize("none_share", [None, 0.1])
def test_integers_are_positions_in_the_sorted_names_with_none_as_the_last(encoder, none_share):
    texts, truth = generated_texts(60, own=0.5)
    codes = np.where(np.arange(60) < 45, LabelEncoder().fit_transform(truth), -1)
    names = [truth[i] if i < 45 else None for i in range(60)]
    classifier = ZeroShotClassifier(LABELS, encoder=encoder, none_share=none_share)
    by_name = classifier.fit(texts, names).predict([*texts, ""])
    by_code = classifier.fit(texts, codes).predict([*texts, ""])
    assert classifier.classes_.tolist() == [0, 1, 2] + [3] * bool(none_share)
    assert none_share is None or by_code[-1] == 3
    last = "none of these" if none_share else ""
    assert np.array([*sorted(LABELS), last])[by_code].tolist() == by_name.tolist()


# Cross-validation with every kind of scorer


def by_hand(classifier, texts, truth, figure):
    """A figure of each fold from probabilities by name."""
    found = []
    for train, test in FOLDS.split(texts, truth):
        fitted = clone(classifier).fit(list(texts[train]), list(truth[train]))
        proba = fitted.predict_proba(list(texts[test]))
        columns = {name: proba[:, i] for i, name in enumerate(fitted.classes_)}
        found.append(figure(truth[test], columns, fitted.predict(list(texts[test]))))
    return found


def right(truth, columns, predicted):
    return np.mean(truth == predicted)


def log_loss(truth, columns, predicted):
    return np.mean([np.log(columns[name][i]) for i, name in enumerate(truth)])


def areas(truth, columns, predicted):
    return np.mean([metrics.roc_auc_score(truth == name, columns[name]) for name in columns])


def precision(truth, columns, predicted):
    return metrics.average_precision_score(truth == "sports", columns["sports"])


@pytest.mark.parametrize(
    ("task", "scoring", "figure"),
    [
        ("three", "accuracy", right),
        ("three", "neg_log_loss", log_loss),
        ("three", "roc_auc_ovr", areas),
        ("two", "roc_auc", areas),
        ("two", "neg_log_loss", log_loss),
        ("two", "average_precision", precision),
    ],
)
def test_scores_are_those_computed_by_name(encoder, request, task, scoring, figure):
    texts, truth = request.getfixturevalue(task)
    classifier = ZeroShotClassifier(sorted(set(truth), reverse=True), encoder=encoder)
    options = {"scoring": scoring, "cv": FOLDS, "error_score": "raise"}
    expected = by_hand(classifier, texts, truth, figure)
    codes = np.unique(truth, return_inverse=True)[1]
    np.testing.assert_allclose(cross_val_score(classifier, texts, codes, **options), expected)
    if scoring != "average_precision":  # which takes the number 1 for the positive class
        np.testing.assert_allclose(cross_val_score(classifier, texts, truth, **options), expected)


# Search and pipelines


def test_grid_search_over_method_and_encoder(encoder, three):
    texts, truth = three
    encoders = [encoder, HashingEncoder()]
    grid = {"method": ["none", "ulr", "discriminant"], "encoder": encoders}
    search = GridSearchCV(
        ZeroShotClassifier(LABELS, random_state=np.int64(0), encoder="static"),
        grid,
        cv=FOLDS,
        error_score="raise",
    ).fit(texts, truth)
    for chosen, found in zip(
        search.cv_results_["params"], search.cv_results_["mean_test_score"], strict=True
    ):
        direct = cross_val_score(ZeroShotClassifier(LABELS, **chosen), texts, truth, cv=FOLDS)
        assert found == pytest.approx(direct.mean())
    assert search.best_params_["encoder"] is encoder
    assert search.best_estimator_.predict(NEW).tolist() == LABELS


def test_it_works_at_the_end_of_a_pipeline(encoder, three):
    texts, truth = three
    lower = FunctionTransformer(lambda texts: [text.lower() for text in texts])
    pipeline = make_pipeline(lower, ZeroShotClassifier(LABELS, encoder=encoder)).fit(TEXTS)
    lowered = [text.lower() for text in TEXTS]
    assert_same(pipeline[-1], ZeroShotClassifier(LABELS, encoder=encoder).fit(lowered))
    assert pipeline.predict(NEW).tolist() == LABELS
    found = cross_val_predict(pipeline, list(texts), list(truth), cv=FOLDS, method="predict_proba")
    assert found.shape == (90, 3)


def test_cross_validation_without_labels_is_the_accuracy_of_unlabelled_texts(three, encoder):
    texts, truth = three
    clf = ZeroShotClassifier(LABELS, encoder=encoder, ignore_y=True)
    found = cross_val_score(clf, texts, truth, cv=FOLDS)
    expected = [
        (clone(clf).fit(texts[fit]).predict(texts[rest]) == truth[rest]).mean()
        for fit, rest in FOLDS.split(texts, truth)
    ]
    np.testing.assert_allclose(found, expected)
    with pytest.warns(UlrWarning, match="label of every text is known.* ignore_y=True"):
        ZeroShotClassifier(LABELS, encoder=encoder).fit(texts, truth)
