"""`ulr ask`: the documents whose labels would help most, as a file to fill in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from ulr.cli.classifier_options import ClassifierOptions
from ulr.cli.console import ProgressBar, new_console, plain_errors, plain_table, print_json
from ulr.cli.groups import OUTPUT, option, option_groups
from ulr.cli.options import InputOptions, Json, OutputOptions

if TYPE_CHECKING:
    from ulr.jobs import Questions


@option_groups
def ask(
    inputs: InputOptions,
    classifier: ClassifierOptions,
    output: OutputOptions,
    n: Annotated[int, option(OUTPUT, "-n", help="Most documents to ask for.", min=1)] = 30,
    json: Json = False,
) -> None:
    """Choose the documents whose true labels would help most, and write them for you to label.

    They are documents that the classifier is unsure of and that stand for others: near copies are
    not asked for twice. Their rows are written, the most helpful first, with the present label and
    an empty column 'label'. Fill in as many as you like, and give the file to --examples.

    [bold]Examples[/bold]

    ulr ask news.csv --labels "world, sports, business" -o ask.csv

    ulr classify news.csv -l "world, sports, business" --examples ask.csv -o labelled.csv

    ulr ask news.csv -l "world, sports, business" --examples ask.csv -n 10 -o more.csv
    """
    with plain_errors() as outputs:
        outputs.watch(output.output)
        from ulr.jobs import ask as ask_documents

        target = output.checked(json, classifier=classifier)
        with ProgressBar() as progress, inputs.open() as documents:
            settings = classifier.settings(progress)
            support = classifier.support(settings, inputs, documents)
            found = ask_documents(documents, settings, n, target, progress, support=support)
        if json:
            print_json(found.as_dict())
        elif output.output != "-":
            _print_questions(found)


def _print_questions(found: Questions) -> None:
    """Print what is asked for, and what to do with it."""
    from rich.text import Text

    console = new_console()
    table = plain_table(">row", "label now", ">confidence", "text")
    for each in found.questions:
        confidence = f"{each.confidence:.2f}"
        table.add_row(f"{each.row:,}", Text(each.label), confidence, Text(each.text))
    console.print(table)
    if found.output is None:
        console.print("Nothing was written; add -o ask.csv to label these documents.")
    else:
        console.print(f"Written: {found.output}")
        console.print(f"Fill in the column 'label', then classify with --examples {found.output}.")
