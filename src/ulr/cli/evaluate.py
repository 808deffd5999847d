"""`ulr evaluate`: how good the categories are, where the truth is known."""

from __future__ import annotations

from typing import Annotated

import typer

from ulr.cli import options
from ulr.cli.console import ProgressBar, plain_errors, print_evaluation, print_json


def evaluate(
    file: options.File,
    labels: options.Labels,
    truth: Annotated[
        str,
        typer.Option(
            "--truth",
            help="Column of the true label names, used only to report.",
            show_default=False,
        ),
    ],
    text_column: options.TextColumns = None,
    method: options.Method = "auto",
    prior: options.Prior = "estimate",
    distance: options.Distance = "auto",
    encoder: options.Encoder = "static",
    template: options.Template = None,
    expand: options.Expand = None,
    wordings: options.Wordings = "average",
    sample: options.Sample = None,
    extra_labels: options.ExtraLabels = None,
    extra_texts: options.ExtraTexts = None,
    examples: options.Examples = None,
    seed: options.Seed = 0,
    cache: options.Cache = None,
    json: options.Json = False,
    format: options.Format = None,
    encoding: options.Encoding = "utf-8",
    delimiter: options.Delimiter = None,
    no_header: options.NoHeader = False,
) -> None:
    """Classify a file as 'ulr classify' does, then compare with the truth.

    Shows accuracy, macro-F1, the figures of each label and a confusion table, before and after
    refinement. The truth is never used to classify.

    [bold]Examples[/bold]

    ulr evaluate news.csv --labels "world, sports, business" --truth section

    ulr evaluate test.csv --no-header -t c2 -t c3 --truth c1 -l labels.txt --json
    """
    chosen = locals()
    with plain_errors():
        from ulr.jobs import evaluate_file

        with ProgressBar() as progress, options.opened(chosen, progress.preparing) as given:
            report = evaluate_file(
                given.source, given.columns, truth, given.classifier, progress, given.support
            )
        if json:
            print_json(report.as_dict())
        else:
            print_evaluation(report)
