"""`ulr suggest`: labels that are missing, to merge or to split, and phrases for them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from ulr.cli.classifier_options import ClassifierOptions
from ulr.cli.console import ProgressBar, new_console, plain_errors, print_json
from ulr.cli.groups import LABELS, OUTPUT, option, option_groups
from ulr.cli.language_model import LanguageModelOptions, print_sent
from ulr.cli.options import InputOptions, Json, check_no_input, note_no_effect

if TYPE_CHECKING:
    from rich.console import Console

    from ulr.jobs import SuggestJob

_SHOWN_DOCUMENTS = 3

LabelsOut = Annotated[
    str | None,
    option(
        OUTPUT,
        "--labels-out",
        help="Write the labels with the missing ones to a .txt, .csv, .json or .yaml file, which "
        "--labels reads.",
    ),
]
WithPhrases = Annotated[
    bool, option(LABELS, "--phrases", help="Write the phrases, too, with --labels-out.")
]
Force = Annotated[bool, option(OUTPUT, "--force", help="Replace an existing file of labels.")]


@option_groups
def suggest(
    inputs: InputOptions,
    classifier: ClassifierOptions,
    llm: LanguageModelOptions,
    labels_out: LabelsOut = None,
    phrases: WithPhrases = False,
    force: Force = False,
    json: Json = False,
) -> None:
    """Find labels that are missing, and labels to merge or to split, in your documents.

    A missing label is a group of documents that no label explains, with a name from its own words.
    Nothing is applied: look at the documents, edit the file of labels, and classify with it. Of many
    documents a random sample is examined. No labelled documents are needed.

    [bold]Examples[/bold]

    ulr suggest news.csv --labels "world, sports, business"

    ulr suggest tickets.csv -t message -l labels.yaml --labels-out more_labels.yaml --phrases
    """
    with plain_errors():
        from ulr.jobs import check_labels_path, write_labels
        from ulr.jobs import suggest as suggest_labels

        if labels_out is not None:
            check_labels_path(labels_out, force)
        for given, name in ((phrases, "--phrases"), (force, "--force")):
            if given and labels_out is None:
                note_no_effect(name, "without --labels-out")
        with ProgressBar() as progress, inputs.open() as documents:
            check_no_input(documents, labels_out)
            settings = classifier.settings(progress, **llm.parameters(classifier.cache))
            support = classifier.support(settings, inputs, documents)
            found = suggest_labels(documents, settings, progress, support=support)
        if llm.llm and llm.llm_dry_run:
            print_sent(settings, json)
            return
        if labels_out is not None:
            write_labels(found.suggestions.labels_with(settings.label_set, phrases), labels_out)
        if json:
            print_json(found.as_dict())
        else:
            _print_suggestions(found, labels_out)


def _print_suggestions(found: SuggestJob, labels_out: str | None) -> None:
    console, suggestions = new_console(), found.suggestions
    sample = "" if suggestions.examined == found.rows else f", a sample of {found.rows:,}"
    console.print(f"{suggestions.examined:,} documents{sample}.", end="\n\n")
    _print_missing(console, found)
    if suggestions.merge:
        console.print("Labels that compete for the same documents; merge them?", style="bold")
        for pair in suggestions.merge:
            console.print(f"  {pair.first} and {pair.second}: overlap {pair.overlap:.2f}")
    if suggestions.split:
        console.print("Labels that hold two groups; split them?", style="bold")
        for each in suggestions.split:
            console.print(f"  {each.label}")
            for size, words in zip(each.sizes, each.words, strict=True):
                console.print(f"    {size:,} documents: {', '.join(words)}")
    if suggestions.phrases:
        console.print("Phrases from the documents; strike out those that do not fit:", style="bold")
        for label, own in suggestions.phrases.items():
            console.print(f"  {label}: {', '.join(own)}")
    if labels_out is not None:
        console.print(f"Written: {labels_out}")


def _print_missing(console: Console, found: SuggestJob) -> None:
    if not found.suggestions.missing:
        console.print("No label is missing: every group of documents is explained by a label.")
        return
    console.print("Groups of documents that no label explains:", style="bold")
    for each in found.suggestions.missing:
        other = each.better_name_for
        kind = "a new label" if other is None else f"or a phrase for {other!r}"
        labels = ", ".join(f"{name} {share:.0%}" for name, share in each.labels)
        name = f"{each.advised_name} ({each.name})" if each.advised_name else each.name
        console.print(f"  {name}, {kind}: {each.size:,} documents, now {labels}")
        console.print(f"    words: {', '.join(each.words)}")
        for position in each.documents[:_SHOWN_DOCUMENTS]:
            shown = found.texts[position]
            console.print(
                f"    row {shown.row}: {shown.text}" if shown.row else f"    {shown.text}"
            )
