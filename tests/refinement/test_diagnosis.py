"""The diagnosis: what it measures, when it warns, and how it is read."""

from dataclasses import replace

import numpy as np
import pytest
from problems import long_and_short, topics
from reference import unit
from scipy.special import softmax

from ulr.refinement import DISTANCES, refine
from ulr.refinement.blocks import Blocks
from ulr.refinement.diagnosis import diagnose
from ulr.refinement.result import Problem


def test_a_good_refinement_is_trusted_and_its_figures_add_up():
    documents, anchors, _ = topics(0, n=800, n_dims=32)
    result = refine(documents, anchors)
    found = result.diagnosis
    assert found.trusted
    assert found.warnings == ()
    assert found.fit == pytest.approx(1.0, abs=0.1)
    assert found.moved == result.n_moved
    assert sum(each.after for each in found.labels) == found.documents == 800
    for label, each in enumerate(found.labels):
        before, after = result.unrefined == label, result.predictions == label
        assert (each.before, each.after) == (int(before.sum()), int(after.sum()))
        assert each.kept == pytest.approx((before & after).sum() / before.sum())
        assert each.fit > 0.5
        assert (each.closest, each.overturned) == (None, False)


def test_exchanged_names_that_examples_correct_are_reported_as_overturned():
    documents, anchors, truth = topics(4, n=1200, n_dims=32)
    known = np.where(np.arange(len(truth)) % 3 == 0, truth, -1)
    found = refine(documents, anchors[[1, 0, 2, 3]], known=known).diagnosis
    assert not found.trusted
    assert [each.overturned for each in found.labels] == [True, True, False, False]
    assert [each.closest for each in found.labels] == ["1", "0", None, None]
    named = found.named(["a", "b", "c", "d"])
    assert [each.closest for each in named.labels] == ["b", "a", None, None]
    assert any("'a', 'b' may no longer mean" in each for each in named.warnings)


def diagnosed(before, after):
    """The diagnosis of given labels; documents are close to the names of their labels after."""
    anchors = np.eye(3, 16)
    noise = 0.1 * np.random.default_rng(0).normal(size=(len(before), 16))
    documents = (anchors[after] + noise).astype(np.float32)
    result = replace(
        refine(documents, anchors), unrefined=np.array(before), predictions=np.array(after)
    )
    problem = Problem(anchors, 3, len(before), DISTANCES["cosine"], "discriminant")
    return diagnose(Blocks([documents]), problem, result).labels


@pytest.mark.parametrize(
    ("before", "after", "kept", "overturned"),
    [
        # Label 0 loses 8 of 10 documents, and is left with a fifth of its size.
        (10 * [0] + 20 * [1], 2 * [0] + 28 * [1], 0.2, True),
        # It loses as many, but gains as many others.
        (10 * [0] + 20 * [1], 2 * [0] + 8 * [1] + 8 * [0] + 12 * [1], 0.2, False),
        # It keeps all of its documents and grows more than threefold.
        (10 * [0] + 30 * [1], 35 * [0] + 5 * [1], 1.0, False),
        # It had no document at all, and gets some.
        (30 * [1], 10 * [0] + 20 * [1], None, True),
    ],
)
def test_a_label_is_overturned_if_most_documents_leave_and_its_size_changes(
    before, after, kept, overturned
):
    label = diagnosed(before, after)[0]
    assert label.kept == (None if kept is None else pytest.approx(kept))
    assert (label.closest, label.overturned) == (None, overturned)


def test_few_documents_and_low_expected_accuracy_are_cautions_not_distrust():
    documents, anchors, _ = topics(0, n=30, n_dims=32)
    found = refine(documents, anchors).diagnosis
    assert found.trusted
    assert any("30 is a small number of documents for 4 labels" in each for each in found.warnings)


def test_labels_that_are_rare_in_the_sample_are_named():
    sizes = [0.49, 0.49, 0.019, 0.001]
    documents, anchors, _ = topics(2, n=8000, n_dims=32, sizes=sizes)
    found = refine(documents, anchors, fit_sample=2000).diagnosis
    assert found.fitted == 2000
    assert any("fewer than 20 documents in the sample" in each for each in found.warnings)
    whole = refine(documents, anchors).diagnosis
    assert not any("in the sample" in each for each in whole.warnings)


