"""`ulr export`: the rule of a saved model as an ONNX file."""

from __future__ import annotations

from typing import Annotated

from ulr.cli.console import plain_errors, print_json
from ulr.cli.groups import OUTPUT, option
from ulr.cli.options import Json, ModelEncoder, ModelFolder


def export(
    model: ModelFolder,
    output: Annotated[str, option(OUTPUT, "--output", "-o", help="The file, such as rule.onnx.")],
    force: Annotated[bool, option(OUTPUT, "--force", help="Replace existing output.")] = False,
    encoder: ModelEncoder = None,
    json: Json = False,
) -> None:
    """Write what a saved model does after its encoder as an ONNX file.

    It computes the probabilities of the labels from the vectors of texts and, where the model weighs
    words, from their counts; docs/integrations.md describes the inputs.

    [bold]Example[/bold]

    ulr export news-model -o rule.onnx
    """
    with plain_errors() as outputs:
        outputs.watch(output)
        from ulr.classifier import load
        from ulr.integrations import to_onnx

        fitted = load(model, encoder=encoder)
        to_onnx(fitted, output, overwrite=force)
        labels = fitted.names[:-1].tolist()
        words = getattr(fitted.rule, "words", None) is not None
        inputs = ["embeddings", "words", "counts"] if words else ["embeddings"]
        if json:
            facts = {"n_dims": fitted.rule.n_dims, "encoder": fitted.encoder_name}
            print_json({"output": output, "inputs": inputs, "labels": labels, **facts})
            return
        print(f"{output}: the rule of {len(labels)} labels on {fitted.rule.n_dims} dimensions.")
        print(f"Inputs: {', '.join(inputs)}. Encoder: {fitted.encoder_name}.")
