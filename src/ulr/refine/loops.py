"""The innermost loops, compiled from `_loops.pyx` where a compiler was at hand at installation.

Whoever uses one can do the same in NumPy, more slowly: `compiled` is None where there are none.
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

FEW_CENTROIDS = 24  # that they are made for; with more, a BLAS is faster

compiled: ModuleType | None
try:
    compiled = import_module("ulr.refine._loops")
except ImportError:
    compiled = None


def do_all_of_a_pass(n_centroids: int) -> bool:
    """Whether there are loops that do all of a pass at once, faster than with a BLAS."""
    return compiled is not None and compiled.HAS_PRODUCTS and n_centroids <= FEW_CENTROIDS
