"""Options that several commands share, declared once, and the objects that they describe.

Names and defaults of the classifier's options are those of `Settings`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Annotated

import typer

from ulr.cli.console import note
from ulr.cli.groups import ADVANCED, INPUT, LABELS, OUTPUT, option
from ulr.errors import InputError

if TYPE_CHECKING:
    from ulr.classifier import Fitted
    from ulr.cli.classifier_options import ClassifierOptions
    from ulr.jobs import Documents, Output
    from ulr.tables import Table, TableFormat


_MOST_NOTES = 3  # on files


@dataclass(frozen=True)
class InputOptions:
    """Files, and how they are read."""

    file: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE...",
            help="CSV, TSV, JSON, JSONL, Excel, Parquet or text files, .gz too; folders and "
            "patterns ('texts/*.csv'); - is standard input.",
            show_default=False,
        ),
    ]
    text_column: Annotated[
        list[str] | None,
        option(
            INPUT,
            "--text-column",
            "-t",
            help="Column of the texts; repeat it to join several. Default: 'text', or the column "
            "with the longest prose.",
        ),
    ] = None
    format: Annotated[
        str | None,
        option(
            INPUT, help="csv, tsv, json, jsonl, xlsx, parquet or txt, if the name does not say."
        ),
    ] = None
    encoding: Annotated[
        str | None,
        option(
            INPUT,
            help="Of text files. Default: UTF-8, or UTF-16 where a file begins like it; output is "
            "UTF-8.",
        ),
    ] = None
    delimiter: Annotated[str | None, option(INPUT, help="Of CSV files. Default: detected.")] = None
    no_header: Annotated[
        bool,
        option(
            INPUT, "--no-header", help="The first row holds no column names; columns are c1, c2, …"
        ),
    ] = False
    sheet: Annotated[
        str | None,
        option(INPUT, help="Of Excel workbooks. Default: the first one that is not empty."),
    ] = None
    lines: Annotated[
        bool,
        option(
            INPUT,
            "--lines",
            help="Every line of a folder's .txt files is a document; otherwise every file is.",
        ),
    ] = False

    @property
    def table_format(self) -> TableFormat:
        """How the files are read."""
        from ulr.tables import TableFormat

        return TableFormat(
            self.format, self.encoding, self.delimiter, not self.no_header, self.sheet, self.lines
        )

    @contextmanager
    def open(self) -> Iterator[Documents]:
        """The documents, with the files open."""
        from ulr.tables import open_table

        with open_table(self.file, self.table_format, sys.stdin.buffer) as table:
            yield self.documents(table)

    def documents(self, table: Table) -> Documents:
        """The documents of a table, after notes on options without effect and on what was decided."""
        from ulr.jobs import Documents
        from ulr.tables import TEXT_FORMATS

        found = {source.format for source in table.sources}
        for given, name, applies in (
            (self.encoding, "--encoding", TEXT_FORMATS),
            (self.delimiter, "--delimiter", ("csv", "tsv")),
            (self.no_header, "--no-header", ("csv", "tsv", "xlsx")),
            (self.sheet, "--sheet", ("xlsx",)),
            (self.lines, "--lines", ("txt",)),
        ):
            if given and not found & set(applies):
                note_no_effect(name, f"on {', '.join(sorted(found))} files")
        for sentence in table.notes[:_MOST_NOTES]:
            note(sentence)
        if (n_others := len(table.notes) - _MOST_NOTES) > 0:
            note(f"the same is said of {n_others:,} other files.")
        return Documents(table, self._columns(table))

    def _columns(self, table: Table) -> tuple[str, ...]:
        """The text columns: those chosen, ``text``, the only one, or the one that is guessed."""
        from ulr.jobs import guess_text_column, text_columns

        if not self.text_column and "text" not in table.all_columns() and len(table.columns) > 1:
            guessed = guess_text_column(table)
            if guessed is not None:
                others = ", ".join(name for name in table.columns if name != guessed)
                note(f"the texts are read from the column {guessed!r}; not from: {others} (-t).")
                return (guessed,)
        return tuple(text_columns(table, self.text_column or []))


ModelFolder = Annotated[
    str, typer.Argument(metavar="MODEL", help="Folder of --save-model.", show_default=False)
]
ModelEncoder = Annotated[
    str | None,
    option(
        ADVANCED,
        "--encoder",
        help="The encoder of the model, if it reads files outside installed packages.",
    ),
]


@dataclass(frozen=True)
class ModelOptions:
    """A saved model, and how it runs."""

    model: ModelFolder
    encoder: ModelEncoder = None
    n_jobs: Annotated[
        int | None, option(ADVANCED, "--n-jobs", help="Threads. Default: every available core.")
    ] = None
    cache: Annotated[
        str | None, option(ADVANCED, "--cache", help="Folder for vectors; see 'ulr cache'.")
    ] = None

    def load(self) -> Fitted:
        """The model."""
        from ulr.classifier import load

        fitted = load(self.model, encoder=self.encoder, cache=self.cache)
        return fitted.with_settings(n_jobs=self.n_jobs)


@dataclass(frozen=True)
class OutputOptions:
    """The table that is written."""

    output: Annotated[
        str | None,
        option(
            OUTPUT,
            "--output",
            "-o",
            help="File for the rows with their labels; a folder (ending in /) for one file per "
            "input; - is standard output.",
        ),
    ] = None
    prefix: Annotated[str, option(OUTPUT, help="Beginning of the names of added columns.")] = "ulr_"
    force: Annotated[bool, option(OUTPUT, "--force", help="Replace existing output.")] = False

    def checked(
        self,
        as_json: bool,
        *others: str | None,
        classifier: ClassifierOptions | None = None,
        explain: bool = False,
    ) -> Output:
        """The output, after checks that need no input; `others` are further files to write."""
        from ulr.classifier import is_formula
        from ulr.jobs import Output

        if is_formula(f"{self.prefix}label"):
            raise InputError(
                "--prefix begins like a formula, which spreadsheets run; choose another."
            )
        if self.prefix != "ulr_" and self.output is None:
            note_no_effect("--prefix", "without -o")
        if self.force and {self.output, *others} <= {None, "-"}:
            note_no_effect("--force", "without an output file")
        stdout: IO[bytes] | None = None
        if self.output == "-":
            if as_json:
                raise InputError("--json and -o - both write to standard output; choose one.")
            stdout = sys.stdout.buffer
        for name in (self.output, *others):
            if classifier is not None and name and name != "-" and classifier.reads(name):
                raise InputError(f"{name} is read by this job; choose another name for the output.")
        if explain and self.output is None:
            note_no_effect("--explain", "without -o")
        output = Output(self.output, self.prefix, self.force, stdout, explain)
        output.check_path()
        return output


Explain = Annotated[
    bool,
    option(
        OUTPUT,
        "--explain",
        help="Add a column of the words that spoke most for the label. A slow encoder reads each "
        "text some 24 times more for it.",
    ),
]


def note_replaced(output: Output, documents: Documents) -> None:
    """Print that the input is replaced by its labelled copy."""
    if output.replaces_input(documents.table):
        note(f"the input {output.path} will be replaced by its labelled copy.")


def check_no_input(documents: Documents, *names: str | None) -> None:
    """Refuse files, other than a labelled copy, that would replace an input."""
    from ulr.jobs import Output

    for name in filter(None, names):
        if Output(name).replaces_input(documents.table):
            raise InputError(f"{name} is an input, which would be replaced; choose another name.")


Json = Annotated[bool, option(OUTPUT, "--json", help="Print the summary as JSON.")]
Truth = Annotated[
    str | None,
    option(LABELS, "--truth", help="Column of the true labels, used only for the figures."),
]


def note_no_effect(name: str, when: str) -> None:
    """Print that an option has no effect."""
    note(f"{name} has no effect {when}.")
