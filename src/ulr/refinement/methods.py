"""The refinement methods by name: the only module that knows which there are."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any

from ulr.errors import ArrayError
from ulr.refinement import validation
from ulr.refinement.blocks import Blocks
from ulr.refinement.discriminant import DiscriminantOptions, fit_discriminant
from ulr.refinement.distances import DISTANCES
from ulr.refinement.paper import PaperOptions, fit_nearest, fit_paper
from ulr.refinement.result import Fitted, Problem


@dataclass(frozen=True)
class NoOptions:
    """Options of a method that has none."""

    def validate(self, n_labels: int) -> None:
        """Nothing to refuse."""


@dataclass(frozen=True)
class Method:
    """A way to refine labels."""

    fit: Callable[[Blocks, Problem, Any], Fitted]
    distances: tuple[str, ...]  # names of those that it can use
    options: type  # a dataclass with its options and their defaults
    version: int  # increased whenever its results change; part of the key of resumable work
    uses_words: bool = False  # whether it uses word counts


METHODS: dict[str, Method] = {
    "discriminant": Method(
        fit_discriminant, ("cosine",), DiscriminantOptions, version=8, uses_words=True
    ),
    "ulr": Method(fit_paper, tuple(DISTANCES), PaperOptions, version=1),
    "none": Method(fit_nearest, tuple(DISTANCES), NoOptions, version=1),
}
DEFAULT = "discriminant"


def choose_method(method: str, distance: str) -> str:
    """The method that ``auto`` stands for with a distance; refuses what does not go together."""
    validation.choice("distance", distance, DISTANCES)
    validation.choice("method", method, ["auto", *METHODS])
    if method == "auto":
        return DEFAULT if distance in METHODS[DEFAULT].distances else "ulr"
    if distance not in METHODS[method].distances:
        raise ArrayError(
            f"method {method!r} works with {', '.join(METHODS[method].distances)}; got distance "
            f"{distance!r}. Use method 'ulr', or leave the method out."
        )
    return method


def method_options(method: str, given: Mapping[str, Any]) -> Any:
    """The options of a method, with its defaults for those that are not given."""
    names = {name: [each.name for each in fields(m.options)] for name, m in METHODS.items()}
    for option in given:
        if option not in names[method]:
            others = [other for other in METHODS if option in names[other]]
            where = f"; it is an option of {', '.join(others)}" if others else ""
            raise ArrayError(
                f"method {method!r} has no option {option!r}{where}. "
                f"Its options: {', '.join(names[method]) or 'none'}."
            )
    return METHODS[method].options(**given)
