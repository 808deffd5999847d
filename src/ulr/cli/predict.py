"""`ulr predict`: new documents, classified with a saved model."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from ulr.cli import options
from ulr.cli.console import ProgressBar, plain_errors, print_json, standard_output
from ulr.cli.summaries import print_predictions, print_summary


def predict(
    model: Annotated[
        str,
        typer.Argument(metavar="MODEL", help="Folder of --save-model.", show_default=False),
    ],
    file: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE...",
            help="Files as for 'ulr classify', or one text to classify.",
            show_default=False,
        ),
    ],
    output: options.OutputFile = None,
    text_column: options.TextColumns = None,
    encoder: Annotated[
        str | None,
        typer.Option(
            "--encoder",
            help="The encoder of the model, if it reads files outside installed packages.",
            show_default=False,
            rich_help_panel=options.ADVANCED,
        ),
    ] = None,
    json: options.Json = False,
    force: options.Force = False,
    prefix: options.Prefix = "ulr_",
    format: options.Format = None,
    encoding: options.Encoding = None,
    delimiter: options.Delimiter = None,
    no_header: options.NoHeader = False,
    n_jobs: options.NJobs = None,
    cache: options.Cache = None,
) -> None:
    """Give new documents a label with a model that 'ulr classify --save-model' saved.

    [bold]Examples[/bold]

    ulr classify news.csv -l "world, sports, business" -o labelled.csv --save-model news-model

    ulr predict news-model tomorrow.csv -o tomorrow-labelled.csv

    ulr predict news-model "The striker scored twice"
    """
    chosen = locals()
    with plain_errors():
        from ulr.persistence import load_model

        stdout = standard_output(output, json)
        loaded = load_model(model, encoder, cache)[0].with_n_jobs(n_jobs)
        if len(file) == 1 and _is_text(file[0]):
            if output is not None:
                options.note_no_effect("-o", "on a text, whose label is printed")
            print_predictions(loaded.names, loaded.predict(file), json)
            return
        from ulr.jobs.output import Output
        from ulr.jobs.predict import predict_file
        from ulr.jobs.support import text_columns
        from ulr.tables import open_table

        with (
            ProgressBar() as progress,
            open_table(file, options.table_format(chosen), sys.stdin.buffer) as table,
        ):
            options.note_unused_format(chosen, table)
            columns = text_columns(table, text_column or [])
            target = Output(output, prefix, force, stdout)
            report = predict_file(table, columns, loaded, target, progress)
        if json:
            print_json(report.as_dict())
        elif output != "-":
            print_summary(report)


def _is_text(argument: str) -> bool:
    """Whether an argument is a text rather than the name of a file: it has a space, and no file."""
    try:
        return argument != "-" and " " in argument.strip() and not Path(argument).exists()
    except OSError:  # longer than any file name
        return True
