"""Trees of labels: phrases of the leaves, and one flat rule against one level after the other.

    python -m benchmarks.trees --data DIR [--encoder NAME] [--cache VECTORS]

Trees are those of 20 Newsgroups' own group names, DBpedia's classes in groups, and the categories of
Wikipedia articles. For each way to describe a leaf, accuracy at every level, of the most probable
leaf, of the node of the largest sum of one flat rule's probabilities, and of classifiers that are
fitted level by level. Then, for several thresholds, where documents stay at an inner node, how many
are placed right, and how deep. The truth is used to report, never to choose.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.four_datasets import data_parser
from reproduction.documents import read_documents
from ulr.classifier import EncodedTexts, Settings, encode_documents, fit, resolve
from ulr.label_tree import LabelTree, parts_of
from ulr.labels import LabelSet, as_label_set

# In the alphabetical order of the groups. The parts are those of the groups' names, in words.
NEWSGROUPS = """
alternative > atheism; computers > graphics; computers > operating systems > Microsoft Windows;
computers > hardware > IBM PC; computers > hardware > Apple Macintosh; computers > X Window System;
for sale; recreation > cars; recreation > motorcycles; recreation > sport > baseball;
recreation > sport > hockey; science > cryptography; science > electronics; science > medicine;
science > space; society > religion > Christianity; talk > politics > guns;
talk > politics > Middle East; talk > politics > politics; talk > religion"""
DBPEDIA = """
organisation > company; organisation > educational institution; person > artist; person > athlete;
person > politician; made by people > transportation; made by people > building;
place > nature; place > village; species > animal; species > plant; work > album; work > film;
work > written work"""
FEWEST = 20  # documents of a Wikipedia category
THRESHOLDS = (0.0, 0.3, 0.5, 0.7, 0.9)
Task = tuple[
    str, list[str], NDArray[np.intp], list[str]
]  # name, texts, true leaves, paths of leaves


def tasks(data: Path) -> Iterator[Task]:
    """The documents and their trees."""
    for name, tree in (("20newsgroups", NEWSGROUPS), ("dbpedia14", DBPEDIA)):
        documents = read_documents(name, data)
        yield name, documents.texts, documents.truth, [each.strip() for each in tree.split(";")]
    with (data / "concepts" / "wikipedia_articles.jsonl").open(encoding="utf-8") as file:
        articles = [json.loads(line) for line in file]
    rows = [(" > ".join(each["categories"][0]), each["text"]) for each in articles]
    counts = Counter(path for path, _ in rows)
    paths = sorted(path for path, count in counts.items() if count >= FEWEST)
    paths = [path for path in paths if not any(other.startswith(f"{path} >") for other in paths)]
    index = {path: i for i, path in enumerate(paths)}
    rows = [row for row in rows if row[0] in index]
    truth = np.array([index[path] for path, _ in rows], dtype=np.intp)
    yield "wikipedia", [text for _, text in rows], truth, paths


def described(paths: list[str], way: str) -> LabelSet:
    """The labels with their leaves described in one of several ways."""
    names = [parts_of(path) for path in paths]
    unique = Counter(name[-1] for name in names)
    found = {}
    for path, name in zip(paths, names, strict=True):
        ways = {"name": name[-1:], "parent": name[-2:], "path": name}
        joined = {each: " ".join(parts) for each, parts in ways.items()}
        if unique[name[-1]] > 1:
            joined["name"] = joined["parent"]
        chosen = ("name", "parent") if way == "mean" else (way,)
        found[path] = list(dict.fromkeys(joined[each] for each in chosen))
    return as_label_set(found)


def by_level(documents: EncodedTexts, labels: LabelSet, settings: Settings) -> NDArray[np.intp]:
    """Leaves by a classifier for the children of the root, then one for those of each node, and so on.

    The phrases of an inner node are those of all leaves below it.
    """
    tree = labels.tree
    assert tree is not None
    nodes = np.full(len(documents.texts), -1, dtype=np.intp)
    for level in range(tree.depth):
        for node in np.unique(nodes).tolist():
            children, rows = tree.children(node), np.flatnonzero(nodes == node)
            if len(children) == 1:
                nodes[rows] = children[0]
            elif len(children) and len(rows):
                phrases = {
                    str(i): [
                        phrase
                        for leaf, label in enumerate(labels)
                        if tree.at_level(level)[leaf] == child
                        for phrase in label.phrases
                    ]
                    for i, child in enumerate(children.tolist())
                }
                own = resolve(Settings(phrases, encoder=settings.encoder, cache=settings.cache))
                found = fit(documents.rows(rows), own).predictions
                assert found is not None
                nodes[rows] = children[np.maximum(found.labels, 0)]
    return nodes


def accuracies(tree: LabelTree, truth: NDArray[np.intp], nodes: NDArray[np.intp]) -> str:
    """Accuracy at every level, in per cent."""
    levels = (tree.at_level(level) for level in range(tree.depth))
    return " | ".join(f"{100 * (at[truth] == at[nodes]).mean():.1f}" for at in levels)


def main() -> None:
    """Print the tables."""
    parser = data_parser(__doc__)
    parser.add_argument("--encoder", default="static")
    parser.add_argument("--only", help="name of one set")
    options = parser.parse_args()
    for name, texts, truth, paths in tasks(options.data):
        if options.only not in (None, name):
            continue
        arguments = {"encoder": options.encoder, "cache": options.cache}
        settings = resolve(Settings(paths, **arguments))
        documents = encode_documents(texts, settings)
        print(f"{name}, {len(texts):,} documents, {len(paths)} leaves: accuracy at each level")
        for way in ("name", "parent", "path", "mean"):
            labels = described(paths, way)
            fitted = fit(documents, resolve(Settings(labels, **arguments)))
            found, tree = fitted.predictions, labels.tree
            assert found is not None
            assert tree is not None
            leaves = np.maximum(found.labels, 0)
            print(f"| {way}, flat | {accuracies(tree, truth, leaves)} |", flush=True)
            placed = {each: tree.place(found.probabilities, each) for each in THRESHOLDS}
            print(f"| {way}, sums | {accuracies(tree, truth, placed[0.0][0])} |", flush=True)
            if way in ("name", "mean"):
                levels = by_level(documents, labels, settings)
                print(f"| {way}, by level | {accuracies(tree, truth, levels)} |", flush=True)
            if way == "mean":
                for threshold, (nodes, chances) in placed.items():
                    right = np.zeros(len(nodes), dtype=bool)
                    for level in range(tree.depth):
                        here = tree.levels[nodes] == level
                        right[here] = tree.at_level(level)[truth[here]] == nodes[here]
                    at_leaf = (nodes < tree.n_leaves).mean()
                    figures = f"{np.mean(right):.3f} | {chances.mean():.3f} | {at_leaf:.3f}"
                    print(f"  threshold {threshold}: right, expected, at a leaf: {figures}")


if __name__ == "__main__":
    main()
