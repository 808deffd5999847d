"""Every error a user can meet. Each message says what was expected, what came and what to do.

UlrError
└── InputError (also a ValueError): what was given cannot be used
    ├── ParameterError: a parameter of a classifier or a refinement
    ├── ArrayError: documents and labels as arrays
    ├── LabelError: names and phrases of labels
    ├── TextError: texts that are not texts
    ├── TableError: files of documents
    ├── EncoderError: an encoder, or the weights it needs
    ├── TrainingError: pairs, settings or checkpoints of a training run
    ├── ModelError: a saved model
    ├── AdviserError: a language model that advises, or its answers
    └── ClusterError: workers, or the folder of a job that they share

`UlrWarning` is the category of warnings.
"""

from __future__ import annotations

import json
from importlib import import_module
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

_MOST_SHOWN, _END_SHOWN = 1_000, 300  # characters of a message; what to do stands at its end


def one_line(message: object) -> str:
    r"""A message as one line of bounded length, whatever a file or a library put into it.

    Examples
    --------
    >>> from ulr.errors import one_line
    >>> one_line("a column 'first\nsecond'")
    "a column 'first second'"
    """
    text = str(message)
    if len(text) > _MOST_SHOWN:
        text = f"{text[: _MOST_SHOWN - _END_SHOWN]} … {text[-_END_SHOWN:]}"
    if text.isprintable():
        return text
    text = " ".join(text.splitlines())
    # Escape sequences could move the cursor; half a surrogate pair cannot be printed.
    return "".join(
        each if each.isprintable() else " " if each.isspace() else "\ufffd" for each in text
    )


class UlrError(Exception):
    """Anything that `ulr` raises on purpose; its message is one line."""

    def __str__(self) -> str:
        return one_line(super().__str__())


class InputError(UlrError, ValueError):
    """What was given cannot be used; the message says why and what would work."""


class ParameterError(InputError):
    """A parameter that cannot be used; its name is the first word of the message."""

    def __init__(self, parameter: str, problem: str) -> None:
        super().__init__(parameter, problem)
        self.parameter, self.problem = parameter, problem

    def __str__(self) -> str:
        return f"{self.parameter} {self.problem}"


class ArrayError(InputError):
    """Arrays that a refinement cannot start from."""


class LabelError(InputError):
    """Label names or phrases that cannot be used."""


class TextError(InputError):
    """Documents that are not texts."""


class TableError(InputError):
    """A file of documents that cannot be read or written."""


class EncoderError(InputError):
    """An encoder that cannot be loaded or gives something other than vectors."""


class TrainingError(InputError):
    """Pairs, settings or checkpoints that a training run cannot go on from."""


class ModelError(InputError):
    """A saved model that cannot be read or written."""


class AdviserError(InputError):
    """A language model that cannot be asked, or whose answers cannot be kept."""


class ClusterError(InputError):
    """Workers that cannot be used or reached, or a folder that holds another job."""


class UlrWarning(UserWarning):
    """A result that may be wrong, or a part of the work that could not be done."""


def install_command(extra: str) -> str:
    """The command that installs an extra, from where the package itself was installed."""
    from importlib import metadata  # which takes longer to load than all of this package

    try:
        origin = json.loads(metadata.distribution("ulr").read_text("direct_url.json") or "{}")
    except (metadata.PackageNotFoundError, ValueError):
        origin = {}
    source, option = "ulr", ""
    if str(origin.get("url", "")).startswith("file:"):  # a clone, or a wheel that was downloaded
        source = url2pathname(urlsplit(origin["url"]).path)
        option = "-e " if origin.get("dir_info", {}).get("editable") else ""
    return f"pip install {option}'{source}[{extra}]'"


def require(module: str, extra: str, error: type[InputError] = InputError) -> Any:
    """Import a module of an optional dependency, or name the extra that installs it."""
    try:
        return import_module(module)
    except ImportError as failure:
        missing = (failure.name or module).partition(".")[0]
        raise error(
            f"'{missing}' is not installed; install it with: {install_command(extra)}."
        ) from None
