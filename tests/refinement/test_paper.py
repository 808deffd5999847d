"""The paper's method: its variants against the plain loop, and by hand."""

import numpy as np
import pytest
import reference
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from problems import KINDS, documents_of, problem, topics
from scipy.spatial.distance import cdist, jensenshannon
from scipy.special import softmax

from ulr.refinement import refine

LINEAR = ["cosine", "l2", "dot"]


def ulr(documents, anchors=None, **options):
    return refine(documents, anchors, method="ulr", **options)


@st.composite
def tasks(draw):
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n, d = draw(st.integers(1, 400)), draw(st.integers(1, 40))
    n_labels = draw(st.integers(2, 40))
    documents = documents_of(draw(st.sampled_from(KINDS)), random, n, d)
    documents = np.clip(documents, -6e4, 6e4)
    anchors = documents[random.integers(n, size=n_labels)].astype(float)
    anchors += 0.3 * random.normal(size=(n_labels, d))
    return documents, anchors, random


def rounding_decides(documents, anchors, distance):
    """Whether a document is as far from two anchors but for the rounding of double precision."""
    found = reference.distances(documents, anchors, distance)
    gaps = np.diff(np.sort(found, axis=1)[:, :2])
    return bool(((gaps > 0) & (gaps < 1e-11 * (1 + np.abs(found).max()))).any())


@given(tasks(), st.sampled_from(LINEAR), st.integers(1, 12), st.sampled_from([0.0, 0.2]))
@settings(deadline=None, max_examples=160)
def test_every_pass_is_that_of_the_plain_loop(task, distance, max_iter, share):
    """Of Algorithm 1, and with a share of documents of known label of Algorithm 3."""
    documents, anchors, random = task
    known = np.where(random.random(len(documents)) < share, random.integers(2), -1)
    if (known >= 0).all() or (distance == "cosine" and not documents[known < 0].any()):
        return
    assume(not rounding_decides(documents, anchors, distance))
    options = {"distance": distance, "known": known, "max_iter": max_iter, "keep": "last"}
    plain, result = (
        reference.paper(documents, anchors, **options),
        ulr(documents, anchors, **options),
    )
    assert [done.changed for done in result.trace] == plain.changed
    # Documents on either side of zero leave a mean that is rounding alone.
    scale = (
        1.0 if distance == "cosine" else max(np.abs(each).max() for each in (documents, anchors))
    )
    np.testing.assert_allclose(result.centroids, plain.centroids, atol=1e-7 * scale)
    np.testing.assert_array_equal(result.predictions[known >= 0], known[known >= 0])
    free = (known < 0) & (documents.any(axis=1) | (distance != "cosine"))
    for labels, centroids in ((result.predictions, plain.centroids), (result.unrefined, anchors)):
        found = reference.distances(documents[free], centroids, distance)
        own = found[np.arange(len(found)), labels[free]]  # scores are single precision
        assert (own <= found.min(axis=1) + 1e-6 * (1 + np.abs(found).max(axis=1))).all()


@given(st.integers(0, 10_000), st.integers(2, 6), st.integers(2, 60))
@settings(deadline=None, max_examples=40)
def test_single_encoder_is_that_of_the_plain_loop(seed, n_labels, n):
    random = np.random.default_rng(seed)
    points = softmax(3 * random.normal(size=(n, n_labels)), axis=1)
    plain = reference.paper(points, np.eye(n_labels), distance="jensen-shannon")
    result = ulr(points, distance="jensen-shannon")
    np.testing.assert_array_equal(result.predictions, plain.predictions)
    assert [done.changed for done in result.trace] == plain.changed
    np.testing.assert_allclose(result.centroids, plain.centroids, atol=1e-9)


@pytest.mark.parametrize("distance", LINEAR)
def test_bounds_skip_documents_in_late_passes(distance):
    documents, anchors, _ = topics(3, n=20_000, n_dims=32)
    result = ulr(documents, anchors, distance=distance)
    assert result.n_iter > 3
    assert result.converged
    assert result.trace[-1].scored < len(documents) / 4


