"""Names of a package that are imported when they are first used, so that `import ulr` stays light."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module


def lazy_names(package: str, **modules: str) -> Callable[[str], object]:
    """The ``__getattr__`` of a package: for each module, the names that it defines."""
    homes = {name: module for module, names in modules.items() for name in names.split()}

    def get(name: str) -> object:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(f"{package}.{homes[name]}"), name)
        setattr(sys.modules[package], name, value)  # the next use does not come here
        return value

    return get
