"""`ulr evaluate`: how good the labels are, where the true ones are known."""

from __future__ import annotations

from typing import Annotated

import typer

from ulr.cli import options
from ulr.cli.console import ProgressBar, plain_errors, print_json
from ulr.cli.summaries import print_evaluation


def evaluate(
    file: options.Files,
    labels: options.Labels,
    truth: Annotated[
        str,
        typer.Option(
            "--truth",
            help="Column of the true labels, used only for the figures.",
            show_default=False,
            rich_help_panel=options.LABELS,
        ),
    ],
    text_column: options.TextColumns = None,
    encoder: options.Encoder = "static",
    method: options.Method = "auto",
    prior: options.Prior = "estimate",
    examples: options.Examples = None,
    fit_sample: options.FitSample = "auto",
    none_share: options.NoneShare = None,
    none_label: options.NoneLabel = "none of these",
    json: options.Json = False,
    format: options.Format = None,
    encoding: options.Encoding = None,
    delimiter: options.Delimiter = None,
    no_header: options.NoHeader = False,
    phrasings: options.Phrasings = "average",
    sample: options.Sample = None,
    template: options.Template = None,
    expand: options.Expand = None,
    extra_labels: options.ExtraLabels = None,
    extra_texts: options.ExtraTexts = None,
    distance: options.Distance = "auto",
    max_iter: options.MaxIter = 100,
    random_state: options.Seed = 0,
    n_jobs: options.NJobs = None,
    cache: options.Cache = None,
) -> None:
    """Classify a file as 'ulr classify' does, then compare with true labels.

    Prints accuracy, macro-F1, figures of each label and a confusion matrix, before and after
    refinement. True labels are compared ignoring case and surrounding blanks, and never used to
    classify.

    [bold]Examples[/bold]

    ulr evaluate news.csv --labels "world, sports, business" --truth section

    ulr evaluate test.csv --no-header -t c2 -t c3 --truth c1 -l labels.txt --json
    """
    chosen = locals()
    with plain_errors():
        from ulr.jobs import evaluate_file

        with ProgressBar() as progress, options.open_inputs(chosen, progress.preparing) as inputs:
            report = evaluate_file(
                inputs.table,
                inputs.columns,
                truth,
                inputs.classifier,
                progress,
                inputs.support,
            )
        if json:
            print_json(report.as_dict())
        else:
            print_evaluation(report)
