"""The commands and their options as Markdown, from the program itself."""

from __future__ import annotations

import re
from typing import Any

import typer

from ulr.cli import app


def markdown() -> str:
    """A section for each command, in the order of `ulr --help`."""
    sections = []
    for name, command in typer.main.get_command(app).commands.items():
        sections.append(_section(f"ulr {name}", command, "##"))
        for below, each in getattr(command, "commands", {}).items():
            sections.append(_section(f"ulr {name} {below}", each, "###"))
    return "\n".join(sections)


def _section(name: str, command: Any, level: str) -> str:
    text, _, examples = (command.help or "").partition("[bold]Examples[/bold]")
    parts = [f"{level} {name}", _plain(text)]
    if examples.strip():
        lines = [" ".join(each.split()) for each in examples.strip().split("\n\n")]
        parts.append("```text\n" + "\n".join(lines) + "\n```")
    groups: dict[str, list[str]] = {}
    for each in command.params:
        if each.name != "help" and not each.hidden:
            group = each.rich_help_panel or ("Options" if each.opts[0][0] == "-" else "Arguments")
            groups.setdefault(group, []).append(_row(each))
    parts += [f"| {group} | |\n|---|---|\n" + "\n".join(rows) for group, rows in groups.items()]
    return "\n\n".join(parts) + "\n"


def _row(parameter: Any) -> str:
    names = [parameter.metavar or parameter.name.upper()]
    if parameter.opts[0].startswith("-"):
        names = [*parameter.opts, *parameter.secondary_opts]
    text = _plain(parameter.help or "")
    if parameter.required:
        text += " Required."
    elif isinstance(parameter.default, (str, int, float)) and not isinstance(
        parameter.default, bool
    ):
        text += f" Default: `{parameter.default}`."
    return f"| {' '.join(f'`{name}`' for name in names)} | {text} |"


def _plain(text: str) -> str:
    """Help as Markdown: one line a paragraph, names of options and quoted values as code."""
    paragraphs = [" ".join(each.split()) for each in text.strip().split("\n\n")]
    text = re.sub(r"\[/?bold\]", "**", "\n\n".join(paragraphs))
    text = re.sub(r"(?<![\w`-])'([^'\n]+)'", r"`\1`", text)
    return re.sub(r"(?<![\w`-])(--[\w-]+)(?![^`]*`[^`]*$)", r"`\1`", text).replace("|", "\\|")
