"""Split-half reliability of the names, and what the default method does with it."""

import numpy as np
import pytest
import reference
from problems import topics
from sklearn.metrics import cohen_kappa_score

from ulr.refinement import refine
from ulr.refinement.blocks import EXCLUDED, Block, Summary
from ulr.refinement.clusters import NearestInHalves, centred, mean_kappa


def kappa(documents, anchors, known=None, centre=0.0):
    lengths, unit = np.linalg.norm(documents, axis=1).astype(float), reference.unit
    centre = centre * unit(documents.astype(float)).mean(axis=0)
    names = unit(unit(anchors.astype(float)) - centre)
    known = np.full(len(documents), -1) if known is None else known
    state = {"centred": centred(documents, lengths, centre)}
    block = Block(0, documents, known, lengths)
    return mean_kappa(NearestInHalves.of(names)(block, state)[1])


def unrelated(anchors):
    """Names that have nothing to do with the documents."""
    return np.random.default_rng(8).normal(size=anchors.shape).astype(np.float32)


def test_kappa_is_that_of_scikit_learn():
    random = np.random.default_rng(0)
    one, other = random.integers(3, size=(2, 200))
    other[:120] = one[:120]
    counts = np.array([[np.bincount(labels, minlength=3) for labels in (one, other)]], dtype=float)
    halves = Summary(counts=counts, agreeing=np.array([float((one == other).sum())]))
    assert mean_kappa(halves) == pytest.approx(cohen_kappa_score(one, other))


@pytest.mark.parametrize("centre", [0.0, 0.7])
@pytest.mark.parametrize(("n_labels", "n_dims"), [(2, 8), (4, 33), (20, 64), (90, 16), (3, 700)])
def test_it_is_that_of_rotated_documents(n_labels, n_dims, centre):
    documents, anchors, _ = topics(2, n=500, n_labels=n_labels, n_dims=n_dims)
    x, a = (reference.unit(rows.astype(float)) for rows in (documents, anchors))
    common = centre * x.mean(axis=0)
    expected = reference.kappa(reference.unit(x - common), reference.unit(a - common))
    assert kappa(documents, anchors, centre=centre) == pytest.approx(expected, abs=0.02)


def test_excluded_documents_do_not_count():
    documents, anchors, _ = topics(3, n=900)
    known = np.where(np.arange(900) < 600, -1, EXCLUDED).astype(np.int32)
    documents[600:] = 0.0
    expected = kappa(documents[:600], anchors)
    assert kappa(documents, anchors, known) == pytest.approx(expected)


def test_too_few_dimensions_cannot_be_split():
    assert NearestInHalves.of(np.eye(3, 7)) is None
    documents, anchors, _ = topics(1, n_dims=5)
    assert refine(documents, anchors).diagnosis.reliability is None


def test_without_reliable_names_the_nearest_labels_stay():
    documents, anchors, _ = topics(1, n=2_000, n_dims=64)
    names = unrelated(anchors)
    assert refine(documents, names).diagnosis.moved == 0
    assert refine(documents, names, method="ulr").diagnosis.moved > 1_000


def test_documents_of_known_label_replace_unreliable_names():
    documents, anchors, truth = topics(1, n=2_000, n_dims=64)
    known = np.where(np.arange(2_000) % 20 == 0, truth, -1)
    result = refine(documents, unrelated(anchors), known=known)
    free = known < 0
    assert (result.predictions == truth)[free].mean() > 0.9
