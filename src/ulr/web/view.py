"""What the page shows of a result, as JSON. It has the result, labels and documents of a report."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ulr.classifier import EncodedTexts, Predictions, Suggestions, ask
from ulr.jobs import excerpt, sorted_pairs
from ulr.report import Drawn, document_columns, label_entries
from ulr.web import schemas
from ulr.web.sessions import NONE, Run

_MOST_PAIRS = 500
_MOST_NEXT = 50
_MOST_ASKED = 16  # takes 0.2 s; the order changes with the answers, after the next run


def as_json(run: Run, before: Run | None) -> bytes:
    """The view of a result; `before` is the one before it, to show what changed."""
    corpus, shown, layout = run.corpus, run.shown, run.layout
    predictions = run.predictions.rows(shown)
    texts = [corpus.documents.texts[row] for row in shown.tolist()]
    drawn = Drawn(shown, texts, predictions, np.full(len(shown), -1))
    labels = label_entries(run.fitted, drawn, layout, corpus.documents.vectors[shown])
    changed, changes = _changes(run, before)
    names = run.choices.names()
    ids = [*(label.id for label in run.choices.labels), None]  # the none label, if any, is last
    view = {
        "number": run.number,
        "columns": run.options.columns,
        "result": run.result.as_dict(),
        "labels": [asdict(entry) | {"id": id_} for entry, id_ in zip(labels, ids, strict=False)],
        "documents": vars(document_columns(drawn, layout)),
        "corrections": [[row + 1, names[i]] for row, i in run.choices.corrections.items()],
        "previous": [] if changed is None else changed[shown].tolist(),
        "changes": changes,
        "next": _next(run, predictions),
    }
    return json.dumps(view, separators=(",", ":")).encode("ascii")


def _changes(
    run: Run, before: Run | None
) -> tuple[NDArray[Any] | None, list[tuple[str, str, int]]]:
    """The label before of each document that has another one now, and counts of such changes.

    Labels are compared by id: a renamed label is the same label.
    """
    if before is None or before.options.columns != run.options.columns:
        return None, []
    ids = [[*(label.id for label in each.choices.labels), NONE] for each in (before, run)]
    old, new = (
        np.array(own)[each.predictions.labels] for own, each in zip(ids, (before, run), strict=True)
    )
    names = [each.choices.names() for each in (before, run)]
    moved = np.flatnonzero(old != new)
    previous = np.full(len(old), None, dtype=object)
    previous[moved] = [names[0][i] for i in old[moved].tolist()]
    pairs = Counter(zip(old[moved].tolist(), new[moved].tolist(), strict=True))
    largest = sorted_pairs(pairs)[:_MOST_PAIRS]
    return previous, [(names[0][one], names[1][other], n) for one, other, n in largest]


def _next(run: Run, predictions: Predictions) -> list[int]:
    """Positions of the documents to check next: those of `ask`, then by the lead of their label."""
    shown, documents, known = run.shown, run.corpus.documents, run.fitted.known
    assert known is not None
    # Only what the page lists, and by the vectors that are there.
    listed = replace(
        run.fitted,
        documents=EncodedTexts([documents.texts[row] for row in shown], documents.vectors[shown]),
        predictions=predictions,
        known=known[shown],
    )
    asked = ask(listed, _MOST_ASKED).tolist()
    two = np.sort(predictions.probabilities, axis=1)[:, -2:]
    lead = two[:, 1] - two[:, 0]
    lead[np.isin(run.shown, list(run.choices.corrections))] = np.inf
    order = np.argsort(lead, kind="stable")[:_MOST_NEXT]
    return list(dict.fromkeys([*asked, *(row for row in order.tolist() if np.isfinite(lead[row]))]))


def suggested(run: Run, found: Suggestions) -> schemas.Suggested:
    """Suggestions with the rows and beginnings of their documents."""
    texts = run.corpus.documents.texts
    return schemas.Suggested(
        number=run.number,
        examined=found.examined,
        missing=[
            schemas.MissingLabel(
                name=each.name,
                size=each.size,
                words=list(each.words),
                rows=[place + 1 for place in each.documents],
                texts=[excerpt(texts[place]) for place in each.documents],
                labels=list(each.labels),
                better_name_for=each.better_name_for,
            )
            for each in found.missing
        ],
        merge=[(each.first, each.second) for each in found.merge],
        split=[(each.label, list(each.words[0]), list(each.words[1])) for each in found.split],
        phrases={name: list(phrases) for name, phrases in found.phrases.items()},
    )
