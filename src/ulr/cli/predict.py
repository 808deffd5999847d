"""`ulr predict`: new documents, classified with a saved model."""

from __future__ import annotations

from typing import Annotated

import typer

from ulr.cli import options
from ulr.cli.console import ProgressBar, plain_errors, print_json, print_summary


def predict(
    model: Annotated[
        str,
        typer.Argument(metavar="MODEL", help="Folder that --save-model wrote.", show_default=False),
    ],
    file: options.File,
    output: options.OutputFile = None,
    text_column: options.TextColumns = None,
    prefix: options.Prefix = "ulr_",
    force: options.Force = False,
    cache: options.Cache = None,
    json: options.Json = False,
    format: options.Format = None,
    encoding: options.Encoding = "utf-8",
    delimiter: options.Delimiter = None,
    no_header: options.NoHeader = False,
) -> None:
    """Give new documents a category with a model that 'ulr classify --save-model' kept.

    [bold]Examples[/bold]

    ulr classify news.csv -l "world, sports, business" -o labelled.csv --save-model news-model

    ulr predict news-model tomorrow.csv -o tomorrow-labelled.csv
    """
    if json and output == "-":
        raise typer.BadParameter("--json and -o - both want standard output; choose one.")
    with plain_errors():
        from ulr.classifier import DatalessClassifier
        from ulr.jobs import Output, predict_file, text_columns
        from ulr.tables import open_table

        classifier = DatalessClassifier.load(model, cache=cache)
        how = options.table_format(format, encoding, delimiter, no_header)
        with ProgressBar() as progress, open_table(file, how) as source:
            report = predict_file(
                source,
                text_columns(source, text_column or []),
                classifier,
                Output(output, prefix, force),
                progress,
            )
        if json:
            print_json(report.as_dict())
        elif output != "-":
            print_summary(report)
