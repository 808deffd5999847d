"""`ulr classify`: a file and label names in, the file with categories out."""

from __future__ import annotations

from typing import Annotated

import typer

from ulr.cli import options
from ulr.cli.console import ProgressBar, plain_errors, print_json, print_summary


def classify(
    file: options.File,
    labels: options.Labels,
    output: options.OutputFile = None,
    text_column: options.TextColumns = None,
    method: options.Method = "auto",
    prior: options.Prior = "estimate",
    distance: options.Distance = "auto",
    encoder: options.Encoder = "static",
    template: options.Template = None,
    expand: options.Expand = None,
    wordings: options.Wordings = "average",
    sample: options.Sample = None,
    extra_labels: options.ExtraLabels = None,
    extra_texts: options.ExtraTexts = None,
    examples: options.Examples = None,
    seed: options.Seed = 0,
    none_share: options.NoneShare = None,
    none_label: options.NoneLabel = "none of these",
    cache: options.Cache = None,
    save_model: Annotated[
        str | None,
        typer.Option("--save-model", help="Folder to keep the classifier in, for 'ulr predict'."),
    ] = None,
    prefix: options.Prefix = "ulr_",
    force: options.Force = False,
    json: options.Json = False,
    format: options.Format = None,
    encoding: options.Encoding = "utf-8",
    delimiter: options.Delimiter = None,
    no_header: options.NoHeader = False,
) -> None:
    """Give every document of a file a category, by the categories' names.

    The labels are first compared with the documents as they are named, then refined on the
    documents. Rows and columns stay as they are; the label, its confidence and the label before
    refinement are added.

    [bold]Examples[/bold]

    ulr classify news.csv --labels "world, sports, business" -o labelled.csv

    ulr classify tickets.parquet -l labels.txt -t subject -t body -o out.parquet

    ulr classify news.csv -l labels.yaml --wordings combinations --examples few.csv

    cat posts.jsonl | ulr classify - -l "praise, complaint" -o - | head
    """
    chosen = locals()
    if json and output == "-":
        raise typer.BadParameter("--json and -o - both want standard output; choose one.")
    with plain_errors():
        from ulr.jobs import Output, classify_file
        from ulr.saved import refuse_to_save

        if save_model is not None:
            refuse_to_save(save_model, force)
        with ProgressBar() as progress, options.opened(chosen, progress.preparing) as given:
            report = classify_file(
                given.source,
                given.columns,
                given.classifier,
                Output(output, prefix, force),
                progress,
                given.support,
            )
        if save_model is not None:
            given.classifier.save(save_model, overwrite=force)
        if json:
            print_json(report.as_dict())
        elif output != "-":
            print_summary(report)