@pytest.mark.parametrize(("distance", "name"), [("cosine", "cosine"), ("l2", "sqeuclidean")])
def test_scores_are_the_textbook_distances(distance, name):
    documents, anchors, _ = topics(5)
    result = ulr(documents, anchors, distance=distance)
    expected = cdist(documents.astype(float), result.centroids, name)
    offset = 1.0 if distance == "cosine" else 0.0
    np.testing.assert_allclose(result.scores, offset - expected, rtol=1e-5, atol=1e-4)
    objective = result.trace[result.best_iteration].objective
    assert objective == pytest.approx(expected.min(axis=1).mean(), rel=1e-7)


def test_jensen_shannon_is_scipys():
    points, _ = problem("jensen-shannon", 2)
    result = ulr(points, distance="jensen-shannon")
    expected = [[jensenshannon(p, r) for r in result.centroids] for p in points]
    np.testing.assert_allclose(-result.scores, expected, rtol=1e-5, atol=1e-6)


def test_known_documents_are_not_in_the_objective():
    documents, anchors, _ = topics(8)
    known = np.full(len(documents), -1)
    known[0] = 2
    result = refine(documents, anchors, distance="l2", known=known, method="none")
    expected = cdist(documents[1:].astype(float), anchors, "sqeuclidean").min(axis=1).mean()
    assert result.trace[0].objective == pytest.approx(expected, rel=1e-7)


def test_random_start_finds_the_clusters_and_names_them_by_the_anchors():
    random = np.random.default_rng(0)
    means = 10 * np.eye(4, 6)
    classes = np.arange(400) % 4
    documents = means[classes] + random.normal(size=(400, 6))
    options = {"distance": "l2", "start": "random"}
    runs = [ulr(documents, means, random_state=seed, **options) for seed in range(8)]
    best = min(runs, key=lambda run: run.trace[run.best_iteration].objective)
    np.testing.assert_array_equal(best.predictions, classes)
    unnamed = ulr(documents, 4, random_state=1, **options)
    assert len(np.unique(unnamed.predictions)) == len(np.unique(runs[1].predictions))


def test_random_start_is_plain_k_means():
    documents, _, _ = topics(11)
    result = ulr(documents, 4, distance="l2", start="random", random_state=3, keep="last")
    for label in range(4):
        mean = documents[result.predictions == label].astype(float).mean(axis=0)
        np.testing.assert_allclose(result.centroids[label], mean, rtol=1e-5)


def test_an_empty_cluster_takes_the_mean_or_keeps_its_centroid():
    documents, anchors, _ = topics(12)
    anchors[0] = 50.0
    options = {"distance": "l2", "max_iter": 2, "keep": "last"}
    mean = ulr(documents, anchors, **options).centroids[0]
    np.testing.assert_allclose(mean, (documents.astype(float).mean(axis=0) + 50) / 2, rtol=1e-5)
    previous = ulr(documents, anchors, empty_cluster="previous", **options).centroids[0]
    np.testing.assert_allclose(previous, anchors[0])


def test_lowest_objective_is_the_result_and_the_last_on_request():
    documents, anchors, _ = topics(15)
    lowest, last = (ulr(documents, anchors, distance="dot", keep=k) for k in ("lowest", "last"))
    objectives = [done.objective for done in lowest.trace]
    assert lowest.best_iteration == int(np.argmin(objectives))
    assert last.best_iteration == last.n_iter - 1


def test_method_none_is_the_nearest_anchor():
    documents, anchors, _ = topics(13)
    result = refine(documents, anchors, method="none")
    np.testing.assert_array_equal(result.predictions, result.unrefined)
    expected = (reference.unit(documents) @ reference.unit(anchors).T).argmax(axis=1)
    np.testing.assert_array_equal(result.predictions, expected)
    assert (result.n_iter, result.best_iteration) == (1, 0)


def test_equally_close_labels_give_the_first():
    anchors = np.array([[1.0, 0.0], [0.0, 1.0]])
    result = refine([[1.0, 1.0], [0.0, 2.0]], anchors, method="none")
    assert result.predictions.tolist() == [0, 1]


@pytest.mark.parametrize("dtype", [np.float16, np.float64, np.int32])
def test_other_number_types_are_read(dtype):
    documents = np.array([[3, 1], [1, 4], [5, 0]], dtype=dtype)
    result = ulr(documents, np.array([[1, 0], [0, 1]], dtype=dtype), distance="l2")
    np.testing.assert_array_equal(result.predictions, [0, 1, 0])
