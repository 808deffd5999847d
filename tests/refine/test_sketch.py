"""Documents in few dimensions: what the rest of them can do, and many sets that rely on it."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ulr.refine import DISTANCES, loops, many, refine, refine_many
from ulr.refine.points import Points
from ulr.refine.sketch import sketch

N_DIMS = 64
LINEAR = ["cosine", "dot", "l2"]


def make(random, n, kind, dtype):
    """Documents of some kind, and sets of every combination of some wordings of three labels."""
    means, topics = random.normal(size=(3, N_DIMS)), random.normal(size=(6, N_DIMS))
    classes = random.integers(3, size=n)
    documents = means[classes] + 2.0 * random.normal(size=(n, 6)) @ topics
    documents += 0.5 * random.normal(size=(n, N_DIMS))
    if kind == "far away":
        documents += 300.0
    elif kind == "twice":
        documents = np.repeat(documents[: n // 4 + 1], 4, axis=0)[:n]
    elif kind == "some are zero":
        documents[:: 1 + n // 7] = 0.0
    elif kind == "flat":
        documents = means[classes] + random.normal(size=(n, 2)) @ topics[:2]
    wordings = [
        mean + topics[0] * random.normal(size=(count, 1)) + random.normal(size=(count, N_DIMS))
        for mean, count in zip(
            means + (documents.mean() * (kind == "far away")), (2, 3, 3), strict=True
        )
    ]
    return documents.astype(dtype), [np.stack(choice) for choice in product(*wordings)]


def sketch_of(documents, sets, distance):
    points = Points([documents], DISTANCES[distance])
    return points, sketch(points, sets)


@pytest.mark.parametrize("distance", LINEAR)
@pytest.mark.parametrize("kind", ["near", "far away", "twice", "some are zero", "flat"])
def test_what_is_not_sketched_is_bounded_by_the_rests(distance, kind):
    random = np.random.default_rng(0)
    documents, sets = make(random, 400, kind, np.float32)
    points, found = sketch_of(documents, sets, distance)
    assert found is not None
    np.testing.assert_allclose(found.basis @ found.basis.T, np.eye(len(found.basis)), atol=1e-12)
    apart = points.exact(documents) - found.middle
    assert (found.reach >= np.linalg.norm(apart, axis=1)).all()
    for change in [*sets[0], *random.normal(size=(20, N_DIMS)), *apart[:20]]:
        coordinates = found.basis @ change
        rest = np.linalg.norm(change - coordinates @ found.basis)
        missed = np.abs(apart @ change - found.coordinates @ coordinates)
        rounding = 2.0**-20 * found.reach * np.linalg.norm(change)
        assert (missed <= found.rest * rest + rounding).all()


def test_a_sketch_is_made_only_where_it_pays():
    random = np.random.default_rng(0)
    documents, sets = make(random, 400, "near", np.float32)
    assert sketch_of(documents, sets, "l2")[1] is not None
    assert sketch_of(documents, sets[:2], "l2")[1] is None  # too few sets
    narrow = [labels[:, :20] for labels in sets]
    assert sketch_of(documents[:, :20], narrow, "l2")[1] is None  # too few dimensions


@given(
    st.integers(0, 10_000),
    st.sampled_from(LINEAR),
    st.sampled_from(["near", "far away", "twice", "some are zero", "flat"]),
    st.sampled_from([np.float32, np.float64]),
    st.integers(1, 700),
)
@settings(deadline=None, max_examples=60)
def test_sets_that_rely_on_a_sketch_are_refined_as_if_alone(seed, distance, kind, dtype, n):
    if not loops.do_all_of_a_pass(3):
        pytest.skip("sketches are for the compiled loops, which are not all there")
    documents, sets = make(np.random.default_rng(seed), n, kind, dtype)
    options = {"distance": distance, "method": "ulr", "keep": "last"}
    made = []

    def noted(*given):
        made.append(sketch(*given))
        return made[-1]

    many.sketch, before = noted, many.sketch
    try:
        together = list(refine_many(documents, sets, **options))
    finally:
        many.sketch = before
    assert [each is not None for each in made] == [True]
    for one, labels in zip(together, sets, strict=True):
        alone = refine(documents, labels, shortcuts=False, **options)
        np.testing.assert_array_equal(one.changed, alone.changed)
        np.testing.assert_array_equal(one.predictions, alone.predictions)
        np.testing.assert_array_equal(one.unrefined, alone.unrefined)
        np.testing.assert_allclose(one.objective, alone.objective, rtol=1e-9, atol=1e-9)


def test_no_sketch_is_made_for_loops_in_numpy(monkeypatch):
    monkeypatch.setattr(loops, "compiled", None)
    monkeypatch.setattr(many, "sketch", lambda *_: pytest.fail("a sketch was made"))
    documents, sets = make(np.random.default_rng(0), 100, "near", np.float32)
    assert len(list(refine_many(documents, sets, method="ulr"))) == len(sets)
