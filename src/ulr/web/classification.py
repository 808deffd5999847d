"""Classifies the documents of a session; texts, vectors and the map are kept for the next time."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np

from ulr.encoders import Encoder, encode_batches, in_batches
from ulr.fitting import TextClassifier
from ulr.report.layout import Layout
from ulr.report.sample import Sampler
from ulr.web.jobs import Job
from ulr.web.sessions import Choices, Corpus, Result, Session
from ulr.web.view import as_json

_SEED = 0


def classify(
    session: Session, choices: Choices, columns: tuple[str, ...], encoder: Encoder, job: Job
) -> None:
    """Classify the documents of a session, and make the result its latest one.

    Parameters
    ----------
    session
        The session.
    choices
        Labels and corrections to use.
    columns
        The columns that make up a document.
    encoder
        Encodes texts and labels.
    job
        Hears the progress, and can end the classification.
    """
    started = time.perf_counter()
    corpus = session.corpus
    if corpus is None or corpus.columns != columns:
        corpus = _read(session, columns, encoder, job)
    session.corpus = corpus
    job.stage("Refining", None, "passes")
    classifier = TextClassifier(choices.label_set(), encoder=encoder, random_state=_SEED)
    classifier._fit(
        corpus.texts,
        choices.known(len(corpus.texts)),
        embeddings=corpus.vectors,
        on_pass=job.passed,
    )
    predictions = classifier._fitted
    if corpus.layout is None:
        job.stage("Drawing the map", None)
        sampler = Sampler(len(choices.labels), _SEED)
        sampler.add(corpus.texts, predictions)
        shown = np.sort(sampler.finish().rows)
        corpus = replace(corpus, shown=shown, layout=Layout(corpus.vectors[shown], _SEED))
    job.check()
    before = session.result
    result = Result(
        number=1 if before is None else before.number + 1,
        choices=choices,
        corpus=corpus,
        classifier=classifier,
        predictions=predictions,
        seconds=time.perf_counter() - started,
    )
    result = replace(result, view=as_json(result, before, session.name))
    with session.lock:
        session.corpus, session.result = corpus, result


def _read(session: Session, columns: tuple[str, ...], encoder: Encoder, job: Job) -> Corpus:
    """Read and encode the documents."""
    job.stage("Reading", session.n_rows)
    texts: list[str] = []
    for batch in session.table.batches():
        texts += session.table.texts(batch, columns)
        job.advance(len(batch))
    job.stage("Encoding", len(texts))
    vectors = encode_batches(encoder, in_batches(texts), job.advance)
    return Corpus(columns, texts, vectors)
