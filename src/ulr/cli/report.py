"""`ulr report`: a file and label names in, one HTML page about the result out."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

from ulr.cli.classifier_options import ClassifierOptions
from ulr.cli.console import ProgressBar, plain_errors, print_json
from ulr.cli.groups import OUTPUT, option, option_groups
from ulr.cli.language_model import LanguageModelOptions, print_plan
from ulr.cli.options import InputOptions, Json, Truth, check_no_input
from ulr.cli.summaries import print_summary


@option_groups
def report(
    inputs: InputOptions,
    classifier: ClassifierOptions,
    llm: LanguageModelOptions,
    output: Annotated[str, option(OUTPUT, "--output", "-o", help="HTML file for the report.")],
    truth: Truth = None,
    force: Annotated[bool, option(OUTPUT, "--force", help="Replace an existing file.")] = False,
    json: Json = False,
) -> None:
    """Classify a file as 'ulr classify' does, and write a page about the result.

    The page is one HTML file with a map of the documents, what refinement changed, and documents
    of each label. It opens without a network and can be mailed. It contains the beginnings of at
    most 5,000 documents.

    [bold]Examples[/bold]

    ulr report news.csv --labels "world, sports, business" -o report.html

    ulr report test.csv -t title -t body -l labels.txt --truth section -o report.html
    """
    with plain_errors() as outputs:
        outputs.watch(output)
        from ulr.report import check_report_path, report_documents

        check_report_path(output, force)
        with ProgressBar() as progress, inputs.open() as documents:
            check_no_input(documents, output)
            settings = classifier.settings(progress, **llm.parameters(classifier.cache))
            support = classifier.support(settings, inputs, documents)
            if llm.llm and llm.llm_dry_run:
                print_plan(documents, settings, support, progress, json)
                return
            _, result, page = report_documents(
                documents, settings, None, progress, support=support, truth_column=truth
            )
            page.write(output)
        result = replace(result, output=output)
        if json:
            print_json(result.as_dict())
        else:
            print_summary(result)
