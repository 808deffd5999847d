"""Suggestions for the labels: missing ones, some to merge or to split, and further phrases.

Documents are clustered. The words that are characteristic of a cluster are encoded as labels are. A
label explains a cluster if its name is nearer to the cluster than most of these words. Of clusters
that no label explains, the word that attracts most documents, and few others, becomes the name of a
missing label; then the clusters are compared with this name, too, until none is left.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ulr.classifier.candidates import Candidates, encode_candidates, terms_of
from ulr.classifier.description import characteristic_words
from ulr.classifier.encoding import EncodedTexts
from ulr.classifier.examined import Examined, Rows, examined, is_confident
from ulr.classifier.group_names import with_advised_names
from ulr.classifier.model import Fitted
from ulr.errors import LabelError
from ulr.labels import Label, LabelSet, as_label_set
from ulr.progress import NO_PROGRESS, Progress
from ulr.vectors import unit_rows

_FEWEST_CLUSTERS, _CLUSTERS_PER_LABEL, _DOCUMENTS_PER_CLUSTER = 12, 2, 20
_WORDS_PER_CLUSTER, _FEWEST_WORDS = 50, 5
_UNEXPLAINED = 0.5  # share of a cluster's words that are nearer to it than every label
_ATTRACTED = 0.5  # share of a group's documents that are nearer to its name than to every label
_OWN = 0.5  # share of the documents that a name attracts that are of its group
_SAME = 0.75  # of a group and of a label, which are then the same thing
_MOST_MISSING, _MOST_PAIRS, _MOST_PHRASES = 5, 5, 3
_SHOWN_WORDS = 8
# Overlap of two labels, see `_merges`; pairs of labels of the example of support messages, which are
# all needed, have up to 0.47.
_COMPETE = 0.5
_SMALLER_HALF = 0.2  # share of a label's documents


@dataclass(frozen=True)
class MissingLabel:
    """A group of documents that no label explains, and a name for it from its own words.

    Attributes
    ----------
    name
        The proposed name.
    size
        Documents of the group.
    words
        Its characteristic words, the clearest first.
    documents
        Positions of its most typical documents.
    members
        Positions of all its documents.
    attracts
        Share of the group that is nearer to the name than to every label.
    own
        Share of the documents that are nearer to the name than to every label that are of the group.
    labels
        The labels that the group has now, with their shares of it.
    better_name_for
        The label that has most of its documents in the group, which has no other label as often: the
        name may be a phrase for that label rather than a label of its own. Else None.
    advised_name
        The name that the adviser gives the group, whose word stays a phrase; None without one.
    """

    name: str
    size: int
    words: tuple[str, ...]
    documents: tuple[int, ...]
    members: tuple[int, ...] = field(repr=False)
    attracts: float
    own: float
    labels: tuple[tuple[str, float], ...]
    better_name_for: str | None
    advised_name: str | None = None


@dataclass(frozen=True)
class Merge:
    """Two labels that compete for the same documents; `overlap` is 1 where they are the same."""

    first: str
    second: str
    overlap: float


@dataclass(frozen=True)
class Split:
    """A label that holds two groups: their sizes, characteristic words and typical documents."""

    label: str
    sizes: tuple[int, int]
    words: tuple[tuple[str, ...], tuple[str, ...]]
    documents: tuple[tuple[int, ...], tuple[int, ...]]


@dataclass(frozen=True)
class Suggestions:
    """What the documents say about the labels; nothing of it is applied.

    Attributes
    ----------
    examined
        Documents that were examined, a sample of many.
    missing, merge, split
        Proposals, the largest or clearest first.
    phrases
        For some labels, phrases that attract its documents more than those of others.
    """

    examined: int
    missing: tuple[MissingLabel, ...]
    merge: tuple[Merge, ...]
    split: tuple[Split, ...]
    phrases: dict[str, tuple[str, ...]]

    def as_dict(self) -> dict[str, Any]:
        """All values as dictionaries, tuples, numbers and texts."""
        return asdict(self)

    def labels_with(self, labels: LabelSet, phrases: bool = False) -> LabelSet:
        """The labels with the missing ones and, if wanted, with the phrases."""
        found = list(labels)
        if phrases:
            found = [
                Label(each.name, each.phrases + self.phrases.get(each.name, ())) for each in found
            ]
        for each in self.missing:
            if each.better_name_for is None:
                name = each.advised_name or each.name
                found.append(Label(name, tuple(dict.fromkeys((name, each.name)))))
        return as_label_set(LabelSet(tuple(found)))


def suggest(
    fitted: Fitted,
    documents: EncodedTexts | Sequence[str] | None = None,
    progress: Progress = NO_PROGRESS,
) -> Suggestions:
    """Suggest labels that are missing, labels to merge or to split, and phrases.

    Parameters
    ----------
    fitted
        A fitted classifier.
    documents
        The documents, possibly encoded before; those that it was fitted on if not given.
    progress
        Receives the progress.

    Examples
    --------
    >>> from ulr import ZeroShotClassifier
    >>> from ulr.classifier import suggest
    >>> texts = ["The striker scored", "Shares fell", "A late goal won it", "Profits rose"]
    >>> clf = ZeroShotClassifier(["sports", "business"], encoder="static").fit(texts)
    >>> suggest(clf.fitted_).missing
    ()
    """
    if fitted.settings.scores_pairs:
        raise LabelError(
            "suggestions need an encoder of texts; this one scores pairs of text and label."
        )
    view = examined(fitted, documents, progress)
    progress.stage("Comparing words of the documents with the labels")
    clusters, n_clusters = _clusters(view)
    cluster_words = characteristic_words(
        view.texts, clusters, n_clusters, _WORDS_PER_CLUSTER, terms_of
    )
    confident = np.where(is_confident(view), view.labels, -1)
    label_words = characteristic_words(
        view.texts, confident, len(view.names), _WORDS_PER_CLUSTER, terms_of
    )
    candidates = encode_candidates(fitted, [*cluster_words, *label_words])
    missing = _missing(view, clusters, cluster_words, candidates)
    return Suggestions(
        examined=len(view.texts),
        missing=with_advised_names(missing, fitted, documents, progress),
        merge=_merges(view),
        split=_splits(view),
        phrases=_phrases(view, label_words, candidates),
    )


def _clusters(view: Examined) -> tuple[Rows, int]:
    """(n,) number of the cluster of each document, and how many there are."""
    n_clusters = max(_FEWEST_CLUSTERS, _CLUSTERS_PER_LABEL * len(view.names))
    n_clusters = min(n_clusters, len(set(view.texts)) // _DOCUMENTS_PER_CLUSTER)
    if n_clusters < 2:
        return np.full(len(view.texts), -1), 0
    return _k_means(view.vectors, n_clusters), n_clusters


def _k_means(vectors: NDArray[np.float32], n_clusters: int) -> Rows:
    from sklearn.cluster import KMeans  # on use, so that other jobs start as fast

    n_distinct = len(np.unique(vectors.round(5), axis=0))  # texts may differ in unknown words
    found = KMeans(min(n_clusters, n_distinct), n_init=1, random_state=0).fit(vectors)
    return found.labels_.astype(np.intp)


@dataclass(frozen=True, eq=False)
class _Clusters:
    """Clusters of the documents.

    `members` is (n_clusters, n) of zeros and ones, `centroids` are unit vectors, `words` positions of
    the characteristic words of each among the candidates.
    """

    members: NDArray[np.float32]
    centroids: NDArray[np.float32]
    words: list[Rows]

    def unexplained(self, anchors: NDArray[np.float32], candidates: Candidates) -> list[bool]:
        """Whether more than half of the words of each cluster are nearer to it than every label."""
        nearest = (self.centroids @ anchors.T).max(axis=1)
        return [
            len(own) >= _FEWEST_WORDS
            and float((candidates.vectors[own] @ centroid > near).mean()) > _UNEXPLAINED
            for own, centroid, near in zip(self.words, self.centroids, nearest, strict=True)
        ]


def _missing(
    view: Examined, clusters: Rows, cluster_words: list[tuple[str, ...]], candidates: Candidates
) -> tuple[MissingLabel, ...]:
    """Names for clusters that no label explains, found one after the other."""
    if not cluster_words or not candidates.words:
        return ()
    members = (clusters == np.arange(len(cluster_words))[:, None]).astype(np.float32)
    centroids = unit_rows(members @ view.vectors).astype(np.float32)
    found = _Clusters(members, centroids, [candidates.places(each) for each in cluster_words])
    is_named = np.zeros(len(cluster_words), dtype=bool)
    anchors, names = candidates.anchors, list[_Name]()
    while len(names) < _MOST_MISSING:
        unexplained = np.array(found.unexplained(anchors, candidates)) & ~is_named
        best = _best_name(view, found, unexplained, anchors, candidates)
        if best is None:
            break
        names.append(best)
        is_named |= best.clusters
        anchors = np.vstack([anchors, candidates.vectors[best.word]])
    groups = np.full(len(view.texts), len(names))
    for number, name in enumerate(names):
        groups[name.clusters[clusters]] = number
    shown = characteristic_words(view.texts, groups, len(names) + 1, _SHOWN_WORDS)
    return tuple(
        _described(view, np.flatnonzero(groups == i), candidates.words[name.word], name, shown[i])
        for i, name in enumerate(names)
    )


@dataclass(frozen=True, eq=False)
class _Name:
    """A word as the name of some clusters; figures as in `MissingLabel`."""

    word: int
    clusters: NDArray[np.bool_]
    attracts: float
    own: float


def _best_name(
    view: Examined,
    found: _Clusters,
    unexplained: NDArray[np.bool_],
    anchors: NDArray[np.float32],
    candidates: Candidates,
) -> _Name | None:
    """The word that attracts most documents of clusters that are not explained, and few others."""
    if not unexplained.any():
        return None
    words = np.unique(np.concatenate([found.words[i] for i in np.flatnonzero(unexplained)]))
    attracted = view.vectors @ candidates.vectors[words].T
    attracted = attracted > (view.vectors @ anchors.T).max(axis=1)[:, None]
    counts = found.members @ attracted.astype(np.float32)  # (n_clusters, n_words)
    sizes = found.members.sum(axis=1)
    in_group = unexplained[:, None] & (counts > _ATTRACTED * sizes[:, None])
    inside = (counts * in_group).sum(axis=0)
    own = inside / np.maximum(counts.sum(axis=0), 1.0)
    score = np.where(own > _OWN, inside * own, 0.0)
    best = int(score.argmax())
    if score[best] == 0.0:
        return None
    group = in_group[:, best]
    attracts = float(inside[best] / sizes[group].sum())
    return _Name(int(words[best]), group, attracts, float(own[best]))


def _described(
    view: Examined, rows: Rows, word: str, name: _Name, words: tuple[str, ...]
) -> MissingLabel:
    """A missing label with what a person needs to judge it."""
    labels = view.labels[rows]
    counts = np.bincount(labels[labels >= 0], minlength=len(view.names))
    order = np.argsort(-counts, kind="stable")[:3]
    first = int(order[0])
    n_of_label = max(int((view.labels == first).sum()), 1)
    is_label = counts[first] > _SAME * max(len(rows), n_of_label)
    return MissingLabel(
        name=word,
        size=len(rows),
        words=words,
        documents=view.typical(rows),
        members=tuple(view.rows[rows].tolist()),
        attracts=name.attracts,
        own=name.own,
        labels=tuple((view.names[i], float(counts[i] / len(rows))) for i in order if counts[i]),
        better_name_for=view.names[first] if is_label else None,
    )


def _merges(view: Examined) -> tuple[Merge, ...]:
    """Pairs of labels by the cosine of their probabilities over the documents."""
    together = view.probabilities.T @ view.probabilities
    lengths = np.sqrt(np.maximum(together.diagonal(), 1e-12))
    overlap = np.triu(together / lengths / lengths[:, None], 1)
    pairs = np.argwhere(overlap > _COMPETE)
    order = np.argsort(-overlap[tuple(pairs.T)], kind="stable")[:_MOST_PAIRS]
    return tuple(
        Merge(view.names[a], view.names[b], float(overlap[a, b])) for a, b in pairs[order].tolist()
    )


def _splits(view: Examined) -> tuple[Split, ...]:
    """Labels whose halves are further apart than two labels are in the median."""
    from scipy.spatial.distance import (
        pdist,  # on use, so that a job that suggests nothing is as fast
    )

    own_rows = [np.flatnonzero(view.labels == label) for label in range(len(view.names))]
    large = [i for i, rows in enumerate(own_rows) if len(rows) >= 2 * _DOCUMENTS_PER_CLUSTER]
    if len(large) < 2:
        return ()
    means = np.stack([view.vectors[own_rows[label]].mean(axis=0) for label in large])
    typical = float(np.median(pdist(means)))
    halves, distances = np.full(len(view.texts), -1), dict[int, float]()
    for label in large:
        rows = own_rows[label]
        half = _k_means(view.vectors[rows], 2)
        if not half.any():
            continue
        distance = float(pdist([view.vectors[rows[half == i]].mean(axis=0) for i in (0, 1)])[0])
        is_even = min(half.mean(), 1.0 - half.mean()) >= _SMALLER_HALF
        if is_even and distance > typical:
            halves[rows] = 2 * label + half
            distances[label] = distance
    words = characteristic_words(view.texts, halves, 2 * len(view.names), _SHOWN_WORDS)
    order = sorted(distances, key=lambda label: -distances[label])[:_MOST_PAIRS]
    found = []
    for label in order:
        first, second = (np.flatnonzero(halves == 2 * label + i) for i in (0, 1))
        found.append(
            Split(
                view.names[label],
                (len(first), len(second)),
                (words[2 * label], words[2 * label + 1]),
                (view.typical(first), view.typical(second)),
            )
        )
    return tuple(found)


def _phrases(
    view: Examined, label_words: list[tuple[str, ...]], candidates: Candidates
) -> dict[str, tuple[str, ...]]:
    """Words that attract the documents of their label more than those of others."""
    to_anchors = view.vectors @ candidates.anchors.T
    found, taken = {}, set[str]()
    for label, words in enumerate(label_words):
        places, is_own = candidates.places(words), view.labels == label
        others = np.delete(to_anchors, label, axis=1).max(axis=1)
        attracted = view.vectors @ candidates.vectors[places].T > others[:, None]
        inside = attracted[is_own].sum(axis=0)
        share = inside / max(int(is_own.sum()), 1)
        own = inside / np.maximum(attracted.sum(axis=0), 1)
        nearest = (candidates.vectors[places] @ candidates.anchors.T).argmax(axis=1)
        is_good = (nearest == label) & (share > _ATTRACTED) & (own > _OWN)
        order = np.argsort(-share * own, kind="stable")
        best = [candidates.words[places[i]] for i in order.tolist() if is_good[i]]
        chosen = _without_common_words([word for word in best if word not in taken])
        if chosen:
            found[view.names[label]] = tuple(chosen[:_MOST_PHRASES])
            taken.update(chosen[:_MOST_PHRASES])
    return found


def _without_common_words(phrases: list[str]) -> list[str]:
    """Phrases that have no word of an earlier one."""
    chosen: list[str] = []
    for phrase in phrases:
        if set(phrase.split()).isdisjoint(word for each in chosen for word in each.split()):
            chosen.append(phrase)
    return chosen
