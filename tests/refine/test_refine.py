"""The refinement by its properties, its variants by hand, and every error it can give."""

import tracemalloc
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import cdist, jensenshannon
from scipy.special import softmax

from ulr.errors import ArrayError
from ulr.refine import DISTANCES, linear, nearest, refine

pytestmark = pytest.mark.usefixtures("either_loops")

# The paper's method is what these tests are about.
refine = partial(refine, method="ulr")

DISTANCE_NAMES = sorted(DISTANCES)


def clustered(seed, n_documents=200, n_labels=4, n_dims=8, spread=0.7):
    """Documents around hidden class means, labels near those means, and the true classes."""
    random = np.random.default_rng(seed)
    means = random.normal(size=(n_labels, n_dims))
    classes = random.integers(n_labels, size=n_documents)
    documents = means[classes] + spread * random.normal(size=(n_documents, n_dims))
    labels = means + 0.8 * random.normal(size=(n_labels, n_dims))
    return documents.astype(np.float32), labels.astype(np.float32), classes


def problem(distance, seed, **sizes):
    """Documents and labels that suit the distance."""
    documents, labels, _ = clustered(seed, **sizes)
    if distance == "jensen-shannon":
        return softmax(documents @ labels.T, axis=1).astype(np.float64), None
    return documents, labels


seeds = st.integers(0, 10_000)
distances = st.sampled_from(DISTANCE_NAMES)


@given(seeds, distances)
@settings(deadline=None, max_examples=25)
def test_order_of_documents_does_not_matter(seed, distance):
    documents, labels = problem(distance, seed)
    order = np.random.default_rng(seed).permutation(len(documents))
    one = refine(documents, labels, distance=distance)
    other = refine(documents[order], labels, distance=distance)
    np.testing.assert_array_equal(one.predictions[order], other.predictions)
    np.testing.assert_allclose(one.objective, other.objective, rtol=1e-9)


@given(seeds, distances, st.integers(1, 300), st.integers(1, 4))
@settings(deadline=None, max_examples=25)
def test_blocks_and_threads_do_not_matter(seed, distance, block_rows, threads):
    documents, labels = problem(distance, seed)
    whole = refine(documents, labels, distance=distance, threads=1, block_rows=1000)
    parts = refine(documents, labels, distance=distance, threads=threads, block_rows=block_rows)
    np.testing.assert_array_equal(whole.predictions, parts.predictions)
    np.testing.assert_array_equal(whole.changed, parts.changed)
    np.testing.assert_allclose(whole.objective, parts.objective, rtol=1e-12)
    scale = np.abs(whole.scores).max()
    np.testing.assert_allclose(whole.scores, parts.scores, atol=1e-5 * scale)


@pytest.mark.parametrize("distance", DISTANCE_NAMES)
def test_result_is_identical_for_any_number_of_threads(distance, monkeypatch):
    monkeypatch.setattr(linear, "_WORTH_THREADS", 0)  # the late passes too
    documents, labels = problem(distance, 3, n_documents=3000)
    one, many = (
        refine(documents, labels, distance=distance, block_rows=64, threads=n) for n in (1, 7)
    )
    np.testing.assert_array_equal(one.objective, many.objective)
    np.testing.assert_array_equal(one.scores, many.scores)
    np.testing.assert_array_equal(one.centroids, many.centroids)


@given(seeds)
@settings(deadline=None, max_examples=25)
def test_length_of_documents_does_not_matter_under_cosine(seed):
    documents, labels, _ = clustered(seed)
    lengths = np.random.default_rng(seed).choice([0.25, 0.5, 2.0, 8.0], size=(len(documents), 1))
    one = refine(documents, labels)
    other = refine(documents * lengths.astype(np.float32), labels)
    np.testing.assert_array_equal(one.predictions, other.predictions)
    np.testing.assert_allclose(one.scores, other.scores, atol=1e-6)


@given(seeds)
@settings(deadline=None, max_examples=25)
def test_a_far_label_without_documents_harms_nobody(seed):
    documents, labels, _ = clustered(seed)
    far = np.full((1, labels.shape[1]), 1e4, dtype=np.float32)
    one = refine(documents, labels, distance="l2")
    other = refine(documents, np.concatenate([labels, far]), distance="l2")
    np.testing.assert_array_equal(one.predictions, other.predictions)
    np.testing.assert_allclose(one.objective, other.objective, rtol=1e-9)


