"""Options of `ulr train`."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from ulr.cli.options import ADVANCED, INPUT, OUTPUT

TRAINING, FEW_SHOT = "Training", "Few-shot"

Text = str | None
Integer = int | None
Number = float | None


def _option(panel: str, help: str, *names: str, default: bool = False) -> Any:
    return typer.Option(*names, help=help, show_default=default, rich_help_panel=panel)


Base = Annotated[
    str,
    _option(
        INPUT, "The model to start from: a folder, or a name on the Hugging Face hub.", "--base"
    ),
]
OutputFolder = Annotated[str, _option(OUTPUT, "Folder for the encoder.", "--output", "-o")]
Objective = Annotated[
    str,
    _option(
        TRAINING,
        "'dual': texts and categories become vectors; 'single': the model reads pairs of "
        "category and text; 'few-shot': a dual encoder on a few labelled texts.",
        "--objective",
        default=True,
    ),
]
Score = Annotated[
    Text,
    _option(
        TRAINING,
        "Of dual encoders. 'dot': dot product and binary cross entropy; 'l2': squared "
        "distance and hinge loss. Default: dot, or that of the base for few-shot.",
        "--score",
    ),
]
Pairs = Annotated[
    list[str] | None,
    _option(
        INPUT,
        r"Texts with categories: [KIND:]PATH\[@SHARE]; may be repeated. KIND is natcat (tab "
        "fields: the true category, 7 false ones, the text), table, stackexchange or wikipedia "
        "(articles with paths of categories, split into passages). PATH may contain *.",
        "--pairs",
    ),
]
CategoryColumn = Annotated[
    Text,
    _option(
        INPUT,
        "Column of the categories. Default: category, categories, label, labels, site or "
        "tags; label for few-shot.",
        "--category-column",
    ),
]
CategorySeparator = Annotated[
    Text, _option(INPUT, "Between categories in one cell: ';'.", "--category-separator")
]
PathSeparator = Annotated[
    Text, _option(INPUT, "Between ancestors and category, root first: '>'.", "--path-separator")
]
PassageWords = Annotated[
    Integer, _option(INPUT, "Split texts into passages of this length.", "--passage-words")
]
KeepNames = Annotated[
    bool, _option(INPUT, "Do not split names of categories (a_b, c.d, EfGh).", "--keep-names")
]
Negatives = Annotated[
    Text,
    _option(
        TRAINING,
        "False categories: 'given' with the text (NatCat), or drawn, 'uniform' or in "
        "proportion to their 'frequency'. Default: given with NatCat, else frequency.",
        "--negatives",
    ),
]
NegativesPerText = Annotated[
    Integer, _option(TRAINING, "False categories per text. Default: 7.", "--negatives-per-text")
]
Instances = Annotated[
    Integer,
    _option(
        TRAINING, "Texts to train on. Default: the most that uses no text twice.", "--instances"
    ),
]
BatchSize = Annotated[Integer, _option(TRAINING, "Texts per step. Default: 32.", "--batch-size")]
Parts = Annotated[
    Integer, _option(ADVANCED, "Compute a batch in parts, to save memory.", "--parts")
]
MaxTokens = Annotated[
    Integer,
    _option(
        TRAINING,
        "Tokens that are read of a text. Default: 128, or that of the base for few-shot.",
        "--max-tokens",
    ),
]
LearningRate = Annotated[
    Number, _option(TRAINING, "The highest learning rate. Default: 2e-5.", "--learning-rate")
]
Margin = Annotated[Number, _option(ADVANCED, "Of the hinge loss. Default: 0.5.", "--margin")]
Validation = Annotated[
    Integer, _option(TRAINING, "Texts held out for validation. Default: 1000.", "--validation")
]
ValidateEvery = Annotated[
    Integer, _option(ADVANCED, "Steps. Default: a tenth of the run.", "--validate-every")
]
CheckpointEvery = Annotated[
    Integer,
    _option(ADVANCED, "Steps. Default: a tenth of the run, at most 500.", "--checkpoint-every"),
]
Labels = Annotated[Text, _option(FEW_SHOT, "The labels, as for 'ulr classify'.", "--labels", "-l")]
Examples = Annotated[Text, _option(FEW_SHOT, "File of labelled texts.", "--examples")]
PerLabel = Annotated[
    Integer, _option(FEW_SHOT, "Texts to draw per label. Default: 30.", "--per-label", "-n")
]
Epochs = Annotated[Integer, _option(FEW_SHOT, "Uses of every text. Default: 3.", "--epochs")]
Refine = Annotated[
    Text,
    _option(
        FEW_SHOT,
        "File of unlabelled texts to refine the labels on; needs --save-model.",
        "--refine",
    ),
]
SaveModel = Annotated[
    Text, _option(FEW_SHOT, "Folder for the classifier of --refine.", "--save-model")
]
Device = Annotated[
    Text, _option(ADVANCED, "cpu, cuda, cuda:N or mps. Default: the fastest.", "--device")
]
Precision = Annotated[
    Text,
    _option(
        ADVANCED,
        "float32, or float16 or bfloat16 for mixed precision (the default on CUDA).",
        "--precision",
    ),
]
NJobs = Annotated[
    Integer, _option(ADVANCED, "Threads on the CPU. Default: every core.", "--n-jobs")
]
Resume = Annotated[bool, _option(OUTPUT, "Continue from the last checkpoint.", "--resume")]
DryRun = Annotated[
    bool, _option(OUTPUT, "Show the plan and the estimated time; write nothing.", "--dry-run")
]
