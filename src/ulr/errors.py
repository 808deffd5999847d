"""Every error a user can meet. Each message says what was expected, what came and what to do.

UlrError
└── InputError (also a ValueError): what was given cannot be used
    ├── ArrayError: documents, labels or settings of a refinement
    ├── LabelError: names and phrases of labels
    ├── TextError: texts that are not texts
    ├── TableError: files of documents
    ├── EncoderError: an encoder, or the weights it needs
    ├── TrainingError: pairs, settings or checkpoints of a training run
    ├── ModelError: a saved model
    ├── AdviserError: a language model that advises, or its answers
    └── ClusterError: workers, or the folder of a job that they share
"""

from __future__ import annotations

from importlib import import_module
from typing import Any


class UlrError(Exception):
    """Anything that `ulr` raises on purpose."""


class InputError(UlrError, ValueError):
    """What was given cannot be used; the message says why and what would work."""


class ArrayError(InputError):
    """Arrays or settings that a refinement cannot start from."""


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


def install_command(extra: str) -> str:
    """The commands that install an extra, from the package index or in a clone."""
    return f"pip install 'ulr[{extra}]' (in a clone: pip install -e '.[{extra}]')"


def require(module: str, extra: str, error: type[InputError] = InputError) -> Any:
    """Import a module of an optional dependency, or name the extra that installs it."""
    try:
        return import_module(module)
    except ImportError as failure:
        missing = (failure.name or module).partition(".")[0]
        raise error(
            f"'{missing}' is not installed; install it with: {install_command(extra)}."
        ) from None
