"""Classifies the documents of a session; texts, vectors, counts of words and the map are kept."""

from __future__ import annotations

import time
from dataclasses import replace

from ulr.classifier import (
    EncodedTexts,
    Fitted,
    Settings,
    empty_texts,
    encode_documents,
    fit,
    refit,
    resolve,
    suggest,
)
from ulr.jobs import Tally
from ulr.report import Layout, Sampler
from ulr.web.encoders import Encoders
from ulr.web.jobs import Job
from ulr.web.sessions import Choices, Corpus, Options, Run, Session
from ulr.web.view import as_json, suggested


def classify(
    session: Session, choices: Choices, options: Options, encoders: Encoders, job: Job
) -> None:
    """Classify the documents of a session, and make the result its latest one."""
    started, before = time.perf_counter(), session.run
    job.stage("Loading the encoder")
    encoder, none_share = encoders.get(options.encoder), options.none_share
    settings = Settings(
        choices.phrases(), encoder=encoder, none_share=none_share, strong_share="budget"
    )
    settings, corpus = resolve(settings), session.corpus
    if corpus is None or corpus.options.source != options.source:
        session.corpus = corpus = _read(session, options, settings, job)
    documents, texts = corpus.documents, corpus.documents.texts
    fitted = _fit(before, corpus, choices, settings, job)
    assert fitted.predictions is not None
    if before is not None and before.corpus is corpus:
        shown, layout = before.shown, before.layout
    else:
        job.stage("Drawing the map")
        sampler = Sampler(settings.random_state)
        empty = fitted.predictions.empty.copy()
        empty[choices.nones()] = False  # a person must see them to take it back
        sampler.add(texts, replace(fitted.predictions, empty=empty))
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
    run = Run(number, choices, options, corpus, fitted, result, shown, layout)
    job.check()
    session.run = replace(run, view=as_json(run, before))


def look_for_labels(session: Session, run: Run, job: Job) -> None:
    """Suggest labels for a result: missing ones, some to merge or to split, and phrases."""
    found = suggest(run.fitted, progress=job)
    session.suggestions = suggested(run, found).model_dump_json().encode()


def _fit(
    before: Run | None, corpus: Corpus, choices: Choices, settings: Settings, job: Job
) -> Fitted:
    """Fit on the documents; faster where only corrections have changed."""
    documents, n_texts = corpus.documents, len(corpus.documents.texts)
    if (
        before is not None
        and before.corpus is corpus
        and before.choices.labels == choices.labels
        and before.options.none_share == settings.none_share
    ):
        return refit(before.fitted, choices.codes(n_texts), job)
    fitted = fit(_without_none(documents, choices), settings, job, y=choices.known(n_texts))
    return replace(fitted, documents=documents)


def _without_none(documents: EncodedTexts, choices: Choices) -> EncodedTexts:
    """The documents; those that are none of these take no part, as empty texts do."""
    texts = documents.texts.copy()
    for row in choices.nones():
        texts[row] = ""
    return replace(documents, texts=texts)


def _read(session: Session, options: Options, settings: Settings, job: Job) -> Corpus:
    """Read and encode the documents, and count their words."""
    job.stage("Reading", session.n_rows)
    texts: list[str] = []
    for batch in session.table.batches():
        texts += batch.texts(options.columns)
        job.advance(len(batch))
    return Corpus(options, encode_documents(texts, settings, job))
