"""`ulr update`: a saved model meets the documents of a later month."""

from __future__ import annotations

from typing import Annotated

from ulr.cli.console import ProgressBar, plain_errors, print_json
from ulr.cli.groups import OUTPUT, option, option_groups
from ulr.cli.options import InputOptions, Json, ModelOptions, OutputOptions, note_replaced
from ulr.cli.summaries import print_drift, print_summary
from ulr.errors import InputError


@option_groups
def update(
    model: ModelOptions,
    inputs: InputOptions,
    output: OutputOptions,
    save_model: Annotated[
        str | None, option(OUTPUT, "--save-model", help="Folder for the updated model.")
    ] = None,
    in_place: Annotated[
        bool, option(OUTPUT, "--in-place", help="Replace MODEL by the updated model.")
    ] = False,
    json: Json = False,
) -> None:
    """Compare new documents with those a saved model was fitted on, and adapt the model to them.

    Labels keep their meaning. Where their shares have changed by more than chance, the sizes of the
    labels are estimated again. Documents that are unlike those of their label are counted, since a
    label may be missing. The model is written at the end, complete or not at all.

    [bold]Examples[/bold]

    ulr update news-model march.csv -o march-labelled.csv --in-place

    ulr update news-model march.csv --save-model march-model

    ulr update news-model march.csv --json
    """
    with plain_errors() as outputs:
        outputs.watch(output.output, model.model if in_place else save_model)
        from ulr.classifier import check_model_folder, save
        from ulr.jobs import update as update_documents

        if in_place and save_model is not None:
            raise InputError("--in-place and --save-model both name the updated model; choose one.")
        target = output.checked(json, save_model)
        folder = model.model if in_place else save_model
        fitted = model.load()
        if folder is not None:
            check_model_folder(folder, output.force or in_place)
        with ProgressBar() as progress, inputs.open() as documents:
            note_replaced(target, documents)
            fitted, drift, result = update_documents(documents, fitted, target, progress)
            if folder is not None:
                save(fitted, folder, overwrite=output.force or in_place)
        if json:
            print_json({"drift": drift.as_dict(), "result": result.as_dict(), "model": folder})
        elif output.output != "-":
            print_drift(drift, folder)
            print_summary(result)
