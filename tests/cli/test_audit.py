"""`ulr audit`: its figures, computed again from the refinement of every combination."""

import csv
import json
import random
from itertools import product

import numpy as np
import pytest

from ulr import load_encoder, refine

LABELS = {
    "sports": ["sports", "football"],
    "business": ["business", "money", "banks"],
    "weather": ["weather"],
}
WORDS = {
    "sports": "goal match striker coach team penalty".split(),
    "business": "bank profit shares loan market investor".split(),
    "weather": "rain fog snow wind storm sunshine".split(),
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The current folder, with a file of documents and one of labels."""
    monkeypatch.chdir(tmp_path)
    draw = random.Random(0)
    every = [word for words in WORDS.values() for word in words]
    names = [draw.choice(list(WORDS)) for _ in range(80)]
    texts = [" ".join([draw.choice(WORDS[name]), *draw.choices(every, k=3)]) for name in names]
    with open("in.csv", "w", newline="") as file:
        csv.writer(file).writerows([["id", "text"], *enumerate([*texts, ""])])
    (tmp_path / "labels.json").write_text(json.dumps(LABELS))
    return tmp_path


@pytest.fixture
def found(folder, command, word_vectors):
    task = ["in.csv", "-l", "labels.json", "--encoder", word_vectors, "--method", "ulr"]
    result = command("audit", *task, "--json")
    assert (result.code, result.err) == (0, "")
    return json.loads(result.out)


def test_agreement_is_that_of_all_combinations_refined_one_by_one(found, word_vectors, read_csv):
    encoder = load_encoder(word_vectors)
    texts = [row["text"] for row in read_csv("in.csv") if row["text"]]
    documents = encoder.encode(texts)
    kept = documents.any(axis=1)
    sets = [encoder.encode(list(each)) for each in product(*LABELS.values())]
    refined = [refine(documents[kept], each, method="ulr") for each in sets]
    for key, labels in (
        ("before", np.array([each.unrefined for each in refined])),
        ("after", np.array([each.predictions for each in refined])),
    ):
        pairs = [(labels[i] == labels[j]).mean() for i in range(len(sets)) for j in range(i)]
        assert found[f"agreement_{key}"] == pytest.approx(np.mean(pairs))
        unanimous = (labels == labels[0]).all(axis=0).mean()
        assert found[f"unanimous_{key}"] == pytest.approx(unanimous)
        if key == "after":
            sizes = np.array([(each == 0).mean() for each in labels])
            sports = found["labels"][0]
            assert sports["documents"] == pytest.approx(sizes.mean())
            assert (sports["least"], sports["most"]) == pytest.approx((sizes.min(), sizes.max()))
    assert (found["sets"], found["possible_sets"], found["documents"]) == (6, 6, kept.sum())


def test_shares_of_disagreement_and_unstable_documents_are_consistent(found, read_csv):
    rows = read_csv("in.csv")
    assert sum(share for *_, share in found["competing"]) == pytest.approx(1.0)
    assert found["labels"][2]["share_of_disagreement"] == 0.0
    assert 0 < sum(each["share_of_disagreement"] for each in found["labels"]) <= 1.0 + 1e-9
    for document in found["unstable"]:
        assert document["text"] == rows[document["row"] - 1]["text"]
        assert sum(share for _, share in document["labels"]) == pytest.approx(1.0)
        assert document["labels"][0][1] < 1.0


def test_summary_shows_labels_causes_and_documents_of_several_combinations(
    folder, command, word_vectors
):
    task = ["in.csv", "-l", "labels.json", "--encoder", word_vectors, "--method", "ulr"]
    result = command("audit", *task)
    assert (result.code, result.err) == (0, "")
    for part in (
        "6 combinations of phrases",
        "Two combinations agree on",
        "its phrases alone make",
    ):
        assert part in " ".join(result.out.split())
    result = command("audit", "in.csv", "-l", "sports, weather", "--encoder", word_vectors)
    assert (result.code, result.out) == (1, "")
    assert "there is only one; give some labels several phrases" in result.err


def test_many_combinations_are_sampled(folder, command, word_vectors):
    phrases = [word for words in WORDS.values() for word in words]
    labels = {f"l{i}": phrases[3 * i : 3 * i + 3] for i in range(6)}
    labels |= {"l6": ["sport", "football"], "l7": ["money", "banks"]}
    (folder / "many.json").write_text(json.dumps(labels))
    task = ["in.csv", "-l", "many.json", "--encoder", word_vectors, "--method", "none"]
    found = json.loads(command("audit", *task, "--json").out)
    assert (found["sets"], found["possible_sets"]) == (1024, 3**6 * 4)
