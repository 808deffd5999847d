"""What people see of a training run: its plan, a bar, a line for every validation, its end."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, TextIO

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

if TYPE_CHECKING:
    from ulr.train import Plan, Progress, TrainingReport


class Watch:
    """Shows a run: its plan, a bar on a terminal, and a line for every validation."""

    def __init__(self) -> None:
        self._console = Console(stderr=True, highlight=False, markup=False)
        self._bar = Bar(
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("instances, {task.fields[note]}"),
            TimeRemainingColumn(),
            console=self._console,
            transient=True,
            disable=not sys.stderr.isatty(),
        )
        self._task = self._bar.add_task("", total=None, note="")

    def __enter__(self) -> Watch:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def planned(self, plan: Plan) -> None:
        """The run is about to begin."""
        print_plan(plan, sys.stderr)
        self._bar.update(self._task, total=plan.settings.n_instances)

    def stepped(self, now: Progress) -> None:
        """A step is done."""
        note = f"{now.instances_per_second:,.1f}/s, loss {now.loss:.4f}"
        self._bar.update(self._task, completed=now.n_instances, note=note)
        if now.validated:
            self._console.print(
                f"step {now.step:,} of {now.n_steps:,}: ranking accuracy {now.accuracy:.1%}, {note}"
            )


def print_plan(plan: Plan, stream: TextIO) -> None:
    """What a run will do, for people."""
    from ulr.train.settings import duration

    settings = plan.settings
    print(
        f"{plan.base}, {plan.n_parameters / 1e6:.1f}M weights, {settings.objective}, on "
        f"{plan.device} ({plan.threads} threads, {plan.precision})",
        file=stream,
    )
    for each in plan.sources:
        files = each.files[0] if len(each.files) == 1 else f"{len(each.files)} files"
        rounds = each.share * (settings.n_instances or 0) / each.texts
        print(
            f"  {files}: {each.share:.1%} of the instances, {each.texts:,} texts (each used "
            f"{rounds:.2f} times), {each.categories:,} categories, negatives: {each.negatives}",
            file=stream,
        )
        if each.malformed:
            named = "; ".join(each.named)
            print(f"    {each.malformed:,} malformed rows left out: {named}", file=stream)
    print(
        f"{settings.n_instances:,} instances in {plan.n_steps:,} steps of {settings.batch_size}, "
        f"{settings.max_tokens} tokens, rate {settings.peak_rate:g}, {plan.n_held_out:,} texts "
        f"for validation, seed {settings.seed}",
        file=stream,
    )
    if plan.seconds is not None:
        speed = (settings.n_instances or 0) / plan.seconds
        print(f"Estimated time: {duration(plan.seconds)} ({speed:,.1f} instances/s)", file=stream)


def print_report(report: TrainingReport) -> None:
    """How a run went, for people."""
    from ulr.train.settings import duration

    print(
        f"{report.n_instances:,} instances in {duration(report.seconds)}, "
        f"{report.instances_per_second:,.1f} a second; loss {report.loss:.4f}."
    )
    if report.accuracy is not None and report.accuracy_before is not None:
        print(
            f"Ranking accuracy among {report.plan.n_ranked} categories: "
            f"{report.accuracy_before:.1%} before, {report.accuracy:.1%} after step "
            f"{report.best_step:,}, whose weights were kept."
        )
        if report.accuracy < report.accuracy_before:
            print("That is below the base: train on more instances, or with a higher --rate.")
    prefix = "cross" if report.plan.settings.objective == "single" else "hf"
    print(f"Written: {report.output}; use it with --encoder {prefix}:{report.output}")
