"""Classify texts by the names of categories, refined on your own unlabelled texts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ulr.errors import UlrError, UlrWarning
from ulr.lazy import lazy_names

if TYPE_CHECKING:
    from ulr.classifier import ZeroShotClassifier
    from ulr.encoders import load_encoder
    from ulr.refinement import Refinement, refine

__version__ = "0.1.0"

__all__ = [
    "Refinement",
    "UlrError",
    "UlrWarning",
    "ZeroShotClassifier",
    "load_encoder",
    "refine",
]

__getattr__ = lazy_names(
    __name__,
    classifier="ZeroShotClassifier",
    encoders="load_encoder",
    refinement="Refinement refine",
)


def __dir__() -> list[str]:
    """The public names, before and after they are imported."""
    return [*__all__, "__version__"]
