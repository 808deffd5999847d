"""What an audit says: flags, competing labels, flipping documents, a set to use, its figures."""

from dataclasses import asdict
from itertools import combinations as pairs_of

import numpy as np
import pytest

from ulr.audit import audit, compare_with_truth, draw_audit
from ulr.labels import as_label_set
from ulr.phrasings import combinations

LABELS = as_label_set({"world": ["world", "politics"], "sports": None, "money": ["m", "b", "f"]})
PHRASINGS = combinations(LABELS)


def random_predictions(seed, n_documents=40, n_labels=3):
    random = np.random.default_rng(seed)
    truth = random.integers(n_labels, size=n_documents)
    wrong = (
        random.random((len(PHRASINGS), n_documents))
        < np.linspace(0.1, 0.6, len(PHRASINGS))[:, None]
    )
    other = random.integers(n_labels, size=wrong.shape)
    return np.where(wrong, other, truth), truth


@pytest.fixture
def audited(as_sweep):
    before, _ = random_predictions(1)
    after, truth = random_predictions(2)
    sweep = as_sweep(before, after, 3, block_cells=7 * len(PHRASINGS))
    return before, after, truth, sweep, audit(sweep, PHRASINGS, LABELS)


def of_sets(predicted):
    return [
        np.mean([(own == other).mean() for j, other in enumerate(predicted) if i != j])
        for i, own in enumerate(predicted)
    ]


def test_the_set_recommended_is_the_one_that_agrees_most(audited):
    _, after, _, _, found = audited
    agreement = of_sets(after)
    best = int(np.argmax(agreement))
    assert (found.recommendation.number, found.recommendation.phrases) == (
        best + 1,
        PHRASINGS.sets[best],
    )
    assert f"on {agreement[best]:.1%} of the documents" in found.recommendation.reason
    assert found.recommendation.reason.endswith(f"is {np.mean(agreement):.1%}")


def test_of_equally_good_sets_the_first_is_recommended(as_sweep):
    same = np.tile([0, 1, 2, 1], (len(PHRASINGS), 1))
    assert audit(as_sweep(same, same, 3), PHRASINGS, LABELS).recommendation.number == 1


def test_figures_of_sets_and_of_all_are_those_before_and_after(audited):
    before, after, _, _, found = audited
    for phase, predicted in (("before", before), ("after", after)):
        pairs = [one == other for one, other in pairs_of(predicted, 2)]
        assert getattr(found, f"agreement_{phase}") == pytest.approx(np.mean(pairs))
        unanimous = (predicted == predicted[0]).all(axis=0).mean()
        assert getattr(found, f"unanimous_{phase}") == pytest.approx(unanimous)
        own = [getattr(each, f"agreement_{phase}") for each in found.sets]
        assert own == pytest.approx(of_sets(predicted))
        majority = [np.bincount(given, minlength=3).argmax() for given in predicted.T]
        np.testing.assert_array_equal(getattr(found, f"majority_{phase}"), majority)
    assert [each.phrases for each in found.sets] == list(PHRASINGS)
    assert all(each.accuracy_after is None for each in found.sets)


def test_a_label_tells_how_much_it_gets_and_what_its_phrasing_does(audited):
    before, after, _, _, found = audited
    given = np.eye(3)[after].reshape(len(after), -1)
    total = ((given - given.mean(axis=0)) ** 2).sum()
    for i, label in enumerate(found.labels):
        sizes = (after == i).mean(axis=1)
        assert label.label == LABELS.names[i]
        assert label.documents_before == pytest.approx((before == i).mean())
        assert label.documents_after == pytest.approx(sizes.mean())
        assert (label.least, label.most) == pytest.approx((sizes.min(), sizes.max()))
        assert [each.phrase for each in label.phrases] == list(LABELS.labels[i].phrases)
        explained = 0.0
        for phrase in label.phrases:
            has = np.array([each[i] == phrase.phrase for each in PHRASINGS])
            assert phrase.sets == has.sum()
            assert phrase.agreement_after == pytest.approx(np.array(of_sets(after))[has].mean())
            assert phrase.agreement_before == pytest.approx(np.array(of_sets(before))[has].mean())
            away = has.sum() * ((given[has].mean(axis=0) - given.mean(axis=0)) ** 2).sum()
            share = away / total if len(label.phrases) > 1 else 0.0
            assert phrase.share_of_disagreement == pytest.approx(share, rel=1e-4)
            explained += share
        assert label.share_of_disagreement == pytest.approx(explained, rel=1e-4)
    assert found.labels[1].share_of_disagreement == 0.0


def test_labels_that_compete_come_with_their_share_the_largest_first(audited):
    _, after, _, _, found = audited
    counts = dict.fromkeys(pairs_of(LABELS.names, 2), 0)
    for one, other in pairs_of(after, 2):
        for a, b in zip(one, other, strict=True):
            if a != b:
                counts[LABELS.names[min(a, b)], LABELS.names[max(a, b)]] += 1
    total = sum(counts.values())
    expected = sorted(counts, key=counts.get, reverse=True)
    assert [(each.first, each.second) for each in found.competing] == expected
    assert [each.share for each in found.competing] == pytest.approx(
        [counts[pair] / total for pair in expected]
    )


