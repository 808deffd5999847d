"""Metrics: figures computed by hand, and the same as scikit-learn's."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import metrics as reference

from ulr.errors import InputError
from ulr.metrics import accuracy, calibration_error, evaluate, one_to_one_accuracy

N_LABELS = 5
INDICES = st.integers(0, N_LABELS - 1)
PAIRS = st.lists(st.tuples(INDICES, INDICES), min_size=1, max_size=60).map(
    lambda rows: np.array(rows).T
)


@settings(deadline=None)
@given(PAIRS)
def test_figures_equal_those_of_scikit_learn(pair):
    truth, predictions = pair
    labels = list(range(N_LABELS))
    found = evaluate(truth, predictions, [str(label) for label in labels])
    precision, recall, f1, support = reference.precision_recall_fscore_support(
        truth, predictions, labels=labels, zero_division=0
    )
    figures = np.array([(c.precision, c.recall, c.f1, c.documents) for c in found.labels])
    np.testing.assert_allclose(figures, np.column_stack([precision, recall, f1, support]))
    assert found.macro_f1 == pytest.approx(f1.mean())
    assert found.accuracy == accuracy(truth, predictions)
    assert found.accuracy == pytest.approx(reference.accuracy_score(truth, predictions))
    expected = reference.confusion_matrix(truth, predictions, labels=labels)
    np.testing.assert_array_equal(found.confusion, expected)


def test_a_prediction_without_a_label_is_wrong_and_counts_for_no_label():
    found = evaluate([0, 0, 1], [0, -1, 1], ["a", "b"])
    assert found.accuracy == pytest.approx(2 / 3)
    assert [(each.precision, each.recall) for each in found.labels] == [(1, 0.5), (1, 1)]
    assert found.confusion.tolist() == [[1, 0], [0, 1]]


@settings(deadline=None)
@given(PAIRS, st.permutations(range(N_LABELS)))
def test_one_to_one_accuracy_does_not_depend_on_the_names_of_clusters(pair, names):
    truth, clusters = pair
    renamed = np.array(names)[clusters]
    assert one_to_one_accuracy(truth, renamed) == one_to_one_accuracy(truth, clusters)
    assert one_to_one_accuracy(truth, np.array(names)[truth]) == 1.0
    assert one_to_one_accuracy(truth, clusters) >= accuracy(truth, clusters)
    assert one_to_one_accuracy([0, 0, 1, 1], [7, 7, 7, 7]) == 0.5  # no cluster has two names


def test_overconfidence_is_the_gap_to_the_share_correct():
    assert calibration_error([1, 0] * 50, [0.95] * 100) == pytest.approx(0.45)
    # one document of four is 0.85 too sure; the others are right to be certain
    assert calibration_error([1, 1, 1, 0], [1.0, 1.0, 1.0, 0.85], bins=10) == pytest.approx(0.2125)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: accuracy([0, 1], [0]), "must be lists of equal length; got shapes (2,) and (1,)"),
        (lambda: accuracy([], []), "got shapes (0,) and (0,)."),
        (lambda: evaluate([[0]], [[0]], ["a"]), "got shapes (1, 1) and (1, 1)."),
        (lambda: calibration_error([1], [1.5]), "one value between 0 and 1 per document"),
        (lambda: calibration_error([1], [np.nan]), "one value between 0 and 1 per document"),
        (lambda: calibration_error([1, 0], [0.5]), "one value between 0 and 1 per document"),
    ],
)
def test_values_that_cannot_be_compared_are_refused(call, message):
    with pytest.raises(InputError, match=re.escape(message)):
        call()
