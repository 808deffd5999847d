"""Reports on the documents of a table, on a list of texts, and on a sample of a job."""

from __future__ import annotations

import datetime
import platform
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ulr import __version__
from ulr.classifier import (
    MOST_LEFT_OUT,
    Fitted,
    Predictions,
    Settings,
    describe,
    empty_texts,
    encode,
    explain,
    known_labels,
    words_to_read,
)
from ulr.errors import TextError
from ulr.jobs import (
    NO_SUPPORT,
    Documents,
    Output,
    Result,
    Support,
    Tally,
    classify,
    compare,
    excerpt,
)
from ulr.progress import NO_PROGRESS, Progress
from ulr.report.data import DocumentColumns, LabelEntry, Point, ReportData
from ulr.report.layout import Float, Layout
from ulr.report.render import Report
from ulr.report.sample import Drawn, Sampler
from ulr.vectors import unit_rows

_EXCERPT = 300
_EXPLAINED_WORDS = 10_000  # that a slow encoder reads for explanations, in some six CPU seconds

Vectors = NDArray[np.float32]


def report_documents(
    documents: Documents,
    settings: Settings,
    output: Output | None = None,
    progress: Progress = NO_PROGRESS,
    *,
    support: Support = NO_SUPPORT,
    truth_column: str | None = None,
) -> tuple[Fitted, Result, Report]:
    """`ulr.jobs.classify`, and a report on it."""
    sampler = Sampler(settings.random_state)
    fitted, result = classify(
        documents,
        settings,
        output,
        progress,
        support=support,
        truth_column=truth_column,
        collect=sampler.add,
    )
    name = Path(documents.table.name).name
    fitted_on, vectors = fitted.documents, None
    if fitted_on is not None and len(fitted_on.texts) >= result.documents:  # not on a sample
        vectors = fitted_on.vectors
    report = _draw(
        fitted, sampler, result, title=name, source=name, vectors=vectors, progress=progress
    )
    return fitted, result, report


def report_texts(
    fitted: Fitted,
    texts: list[str],
    *,
    truth: Iterable[Any] | None = None,
    title: str = "Classified texts",
) -> Report:
    """A report on texts, with true labels if any, that only give figures (None where unknown)."""
    started = time.perf_counter()
    known = np.full(len(texts), -1, dtype=np.intp)
    if truth is not None:
        known = known_labels(truth, fitted.settings.label_set.names, len(texts))[0].astype(np.intp)
    vectors = encode(texts, fitted.fast.text_encoder, with_words=False).vectors
    predictions = fitted.predict(texts, vectors if fitted.student is None else None)
    predicted = predictions.labels, predictions.unrefined, predictions.confidence
    return report_predictions(
        fitted,
        texts,
        predictions,
        vectors,
        known,
        title=title,
        comparison=compare(known, *predicted, fitted.names[:-1].tolist()),
        seconds=time.perf_counter() - started,
    )


def report_predictions(
    fitted: Fitted,
    texts: list[str],
    predictions: Predictions,
    vectors: Vectors,
    truth: NDArray[np.intp] | None = None,
    *,
    title: str,
    source: str = "",
    **about: Any,
) -> Report:
    """A report on the predictions of all documents; `about` are further fields of the `Result`."""
    sampler, tally = Sampler(fitted.settings.random_state), Tally(fitted)
    sampler.add(texts, predictions, truth)
    tally.add(texts, predictions)
    result = tally.result(int(empty_texts(texts).sum()), **about)
    return _draw(fitted, sampler, result, title=title, source=source, vectors=vectors)


def report_sample(
    fitted: Fitted,
    texts: list[str],
    rows: Sequence[int],
    result: Result,
    *,
    title: str,
    progress: Progress = NO_PROGRESS,
) -> Report:
    """A report on a job with a sample of its documents, and their positions among all."""
    sampler = Sampler(fitted.settings.random_state)
    sampler.add(texts, fitted.predict(texts), rows=rows)
    return _draw(fitted, sampler, result, title=title, source=title, progress=progress)


