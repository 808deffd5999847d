"""What the page shows of a result, as JSON. It has the columns of a report's documents."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ulr.description import describe
from ulr.model import Predictions
from ulr.report.collect import shown_documents, sorted_pairs
from ulr.report.layout import Layout
from ulr.report.sample import Sample
from ulr.web.sessions import Result

_MOST_PAIRS = 500
_MOST_NEXT = 50

Indices = NDArray[np.intp]


def as_json(result: Result, before: Result | None, title: str) -> bytes:
    """The view of a result.

    Parameters
    ----------
    result
        The result.
    before
        The result before it, to show what changed; None for the first one.
    title
        Name of the input.
    """
    corpus, predictions = result.corpus, result.predictions
    assert corpus.shown is not None
    assert corpus.layout is not None
    shown = predictions.rows(corpus.shown)  # type: ignore[arg-type]
    texts = [corpus.texts[row] for row in corpus.shown.tolist()]
    documents = shown_documents(
        Sample(corpus.shown, texts, shown), corpus.layout.positions, truth=None
    )
    labelled = predictions.labels >= 0
    flows = sorted_pairs(_pairs(predictions.unrefined[labelled], predictions.labels[labelled]))
    changed, changes = _changes(result, before)
    names = result.choices.names()
    diagnosis = result.classifier.diagnosis_
    view = {
        "result": result.number,
        "title": title,
        "columns": corpus.columns,
        "documents": vars(documents),
        "labels": _labels(result, texts, shown, corpus.layout),
        "flows": flows[:_MOST_PAIRS],
        "all_documents": len(labelled),
        "labelled_documents": int(labelled.sum()),
        "moved": int((predictions.labels != predictions.unrefined).sum()),
        "corrections": [[row + 1, names[i]] for row, i in result.choices.corrections.items()],
        "seconds": round(result.seconds, 2),
        "diagnosis": None if diagnosis is None else diagnosis.as_dict(),
        "previous": [] if changed is None else changed[corpus.shown].tolist(),
        "changes": changes,
        "next": _next(result, shown),
    }
    return json.dumps(view, separators=(",", ":")).encode("ascii")


def _pairs(one: Indices, other: Indices) -> dict[tuple[int, int], int]:
    return Counter(zip(one.tolist(), other.tolist(), strict=True))


def _labels(
    result: Result, texts: list[str], shown: Predictions, layout: Layout
) -> list[dict[str, Any]]:
    """Name, sizes, words and places of each label."""
    model = result.classifier.model_
    described = describe(texts, shown, model)
    predictions = result.predictions
    before, after = (
        np.bincount(labels[labels >= 0], minlength=model.n_labels).tolist()
        for labels in (predictions.unrefined, predictions.labels)
    )
    assert model.anchors is not None
    anchors = layout.places(model.anchors).round(4).tolist()
    centroids = layout.places(result.classifier.centroids_).round(4).tolist()
    return [
        {
            "id": label.id,
            "name": label.name,
            "phrases": label.phrases,
            "before": before[i],
            "after": after[i],
            "words": described[label.name].words,
            "anchor": anchors[i],
            "centroid": centroids[i],
        }
        for i, label in enumerate(result.choices.labels)
    ]


def _changes(
    result: Result, before: Result | None
) -> tuple[NDArray[Any] | None, list[tuple[str, str, int]]]:
    """The label before of each document that has another one now, and counts of such changes.

    Labels are compared by id: a renamed label is the same label.
    """
    if before is None or before.corpus.columns != result.corpus.columns:
        return None, []
    ids = [[*(label.id for label in each.choices.labels), -1] for each in (before, result)]
    old, new = (
        np.array(own)[each.predictions.labels]
        for own, each in zip(ids, (before, result), strict=True)
    )
    names = [each.choices.names() | {-1: "no label"} for each in (before, result)]
    moved = np.flatnonzero(old != new)
    previous = np.full(len(old), None, dtype=object)
    previous[moved] = [names[0][i] for i in old[moved].tolist()]
    pairs = sorted_pairs(_pairs(old[moved], new[moved]))[:_MOST_PAIRS]
    return previous, [(names[0][one], names[1][other], n) for one, other, n in pairs]


def _next(result: Result, shown: Predictions) -> list[int]:
    """Positions of the documents to check next: those with the smallest lead of their label."""
    two = np.sort(shown.probabilities, axis=1)[:, -2:]
    lead = two[:, 1] - two[:, 0]
    assert result.corpus.shown is not None
    lead[np.isin(result.corpus.shown, list(result.choices.corrections))] = np.inf
    order = np.argsort(lead, kind="stable")[:_MOST_NEXT]
    return order[np.isfinite(lead[order])].tolist()
