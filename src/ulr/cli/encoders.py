"""`ulr encoders`: what turns texts into vectors, and what of it is installed."""

from __future__ import annotations

from ulr.cli import options
from ulr.cli.console import plain_errors, print_json
from ulr.cli.summaries import print_encoders


def encoders(json: options.Json = False) -> None:
    """List the encoders: their size, licence, whether they are installed and how to install them.

    [bold]Examples[/bold]

    ulr encoders

    ulr classify news.csv -l "world, sports" --encoder minilm -o labelled.csv

    ulr classify news.csv -l "world, sports" --encoder glove:glove.840B.300d.zip -o labelled.csv

    ulr classify news.csv -l "world, sports" --encoder hf:roberta-base -o labelled.csv
    """
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