def test_documents_that_flip_most_come_first_with_what_sets_say(audited):
    _, after, _, _, found = audited
    agreement = np.mean([one == other for one, other in pairs_of(after, 2)], axis=0)
    assert len(found.flipping) == 10
    order = np.argsort(agreement.astype(np.float32), kind="stable")[:10]
    np.testing.assert_array_equal(found.flipping, order)
    for row, shares in zip(found.flipping, found.shares, strict=True):
        np.testing.assert_allclose(shares, np.bincount(after[:, row], minlength=3) / len(after))


def test_documents_that_never_flip_are_not_told(as_sweep):
    after = np.tile([0, 1, 2, 1], (len(PHRASINGS), 1))
    after[0, 2] = 1
    found = audit(as_sweep(after, after, 3), PHRASINGS, LABELS)
    assert found.flipping.tolist() == [2]
    assert found.unanimous_after == 0.75
    assert [(each.first, each.second, each.share) for each in found.competing] == [
        ("sports", "money", 1.0)
    ]


@pytest.mark.parametrize(
    ("shares", "expected"),
    [
        ([96, 2, 2], ["almost everything", "almost nothing", "almost nothing"]),
        ([66, 30, 4], [None, None, None]),
        ([67, 30, 3], ["almost everything", None, "almost nothing"]),
        ([96, 4], ["almost everything", "almost nothing"]),
        ([89, 11], [None, None]),
        ([51, 20, 20, 9], ["almost everything", None, None, None]),
        ([50, 24, 24, 2], [None, None, None, "almost nothing"]),
    ],
)
def test_labels_that_attract_almost_nothing_or_everything_are_flagged(as_sweep, shares, expected):
    labels = as_label_set(
        {f"l{i}": ["a", "b"] if i == 0 else [f"l{i}"] for i in range(len(shares))}
    )
    predicted = np.tile(np.repeat(np.arange(len(shares)), shares), (2, 1))
    found = audit(as_sweep(predicted, predicted, len(shares)), combinations(labels), labels)
    assert [each.attracts for each in found.labels] == expected


def test_a_label_that_no_set_gives_has_no_agreement(as_sweep):
    predicted = np.tile([0, 2, 2], (len(PHRASINGS), 1))
    found = audit(as_sweep(predicted, predicted, 3), PHRASINGS, LABELS)
    assert [each.agreement_after for each in found.labels] == [1.0, None, 1.0]
    assert found.competing == ()
    assert len(found.flipping) == 0


def test_accuracies_are_those_by_hand_and_choose_nothing(audited):
    before, after, truth, sweep, found = audited
    truth = truth.copy()
    truth[::5] = -1
    has = truth >= 0
    against, sets = compare_with_truth(found, sweep, truth)
    by_name = [(each[has] == truth[has]).mean() for each in before]
    refined = [(each[has] == truth[has]).mean() for each in after]
    assert [each.accuracy_before for each in sets] == pytest.approx(by_name)
    assert [each.accuracy_after for each in sets] == pytest.approx(refined)
    chosen = found.recommendation.number - 1
    assert asdict(against) == pytest.approx(
        {
            "documents": has.sum(),
            "mean_before": np.mean(by_name),
            "mean_after": np.mean(refined),
            "improved": sum(a > b for a, b in zip(refined, by_name, strict=True)),
            "best": np.argmax(refined) + 1,
            "worst": np.argmin(refined) + 1,
            "recommended_before": by_name[chosen],
            "recommended_after": refined[chosen],
            "majority_before": (found.majority_before == truth)[has].mean(),
            "majority_after": (found.majority_after == truth)[has].mean(),
        }
    )
    assert [each.phrases for each in sets] == [each.phrases for each in found.sets]
    assert found.sets[0].accuracy_after is None


def test_the_picture_shows_labels_phrases_and_with_a_truth_the_gain(audited):
    _, _, truth, sweep, found = audited
    labels, phrases = draw_audit(found, found.sets).axes
    assert [each.get_text() for each in labels.get_yticklabels()] == list(LABELS.names)
    assert [each.get_text() for each in phrases.get_yticklabels()] == [
        "world", "world: politics", "sports", "money: m", "money: b", "money: f",
    ]  # fmt: skip
    widths = [bar.get_width() for bar in labels.patches[3:]]
    assert widths == pytest.approx([100 * each.agreement_after for each in found.labels])
    _, sets = compare_with_truth(found, sweep, truth)
    *_, gain = draw_audit(found, sets).axes
    points = gain.collections[0].get_offsets()
    expected = [(e.accuracy_before, e.accuracy_after - e.accuracy_before) for e in sets]
    np.testing.assert_allclose(points, 100 * np.array(expected))