@pytest.mark.parametrize("distance", ["cosine", "l2"])
def test_perfect_anchors_are_a_fixed_point(distance):
    labels = np.eye(3, 5, dtype=np.float32)
    documents = np.repeat(labels, [5, 2, 9], axis=0)
    result = refine(documents, labels, distance=distance)
    np.testing.assert_array_equal(result.predictions, np.repeat([0, 1, 2], [5, 2, 9]))
    np.testing.assert_allclose(result.centroids, labels)
    np.testing.assert_allclose(result.objective, 0.0, atol=1e-12)
    assert result.n_iterations == 2
    assert result.converged
    assert result.n_moved == 0


@pytest.mark.parametrize("distance", DISTANCE_NAMES)
def test_inputs_are_not_changed(distance):
    documents, labels = problem(distance, 1)
    labels = np.eye(documents.shape[1]) if labels is None else labels
    copies = documents.copy(), labels.copy()
    documents.setflags(write=False)
    labels.setflags(write=False)
    refine(documents, labels, distance=distance)
    np.testing.assert_array_equal(documents, copies[0])
    np.testing.assert_array_equal(labels, copies[1])


@pytest.mark.parametrize(("distance", "scipy_name"), [("cosine", "cosine"), ("l2", "sqeuclidean")])
def test_scores_are_the_textbook_distances(distance, scipy_name):
    documents, labels, _ = clustered(5)
    result = refine(documents, labels, distance=distance)
    expected = cdist(documents.astype(float), result.centroids, scipy_name)
    offset = 1.0 if distance == "cosine" else 0.0
    np.testing.assert_allclose(result.scores, offset - expected, rtol=1e-5, atol=1e-5)
    assert result.objective[result.kept] == pytest.approx(expected.min(axis=1).mean(), rel=1e-9)
    np.testing.assert_array_equal(result.predictions, expected.argmin(axis=1))


def test_jensen_shannon_is_scipys():
    points, _ = problem("jensen-shannon", 2)
    result = refine(points, distance="jensen-shannon")
    expected = [[jensenshannon(p, r) for r in result.centroids] for p in points]
    np.testing.assert_allclose(-result.scores, expected, rtol=1e-5, atol=1e-6)


def test_one_update_is_the_mean_of_cluster_mean_and_anchor():
    documents, labels, _ = clustered(7)
    result = refine(documents, labels, distance="l2", max_iterations=2, keep="last")
    start = cdist(documents, labels, "sqeuclidean").argmin(axis=1)
    for label in range(len(labels)):
        mean = documents[start == label].astype(float).mean(axis=0)
        np.testing.assert_allclose(result.centroids[label], (mean + labels[label]) / 2, rtol=1e-6)


def test_known_documents_stay_and_pull_a_quarter():
    documents, labels, _ = clustered(8)
    known = np.full(len(documents), -1)
    known[[0, 1, 2]] = [3, 3, 0]
    result = refine(documents, labels, distance="l2", known=known, max_iterations=2, keep="last")
    np.testing.assert_array_equal(result.predictions[:3], [3, 3, 0])
    free = slice(3, None)
    start = cdist(documents[free], labels, "sqeuclidean").argmin(axis=1)
    means = np.stack([documents[free][start == c].astype(float).mean(axis=0) for c in range(4)])
    pulled = means[3] / 4 + documents[:2].astype(float).mean(axis=0) / 4 + labels[3] / 2
    np.testing.assert_allclose(result.centroids[3], pulled, rtol=1e-6)
    np.testing.assert_allclose(result.centroids[1], (means[1] + labels[1]) / 2, rtol=1e-6)


def test_known_documents_are_not_in_the_objective():
    documents, labels, _ = clustered(8)
    known = np.full(len(documents), -1)
    known[0] = 2
    result = refine(documents, labels, distance="l2", known=known, method="none")
    expected = cdist(documents[1:].astype(float), labels, "sqeuclidean").min(axis=1).mean()
    assert result.objective[0] == pytest.approx(expected)


def test_extra_labels_take_part_and_are_never_predicted():
    documents, labels, _ = clustered(9, n_labels=6)
    plain = refine(documents, labels[:3])
    helped = refine(documents, labels[:3], extra_labels=labels[3:])
    assert helped.predictions.max() < 3
    assert helped.scores.shape == (len(documents), 3)
    assert helped.centroids.shape == (3, documents.shape[1])
    assert not np.allclose(plain.centroids, helped.centroids)
    np.testing.assert_array_equal(plain.unrefined, helped.unrefined)


