"""Options that several commands share, declared once, and the objects that they describe.

Names and defaults of the classifier's options are those of `Settings`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any

import typer

from ulr.classifier import Settings
from ulr.cli.groups import ADVANCED, INPUT, LABELS, OUTPUT, REFINEMENT, option
from ulr.errors import InputError, ParameterError

if TYPE_CHECKING:
    from ulr.jobs import Documents, Output, Support
    from ulr.progress import Progress
    from ulr.tables import Table, TableFormat


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
            help="Column of the texts; repeat it to join several. Default: 'text', or the only "
            "column.",
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

    @property
    def table_format(self) -> TableFormat:
        """How the files are read."""
        from ulr.tables import TableFormat

        return TableFormat(self.format, self.encoding, self.delimiter, not self.no_header)

    @contextmanager
    def open(self) -> Iterator[Documents]:
        """The documents, with the files open."""
        from ulr.tables import open_table

        with open_table(self.file, self.table_format, sys.stdin.buffer) as table:
            yield self.documents(table)

    def documents(self, table: Table) -> Documents:
        """The documents of a table, after a note for options that do not apply to its format."""
        from ulr.jobs import Documents, text_columns
        from ulr.tables import TEXT_FORMATS

        found = {source.format for source in table.sources}
        for given, name, applies in (
            (self.encoding, "--encoding", TEXT_FORMATS),
            (self.delimiter, "--delimiter", ("csv", "tsv")),
            (self.no_header, "--no-header", ("csv", "tsv", "xlsx")),
        ):
            if given and not found & set(applies):
                note_no_effect(name, f"on {', '.join(sorted(found))} files")
        return Documents(table, tuple(text_columns(table, self.text_column or [])))


@dataclass(frozen=True)
class ClassifierOptions:
    """The settings of the classifier, and texts beside those to classify."""

    labels: Annotated[
        list[str],
        option(
            LABELS,
            "--labels",
            "-l",
            help="The labels: 'world, sports, business', or a .txt, .csv, .json or .yaml file. "
            "'name: phrase; phrase' gives other words for a name. Repeated, they add up.",
        ),
    ]
    none_share: Annotated[
        float | None,
        option(
            LABELS,
            "--none",
            help="Share of the documents, such as 0.1, that get no label: those least similar to "
            "the name of theirs.",
        ),
    ] = Settings.none_share
    none_label: Annotated[str, option(LABELS, help="Label of documents that get no label.")] = (
        Settings.none_label
    )
    encoder: Annotated[
        str,
        option(
            REFINEMENT,
            help="Turns texts into vectors; see 'ulr encoders'. 'auto' is the most accurate "
            "combination of what is installed.",
        ),
    ] = str(Settings.encoder)
    strong_share: Annotated[
        str,
        option(
            REFINEMENT,
            help="Above 160,000 words, a slow encoder reads a sample, and a student labels the "
            "others. Share of these, from 0 to 1, that the encoder reads as well, where the student "
            "is least sure; 'budget' for as many as 40,000 words allow. 'auto' is 'budget' for "
            "--encoder auto, and 1 otherwise.",
        ),
    ] = str(Settings.strong_share)
    method: Annotated[
        str,
        option(
            REFINEMENT,
            help="'discriminant' is the default; 'ulr' is the paper's; 'none' is the nearest label. "
            "'auto' is 'discriminant' for cosine and 'ulr' for other distances.",
        ),
    ] = Settings.method
    prior: Annotated[
        str,
        option(
            REFINEMENT,
            help="Sizes of the labels: 'estimate', 'balanced', or proportions such as "
            "'0.5, 0.3, 0.2'.",
        ),
    ] = Settings.prior
    examples: Annotated[
        str | None,
        option(REFINEMENT, help="File of some texts whose label is known, in a column 'label'."),
    ] = None
    fit_sample: Annotated[
        str,
        option(
            REFINEMENT,
            help="Most documents to fit on, a random sample of more; 'all' for no limit. 'auto' is "
            "200,000 for words and 16,384 of them (512 per label) for vectors; all for 'ulr'.",
        ),
    ] = str(Settings.fit_sample)
    template: Annotated[
        str,
        option(
            ADVANCED,
            help="A sentence around every phrase: 'News about {}.'; '{}' is the phrase alone. 'auto' "
            "is the mean of both for encoders of sentences.",
        ),
    ] = str(Settings.template)
    extra_labels: Annotated[
        str | None,
        option(
            ADVANCED,
            help="Further labels that take part and are never predicted: a file, 'math, physics', "
            "or 'stackexchange' for 30 Stack Exchange sites.",
        ),
    ] = Settings.extra_labels
    extra_texts: Annotated[
        str | None, option(ADVANCED, help="File of further texts to fit on, which get no label.")
    ] = None
    distance: Annotated[
        str,
        option(
            ADVANCED,
            help="'cosine', 'l2' or 'dot'; 'cosine' or 'jensen-shannon' for a cross encoder.",
        ),
    ] = Settings.distance
    max_iter: Annotated[int, option(ADVANCED, help="Most passes over the documents.")] = (
        Settings.max_iter
    )
    random_state: Annotated[
        int,
        option(
            ADVANCED,
            "--seed",
            help="Seed of everything that is drawn.",
            min=0,
        ),
    ] = Settings.random_state
    n_jobs: Annotated[
        int | None,
        option(ADVANCED, help="Threads of the refinement. Default: every available core."),
    ] = Settings.n_jobs
    cache: Annotated[
        str | None,
        option(
            ADVANCED, help="Folder for vectors, so that no text is encoded twice; see 'ulr cache'."
        ),
    ] = None

    def settings(self, progress: Progress, **more: Any) -> Settings:
        """The settings of the classifier and further ones, with the encoder loaded."""
        from ulr.classifier import resolve
        from ulr.labels import labels_from_arguments

        if self.none_share is None and self.none_label != Settings.none_label:
            note_no_effect("--none-label", "without --none")
        if self.method == "none" and self.max_iter != Settings.max_iter:
            note_no_effect("--max-iter", "with --method none")
        given = {
            each.name: getattr(self, each.name)
            for each in fields(Settings)
            if hasattr(self, each.name)  # a file has no y to ignore
        }
        given |= {
            "labels": labels_from_arguments(self.labels),
            "prior": _proportions(self.prior),
            "extra_labels": _extra_labels(self.extra_labels),
            "fit_sample": _fit_sample(self.fit_sample),
            "strong_share": _strong_share(self.strong_share),
        }
        return resolve(Settings(**given | more), progress)

    def support(self, settings: Settings, inputs: InputOptions, documents: Documents) -> Support:
        """Labelled examples and further texts."""
        from ulr.jobs import read_support
        from ulr.tables import TableFormat, open_table

        with ExitStack() as files:
            tables = [
                None
                if name is None
                else files.enter_context(open_table(name, TableFormat(encoding=inputs.encoding)))
                for name in (self.examples, self.extra_texts)
            ]
            support = read_support(settings.label_set.names, documents.columns, *tables)
        if support.skipped:
            rows = "row" if support.skipped == 1 else "rows"
            print(
                f"ulr: {self.examples}: {support.skipped:,} {rows} without a label skipped.",
                file=sys.stderr,
            )
        return support


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

    def checked(self, as_json: bool, *others: str | None, explain: bool = False) -> Output:
        """The output, after checks that need no input; `others` are further files to write."""
        from ulr.jobs import Output

        if self.prefix != "ulr_" and self.output is None:
            note_no_effect("--prefix", "without -o")
        if self.force and {self.output, *others} <= {None, "-"}:
            note_no_effect("--force", "without an output file")
        stdout: IO[bytes] | None = None
        if self.output == "-":
            if as_json:
                raise InputError("--json and -o - both write to standard output; choose one.")
            stdout = sys.stdout.buffer
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
Json = Annotated[bool, option(OUTPUT, "--json", help="Print the summary as JSON.")]
Truth = Annotated[
    str | None,
    option(LABELS, "--truth", help="Column of the true labels, used only for the figures."),
]


def note_no_effect(name: str, when: str) -> None:
    """Print that an option has no effect."""
    print(f"ulr: {name} has no effect {when}.", file=sys.stderr)


def _extra_labels(value: str | None) -> list[str] | Path | None:
    """Extra labels from the name of a list, a file, or the labels themselves."""
    from ulr.labels import NAMED_LISTS, is_label_file

    if value is None:
        return None
    if value in NAMED_LISTS:
        return list(NAMED_LISTS[value])
    return Path(value) if is_label_file(value) else value.rstrip(", ").split(",")


def _proportions(prior: str) -> str | list[float]:
    """The prior by name, or its numbers."""
    try:
        return [float(part) for part in prior.split(",")]
    except ValueError:
        return prior


def _strong_share(value: str) -> str | float:
    """The share by name, or its number."""
    try:
        return float(value)
    except ValueError:
        return value


def _fit_sample(value: str) -> int | str | None:
    """The most documents to fit on; None for all."""
    if value in ("auto", "all"):
        return None if value == "all" else "auto"
    digits = value.replace(",", "").replace("_", "")
    if not digits.isdecimal() or len(digits) > 18 or int(digits) == 0:
        raise ParameterError(
            "fit_sample", f"must be 'auto', 'all' or a positive number; got {value[:40]!r}."
        )
    return int(digits)
