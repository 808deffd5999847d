"""Naive Bayes on words: which words are kept, what they do to sizes, and what is stored."""

import numpy as np
import pytest
from problems import score, topics, word_counts
from scipy.sparse import csr_matrix, hstack

from ulr.errors import ArrayError
from ulr.refinement import EXCLUDED, refine, rule_from_arrays
from ulr.refinement.words import content_hashes


def test_hashes_depend_on_the_words_alone_and_fill_all_folds():
    table = word_counts(np.arange(2000) % 3, n_words=80)
    hashes = content_hashes(table)
    order = np.random.default_rng(0).permutation(2000)
    np.testing.assert_array_equal(content_hashes(table[order]), hashes[order])
    folds = (hashes >> np.uint64(32)) % np.uint64(4)
    assert np.bincount(folds.astype(int), minlength=4).min() > 350


def test_words_of_one_document_or_of_more_than_half_are_left_out():
    documents, anchors, truth = topics(5, n=200)
    others = csr_matrix(np.arange(200)[:, None] < [1, 2, 100, 101])
    counts = hstack([others, word_counts(truth)], format="csr", dtype=np.float32)
    columns = refine(documents, anchors, word_counts=counts).rule.words.columns
    assert columns[columns < 4].tolist() == [1, 2]


def test_excluded_documents_do_not_teach():
    documents, anchors, truth = topics(5, spread=1.6)
    counts, kept = word_counts(truth), np.arange(len(truth)) % 3 > 0
    result = refine(documents, anchors, known=np.where(kept, -1, EXCLUDED), word_counts=counts)
    expected = refine(documents[kept], anchors, word_counts=counts[kept])
    np.testing.assert_array_equal(result.rule.words.columns, expected.rule.words.columns)
    np.testing.assert_allclose(result.rule.words.weights, expected.rule.words.weights, atol=0.02)


def test_only_the_most_informative_words_are_kept():
    documents, anchors, truth = topics(5, n=300)
    informative = word_counts(truth)
    noise = csr_matrix(np.random.default_rng(0).random((300, 25_000)) < 0.02, dtype=np.float32)
    counts = hstack([noise, informative], format="csr", dtype=np.float32)
    found = refine(documents, anchors, word_counts=counts).rule.words.columns
    assert len(found) == 20_000
    alone = refine(documents, anchors, word_counts=informative).rule.words.columns
    assert set(alone + 25_000) <= set(found)


def test_words_are_as_when_saved_and_loaded():
    documents, anchors, truth = topics(5, spread=1.6)
    counts = word_counts(truth)
    result = refine(documents, anchors, word_counts=counts)
    arrays = result.rule.arrays()
    scores = score(documents, rule_from_arrays(arrays), word_counts=counts)[1]
    np.testing.assert_array_equal(scores, result.scores)
    weights = arrays["words.weights"]
    for changed, message in ((weights[1:], "disagree"), (np.nan * weights, "finite")):
        with pytest.raises(ArrayError, match=message):
            rule_from_arrays(arrays | {"words.weights": changed})
