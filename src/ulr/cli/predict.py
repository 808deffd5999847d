"""`ulr predict`: new documents, classified with a saved model."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from ulr.cli.console import ProgressBar, note, plain_errors, print_json
from ulr.cli.groups import option_groups
from ulr.cli.options import (
    Explain,
    InputOptions,
    Json,
    ModelOptions,
    OutputOptions,
    note_no_effect,
    note_replaced,
)
from ulr.cli.summaries import print_predictions, print_summary
from ulr.markup import plain_text

_name_of_file = re.compile(r"[/\\*]|\.[A-Za-z]\w{0,7}$").search


@option_groups
def predict(
    model: ModelOptions,
    inputs: InputOptions,
    output: OutputOptions,
    explain: Explain = False,
    json: Json = False,
) -> None:
    """Give new documents a label with a model that 'ulr classify --save-model' saved.

    Instead of files, one text can be given.

    [bold]Examples[/bold]

    ulr classify news.csv -l "world, sports, business" -o labelled.csv --save-model news-model

    ulr predict news-model tomorrow.csv -o tomorrow-labelled.csv

    ulr predict news-model "The striker scored twice" --explain
    """
    with plain_errors() as outputs:
        outputs.watch(output.output)
        from ulr.classifier import explain as explain_texts
        from ulr.classifier import label_notes, place

        fitted = model.load()
        if len(inputs.file) == 1 and _is_text(inputs.file[0]):
            if output.output is not None:
                note_no_effect("-o", "on a text, whose label is printed")
            text = [plain_text(inputs.file[0])]
            found, chances = fitted.predict(text, n_threads=1), fitted.chances
            labels: Any = fitted.names[found.labels]
            probabilities = found.probabilities
            if (placement := place(fitted, found)) is not None:
                labels = placement.paths
            if chances is not None:
                labels = chances.names(found, fitted.names)
                probabilities = chances.chances(found)
            why = explain_texts(fitted, text, predictions=found) if explain else None
            print_predictions(fitted.names, labels, probabilities, found.empty, json, why)
            return
        from ulr.jobs import predict as predict_documents

        target = output.checked(json, explain=explain)
        none_label = None if fitted.none is None else fitted.none.name
        for sentence in label_notes(fitted.settings.label_set, none_label):
            note(sentence)
        with ProgressBar() as progress, inputs.open() as documents:
            note_replaced(target, documents)
            result = predict_documents(documents, fitted, target, progress)
        if json:
            print_json(result.as_dict())
        elif output.output != "-":
            print_summary(result)


def _is_text(argument: str) -> bool:
    """Whether an argument is a text: there is no such file, and it does not look like its name."""
    try:
        if argument == "-" or Path(argument).exists():
            return False
    except OSError:  # longer than any file name
        return True
    return " " in argument.strip() or _name_of_file(argument) is None
