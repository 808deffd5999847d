"""Everything that cannot be used gets one clear sentence."""

import numpy as np
import pytest
from problems import score, topics
from scipy.sparse import csr_matrix

from ulr.errors import ArrayError, InputError, ParameterError
from ulr.refinement import refine, refine_many, rule_from_arrays

GOOD = np.ones((5, 3), dtype=np.float32)
TWO = np.eye(2, 3, dtype=np.float32)
ULR = {"method": "ulr"}


def with_value(array, value):
    changed = np.array(array, dtype=np.float64)
    changed[1, 0] = value
    return changed


@pytest.mark.parametrize(
    ("message", "documents", "anchors", "options"),
    [
        (r"distance must be one of cosine, l2, dot, .*; got 'cos'", GOOD, TWO, {"distance": "cos"}),
        (r"method must be one of auto, .*; got 'x'", GOOD, TWO, {"method": "x"}),
        (r"'discriminant' works with cosine; got distance 'l2'", GOOD, TWO,
         {"method": "discriminant", "distance": "l2"}),
        (r"has no option 'start'; it is an option of ulr", GOOD, TWO, {"start": "random"}),
        (r"has no option 'colour'\. Its options: prior", GOOD, TWO, {"colour": 1}),
        (r"has no option 'prior'; it is an option of discriminant", GOOD, TWO, {**ULR, "prior": "x"}),
        (r"Its options: none", GOOD, TWO, {"method": "none", "keep": "last"}),
        (r"start must be one of labels, random; got 'x'", GOOD, TWO, {**ULR, "start": "x"}),
        (r"keep must be one of lowest, last; got 'best'", GOOD, TWO, {**ULR, "keep": "best"}),
        (r"empty_cluster must be one of mean, previous", GOOD, TWO, {**ULR, "empty_cluster": "0"}),
        (r"anchor_weight must be between 0 and 1; got 2", GOOD, TWO, {**ULR, "anchor_weight": 2}),
        (r"known_weight must be between 0 and 1; got -1", GOOD, TWO, {**ULR, "known_weight": -1}),
        (r"max_iter must be an integer of at least 1; got 0", GOOD, TWO, {"max_iter": 0}),
        (r"max_iter must be an integer of at least 1; got None", GOOD, TWO, {"max_iter": None}),
        (r"n_jobs must be an integer of at least 1; got 0", GOOD, TWO, {"n_jobs": 0}),
        (r"fit_sample must be an integer of at least 1; got 1\.5", GOOD, TWO, {"fit_sample": 1.5}),
        (r"prior must be 'estimate', 'balanced' or", GOOD, TWO, {"prior": [1, 2, 3]}),
        (r"prior must be 'estimate', 'balanced' or", GOOD, TWO, {"prior": [1e308, 1e308]}),
        (r"prior must be 'estimate', 'balanced' or", GOOD, TWO, {"prior": [1, -1]}),
        (r"prior must be one of estimate, balanced", GOOD, TWO, {"prior": "equal"}),
        (r"documents must have 2 dimensions.*\(5,\)", np.ones(5), TWO, {}),
        (r"documents is empty: its shape is \(0, 3\)", np.ones((0, 3)), TWO, {}),
        (r"documents must be numbers; got an array of <U1", [["a"]], TWO, {}),
        (r"documents must be rows of equal length", [[1.0], [1.0, 2.0]], TWO, {}),
        (r"documents have NaN or infinity in row 1", with_value(GOOD, np.nan), TWO, {}),
        (r"documents have NaN or infinity in row 1", with_value(GOOD, np.inf), TWO, {}),
        (r"every document is a zero vector", np.zeros((4, 3)), TWO, {}),
        (r"anchors has NaN or infinity in row 1", GOOD, with_value(TWO, np.inf), {}),
        (r"anchors has n_dims=2, but the documents have 3", GOOD, np.eye(2), {}),
        (r"anchors has a zero vector.*row 1; use other words", GOOD, [[1, 0, 0], [0, 0, 0]], {}),
        (r"at least 2 labels are needed; got 1", GOOD, TWO[:1], {}),
        (r"anchors are missing; cosine needs vectors", GOOD, None, {}),
        (r"got the number 2\. A number of clusters needs start='random'", GOOD, 2, {}),
        (r"n_documents=5 should be >= n_labels=6", GOOD, 6, {**ULR, "start": "random"}),
        (r"extra_anchors need start='labels'", GOOD, 2,
         {**ULR, "start": "random", "extra_anchors": TWO}),
        (r"known labels need start='labels'", GOOD, 2,
         {**ULR, "start": "random", "known": [0] * 5}),
        (r"extra_documents has n_dims=2", GOOD, TWO, {"extra_documents": np.eye(2)}),
        (r"known must be 5 integers.*got shape \(2,\)", GOOD, TWO, {"known": [0, 1]}),
        (r"known must be label indices from 0 to 1, .*; got 2 in row 4", GOOD, TWO,
         {"known": [-1, -1, 0, 1, 2]}),
        (r"known must be label indices .*; got -3 in row 0", GOOD, TWO, {"known": [-3, 0, 0, 0, 0]}),
        (r"word_counts must be a sparse matrix with 5 rows", GOOD, TWO,
         {"word_counts": csr_matrix((4, 2))}),
        (r"word_counts must be a sparse matrix", GOOD, TWO, {"word_counts": np.ones((5, 2))}),
        (r"probabilities that add up to 1.*5 rows: 0, 1, 2, 3, 4\. Apply softmax", GOOD, None,
         {"distance": "jensen-shannon"}),
    ],
)  # fmt: skip
def test_unusable_input_gets_one_clear_sentence(message, documents, anchors, options):
    with pytest.raises(InputError, match=message):
        refine(documents, anchors, **options)