@pytest.mark.parametrize("method", ["none", "ulr", "discriminant"])
def test_names_that_say_nothing_about_the_documents_are_not_trusted(method):
    documents, anchors, _ = topics(1, n=2_000, n_dims=64)
    elsewhere = np.random.default_rng(0).normal(size=anchors.shape)
    good = refine(documents, anchors, method=method).diagnosis
    bad = refine(documents, elsewhere, method=method).diagnosis
    assert good.reliability > 0.3 > 0.1 > bad.reliability
    assert good.trusted
    assert not bad.trusted
    assert "say little about these documents" in bad.warnings[0]


def test_probabilities_of_labels_are_diagnosed():
    random = np.random.default_rng(0)
    truth = random.integers(4, size=400)
    points = softmax(random.normal(size=(400, 4)) + 3 * np.eye(4)[truth], axis=1)
    found = refine(points, distance="jensen-shannon")
    assert found.diagnosis.trusted
    assert found.diagnosis.fit == pytest.approx(1.0, abs=0.05)
    assert found.diagnosis.moved == found.n_moved


def test_given_distributions_instead_of_labels_have_no_diagnosis():
    points = np.full((10, 3), 1 / 3)
    anchors = np.array([[0.6, 0.2, 0.2], [0.2, 0.6, 0.2]])
    assert refine(points, anchors, distance="jensen-shannon").diagnosis is None


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ({"seed": 6, "spread": 2.0}, {"method": "ulr", "start": "random"}),
        ({"seed": 1, "off": 0.4, "sizes": [0.5, 0.4, 0.08, 0.015, 0.005]}, {}),  # two are tiny
    ],
    ids=["some names are bad", "some labels are tiny"],
)
def test_fits_are_those_by_hand(kind, options):
    """The fit of all is that of the better half of the labels that are not tiny."""
    documents, anchors, _ = topics(n=900, n_labels=5, **kind)
    result = refine(documents, anchors, **options)
    above = unit(anchors) @ unit(documents).T
    above = above - above.mean(axis=0)
    above = (above - above.mean(axis=1, keepdims=True)) / above.std(axis=1, keepdims=True)

    def fits(labels):
        own = [above[i, labels == i].mean() - above[i, labels != i].mean() for i in range(5)]
        large = np.bincount(labels, minlength=5) > 0.1 * len(labels) / 5
        better = np.sort(np.array(own)[large])[::-1][: (large.sum() + 1) // 2]
        return own, better.mean()

    found = result.diagnosis
    expected, mean = fits(result.predictions)
    assert [each.fit for each in found.labels] == pytest.approx(expected, rel=1e-4)
    assert found.fit == pytest.approx(mean / fits(result.unrefined)[1], rel=1e-4)
    for label, each in enumerate(found.labels):
        closest = above[:, result.predictions == label].mean(axis=1).argmax()
        assert each.closest == (None if closest == label else str(closest))


def test_labels_that_hardly_match_their_names_are_not_trusted():
    found = refine(*topics(1)[:2]).diagnosis
    assert found.trusted
    doubtful = replace(found, fit=0.6)
    assert not doubtful.trusted
    assert "other lines than the labels" in doubtful.warnings[0]
    assert replace(doubtful, refined=0.0).trusted


@pytest.mark.parametrize(("documents", "trusted"), [(10, True), (200, False)])
def test_overturned_labels_of_few_documents_are_named_and_trusted(documents, trusted):
    found = refine(*topics(1, n=1_000)[:2]).diagnosis
    first = replace(found.labels[0], before=documents, after=documents, overturned=True)
    overturned = replace(found, labels=(first, *found.labels[1:]))
    assert overturned.trusted == trusted
    assert "'0' may no longer mean" in overturned.warnings[0]


def test_a_collapse_is_reported():
    documents, anchors, _ = long_and_short(0)
    found = refine(documents, anchors).diagnosis
    assert found.collapsed
    assert found.refined < 0.5
    assert any("most documents to a few labels" in warning for warning in found.warnings)
    for other in (refine(documents, anchors, method="none"), refine(*topics(1)[:2])):
        assert not other.diagnosis.collapsed
    assert refine(*topics(1)[:2]).diagnosis.refined == 1.0
    assert refine(documents, anchors, method="none").diagnosis.refined == 0.0
