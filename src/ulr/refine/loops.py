"""The innermost loops, compiled from `_loops.pyx` where a compiler was at hand at installation.

Whoever uses one can do the same in NumPy, more slowly: `compiled` is None where there are none.
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

compiled: ModuleType | None
try:
    compiled = import_module("ulr.refine._loops")
except ImportError:
    compiled = None
