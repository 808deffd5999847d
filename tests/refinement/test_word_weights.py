"""Naive Bayes on words: weights, folds, pruning, and what is stored."""

import numpy as np
import pytest
from problems import word_counts
from scipy.sparse import csr_matrix
from scipy.special import softmax
from sklearn.feature_extraction.text import TfidfTransformer

from ulr.errors import ArrayError
from ulr.refinement import constants
from ulr.refinement.words import (
    WordWeights,
    content_hashes,
    cross_fitted_scores,
    fit_words,
    naive_bayes,
    tf_idf,
    used_words,
)


@pytest.fixture
def counts():
    return word_counts(np.arange(200) % 4, n_words=50)


def test_vocabulary_leaves_out_rare_and_very_common_words():
    table = csr_matrix(np.array([[1, 1, 0, 2], [0, 1, 1, 0], [0, 1, 1, 0], [0, 1, 0, 0]], float))
    columns, idf = used_words(table)
    assert columns.tolist() == [2]
    assert idf == pytest.approx([np.log(2)])


def test_tf_idf_is_scikit_learns_sublinear_one(counts):
    columns, idf = used_words(counts)
    ours = tf_idf(counts, columns, idf).toarray()
    theirs = TfidfTransformer(sublinear_tf=True, use_idf=False, norm=None)
    expected = theirs.fit_transform(counts).toarray()[:, columns] * idf
    expected /= np.maximum(np.linalg.norm(expected, axis=1, keepdims=True), 1e-9)
    np.testing.assert_allclose(ours, expected, atol=1e-6)


def test_no_document_is_scored_by_what_it_taught():
    """A word of one document alone never speaks for the label that this document has."""
    table = csr_matrix(np.eye(16, dtype=np.float32))
    labels = np.arange(16) // 8
    shares = np.eye(2, dtype=np.float32)[labels]
    scores = cross_fitted_scores(table, shares, (np.arange(16, dtype=np.uint64) % 4) << 32)
    np.testing.assert_allclose(scores[:, 0], scores[:, 1], atol=1e-5)
    taught = table @ naive_bayes(table.T @ shares, table.T @ shares)
    assert (taught.argmax(axis=1) == labels).all()


def test_hashes_depend_on_the_words_alone_and_fill_all_folds():
    table = word_counts(np.arange(2000) % 3, n_words=80)
    hashes = content_hashes(table)
    order = np.random.default_rng(0).permutation(2000)
    np.testing.assert_array_equal(content_hashes(table[order]), hashes[order])
    folds = (hashes >> np.uint64(32)) % np.uint64(4)
    assert np.bincount(folds.astype(int), minlength=4).min() > 350


def scores_of(truth, lead=2.0):
    return (lead * np.eye(int(truth.max()) + 1)[truth]).astype(np.float32)


def test_words_that_say_nothing_get_no_weight():
    truth = np.arange(400) % 4
    counts = word_counts(np.random.default_rng(0).permutation(truth), n_words=5)
    unknown = np.full(400, -1)
    found = fit_words(counts, scores_of(truth), unknown, np.zeros(4), 1.0)
    helpful = fit_words(word_counts(truth), scores_of(truth), unknown, np.zeros(4), 1.0)
    assert np.abs(helpful.weights).max() > 1.0
    assert found is None or np.abs(found.weights).max() < 0.3 * np.abs(helpful.weights).max()


def test_known_labels_teach_and_excluded_documents_do_not():
    truth = np.arange(200) % 2
    counts, scores = word_counts(truth), np.zeros((200, 2), dtype=np.float32)
    taught = fit_words(counts, scores, truth, np.zeros(2), 1.0)
    labels = taught.scores(counts).argmax(axis=0)
    assert (labels == truth).mean() > 0.9
    excluded = np.where(np.arange(200) < 100, -2, truth)
    found = fit_words(counts, scores, excluded, np.zeros(2), 1.0)
    expected = fit_words(counts[100:], scores[100:], truth[100:], np.zeros(2), 1.0)
    np.testing.assert_array_equal(found.weights, expected.weights)


def test_factor_scales_the_weights():
    truth = np.arange(300) % 3
    counts, unknown = word_counts(truth), np.full(300, -1)
    one, half = (
        fit_words(counts, scores_of(truth), unknown, np.zeros(3), factor) for factor in (1.0, 0.5)
    )
    ratio = np.abs(half.weights).sum() / np.abs(one.weights).sum()
    assert 0.4 < ratio < 0.6


def test_words_keep_the_sizes_of_labels_as_far_as_asked():
    """Words that tell which few documents have label 1 make it smaller; offsets undo that."""
    truth = np.repeat([0, 1], [360, 40])
    scores = scores_of(truth, lead=1.0)
    counts, unknown = word_counts(truth), np.full(400, -1)

    def size(keep_sizes):
        words = fit_words(counts, scores, unknown, np.zeros(2), 1.0, keep_sizes)
        logits = scores + words.scores(counts).T
        return float(softmax(logits, axis=1)[:, 1].sum())

    before = float(softmax(scores, axis=1)[:, 1].sum())
    free, half, kept = (abs(size(keep) - before) for keep in (0.0, 0.5, 1.0))
    assert kept < 0.7 * free
    assert kept < half < free


def test_only_the_most_informative_words_are_kept(monkeypatch):
    truth = np.arange(300) % 3
    counts = word_counts(truth, n_words=100)
    monkeypatch.setattr(constants, "MOST_WORDS", 10)
    kept = fit_words(counts, scores_of(truth), np.full(300, -1), np.zeros(3), 1.0).columns
    assert len(kept) == 10
    means = np.stack([np.asarray(counts[truth == i].mean(axis=0)).ravel() for i in range(3)])
    spread = means.std(axis=0)
    assert spread[kept].mean() > 1.5 * spread[used_words(counts)[0]].mean()


def test_weights_are_as_when_saved_and_loaded():
    truth = np.arange(300) % 3
    found = fit_words(word_counts(truth), scores_of(truth), np.full(300, -1), np.zeros(3), 1.0)
    loaded = WordWeights.from_arrays(found.arrays(), 3)
    np.testing.assert_array_equal(loaded.weights, found.weights)
    np.testing.assert_array_equal(loaded.idf, found.idf)
    with pytest.raises(ArrayError, match="disagree"):
        WordWeights.from_arrays(found.arrays(), 4)
    broken = found.arrays() | {"words.weights": np.full_like(found.weights, np.nan)}
    with pytest.raises(ArrayError, match="finite"):
        WordWeights.from_arrays(broken, 3)
