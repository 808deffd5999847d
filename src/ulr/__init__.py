"""Classify texts by the names of categories, refined on your own unlabelled texts."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from ulr.errors import UlrError

if TYPE_CHECKING:
    from ulr.classifier import DatalessClassifier
    from ulr.encoders import load_encoder
    from ulr.refinement import Refinement, refine

__version__ = "0.1.0"

__all__ = [
    "DatalessClassifier",
    "Refinement",
    "UlrError",
    "load_encoder",
    "refine",
]

_MODULES = {
    "DatalessClassifier": "ulr.classifier",
    "Refinement": "ulr.refinement",
    "load_encoder": "ulr.encoders",
    "refine": "ulr.refinement",
}


def __getattr__(name: str) -> object:
    """Import NumPy, SciPy and scikit-learn only when they are used."""
    if name in _MODULES:
        return getattr(import_module(_MODULES[name]), name)
    raise AttributeError(f"module 'ulr' has no attribute {name!r}")
