"""What to label next of a table: rows with an empty column for their labels, as examples have it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from ulr.classifier import Settings, fit, resolve
from ulr.classifier import ask as choose
from ulr.errors import TableError
from ulr.jobs.documents import Documents, draw_sample
from ulr.jobs.output import Output
from ulr.jobs.result import excerpt
from ulr.jobs.support import NO_SUPPORT, Support
from ulr.progress import NO_PROGRESS, Progress
from ulr.tables import Added, Batch, write_table

LABEL_COLUMN = "label"  # that `read_support` reads the answers from


@dataclass(frozen=True)
class Question:
    """A document whose label would help."""

    row: int  # from 1
    label: str  # that it has now
    confidence: float
    text: str  # its beginning


@dataclass(frozen=True)
class Questions:
    """The documents to label next, the most helpful first."""

    documents: int  # of the table
    examples: int
    questions: tuple[Question, ...]
    output: str | None

    def as_dict(self) -> dict[str, Any]:
        """The questions as plain values."""
        return asdict(self)


def ask(
    documents: Documents,
    settings: Settings,
    n: int = 30,
    output: Output | None = None,
    progress: Progress = NO_PROGRESS,
    *,
    support: Support = NO_SUPPORT,
) -> Questions:
    """Fit a classifier on the documents of a table, and write the rows to label next.

    They have all of their columns, their present label and its confidence, and an empty column
    ``label``. Documents that are among the examples are not asked for again.

    Parameters
    ----------
    documents
        The documents.
    settings
        The parameters of the classifier.
    n
        Most rows.
    output
        Where to write; nowhere by default. A file appears complete or not at all.
    progress
        Receives the progress, and can cancel the job.
    support
        Labelled examples, such as answers from before, and further texts to fit on.
    """
    output, settings = output or Output(), resolve(settings, progress)
    _check(documents, settings, output)
    sample = draw_sample(documents, settings.fit_limit, settings.random_state, progress)
    answers = dict(zip(support.examples, support.labels, strict=True))
    own = [answers.get(text) for text in sample.texts]
    others = [text for text in answers if text not in set(sample.texts)]
    fitted = fit(
        [*sample.texts, *others],
        settings,
        progress,
        y=[*own, *map(answers.get, others)] if answers else None,
        extra_texts=support.extra_texts,
        n_words=sample.n_words,
    )
    assert fitted.predictions is not None
    places = choose(fitted, n).tolist()
    predictions, names = fitted.predictions, fitted.names
    questions = tuple(
        Question(
            place + 1 if sample.rows is None else int(sample.rows[place]) + 1,
            str(names[predictions.labels[place]]),
            float(predictions.confidence[place]),
            excerpt(sample.texts[place]),
        )
        for place in places
    )
    _write(documents, questions, output, progress)
    return Questions(sample.n_rows, len(support.examples), questions, output.path)


def _check(documents: Documents, settings: Settings, output: Output) -> None:
    """Raise if the rows could not be written, before the long part of the job."""
    if output.is_folder:
        raise TableError("the rows to label are one file; name it with -o, such as -o ask.csv.")
    output.check(documents.table, settings, refined=False)
    if output.replaces_input(documents.table):
        raise TableError(
            f"{output.path} is an input, which would be replaced; choose another name."
        )
    if output.path is not None and LABEL_COLUMN in documents.table.columns:
        raise TableError(
            f"{documents.table.name} already has a column {LABEL_COLUMN!r}, which the answers are "
            "to be in; rename it first."
        )


def _write(
    documents: Documents, questions: tuple[Question, ...], output: Output, progress: Progress
) -> None:
    """Read the table again, and write the rows of the questions in their order."""
    if output.path is None:
        return
    wanted = {question.row - 1: place for place, question in enumerate(questions)}
    found: dict[int, Batch] = {}
    start = 0
    for batch, _ in documents:
        for row in wanted.keys() & set(range(start, start + len(batch))):
            found[wanted[row]] = batch.row(row - start)
        start += len(batch)
    if len(found) < len(wanted):
        raise TableError(f"{documents.table.name} changed while it was being read.")
    added = {f"{output.prefix}label": str, f"{output.prefix}confidence": float, LABEL_COLUMN: str}
    progress.stage("Writing", len(questions))

    def rows() -> Iterator[tuple[Batch, Added]]:
        for place, each in enumerate(questions):
            values: list[list[Any]] = [[each.label], [each.confidence], [""]]
            yield found[place], dict(zip(added, values, strict=True))
            progress.advance(1)

    write_table(output.path, documents.table, rows(), added, output.stdout)
