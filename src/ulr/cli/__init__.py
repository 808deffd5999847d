"""The command line: one file per command, which parses, calls and prints."""

from __future__ import annotations

import contextlib
import io
import os
import signal
import sys
from typing import Annotated, NoReturn

import typer

from ulr import __version__
from ulr.cli.ask import ask
from ulr.cli.audit import audit
from ulr.cli.cache import cache
from ulr.cli.classify import classify
from ulr.cli.encoders import encoders
from ulr.cli.evaluate import evaluate
from ulr.cli.export import export
from ulr.cli.predict import predict
from ulr.cli.report import report
from ulr.cli.serve import serve
from ulr.cli.suggest import suggest
from ulr.cli.train import train_encoder
from ulr.cli.update import update

app = typer.Typer(
    name="ulr",
    help="Classify texts by the names of categories, refined on your own texts.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command()(classify)
app.command()(predict)
app.command()(update)
app.command()(evaluate)
app.command()(report)
app.command()(serve)
app.command()(ask)
app.command()(audit)
app.command()(suggest)
app.add_typer(encoders, name="encoders")
app.command()(cache)
app.command()(export)
app.command("train")(train_encoder)


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
    """Classify texts by the names of categories, refined on your own texts."""


def _stop(signum: int, frame: object) -> NoReturn:
    """End a SIGTERM like Ctrl-C, so that no partial file is left."""
    raise KeyboardInterrupt


def main() -> None:
    """Run the command line."""
    signal.signal(signal.SIGTERM, _stop)
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:  # the process was started without this stream
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A locale may have no █ or →.
        sys.stdout.reconfigure(errors="replace")
    try:
        app()
    except BrokenPipeError:
        # The reader of a pipe, such as `head`, has closed it; that is no error.
        sys.stderr.close()
        sys.exit(0)
    except OSError as error:  # help on a full disk; commands have an answer of their own
        with contextlib.suppress(OSError):
            print(f"ulr: {error.strerror or error}.", file=sys.stderr)
        os._exit(1)  # without another try to print what is left
