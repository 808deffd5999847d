"""What every method promises, whatever the distance."""

import shutil
import threading
import tracemalloc

import numpy as np
import pytest
from problems import problem, score, topics, word_counts
from threadpoolctl import threadpool_info

from tiny_task import Recorder
from ulr.errors import ArrayError
from ulr.refinement import (
    EXCLUDED,
    METHODS,
    refine,
    refine_many,
    rule_from_arrays,
)

WAYS = [(method, distance) for method, each in METHODS.items() for distance in each.distances]
SEVERAL_BLOCKS = 40_000  # documents
every_way = pytest.mark.parametrize(("method", "distance"), WAYS)


@every_way
def test_results_are_identical_for_any_number_of_threads(method, distance):
    """Inputs may be read only: nothing is written into them."""
    documents, anchors = problem(distance, 3, n=SEVERAL_BLOCKS, n_dims=8)
    documents.setflags(write=False)
    if anchors is not None:
        anchors.setflags(write=False)
    one, many = (
        refine(documents, anchors, method=method, distance=distance, n_jobs=n) for n in (1, 5)
    )
    assert one.trace == many.trace
    np.testing.assert_array_equal(one.scores, many.scores)
    np.testing.assert_array_equal(one.centroids, many.centroids)


@every_way
@pytest.mark.parametrize("n", [400, SEVERAL_BLOCKS])
def test_many_sets_give_what_each_gives_alone_in_order(method, distance, n):
    """Sets share threads with one block each, so this compares one block with several as well."""
    documents, anchors = problem(distance, 4, n=n, n_dims=8)
    anchors = np.eye(documents.shape[1]) if anchors is None else anchors
    sets = [0.7 * anchors + 0.3 * other for other in (anchors, anchors[::-1], anchors.mean(0))]
    options = {"method": method, "distance": distance}
    for result, own in zip(refine_many(documents, sets, **options), sets, strict=True):
        alone = refine(documents, own, **options)
        assert (result.predictions == alone.predictions).mean() > 0.999
        scale = np.abs(alone.scores).max()
        np.testing.assert_allclose(result.scores, alone.scores, atol=0.01 * scale)
        assert result.diagnosis is None


@every_way
@pytest.mark.parametrize("order", ["shuffled", "sorted", "interleaved"])
def test_order_of_documents_does_not_matter(method, distance, order):
    documents, anchors = problem(distance, 3, n=600)
    first = refine(documents, anchors, method=method, distance=distance)
    rows = rows_in(order, np.maximum(first.unrefined, 0))
    again = refine(documents[rows], anchors, method=method, distance=distance)
    assert (again.predictions == first.predictions[rows]).mean() > 0.995
    scale = np.abs(first.scores).max()
    np.testing.assert_allclose(again.scores, first.scores[rows], atol=0.02 * scale)


def rows_in(order, truth, seed=0):
    """Positions of the documents in some order."""
    shuffled = np.random.default_rng(seed).permutation(len(truth))
    if order == "shuffled":
        return shuffled
    by_class = shuffled[np.argsort(truth[shuffled], kind="stable")]
    if order == "sorted":
        return by_class
    within = np.concatenate([np.arange(count) for count in np.bincount(truth) if count])
    return by_class[np.argsort(within, kind="stable")]  # ABCDABCD


@pytest.mark.parametrize("order", ["shuffled", "sorted", "interleaved"])
def test_order_matters_little_above_every_sampling_threshold(order):
    """More documents than the covariance and the fit are estimated on."""
    documents, anchors, truth = topics(3, n=40_000, n_dims=16, spread=1.5, off=1.0)
    counts = word_counts(truth, n_words=30)
    accuracies = []
    for rows in (np.arange(len(truth)), rows_in(order, truth)):
        found = refine(documents[rows], anchors, fit_sample=20_000, word_counts=counts[rows])
        accuracies.append((found.predictions == truth[rows]).mean())
    assert abs(accuracies[0] - accuracies[1]) < 0.005


@every_way
def test_the_rule_scores_the_documents_again_after_it_was_stored(method, distance):
    documents, anchors = problem(distance, 14)
    result = refine(documents, anchors, method=method, distance=distance)
    arrays = result.rule.arrays()
    assert all(isinstance(array, np.ndarray) for array in arrays.values())
    for rule in (result.rule, rule_from_arrays(arrays)):
        labels, scores = score(documents, rule)
        np.testing.assert_array_equal(labels, result.predictions)
        np.testing.assert_array_equal(scores, result.scores)
    np.testing.assert_array_equal(score(documents, result.initial_rule)[0], result.unrefined)
    np.testing.assert_array_equal(result.scores.argmax(axis=1), result.predictions)


@pytest.fixture(scope="module")
def large_map(tmp_path_factory):
    """A file of 100 MB, written in parts."""
    path = tmp_path_factory.mktemp("map") / "documents.npy"
    mapped = np.lib.format.open_memmap(path, "w+", dtype=np.float32, shape=(400_000, 64))
    random = np.random.default_rng(0)
    for start in range(0, len(mapped), 50_000):
        mapped[start : start + 50_000] = random.standard_normal((50_000, 64), dtype=np.float32)
    mapped.flush()
    return path


