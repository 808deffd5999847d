"""Sessions: an uploaded table, the labels and corrections chosen for it, and the latest result."""

from __future__ import annotations

import secrets
import shutil
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import RLock

import numpy as np
from numpy.typing import NDArray

from ulr.classifier import (
    EncodedTexts,
    Fitted,
    Predictions,
    Settings,
    known_labels,
)
from ulr.errors import InputError, LabelError, TableError
from ulr.files import temporary_folder
from ulr.jobs import Result, guess_text_column
from ulr.labels import as_label_set
from ulr.refinement import EXCLUDED
from ulr.report import Layout
from ulr.tables import MOST_LETTERS, Table, open_source
from ulr.web.jobs import Job
from ulr.web.settings import ServerSettings

_MOST_STEPS = 100
_PREVIEW_ROWS, _PREVIEW_LETTERS = 3, 200
_MOST_LETTERS = 8  # per byte of the largest upload, against compressed files that expand


NONE = -1  # stands for the id of a label where a document is none of these


class Conflict(InputError):
    """A request that the state of a session does not allow."""


@dataclass(frozen=True)
class SessionLabel:
    """A label with an identity that it keeps when it is renamed."""

    id: int
    name: str
    phrases: tuple[str, ...]


@dataclass(frozen=True)
class Choices:
    """Labels, and the label that a person gave to documents: row from 0 to its id, or `NONE`."""

    labels: tuple[SessionLabel, ...] = ()
    corrections: dict[int, int] = field(default_factory=dict)

    def phrases(self) -> dict[str, list[str]]:
        """Phrases by name."""
        return {label.name: list(label.phrases) for label in self.labels}

    def codes(self, n_rows: int) -> NDArray[np.int32]:
        """(n_rows,) what is known of each document, as `ulr.classifier.refit` takes it."""
        names = [label.name for label in self.labels]
        codes = known_labels(self.known(n_rows), names, n_rows)[0]
        codes[self.nones()] = EXCLUDED
        return codes

    def nones(self) -> list[int]:
        """Rows of the documents that are none of these."""
        return [row for row, label in self.corrections.items() if label == NONE]

    def names(self) -> dict[int, str]:
        """Names by id, that of `NONE` included."""
        return {label.id: label.name for label in self.labels} | {NONE: Settings.none_label}

    def known(self, n_rows: int) -> list[str | None]:
        """The known label of each document."""
        known: list[str | None] = [None] * n_rows
        names = self.names()
        for row, label in self.corrections.items():
            known[row] = None if label == NONE else names[label]
        return known


@dataclass(frozen=True)
class Options:
    """What a run was asked for beside labels and corrections."""

    columns: tuple[str, ...]  # that make up a document
    encoder: str
    none_share: float | None = None

    @property
    def source(self) -> tuple[tuple[str, ...], str]:
        """What the vectors of the documents depend on."""
        return self.columns, self.encoder


@dataclass(frozen=True, eq=False)
class Corpus:
    """The documents of a session, kept until other columns or another encoder are chosen."""

    options: Options  # of the first run with these documents
    documents: EncodedTexts


@dataclass(frozen=True, eq=False)
class Run:
    """A classification of the documents of a session."""

    number: int  # 1 for the first one of a session, and so on
    choices: Choices
    options: Options
    corpus: Corpus
    fitted: Fitted
    result: Result
    shown: NDArray[np.intp]  # positions of the documents on the map, the same for a corpus
    layout: Layout  # the map
    view: bytes = b""  # what the page shows, as JSON

    @property
    def predictions(self) -> Predictions:
        """Predictions of all documents."""
        assert self.fitted.predictions is not None
        return self.fitted.predictions


