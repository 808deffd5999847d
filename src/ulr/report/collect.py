"""Gathers what a report shows from the predictions of all documents, batch by batch."""

from __future__ import annotations

import datetime
import platform
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from importlib.metadata import version
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ulr import __version__
from ulr.description import describe
from ulr.encoders import OnTexts, encode_texts
from ulr.metrics import calibration_error, evaluate
from ulr.model import Model, Predictions
from ulr.refinement.distances import unit_rows
from ulr.refinement.products import Float, label_sums
from ulr.report.data import (
    Bin,
    Comparison,
    Documents,
    LabelEntry,
    Pairs,
    ReliabilityBin,
    ReportData,
    Run,
)
from ulr.report.layout import Layout
from ulr.report.sample import Sample, Sampler

if TYPE_CHECKING:
    from ulr.fitting import TextClassifier

_EXCERPT = 300
_BINS = 20
_RELIABILITY_BINS = 10
_MOST_PAIRS = 2_000

Indices = NDArray[np.intp]
Counts = dict[tuple[int, int], int]


class Collector:
    """Counts and samples predictions in one pass over all documents.

    Parameters
    ----------
    model
        The model that predicted them.
    random_state
        Seed of the sample.
    with_truth
        Whether true labels will be given at the end.
    """

    def __init__(self, model: Model, random_state: int, with_truth: bool = False) -> None:
        self._model, self._n_labels = model, len(model.names) - 1
        self._sampler = Sampler(self._n_labels, random_state)
        self._flows: Counter[tuple[int, int]] = Counter()
        self._histogram = np.zeros((2, _BINS), dtype=np.intp)
        self._with_truth = with_truth
        self._all: list[tuple[Indices, Indices, Float]] = []
        self._n_documents = 0

    def add(self, texts: Sequence[str], predictions: Predictions) -> None:
        """Add the next documents and their predictions."""
        self._n_documents += len(texts)
        self._sampler.add(texts, predictions)
        has = ~predictions.empty
        before, after = predictions.unrefined[has], predictions.labels[has]
        codes, counts = np.unique(before * self._n_labels + after, return_counts=True)
        for code, count in zip(codes.tolist(), counts.tolist(), strict=True):
            self._flows[divmod(code, self._n_labels)] += count
        places = np.minimum((predictions.confidence[has] * _BINS).astype(np.intp), _BINS - 1)
        for moved in (0, 1):
            chosen = places[(before != after) == bool(moved)]
            self._histogram[moved] += np.bincount(chosen, minlength=_BINS)
        if self._with_truth:
            self._all.append((predictions.unrefined, predictions.labels, predictions.confidence))

    def finish(
        self,
        classifier: TextClassifier,
        *,
        title: str,
        source: str = "",
        seconds: float,
        notes: Sequence[str] = (),
        vectors: NDArray[np.float32] | None = None,
        truth: Indices | None = None,
        on_texts: OnTexts | None = None,
    ) -> ReportData:
        """The data of the report.

        Parameters
        ----------
        classifier
            The fitted classifier.
        title, source, seconds, notes
            See `ulr.report.data.Run`.
        vectors
            (n_documents, n_dims) of all documents; those of the sample are encoded if not given.
        truth
            (n_documents,) true labels, -1 where unknown.
        on_texts
            Called with the number of texts of every encoded batch.
        """
        sample = self._sampler.finish()
        if vectors is None:
            chosen = encode_texts(self._model.text_encoder, sample.texts, on_texts)
        else:
            chosen = np.asarray(vectors[sample.rows], dtype=np.float32)
        layout = Layout(chosen, classifier.random_state)
        labelled = sum(self._flows.values())
        refinement = getattr(classifier, "refinement_", None)
        diagnosis = getattr(classifier, "diagnosis_", None)
        flows = sorted_pairs(self._flows)
        encoder = self._model.encoder
        return ReportData(
            run=Run(
                title=title,
                source=source,
                encoder=getattr(encoder, "spec", None) or type(encoder).__name__,
                method=classifier.method_,
                method_reason=getattr(refinement, "reason", None),
                distance=classifier.distance_,
                documents=self._n_documents,
                without_words=self._n_documents - labelled,
                moved=sum(count for (a, b), count in self._flows.items() if a != b),
                fitted=getattr(refinement, "n_fitted", None),
                best_iteration=getattr(refinement, "best_iteration", None),
                converged=getattr(refinement, "converged", None),
                seconds=round(seconds, 2),
                seed=classifier.random_state,
                date=datetime.date.today().isoformat(),
                versions=_versions(),
                notes=tuple(notes),
            ),
            diagnosis=None if diagnosis is None else diagnosis.as_dict(),
            labels=self._labels(sample, *_places(classifier, sample, chosen, layout)),
            flows=flows[:_MOST_PAIRS],
            flows_left_out=sum(count for _, _, count in flows[_MOST_PAIRS:]),
            histogram=tuple(
                Bin(i / _BINS, (i + 1) / _BINS, *self._histogram[:, i].tolist())
                for i in range(_BINS)
            ),
            trace=() if refinement is None else tuple(map(asdict, refinement.trace)),
            documents=shown_documents(sample, layout.positions, truth),
            sampled=len(sample.texts) < self._sampler.n_seen,
            least_of_label=self._sampler.least_of_label,
            comparison=None if truth is None else self._comparison(truth),
        )

    def _labels(self, sample: Sample, anchors: Float, centroids: Float) -> tuple[LabelEntry, ...]:
        """One entry per label, the none label included."""
        described = describe(sample.texts, sample.predictions, self._model)
        before, after = np.zeros((2, self._n_labels), dtype=np.intp)
        for (one, other), count in self._flows.items():
            before[one] += count
            after[other] += count
        phrases = [*(label.phrases for label in self._model.label_set), ()]
        return tuple(
            LabelEntry(
                name=name,
                phrases=tuple(phrases[i]),
                before=int(before[i]),
                after=int(after[i]),
                words=described[name].words,
                representative=described[name].representative,
                borderline=tuple(row for row, _ in described[name].borderline),
                anchor=_point(anchors, i),
                centroid=_point(centroids, i),
            )
            for i, name in enumerate(self._model.names[:-1].tolist())
        )

    def _comparison(self, truth: Indices) -> Comparison | None:
        """Comparison with true labels; None where no document has one."""
        known = truth >= 0
        if not known.any():
            return None
        before, after, confidence = (
            np.concatenate(column)[known] for column in zip(*self._all, strict=True)
        )
        truth = truth[known]
        names = self._model.names[:-1].tolist()
        by_name, refined = evaluate(truth, before, names), evaluate(truth, after, names)
        return Comparison(
            documents=len(truth),
            accuracy=(by_name.accuracy, refined.accuracy),
            macro_f1=(by_name.macro_f1, refined.macro_f1),
            calibration_error=calibration_error(after == truth, confidence),
            figures=refined.labels,
            figures_before=by_name.labels,
            reliability=_reliability(after == truth, confidence),
            confusion=sorted_pairs(_cells(refined.confusion))[:_MOST_PAIRS],
            confusion_before=sorted_pairs(_cells(by_name.confusion))[:_MOST_PAIRS],
        )


