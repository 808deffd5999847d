"""Output of `ulr train`: plan, progress and report."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from ulr.cli.console import ProgressBar
    from ulr.train import TrainingPlan, TrainingProgress, TrainingReport


class TrainingDisplay:
    """Prints the plan and a line per validation, and moves a progress bar."""

    def __init__(self, bar: ProgressBar) -> None:
        self._bar = bar
        self._n_instances = 0

    def planned(self, plan: TrainingPlan) -> None:
        """Print the plan and begin the bar."""
        print_plan(plan, sys.stderr)
        self._bar.stage("Training", plan.settings.n_instances, "instances")

    def stepped(self, progress: TrainingProgress) -> None:
        """Show the progress after a step."""
        self._bar.advance(progress.n_instances - self._n_instances)
        self._n_instances = progress.n_instances
        note = f"{progress.instances_per_second:,.1f}/s, loss {progress.loss:.4f}"
        self._bar.note(f"instances, {note}")
        if progress.validated:
            print(
                f"step {progress.step:,} of {progress.n_steps:,}: ranking accuracy "
                f"{progress.accuracy:.1%}, {note}",
                file=sys.stderr,
            )


def print_plan(plan: TrainingPlan, stream: TextIO) -> None:
    """Print what a run will do."""
    from ulr.train.settings import duration

    settings = plan.settings
    lines = [
        f"{plan.base}, {plan.n_parameters / 1e6:.1f}M weights, {settings.objective}, on "
        f"{plan.device} ({plan.n_jobs} threads, {plan.precision})"
    ]
    for each in plan.sources:
        files = each.files[0] if len(each.files) == 1 else f"{len(each.files)} files"
        uses = each.share * (settings.n_instances or 0) / each.texts
        lines.append(
            f"  {files}: {each.share:.1%} of the instances, {each.texts:,} texts (each used "
            f"{uses:.2f} times), {each.categories:,} categories, negatives: {each.negatives}"
        )
        if each.malformed:
            lines.append(f"    {each.malformed:,} malformed rows ignored: {'; '.join(each.named)}")
    lines.append(
        f"{settings.n_instances:,} instances in {plan.n_steps:,} steps of {settings.batch_size}, "
        f"{settings.max_tokens} tokens, learning rate {settings.learning_rate:g}, "
        f"{plan.n_held_out:,} texts for validation, seed {settings.random_state}"
    )
    if plan.seconds is not None:
        speed = (settings.n_instances or 0) / plan.seconds
        lines.append(f"Estimated time: {duration(plan.seconds)} ({speed:,.1f} instances/s)")
    print("\n".join(lines), file=stream)


def print_report(report: TrainingReport) -> None:
    """Print the result of a run."""
    from ulr.train.settings import duration

    print(
        f"{report.n_instances:,} instances in {duration(report.seconds)}, "
        f"{report.instances_per_second:,.1f} per second; loss {report.loss:.4f}."
    )
    if report.accuracy is not None and report.accuracy_before is not None:
        print(
            f"Ranking accuracy among {report.plan.n_ranked} categories: "
            f"{report.accuracy_before:.1%} before, {report.accuracy:.1%} after step "
            f"{report.best_step:,}, whose weights were saved."
        )
        if report.accuracy < report.accuracy_before:
            print(
                "That is below the base: train on more instances, or with a higher --learning-rate."
            )
    prefix = "cross" if report.plan.settings.objective == "single" else "hf"
    print(f"Written: {report.output}; use it with --encoder {prefix}:{report.output}")
