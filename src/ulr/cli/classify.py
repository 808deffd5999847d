"""`ulr classify`: a file and label names in, the file with labels out."""

from __future__ import annotations

from typing import Annotated

import typer

from ulr.cli import options
from ulr.cli.cluster import classify_on_cluster, needs_cluster
from ulr.cli.console import ProgressBar, plain_errors, print_json, standard_output
from ulr.cli.summaries import print_summary


def classify(
    file: options.Files,
    labels: options.Labels,
    output: options.OutputFile = None,
    text_column: options.TextColumns = None,
    encoder: options.Encoder = "static",
    method: options.Method = "auto",
    prior: options.Prior = "estimate",
    examples: options.Examples = None,
    fit_sample: options.FitSample = "auto",
    none_share: options.NoneShare = None,
    none_label: options.NoneLabel = "none of these",
    save_model: Annotated[
        str | None,
        typer.Option(
            "--save-model",
            help="Folder to save the classifier in, for 'ulr predict'.",
            show_default=False,
            rich_help_panel=options.OUTPUT,
        ),
    ] = None,
    report: Annotated[
        str | None,
        typer.Option(
            "--report",
            help="HTML file for a report, as 'ulr report' writes it.",
            show_default=False,
            rich_help_panel=options.OUTPUT,
        ),
    ] = None,
    json: options.Json = False,
    force: options.Force = False,
    prefix: options.Prefix = "ulr_",
    format: options.Format = None,
    encoding: options.Encoding = None,
    delimiter: options.Delimiter = None,
    no_header: options.NoHeader = False,
    phrasings: options.Phrasings = "average",
    sample: options.Sample = None,
    template: options.Template = None,
    expand: options.Expand = None,
    extra_labels: options.ExtraLabels = None,
    extra_texts: options.ExtraTexts = None,
    distance: options.Distance = "auto",
    max_iter: options.MaxIter = 100,
    random_state: options.Seed = 0,
    n_jobs: options.NJobs = None,
    cache: options.Cache = None,
    cluster: options.Cluster = None,
    workers: options.Workers = None,
    part: options.Part = None,
    keep_vectors: options.KeepVectors = None,
    skip_broken: options.SkipBroken = False,
) -> None:
    """Give every document of a file a label, by the names of the labels.

    Documents are first compared with the names, then the labels are refined on the documents. Rows
    and columns stay as they are; the label, its confidence and the label before refinement are
    added.

    [bold]Examples[/bold]

    ulr classify news.csv --labels "world, sports, business" -o labelled.csv

    ulr classify tickets.xlsx -l labels.txt -t subject -t body -o labelled.xlsx

    ulr classify 'texts/*.parquet' -l labels.yaml -o labelled/ --save-model model

    cat posts.jsonl | ulr classify - -l "praise, complaint" -o - | head

    ulr classify 'texts/*.parquet' -l labels.yaml -o labelled/ --cluster local

    ulr classify 's3://bucket/texts/*.parquet' -l labels.yaml -o s3://bucket/labelled/
    """
    chosen = locals()
    if needs_cluster(chosen):
        classify_on_cluster(chosen)
        return
    with plain_errors():
        from ulr.jobs import Output, classify_file
        from ulr.persistence import refuse_to_save
        from ulr.report import refuse_report, report_file

        target = Output(output, prefix, force, standard_output(output, json))
        target.refuse_file()
        if save_model is not None:
            refuse_to_save(save_model, force)
        if report is not None:
            refuse_report(report, force)
        with ProgressBar() as progress, options.open_inputs(chosen, progress.preparing) as inputs:
            task = inputs.table, inputs.columns, inputs.classifier, target, progress, inputs.support
            if report is None:
                job = classify_file(*task)
            else:
                page, job = report_file(*task)
                page.write(report)
            if save_model is not None:
                inputs.classifier.save(save_model, overwrite=force)
        if json:
            print_json(job.as_dict())
        elif output != "-":
            print_summary(job)
