"""`ulr cache`: what a cache of vectors holds, and how to empty it."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from ulr.cli.console import plain_errors, print_json
from ulr.cli.options import Json
from ulr.cli.summaries import print_cache


def cache(
    folder: Annotated[
        str,
        typer.Argument(metavar="DIR", help="Folder given to --cache.", show_default=False),
    ],
    empty: Annotated[bool, typer.Option("--clear", help="Remove the vectors in it.")] = False,
    json: Json = False,
) -> None:
    """Show how many texts of which encoders a cache holds, every vector checked; or clear it.

    [bold]Examples[/bold]

    ulr classify news.csv -l "world, sports" --encoder minilm --cache vectors -o labelled.csv

    ulr cache vectors

    ulr cache vectors --clear
    """
    with plain_errors():
        from ulr.encoders import clear_cache, inspect_cache

        entries = inspect_cache(folder)
        if empty:
            clear_cache(folder)
        if json:
            print_json({"cleared": empty, "encoders": [asdict(entry) for entry in entries]})
        else:
            print_cache(entries, cleared=empty)
