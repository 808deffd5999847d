"""Classifiers whose labels form a tree."""

import numpy as np
import pytest

from tiny_task import generated_texts, static
from ulr import ZeroShotClassifier
from ulr.classifier import place
from ulr.errors import ParameterError

TREE = {
    "leisure": {"sports": None},
    "work": {"business": ["business"], "science and technology": ["science", "technology"]},
}
PATHS = {"sports": "leisure > sports"} | {
    name: f"work > {name}" for name in ("business", "science and technology")
}


@pytest.fixture(scope="module")
def task():
    texts, truth = generated_texts(150, own=0.5)
    return texts, np.array([PATHS[name] for name in truth])


@pytest.fixture(scope="module")
def fitted(task):
    return ZeroShotClassifier(TREE, encoder=static()).fit(task[0])


def test_the_path_of_the_node_is_predicted(task, fitted):
    texts, truth = task
    found = fitted.predict(texts)
    assert set(found) <= {*fitted.classes_, "leisure", "work"}
    compatible = [
        path == true or true.startswith(f"{path} >")
        for path, true in zip(found, truth, strict=True)
    ]
    assert np.mean(compatible) > 0.8
    assert fitted.classes_.tolist() == sorted(PATHS.values())


def test_a_higher_threshold_keeps_more_documents_above(task, fitted):
    texts, depths = task[0], []
    for threshold in (0.0, 0.5, 0.99):
        model = fitted.fitted_.with_settings(path_threshold=threshold)
        placement = place(model, model.predict(texts))
        depths.append(placement.tree.levels[placement.nodes].mean())
        assert (placement.level(0) != "").all()
        below = placement.level(1)
        assert ((below == "") == (placement.tree.levels[placement.nodes] == 0)).all()
    assert depths[0] == 1.0
    assert depths[0] >= depths[1] > depths[2]


def test_given_labels_stay_as_they_are(task):
    texts, truth = task
    given = [PATHS["sports"] if i < 20 else None for i in range(len(texts))]
    model = ZeroShotClassifier(TREE, encoder=static(), path_threshold=1.0)
    found = model.fit_predict(texts, given)
    wrong = truth[:20] != PATHS["sports"]
    assert wrong.any()
    assert (found[:20][wrong] == PATHS["sports"]).all()


def test_texts_without_a_label_and_similar_to_none(task):
    model = ZeroShotClassifier(TREE, encoder=static(), none_share=0.1).fit(task[0])
    predictions = model.fitted_.predict(["", *task[0]])
    placement = place(model.fitted_, predictions)
    assert (placement.paths[0], placement.confidence[0]) == ("none of these", 0.0)
    assert (placement.paths == "none of these").sum() > 5


def test_a_saved_model_places_documents_alike(task, fitted, tmp_path):
    fitted.save(tmp_path / "model")
    again = ZeroShotClassifier.load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict(task[0]), fitted.predict(task[0]))


@pytest.mark.parametrize("threshold", [-0.1, 1.1, "0.5", True])
def test_thresholds_that_are_no_probability_are_refused(threshold):
    with pytest.raises(ParameterError, match="path_threshold must be between 0 and 1"):
        ZeroShotClassifier(TREE, path_threshold=threshold).fit(["a"])
