"""The audit of a file: every wording of its labels refined on its documents."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from ulr.audit import (
    AgainstTruth,
    Audit,
    SetFinding,
    audit,
    compare_with_truth,
    draw_audit,
    run_sweep,
)
from ulr.classifier import DatalessClassifier
from ulr.encoders import in_batches
from ulr.errors import InputError, TableError
from ulr.files import refuse_existing, user_cache
from ulr.jobs.support import Support
from ulr.jobs.told import Listener
from ulr.jobs.work import Job, SetsOf, read_truth
from ulr.plots import check_picture, write_figure
from ulr.tables import Table
from ulr.tasks import encode, prepare


@dataclass(frozen=True)
class FlippingDocument:
    """A document whose label depends on the wording, and how many sets give it which."""

    row: int
    text: str
    labels: tuple[tuple[str, float], ...]


@dataclass(frozen=True, eq=False)
class AuditReport:
    """What an audit of a file tells, for people and for programs."""

    documents: int
    n_sets: int
    possible_sets: int
    resumed_sets: int
    seconds: float
    names: tuple[str, ...]
    found: Audit
    flipping: tuple[FlippingDocument, ...]
    sets: tuple[SetFinding, ...]
    truth: AgainstTruth | None
    picture: str | None

    def as_dict(self) -> dict[str, Any]:
        """The report as plain values."""
        found = self.found
        return {
            "documents": self.documents,
            "sets": self.n_sets,
            "possible_sets": self.possible_sets,
            "resumed_sets": self.resumed_sets,
            "seconds": self.seconds,
            "agreement": {"before": found.agreement_before, "after": found.agreement_after},
            "unanimous": {"before": found.unanimous_before, "after": found.unanimous_after},
            "labels": [asdict(each) for each in found.labels],
            "competing": [asdict(each) for each in found.competing],
            "flipping": [asdict(each) for each in self.flipping],
            "recommendation": asdict(found.recommendation),
            "truth": None if self.truth is None else asdict(self.truth),
            "set_figures": [asdict(each) for each in self.sets],
            "picture": self.picture,
        }


@dataclass(frozen=True)
class AuditOutput:
    """Where the picture goes, and where work is kept until the audit is done."""

    picture: str | None = None
    force: bool = False
    work: str | None = None


def audit_file(
    source: Table,
    columns: Sequence[str],
    classifier: DatalessClassifier,
    listener: Listener | None = None,
    support: Support | None = None,
    truth_column: str | None = None,
    output: AuditOutput | None = None,
) -> AuditReport:
    """Refine every wording of the labels on a table's documents, and see how far they agree.

    Parameters
    ----------
    source, columns, listener, support
        As for `classify_file`.
    classifier
        A classifier with wordings; it is not fitted.
    truth_column
        A column of true labels. It is read when all else is done.
    output
        Where to draw and to keep work. What is kept is removed when the audit is done.
    """
    support, output = support or Support(), output or AuditOutput()
    started = time.perf_counter()
    if truth_column is not None:
        source.check_columns([truth_column], "--truth")
    if output.picture is not None:
        check_picture(output.picture)
        refuse_existing(Path(output.picture), output.force, InputError, "--force")
    task = prepare(classifier)
    if task.wordings is None:
        raise InputError("an audit needs wordings: 'combinations', or a file of whole sets.")
    job = Job(source, columns, None, listener, [])
    job.listener.stage("Encoding", job.n_rows + len(support))
    given = encode(
        task,
        classifier,
        chain(job.texts(), in_batches(list(support.examples))),
        [*[None] * job.n_rows, *support.labels] if support.labels else None,
        support.extra_texts(),
        job.listener.advance,
    )
    folder = user_cache("audits") if output.work is None else Path(output.work)
    sweep = run_sweep(given, task.wordings, folder, SetsOf(job.listener), job.n_rows)
    found = audit(sweep, task.wordings, task.labels)
    sets, against = found.sets, None
    if truth_column is not None:
        truth = read_truth(source, truth_column, list(task.labels.names))
        if not (truth >= 0).any():
            raise TableError(f"{source.name}: column {truth_column!r} has no truth for any row.")
        against, sets = compare_with_truth(found, sweep, truth)
    if output.picture is not None:
        write_figure(draw_audit(found, sets), output.picture)
    report = AuditReport(
        documents=job.n_rows,
        n_sets=len(task.wordings),
        possible_sets=task.wordings.n_possible,
        resumed_sets=sweep.n_resumed,
        seconds=time.perf_counter() - started,
        names=task.labels.names,
        found=found,
        flipping=tuple(_flipping(found, task.labels.names, job)),
        sets=sets,
        truth=against,
        picture=output.picture,
    )
    shutil.rmtree(sweep.files[0].parent, ignore_errors=True)
    return report


def _flipping(found: Audit, names: Sequence[str], job: Job) -> Iterator[FlippingDocument]:
    """The documents that depend most on the wording, with their texts."""
    texts = job.excerpts(found.flipping.tolist())
    for row, shares in zip(found.flipping.tolist(), found.shares, strict=True):
        order = np.argsort(-shares, kind="stable")
        labels = tuple((names[i], float(shares[i])) for i in order if shares[i] > 0)
        yield FlippingDocument(row + 1, texts[row], labels)
