"""Agreement, counted without comparing pairs, against every pair of sets compared by hand."""

from itertools import combinations, permutations

import numpy as np
import pytest

from ulr.audit.agreement import count_agreement


def task(seed, n_sets, n_documents, n_labels, leaning=2.0):
    """Predictions that lean towards one label a document, and which sets have which phrase."""
    random = np.random.default_rng(seed)
    lean = random.random((n_documents, n_labels)) ** leaning
    lean /= lean.sum(axis=1, keepdims=True)
    predicted = np.array(
        [[random.choice(n_labels, p=row) for row in lean] for _ in range(n_sets)], dtype=np.uint8
    )
    # Two phrases for the first label and three for the second; the phrase moves some documents.
    first, second = random.permutation(n_sets) % 2, random.permutation(n_sets) % 3
    predicted[first == 1, : n_documents // 3] = 0
    phrases = [first == 0, first == 1, second == 0, second == 1, second == 2]
    return predicted, np.array([each for each in phrases if each.any()])


def count(as_sweep, predicted, has_phrase, n_labels, block_cells=1 << 20):
    other = np.zeros_like(predicted)
    sweep = as_sweep(other, predicted, n_labels, block_cells=block_cells)
    return count_agreement(sweep, "after", has_phrase)


@pytest.fixture(params=[(0, 2, 1, 2), (1, 2, 9, 3), (2, 7, 23, 4), (3, 12, 40, 2), (4, 5, 8, 6)])
def counted(request, as_sweep):
    """Predictions and what was counted of them, a few documents at a time."""
    seed, n_sets, n_documents, n_labels = request.param
    predicted, has_phrase = task(seed, n_sets, n_documents, n_labels)
    found = count(as_sweep, predicted, has_phrase, n_labels, block_cells=(3 + seed) * n_sets)
    return predicted, has_phrase, n_labels, found


def test_of_documents_is_how_often_two_sets_agree_on_each(counted):
    predicted, _, _, found = counted
    pairs = [one == other for one, other in combinations(predicted, 2)]
    np.testing.assert_allclose(found.of_documents, np.mean(pairs, axis=0), rtol=1e-6)
    assert found.mean == pytest.approx(np.mean(pairs))


def test_of_labels_is_how_often_another_set_gives_the_same(counted):
    predicted, _, n_labels, found = counted
    for label in range(n_labels):
        same = [
            other[one == label] == label
            for one, other in permutations(predicted, 2)
            if (one == label).any()
        ]
        if same:
            assert found.of_labels[label] == pytest.approx(np.concatenate(same).mean())
        else:
            assert np.isnan(found.of_labels[label])


def test_of_sets_and_of_phrases_are_means_over_the_other_sets(counted):
    predicted, has_phrase, _, found = counted
    of_sets = [
        np.mean([(own == other).mean() for j, other in enumerate(predicted) if i != j])
        for i, own in enumerate(predicted)
    ]
    np.testing.assert_allclose(found.of_sets, of_sets)
    for phrase, has in enumerate(has_phrase):
        assert found.of_phrases[phrase] == pytest.approx(np.array(of_sets)[has].mean())


def test_between_is_the_share_of_every_pair_of_labels_in_all_disagreement(counted):
    predicted, _, n_labels, found = counted
    expected = np.zeros((n_labels, n_labels))
    for one, other in combinations(predicted, 2):
        for a, b in zip(one, other, strict=True):
            if a != b:
                expected[a, b] += 1
                expected[b, a] += 1
    if expected.any():
        expected /= np.triu(expected).sum()
        assert np.triu(found.between).sum() == pytest.approx(1.0)
    np.testing.assert_allclose(found.between, expected)


def test_explained_is_the_variance_that_a_phrase_makes(counted):
    predicted, has_phrase, n_labels, found = counted
    given = np.eye(n_labels)[predicted].reshape(len(predicted), -1)
    total = ((given - given.mean(axis=0)) ** 2).sum()
    for phrase, has in enumerate(has_phrase):
        away = given[has].mean(axis=0) - given.mean(axis=0)
        expected = has.sum() * (away**2).sum() / total if total else 0.0
        assert found.explained[phrase] == pytest.approx(expected, rel=1e-4, abs=1e-9)


def test_sizes_and_consensus_are_counts(counted):
    predicted, _, n_labels, found = counted
    counts = np.array([np.bincount(each, minlength=n_labels) for each in predicted])
    np.testing.assert_allclose(found.sizes, counts / predicted.shape[1])
    for row, given in enumerate(predicted.T):
        assert found.consensus[row] == np.bincount(given, minlength=n_labels).argmax()


def test_a_phrasing_that_decides_everything_explains_everything(as_sweep):
    has = np.array([[True, True, False, False], [False, False, True, True]])
    predicted = np.where(has[0][:, None], [[0, 1, 2]], [[1, 2, 2]])
    found = count(as_sweep, predicted, has, 3)
    assert found.explained.sum() == pytest.approx(1.0)
    noise = np.array([[0, 1, 2], [1, 2, 2], [0, 1, 2], [1, 2, 2]])
    assert count(as_sweep, noise, has, 3).explained.sum() == pytest.approx(0.0, abs=1e-9)


def test_sets_of_one_mind_disagree_about_nothing(as_sweep):
    found = count(as_sweep, np.tile([0, 2, 2], (4, 1)), np.ones((1, 4), dtype=bool), 3)
    assert found.mean == 1.0
    np.testing.assert_array_equal(found.of_documents, 1.0)
    np.testing.assert_array_equal(found.of_labels, [1.0, np.nan, 1.0])
    np.testing.assert_array_equal(found.of_sets, 1.0)
    assert not found.between.any()
    assert not found.explained.any()


def test_the_first_of_equals_is_the_consensus(as_sweep):
    found = count(as_sweep, [[2, 1], [1, 2], [2, 2], [1, 1]], np.ones((1, 4), dtype=bool), 3)
    assert found.consensus.tolist() == [1, 1]


def test_phases_are_counted_apart(as_sweep):
    before, has = task(5, 6, 20, 3)
    after, _ = task(6, 6, 20, 3)
    sweep = as_sweep(before, after, 3)
    for phase, predicted in (("before", before), ("after", after)):
        pairs = [one == other for one, other in combinations(predicted, 2)]
        assert count_agreement(sweep, phase, has).mean == pytest.approx(np.mean(pairs))


def test_blocks_are_a_few_documents_of_all_sets(as_sweep):
    predicted, _ = task(7, 8, 25, 3)
    for cells, sizes in ((8 * 10, [10, 10, 5]), (3, [1] * 25), (1 << 23, [25])):
        sweep = as_sweep(predicted, predicted, 3, block_cells=cells)
        rows, blocks = zip(*sweep.blocks("after"), strict=True)
        assert [each.stop - each.start for each in rows] == sizes
        np.testing.assert_array_equal(np.concatenate(blocks, axis=1), predicted)
