"""What people see: progress, summaries and errors."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)
from rich.table import Table as RichTable
from rich.text import Text

from ulr.errors import UlrError

if TYPE_CHECKING:
    from ulr.encoders import EncoderKind
    from ulr.encoders.cache import CacheEntry
    from ulr.jobs import EvaluationReport, JobReport, ShownDocument
    from ulr.metrics import Evaluation
    from ulr.refine import Pass

_WIDEST_CONFUSION = 12


@contextlib.contextmanager
def plain_errors(when_stopped: str = "no file was written") -> Iterator[None]:
    """One sentence and a non-zero exit for what a user can mend, and for Ctrl-C."""
    try:
        yield
        sys.stdout.flush()
    except UlrError as error:
        print(f"ulr: {error}", file=sys.stderr)
        raise typer.Exit(1) from None
    except KeyboardInterrupt:
        print(f"ulr: stopped; {when_stopped}.", file=sys.stderr)
        raise typer.Exit(130) from None
    except BrokenPipeError:
        # The reader of a pipe, e.g. `head`, had enough; that is no error.
        _drop_output()
        raise typer.Exit(0) from None
    except OSError as error:
        # A full disk, a name too long: in the system's own words.
        place = f"{error.filename}: " if error.filename else ""
        print(f"ulr: {place}{error.strerror or error}.", file=sys.stderr)
        _drop_output()
        raise typer.Exit(1) from None


def _drop_output() -> None:
    """Let go of what could not be printed; Python would try, and complain, once more at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


class ProgressBar:
    """A `Listener` that draws a bar, on a terminal only."""

    def __init__(self) -> None:
        self._progress = Progress(
            SpinnerColumn(),
            TextColumn("{task.description:<10}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[note]}"),
            TimeRemainingColumn(),
            console=Console(stderr=True),
            transient=True,
            disable=not sys.stderr.isatty(),
        )
        self._task: TaskID | None = None
        self._done, self._unit = 0, "documents"

    def __enter__(self) -> ProgressBar:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def stage(self, name: str, total: int | None, unit: str = "documents") -> None:
        """Begin another bar."""
        if self._task is not None:
            self._progress.update(self._task, total=self._done, completed=self._done)
        self._done, self._unit = 0, unit
        self._task = self._progress.add_task(name, total=total, note=unit)

    def preparing(self, done: int, total: int | None) -> None:
        """A file that an encoder needs is being read, in bytes or in articles."""
        if self._task is None:
            self.stage("Preparing", total)
        if self._task is not None:
            self._done = done
            self._progress.update(self._task, completed=done, note="for the encoder")

    def advance(self, count: int) -> None:
        """Move the bar, and say how fast."""
        if self._task is not None:
            self._done += count
            self._progress.update(self._task, advance=count)
            speed = self._progress.tasks[-1].speed
            note = f"{self._unit}, {speed:,.0f}/s" if speed else self._unit
            self._progress.update(self._task, note=note)

    def passed(self, done: Pass) -> None:
        """A pass of the refinement."""
        if done.iteration == 0:
            self.stage("Refining", None)
        if self._task is not None:
            self._done += 1
            note = (
                f"passes, {done.changed:,} changed, {done.skipped:,} skipped, "
                f"objective {done.objective:.4f}"
            )
            self._progress.update(self._task, advance=1, note=note)


def print_json(report: dict[str, Any]) -> None:
    """The summary for programs."""
    ascii_only = sys.stdout.encoding.lower() != "utf-8"
    print(json.dumps(report, indent=1, ensure_ascii=ascii_only))


def print_summary(report: JobReport) -> None:
    """The summary of a job for people."""
    console = new_console()
    console.print(_headline(report), end="\n\n")
    console.print(_counts(report))
    console.print()
    if report.moved_documents:
        console.print("Moved by refinement, the surest first:", style="bold")
        _print_documents(console, report.moved_documents, with_unrefined=True)
    console.print("Least certain:", style="bold")
    _print_documents(console, report.least_certain, with_unrefined=False)
    if report.output is None:
        console.print("Nothing was written; add -o OUT.csv to keep the categories.")
    elif report.output != "-":
        console.print(f"Written: {report.output}")


def print_evaluation(report: EvaluationReport) -> None:
    """The figures of an evaluation for people."""
    console = new_console()
    console.print(_headline(report.job), end="\n\n")
    if report.without_truth:
        console.print(
            f"{report.without_truth:,} documents have no truth and are not in the figures."
        )
    for table in (
        _overall(report),
        _per_class(report),
        _confusion(report.before, "by name: true"),
        _confusion(report.after, "refined: true"),
    ):
        console.print(table)
        console.print()
    if report.job.moved_documents:
        console.print("Moved by refinement, the surest first:", style="bold")
        _print_documents(console, report.job.moved_documents, with_unrefined=True)


