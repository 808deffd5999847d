"""`ulr classify`: a file and label names in, the file with labels out."""

from __future__ import annotations

from typing import Annotated

from ulr.cli.classifier_options import ClassifierOptions
from ulr.cli.cluster import ClusterOptions, classify_on_cluster, needs_cluster
from ulr.cli.console import ProgressBar, plain_errors, print_json
from ulr.cli.groups import OUTPUT, option, option_groups
from ulr.cli.language_model import LanguageModelOptions, print_plan
from ulr.cli.options import (
    Explain,
    InputOptions,
    Json,
    OutputOptions,
    check_no_input,
    note_no_effect,
    note_replaced,
)
from ulr.cli.summaries import print_summary

SaveModel = Annotated[
    str | None,
    option(OUTPUT, "--save-model", help="Folder to save the classifier in, for 'ulr predict'."),
]
ReportFile = Annotated[
    str | None,
    option(OUTPUT, "--report", help="HTML file for a report, as 'ulr report' writes it."),
]


@option_groups
def classify(
    inputs: InputOptions,
    classifier: ClassifierOptions,
    llm: LanguageModelOptions,
    output: OutputOptions,
    cluster: ClusterOptions,
    save_model: SaveModel = None,
    report: ReportFile = None,
    explain: Explain = False,
    json: Json = False,
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

    ulr classify news.csv -l labels.txt --llm http://localhost:11434/v1 --llm-model qwen2.5

    ulr classify 'texts/*.parquet' -l labels.yaml -o labelled/ --cluster local

    ulr classify 's3://bucket/texts/*.parquet' -l labels.yaml -o s3://bucket/labelled/
    """
    if needs_cluster(inputs, output, cluster):
        with plain_errors():
            llm.check_one_machine()
        if explain:
            note_no_effect("--explain", "with several workers; use 'ulr predict --explain'")
        classify_on_cluster(inputs, classifier, output, cluster, save_model, report, json)
        return
    with plain_errors() as outputs:
        outputs.watch(output.output, save_model, report)
        from ulr.classifier import check_model_folder, save
        from ulr.jobs import classify as classify_documents
        from ulr.report import check_report_path, report_documents

        target = output.checked(json, save_model, report, classifier=classifier, explain=explain)
        if save_model is not None:
            check_model_folder(save_model, output.force)
        if report is not None:
            check_report_path(report, output.force)
        with ProgressBar() as progress, inputs.open() as documents:
            note_replaced(target, documents)
            check_no_input(documents, save_model, report)
            settings = classifier.settings(progress, **llm.parameters(classifier.cache))
            support = classifier.support(settings, inputs, documents)
            if llm.llm and llm.llm_dry_run:
                print_plan(documents, settings, support, progress, json)
                return
            run = classify_documents if report is None else report_documents
            fitted, result, *pages = run(documents, settings, target, progress, support=support)
            for page in pages:
                page.write(str(report))
            if save_model is not None:
                save(fitted, save_model, overwrite=output.force)
        if json:
            print_json(result.as_dict())
        elif output.output != "-":
            print_summary(result)
