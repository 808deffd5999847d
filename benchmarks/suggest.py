"""Missing labels: how often a hidden label of a dataset is found, beside KMeans and BERTopic.

    python -m benchmarks.suggest --data DIR [--encoder static] [--cache VECTORS]
        [--documents 2500] [--set agnews] [--bertopic] [--detail] [--write docs/suggest.md]

Each label of the paper's datasets, of Reuters-8 and of tweet sentiment is hidden in turn, and the
classifier is fitted with the others. A hidden label is found if it is the most frequent true label of a
proposed group; the purity of the group is its share of it. The accuracy is that of a fit without the
label, with all proposals of new labels added, and with its own name. An added proposal counts as the
most frequent true label of its group. With no label hidden, every proposal is a false one.

KMeans has as many clusters as there are labels with the hidden one, on the same vectors, from their
centre; the labels are assigned to clusters one to one by cosine, and the cluster that is left is the
proposed group. BERTopic (`pip install bertopic`) gets the same vectors and the labels as zero-shot
topics; half of the documents, those most similar to a label, may join these, and its other topics are
its groups. The truth is used to report, never to choose.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from sklearn.cluster import KMeans

from benchmarks.four_datasets import data_parser
from benchmarks.measuring import markdown, publish, shown
from reproduction.datasets import DATASETS
from reproduction.documents import read_documents
from reproduction.names import label_set
from ulr.classifier import (
    EncodedTexts,
    Fitted,
    Settings,
    Suggestions,
    encode_documents,
    fit,
    resolve,
    suggest,
)
from ulr.encoders import encode_texts
from ulr.labels import LabelSet, read_labels
from ulr.vectors import unit_rows

FURTHER = {"reuters8": "test_2189.jsonl", "tweet_sentiment": "test_6000.jsonl"}
Truth = NDArray[np.intp]


@dataclass(frozen=True)
class Task:
    """A dataset: some documents, their labels and true labels."""

    name: str
    texts: list[str]
    truth: Truth
    labels: LabelSet


@dataclass(frozen=True)
class Row:
    """What was found with one label hidden, or with none (-1)."""

    hidden: int
    found: bool
    purity: float
    others: int  # proposals whose most frequent true label is another one
    before: float
    after: float
    with_name: float
    kmeans_found: bool
    kmeans_purity: float
    bertopic: tuple[tuple[int, float], ...]  # most frequent true label of each topic, and its share


def read_task(name: str, data: Path, n_documents: int) -> Task:
    """A random sample of the documents of a dataset."""
    if name not in FURTHER:
        found = read_documents(name, data, at_most=n_documents)
        return Task(name, list(found.texts), np.array(found.truth), label_set(name))
    labels = read_labels(data / name / "labels.txt")
    lines = (data / name / FURTHER[name]).read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    rows = [rows[i] for i in np.random.default_rng(1).permutation(len(rows))[:n_documents]]
    truth = np.array([labels.names.index(row["label"]) for row in rows])
    return Task(name, [row["text"] for row in rows], truth, labels)


def most_frequent(truth: Truth, rows: Truth, n_labels: int) -> tuple[int, float]:
    """The most frequent true label of some documents, and its share of them."""
    counts = np.bincount(truth[rows], minlength=n_labels)
    return int(counts.argmax()), float(counts.max() / max(len(rows), 1))


def accuracy(fitted: Fitted, truth: Truth, numbers: list[int]) -> float:
    """Accuracy, where each label of the classifier has the number of a true label."""
    assert fitted.predictions is not None
    labels = fitted.predictions.labels
    return float((np.array([*numbers, -1])[labels] == truth).mean())


def kmeans_group(documents: EncodedTexts, fitted: Fitted) -> Truth:
    """The documents of the cluster that no label is assigned to, of one more cluster than labels."""
    vectors = unit_rows(documents.vectors)
    vectors = unit_rows(vectors - vectors.mean(axis=0))
    assert fitted.anchors is not None
    anchors = unit_rows(fitted.anchors - fitted.anchors.mean(axis=0))
    clusters = KMeans(len(anchors) + 1, n_init=3, random_state=0).fit(vectors)
    assigned = linear_sum_assignment(-unit_rows(clusters.cluster_centers_) @ anchors.T)[0]
    left = next(i for i in range(len(anchors) + 1) if i not in assigned)
    return np.flatnonzero(clusters.labels_ == left)


def bertopic_groups(task: Task, documents: EncodedTexts, fitted: Fitted) -> list[Truth]:
    """The documents of each topic of BERTopic that is not a label."""
    from bertopic import BERTopic
    from bertopic.backend import BaseEmbedder
    from umap import UMAP

    class Labels(BaseEmbedder):  # type: ignore[misc]
        def embed(self, texts: list[str], verbose: bool = False) -> NDArray[np.float32]:
            return encode_texts(fitted.text_encoder, [text.lower() for text in texts])

    assert fitted.anchors is not None
    vectors, names = unit_rows(documents.vectors), list(fitted.settings.label_set.names)
    least = float(np.median((vectors @ fitted.anchors.T).max(axis=1)))
    model = BERTopic(
        embedding_model=Labels(),
        umap_model=UMAP(n_components=5, min_dist=0.0, metric="cosine", random_state=0),
        zeroshot_topic_list=names,
        zeroshot_min_similarity=least,
    )
    topics = np.array(model.fit_transform(task.texts, embeddings=vectors)[0])
    others = [topic for topic in np.unique(topics) if topic >= 0]
    others = [topic for topic in others if model.topic_labels_[int(topic)] not in names]
    return [np.flatnonzero(topics == topic) for topic in others]


def measure(
    task: Task, encoder: str, cache: str | None, detail: bool, bertopic: bool
) -> Iterator[Row]:
    """One row for all labels, and one for each label that is hidden."""
    settings = resolve(Settings(task.labels, encoder=encoder, cache=cache))
    documents, n_labels = encode_documents(task.texts, settings), len(task.labels)
    complete = accuracy(fit(documents, settings), task.truth, list(range(n_labels)))
    for hidden in range(-1, n_labels):
        numbers = [i for i in range(n_labels) if i != hidden]
        labels = LabelSet(tuple(task.labels.labels[i] for i in numbers))
        if len(labels) < 2:
            continue
        fitted = fit(documents, resolve(Settings(labels, encoder=encoder, cache=cache)))
        found: Suggestions = suggest(fitted)
        groups = [
            (*most_frequent(task.truth, np.array(each.members), n_labels), each)
            for each in found.missing
        ]
        new = [(label, purity) for label, purity, each in groups if each.better_name_for is None]
        own = [purity for label, purity in new if label == hidden]
        before = after = accuracy(fitted, task.truth, numbers)
        if new:
            added = resolve(Settings(found.labels_with(labels), encoder=encoder, cache=cache))
            after = accuracy(
                fit(documents, added), task.truth, [*numbers, *(label for label, _ in new)]
            )
        cluster = most_frequent(task.truth, kmeans_group(documents, fitted), n_labels)
        topics = bertopic_groups(task, documents, fitted) if bertopic else []
        row = Row(
            hidden,
            bool(own),
            max(own, default=float("nan")),
            len(new) - len(own),
            before,
            after,
            complete,
            cluster[0] == hidden,
            cluster[1],
            tuple(most_frequent(task.truth, each, n_labels) for each in topics),
        )
        if detail:
            name = task.labels.names[hidden] if hidden >= 0 else "none"
            print(f"  {name}: {before:.3f} {after:.3f} {complete:.3f}")
            for label, purity, each in groups:
                print(
                    f"    {each.name} [{task.labels.names[label]} {purity:.2f}] {each.size} "
                    f"own {each.own:.2f} attracts {each.attracts:.2f} for {each.better_name_for} "
                    f"{each.labels} {each.words[:5]}"
                )
            if hidden < 0:
                print("    merge", found.merge)
                print("    split", [(each.label, each.sizes, each.words) for each in found.split])
                print("    phrases", found.phrases)
        yield row


def summary(task: Task, encoder: str, rows: list[Row], bertopic: bool) -> list[str]:
    """A row of the table."""
    hidden = [row for row in rows if row.hidden >= 0]
    found = [row for row in hidden if row.found]
    by_kmeans = [row for row in hidden if row.kmeans_found]

    def mean(values: list[float]) -> str:
        return f"{100 * np.mean(values):.0f}" if values else "–"

    cells = [
        f"{task.name}, {len(task.texts):,}",
        f"`{encoder}`",
        f"{len(found)} of {len(hidden)}",
        mean([row.purity for row in found]),
        f"{np.mean([row.others for row in hidden]):.1f}",
        f"{rows[0].others}",
        f"{mean([row.before for row in hidden])} → {mean([row.after for row in hidden])}",
        mean([row.with_name for row in hidden]),
        f"{len(by_kmeans)} of {len(hidden)}",
        mean([row.kmeans_purity for row in by_kmeans]),
    ]
    if bertopic:
        own = [[share for label, share in row.bertopic if label == row.hidden] for row in hidden]
        n_others = [len(row.bertopic) - len(mine) for row, mine in zip(hidden, own, strict=True)]
        cells += [
            f"{sum(map(bool, own))} of {len(hidden)}",
            mean([max(mine) for mine in own if mine]),
            f"{np.mean(n_others):.1f}",
        ]
    return cells


def main() -> None:
    """Print the table, and write it into a page."""
    parser = data_parser(__doc__)
    parser.add_argument("--encoder", action="append", help="static by default; may be repeated")
    parser.add_argument("--documents", type=int, default=2_500)
    parser.add_argument("--set", action="append", help="all by default; may be repeated")
    parser.add_argument("--bertopic", action="store_true", help="compare with BERTopic, too")
    parser.add_argument("--detail", action="store_true", help="print every proposal")
    options = parser.parse_args()
    columns = (
        "dataset, documents",
        "encoder",
        "found",
        "purity",
        "others a run",
        "with all labels",
        "accuracy without → with proposals",
        "with the name",
        "KMeans found",
        "purity",
        *(("BERTopic found", "purity", "others a run") if options.bertopic else ()),
    )

    def rows() -> Iterator[list[str]]:
        for encoder in options.encoder or ["static"]:
            for name in options.set or [*DATASETS, *FURTHER]:
                task = read_task(name, options.data, options.documents)
                cache = None if encoder == "static" else options.cache
                found = list(measure(task, encoder, cache, options.detail, options.bertopic))
                yield summary(task, encoder, found, options.bertopic)

    publish(markdown(columns, shown(rows())), options.write, "suggest")


if __name__ == "__main__":
    main()
