"""`ulr audit`: what the categories depend on, when labels can be worded in several ways."""

from __future__ import annotations

from typing import Annotated

import typer

from ulr.cli import options
from ulr.cli.audited import print_audit
from ulr.cli.console import ProgressBar, plain_errors, print_json


def audit(
    file: options.File,
    labels: options.Labels,
    wordings: Annotated[
        str,
        typer.Option(
            "--wordings",
            help="'combinations' of the labels' phrases, or a file of whole sets, "
            "'phrase; phrase' a line in the order of the labels.",
        ),
    ] = "combinations",
    truth: Annotated[
        str | None,
        typer.Option(
            "--truth",
            help="Column of the true label names, used only to report.",
            show_default=False,
        ),
    ] = None,
    plot: Annotated[
        str | None,
        typer.Option("--plot", help="Picture to draw, .png, .svg or .pdf.", show_default=False),
    ] = None,
    text_column: options.TextColumns = None,
    sample: options.Sample = None,
    seed: options.Seed = 0,
    method: options.Method = "auto",
    prior: options.Prior = "estimate",
    distance: options.Distance = "auto",
    encoder: options.Encoder = "static",
    template: options.Template = None,
    expand: options.Expand = None,
    extra_labels: options.ExtraLabels = None,
    extra_texts: options.ExtraTexts = None,
    examples: options.Examples = None,
    cache: options.Cache = None,
    work: Annotated[
        str | None,
        typer.Option(
            "--work",
            help="Folder to keep finished sets in until the audit is done; by default in the "
            "user's cache folder. A killed audit goes on from there.",
            show_default=False,
        ),
    ] = None,
    force: options.Force = False,
    json: options.Json = False,
    format: options.Format = None,
    encoding: options.Encoding = "utf-8",
    delimiter: options.Delimiter = None,
    no_header: options.NoHeader = False,
) -> None:
    """See which wordings of the labels the result depends on, without any labelled document.

    Every set of one phrase a label is refined on the documents. Reported are how far the sets
    agree before and after refinement, which label and which phrase cause disagreement, which
    documents flip, which labels compete, and a set to use. An audit that was stopped goes on where
    it was when the same command is given again.

    [bold]Examples[/bold]

    ulr audit news.csv --labels labels.yaml --plot audit.png

    ulr audit test.csv --no-header -t c2 -t c3 -l labels.yaml --truth c1 --method ulr --json
    """
    chosen = locals()
    with plain_errors("what is finished is kept; the same command goes on from there"):
        from ulr.jobs import AuditOutput, audit_file

        with ProgressBar() as progress, options.opened(chosen, progress.preparing) as given:
            report = audit_file(
                given.source,
                given.columns,
                given.classifier,
                progress,
                given.support,
                truth,
                AuditOutput(plot, force, work),
            )
        if json:
            print_json(report.as_dict())
        else:
            print_audit(report)
