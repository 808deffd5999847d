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
from ulr.cli.console import note
from ulr.cli.groups import ADVANCED, INPUT, LABELS, OUTPUT, REFINEMENT, option
from ulr.cli.values import extra_labels_of, fit_sample_of, proportions_of, strong_share_of
from ulr.errors import InputError

if TYPE_CHECKING:
    from ulr.classifier import Fitted
    from ulr.jobs import Documents, Output, Support
    from ulr.progress import Progress
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
            "'name: phrase; phrase' gives other words for a name, 'sport > tennis' makes a tree. "
            "Repeated, they add up.",
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
    multilabel: Annotated[
        float | None,
        option(
            LABELS,
            "--multi",
            help="Several labels a document, in a column 'labels': those with at least this chance, "
            "such as 0.5, or so many on average, such as 1.8.",
        ),
    ] = None
    path_threshold: Annotated[
        float,
        option(
            LABELS,
            help="In a tree of labels ('sport > tennis', or nested .yaml or .json), a document goes "
            "down to the nodes that it belongs to with at least this probability.",
        ),
    ] = Settings.path_threshold
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

    def reads(self, name: str) -> bool:
        """Whether a file holds labels or texts of these options."""
        from ulr.labels import is_label_file

        own = (*self.labels, self.extra_labels, self.examples, self.extra_texts)
        return Path(name).resolve() in {
            Path(each).resolve() for each in own if each and is_label_file(each)
        }

    def settings(self, progress: Progress, **more: Any) -> Settings:
        """The settings of the classifier and further ones, with the encoder loaded."""
        from ulr.classifier import resolve
        from ulr.labels import labels_from_arguments

        if self.none_share is None and self.none_label != Settings.none_label:
            note_no_effect("--none-label", "without --none")
        labels = labels_from_arguments(self.labels)
        if labels.tree is None and self.path_threshold != Settings.path_threshold:
            note_no_effect("--path-threshold", "without a tree of labels")
        if self.method == "none" and self.max_iter != Settings.max_iter:
            note_no_effect("--max-iter", "with --method none")
        given = {
            each.name: getattr(self, each.name)
            for each in fields(Settings)
            if hasattr(self, each.name)  # a file has no y to ignore
        }
        given |= {
            "labels": labels,
            "multilabel": False if self.multilabel is None else self.multilabel,
            "prior": proportions_of(self.prior),
            "extra_labels": extra_labels_of(self.extra_labels),
            "fit_sample": fit_sample_of(self.fit_sample),
            "strong_share": strong_share_of(self.strong_share),
        }
        for each in given["labels"].notes:
            note(each)
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
class ModelOptions:
    """A saved model, and how it runs."""

    model: Annotated[
        str, typer.Argument(metavar="MODEL", help="Folder of --save-model.", show_default=False)
    ]
    encoder: Annotated[
        str | None,
        option(
            ADVANCED,
            "--encoder",
            help="The encoder of the model, if it reads files outside installed packages.",
        ),
    ] = None
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


Json = Annotated[bool, option(OUTPUT, "--json", help="Print the summary as JSON.")]
Truth = Annotated[
    str | None,
    option(LABELS, "--truth", help="Column of the true labels, used only for the figures."),
]


def note_no_effect(name: str, when: str) -> None:
    """Print that an option has no effect."""
    note(f"{name} has no effect {when}.")
