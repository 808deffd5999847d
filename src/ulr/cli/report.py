"""`ulr report`: a file and label names in, one HTML page about the result out."""

from __future__ import annotations

from typing import Annotated

import typer

from ulr.cli import options
from ulr.cli.console import ProgressBar, plain_errors, print_json
from ulr.cli.summaries import print_summary


def report(
    file: options.Files,
    labels: options.Labels,
    output: Annotated[
        str,
        typer.Option(
            "--output",
            "-o",
            help="HTML file for the report.",
            show_default=False,
            rich_help_panel=options.OUTPUT,
        ),
    ],
    truth: Annotated[
        str | None,
        typer.Option(
            "--truth",
            help="Column of the true labels, used only for figures.",
            show_default=False,
            rich_help_panel=options.LABELS,
        ),
    ] = None,
    text_column: options.TextColumns = None,
    encoder: options.Encoder = "static",
    method: options.Method = "auto",
    prior: options.Prior = "estimate",
    examples: options.Examples = None,
    fit_sample: options.FitSample = "auto",
    none_share: options.NoneShare = None,
    none_label: options.NoneLabel = "none of these",
    json: options.Json = False,
    force: options.Force = False,
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
    """Classify a file as 'ulr classify' does, and write a page about the result.

    The page is one HTML file with a map of the documents, what refinement changed, and documents
    of each label. It opens without a network and can be mailed. It contains the beginnings of at
    most 5,000 documents.

    [bold]Examples[/bold]

    ulr report news.csv --labels "world, sports, business" -o report.html

    ulr report test.csv -t title -t body -l labels.txt --truth section -o report.html
    """
    chosen = locals()
    with plain_errors():
        from dataclasses import replace

        from ulr.report import refuse_report, report_file

        refuse_report(output, force)
        with ProgressBar() as progress, options.open_inputs(chosen, progress.preparing) as inputs:
            page, job = report_file(
                inputs.table,
                inputs.columns,
                inputs.classifier,
                listener=progress,
                support=inputs.support,
                truth_column=truth,
            )
            page.write(output)
        job = replace(job, output=output)
        if json:
            print_json(job.as_dict())
        else:
            print_summary(job)
