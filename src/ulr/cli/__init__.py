"""The command line: one file a command, each thin: parse, call, print."""

from __future__ import annotations

import signal
import sys
from typing import Annotated, NoReturn

import typer

from ulr import __version__
from ulr.cli.classify import classify
from ulr.cli.evaluate import evaluate
from ulr.cli.predict import predict

app = typer.Typer(
    name="ulr",
    help="Sort texts into categories by the categories' names, refined on your own texts.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command()(classify)
app.command()(predict)
app.command()(evaluate)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"ulr {__version__}")
        raise typer.Exit


@app.callback()
def _ulr(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Sort texts into categories by the categories' names, refined on your own texts."""


def _stop(signum: int, frame: object) -> NoReturn:
    """A polite kill ends like Ctrl-C: nothing is left behind."""
    raise KeyboardInterrupt


def main() -> None:
    """Run the command line."""
    signal.signal(signal.SIGTERM, _stop)
    try:
        app()
    except BrokenPipeError:
        # The reader of a pipe, e.g. `head`, had enough; that is no error.
        sys.stderr.close()
        sys.exit(0)
