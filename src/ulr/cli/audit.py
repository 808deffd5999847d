"""`ulr audit`: how much the labels depend on their phrases."""

from __future__ import annotations

from typing import Annotated

import typer

from ulr.cli import options
from ulr.cli.audit_output import print_audit
from ulr.cli.console import ProgressBar, plain_errors, print_json


def audit(
    file: options.Files,
    labels: options.Labels,
    phrasings: Annotated[
        str,
        typer.Option(
            "--phrasings",
            help="'combinations' of the phrases of the labels, or a file of sets, 'phrase; phrase' "
            "on each line in the order of the labels.",
            rich_help_panel=options.LABELS,
        ),
    ] = "combinations",
    sample: options.Sample = None,
    truth: Annotated[
        str | None,
        typer.Option(
            "--truth",
            help="Column of the true labels, used only for the figures.",
            show_default=False,
            rich_help_panel=options.LABELS,
        ),
    ] = None,
    plot: Annotated[
        str | None,
        typer.Option(
            "--plot",
            help="Picture to draw, .png, .svg or .pdf.",
            show_default=False,
            rich_help_panel=options.OUTPUT,
        ),
    ] = None,
    text_column: options.TextColumns = None,
    encoder: options.Encoder = "static",
    method: options.Method = "auto",
    prior: options.Prior = "estimate",
    examples: options.Examples = None,
    fit_sample: options.FitSample = "auto",
    json: options.Json = False,
    force: options.Force = False,
    work: Annotated[
        str | None,
        typer.Option(
            "--work",
            help="Folder of finished sets until the audit is done. Default: in the user's cache "
            "folder. A stopped audit continues from there.",
            show_default=False,
            rich_help_panel=options.ADVANCED,
        ),
    ] = None,
    format: options.Format = None,
    encoding: options.Encoding = None,
    delimiter: options.Delimiter = None,
    no_header: options.NoHeader = False,
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
    """Find out how much the labels of the documents depend on the phrases of the labels.

    Every set of one phrase per label is refined on the documents. The report says how far the sets
    agree before and after refinement, which label and which phrase cause disagreement, which
    documents change their label, which labels compete, and which set to use. No labelled documents
    are needed. A stopped audit continues when the same command is given again.

    [bold]Examples[/bold]

    ulr audit news.csv --labels labels.yaml --plot audit.png

    ulr audit test.csv --no-header -t c2 -t c3 -l labels.yaml --truth c1 --method ulr --json
    """
    chosen = locals()
    with plain_errors("finished sets are kept; the same command continues from there"):
        from ulr.jobs import AuditOutput, audit_file

        with ProgressBar() as progress, options.open_inputs(chosen, progress.preparing) as inputs:
            report = audit_file(
                inputs.table,
                inputs.columns,
                inputs.classifier,
                progress,
                inputs.support,
                truth,
                AuditOutput(plot, force, work),
            )
        if json:
            print_json(report.as_dict())
        else:
            print_audit(report)