class Session:
    """What one person has uploaded and chosen; the `lock` is held while any of it changes."""

    def __init__(self, name: str, folder: Path, settings: ServerSettings) -> None:
        self.id = folder.name
        self.name, self.folder, self._settings = name, folder, settings
        self.table = Table([open_source(name, path=folder / "data")])
        self.n_rows, self.preview = self._read()
        self.choices = Choices()
        self.suggested_columns = self._text_columns()
        self.suggested_labels: tuple[str, ...] = ()
        self.options: Options | None = None  # of the latest run, done or not
        self.corpus: Corpus | None = None
        self.run: Run | None = None  # the latest one that is done
        self.suggestions = b""  # the latest ones, as JSON
        self.job: Job | None = None
        self.lock = RLock()
        self.undo_steps: list[Choices] = []
        self._next_label = 0

    def _read(self) -> tuple[int, list[list[str]]]:
        """Number of rows and the first of them; refuses a table that is too large."""
        n_rows = n_letters = 0
        preview: list[list[str]] = []
        for batch in self.table.batches():
            values = [batch.column(name) for name in self.table.columns]
            if not preview:
                first = zip(*(column[:_PREVIEW_ROWS] for column in values), strict=True)
                preview = [
                    ["" if v is None else str(v)[:_PREVIEW_LETTERS] for v in row] for row in first
                ]
            n_rows += len(batch)
            lengths = [len(v) for column in values for v in column if isinstance(v, str)]
            n_letters += sum(lengths)
            if max(lengths, default=0) > MOST_LETTERS:
                raise TableError(
                    f"{self.name} has a cell of {max(lengths):,} letters; a document can have at most "
                    f"{MOST_LETTERS:,}."
                )
            if n_rows > self._settings.max_rows:
                raise TableError(
                    f"{self.name} has more than {self._settings.max_rows:,} rows, the limit of this "
                    "server; use 'ulr classify' for it."
                )
            if n_letters > _MOST_LETTERS * self._settings.max_upload:
                raise TableError(f"{self.name} is too large when it is decompressed.")
        if n_rows == 0:
            raise TableError(f"{self.name} has no rows.")
        return n_rows, preview

    def _text_columns(self) -> tuple[str, ...]:
        """The column that most probably has the texts: named so, or with the longest prose."""
        if "text" in self.table.columns:
            return ("text",)
        return (guess_text_column(self.table) or self.table.columns[0],)

    def set_labels(self, given: Sequence[tuple[int | None, str, Sequence[str]]]) -> None:
        """Replace the labels by id (None for a new label), name and phrases of each.

        Corrections to labels that are no longer there are dropped.
        """
        for _, name, phrases in given:
            if len(phrases) > self._settings.max_phrases:
                raise LabelError(
                    f"label {name!r} has {len(phrases)} phrases; at most "
                    f"{self._settings.max_phrases} are possible."
                )
        if len(given) > self._settings.max_labels:
            raise LabelError(
                f"there are {len(given)} labels; this server allows {self._settings.max_labels}."
            )
        names = [name for _, name, _ in given]
        for name in set(names):
            if names.count(name) > 1:
                raise LabelError(f"label {name!r} is given twice.")
        checked = as_label_set({name: list(phrases) or [name] for _, name, phrases in given})
        with self.lock:
            own = {label.id for label in self.choices.labels}
            labels = []
            for (id_, _, _), label in zip(given, checked, strict=True):
                if id_ is not None and id_ not in own:
                    raise LabelError(
                        f"label {label.name!r} has the id {id_}, which no label of this session "
                        "has; leave the id out for a new label."
                    )
                if id_ is None:
                    id_, self._next_label = self._next_label, self._next_label + 1
                own.discard(id_)
                labels.append(SessionLabel(id_, label.name, label.phrases))
            kept = {NONE, *(label.id for label in labels)}
            corrections = {r: i for r, i in self.choices.corrections.items() if i in kept}
            self._change(Choices(tuple(labels), corrections))

    def correct(self, rows: Sequence[int], name: str | None) -> None:
        """Give documents (from 0) a label, or take back the one that they were given (None)."""
        with self.lock:
            if not self.choices.labels:
                raise Conflict("this session has no labels yet; classify first.")
            ids = {Settings.none_label: NONE}
            ids |= {label.name: label.id for label in self.choices.labels}
            if name is not None and name not in ids:
                raise LabelError(f"{name!r} is not a label; use: {', '.join(ids)}.")
            wrong = [row for row in rows if not 0 <= row < self.n_rows]
            if wrong:
                raise TableError(
                    f"there is no row {wrong[0] + 1}; {self.name} has {self.n_rows:,} rows."
                )
            corrections = dict(self.choices.corrections)
            for row in rows:
                corrections.pop(row, None)
                if name is not None:
                    corrections[row] = ids[name]
            self._change(replace(self.choices, corrections=corrections))

    def undo(self) -> None:
        """Take back the latest change of labels or corrections."""
        with self.lock:
            if not self.undo_steps:
                raise Conflict("there is nothing to undo.")
            self.choices = self.undo_steps.pop()

    def _change(self, choices: Choices) -> None:
        if choices == self.choices:
            return
        if self.choices.labels:
            self.undo_steps = [*self.undo_steps[1 - _MOST_STEPS :], self.choices]
        self.choices = choices

    def corrected(self, run: Run) -> Predictions:
        """Predictions of a run, with the labels that documents were given since."""
        places = {label.id: i for i, label in enumerate(run.choices.labels)}
        places[NONE] = NONE if run.fitted.none is None else run.fitted.n_labels
        given = {row: places[i] for row, i in self.choices.corrections.items() if i in places}
        if not given:
            return run.predictions
        labels = run.predictions.labels.copy()
        labels[list(given)] = list(given.values())
        empty = run.predictions.empty.copy()
        empty[list(given)] = [place == NONE for place in given.values()]
        return replace(run.predictions, labels=labels, empty=empty)


