"""Jobs whose labels form a tree, or that give several labels a document."""

import json

import pyarrow.parquet as pq
import pytest

from running import read_rows, run_classify, run_predict, write_rows
from tiny_task import generated_texts, static
from ulr.classifier import load, save
from ulr.errors import LabelError, TableError

TREE = {"leisure": {"sports": None}, "work": {"business": None, "science and technology": None}}
LEAVES = ["sports", "business", "science and technology"]


@pytest.fixture(scope="module")
def rows():
    texts, truth = generated_texts(90, own=0.5)
    second, other = generated_texts(90, seed=1, own=0.5)
    both = [f"{a} {b}" for a, b in zip(texts, second, strict=True)]
    sets = ["; ".join(dict.fromkeys(pair)) for pair in zip(truth, other, strict=True)]
    return list(zip(texts, truth, both, sets, strict=True))


@pytest.fixture
def source(tmp_path, rows):
    return write_rows(
        tmp_path / "in.csv", [*rows, ("", "", "", "")], ("text", "truth", "both", "sets")
    )


@pytest.fixture
def classify(source):
    def run(labels=TREE, output=None, **options):
        return run_classify(source, labels, output, encoder=static(), **options)

    return run


def test_every_level_of_a_tree_is_a_column(classify, tmp_path):
    result = classify(output=tmp_path / "out.csv", path_threshold=0.7)[1]
    written = read_rows(tmp_path / "out.csv")
    for row in written[:-1]:
        path = row["ulr_label"].split(" > ")
        assert [row["ulr_label_1"], row["ulr_label_2"]] == [*path, ""][:2]
        assert row["ulr_label_1"] in TREE
        assert float(row["ulr_confidence"]) >= 0.7 or not row["ulr_label_2"]
    assert {written[-1][f"ulr_{name}"] for name in ("label", "label_1", "label_2")} == {""}
    nodes = {each.path: each for each in result.nodes}
    assert list(nodes)[:2] == ["leisure", "leisure > sports"]
    assert nodes["leisure"].documents + nodes["work"].documents == 90
    for name in TREE:
        below = sum(each.documents for path, each in nodes.items() if path.startswith(f"{name} >"))
        assert nodes[name].documents == nodes[name].stayed + below
        labels = [row["ulr_label"] for row in written]
        assert labels.count(name) == nodes[name].stayed
    json.dumps(result.as_dict())


def test_a_saved_tree_labels_a_file_alike(classify, source, tmp_path):
    fitted, _ = classify(output=tmp_path / "out.csv")
    save(fitted, tmp_path / "model")
    run_predict(source, load(tmp_path / "model", encoder=static()), tmp_path / "again.csv")
    for one, other in zip(
        read_rows(tmp_path / "out.csv"), read_rows(tmp_path / "again.csv"), strict=True
    ):
        del one["ulr_unrefined"]
        assert one == other


def test_levels_are_compared_with_names_or_paths_of_leaves(classify):
    result = classify(truth="truth", path_threshold=0.0)[1]
    first, second = result.comparison.levels
    assert (first.level, first.documents, first.reached) == (0, 90, 1.0)
    assert first.accuracy == first.precision >= second.accuracy > 0.7
    stayed = classify(truth="truth", path_threshold=1.0)[1].comparison.levels[1]
    assert stayed.reached < 0.5
    assert stayed.accuracy <= stayed.reached


def test_the_column_of_a_level_must_be_free(classify, source):
    content = source.read_text().replace("sets", "ulr_label_2", 1)
    source.write_text(content)
    with pytest.raises(TableError, match="already has a column 'ulr_label_2'"):
        classify(output=source.parent / "out.csv")


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_several_labels_are_lists_in_files(classify, tmp_path, ending):
    path = tmp_path / f"out.{ending}"
    _, result = classify(LEAVES, path, columns=("both",), multilabel=1.6)
    if ending == "csv":
        found = [row["ulr_labels"].split("; ") for row in read_rows(path)[:-1]]
        assert read_rows(path)[-1]["ulr_labels"] == ""
    elif ending == "jsonl":
        found = [json.loads(line)["ulr_labels"] for line in path.read_text().splitlines()][:-1]
    else:
        found = pq.read_table(path)["ulr_labels"].to_pylist()[:-1]
    assert {name for each in found for name in each} == set(LEAVES)
    assert sum(map(len, found)) == sum(result.label_sets.documents)
    assert result.label_sets.without == 1
    assert result.label_sets.mean == pytest.approx(1.6 * 90 / 91, abs=0.03)


def test_several_labels_are_compared_with_lists(classify):
    result = classify(LEAVES, columns=("both",), multilabel=1.6, truth="sets")[1]
    figures = result.multilabel
    assert result.comparison is None
    assert figures.documents == 90
    assert 1.4 < figures.mean_true < 1.9
    assert 0.7 < figures.macro_f1 <= 1
    assert figures.subset_accuracy < figures.micro_f1


def test_an_unknown_label_in_a_list_is_named(classify, source):
    source.write_text(
        'text,sets\nA goal,"[""sports"", ""cooking""]"\nShares,business\nGoals,sports\n'
    )
    with pytest.raises(LabelError, match="row 1: 'cooking' is not a label"):
        classify(LEAVES, multilabel=1.5, truth="sets")
