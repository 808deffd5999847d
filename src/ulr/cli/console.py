"""The terminal: errors, progress bars, consoles and tables."""

from __future__ import annotations

import contextlib
import json
import os
import re
import sys
import warnings
from collections.abc import Iterator
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import typer

from ulr.errors import ParameterError, UlrError, UlrWarning, one_line
from ulr.files import file_state

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress, TaskID
    from rich.table import Table as RichTable


def note(sentence: object) -> None:
    """Print a sentence for the user beside the output."""
    print(f"ulr: {one_line(sentence)}", file=sys.stderr)


class WatchedOutputs:
    """Files and folders that a command writes, to say whether they were when it is stopped."""

    def __init__(self) -> None:
        self._before: dict[str, object] = {}

    def watch(self, *names: str | None) -> None:
        """Remember what files and folders are before the command writes them."""
        for name in names:
            if name is not None and name != "-":
                self._before[name] = file_state(name)

    def written(self) -> list[str]:
        """Names of those that have changed."""
        return [name for name, before in self._before.items() if file_state(name) != before]


@contextlib.contextmanager
def plain_errors(when_stopped: str = "no file was written") -> Iterator[WatchedOutputs]:
    """One sentence and a non-zero exit for errors that a user can correct, and for Ctrl-C."""
    outputs = WatchedOutputs()
    try:
        with _plain_warnings():
            yield outputs
        sys.stdout.flush()
    except ParameterError as error:
        note(_with_options(str(error)))
        raise typer.Exit(1) from None
    except UlrError as error:
        note(error)
        raise typer.Exit(1) from None
    except KeyboardInterrupt:
        names = " and ".join(outputs.written())
        note(f"stopped after {names} was written." if names else f"stopped; {when_stopped}.")
        raise typer.Exit(130) from None
    except BrokenPipeError:
        # The reader of a pipe, such as `head`, has closed it; that is no error.
        _discard_output()
        raise typer.Exit(0) from None
    except MemoryError:
        note("there is not enough memory for this.")
        raise typer.Exit(1) from None
    except OSError as error:
        # A full disk, a name that is too long: in the words of the system.
        place = f"{error.filename}: " if error.filename else ""
        note(f"{place}{error.strerror or error}.")
        _discard_output()
        raise typer.Exit(1) from None


@contextlib.contextmanager
def _plain_warnings() -> Iterator[None]:
    """Warnings of `ulr` as one sentence each, without the line of code that gave them."""
    with warnings.catch_warnings():
        others = warnings.showwarning

        def show(message: Warning | str, category: type[Warning], *where: Any) -> None:
            if issubclass(category, UlrWarning):
                note(message)
            else:
                others(message, category, *where)

        warnings.showwarning = show  # type: ignore[assignment]
        yield


def _with_options(message: str) -> str:
    """A message about a parameter, its first word, with the options that set parameters."""
    from ulr.classifier import Settings

    others = {"multilabel": "--multi", "none_share": "--none", "random_state": "--seed"}
    names = "|".join(each.name for each in fields(Settings) if "_" in each.name)
    return re.sub(
        rf"^\w+|\b({names})\b",
        lambda found: others.get(found[0], "--" + found[0].replace("_", "-")),
        message,
    )


def _discard_output() -> None:
    """Discard what could not be printed; Python would try again at exit, and complain."""
    with contextlib.suppress(OSError):  # a stream in memory has no descriptor
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


class ProgressBar:
    """Progress of a job as a bar for each stage, on a terminal only; see `ulr.progress`."""

    def __init__(self) -> None:
        self._progress: Progress | None = _new_progress() if sys.stderr.isatty() else None
        self._task: TaskID | None = None
        self._done, self._unit = 0, "documents"

    def __enter__(self) -> ProgressBar:
        if self._progress is not None:
            self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._progress is not None:
            self._progress.stop()

    def stage(self, name: str, total: int | None = None, unit: str = "documents") -> None:
        """Complete the bar of the last stage and begin another."""
        if self._progress is None:
            return
        if self._task is not None:
            self._progress.update(self._task, total=self._done, completed=self._done)
        self._done, self._unit = 0, unit
        self._task = self._progress.add_task(name, total=total, note=unit)

    def advance(self, count: int = 1) -> None:
        """Move the bar, and show the speed."""
        if self._progress is None or self._task is None:
            return
        self._done += count
        self._progress.update(self._task, advance=count)
        speed = self._progress.tasks[-1].speed
        note = f"{self._unit}, {speed:,.0f}/s" if speed else self._unit
        self._progress.update(self._task, note=note)


def _new_progress() -> Progress:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        SpinnerColumn,
        TextColumn,
        TimeRemainingColumn,
    )

    return Progress(
        SpinnerColumn(),
        TextColumn("{task.description:<10}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[note]}"),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    )


def print_json(report: Any) -> None:
    """Print a report for programs."""
    ascii_only = sys.stdout.encoding.lower() != "utf-8"
    print(json.dumps(report, indent=1, ensure_ascii=ascii_only))


def new_console() -> Console:
    """A console of the width of the terminal, which interprets no markup."""
    from rich.console import Console

    class PipeConsole(Console):
        """Leaves a closed pipe to `plain_errors`; Rich would exit with 1."""

        def on_broken_pipe(self) -> None:
            raise BrokenPipeError

    # Text that is piped into a file is not cut to the width of a terminal.
    width = None if sys.stdout.isatty() else 120
    return PipeConsole(width=width, highlight=False, emoji=False, markup=False)


def plain_table(*columns: str) -> RichTable:
    """A table without lines; a column whose name begins with > is aligned to the right."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in columns:
        table.add_column(name.removeprefix(">"), justify="right" if name[:1] == ">" else "left")
    return table
