"""Sessions: an uploaded table, the labels and corrections chosen for it, and the latest result."""

from __future__ import annotations

import secrets
import shutil
import tempfile
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import RLock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ulr.errors import InputError, LabelError, TableError
from ulr.fitting import TextClassifier
from ulr.labels import Label, LabelSet, as_label_set
from ulr.model import Predictions
from ulr.report.layout import Layout
from ulr.tables import Table
from ulr.tables.formats import TableFormat
from ulr.tables.table import open_source
from ulr.web.jobs import Job
from ulr.web.settings import Settings

_MOST_STEPS = 100
_PREVIEW_ROWS, _PREVIEW_LETTERS = 3, 200
_MOST_LETTERS = 8  # per byte of the largest upload, against compressed files that expand


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
    """Labels, and the label that a person gave to documents: row from 0 to id of the label."""

    labels: tuple[SessionLabel, ...] = ()
    corrections: dict[int, int] = field(default_factory=dict)

    def label_set(self) -> LabelSet:
        """The labels for a classifier."""
        return LabelSet(tuple(Label(label.name, label.phrases) for label in self.labels))

    def names(self) -> dict[int, str]:
        """Names by id."""
        return {label.id: label.name for label in self.labels}

    def known(self, n_rows: int) -> list[str | None] | None:
        """The known label of each document; None without any."""
        if not self.corrections:
            return None
        names = self.names()
        known: list[str | None] = [None] * n_rows
        for row, label in self.corrections.items():
            known[row] = names[label]
        return known


@dataclass(frozen=True, eq=False)
class Corpus:
    """The documents of a session: texts and vectors, kept until other columns are chosen.

    Attributes
    ----------
    columns
        The columns that make up a document.
    texts, vectors
        All documents, and their vectors, (n_documents, n_dims).
    shown, layout
        Positions of the documents on the map, and the map; None before the first result.
    """

    columns: tuple[str, ...]
    texts: list[str]
    vectors: NDArray[np.float32]
    shown: NDArray[np.intp] | None = None
    layout: Layout | None = None


@dataclass(frozen=True, eq=False)
class Result:
    """A classification of the documents of a session.

    Attributes
    ----------
    number
        1 for the first result of a session, and so on.
    choices, corpus, classifier, predictions
        What was classified, by what, and how.
    seconds
        Wall time.
    view
        What the page shows, as JSON.
    """

    number: int
    choices: Choices
    corpus: Corpus
    classifier: TextClassifier
    predictions: Predictions
    seconds: float
    view: bytes = b""


