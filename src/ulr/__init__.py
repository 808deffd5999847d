"""Sort texts into categories by the categories' names, refined on your own unlabelled texts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ulr.errors import UlrError
from ulr.refine import Refinement, refine

if TYPE_CHECKING:
    from ulr.classifier import DatalessClassifier
    from ulr.encoders import load_encoder

__version__ = "0.1.0"

__all__ = [
    "DatalessClassifier",
    "Refinement",
    "UlrError",
    "load_encoder",
    "refine",
]

_LAZY = {"DatalessClassifier": "ulr.classifier", "load_encoder": "ulr.encoders"}


def __getattr__(name: str) -> object:
    """Load scikit-learn and the tokenizer only when they are used."""
    if name in _LAZY:
        from importlib import import_module

        return getattr(import_module(_LAZY[name]), name)
    raise AttributeError(f"module 'ulr' has no attribute {name!r}")
