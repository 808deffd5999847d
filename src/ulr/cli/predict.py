"""`ulr predict`: new documents, classified with a saved model."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import typer

from ulr.cli.console import ProgressBar, plain_errors, print_json
from ulr.cli.groups import ADVANCED, option, option_groups
from ulr.cli.options import Explain, InputOptions, Json, OutputOptions, note_no_effect
from ulr.cli.summaries import print_predictions, print_summary

_name_of_file = re.compile(r"[/\\*]|\.[A-Za-z]\w{0,7}$").search


@option_groups
def predict(
    model: Annotated[
        str, typer.Argument(metavar="MODEL", help="Folder of --save-model.", show_default=False)
    ],
    inputs: InputOptions,
    output: OutputOptions,
    encoder: Annotated[
        str | None,
        option(
            ADVANCED,
            "--encoder",
            help="The encoder of the model, if it reads files outside installed packages.",
        ),
    ] = None,
    n_jobs: Annotated[
        int | None, option(ADVANCED, "--n-jobs", help="Threads. Default: every available core.")
    ] = None,
    cache: Annotated[
        str | None, option(ADVANCED, "--cache", help="Folder for vectors; see 'ulr cache'.")
    ] = None,
    explain: Explain = False,
    json: Json = False,
) -> None:
    """Give new documents a label with a model that 'ulr classify --save-model' saved.

    Instead of files, one text can be given.

    [bold]Examples[/bold]

    ulr classify news.csv -l "world, sports, business" -o labelled.csv --save-model news-model

    ulr predict news-model tomorrow.csv -o tomorrow-labelled.csv

    ulr predict news-model "The striker scored twice" --explain
    """
    with plain_errors():
        from ulr.classifier import explain as explain_texts
        from ulr.classifier import load

        fitted = load(model, encoder=encoder, cache=cache).with_settings(n_jobs=n_jobs)
        if len(inputs.file) == 1 and _is_text(inputs.file[0]):
            if output.output is not None:
                note_no_effect("-o", "on a text, whose label is printed")
            predictions = fitted.predict(inputs.file, n_threads=1)
            found = explain_texts(fitted, inputs.file, predictions=predictions) if explain else None
            print_predictions(fitted.names, predictions, json, found)
            return
        from ulr.jobs import predict as predict_documents

        target = output.checked(json, explain=explain)
        with ProgressBar() as progress, inputs.open() as documents:
            result = predict_documents(documents, fitted, target, progress)
        if json:
            print_json(result.as_dict())
        elif output.output != "-":
            print_summary(result)


def _is_text(argument: str) -> bool:
    """Whether an argument is a text: there is no such file, and it does not look like its name."""
    try:
        if argument == "-" or Path(argument).exists():
            return False
    except OSError:  # longer than any file name
        return True
    return " " in argument.strip() or _name_of_file(argument) is None
