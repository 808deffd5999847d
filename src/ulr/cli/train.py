"""`ulr train`: fine-tune an encoder on texts and their categories."""

from __future__ import annotations

import sys
from dataclasses import asdict, dataclass, replace
from typing import Annotated

from ulr import train as training
from ulr.cli.console import ProgressBar, plain_errors, print_json
from ulr.cli.groups import ADVANCED, INPUT, OUTPUT, option, option_groups
from ulr.cli.options import Json, note_no_effect
from ulr.errors import TrainingError
from ulr.train import PairSource, TrainingSettings

TRAINING, FEW_SHOT = "Training", "Few labelled examples"
_STOPPED = "no encoder was written; continue from the last checkpoint with --resume"


@dataclass(frozen=True)
class PairOptions:
    """Texts with categories."""

    pairs: Annotated[
        list[str] | None,
        option(
            INPUT,
            help=r"Texts with categories: [KIND:]PATH\[@SHARE]; may be repeated. KIND is natcat "
            "(tab fields: the true category, 7 false ones, the text), table, stackexchange or "
            "wikipedia (articles with paths of categories, split into passages). PATH may contain "
            "*.",
        ),
    ] = None
    text_column: Annotated[
        list[str] | None,
        option(
            INPUT,
            "--text-column",
            "-t",
            help="Column of the texts; may be repeated. Default: text.",
        ),
    ] = None
    category_column: Annotated[
        str | None,
        option(
            INPUT,
            help="Column of the categories. Default: category, categories, label, labels, site or "
            "tags; label for --examples.",
        ),
    ] = None
    category_separator: Annotated[
        str | None, option(INPUT, help="Between categories in one cell: ';'.")
    ] = None
    path_separator: Annotated[
        str | None, option(INPUT, help="Between ancestors and category, root first: '>'.")
    ] = None
    passage_words: Annotated[
        int | None, option(INPUT, help="Split texts into passages of this length.")
    ] = None
    negatives: Annotated[
        str | None,
        option(
            TRAINING,
            help="False categories: 'given' with the text (NatCat), or drawn, 'uniform' or in "
            "proportion to their 'frequency'. Default: given with NatCat, else frequency.",
        ),
    ] = None

    def sources(self) -> list[PairSource]:
        """The sources of the pairs."""
        how = asdict(self)
        files, columns = how.pop("pairs") or [], how.pop("text_column")
        how["text_columns"] = tuple(columns) if columns else None
        return [training.parse_source(each, **how) for each in files]


@dataclass(frozen=True)
class ExampleOptions:
    """Few labelled examples."""

    examples: Annotated[
        str | None, option(FEW_SHOT, help="File of labelled texts, instead of --pairs.")
    ] = None
    labels: Annotated[
        list[str] | None,
        option(FEW_SHOT, "--labels", "-l", help="The labels, as for 'ulr classify'."),
    ] = None
    per_label: Annotated[
        int,
        option(FEW_SHOT, "--per-label", "-n", help="Texts drawn per label.", show_default=True),
    ] = 30
    epochs: Annotated[int, option(FEW_SHOT, help="Uses of every text.", show_default=True)] = 3


@dataclass(frozen=True)
class RunOptions:
    """Fields of `TrainingSettings`; None for what an encoder to continue with was trained with."""

    objective: Annotated[
        str | None,
        option(
            TRAINING,
            help="Dual encoders: 'dot' (dot product, binary cross-entropy) or 'l2' (squared "
            "distance, hinge). 'single' reads pairs of category and text. Default: dot, or that "
            "of the base with --examples.",
        ),
    ] = None
    n_instances: Annotated[
        int | None,
        option(
            TRAINING, "--instances", help="Texts to train on. Default: most without repetition."
        ),
    ] = None
    batch_size: Annotated[int, option(TRAINING, help="Texts per step.", show_default=True)] = (
        TrainingSettings.batch_size
    )
    max_tokens: Annotated[
        int | None,
        option(
            TRAINING,
            help="Tokens that are read of a text. Default: 128, or that of the base with "
            "--examples.",
        ),
    ] = None
    learning_rate: Annotated[
        float, option(TRAINING, help="The highest learning rate.", show_default=True)
    ] = TrainingSettings.learning_rate
    n_held_out: Annotated[
        int,
        option(TRAINING, "--validation", help="Texts held out for validation.", show_default=True),
    ] = TrainingSettings.n_held_out
    parts: Annotated[
        int,
        option(ADVANCED, help="Parts to compute a batch in, to save memory.", show_default=True),
    ] = TrainingSettings.parts
    checkpoint_every: Annotated[
        int | None,
        option(
            ADVANCED,
            help="Steps between checkpoints, each with a validation. Default: a tenth of the run, "
            "at most 500.",
        ),
    ] = None
    n_jobs: Annotated[
        int | None, option(ADVANCED, help="Threads on the CPU. Default: every core.")
    ] = None
    random_state: Annotated[
        int, option(ADVANCED, "--seed", help="Seed of everything that is drawn.", min=0)
    ] = TrainingSettings.random_state

    def settings(self, defaults: TrainingSettings, as_words: bool) -> TrainingSettings:
        """The settings, with defaults for options that are not given."""
        given = {name: value for name, value in asdict(self).items() if value is not None}
        return replace(defaults, as_words=as_words, **given)


