"""Split-half reliability of the names, and what the default method does with it."""

import numpy as np
import pytest
import reference
from problems import topics

from ulr.refinement import EXCLUDED, refine


def reliability(documents, anchors, **options):
    return refine(documents, anchors, method="none", **options).diagnosis.reliability


def unrelated(anchors):
    """Names that have nothing to do with the documents."""
    return np.random.default_rng(8).normal(size=anchors.shape).astype(np.float32)


@pytest.mark.parametrize("common", [0.0, 2.0])
@pytest.mark.parametrize(("n_labels", "n_dims"), [(2, 8), (4, 33), (20, 64), (90, 16), (3, 700)])
def test_it_is_cohens_kappa_of_halves_of_rotated_documents(n_labels, n_dims, common):
    documents, anchors, _ = topics(2, n=500, n_labels=n_labels, n_dims=n_dims, common=common)
    expected = reference.kappa(*reference.centred(documents, anchors))
    assert reliability(documents, anchors) == pytest.approx(expected, abs=0.02)


def test_excluded_documents_do_not_count():
    documents, anchors, _ = topics(3, n=900)
    known = np.where(np.arange(900) < 600, -1, EXCLUDED)
    documents[600:] = 0.0
    expected = reliability(documents[:600], anchors)
    assert reliability(documents, anchors, known=known) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("kind", "known"),
    [
        ({"n": 19, "n_labels": 2, "n_dims": 32}, False),
        ({"n": 20, "n_labels": 2, "n_dims": 32}, True),
        ({"n_dims": 7, "n_labels": 3}, False),
        ({"n_dims": 8, "n_labels": 3}, True),
    ],
    ids=str,
)
def test_a_handful_of_documents_or_dimensions_says_nothing_about_the_names(kind, known):
    assert (reliability(*topics(1, **kind)[:2]) is not None) == known


def test_unreliable_names_leave_the_nearest_labels_unless_documents_of_known_label_replace_them():
    documents, anchors, truth = topics(1, n=2_000, n_dims=64)
    names = unrelated(anchors)
    assert refine(documents, names).diagnosis.moved == 0
    assert refine(documents, names, method="ulr").diagnosis.moved > 1_000
    known = np.where(np.arange(2_000) % 20 == 0, truth, -1)
    result = refine(documents, names, known=known)
    assert (result.predictions == truth)[known < 0].mean() > 0.9
