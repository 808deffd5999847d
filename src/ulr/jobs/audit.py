"""Audit the labels of a table: refine every phrasing of them and compare the results."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ulr.audit import (
    AgainstTruth,
    Audit,
    SetFinding,
    audit,
    compare_with_truth,
    draw_audit,
    run_sweep,
)
from ulr.errors import InputError
from ulr.files import refuse_existing, user_cache
from ulr.fitting import TextClassifier
from ulr.inputs import Inputs, encode_inputs, known_labels
from ulr.jobs.documents import excerpt, read_documents
from ulr.jobs.evaluate import TrueLabels
from ulr.jobs.progress import Listener, SetProgress, Silent
from ulr.jobs.support import Support
from ulr.plots import check_picture, write_figure
from ulr.refinement import EXCLUDED
from ulr.tables import Table


@dataclass(frozen=True)
class UnstableDocument:
    """A document whose label depends on the phrasing, and the share of the sets for each label."""

    row: int
    text: str
    labels: tuple[tuple[str, float], ...]


@dataclass(frozen=True, eq=False)
class AuditReport:
    """What an audit found, for people and for programs.

    Attributes
    ----------
    documents, empty_documents
        Documents in all, and those without words, which are in no figure.
    n_sets, possible_sets, resumed_sets
        Phrasings that were refined, that are possible, and that an earlier run had finished.
    seconds
        Wall time.
    names
        Names of the labels.
    found
        The findings.
    unstable
        Documents whose label depends most on the phrasing.
    sets
        Figures of every phrasing.
    truth
        Comparison with true labels; None without any.
    picture
        The picture that was drawn.
    """

    documents: int
    empty_documents: int
    n_sets: int
    possible_sets: int
    resumed_sets: int
    seconds: float
    names: tuple[str, ...]
    found: Audit
    unstable: tuple[UnstableDocument, ...]
    sets: tuple[SetFinding, ...]
    truth: AgainstTruth | None
    picture: str | None

    def as_dict(self) -> dict[str, Any]:
        """The report as plain values."""
        found = self.found
        return {
            "documents": self.documents,
            "empty_documents": self.empty_documents,
            "sets": self.n_sets,
            "possible_sets": self.possible_sets,
            "resumed_sets": self.resumed_sets,
            "seconds": self.seconds,
            "agreement": {"before": found.agreement_before, "after": found.agreement_after},
            "unanimous": {"before": found.unanimous_before, "after": found.unanimous_after},
            "labels": [asdict(each) for each in found.labels],
            "competing": [asdict(each) for each in found.competing],
            "unstable": [asdict(each) for each in self.unstable],
            "recommendation": asdict(found.recommendation),
            "truth": None if self.truth is None else asdict(self.truth),
            "set_figures": [asdict(each) for each in self.sets],
            "picture": self.picture,
        }


@dataclass(frozen=True)
class AuditOutput:
    """Where the picture is written, and the folder of finished sets until the audit is done."""

    picture: str | None = None
    force: bool = False
    work: str | None = None


def audit_file(
    table: Table,
    columns: Sequence[str],
    classifier: TextClassifier,
    listener: Listener | None = None,
    support: Support | None = None,
    truth_column: str | None = None,
    output: AuditOutput | None = None,
) -> AuditReport:
    """Refine every phrasing of the labels on the documents of a table, and compare the results.

    Parameters
    ----------
    table, columns, listener, support
        As for `classify_file`.
    classifier
        A classifier with phrasings; it is not fitted.
    truth_column
        A column of true labels, which is read when all else is done.
    output
        Where to draw, and to keep finished phrasings. They are removed when the audit is done.
    """
    started = time.perf_counter()
    listener, support, output = listener or Silent(), support or Support(), output or AuditOutput()
    if truth_column is not None:
        table.check_columns([truth_column], "--truth")
    if output.picture is not None:
        check_picture(output.picture)
        refuse_existing(Path(output.picture), output.force, InputError, "--force")
    setup = classifier._resolve()
    if setup.phrasings is None:
        raise InputError("an audit needs phrasings: 'combinations', or a file of sets.")
    _, documents = read_documents(table, columns, listener, None, 0)
    texts = [*documents.texts, *support.examples]
    listener.stage("Encoding", len(texts) + len(support.extra_texts))
    known = None
    if support.labels:
        unknown: list[str | None] = [None] * documents.n_rows
        known, _ = known_labels([*unknown, *support.labels], setup.labels.names, len(texts))
    inputs = encode_inputs(
        setup,
        texts,
        known,
        extra_texts=support.extra_texts or None,
        on_texts=listener.advance,
    )
    inputs, kept = _without_empty(inputs, setup.distance)
    kept = kept[kept < documents.n_rows]
    if not len(kept):
        raise InputError(f"{table.name}: no document has a word that the encoder knows.")
    sweep = run_sweep(
        inputs,
        classifier._settings(setup),
        setup.phrasings,
        user_cache("audits") if output.work is None else Path(output.work),
        SetProgress(listener),
        len(kept),
    )
    found = audit(sweep, setup.phrasings, setup.labels)
    sets, against = found.sets, None
    if truth_column is not None:
        truth = TrueLabels(table, truth_column, setup.labels.names)
        for batch in table.batches():
            truth.add(batch)
        against, sets = compare_with_truth(found, sweep, truth.indices()[kept])
    if output.picture is not None:
        write_figure(draw_audit(found, sets), output.picture)
    report = AuditReport(
        documents=documents.n_rows,
        empty_documents=documents.n_rows - len(kept),
        n_sets=len(setup.phrasings),
        possible_sets=setup.phrasings.n_possible,
        resumed_sets=sweep.n_resumed,
        seconds=time.perf_counter() - started,
        names=setup.labels.names,
        found=found,
        unstable=tuple(_unstable(found, setup.labels.names, kept, documents.texts)),
        sets=sets,
        truth=against,
        picture=output.picture,
    )
    shutil.rmtree(sweep.files[0].parent, ignore_errors=True)
    return report


def _without_empty(inputs: Inputs, distance: str) -> tuple[Inputs, NDArray[np.intp]]:
    """The inputs without documents that get no label, and the positions of the others."""
    labelled = inputs.known != EXCLUDED
    if distance == "cosine":
        labelled &= inputs.documents.any(axis=1)
    kept = np.flatnonzero(labelled)
    documents, known = inputs.documents[kept], inputs.known[kept]
    return replace(inputs, documents=documents, known=known), kept


def _unstable(
    found: Audit, names: Sequence[str], kept: NDArray[np.intp], texts: Sequence[str]
) -> Iterator[UnstableDocument]:
    """The documents that depend most on the phrasing, with their texts."""
    for row, shares in zip(kept[found.flipping].tolist(), found.shares, strict=True):
        order = np.argsort(-shares, kind="stable")
        labels = tuple((names[i], float(shares[i])) for i in order if shares[i] > 0)
        yield UnstableDocument(row + 1, excerpt(texts[row]), labels)