@option_groups
def train_encoder(
    base: Annotated[
        str, option(INPUT, help="The model to start from: a folder or a name on the hub.")
    ],
    output: Annotated[str, option(OUTPUT, "--output", "-o", help="Folder for the encoder.")],
    pairs: PairOptions,
    examples: ExampleOptions,
    run: RunOptions,
    keep_names: Annotated[
        bool,
        option(INPUT, "--keep-names", help="Do not split names of categories (a_b, c.d, EfGh)."),
    ] = False,
    resume: Annotated[
        bool, option(OUTPUT, "--resume", help="Continue from the last checkpoint.")
    ] = False,
    force: Annotated[bool, option(OUTPUT, "--force", help="Replace existing output.")] = False,
    dry_run: Annotated[
        bool, option(OUTPUT, "--dry-run", help="Show the plan; write nothing.")
    ] = False,
    json: Json = False,
) -> None:
    """Fine-tune an encoder on texts and their categories.

    [bold]Examples[/bold]

    ulr train --base roberta-base --pairs "natcat:reddit.train.*@50%"
    --pairs stackexchange:questions.jsonl@35% --pairs wikipedia:articles.jsonl@15%
    --instances 300000 -o natcat-dot

    ulr train --base DIR --pairs tickets.csv -t subject --category-column tags
    --category-separator ";" -o tickets-encoder --dry-run

    ulr train --base natcat-dot --examples labelled.csv -l labels.txt -o news-encoder
    """
    with plain_errors(_STOPPED):
        if bool(pairs.pairs) == bool(examples.examples):
            found = "both" if pairs.pairs else "neither"
            raise TrainingError(f"training needs either --pairs or --examples; got {found}.")
        if examples.examples:
            sources, settings = _few_shot(base, examples.examples, pairs, examples, run)
        else:
            for name in ("labels", "per_label", "epochs"):
                if getattr(examples, name) != getattr(ExampleOptions, name):
                    note_no_effect(f"--{name.replace('_', '-')}", "without --examples")
            sources = pairs.sources()
            settings = run.settings(TrainingSettings(), not keep_names)
        if dry_run:
            plan = training.make_plan(base, sources, settings)
            print_json(asdict(plan)) if json else print(plan)
            return
        with ProgressBar() as progress:
            report = training.train(
                base,
                sources,
                output,
                settings,
                resume=resume,
                force=force,
                progress=progress,
                log=lambda line: print(line, file=sys.stderr),
            )
        if json:
            print_json(asdict(report))
            return
        prefix = "cross" if settings.objective == "single" else "hf"
        print(f"{report}\nWritten: {output}; use it with --encoder {prefix}:{output}")


def _few_shot(
    base: str, file: str, pairs: PairOptions, examples: ExampleOptions, run: RunOptions
) -> tuple[list[PairSource], TrainingSettings]:
    """Sources and settings of fine-tuning on few labelled examples."""
    from ulr.labels import labels_from_arguments

    if not examples.labels:
        raise TrainingError("--examples needs --labels, the names of all labels.")
    labels = labels_from_arguments(examples.labels)
    columns, category = tuple(pairs.text_column or ["text"]), pairs.category_column or "label"
    table = PairSource((file,), text_columns=columns, category_column=category)
    drawn = training.read_examples(table, labels.names, examples.per_label, run.random_state)
    settings = run.settings(training.base_settings(base), as_words=False)
    return training.few_shot_instances(base, labels, drawn, settings, examples.epochs)
