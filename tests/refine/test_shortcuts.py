"""The shortcuts against the plain loop, which scores everything in every pass in float64."""

import tracemalloc
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import rel_entr, softmax

from ulr.refine import DISTANCES, loops, refine, trail

pytestmark = pytest.mark.usefixtures("either_loops")

# The paper's method is what these tests are about.
refine = partial(refine, method="ulr")

LINEAR = ["cosine", "l2", "dot"]


def documents_of(kind, random, n, d):
    """Data of very different shapes."""
    if kind == "gaussian":
        return random.normal(size=(n, d))
    if kind == "clustered":
        means = 3 * random.normal(size=(5, d))
        return means[random.integers(5, size=n)] + random.normal(size=(n, d))
    if kind == "offset":  # a common part that dwarfs what tells documents apart
        return 50 + random.normal(size=(n, d))
    if kind == "duplicated":
        return random.normal(size=(max(1, n // 10), d))[random.integers(max(1, n // 10), size=n)]
    if kind == "grid":  # exact ties everywhere
        return random.integers(-1, 2, size=(n, d)).astype(float)
    if kind == "sparse":
        return random.normal(size=(n, d)) * (random.random((n, d)) < 0.1)
    if kind == "scaled":  # lengths over many orders of magnitude
        return random.normal(size=(n, d)) * 10.0 ** random.uniform(-5, 5, size=(n, 1))
    raise AssertionError(kind)


KINDS = ["gaussian", "clustered", "offset", "duplicated", "grid", "sparse", "scaled"]


@st.composite
def problems(draw):
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n, d = draw(st.integers(1, 400)), draw(st.integers(1, 40))
    n_labels = draw(st.integers(2, 40))
    documents = documents_of(draw(st.sampled_from(KINDS)), random, n, d)
    labels = documents[random.integers(n, size=n_labels)] + 0.3 * random.normal(size=(n_labels, d))
    if draw(st.booleans()):
        labels[1] = labels[0]  # two labels that cannot be told apart
    dtype = draw(st.sampled_from([np.float32, np.float64, np.float16]))
    with np.errstate(over="ignore"):
        documents = np.clip(documents, -6e4, 6e4).astype(dtype)
    return documents, labels, random, draw


def both(documents, labels, **options):
    passes = {True: [], False: []}
    results = [
        refine(documents, labels, shortcuts=s, on_pass=passes[s].append, **options)
        for s in (True, False)
    ]
    return *results, passes[True]


def assert_same(fast, plain):
    np.testing.assert_array_equal(fast.unrefined, plain.unrefined)
    np.testing.assert_array_equal(fast.changed, plain.changed)
    np.testing.assert_array_equal(fast.predictions, plain.predictions)
    scale = np.abs(plain.objective).max() + np.abs(plain.scores).max()
    # From sums the objective is a difference of squares, and cannot be nearer than these allow.
    squares = np.square(plain.centroids).sum(axis=1).max()
    nearness = 1e-9 * scale + 16 * np.finfo(float).eps * squares
    if plain.distance == "jensen-shannon":
        nearness = (16 * np.finfo(float).eps) ** 0.5  # the distance is a root
    np.testing.assert_allclose(fast.objective, plain.objective, atol=nearness)
    np.testing.assert_allclose(fast.centroids, plain.centroids, atol=1e-9 * scale, rtol=1e-9)
    assert fast.converged == plain.converged
    np.testing.assert_array_equal(fast.scores.argmax(axis=1), fast.predictions)


@given(problems(), st.sampled_from(LINEAR))
@settings(deadline=None, max_examples=150)
def test_every_pass_is_that_of_the_plain_loop(problem, distance):
    documents, labels, _, draw = problem
    options = {"keep": "last", "max_iterations": draw(st.integers(1, 30))}
    fast, plain, _ = both(documents, labels, distance=distance, **options)
    assert_same(fast, plain)


@given(problems(), st.sampled_from(LINEAR))
@settings(deadline=None, max_examples=50)
def test_every_variant_is_that_of_the_plain_loop(problem, distance):
    documents, labels, random, draw = problem
    n, n_labels = len(documents), len(labels)
    options = {"distance": distance, "keep": "last", "block_rows": draw(st.integers(1, 500))}
    variant = draw(st.sampled_from(["known", "extra labels", "extra documents", "random start"]))
    if variant == "known":
        options["known"] = np.where(random.random(n) < 0.2, random.integers(n_labels, size=n), -1)
        options["known"][0] = -1
    elif variant == "extra labels":
        options["extra_labels"] = random.normal(size=(5, documents.shape[1]))
    elif variant == "extra documents":
        options["extra_documents"] = documents[::-1] + documents.dtype.type(0.5)
    elif n >= n_labels:
        labels = n_labels  # two equal labels could be matched either way
        options |= {"start": "random", "seed": 3}
    fast, plain, _ = both(documents, labels, **options)
    np.testing.assert_array_equal(fast.changed, plain.changed)
    np.testing.assert_array_equal(fast.predictions, plain.predictions)
    np.testing.assert_array_equal(fast.unrefined, plain.unrefined)


@given(st.integers(0, 10_000), st.integers(1, 300), st.integers(2, 30), st.floats(0.01, 20))
@settings(deadline=None, max_examples=100)
def test_jensen_shannon_is_that_of_the_plain_loop(seed, n, n_labels, sharpness):
    random = np.random.default_rng(seed)
    scores = sharpness * random.normal(size=(n, n_labels))
    scores[random.random(scores.shape) < 0.05] = -np.inf  # certain that it is not this one
    scores[:, 0] = np.maximum(scores[:, 0], -5.0)
    fast, plain, _ = both(softmax(scores, axis=1), None, distance="jensen-shannon")
    assert_same(fast, plain)


@pytest.mark.parametrize("distance", sorted(DISTANCES))
def test_most_documents_are_skipped_once_it_settles(distance):
    random = np.random.default_rng(0)
    means = random.normal(size=(6, 32))
    documents = means[random.integers(6, size=5000)] + 0.8 * random.normal(size=(5000, 32))
    labels = means + random.normal(size=means.shape)
    if distance == "jensen-shannon":
        documents, labels = softmax(documents @ labels.T / 3, axis=1), None
    fast, plain, passes = both(documents, labels, distance=distance, keep="last")
    assert_same(fast, plain)
    assert passes[-1].skipped > 4500
    assert passes[0].skipped == 0


def test_many_labels_are_refined_in_small_blocks():
    random = np.random.default_rng(2)
    documents, labels = random.normal(size=(3000, 5)), random.normal(size=(700, 5))
    fast, plain, _ = both(documents, labels, distance="l2", max_iterations=8, keep="last")
    assert_same(fast, plain)
    tracemalloc.start()
    refine(documents, random.normal(size=(10_000, 5)), distance="l2", max_iterations=2, threads=1)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # documents x labels x 4 bytes, once for the bounds or once for the result, and some blocks
    assert peak < 1.8 * 3000 * 10_000 * 4


@pytest.mark.parametrize("distance", LINEAR)
@pytest.mark.parametrize("way", ["one by one", "in pairs", "by length"])
def test_passes_too_long_ago_to_be_remembered_are_not_relied_on(distance, way, monkeypatch):
    monkeypatch.setattr(trail, "_REMEMBERED_BYTES", 3 * 6 * 16 * 8)  # three passes
    if way != "one by one":
        monkeypatch.setattr(loops, "FEW_CENTROIDS", 0)
    if way == "by length":
        monkeypatch.setattr(trail, "_MOST_PAIRS", 0)
    for seed in range(3):
        random = np.random.default_rng(seed)
        means = random.normal(size=(6, 16))
        documents = means[random.integers(6, size=1500)] + 1.2 * random.normal(size=(1500, 16))
        labels = means + 1.5 * random.normal(size=means.shape)
        fast, plain, passes = both(documents, labels, distance=distance, keep="last")
        assert_same(fast, plain)
        assert any(one.skipped for one in passes)


def test_scores_are_right_far_from_the_origin():
    random = np.random.default_rng(4)
    documents = (9000 + random.normal(size=(300, 6))).astype(np.float32)
    labels = documents[:3] + 0.3 * random.normal(size=(3, 6))
    fast, plain, _ = both(documents, labels, distance="l2", keep="last")
    assert_same(fast, plain)
    np.testing.assert_allclose(fast.scores, plain.scores, rtol=1e-4)


def test_numbers_too_large_or_small_for_float32_are_still_right():
    random = np.random.default_rng(1)
    documents = random.normal(size=(200, 8))
    labels = random.normal(size=(3, 8))
    expected = refine(documents, labels, distance="l2").predictions
    for scale in (1e-30, 1e15):
        result = refine(documents * scale, labels * scale, distance="l2")
        np.testing.assert_array_equal(result.predictions, expected)


@given(st.integers(0, 10_000), st.integers(2, 12), st.floats(0.01, 50))
@settings(deadline=None)
def test_jensen_shannon_lies_between_the_hellinger_bounds(seed, n, sharpness):
    random = np.random.default_rng(seed)
    p, r = softmax(sharpness * random.normal(size=(2, n)), axis=1)
    if seed % 3 == 0:
        p = np.eye(n)[seed % n]
    middle = (p + r) / 2  # rounding may make it less than 0, so no root is drawn
    divergence = (rel_entr(p, middle) + rel_entr(r, middle)).sum() / 2
    hellinger = 1.0 - np.sqrt(p * r).sum()
    assert np.log(2) * hellinger <= divergence + 1e-12
    assert divergence <= hellinger + 1e-12


@pytest.mark.parametrize("distance", LINEAR)
@pytest.mark.parametrize("n_labels", [2, 4, 7, 8, 13, 40])
def test_products_of_few_and_of_many_labels_decide_alike(distance, n_labels):
    random = np.random.default_rng(n_labels)
    documents = documents_of("clustered", random, 1300, 301).astype(np.float32)
    labels = documents[:n_labels] + random.normal(size=(n_labels, 301))
    fast, plain, _ = both(documents, labels, distance=distance)
    assert_same(fast, plain)


@pytest.mark.parametrize("distance", LINEAR)
def test_it_does_not_matter_how_documents_lie_in_memory(distance):
    random = np.random.default_rng(3)
    documents = documents_of("clustered", random, 900, 40).astype(np.float32)
    labels = documents[:5] + random.normal(size=(5, 40))
    wanted = refine(documents, labels, distance=distance)
    wide = np.zeros((1800, 80), dtype=np.float32)
    wide[::2, ::2] = documents
    read_only = documents.copy()
    read_only.flags.writeable = False
    swapped, long = documents.astype(">f4"), documents.astype(np.longdouble)
    for same in (np.asfortranarray(documents), wide[::2, ::2], read_only, swapped, long):
        result = refine(same, labels, distance=distance)
        assert (result.predictions == wanted.predictions).all()
        np.testing.assert_allclose(result.centroids, wanted.centroids, rtol=1e-12)
