"""The options that the training commands share."""

from __future__ import annotations

from typing import Annotated

import typer

Base = Annotated[
    str,
    typer.Option(
        "--base",
        help="The model to begin with: a folder, or a name on the Hugging Face hub.",
        show_default=False,
    ),
]
OutputFolder = Annotated[
    str, typer.Option("--output", "-o", help="Folder for the encoder.", show_default=False)
]
Pairs = Annotated[
    list[str],
    typer.Option(
        "--pairs",
        help=r"[KIND:]PATH\[@SHARE], as often as there are sources. KIND is natcat (tab fields: "
        "the true category, 7 false ones, the text), table, stackexchange or wikipedia (articles "
        "with paths of categories, split into passages). PATH may have * in it.",
        show_default=False,
    ),
]
Instances = Annotated[
    int | None,
    typer.Option("--instances", help="Texts to train on. By default, no text is used twice."),
]
Batch = Annotated[int, typer.Option("--batch", help="Texts a step.")]
Parts = Annotated[
    int, typer.Option("--parts", help="Run a step's batch in so many parts, for less memory.")
]
Tokens = Annotated[int, typer.Option("--max-tokens", help="Tokens that are read of a text.")]
Rate = Annotated[float, typer.Option("--rate", help="The highest learning rate.")]
Seed = Annotated[int, typer.Option("--seed", help="Decides order, draws and dropout.")]
NNegatives = Annotated[
    int, typer.Option("--negatives-per-text", help="False categories beside each true one.")
]
NegativesFrom = Annotated[
    str | None,
    typer.Option(
        "--negatives",
        help="False categories: 'given' with the text (NatCat), or drawn, 'uniform' or by the "
        "'frequency' with which they are true. By default given where they are, else frequency.",
        show_default=False,
    ),
]
Validation = Annotated[
    int, typer.Option("--validation", help="Texts held out for validation; 0 for none.")
]
ValidateEvery = Annotated[
    int | None, typer.Option("--validate-every", help="In steps; ten times a run by default.")
]
CheckpointEvery = Annotated[
    int | None,
    typer.Option("--checkpoint-every", help="In steps; at least ten times a run by default."),
]
CategoryColumn = Annotated[
    str | None,
    typer.Option(
        "--category-column",
        help="Column of the categories. By default category, categories, label, labels, site or "
        "tags.",
        show_default=False,
    ),
]
CategorySeparator = Annotated[
    str | None,
    typer.Option("--category-separator", help="Between several categories in one cell, e.g. ';'."),
]
PathSeparator = Annotated[
    str | None,
    typer.Option(
        "--path-separator", help="Between a category and its ancestors, the root first: '>'."
    ),
]
PassageWords = Annotated[
    int | None, typer.Option("--passage-words", help="Split long texts into so many words.")
]
KeepNames = Annotated[
    bool,
    typer.Option("--keep-names", help="Leave names of categories as they are: a_b, c.d, EfGh."),
]
Device = Annotated[
    str | None, typer.Option("--device", help="cpu, cuda, cuda:N or mps; by default the fastest.")
]
Precision = Annotated[
    str | None,
    typer.Option(
        "--precision", help="float32, or float16 or bfloat16 for mixed precision (as on CUDA)."
    ),
]
Threads = Annotated[
    int | None,
    typer.Option("--threads", help="On the CPU; all cores by default. Fewer on a busy machine."),
]
Resume = Annotated[
    bool, typer.Option("--resume", help="Go on from the last checkpoint, if there is one.")
]
DryRun = Annotated[
    bool,
    typer.Option("--dry-run", help="Show the plan and the estimated time; write nothing."),
]