class Session:
    """What one person has uploaded and chosen.

    Attributes
    ----------
    id
        A random name.
    name
        Name of the uploaded file.
    folder
        A private folder.
    table, n_rows
        The uploaded table, and its number of rows.
    preview
        The first rows.
    choices
        Labels and corrections.
    corpus, result, job
        Documents, latest result and latest job; None before there is one.
    lock
        Held while any of them changes.
    """

    def __init__(self, name: str, folder: Path, settings: Settings) -> None:
        self.id = folder.name
        self.name, self.folder, self._settings = name, folder, settings
        source = open_source(name, folder / "data", TableFormat())
        self.table = Table((source,), source.columns)
        self.n_rows, self.preview = self._read()
        self.choices = Choices()
        self.suggested_columns = self._text_columns()
        self.suggested_labels: tuple[str, ...] = ()
        self.corpus: Corpus | None = None
        self.result: Result | None = None
        self.job: Job | None = None
        self.lock = RLock()
        self._undo: list[Choices] = []
        self._next_label = 0

    def _read(self) -> tuple[int, list[list[str]]]:
        """Number of rows and the first of them; refuses a table that is too large."""
        n_rows = n_letters = 0
        preview: list[list[str]] = []
        for batch in self.table.batches():
            values = [batch.column(name) for name in self.table.columns]
            if not preview:
                rows = list(zip(*(column[:_PREVIEW_ROWS] for column in values), strict=True))
                preview = [
                    ["" if v is None else str(v)[:_PREVIEW_LETTERS] for v in r] for r in rows
                ]
            n_rows += len(batch)
            n_letters += sum(len(v) for column in values for v in column if isinstance(v, str))
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
        """The column that most probably has the texts: named so, or with the longest values."""
        if "text" in self.table.columns:
            return ("text",)
        lengths = [sum(map(len, column)) for column in zip(*self.preview, strict=True)]
        return (self.table.columns[int(np.argmax(lengths))],)

    @property
    def can_undo(self) -> bool:
        """Whether there is a change to undo."""
        return bool(self._undo)

    @property
    def is_outdated(self) -> bool:
        """Whether labels or corrections have changed since the latest result."""
        return self.result is not None and self.result.choices != self.choices

    def set_labels(self, given: Sequence[tuple[int | None, str, Sequence[str]]]) -> None:
        """Replace the labels.

        Parameters
        ----------
        given
            Id (None for a new label), name and phrases of each. Corrections to labels that are no
            longer there are dropped.
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
        twice = {
            name for i, (_, name, _) in enumerate(given) if name in [n for _, n, _ in given[:i]]
        }
        if twice:
            raise LabelError(f"label {min(twice)!r} is given twice.")
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
            kept = {label.id for label in labels}
            corrections = {r: i for r, i in self.choices.corrections.items() if i in kept}
            self._change(Choices(tuple(labels), corrections))

    def correct(self, rows: Sequence[int], name: str | None) -> None:
        """Give documents a label, or take back the label that they were given.

        Parameters
        ----------
        rows
            Documents, from 0.
        name
            Name of the label; None to take back.
        """
        with self.lock:
            if not self.choices.labels:
                raise Conflict("this session has no labels yet; classify first.")
            ids = {label.name: label.id for label in self.choices.labels}
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
            if not self._undo:
                raise Conflict("there is nothing to undo.")
            self.choices = self._undo.pop()

    def _change(self, choices: Choices) -> None:
        if choices == self.choices:
            return
        if self.choices.labels:
            self._undo = [*self._undo[1 - _MOST_STEPS :], self.choices]
        self.choices = choices

    def corrected(self, result: Result) -> Predictions:
        """Predictions of a result, with the labels that documents were given since."""
        places = {label.id: i for i, label in enumerate(result.choices.labels)}
        given = {row: places[i] for row, i in self.choices.corrections.items() if i in places}
        if not given:
            return result.predictions
        labels = result.predictions.labels.copy()
        labels[list(given)] = list(given.values())
        return replace(result.predictions, labels=labels, empty=labels < 0)


class Sessions:
    """All sessions of a server, in a private temporary folder; the least recently used are dropped.

    Attributes
    ----------
    folder
        The private folder, which is deleted by `close`.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self.folder = Path(tempfile.mkdtemp(prefix="ulr-serve-"))  # readable by its owner only
        self._sessions: OrderedDict[str, Session] = OrderedDict()
        self._lock = RLock()

    def __len__(self) -> int:
        return len(self._sessions)

    def new_folder(self) -> Path:
        """A folder for an upload."""
        folder = self.folder / secrets.token_urlsafe(16)
        folder.mkdir(mode=0o700)
        return folder

    def create(self, name: str, folder: Path) -> Session:
        """A session for a file ``data`` in a folder of `new_folder`, which is deleted on errors."""
        try:
            session = Session(
                Path(name.replace("\\", "/")).name[:100] or "upload", folder, self._settings
            )
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        with self._lock:
            self._sessions[session.id] = session
            while len(self._sessions) > self._settings.max_sessions or (
                len(self._sessions) > 1
                and sum(each.n_rows for each in self._sessions.values())
                > self._settings.max_total_rows
            ):
                self.drop(next(iter(self._sessions)))
        return session

    def get(self, id_: str) -> Session | None:
        """The session of an id, which is now the most recently used; None for no session."""
        with self._lock:
            if id_ not in self._sessions:
                return None
            self._sessions.move_to_end(id_)
            return self._sessions[id_]

    def drop(self, id_: str) -> None:
        """End a session: its job is cancelled and its data deleted."""
        with self._lock:
            session = self._sessions.pop(id_, None)
        if session is not None:
            if session.job is not None:
                session.job.cancel()
            shutil.rmtree(session.folder, ignore_errors=True)

    def close(self) -> None:
        """End all sessions."""
        for id_ in list(self._sessions):
            self.drop(id_)
        shutil.rmtree(self.folder, ignore_errors=True)


def as_info(session: Session) -> dict[str, Any]:
    """The state of a session, by name."""
    with session.lock:
        choices, result = session.choices, session.result
        names = choices.names()
        return {
            "id": session.id,
            "name": session.name,
            "rows": session.n_rows,
            "columns": list(session.table.columns),
            "preview": session.preview,
            "text_columns": list(
                session.corpus.columns if session.corpus else session.suggested_columns
            ),
            "labels": choices.labels,
            "suggested_labels": list(session.suggested_labels),
            "corrections": [
                {"row": row + 1, "label": names[label]}
                for row, label in choices.corrections.items()
            ],
            "result": None if result is None else result.number,
            "outdated": session.is_outdated,
            "can_undo": session.can_undo,
            "job": None if session.job is None else session.job.progress,
        }