def _places(
    classifier: TextClassifier, sample: Sample, vectors: NDArray[np.float32], layout: Layout
) -> tuple[Float, Float]:
    """(n_labels, 2) places of the names and of the refined labels.

    A saved classifier has no centroids; the means of the documents stand in for them.
    """
    model = classifier.model_
    anchors = np.eye(model.n_labels) if model.anchors is None else model.anchors
    centroids = getattr(classifier, "centroids_", None)
    if centroids is None:
        rows = unit_rows(vectors.astype(np.float64))
        labels = sample.predictions.labels.astype(np.int32)
        centroids = label_sums(rows, labels, len(model.names) - 1)[: model.n_labels]
    return layout.places(anchors), layout.places(centroids)


def _point(places: Float, label: int) -> tuple[float, float] | None:
    if label >= len(places):
        return None
    x, y = places[label].round(4).tolist()
    return x, y


def shown_documents(sample: Sample, positions: Float, truth: Indices | None) -> Documents:
    """The documents of a sample as a report lists them."""
    predictions = sample.predictions
    probabilities = predictions.probabilities.copy()
    rows = np.arange(len(probabilities))
    probabilities[rows, predictions.labels] = -1.0
    second = probabilities.argmax(axis=1)
    x, y = positions.round(4).T.tolist()
    return Documents(
        row=(sample.rows + 1).tolist(),
        text=[excerpt(text) for text in sample.texts],
        label=predictions.labels.tolist(),
        unrefined=predictions.unrefined.tolist(),
        second=second.tolist(),
        confidence=predictions.confidence.tolist(),
        second_confidence=probabilities[rows, second].round(4).tolist(),
        x=x,
        y=y,
        truth=[] if truth is None else truth[sample.rows].tolist(),
    )


def excerpt(text: str) -> str:
    """The beginning of a text, on one line."""
    text = " ".join(text[: 4 * _EXCERPT].split())
    return text if len(text) <= _EXCERPT else text[: _EXCERPT - 1].rstrip() + "…"


def _cells(matrix: Indices) -> Counts:
    rows, columns = np.nonzero(matrix)
    pairs = zip(rows.tolist(), columns.tolist(), strict=True)
    return dict(zip(pairs, matrix[rows, columns].tolist(), strict=True))


def sorted_pairs(counts: Counts) -> Pairs:
    """Counts of pairs of labels, the largest first."""
    pairs = ((one, other, count) for (one, other), count in counts.items())
    return tuple(sorted(pairs, key=lambda pair: (-pair[2], pair[0], pair[1])))


def _reliability(correct: NDArray[np.bool_], confidence: Float) -> tuple[ReliabilityBin, ...]:
    places = (confidence * _RELIABILITY_BINS).astype(np.intp)
    places = np.minimum(places, _RELIABILITY_BINS - 1)
    bins = []
    for i in np.unique(places).tolist():
        chosen = places == i
        means = float(confidence[chosen].mean()), float(correct[chosen].mean())
        edges = i / _RELIABILITY_BINS, (i + 1) / _RELIABILITY_BINS
        bins.append(ReliabilityBin(*edges, int(chosen.sum()), *means))
    return tuple(bins)


def _versions() -> dict[str, str]:
    packages = {name: version(name) for name in ("numpy", "scipy", "scikit-learn")}
    return {"ulr": __version__, "python": platform.python_version(), **packages}