@pytest.mark.parametrize(("method", "distance"), [("discriminant", "cosine"), ("ulr", "l2")])
def test_a_memory_map_is_never_in_memory_as_a_whole(method, distance, large_map):
    mapped = np.load(large_map, mmap_mode="r")
    anchors = np.eye(2, 64)
    tracemalloc.start()  # NumPy reports what it allocates; pages of a map are not part of it
    result = refine(mapped, anchors, method=method, distance=distance, max_iter=4, n_jobs=2)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < mapped.nbytes / 2
    nearest = np.where(result.scores[:, 0] >= result.scores[:, 1], 0, 1)
    np.testing.assert_array_equal(result.predictions, nearest)


def test_a_value_that_is_not_a_number_names_its_row_in_a_memory_map(large_map, tmp_path):
    shutil.copy(large_map, tmp_path / "bad.npy")
    np.load(tmp_path / "bad.npy", mmap_mode="r+")[300_000, 3] = np.nan
    mapped = np.load(tmp_path / "bad.npy", mmap_mode="r")
    with pytest.raises(ArrayError, match="NaN or infinity in row 300000"):
        refine(mapped, np.eye(2, 64))


@every_way
def test_progress_is_told_every_pass(method, distance):
    documents, anchors = problem(distance, 2)
    progress = Recorder()
    result = refine(documents, anchors, method=method, distance=distance, progress=progress)
    total = {"discriminant": 13, "ulr": None, "none": 1}[method]
    assert progress.stages == [("Refining", total)]
    assert progress.counts[-1] == result.n_iter
    assert [done.iteration for done in result.trace] == list(range(result.n_iter))


@pytest.mark.parametrize("method", sorted(METHODS))
def test_excluded_documents_get_no_label_and_take_no_part(method):
    documents, anchors, _ = topics(10)
    known = np.full(len(documents), -1)
    known[::5] = EXCLUDED
    kept = known != EXCLUDED
    result = refine(documents, anchors, known=known, method=method)
    alone = refine(documents[kept], anchors, method=method)
    assert (result.predictions[~kept] == -1).all()
    assert (result.unrefined[~kept] == -1).all()
    assert result.n_without_label == int((~kept).sum())
    assert (result.predictions[kept] == alone.predictions).mean() > 0.995


@pytest.mark.parametrize("method", sorted(METHODS))
def test_zero_documents_get_no_label_under_cosine_unless_it_is_known(method):
    documents, anchors, _ = topics(18)
    documents[[4, 9]] = 0.0
    known = np.full(len(documents), -1)
    known[9] = 2
    result = refine(documents, anchors, method=method, known=known)
    np.testing.assert_array_equal(result.predictions[[4, 9]], [-1, 2])
    np.testing.assert_array_equal(result.scores[4], 0.0)
    assert result.n_without_label == 1


@pytest.mark.parametrize("method", sorted(METHODS))
def test_extra_anchors_take_part_and_are_never_predicted(method):
    documents, anchors, _ = topics(9, n_labels=6)
    plain, helped = (
        refine(documents, anchors[:3], method=method, extra_anchors=extra)
        for extra in (None, anchors[3:])
    )
    assert helped.predictions.max() < 3
    assert helped.scores.shape == (len(documents), 3)
    assert np.allclose(plain.scores, helped.scores) == (method == "none")
    np.testing.assert_array_equal(plain.unrefined, helped.unrefined)


@pytest.mark.parametrize("method", sorted(METHODS))
def test_extra_documents_take_part_and_get_no_prediction(method):
    documents, anchors, _ = topics(10)
    result = refine(documents[:50], anchors, extra_documents=documents[50:], method=method)
    everything = refine(documents, anchors, method=method)
    np.testing.assert_array_equal(result.predictions, everything.predictions[:50])
    np.testing.assert_allclose(result.centroids, everything.centroids, atol=1e-4)


@pytest.mark.parametrize("method", sorted(METHODS))
def test_length_of_documents_does_not_matter_under_cosine(method):
    documents, anchors, _ = topics(2)
    lengths = np.random.default_rng(2).choice([0.25, 0.5, 2.0, 8.0], size=(len(documents), 1))
    one = refine(documents, anchors, method=method)
    other = refine(documents * lengths.astype(np.float32), anchors, method=method)
    np.testing.assert_array_equal(one.predictions, other.predictions)


def test_a_progress_that_raises_ends_the_refinement():
    documents, anchors, _ = topics(2, n=3000)

    class Stop(Recorder):
        def advance(self, count=1):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        refine(documents, anchors, progress=Stop(), n_jobs=3)
    assert refine(documents, anchors).n_iter > 1


def test_two_refinements_at_once_give_what_each_gives_alone():
    documents, anchors, truth = topics(7, n=4000, n_dims=64)
    counts = word_counts(truth)
    expected = refine(documents, anchors, word_counts=counts).scores
    found = {}

    def work(number):
        found[number] = refine(documents, anchors, word_counts=counts, n_jobs=2).scores

    workers = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    for scores in found.values():
        np.testing.assert_array_equal(scores, expected)


def test_process_wide_thread_limits_are_restored():
    documents, anchors, _ = topics(8, n=3000)
    before = [each["num_threads"] for each in threadpool_info()]
    suspended = refine_many(documents, [anchors] * 2, n_jobs=1)
    next(suspended)
    assert [each["num_threads"] for each in threadpool_info()] == before
    suspended.close()
    refine(documents, anchors, n_jobs=2)
    assert [each["num_threads"] for each in threadpool_info()] == before
