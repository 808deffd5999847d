"""Trees of labels: probabilities add up, documents stay above leaves that are not sure enough."""

import numpy as np
import pytest

from ulr.errors import LabelError
from ulr.label_tree import LabelTree
from ulr.labels import as_label_set, labels_from_arguments, read_labels

NESTED = {
    "sport": {"ball games": {"tennis": None, "football": ["soccer"]}, "skiing": None},
    "law": None,
}
PATHS = ["sport > ball games > tennis", "sport > ball games > football", "sport > skiing", "law"]


@pytest.fixture
def tree():
    return as_label_set(NESTED).tree


def leaves(n=50, seed=0):
    return np.random.default_rng(seed).dirichlet(np.full(4, 0.5), n)


def test_nested_mappings_files_and_paths_give_the_same_tree(tmp_path):
    nested = as_label_set(NESTED)
    yaml, text, js = tmp_path / "a.yaml", tmp_path / "a.txt", tmp_path / "a.json"
    yaml.write_text(
        "sport:\n  ball games:\n    tennis:\n    football: [soccer]\n  skiing:\nlaw: law\n"
    )
    text.write_text("\n".join(PATHS).replace("football", "football: soccer"))
    js.write_text(
        '{"sport": {"ball games": {"tennis": null, "football": "soccer"}, "skiing": null}, "law": null}'
    )
    assert nested.names == tuple(PATHS)
    for path in (yaml, text, js):
        assert read_labels(path) == nested
    given = "sport > ball games > tennis, sport > ball games>football, law"
    assert labels_from_arguments([given]).names[1] == "sport > ball games>football"


def test_names_without_a_path_form_no_tree():
    for names in (["a", "b"], ["income >50", "x>y"]):
        assert as_label_set(names).tree is None


def test_a_leaf_is_described_by_its_name_alone_and_with_the_one_above():
    phrases = [label.phrases for label in as_label_set(NESTED)]
    own = ("tennis", "ball games tennis"), ("soccer",), ("skiing", "sport skiing"), ("law",)
    assert tuple(phrases) == own


def test_leaves_of_the_same_name_are_told_apart_by_their_paths():
    labels = as_label_set(["cats > others", "dogs > others", "a > b > c", "x > b > c"])
    assert labels.phrases() == [["cats others"], ["dogs others"], ["a b c"], ["x b c"]]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["sport", "sport > tennis"], "has labels below it"),
        (["a > > b", "c"], "has an empty part"),
        ({"a": {"b": None}, "a > b": None}, "already given"),
        ({"a": {"b": {}}, "c": None}, "must be a text or a list"),
        ({"a": {" ": None}, "c": None}, "a name is empty"),
    ],
)
def test_trees_that_cannot_be_used_are_refused(given, message):
    with pytest.raises(LabelError, match=message):
        as_label_set(given)


def test_a_name_that_is_given_twice_below_a_node_is_refused(tmp_path):
    path = tmp_path / "a.yaml"
    path.write_text("a:\n  b:\n  b:\nc:\n  d:\n")
    with pytest.raises(LabelError, match="'a > b' is already given"):
        read_labels(path)


def test_probabilities_add_up_along_the_tree(tree):
    own = leaves()
    sums = dict(zip(tree.names, tree.sums(own).T, strict=True))
    np.testing.assert_allclose(sums["sport > ball games"], own[:, 0] + own[:, 1])
    np.testing.assert_allclose(sums["sport"], own[:, :3].sum(axis=1))
    np.testing.assert_allclose(sums["sport"] + sums["law"], 1.0)


def test_children_are_in_the_order_of_their_leaves(tree):
    names = [tree.names[i] for i in tree.children(-1)]
    assert names == ["sport", "law"]
    assert [tree.names[i] for i in tree.children(tree.names.index("sport"))] == [
        "sport > ball games",
        "sport > skiing",
    ]


@pytest.mark.parametrize("threshold", [0.0, 0.3, 0.5, 0.8, 1.0])
def test_every_document_is_at_the_deepest_node_that_is_sure_enough(tree, threshold):
    own = leaves()
    nodes, chances = tree.place(own, threshold)
    sums = tree.sums(own)
    np.testing.assert_array_equal(chances, sums[np.arange(len(own)), nodes])
    assert ((chances >= threshold) | (tree.levels[nodes] == 0)).all()
    for row, node in enumerate(nodes):
        children = tree.children(node)
        assert not len(children) or (sums[row, children] < threshold).all()


def test_ancestors_by_level(tree):
    names = np.array(tree.names)
    assert set(names[tree.at_level(0)]) == {"sport", "law"}
    assert names[tree.at_level(1)].tolist()[:4] == [
        *["sport > ball games"] * 2,
        "sport > skiing",
        "law",
    ]
    assert (tree.depth, LabelTree.of(["a", "b"])) == (3, None)
