"""`Result`: what a job did, the one schema of summary, ``--json``, report and page; `Tally` fills it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ulr.classifier import Advice, Fitted, Placement, Predictions, place
from ulr.label_tree import LabelTree
from ulr.metrics import (
    Evaluation,
    MultilabelFigures,
    ReliabilityBin,
    calibration_error,
    evaluate,
    reliability,
)
from ulr.refinement import Diagnosis

_SHOWN = 5
_EXCERPT = 160
_MOST_PAIRS = 2_000
_BINS = 20

Indices = NDArray[np.intp]
Pairs = tuple[tuple[int, int, int], ...]


@dataclass(frozen=True)
class ShownDocument:
    """A document worth a look; rows are counted from 1."""

    row: int
    text: str
    label: str
    unrefined: str | None
    confidence: float


@dataclass(frozen=True)
class LabelCounts:
    """Documents of a label before and after refinement."""

    label: str
    before: int | None
    after: int


@dataclass(frozen=True)
class NodeCounts:
    """Documents at a node of a tree of labels."""

    path: str
    level: int  # from 0
    documents: int  # at the node or below it
    stayed: int  # at the node; all of them at a leaf


@dataclass(frozen=True)
class LabelSets:
    """Several labels a text."""

    documents: tuple[int, ...]  # that got each label
    without: int  # documents that got none
    mean: float  # number of labels a document
    expected_precision: float  # mean chance of the labels that were given


@dataclass(frozen=True)
class LevelFigures:
    """Nodes of one level of a tree, of the documents whose true label goes so far."""

    level: int  # from 0
    documents: int
    reached: float  # share of them that have a node of the level
    precision: float  # share of these whose node is the true one
    accuracy: float  # share of all of them whose node is


@dataclass(frozen=True, eq=False)
class Comparison:
    """Comparison of all predictions with true labels, which only report."""

    documents: int  # with a true label
    without_truth: int  # documents without one, which are in no figure
    folded_truth: int  # documents whose true label equals a name but for case or blanks
    other_truth: int  # documents with a true value that is no label
    other_values: tuple[str, ...]  # the most frequent of these values
    before: Evaluation  # of the labels before refinement
    after: Evaluation
    calibration_error: float  # expected calibration error of the confidence after refinement
    reliability: tuple[ReliabilityBin, ...]  # accuracy in intervals of that confidence
    levels: tuple[LevelFigures, ...] = ()  # of a tree of labels


@dataclass(frozen=True, eq=False)
class Result:
    """What a job did; fields are None where they do not apply, such as `moved` for a saved model."""

    documents: int
    empty_documents: int  # without words
    unknown_documents: int  # without a word that the encoder knows
    truncated_documents: int | None  # cut to the encoder's limit
    student_documents: int  # that a student labelled, and the encoder did not read
    labels: tuple[LabelCounts, ...]  # in a tree, of the most probable leaves
    without_label: int | None  # documents that got the none label
    moved: int | None  # documents whose label refinement changed
    # (label before, label after, documents), the largest first, without documents that have no
    # words; labels by position, the none label last.
    flows: Pairs
    # Documents of 20 equal intervals of confidence, with the same and another label than before.
    histogram: tuple[tuple[int, int], ...]
    least_certain: tuple[ShownDocument, ...]
    moved_documents: tuple[ShownDocument, ...]  # those with the highest confidence
    encoder: str
    method: str
    distance: str
    method_reason: str | None = None  # this and the next three as in `ulr.Refinement`
    iterations: int | None = None
    converged: bool | None = None
    fitted_documents: int | None = None
    diagnosis: Diagnosis | None = None
    examples: int = 0  # numbers of what took part beside documents and labels
    extra_texts: int = 0
    extra_labels: int = 0
    malformed_lines: int | None = None  # of a word-vector file
    comparison: Comparison | None = None  # with true labels
    advice: Advice | None = None  # what an adviser was asked, and what that changed
    nodes: tuple[NodeCounts, ...] = ()  # of a tree of labels, each above those below it
    label_sets: LabelSets | None = None  # where documents have several labels
    multilabel: MultilabelFigures | None = None  # these, compared with true ones
    seconds: float = 0.0
    output: str | None = None

    def as_dict(self) -> dict[str, Any]:
        """The result as plain values."""
        values = asdict(replace(self, diagnosis=None))
        values["diagnosis"] = None if self.diagnosis is None else self.diagnosis.as_dict()
        for figures in ("before", "after"):
            if values["comparison"] is not None:
                confusion = values["comparison"][figures]["confusion"]
                values["comparison"][figures]["confusion"] = confusion.tolist()
        return values


class Tally:
    """Counts labels, and keeps some documents worth a look, over all documents of a job."""

    def __init__(self, fitted: Fitted, *, refined: bool = True) -> None:
        self._fitted, self._names = fitted, fitted.names
        self.refined = refined  # whether there are labels before refinement
        self._flows: Counter[tuple[int, int]] = Counter()
        self._histogram = np.zeros((_BINS, 2), dtype=np.intp)
        self._unlabelled = self._by_student = 0
        self._certain: list[ShownDocument] = []
        self._doubtful: list[ShownDocument] = []
        self._nodes: Counter[int] = Counter()
        self._given = np.zeros(fitted.n_labels, dtype=np.intp)  # documents that got each label
        self._without, self._chances = 0, 0.0  # documents that got none, sum of chances
        self._row = 0

    def add(
        self, texts: Sequence[str], predictions: Predictions, placement: Placement | None = None
    ) -> None:
        """Add the next documents; where labels form a tree, with their placement if it is known."""
        placement = placement or place(self._fitted, predictions)
        if placement is not None:
            self._nodes.update(placement.nodes.tolist())
        if (chances := self._fitted.chances) is not None:
            assigned = chances.assigned(predictions)
            self._given += assigned.sum(axis=0)
            self._without += int((~assigned.any(axis=1)).sum())
            self._chances += float(chances.chances(predictions)[assigned].sum())
        confidence, first_row = predictions.confidence, self._row
        self._row += len(texts)
        self._unlabelled += int(predictions.empty.sum())
        self._by_student += int(predictions.by_student.sum())
        has = np.flatnonzero(~predictions.empty)
        after, before = predictions.labels[has], predictions.unrefined[has]
        n = len(self._names)
        codes, counts = np.unique(before * n + after, return_counts=True)
        for code, count in zip(codes.tolist(), counts.tolist(), strict=True):
            self._flows[divmod(code, n)] += count
        places = np.minimum((confidence[has] * _BINS).astype(np.intp), _BINS - 1)
        np.add.at(self._histogram, (places, (before != after).astype(np.intp)), 1)
        labelled = has[after < self._fitted.n_labels]
        doubtful = labelled[np.argsort(confidence[labelled], kind="stable")[:_SHOWN]]
        moved = labelled[predictions.labels[labelled] != predictions.unrefined[labelled]]
        certain = moved[np.argsort(-confidence[moved], kind="stable")[:_SHOWN]]

        def show(row: int) -> ShownDocument:
            unrefined = str(self._names[predictions.unrefined[row]]) if self.refined else None
            name, text = str(self._names[predictions.labels[row]]), excerpt(texts[row])
            return ShownDocument(first_row + row + 1, text, name, unrefined, float(confidence[row]))

        self._show(map(show, doubtful.tolist()), map(show, certain.tolist()))

    def _show(self, doubtful: Iterable[ShownDocument], certain: Iterable[ShownDocument]) -> None:
        """Keep the best of the documents so far and further ones."""
        self._doubtful += doubtful
        self._doubtful.sort(key=lambda each: (each.confidence, each.row))
        self._certain += certain
        self._certain.sort(key=lambda each: (-each.confidence, each.row))
        del self._doubtful[_SHOWN:], self._certain[_SHOWN:]

    def as_dict(self) -> dict[str, Any]:
        """The counts and documents as plain values, for `add_counts` in another process."""
        return {
            "documents": self._row,
            "unlabelled": self._unlabelled,
            "by_student": self._by_student,
            "nodes": list(self._nodes.items()),
            "several": [self._given.tolist(), self._without, self._chances],
            "flows": [[*pair, count] for pair, count in self._flows.items()],
            "histogram": self._histogram.tolist(),
            "shown": {
                "doubtful": [asdict(each) for each in self._doubtful],
                "certain": [asdict(each) for each in self._certain],
            },
        }

    def add_counts(self, counts: dict[str, Any]) -> None:
        """Add the next documents, given what `as_dict` of their tally returned."""
        shown = {
            name: [
                replace(ShownDocument(**each), row=self._row + each["row"]) for each in documents
            ]
            for name, documents in counts["shown"].items()
        }
        self._show(**shown)
        self._flows.update({(before, after): count for before, after, count in counts["flows"]})
        self._histogram += np.array(counts["histogram"], dtype=np.intp)
        self._unlabelled += counts["unlabelled"]
        self._by_student += counts["by_student"]
        self._nodes.update(dict(counts["nodes"]))
        given, without, chances = counts["several"]
        self._given += np.array(given, dtype=np.intp)
        self._without, self._chances = self._without + without, self._chances + chances
        self._row += counts["documents"]

    def result(self, n_empty: int, **about: Any) -> Result:
        """The result so far; `about` are its fields that the predictions do not tell."""
        fitted, refinement = self._fitted, self._fitted.refinement
        n_names, n_labels = len(self._names) - 1, self._fitted.n_labels
        flows = np.zeros((n_names, n_names), dtype=np.intp)
        for pair, count in self._flows.items():
            flows[pair] += count
        before, after = flows.sum(axis=1).tolist(), flows.sum(axis=0).tolist()
        stayed = int(np.trace(flows[:, :n_labels]))
        return Result(
            documents=self._row,
            empty_documents=n_empty,
            unknown_documents=max(0, self._unlabelled - n_empty),
            student_documents=self._by_student,
            labels=tuple(
                LabelCounts(str(name), before[i] if self.refined else None, after[i])
                for i, name in enumerate(self._names[:n_labels])
            ),
            without_label=None if fitted.none is None else after[n_labels] + self._unlabelled,
            moved=int(flows[:, :n_labels].sum()) - stayed if self.refined else None,
            flows=sorted_pairs(self._flows)[:_MOST_PAIRS],
            histogram=tuple((stayed, moved) for stayed, moved in self._histogram.tolist()),
            least_certain=tuple(self._doubtful),
            moved_documents=tuple(self._certain) if self.refined else (),
            encoder=fitted.encoder_name,
            method=fitted.settings.method,
            distance=fitted.settings.distance,
            method_reason=None if refinement is None else refinement.reason,
            iterations=None if refinement is None else refinement.n_iter,
            converged=None if refinement is None else refinement.converged,
            fitted_documents=None if refinement is None else refinement.n_fitted,
            diagnosis=fitted.diagnosis,
            advice=fitted.advice,
            extra_labels=len(fitted.settings.extra_labels or ()),
            nodes=node_counts(fitted.settings.label_set.tree, self._nodes),
            label_sets=None if fitted.chances is None else self._label_sets(),
            malformed_lines=getattr(fitted.settings.encoder, "malformed_lines", None),
            **{"truncated_documents": None, **about},
        )

    def _label_sets(self) -> LabelSets:
        n_given = int(self._given.sum())
        mean, precision = n_given / max(self._row, 1), self._chances / max(n_given, 1)
        return LabelSets(tuple(self._given.tolist()), self._without, mean, precision)


def node_counts(tree: LabelTree | None, counts: Mapping[int, int]) -> tuple[NodeCounts, ...]:
    """Documents of every node, given those that stayed at each; children follow their parent."""
    if tree is None:
        return ()
    totals = {node: counts.get(node, 0) for node in range(len(tree.names))}
    for node in sorted(totals, key=lambda node: -tree.levels[node]):
        if tree.parents[node] >= 0:
            totals[int(tree.parents[node])] += totals[node]

    def below(node: int) -> Iterator[NodeCounts]:
        for child in tree.children(node).tolist():
            level = int(tree.levels[child])
            yield NodeCounts(tree.names[child], level, totals[child], counts.get(child, 0))
            yield from below(child)

    return tuple(below(-1))


def level_figures(tree: LabelTree, truth: Indices, nodes: Indices) -> Iterator[LevelFigures]:
    """Compare nodes with true leaves, -1 where unknown, level by level."""
    known = (truth >= 0) & (truth < tree.n_leaves)
    truth, nodes = truth[known], np.where(nodes < len(tree.names), nodes, -1)[known]
    for level in range(tree.depth):
        at_level, levels = tree.at_level(level), np.append(tree.levels, -1)
        deep = levels[truth] >= level
        true, found = at_level[truth[deep]], np.append(at_level, -1)[nodes[deep]]
        reached = levels[found] == level
        right = true == found
        n, n_reached = len(true), int(reached.sum())
        yield LevelFigures(
            level,
            n,
            n_reached / max(n, 1),
            float(right.sum()) / max(n_reached, 1),
            float(right.sum()) / max(n, 1),
        )


def compare(
    truth: Indices,
    labels: Indices,
    unrefined: Indices,
    confidence: NDArray[np.float64],
    names: Sequence[str],
    n_folded: int = 0,
    others: Counter[str] | None = None,
) -> Comparison | None:
    """Compare predictions with true labels, -1 where unknown; None where no document has one."""
    known = truth >= 0
    if not known.any():
        return None
    true, labels = truth[known], labels[known]
    return Comparison(
        documents=len(true),
        without_truth=int((~known).sum()),
        folded_truth=n_folded,
        other_truth=0 if others is None else others.total(),
        other_values=tuple(v[:_EXCERPT] for v, _ in (others or Counter()).most_common(_SHOWN)),
        before=evaluate(true, unrefined[known], names),
        after=evaluate(true, labels, names),
        calibration_error=calibration_error(labels == true, confidence[known]),
        reliability=reliability(labels == true, confidence[known]),
    )


def sorted_pairs(counts: dict[tuple[int, int], int]) -> Pairs:
    """Counts of pairs of labels, the largest first."""
    pairs = ((one, other, count) for (one, other), count in counts.items())
    return tuple(sorted(pairs, key=lambda pair: (-pair[2], pair[0], pair[1])))


# Escape sequences, letters that turn the direction of a line, and halves of characters.
_controls = re.compile(
    "[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)


def excerpt(text: str, most: int = _EXCERPT) -> str:
    """The beginning of a text, on one line that a terminal shows without obeying it."""
    text = " ".join(_controls.sub("\ufffd", text[: 4 * most]).split())
    return text if len(text) <= most else text[: most - 1].rstrip() + "…"
