"""Classifies the documents of a session; texts, vectors, counts of words and the map are kept."""

from __future__ import annotations

import time
from dataclasses import replace

from ulr.classifier import (
    Fitted,
    Settings,
    empty_texts,
    encode_documents,
    fit,
    known_labels,
    refit,
    resolve,
)
from ulr.encoders import Encoder
from ulr.jobs import Tally
from ulr.report import Layout, Sampler
from ulr.web.jobs import Job
from ulr.web.sessions import Choices, Corpus, Run, Session
from ulr.web.view import as_json


def classify(
    session: Session, choices: Choices, columns: tuple[str, ...], encoder: Encoder, job: Job
) -> None:
    """Classify the documents of a session, and make the result its latest one."""
    started, before = time.perf_counter(), session.run
    settings = resolve(Settings(choices.phrases(), encoder=encoder, strong_share="budget"))
    corpus = session.corpus
    if corpus is None or corpus.columns != columns:
        session.corpus = corpus = _read(session, columns, settings, job)
    documents, texts = corpus.documents, corpus.documents.texts
    fitted = _fit(corpus, settings, choices, before, job)
    assert fitted.predictions is not None
    if before is not None and before.corpus is corpus:
        shown, layout = before.shown, before.layout
    else:
        job.stage("Drawing the map")
        sampler = Sampler(settings.random_state)
        sampler.add(texts, fitted.predictions)
        shown = sampler.drawn.rows
        layout = Layout(documents.vectors[shown], settings.random_state)
    tally = Tally(fitted)
    tally.add(texts, fitted.predictions)
    result = tally.result(
        int(empty_texts(texts).sum()),
        examples=len(choices.corrections),
        seconds=time.perf_counter() - started,
    )
    number = 1 if before is None else before.number + 1
    run = Run(number, choices, corpus, fitted, result, shown, layout)
    job.check()
    session.run = replace(run, view=as_json(run, before))


def _fit(
    corpus: Corpus, settings: Settings, choices: Choices, before: Run | None, job: Job
) -> Fitted:
    """Fit, or only take up corrections where neither documents nor labels have changed."""
    documents, known = corpus.documents, choices.known(len(corpus.documents.texts))
    if before is None or before.corpus is not corpus or before.choices.labels != choices.labels:
        return fit(documents, settings, job, y=known)
    codes, _ = known_labels(known, settings.label_set.names, len(known))
    return refit(before.fitted, codes, job)


def _read(session: Session, columns: tuple[str, ...], settings: Settings, job: Job) -> Corpus:
    """Read and encode the documents, and count their words."""
    job.stage("Reading", session.n_rows)
    texts: list[str] = []
    for batch in session.table.batches():
        texts += batch.texts(columns)
        job.advance(len(batch))
    return Corpus(columns, encode_documents(texts, settings, job))
