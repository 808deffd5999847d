"""`ulr train`: fine-tune an encoder on texts and their categories."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from dataclasses import replace
from itertools import tee
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from ulr.cli import options
from ulr.cli import train_options as given
from ulr.cli.console import ProgressBar, plain_errors, print_json
from ulr.cli.train_console import TrainingDisplay, print_plan, print_report

if TYPE_CHECKING:
    from ulr.tables import TableFormat
    from ulr.train import Examples, TrainingPlan, TrainingReport, TrainingSettings

_OBJECTIVES = ("dual", "single", "few-shot")
_SETTINGS = {
    "instances": "n_instances",
    "negatives_per_text": "n_negatives",
    "validation": "n_held_out",
    "seed": "random_state",
}
_SOURCE = (
    "negatives category_column category_separator path_separator passage_words text_columns"
).split()
# Options that have no effect with the other objectives.
_PAIRS_ONLY = (
    "pairs negatives negatives_per_text instances validation validate_every category_separator "
    "path_separator passage_words keep_names"
).split()
_FEW_SHOT_ONLY = (
    "labels examples per_label epochs refine save_model format encoding delimiter no_header"
).split()
_DUAL_ONLY = ["score", "margin"]


def train_encoder(
    base: given.Base,
    output: given.OutputFolder,
    objective: given.Objective = "dual",
    score: given.Score = None,
    pairs: given.Pairs = None,
    text_column: options.TextColumns = None,
    category_column: given.CategoryColumn = None,
    category_separator: given.CategorySeparator = None,
    path_separator: given.PathSeparator = None,
    passage_words: given.PassageWords = None,
    keep_names: given.KeepNames = False,
    instances: given.Instances = None,
    batch_size: given.BatchSize = None,
    max_tokens: given.MaxTokens = None,
    learning_rate: given.LearningRate = None,
    negatives: given.Negatives = None,
    negatives_per_text: given.NegativesPerText = None,
    validation: given.Validation = None,
    labels: given.Labels = None,
    examples: given.Examples = None,
    per_label: given.PerLabel = None,
    epochs: given.Epochs = None,
    refine: given.Refine = None,
    save_model: given.SaveModel = None,
    resume: given.Resume = False,
    force: options.Force = False,
    dry_run: given.DryRun = False,
    json: options.Json = False,
    format: options.Format = None,
    encoding: options.Encoding = None,
    delimiter: options.Delimiter = None,
    no_header: options.NoHeader = False,
    margin: given.Margin = None,
    parts: given.Parts = None,
    validate_every: given.ValidateEvery = None,
    checkpoint_every: given.CheckpointEvery = None,
    device: given.Device = None,
    precision: given.Precision = None,
    n_jobs: given.NJobs = None,
    seed: options.Seed = 1,
) -> None:
    """Fine-tune an encoder on texts and their categories.

    [bold]Examples[/bold]

    ulr train --base roberta-base --pairs "natcat:reddit.train.*@50%"
    --pairs stackexchange:questions.jsonl@35% --pairs wikipedia:articles.jsonl@15%
    --instances 300000 -o natcat-dot

    ulr train --base DIR --pairs tickets.csv -t subject --category-column tags
    --category-separator ";" -o tickets-encoder --dry-run

    ulr classify new.csv -l labels.txt --encoder hf:natcat-dot -o labelled.csv

    ulr train --objective single --base roberta-base --pairs "natcat:reddit.train.*" -o pairs

    ulr train --objective few-shot --base natcat-dot --examples labelled.csv -l labels.txt
    -o news-encoder --refine unlabelled.csv --save-model news-model
    """
    chosen = locals()
    with _resumable(output), plain_errors():
        _check_options(chosen)
        if objective == "few-shot":
            _few_shot(chosen)
        else:
            _train_on_pairs(chosen)


def _check_options(chosen: dict[str, Any]) -> None:
    from ulr.errors import TrainingError

    objective = chosen["objective"]
    if objective not in _OBJECTIVES:
        raise TrainingError(
            f"--objective must be one of {', '.join(_OBJECTIVES)}; got {objective!r}."
        )
    few_shot = objective == "few-shot"
    unused = [*(_PAIRS_ONLY if few_shot else _FEW_SHOT_ONLY)]
    unused += _DUAL_ONLY if objective == "single" else []
    for name in unused:
        if chosen[name] not in (None, False):
            raise TrainingError(
                f"{_flag(name)} has no effect with --objective {objective}; leave it out."
            )
    for name in ("labels", "examples") if few_shot else ("pairs",):
        if not chosen[name]:
            raise TrainingError(f"--objective {objective} needs {_flag(name)}.")
    if (chosen["refine"] is None) != (chosen["save_model"] is None):
        raise TrainingError("--refine and --save-model need each other; add the other one.")


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _settings(chosen: dict[str, Any], defaults: TrainingSettings) -> TrainingSettings:
    """The settings of the options, with defaults for those that are not given."""
    named = {_SETTINGS.get(name, name): value for name, value in chosen.items()}
    named["objective"] = "single" if chosen["objective"] == "single" else chosen["score"]
    known = defaults.__dataclass_fields__
    return replace(
        defaults,
        **{name: value for name, value in named.items() if name in known and value is not None},
        as_words=not chosen["keep_names"],
    )


def _train_on_pairs(chosen: dict[str, Any]) -> None:
    import ulr.train as training

    settings = _settings(chosen, training.TrainingSettings())
    columns = chosen["text_column"]
    source = chosen | {"text_columns": tuple(columns) if columns else None}
    sources = [
        training.parse_source(each, **{name: source[name] for name in _SOURCE})
        for each in chosen["pairs"]
    ]
    if chosen["dry_run"]:
        _show_plan(training.estimate(chosen["base"], sources, settings), chosen)
        return
    with ProgressBar() as bar:
        report = training.train(
            chosen["base"], sources, chosen["output"], settings, **_run_options(chosen, bar)
        )
    _show_report(report, chosen, {})


def _few_shot(chosen: dict[str, Any]) -> None:
    import ulr.train as training
    from ulr.labels import labels_from_argument
    from ulr.persistence import refuse_to_save

    base, output, save_model = chosen["base"], chosen["output"], chosen["save_model"]
    if save_model is not None:
        refuse_to_save(save_model, chosen["force"])
    how = options.table_format(chosen)
    labels = labels_from_argument(chosen["labels"])
    examples = _read_examples(chosen, how, labels.names)
    settings = _settings(chosen, training.base_settings(base))
    epochs = {} if chosen["epochs"] is None else {"epochs": chosen["epochs"]}
    if chosen["dry_run"]:
        _show_plan(training.estimate_few_shot(base, labels, examples, settings, **epochs), chosen)
        return
    with ProgressBar() as bar:
        report = training.few_shot(
            base, labels, examples, output, settings, **epochs, **_run_options(chosen, bar)
        )
    more: dict[str, Any] = {}
    if save_model is not None:
        texts = list(_read_texts(chosen["refine"], how, chosen["text_column"] or []))
        classifier = training.refine_with_examples(
            output, labels, examples, texts, objective=settings.objective
        )
        classifier.save(save_model, overwrite=chosen["force"])
        more = {"classifier": save_model, "refined_on": len(texts)}
    _show_report(report, chosen, more)


def _run_options(chosen: dict[str, Any], bar: ProgressBar) -> dict[str, Any]:
    display = TrainingDisplay(bar)
    return {
        "resume": chosen["resume"],
        "force": chosen["force"],
        "on_plan": display.planned,
        "on_progress": display.stepped,
    }


def _show_plan(plan: TrainingPlan, chosen: dict[str, Any]) -> None:
    print_json(plan.as_dict()) if chosen["json"] else print_plan(plan, sys.stdout)


def _show_report(report: TrainingReport, chosen: dict[str, Any], more: dict[str, Any]) -> None:
    if chosen["json"]:
        print_json(report.as_dict() | more)
        return
    print_report(report)
    if more:
        model, encoder = more["classifier"], f"hf:{report.output}"
        print(f"Written: {model}; use it with: ulr predict {model} FILE --encoder {encoder}")


def _read_texts(name: str, how: TableFormat, columns: list[str]) -> Iterator[str]:
    from ulr.jobs import text_columns
    from ulr.tables import open_table

    with open_table(name, how) as table:
        own = text_columns(table, columns)
        for batch in table.batches():
            yield from table.texts(batch, own)


def _read_examples(chosen: dict[str, Any], how: TableFormat, names: tuple[str, ...]) -> Examples:
    """Draw examples from a file of labelled texts; rows with an empty label are ignored."""
    from ulr.jobs import LabelMatching, text_columns
    from ulr.tables import open_table
    from ulr.train import draw_examples
    from ulr.train.examples import PER_LABEL

    column = chosen["category_column"] or "label"
    per_label = PER_LABEL if chosen["per_label"] is None else chosen["per_label"]
    with open_table(chosen["examples"], how) as table:
        table.check_columns([column], "--category-column")
        own = text_columns(table, chosen["text_column"] or [])
        matching = LabelMatching(names)

        def rows() -> Iterator[tuple[str, str | None]]:
            for batch in table.batches():
                texts = table.texts(batch, own)
                for row, value in enumerate(batch.column(column)):
                    empty = matching.find(value) == ""
                    where = f"{table.name} row {batch.first_row + row + 1}"
                    yield texts[row], None if empty else matching.name_of(value, where)

        one, other = tee(rows())
        return draw_examples(
            (text for text, _ in one),
            (label for _, label in other),
            names,
            per_label,
            chosen["seed"],
        )


@contextlib.contextmanager
def _resumable(output: str) -> Iterator[None]:
    """After Ctrl-C, say that the run can be resumed."""
    try:
        yield
    except typer.Exit as stopped:
        if stopped.exit_code == 130 and Path(f"{output}.training").is_dir():
            print("ulr: continue from the last checkpoint with --resume.", file=sys.stderr)
        raise
