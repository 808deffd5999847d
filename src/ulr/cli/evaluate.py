"""`ulr evaluate`: how good the labels are, where the true ones are known."""

from __future__ import annotations

from typing import Annotated

from ulr.cli.classifier_options import ClassifierOptions
from ulr.cli.console import ProgressBar, plain_errors, print_json
from ulr.cli.groups import LABELS, option, option_groups
from ulr.cli.language_model import LanguageModelOptions, print_plan
from ulr.cli.options import InputOptions, Json
from ulr.cli.summaries import print_evaluation


@option_groups
def evaluate(
    inputs: InputOptions,
    classifier: ClassifierOptions,
    llm: LanguageModelOptions,
    truth: Annotated[
        str,
        option(LABELS, "--truth", help="Column of the true labels, used only for the figures."),
    ],
    json: Json = False,
) -> None:
    """Classify a file as 'ulr classify' does, then compare with true labels.

    Prints accuracy, macro-F1, figures of each label and a confusion matrix, before and after
    refinement. True labels are compared ignoring case and surrounding blanks, and never used to
    classify.

    [bold]Examples[/bold]

    ulr evaluate news.csv --labels "world, sports, business" --truth section

    ulr evaluate test.csv --no-header -t c2 -t c3 --truth c1 -l labels.txt --json
    """
    with plain_errors():
        from ulr.jobs import classify

        with ProgressBar() as progress, inputs.open() as documents:
            settings = classifier.settings(progress, **llm.parameters(classifier.cache))
            support = classifier.support(settings, inputs, documents)
            if llm.llm and llm.llm_dry_run:
                print_plan(documents, settings, support, progress, json)
                return
            _, result = classify(
                documents, settings, None, progress, support=support, truth_column=truth
            )
        if json:
            print_json(result.as_dict())
        else:
            print_evaluation(result)