class Sessions:
    """All sessions of a server, in a private temporary folder, and the threads of their jobs."""

    def __init__(self, settings: ServerSettings) -> None:
        self._settings = settings
        self._temporary = ExitStack()
        self.folder = self._temporary.enter_context(temporary_folder())
        self._sessions: OrderedDict[str, Session] = OrderedDict()
        self._lock = RLock()
        self.threads = ThreadPoolExecutor(settings.workers, thread_name_prefix="ulr-job")

    @contextmanager
    def new_folder(self) -> Iterator[Path]:
        """A folder for an upload, which is deleted on errors."""
        folder = self.folder / secrets.token_urlsafe(16)
        folder.mkdir(mode=0o700)
        try:
            yield folder
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise

    def create(self, name: str, folder: Path) -> Session:
        """A session for a file ``data`` in a folder; the least recently used one may be dropped."""
        name = Path(name.replace("\\", "/")).name[:100] or "upload"
        session = Session(name, folder, self._settings)
        with self._lock:
            self._sessions[session.id] = session
            n_rows = sum(each.n_rows for each in self._sessions.values())
            while len(self._sessions) > self._settings.max_sessions or (
                len(self._sessions) > 1 and n_rows > self._settings.max_total_rows
            ):
                oldest = next(iter(self._sessions.values()))
                n_rows -= oldest.n_rows
                self.drop(oldest.id)
        return session

    def get(self, id_: str) -> Session | None:
        """The session of an id, which is now the most recently used; None for no session."""
        with self._lock:
            session = self._sessions.get(id_)
            if session is not None:
                self._sessions.move_to_end(id_)
            return session

    def drop(self, id_: str) -> None:
        """End a session: its job is cancelled and its data deleted."""
        with self._lock:
            session = self._sessions.pop(id_, None)
        if session is not None:
            if session.job is not None:
                session.job.cancel()
            shutil.rmtree(session.folder, ignore_errors=True)

    def close(self) -> None:
        """End all jobs, and delete all data."""
        for id_ in list(self._sessions):
            self.drop(id_)
        self.threads.shutdown()
        self._temporary.close()
