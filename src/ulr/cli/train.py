"""`ulr train`: an encoder of one's own, from texts and the categories they come with."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from itertools import tee
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ulr.cli import options
from ulr.cli import train_options as given
from ulr.cli.console import plain_errors, print_json
from ulr.cli.train_console import Watch, print_plan, print_report

if TYPE_CHECKING:
    from ulr.tables import TableFormat

train = typer.Typer(
    help="Fine-tune an encoder on texts and the categories they come with.",
    no_args_is_help=True,
    rich_markup_mode="rich",
)


@train.command()
def dual(
    base: given.Base,
    pairs: given.Pairs,
    output: given.OutputFolder,
    objective: Annotated[
        str,
        typer.Option(
            "--objective",
            help="'dot': dot product and binary cross entropy; 'l2': squared distance and "
            "contrastive hinge loss.",
        ),
    ] = "dot",
    margin: Annotated[float, typer.Option("--margin", help="Of the hinge loss.")] = 0.5,
    instances: given.Instances = None,
    batch: given.Batch = 32,
    parts: given.Parts = 1,
    max_tokens: given.Tokens = 128,
    rate: given.Rate = 2e-5,
    seed: given.Seed = 1,
    negatives_per_text: given.NNegatives = 7,
    negatives: given.NegativesFrom = None,
    validation: given.Validation = 1000,
    validate_every: given.ValidateEvery = None,
    checkpoint_every: given.CheckpointEvery = None,
    text_column: options.TextColumns = None,
    category_column: given.CategoryColumn = None,
    category_separator: given.CategorySeparator = None,
    path_separator: given.PathSeparator = None,
    passage_words: given.PassageWords = None,
    keep_names: given.KeepNames = False,
    device: given.Device = None,
    precision: given.Precision = None,
    threads: given.Threads = None,
    resume: given.Resume = False,
    force: options.Force = False,
    dry_run: given.DryRun = False,
    json: options.Json = False,
) -> None:
    """Train a dual encoder: texts and categories become vectors of their own ('hf:DIR').

    [bold]Examples[/bold]

    ulr train dual --base roberta-base --pairs "natcat:reddit.train.*@50%"
    --pairs stackexchange:questions.jsonl@35% --pairs wikipedia:articles.jsonl@15%
    --instances 300000 -o natcat-dot

    ulr train dual --base DIR --pairs tickets.csv -t subject --category-column tags
    --category-separator ";" -o tickets-encoder --dry-run

    ulr classify new.csv -l labels.txt --encoder hf:natcat-dot -o labelled.csv
    """
    _train_on_pairs(locals())


@train.command()
def single(
    base: given.Base,
    pairs: given.Pairs,
    output: given.OutputFolder,
    instances: given.Instances = None,
    batch: given.Batch = 32,
    parts: given.Parts = 1,
    max_tokens: given.Tokens = 128,
    rate: given.Rate = 2e-5,
    seed: given.Seed = 1,
    negatives_per_text: given.NNegatives = 7,
    negatives: given.NegativesFrom = None,
    validation: given.Validation = 1000,
    validate_every: given.ValidateEvery = None,
    checkpoint_every: given.CheckpointEvery = None,
    text_column: options.TextColumns = None,
    category_column: given.CategoryColumn = None,
    category_separator: given.CategorySeparator = None,
    path_separator: given.PathSeparator = None,
    passage_words: given.PassageWords = None,
    keep_names: given.KeepNames = False,
    device: given.Device = None,
    precision: given.Precision = None,
    threads: given.Threads = None,
    resume: given.Resume = False,
    force: options.Force = False,
    dry_run: given.DryRun = False,
    json: options.Json = False,
) -> None:
    """Train a single encoder: a category and a text are read together ('cross:DIR').

    Eight times the work of a dual encoder, as every category is read with its text.

    [bold]Examples[/bold]

    ulr train single --base roberta-base --pairs "natcat:reddit.train.*" -o natcat-single

    ulr train single --base DIR --pairs papers.jsonl --category-column subjects -o papers --dry-run

    ulr classify new.csv -l labels.txt --encoder cross:natcat-single -o labelled.csv
    """
    _train_on_pairs(locals() | {"objective": "single"})


@train.command("few-shot")
def few_shot(
    base: given.Base,
    labels: options.Labels,
    examples: Annotated[
        str,
        typer.Option(
            "--examples",
            help="CSV, TSV, JSONL or Parquet file of labelled texts.",
            show_default=False,
        ),
    ],
    output: given.OutputFolder,
    category_column: Annotated[
        str, typer.Option("--category-column", help="Column of the label names.")
    ] = "label",
    text_column: options.TextColumns = None,
    per_class: Annotated[
        int, typer.Option("--per-class", "-n", help="Texts drawn of every class.")
    ] = 30,
    epochs: Annotated[int, typer.Option("--epochs", help="How often each is used.")] = 3,
    objective: Annotated[
        str | None,
        typer.Option(
            "--objective",
            help="'dot' or 'l2'; by default what the base was trained with.",
            show_default=False,
        ),
    ] = None,
    batch: given.Batch = 32,
    max_tokens: Annotated[
        int | None,
        typer.Option("--max-tokens", help="By default as the base was trained, or 128."),
    ] = None,
    rate: given.Rate = 2e-5,
    seed: given.Seed = 1,
    refine: Annotated[
        str | None,
        typer.Option(
            "--refine",
            help="File of unlabelled texts to refine the labels on, the examples kept in place; "
            "needs --save-model.",
            show_default=False,
        ),
    ] = None,
    save_model: Annotated[
        str | None,
        typer.Option("--save-model", help="Folder for the refined classifier of --refine."),
    ] = None,
    device: given.Device = None,
    threads: given.Threads = None,
    resume: given.Resume = False,
    force: options.Force = False,
    dry_run: given.DryRun = False,
    json: options.Json = False,
    format: options.Format = None,
    encoding: options.Encoding = "utf-8",
    delimiter: options.Delimiter = None,
    no_header: options.NoHeader = False,
) -> None:
    """Train a dual encoder further on a few labelled texts of every class, then refine with them.

    [bold]Examples[/bold]

    ulr train few-shot --base natcat-dot --examples labelled.csv -l labels.txt -o news-encoder

    ulr train few-shot --base natcat-dot --examples labelled.csv -l labels.txt -o news-encoder
    --refine unlabelled.csv --save-model news-model

    ulr predict news-model tomorrow.csv -o tomorrow-labelled.csv
    """
    if (refine is None) != (save_model is None):
        raise typer.BadParameter("--refine and --save-model go together; give both or neither.")
    with _stoppable(output), plain_errors():
        from dataclasses import replace

        import ulr.train as training
        from ulr.labels import labels_from_argument
        from ulr.saved import refuse_to_save
        from ulr.train.fewshot import settings_of

        if save_model is not None:
            refuse_to_save(save_model, force)
        how = options.table_format(format, encoding, delimiter, no_header)
        label_set = labels_from_argument(labels)
        one, other = tee(_labelled(examples, how, text_column or [], category_column))
        drawn = training.draw_examples(
            (text for text, _ in one),
            (label for _, label in other),
            label_set.names,
            per_class,
            seed,
        )
        asked: dict[str, Any] = {
            "objective": objective,
            "batch_size": batch,
            "max_tokens": max_tokens,
            "peak_rate": rate,
            "seed": seed,
            "device": device,
            "threads": threads,
        }
        asked = {name: value for name, value in asked.items() if value is not None}
        settings = replace(settings_of(base), **asked)
        if dry_run:
            plan = training.estimate_few_shot(base, label_set, drawn, settings, epochs=epochs)
            print_json(plan.as_dict()) if json else print_plan(plan, sys.stdout)
            return
        with Watch() as watch:
            report = training.few_shot(
                base,
                label_set,
                drawn,
                output,
                settings,
                epochs=epochs,
                resume=resume,
                force=force,
                on_plan=watch.planned,
                on_progress=watch.stepped,
            )
        told = report.as_dict()
        if refine is not None and save_model is not None:
            texts = list(_texts(refine, how, text_column or []))
            classifier = training.refine_with_examples(
                output, label_set, drawn, texts, objective=settings.objective
            )
            classifier.save(save_model, overwrite=force)
            told |= {"classifier": save_model, "refined_on": len(texts)}
        if json:
            print_json(told)
        else:
            print_report(report)
            if save_model is not None:
                print(f"The refined classifier: {save_model}, for 'ulr predict'.")


def _train_on_pairs(chosen: dict[str, Any]) -> None:
    """What `dual` and `single` do with their options."""
    output = chosen["output"]
    with _stoppable(output), plain_errors():
        import ulr.train as training
        from ulr.errors import TrainingError

        if chosen["objective"] not in ("dot", "l2", "single"):
            raise TrainingError(f"objective must be dot or l2; got {chosen['objective']!r}.")
        named = {_SETTINGS.get(name, name): value for name, value in chosen.items()}
        known = training.Settings.__dataclass_fields__
        settings = training.Settings(
            **{name: value for name, value in named.items() if name in known},
            as_words=not chosen["keep_names"],
        )
        columns = chosen["text_column"]
        sources = [
            training.parse_source(
                each,
                text_columns=tuple(columns) if columns else None,
                **{name: chosen[name] for name in _OF_SOURCES},
            )
            for each in chosen["pairs"]
        ]
        if chosen["dry_run"]:
            plan = training.estimate(chosen["base"], sources, settings)
            print_json(plan.as_dict()) if chosen["json"] else print_plan(plan, sys.stdout)
            return
        with Watch() as watch:
            report = training.train(
                chosen["base"],
                sources,
                output,
                settings,
                resume=chosen["resume"],
                force=chosen["force"],
                on_plan=watch.planned,
                on_progress=watch.stepped,
            )
        print_json(report.as_dict()) if chosen["json"] else print_report(report)


_SETTINGS = {
    "instances": "n_instances",
    "batch": "batch_size",
    "rate": "peak_rate",
    "negatives_per_text": "n_negatives",
    "validation": "n_held_out",
}
_OF_SOURCES = (
    "negatives",
    "category_column",
    "category_separator",
    "path_separator",
    "passage_words",
)


def _texts(name: str, how: TableFormat, columns: list[str]) -> Iterator[str]:
    """The texts of a file."""
    from ulr.jobs import text_columns
    from ulr.tables import open_table

    with open_table(name, how) as table:
        chosen = text_columns(table, columns)
        for batch in table.batches():
            yield from table.texts(batch, chosen)


def _labelled(
    name: str, how: TableFormat, columns: list[str], of_labels: str
) -> Iterator[tuple[str, str | None]]:
    """The texts of a file with their labels."""
    from ulr.jobs import label_name, text_columns
    from ulr.tables import open_table

    with open_table(name, how) as table:
        table.check_columns([of_labels], "--category-column")
        chosen = text_columns(table, columns)
        for batch in table.batches():
            labels = (label_name(value) or None for value in batch.column(of_labels))
            yield from zip(table.texts(batch, chosen), labels, strict=True)


@contextlib.contextmanager
def _stoppable(output: str) -> Iterator[None]:
    """Ctrl-C leaves a run that can go on."""
    try:
        yield
    except typer.Exit as stopped:
        if stopped.exit_code == 130 and Path(f"{output}.training").is_dir():
            print("ulr: go on from the last checkpoint with --resume.", file=sys.stderr)
        raise