def test_many_sets_and_rules_validate_their_arrays():
    with pytest.raises(ArrayError, match="anchors has n_dims=2"):
        list(refine_many(GOOD, [TWO, np.eye(2)]))
    documents, anchors, _ = topics()
    rule = refine(documents, anchors).rule
    with pytest.raises(ArrayError, match="documents must have n_dims=16"):
        score(GOOD, rule)
    with pytest.raises(ParameterError, match="n_jobs must be an integer"):
        score(documents, rule, n_jobs=0)


@pytest.mark.parametrize(
    ("message", "changes"),
    [
        ("missing or disagree", {"offsets": np.zeros(3)}),
        (r"view0\.centre has shape \(3,\)", {"view0.centre": np.zeros(3)}),
        (r"view0\.weights must be a matrix of finite", {"view0.weights": np.full((4, 16), np.nan)}),
        ("must be a matrix", {"distributions": np.zeros(4)}),
    ],
)
def test_arrays_that_are_not_those_of_one_rule_are_refused(message, changes):
    documents, anchors, _ = topics()
    arrays = refine(documents, anchors).rule.arrays() | changes
    with pytest.raises(ArrayError, match=message):
        rule_from_arrays(arrays)
    with pytest.raises(ArrayError, match="missing"):
        rule_from_arrays({"offsets": np.zeros(3)})


@pytest.mark.parametrize("scale", [1e-200, 1e-20, 1e20, 1e200])
def test_documents_outside_single_precision_are_refused(scale):
    documents = np.array([[3.0, 1.0], [1.0, 4.0], [5.0, 0.0]])
    documents[1] *= scale
    with pytest.raises(ArrayError, match=r"lengths between .* in row 1"):
        refine(documents, np.eye(2), method="ulr")


def test_anchors_of_any_length_are_compared_by_direction():
    documents = np.array([[3.0, 1.0], [1.0, 4.0], [5.0, 0.0]])
    result = refine(documents, np.array([[1e300, 0.0], [0.0, 1e-300]]), method="ulr")
    np.testing.assert_array_equal(result.predictions, [0, 1, 0])