def test_extra_documents_move_the_centroids_and_get_no_prediction():
    documents, labels, _ = clustered(10)
    result = refine(documents[:50], labels, extra_documents=documents[50:])
    everything = refine(documents, labels)
    np.testing.assert_array_equal(result.predictions, everything.predictions[:50])
    np.testing.assert_allclose(result.centroids, everything.centroids)


def test_random_start_finds_the_clusters_and_names_them_by_the_labels():
    random = np.random.default_rng(0)
    means = 10 * np.eye(4, 6)
    classes = np.arange(400) % 4
    documents = means[classes] + random.normal(size=(400, 6))
    runs = [refine(documents, means, distance="l2", start="random", seed=s) for s in range(8)]
    best = min(runs, key=lambda run: run.objective[run.kept])
    np.testing.assert_array_equal(best.predictions, classes)
    unnamed = refine(documents, 4, distance="l2", start="random", seed=1)
    assert len(np.unique(unnamed.predictions)) == len(np.unique(runs[1].predictions))
    again = refine(documents, means, distance="l2", start="random", seed=1)
    np.testing.assert_array_equal(again.predictions, runs[1].predictions)


def test_random_start_is_plain_k_means():
    documents, _labels, _ = clustered(11)
    result = refine(documents, 4, distance="l2", start="random", seed=3, keep="last")
    for label in range(4):
        mean = documents[result.predictions == label].astype(float).mean(axis=0)
        np.testing.assert_allclose(result.centroids[label], mean, rtol=1e-6)


def test_an_empty_cluster_takes_the_mean_or_keeps_its_place():
    documents, labels, _ = clustered(12)
    labels[0] = 50.0
    options = {"distance": "l2", "max_iterations": 2, "keep": "last"}
    mean = refine(documents, labels, **options).centroids[0]
    np.testing.assert_allclose(mean, (documents.astype(float).mean(axis=0) + 50) / 2, rtol=1e-6)
    previous = refine(documents, labels, empty_cluster="previous", **options).centroids[0]
    np.testing.assert_allclose(previous, labels[0])


def test_method_none_is_the_nearest_label():
    documents, labels, _ = clustered(13)
    result = refine(documents, labels, method="none")
    np.testing.assert_array_equal(result.predictions, result.unrefined)
    np.testing.assert_array_equal(result.predictions, nearest(documents, labels)[0])
    assert result.n_iterations == 1
    assert result.kept == 0


def test_unrefined_is_the_nearest_label():
    documents, labels, _ = clustered(13)
    np.testing.assert_array_equal(
        refine(documents, labels).unrefined, nearest(documents, labels)[0]
    )


def test_nearest_with_the_centroids_gives_the_predictions_again():
    documents, labels, _ = clustered(14)
    result = refine(documents, labels)
    predictions, scores = nearest(documents, result.centroids)
    np.testing.assert_array_equal(predictions, result.predictions)
    np.testing.assert_array_equal(scores, result.scores)


def test_lowest_objective_is_kept_and_last_on_request():
    documents, labels, _ = clustered(15)
    lowest, last = (refine(documents, labels, distance="dot", keep=k) for k in ("lowest", "last"))
    assert lowest.kept == lowest.objective.argmin()
    assert last.kept == last.n_iterations - 1


def test_the_limit_of_passes_is_kept_and_reported():
    documents, labels, _ = clustered(16, n_documents=2000, spread=2.0)
    result = refine(documents, labels, max_iterations=2)
    assert result.n_iterations == 2
    assert not result.converged


def test_every_pass_is_reported():
    documents, labels, _ = clustered(17)
    passes = []
    result = refine(documents, labels, on_pass=passes.append)
    assert [p.iteration for p in passes] == list(range(result.n_iterations))
    assert [p.changed for p in passes] == result.changed.tolist()
    assert [p.objective for p in passes] == result.objective.tolist()


def test_a_zero_document_gets_the_first_label_and_is_counted():
    documents, labels, _ = clustered(18)
    documents[[4, 9]] = 0.0
    result = refine(documents, labels)
    assert result.n_zero_documents == 2
    np.testing.assert_array_equal(result.predictions[[4, 9]], 0)
    np.testing.assert_array_equal(result.scores[4], 0.0)


def test_equal_scores_go_to_the_first_label():
    labels = np.array([[1.0, 0.0], [0.0, 1.0]])
    assert refine([[1.0, 1.0], [0.0, 2.0]], labels, method="none").predictions.tolist() == [0, 1]


