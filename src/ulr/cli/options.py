"""The options that commands share, and what is made of them."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ulr.tables import Table, TableFormat

if TYPE_CHECKING:
    from ulr.classifier import DatalessClassifier
    from ulr.jobs import Support
    from ulr.labels import LabelSet

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
    typer.Option(
        "--method",
        help="'mixture' refines by clusters around the labels, with cosine; 'ulr' as the paper; "
        "'none' not at all. 'auto' is 'mixture' where it can be.",
    ),
]
Prior = Annotated[
    str,
    typer.Option(
        "--prior",
        help="How large the labels are: 'estimate', 'balanced', or proportions: '0.5, 0.3, 0.2'.",
    ),
]
Distance = Annotated[
    str,
    typer.Option(
        "--distance",
        help="'cosine', 'l2' or 'dot'; 'jensen-shannon' for a cross encoder. 'auto' chooses.",
    ),
]
NoneShare = Annotated[
    float | None,
    typer.Option(
        "--none",
        help="Share of the documents, e.g. 0.1, that get no label: those least like the name of "
        "theirs.",
        show_default=False,
    ),
]
NoneLabel = Annotated[
    str, typer.Option("--none-label", help="What documents without a label get instead.")
]
Cache = Annotated[
    str | None,
    typer.Option(
        "--cache",
        help="Folder to keep vectors in, so that no text is encoded twice; see 'ulr cache'.",
        show_default=False,
    ),
]
Expand = Annotated[
    str | None,
    typer.Option(
        "--expand",
        help="'wordnet' adds each label's definition as a further phrase.",
        show_default=False,
    ),
]
Template = Annotated[
    str | None,
    typer.Option("--template", help="A sentence around every phrase: 'This text is about {}.'"),
]
Wordings = Annotated[
    str,
    typer.Option(
        "--wordings",
        help="What becomes of several phrases a label: 'average' makes one vector of them; "
        "'combinations' refines every combination and sums their scores; a file of whole sets, "
        "'phrase; phrase' a line, refines each set and sums.",
    ),
]
Sample = Annotated[
    int | None,
    typer.Option(
        "--sample",
        help="Most combinations to take; by default all of up to 4,096, and 1,024 of more.",
        show_default=False,
    ),
]
Seed = Annotated[int, typer.Option("--seed", help="Of the draw of combinations.")]
ExtraLabels = Annotated[
    str | None,
    typer.Option(
        "--extra-labels",
        help="Further categories that take part and are never predicted: a file, 'math, physics', "
        "or 'stackexchange' for the names of 30 Stack Exchange sites.",
        show_default=False,
    ),
]
ExtraTexts = Annotated[
    str | None,
    typer.Option(
        "--extra-texts",
        help="File of further texts that the labels are refined on and that get no category.",
        show_default=False,
    ),
]
Examples = Annotated[
    str | None,
    typer.Option(
        "--examples",
        help="File of a few texts whose label is known, in a column 'label'.",
        show_default=False,
    ),
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


def label_set(labels: str, expand: str | None) -> LabelSet:
    """The labels, their definitions added where asked for."""
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
        print(f"WordNet has no definition of: {names}.", file=sys.stderr)
    return expansion.labels


@dataclass(frozen=True)
class Given:
    """What the options of a command name: a table, its text columns, a classifier, and help."""

    source: Table
    columns: list[str]
    classifier: DatalessClassifier
    support: Support


@contextlib.contextmanager
def opened(
    chosen: dict[str, Any], on_progress: Callable[[int, int | None], None]
) -> Iterator[Given]:
    """Everything that the options of a command name, its files open.

    Parameters
    ----------
    chosen
        The options by name; those that only make a classifier may be missing.
    on_progress
        Told how the encoder is prepared.
    """
    from ulr.jobs import read_support, text_columns
    from ulr.labels import as_label_set
    from ulr.tables import open_table

    encoding = chosen["encoding"]
    how = table_format(chosen["format"], encoding, chosen["delimiter"], chosen["no_header"])
    with contextlib.ExitStack() as files:
        source = files.enter_context(open_table(chosen["file"], how))
        classifier = _classifier(chosen, on_progress)
        columns = text_columns(source, chosen["text_column"] or [])
        beside = [
            None
            if chosen[name] is None
            else files.enter_context(open_table(chosen[name], TableFormat(encoding=encoding)))
            for name in ("examples", "extra_texts")
        ]
        names = as_label_set(classifier.labels).names
        yield Given(source, columns, classifier, read_support(names, columns, *beside))


def _classifier(
    chosen: dict[str, Any], on_progress: Callable[[int, int | None], None]
) -> DatalessClassifier:
    """A classifier as the options have it."""
    from ulr.classifier import DatalessClassifier
    from ulr.encoders import load_encoder
    from ulr.errors import LabelError
    from ulr.wordings import wordings_from_argument

    wordings, expand = wordings_from_argument(chosen["wordings"]), chosen["expand"]
    if expand is not None and isinstance(wordings, Path):
        raise LabelError(
            "--expand adds a phrase to every label, and a file of whole sets has its own phrases; "
            "leave one of them out."
        )
    return DatalessClassifier(
        label_set(chosen["labels"], expand),
        encoder=load_encoder(chosen["encoder"], on_progress),
        prior=proportions(chosen["prior"]),
        wordings=wordings,
        extra_labels=further_labels(chosen["extra_labels"]),
        **{name: chosen[name] for name in _PLAIN},
        **{name: chosen[name] for name in ("none_share", "none_label") if name in chosen},
    )


_PLAIN = ("method", "distance", "template", "sample", "seed", "cache")


def further_labels(value: str | None) -> list[str] | Path | None:
    """Extra labels from a named list, a file or a line of them."""
    from ulr.labels import is_label_file
    from ulr.named_labels import NAMED_LISTS, named_list

    if value is None:
        return None
    if value in NAMED_LISTS:
        return list(named_list(value))
    return Path(value) if is_label_file(value) else value.split(",")


def proportions(prior: str) -> str | list[float]:
    """The prior as it was named, or the numbers in it."""
    try:
        return [float(part) for part in prior.split(",")]
    except ValueError:
        return prior


def table_format(
    format_: str | None, encoding: str, delimiter: str | None, no_header: bool
) -> TableFormat:
    """How the input is to be read."""
    return TableFormat(format_, encoding, delimiter, not no_header)