def _draw(
    fitted: Fitted,
    sampler: Sampler,
    result: Result,
    *,
    title: str,
    source: str = "",
    vectors: Vectors | None = None,
    progress: Progress = NO_PROGRESS,
) -> Report:
    """A report on a job and the documents that were drawn from it.

    `vectors` are those of all documents; without them, the drawn documents are encoded again.
    """
    drawn, seed, refinement = sampler.drawn, fitted.settings.random_state, fitted.refinement
    if not drawn.texts:
        raise TextError("no document has a label, so there is nothing to report on.")
    progress.stage("Drawing", len(drawn.texts) if vectors is None else None)
    if vectors is None:
        encoder = fitted.fast.text_encoder
        chosen = encode(drawn.texts, encoder, progress, with_words=False).vectors
    else:
        chosen = vectors[drawn.rows]
    layout = Layout(chosen, seed)
    labels = label_entries(fitted, drawn, layout, chosen)
    explained = sorted({row for each in labels for row in each.representative + each.borderline})
    rows = _affordable(explained, drawn, fitted)
    some = [drawn.texts[row] for row in rows], drawn.predictions.rows(np.array(rows, np.intp))
    packages = ("numpy", "scipy", "scikit-learn")
    data = ReportData(
        title=title,
        source=source,
        result=result,
        labels=labels,
        documents=document_columns(drawn, layout),
        why=dict(zip(rows, explain(fitted, some[0], predictions=some[1]), strict=True)),
        why_all=len(rows) == len(explained),
        least_of_label=sampler.least_of_label,
        trace=() if refinement is None else tuple(map(asdict, refinement.trace)),
        best_iteration=None if refinement is None else refinement.best_iteration,
        seed=seed,
        date=datetime.date.today().isoformat(),
        versions={"ulr": __version__, "python": platform.python_version()}
        | {name: version(name) for name in packages},
    )
    return Report(data)


def _affordable(rows: Sequence[int], drawn: Drawn, fitted: Fitted) -> list[int]:
    """Documents to explain: a slow encoder reads them once for each of their words."""
    found, budget = [], _EXPLAINED_WORDS
    settings = fitted.settings
    n_readings = fitted.n_labels if settings.scores_pairs else 1
    for row in np.random.default_rng(0).permutation(rows).tolist():
        if not (settings.is_fast or drawn.predictions.by_student[row]):
            n_words = words_to_read([drawn.texts[row]])
            budget -= n_readings * n_words * min(n_words, MOST_LEFT_OUT)
        if budget > 0:
            found.append(row)
    return sorted(found)


def label_entries(
    fitted: Fitted, drawn: Drawn, layout: Layout, vectors: Vectors
) -> tuple[LabelEntry, ...]:
    """One entry per label, the none label included; `vectors` are those of the drawn documents."""
    described = describe(drawn.texts, drawn.predictions, fitted.names)
    space = fitted.fast  # the map shows vectors by one encoder
    n_labels, centroids = fitted.n_labels, space.centroids
    if centroids is None:  # of a saved classifier, the means of the documents stand in for them
        units, labels = unit_rows(vectors), drawn.predictions.labels
        centroids = np.stack([units[labels == i].sum(axis=0) for i in range(n_labels)])
    anchors = layout.places(np.eye(n_labels) if space.anchors is None else space.anchors)
    places = layout.places(centroids)
    phrases = [*(label.phrases for label in fitted.settings.label_set), ()]
    return tuple(
        LabelEntry(
            name=name,
            phrases=tuple(phrases[i]),
            words=described[name].words,
            representative=described[name].representative,
            borderline=tuple(row for row, _ in described[name].borderline),
            anchor=_point(anchors, i),
            centroid=_point(places, i),
        )
        for i, name in enumerate(fitted.names[:-1].tolist())
    )


def _point(places: Float, label: int) -> Point | None:
    if label >= len(places):  # the none label
        return None
    x, y = places[label].round(4).tolist()
    return x, y


def document_columns(drawn: Drawn, layout: Layout) -> DocumentColumns:
    """The drawn documents as a page lists them."""
    predictions = drawn.predictions
    others, rows = predictions.probabilities.copy(), np.arange(len(drawn.rows))
    others[rows, predictions.labels] = -1.0
    second = others.argmax(axis=1)
    x, y = layout.positions.round(4).T.tolist()
    return DocumentColumns(
        row=(drawn.rows + 1).tolist(),
        text=[excerpt(text, _EXCERPT) for text in drawn.texts],
        label=predictions.labels.tolist(),
        unrefined=predictions.unrefined.tolist(),
        second=second.tolist(),
        confidence=predictions.confidence.tolist(),
        second_confidence=others[rows, second].round(4).tolist(),
        x=x,
        y=y,
        truth=drawn.truth.tolist(),
    )
