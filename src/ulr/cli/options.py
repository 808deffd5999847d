"""The options that commands share, and what is made of them."""

from __future__ import annotations

from typing import Annotated

import typer

from ulr.tables import TableFormat

File = Annotated[
    str,
    typer.Argument(
        metavar="FILE",
        help="CSV, TSV, JSONL or Parquet file of documents, .gz too; - is standard input.",
        show_default=False,
    ),
]
Labels = Annotated[
    str,
    typer.Option(
        "--labels",
        "-l",
        help="The categories: 'world, sports, business', or a .txt, .json or .yaml file. "
        "'name: phrase; phrase' gives a name other words to go by.",
        show_default=False,
    ),
]
TextColumns = Annotated[
    list[str] | None,
    typer.Option(
        "--text-column",
        "-t",
        help="Column of the texts; repeat it to join several. By default 'text', or the only one.",
        show_default=False,
    ),
]
Encoder = Annotated[
    str, typer.Option("--encoder", help="What turns texts into vectors; see 'ulr encoders'.")
]
Method = Annotated[
    str,
    typer.Option("--method", help="'ulr' refines the labels on the texts; 'none' does not."),
]
Distance = Annotated[str, typer.Option("--distance", help="'cosine', 'l2' or 'dot'.")]
Template = Annotated[
    str | None,
    typer.Option("--template", help="A sentence around every phrase: 'This text is about {}.'"),
]
OutputFile = Annotated[
    str | None,
    typer.Option(
        "--output",
        "-o",
        help="Where to write the rows with their categories; - is standard output.",
        show_default=False,
    ),
]
Prefix = Annotated[str, typer.Option("--prefix", help="Beginning of the added columns' names.")]
Force = Annotated[bool, typer.Option("--force", help="Replace what is there already.")]
Json = Annotated[bool, typer.Option("--json", help="Print the summary as JSON.")]
Format = Annotated[
    str | None,
    typer.Option("--format", help="csv, tsv, jsonl or parquet, if the name does not say."),
]
Encoding = Annotated[str, typer.Option("--encoding", help="Of the input; output is UTF-8.")]
Delimiter = Annotated[
    str | None, typer.Option("--delimiter", help="Of a CSV file, e.g. ';'.", show_default=False)
]
NoHeader = Annotated[
    bool, typer.Option("--no-header", help="The CSV has no header; its columns are c1, c2, …")
]


def table_format(
    format_: str | None, encoding: str, delimiter: str | None, no_header: bool
) -> TableFormat:
    """How the input is to be read."""
    return TableFormat(format_, encoding, delimiter, not no_header)