@pytest.mark.parametrize("dtype", [np.float16, np.float64, np.int32])
def test_other_number_types_are_read(dtype):
    documents = np.array([[3, 1], [1, 4], [5, 0]], dtype=dtype)
    result = refine(documents, np.array([[1, 0], [0, 1]], dtype=dtype), distance="l2")
    np.testing.assert_array_equal(result.predictions, [0, 1, 0])


def test_memory_grows_with_documents_by_labels_not_by_dims():
    random = np.random.default_rng(0)
    documents = random.normal(size=(100_000, 256)).astype(np.float32)
    labels = random.normal(size=(20, 256)).astype(np.float32)
    tracemalloc.start()
    refine(documents, labels, max_iterations=3, threads=2)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < documents.nbytes / 2


GOOD = np.ones((5, 3), dtype=np.float32)
TWO = np.eye(2, 3, dtype=np.float32)


def with_value(array, value):
    changed = np.array(array, dtype=np.float64)
    changed[1, 0] = value
    return changed


@pytest.mark.parametrize(
    ("message", "documents", "labels", "options"),
    [
        (r"distance must be one of cosine, l2, dot, .*; got 'cos'", GOOD, TWO, {"distance": "cos"}),
        (r"method must be one of auto, ulr, none, mixture; got 'x'", GOOD, TWO, {"method": "x"}),
        (r"start must be one of labels, random; got 'x'", GOOD, TWO, {"start": "x"}),
        (r"keep must be one of lowest, last; got 'best'", GOOD, TWO, {"keep": "best"}),
        (r"empty_cluster must be one of mean, previous", GOOD, TWO, {"empty_cluster": "zero"}),
        (r"anchor_weight must be between 0 and 1; got 2", GOOD, TWO, {"anchor_weight": 2}),
        (r"known_weight must be between 0 and 1; got -1", GOOD, TWO, {"known_weight": -1}),
        (r"max_iterations must be a whole number of at least 1", GOOD, TWO, {"max_iterations": 0}),
        (r"threads must be a whole number of at least 1; got 0", GOOD, TWO, {"threads": 0}),
        (r"block_rows must be a whole number", GOOD, TWO, {"block_rows": 1.5}),
        (r"documents must have 2 dimensions.*\(5,\)", np.ones(5), TWO, {}),
        (r"documents is empty: its shape is \(0, 3\)", np.ones((0, 3)), TWO, {}),
        (r"documents must be numbers; got an array of <U1", [["a"]], TWO, {}),
        (r"documents must be rows of equal length", [[1.0], [1.0, 2.0]], TWO, {}),
        (r"documents have NaN or infinity in row 1", with_value(GOOD, np.nan), TWO, {}),
        (r"documents have NaN or infinity in row 1", with_value(GOOD, np.inf), TWO, {}),
        (r"labels has NaN or infinity in row 1", GOOD, with_value(TWO, np.inf), {}),
        (r"labels has n_dims=2, but the documents have 3", GOOD, np.eye(2), {}),
        (r"labels has a zero vector.*row 1; use other words", GOOD, [[1, 0, 0], [0, 0, 0]], {}),
        (r"at least 2 labels are needed; got 1", GOOD, TWO[:1], {}),
        (r"labels are missing; cosine needs label vectors", GOOD, None, {}),
        (r"got the number 2\. A number of clusters needs start='random'", GOOD, 2, {}),
        (r"n_documents=5 should be >= n_labels=6", GOOD, 6, {"start": "random"}),
        (r"extra_labels need start='labels'", GOOD, 2, {"start": "random", "extra_labels": TWO}),
        (r"known labels need start='labels'", GOOD, 2, {"start": "random", "known": [0] * 5}),
        (r"extra_documents has n_dims=2", GOOD, TWO, {"extra_documents": np.eye(2)}),
        (r"known must be 5 whole numbers.*got shape \(2,\)", GOOD, TWO, {"known": [0, 1]}),
        (r"known must be label indices from 0 to 1, or -1; got 2 in row 4", GOOD, TWO,
         {"known": [-1, -1, 0, 1, 2]}),
        (r"every document is known", GOOD, TWO, {"known": [0] * 5}),
        (r"probabilities that add up to 1.*5 rows: 0, 1, 2, 3, 4\. Use softmax", GOOD, None,
         {"distance": "jensen-shannon"}),
    ],
)  # fmt: skip
def test_what_cannot_be_used_gets_one_clear_sentence(message, documents, labels, options):
    with pytest.raises(ArrayError, match=message):
        refine(documents, labels, **options)


def test_nearest_checks_its_arrays():
    with pytest.raises(ArrayError, match="centroids has n_dims=2, but the documents have 3"):
        nearest(GOOD, np.eye(2))
