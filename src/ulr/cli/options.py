"""Options that several commands share, and the objects that they describe."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from ulr.fitting import TextClassifier
    from ulr.jobs import Support
    from ulr.labels import LabelSet
    from ulr.tables import Table, TableFormat

INPUT, LABELS, REFINEMENT = "Input", "Labels", "Refinement"
OUTPUT, CLUSTER, ADVANCED = "Output", "Cluster", "Advanced"

Files = Annotated[
    list[str],
    typer.Argument(
        metavar="FILE...",
        help="CSV, TSV, JSON, JSONL, Excel, Parquet or text files, .gz too; folders and patterns "
        "('texts/*.csv'); - is standard input.",
        show_default=False,
    ),
]
Labels = Annotated[
    str,
    typer.Option(
        "--labels",
        "-l",
        help="The labels: 'world, sports, business', or a .txt, .csv, .json or .yaml file. "
        "'name: phrase; phrase' gives other words for a name.",
        show_default=False,
        rich_help_panel=LABELS,
    ),
]
TextColumns = Annotated[
    list[str] | None,
    typer.Option(
        "--text-column",
        "-t",
        help="Column of the texts; repeat it to join several. Default: 'text', or the only column.",
        show_default=False,
        rich_help_panel=INPUT,
    ),
]
OutputFile = Annotated[
    str | None,
    typer.Option(
        "--output",
        "-o",
        help="File for the rows with their labels; a folder (ending in /) for one file per input; "
        "- is standard output.",
        show_default=False,
        rich_help_panel=OUTPUT,
    ),
]
Json = Annotated[
    bool, typer.Option("--json", help="Print the summary as JSON.", rich_help_panel=OUTPUT)
]
Force = Annotated[
    bool, typer.Option("--force", help="Replace existing output.", rich_help_panel=OUTPUT)
]
Prefix = Annotated[
    str,
    typer.Option(
        "--prefix", help="Beginning of the names of added columns.", rich_help_panel=OUTPUT
    ),
]
Encoder = Annotated[
    str,
    typer.Option(
        "--encoder",
        help="Turns texts into vectors; see 'ulr encoders'.",
        rich_help_panel=REFINEMENT,
    ),
]
Method = Annotated[
    str,
    typer.Option(
        "--method",
        help="'discriminant' is the default; 'ulr' is the paper's; 'none' is the nearest label. "
        "'auto' is 'discriminant' for cosine and 'ulr' for other distances.",
        rich_help_panel=REFINEMENT,
    ),
]
Prior = Annotated[
    str,
    typer.Option(
        "--prior",
        help="Sizes of the labels: 'estimate', 'balanced', or proportions such as '0.5, 0.3, 0.2'.",
        rich_help_panel=REFINEMENT,
    ),
]
FitSample = Annotated[
    str,
    typer.Option(
        "--fit-sample",
        help="Most documents to refine on, a seeded random sample of more; 'all' for no limit. "
        "'auto' is 200,000, and all documents for 'ulr'.",
        rich_help_panel=REFINEMENT,
    ),
]
Examples = Annotated[
    str | None,
    typer.Option(
        "--examples",
        help="File of some texts whose label is known, in a column 'label'.",
        show_default=False,
        rich_help_panel=REFINEMENT,
    ),
]
NoneShare = Annotated[
    float | None,
    typer.Option(
        "--none",
        help="Share of the documents, such as 0.1, that get no label: those least similar to the "
        "name of theirs.",
        show_default=False,
        rich_help_panel=LABELS,
    ),
]
NoneLabel = Annotated[
    str,
    typer.Option(
        "--none-label", help="Label of documents that get no label.", rich_help_panel=LABELS
    ),
]
Cache = Annotated[
    str | None,
    typer.Option(
        "--cache",
        help="Folder for vectors, so that no text is encoded twice; see 'ulr cache'.",
        show_default=False,
        rich_help_panel=ADVANCED,
    ),
]
Distance = Annotated[
    str,
    typer.Option(
        "--distance",
        help="'cosine', 'l2' or 'dot'; 'cosine' or 'jensen-shannon' for a cross encoder.",
        rich_help_panel=ADVANCED,
    ),
]
Expand = Annotated[
    str | None,
    typer.Option(
        "--expand",
        help="'wordnet' adds the definition of each phrase as a further phrase.",
        show_default=False,
        rich_help_panel=ADVANCED,
    ),
]
Template = Annotated[
    str | None,
    typer.Option(
        "--template",
        help="A sentence around every phrase: 'This text is about {}.'",
        rich_help_panel=ADVANCED,
    ),
]
Phrasings = Annotated[
    str,
    typer.Option(
        "--phrasings",
        help="How several phrases per label are used: 'average' makes one vector of them; "
        "'combinations' refines every combination and averages their scores; or a file of sets, "
        "'phrase; phrase' on each line.",
        rich_help_panel=ADVANCED,
    ),
]
Sample = Annotated[
    int | None,
    typer.Option(
        "--sample",
        help="Most combinations of phrases. Default: all of up to 4,096, and 1,024 of more.",
        show_default=False,
        rich_help_panel=ADVANCED,
    ),
]
Seed = Annotated[
    int,
    typer.Option(
        "--seed", help="Seed of everything that is drawn.", min=0, rich_help_panel=ADVANCED
    ),
]
MaxIter = Annotated[
    int,
    typer.Option("--max-iter", help="Most passes over the documents.", rich_help_panel=ADVANCED),
]
NJobs = Annotated[
    int | None,
    typer.Option(
        "--n-jobs",
        help="Threads of the refinement. Default: every available core.",
        show_default=False,
        rich_help_panel=ADVANCED,
    ),
]
ExtraLabels = Annotated[
    str | None,
    typer.Option(
        "--extra-labels",
        help="Further labels that take part and are never predicted: a file, 'math, physics', or "
        "'stackexchange' for 30 Stack Exchange sites.",
        show_default=False,
        rich_help_panel=ADVANCED,
    ),
]
ExtraTexts = Annotated[
    str | None,
    typer.Option(
        "--extra-texts",
        help="File of further texts to refine on, which get no label.",
        show_default=False,
        rich_help_panel=ADVANCED,
    ),
]
Format = Annotated[
    str | None,
    typer.Option(
        "--format",
        help="csv, tsv, json, jsonl, xlsx, parquet or txt, if the name does not say.",
        show_default=False,
        rich_help_panel=INPUT,
    ),
]
Encoding = Annotated[
    str | None,
    typer.Option(
        "--encoding",
        help="Of text files. Default: UTF-8, or UTF-16 where a file begins like it; output is "
        "UTF-8.",
        show_default=False,
        rich_help_panel=INPUT,
    ),
]
Delimiter = Annotated[
    str | None,
    typer.Option(
        "--delimiter",
        help="Of CSV files. Default: detected.",
        show_default=False,
        rich_help_panel=INPUT,
    ),
]
NoHeader = Annotated[
    bool,
    typer.Option(
        "--no-header",
        help="The first row holds no column names; columns are c1, c2, …",
        rich_help_panel=INPUT,
    ),
]

Cluster = Annotated[
    str | None,
    typer.Option(
        "--cluster",
        help="'local' for processes of this machine, or the address of a Dask scheduler. Files are "
        "the units of work; -o is a folder. A stopped run goes on.",
        show_default=False,
        rich_help_panel=CLUSTER,
    ),
]
Workers = Annotated[
    int | None,
    typer.Option(
        "--workers",
        help="Local processes. Default: one per core.",
        min=1,
        show_default=False,
        rich_help_panel=CLUSTER,
    ),
]
Part = Annotated[
    str | None,
    typer.Option(
        "--part",
        help="A share of the files without a cluster: '0/8' samples and fits, '1/8' to '8/8' label.",
        show_default=False,
        rich_help_panel=CLUSTER,
    ),
]
KeepVectors = Annotated[
    str | None,
    typer.Option(
        "--keep-vectors",
        help="Folder for the vectors of the texts, float16 in one .npy file per input.",
        show_default=False,
        rich_help_panel=CLUSTER,
    ),
]
SkipBroken = Annotated[
    bool,
    typer.Option(
        "--skip-broken",
        help="Go on without files that cannot be read, and list them.",
        rich_help_panel=CLUSTER,
    ),
]


@dataclass(frozen=True)
class OpenInputs:
    """What the options of a command describe, with the files open.

    Attributes
    ----------
    table, columns
        The documents, and the columns that make up one.
    classifier
        A classifier that is not fitted yet.
    support
        Labelled examples and further texts.
    """

    table: Table
    columns: list[str]
    classifier: TextClassifier
    support: Support


@contextlib.contextmanager
def open_inputs(
    chosen: dict[str, Any],
    on_progress: Callable[[int, int | None], None],
    table: Table | None = None,
) -> Iterator[OpenInputs]:
    """Open the files that the options of a command name.

    Parameters
    ----------
    chosen
        The options by the names of their parameters.
    on_progress
        Called while an encoder is prepared.
    table
        The documents, if they are open already.
    """
    from ulr.jobs import read_support, text_columns
    from ulr.labels import as_label_set
    from ulr.tables import TableFormat, open_table

    beside = TableFormat(encoding=chosen["encoding"])
    with contextlib.ExitStack() as files:
        if table is None:
            table = files.enter_context(
                open_table(chosen["file"], table_format(chosen), sys.stdin.buffer)
            )
        note_unused_format(chosen, table)
        columns = text_columns(table, chosen["text_column"] or [])
        classifier = _classifier(chosen, on_progress)
        examples, extra = (
            None if chosen[name] is None else files.enter_context(open_table(chosen[name], beside))
            for name in ("examples", "extra_texts")
        )
        names = as_label_set(classifier.labels).names
        support = read_support(names, columns, examples, extra)
        yield OpenInputs(table, columns, classifier, support)


def table_format(chosen: dict[str, Any]) -> TableFormat:
    """How the input is read."""
    from ulr.tables import TableFormat

    return TableFormat(
        chosen["format"], chosen["encoding"], chosen["delimiter"], not chosen["no_header"]
    )


_SAME_NAME = (
    "method distance template sample random_state cache max_iter n_jobs none_share none_label"
).split()


def _classifier(
    chosen: dict[str, Any], on_progress: Callable[[int, int | None], None]
) -> TextClassifier:
    """A classifier with the options."""
    from ulr.encoders import load_encoder
    from ulr.errors import LabelError
    from ulr.fitting import TextClassifier
    from ulr.phrasings import phrasings_from_argument

    phrasings, expand = phrasings_from_argument(chosen["phrasings"]), chosen["expand"]
    if expand is not None and isinstance(phrasings, Path):
        raise LabelError(
            "--expand adds phrases to the labels, but a file of sets has its own phrases; leave "
            "one of them out."
        )
    _note_unused(chosen)
    return TextClassifier(
        label_set(chosen["labels"], expand),
        encoder=load_encoder(chosen["encoder"], on_progress),
        prior=proportions(chosen["prior"]),
        phrasings=phrasings,
        extra_labels=extra_labels(chosen["extra_labels"]),
        fit_sample=fit_sample(chosen["fit_sample"]),
        **{name: chosen[name] for name in _SAME_NAME if name in chosen},
    )


_NONE = "none of these"


def _note_unused(chosen: dict[str, Any]) -> None:
    """Print a note for options that have no effect beside the others."""
    if chosen["sample"] is not None and chosen["phrasings"] != "combinations":
        note_no_effect("--sample", "without --phrasings combinations")
    if chosen.get("none_share") is None and chosen.get("none_label", _NONE) != _NONE:
        note_no_effect("--none-label", "without --none")
    if chosen["method"] == "none" and chosen["max_iter"] != 100:
        note_no_effect("--max-iter", "with --method none")
    if chosen.get("prefix", "ulr_") != "ulr_" and chosen["output"] is None:
        note_no_effect("--prefix", "without -o")
    written = {chosen.get(name) for name in ("output", "save_model", "plot", "report")}
    if chosen.get("force") and written <= {None, "-"}:
        note_no_effect("--force", "without an output file")


def note_unused_format(chosen: dict[str, Any], table: Table) -> None:
    """Print a note for options that do not apply to the formats of the input."""
    from ulr.tables import TEXT_FORMATS

    found = {source.format for source in table.sources}
    for name, option, applies in (
        ("encoding", "--encoding", TEXT_FORMATS),
        ("delimiter", "--delimiter", ("csv", "tsv")),
        ("no_header", "--no-header", ("csv", "tsv", "xlsx")),
    ):
        if chosen[name] and not found & set(applies):
            note_no_effect(option, f"on {', '.join(sorted(found))} files")


def note_no_effect(option: str, when: str) -> None:
    """Print that an option has no effect."""
    print(f"ulr: {option} has no effect {when}.", file=sys.stderr)


def label_set(labels: str, expand: str | None) -> LabelSet:
    """The labels, with definitions if `expand` says so."""
    from ulr.errors import LabelError
    from ulr.labels import labels_from_argument

    given = labels_from_argument(labels)
    if expand is None:
        return given
    if expand != "wordnet":
        raise LabelError(f"--expand must be wordnet; got {expand!r}.")
    from ulr.wordnet import WordNet, expand_labels

    expansion = expand_labels(given, WordNet.find())
    if expansion.without:
        names = ", ".join(expansion.without)
        print(f"ulr: WordNet has no definition of: {names}.", file=sys.stderr)
    return expansion.labels


def extra_labels(value: str | None) -> list[str] | Path | None:
    """Extra labels from the name of a list, a file, or the labels themselves."""
    from ulr.labels import NAMED_LISTS, is_label_file

    if value is None:
        return None
    if value in NAMED_LISTS:
        return list(NAMED_LISTS[value])
    return Path(value) if is_label_file(value) else value.rstrip(", ").split(",")


def proportions(prior: str) -> str | list[float]:
    """The prior by name, or its numbers."""
    try:
        return [float(part) for part in prior.split(",")]
    except ValueError:
        return prior


def share(part: str | None) -> tuple[int, int] | None:
    """The two numbers of ``--part``."""
    from ulr.errors import ClusterError

    if part is None:
        return None
    first, _, second = part.partition("/")
    if not (first.isdecimal() and second.isdecimal()) or not int(first) <= int(second) > 0:
        raise ClusterError(f"--part must be a share such as 2/8, or 0/8 to fit; got {part[:40]!r}.")
    return int(first), int(second)


def fit_sample(value: str) -> int | str | None:
    """The most documents to refine on; None for all."""
    from ulr.errors import ArrayError

    if value in ("auto", "all"):
        return None if value == "all" else "auto"
    digits = value.replace(",", "").replace("_", "")
    if not digits.isdecimal() or len(digits) > 18 or int(digits) == 0:
        raise ArrayError(
            f"--fit-sample must be 'auto', 'all' or a positive number; got {value[:40]!r}."
        )
    return int(digits)