class _Console(Console):
    """Leaves a closed pipe to `plain_errors`; Rich would exit with 1."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


def print_encoders(kinds: dict[str, EncoderKind]) -> None:
    """The encoders for people."""
    table = plain_table("encoder", ">dims", ">MB", "licence", "installed", "what it is")
    for name, kind in kinds.items():
        there = "yes" if kind.installed else kind.install
        figures = (f"{figure:,}" if figure else "" for figure in (kind.n_dims, kind.megabytes))
        ways = "\n".join(kind.ways(name))
        table.add_row(ways, *figures, kind.licence, there, kind.about)
    new_console().print(table)


def print_cache(entries: list[CacheEntry], cleared: bool) -> None:
    """What a cache holds, or held, for people."""
    table = plain_table(">texts", ">dims", ">MB", ">damaged MB", "encoder")
    for entry in entries:
        figures = f"{entry.megabytes:,.1f}", f"{entry.damaged_megabytes:,.1f}"
        table.add_row(
            f"{entry.texts:,}", str(entry.dimensions or ""), *figures, Text(entry.encoder)
        )
    new_console().print(table if entries else "The cache is empty.")
    if entries and cleared:
        new_console().print("All of it is removed.")


def new_console() -> Console:
    """A console for people: the width of the terminal, nothing interpreted."""
    # Text piped into a file is not cut to the width of a terminal that is not there.
    return _Console(
        width=None if sys.stdout.isatty() else 120, highlight=False, emoji=False, markup=False
    )


def plain_table(*columns: str) -> RichTable:
    """A table without lines; a column whose name begins with > is aligned to the right."""
    table = RichTable(box=None, pad_edge=False, header_style="bold")
    for name in columns:
        table.add_column(name.removeprefix(">"), justify="right" if name[:1] == ">" else "left")
    return table


def _headline(report: JobReport) -> str:
    parts = [f"{report.documents:,} documents, {len(report.labels)} labels"]
    if report.moved is not None and report.iterations is not None:
        parts.append(
            f"refinement moved {report.moved:,} ({report.moved / report.documents:.1%}) in "
            f"{report.iterations} passes"
        )
        if not report.converged and report.iterations > 1:
            parts.append("stopped at the limit of passes before it settled")
    if report.wordings is not None:
        sets = f"{report.wordings:,} sets of names decide together"
        if report.possible_wordings != report.wordings:
            sets += f", drawn from {report.possible_wordings:,}"
        parts.append(sets)
    for count, what in (
        (report.examples, "labelled examples"),
        (report.extra_texts, "extra texts"),
        (report.extra_labels, "extra labels"),
    ):
        if count:
            parts.append(f"{count:,} {what}")
    parts.append(f"{report.seconds:.1f} s")
    if report.empty_documents:
        parts.append(f"{report.empty_documents:,} empty")
    if report.unknown_documents:
        parts.append(f"{report.unknown_documents:,} without a word that the encoder knows")
    if report.malformed_lines:
        parts.append(f"{report.malformed_lines:,} malformed lines of the word file left out")
    if report.truncated_documents:
        parts.append(f"{report.truncated_documents:,} cut to the encoder's limit")
    return "; ".join(parts) + "."


def _counts(report: JobReport) -> RichTable:
    refined = report.moved is not None
    figures = [">by name", ">refined"] if refined else [">documents"]
    table = plain_table("label", *figures, "")
    most = max(each.after for each in report.labels) or 1
    for each in report.labels:
        bar = "█" * round(24 * each.after / most)
        before = [f"{each.before:,}"] if refined else []
        table.add_row(Text(each.label), *before, f"{each.after:,}", bar)
    return table


def _print_documents(
    console: Console, documents: tuple[ShownDocument, ...], with_unrefined: bool
) -> None:
    for each in documents:
        change = f"{each.unrefined} → {each.label}" if with_unrefined else each.label
        console.print(f"  row {each.row}, {change} ({each.confidence:.2f}): {each.text}")


def _overall(report: EvaluationReport) -> RichTable:
    table = plain_table("", ">by name", ">refined", ">gain")
    for name, before, after in (
        ("accuracy", report.before.accuracy, report.after.accuracy),
        ("macro-F1", report.before.macro_f1, report.after.macro_f1),
    ):
        gain = f"{100 * (after - before):+.1f}"
        table.add_row(name, f"{100 * before:.1f} %", f"{100 * after:.1f} %", gain)
    table.add_row("calibration error", "", f"{100 * report.calibration_error:.1f} %", "")
    return table


def _per_class(report: EvaluationReport) -> RichTable:
    table = plain_table("label", ">documents", ">precision", ">recall", ">F1", ">F1 by name")
    for before, after in zip(report.before.classes, report.after.classes, strict=True):
        figures = (after.precision, after.recall, after.f1, before.f1)
        table.add_row(
            Text(after.label),
            f"{after.documents:,}",
            *(f"{100 * figure:.1f}" for figure in figures),
        )
    return table


def _confusion(evaluation: Evaluation, corner: str) -> RichTable:
    """True labels in rows, predicted ones in columns; for many labels, the worst pairs only."""
    names = [each.label for each in evaluation.classes]
    if len(names) > _WIDEST_CONFUSION:
        return _worst_pairs(evaluation, names, corner)
    table = plain_table(f"{corner} \\ predicted")
    for name in names:
        table.add_column(Text(name), justify="right", max_width=12, overflow="fold")
    for i, name in enumerate(names):
        cells = [
            Text(f"{count:,}", style="bold" if i == j else "")
            for j, count in enumerate(evaluation.confusion[i].tolist())
        ]
        table.add_row(Text(name), *cells)
    return table


def _worst_pairs(evaluation: Evaluation, names: list[str], corner: str) -> RichTable:
    table = plain_table(f"most confused {corner}", "predicted", ">documents")
    pairs = sorted(
        (-int(evaluation.confusion[i, j]), i, j)
        for i in range(len(names))
        for j in range(len(names))
        if i != j and evaluation.confusion[i, j]
    )
    for count, i, j in pairs[:_WIDEST_CONFUSION]:
        table.add_row(Text(names[i]), Text(names[j]), f"{-count:,}")
    return table
