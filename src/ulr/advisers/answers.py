"""Answers of language models on disk, so that a question is never paid for twice.

Keys are hashes of model and question; the documents themselves are not stored.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import threading
import weakref
from pathlib import Path
from typing import Any

from ulr.errors import AdviserError

_DATABASE = "answers.sqlite"
_SCHEMA = """
PRAGMA journal_mode = WAL;
CREATE TABLE IF NOT EXISTS answers (key BLOB PRIMARY KEY, answer TEXT NOT NULL) WITHOUT ROWID;
"""
_BUSY_SECONDS = 60.0


class AnswerCache:
    """Answers by model and question, in an SQLite database that processes and threads can share.

    Parameters
    ----------
    folder
        Where the database is; created if it does not exist.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     cache = AnswerCache(folder)
    ...     cache.put("model", "Is this sports?", None, "yes")
    ...     print(cache.get("model", "Is this sports?", None), cache.get("other", "Is …", None))
    ...     cache.close()
    yes None
    """

    def __init__(self, folder: str | Path) -> None:
        self._path, self._lock = Path(folder) / _DATABASE, threading.Lock()
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._database = sqlite3.connect(
                self._path,
                timeout=_BUSY_SECONDS,
                isolation_level=None,  # each answer is committed when it comes
                check_same_thread=False,
            )
            weakref.finalize(self, self._database.close)
            self._database.executescript(_SCHEMA)
        except (OSError, sqlite3.Error) as failure:
            raise self._error(failure) from failure

    def get(self, model: str, prompt: str, schema: Any) -> str | None:
        """The answer to a question, None where it was not asked yet."""
        found = self._execute(
            "SELECT answer FROM answers WHERE key = ?", _key(model, prompt, schema)
        )
        return found[0][0] if found else None

    def put(self, model: str, prompt: str, schema: Any, answer: str) -> None:
        """Keep an answer."""
        key = _key(model, prompt, schema)
        self._execute("INSERT OR REPLACE INTO answers VALUES (?, ?)", key, answer)

    def close(self) -> None:
        """Close the database."""
        with self._lock:
            self._database.close()

    def _execute(self, statement: str, *values: Any) -> list[Any]:
        try:
            with self._lock:
                return self._database.execute(statement, values).fetchall()
        except sqlite3.Error as failure:
            raise self._error(failure) from failure

    def _error(self, failure: Exception) -> AdviserError:
        code = getattr(failure, "errno", None)
        reason = str(failure) if code is None else os.strerror(code)
        return AdviserError(
            f"the cache of answers {self._path} cannot be used: {reason}. Remove it, or choose "
            "another folder with --cache."
        )


def _key(model: str, prompt: str, schema: Any) -> bytes:
    question = json.dumps([model, prompt, schema], sort_keys=True)
    return hashlib.sha256(question.encode()).digest()
