"""The parameters of one class as those of another, so that they are declared once."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec

P = ParamSpec("P")
Init = Callable[..., None]


def parameters_of(
    source: Callable[P, object],
) -> Callable[[Init], Callable[Concatenate[Any, P], None]]:
    """Give an ``__init__`` the parameters of another class, for scikit-learn and type checkers."""

    def decorate(init: Init) -> Callable[Concatenate[Any, P], None]:
        own = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
        parameters = [own, *inspect.signature(source).parameters.values()]
        init.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        return init

    return decorate
