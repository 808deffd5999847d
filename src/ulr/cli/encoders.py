"""`ulr encoders`: what turns texts into vectors, what of it is available, and downloads."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ulr.cli.console import ProgressBar, plain_errors, print_json
from ulr.cli.options import Json
from ulr.cli.summaries import print_encoders

encoders = typer.Typer()


@encoders.callback(invoke_without_command=True)
def show(context: typer.Context, json: Json = False) -> None:
    """List the encoders, whether they are available, and the commands that make them so.

    [bold]Examples[/bold]

    ulr encoders

    ulr encoders download bge-small

    ulr classify news.csv -l "world, sports" --encoder minilm -o labelled.csv

    ulr classify news.csv -l "world, sports" --encoder glove:glove.840B.300d.zip -o labelled.csv

    ulr classify news.csv -l "world, sports" --encoder onnx:thenlper/gte-base -o labelled.csv
    """
    if context.invoked_subcommand is not None:
        return
    with plain_errors():
        from ulr.encoders import ENCODERS

        if json:
            print_json(
                {
                    name: {
                        "specs": list(kind.specs(name)),
                        "about": kind.about,
                        "dimensions": kind.n_dims,
                        "megabytes": kind.megabytes,
                        "licence": kind.licence,
                        "languages": list(kind.languages),
                        "installed": kind.installed,
                        "install": kind.install,
                    }
                    for name, kind in ENCODERS.items()
                }
            )
        else:
            print_encoders(ENCODERS)


@encoders.command()
def download(
    name: Annotated[str, typer.Argument(help="Name of the model, as 'ulr encoders' lists it.")],
    source: Annotated[
        Path | None,
        typer.Option(
            "--from",
            help="Folder with the files of the model, where the hub cannot be reached.",
            exists=True,
            file_okay=False,
        ),
    ] = None,
) -> None:
    """Put a known model into the user's cache folder.

    It is downloaded from the Hugging Face hub at a fixed commit, or copied from a folder. Its files
    are known by their SHA-256; others are refused.

    [bold]Examples[/bold]

    ulr encoders download bge-small

    ulr encoders download bge-small --from /media/stick/models
    """
    with plain_errors("nothing was downloaded"):
        from ulr.encoders import download_model

        with ProgressBar() as progress:
            folder, origin = download_model(name, source, progress)
        print(f"{name} was taken from {origin} to {folder}.")
