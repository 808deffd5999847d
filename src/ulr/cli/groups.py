"""Groups of options: a command takes dataclasses of options as parameters.

`option_groups` replaces each of them by its options for typer.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import MISSING, fields, is_dataclass
from typing import Any, get_type_hints

import typer

INPUT, LABELS, REFINEMENT = "Input", "Labels", "Refinement"
OUTPUT, CLUSTER, ADVANCED = "Output", "Cluster", "Advanced"
LANGUAGE_MODEL = "Language model"


def option(panel: str, *names: str, help: str, **settings: Any) -> Any:
    """An option in a panel of the help; its name is that of the parameter, unless given."""
    return typer.Option(*names, help=help, rich_help_panel=panel, **settings)


def option_groups(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of its parameters that are dataclasses of options."""
    hints = get_type_hints(command, include_extras=True)
    groups: dict[str, Any] = {}
    parameters: dict[str, inspect.Parameter] = {}
    for parameter in inspect.signature(command).parameters.values():
        kind = hints[parameter.name]
        if not is_dataclass(kind):
            own = parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY, annotation=kind)
            parameters[parameter.name] = own
            continue
        groups[parameter.name] = kind
        kinds = get_type_hints(kind, include_extras=True)
        for each in fields(kind):
            parameters[each.name] = inspect.Parameter(
                each.name,
                inspect.Parameter.KEYWORD_ONLY,
                default=inspect.Parameter.empty if each.default is MISSING else each.default,
                annotation=kinds[each.name],
            )

    @functools.wraps(command)
    def run(**given: Any) -> None:
        for name, kind in groups.items():
            given[name] = kind(**{each.name: given.pop(each.name) for each in fields(kind)})
        command(**given)

    run.__signature__ = inspect.Signature(list(parameters.values()))  # type: ignore[attr-defined]
    run.__annotations__ = {name: each.annotation for name, each in parameters.items()}
    return run
