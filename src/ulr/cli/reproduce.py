"""`ulr reproduce`: the paper's experiments on real data, with the paper's figures beside ours."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ulr.cli import options
from ulr.cli.console import ProgressBar, plain_errors, print_json

if TYPE_CHECKING:
    from ulr.experiments.results import Cell

_RESULTS, _REPORT = "results.jsonl", "report.md"
_PART = "reproduce"


def reproduce(
    experiments: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[EXPERIMENT]...",
            help="table-1 to table-9, figure-2, esa, oracle. Default: all of them.",
            show_default=False,
        ),
    ] = None,
    data: Annotated[
        str | None,
        typer.Option(
            "--data",
            envvar="ULR_DATA",
            metavar="DIR",
            help="Folder of the datasets: official archives, unpacked ones, or samples.",
            show_default=False,
        ),
    ] = None,
    encoder: Annotated[
        list[str] | None,
        typer.Option(
            "--encoder",
            help="Encoder to measure; may be repeated. 'l2=NAME' is for one distance only. "
            "Default: 'static', and 'glove' in Table 2.",
            show_default=False,
        ),
    ] = None,
    single: Annotated[
        list[str] | None,
        typer.Option(
            "--single",
            metavar="cross:FOLDER",
            help="Single encoder, for Table 4.",
            show_default=False,
        ),
    ] = None,
    single_sample: Annotated[
        int | None,
        typer.Option(
            "--single-sample", help="Most documents for --single.", show_default=False, min=1
        ),
    ] = None,
    concepts: Annotated[
        str | None,
        typer.Option(
            "--concepts",
            metavar="FILE",
            help="Articles for ESA. Default: concepts/wikipedia_articles.jsonl in DIR.",
            show_default=False,
        ),
    ] = None,
    fine_tuned: Annotated[
        list[str] | None,
        typer.Option(
            "--fine-tuned",
            metavar="DATASET=hf:FOLDER",
            help="Encoder fine-tuned on 30 examples per label, for Table 8; may be repeated.",
            show_default=False,
        ),
    ] = None,
    extra_texts: Annotated[
        int, typer.Option("--extra-texts", help="Most unlabelled texts to add, in Table 9.", min=1)
    ] = 100_000,
    out: Annotated[
        str, typer.Option("--out", metavar="DIR", help="Folder for the results and the report.")
    ] = "reproduction",
    cache: options.Cache = None,
    seed: Annotated[
        int, typer.Option("--seed", help="Seed of everything that is drawn.", min=0)
    ] = 1,
    write: Annotated[
        str | None,
        typer.Option(
            "--write",
            metavar="PAGE",
            help="Markdown page to write the report into, too, between <!-- reproduce --> and "
            "<!-- /reproduce -->.",
            show_default=False,
        ),
    ] = None,
    list_: Annotated[bool, typer.Option("--list", help="List the experiments.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print the cells as JSON.")] = False,
) -> None:
    """Run the experiments of the paper and print each table with the paper's figures beside ours.

    Finished cells are kept in DIR/results.jsonl, and the same command continues an interrupted
    run. The report shows all results of the folder, so encoders can be added run by run.

    [bold]Examples[/bold]

    ulr reproduce table-2 --data DIR

    ulr reproduce all --data DIR --encoder static --encoder minilm --cache vectors

    ulr reproduce --data DIR --encoder cosine=hf:dot --encoder l2=hf:l2 --single cross:single
    """
    folder = Path(out)
    stopped = f"finished cells are kept in {folder / _RESULTS}; repeat the command to continue"
    with plain_errors(stopped):
        if list_:
            _print_experiments()
            return
        from ulr.errors import ExperimentError
        from ulr.experiments.report import check_part, markdown_report
        from ulr.experiments.resources import RunSettings
        from ulr.experiments.results import Results
        from ulr.experiments.run import check_data, choose_encoders, find_experiments, run
        from ulr.files import user_cache

        chosen = find_experiments(experiments or [])
        if data is None:
            raise ExperimentError(
                "the datasets are needed: name their folder with --data DIR or ULR_DATA."
            )
        check_data(Path(data))
        page = None if write is None else Path(write)
        if page is not None:
            check_part(page, _PART)
        names = [*(encoder or []), *(single or [])]
        names += [] if concepts is None else [f"esa:{concepts}"]
        encoders = choose_encoders(names, Path(data), _by_dataset(fine_tuned or []))
        vectors = user_cache("vectors") if cache is None else Path(cache)
        settings = RunSettings(Path(data), vectors, seed, single_sample, extra_texts)
        folder.mkdir(parents=True, exist_ok=True)
        with Results(folder / _RESULTS) as results:
            with ProgressBar() as bar:
                cells = run(chosen, encoders, settings, results, bar)
            everything = results.cells
            picture = _write_report(everything, folder, page)
        if json:
            print_json({"report": str(folder / _REPORT), "cells": list(map(_summary, cells))})
            return
        print(markdown_report(everything, chosen, picture))
        not_run = sum(bool(cell.not_run) for cell in cells)
        print(
            f"{len(cells) - not_run} cells measured, {not_run} not run; the tables say why. "
            f"Written: {folder / _REPORT}, {folder / _RESULTS}"
        )


def _by_dataset(given: Sequence[str]) -> dict[str, str]:
    from ulr.errors import ExperimentError

    pairs = {}
    for each in given:
        dataset, equals, name = each.partition("=")
        if not (equals and name):
            raise ExperimentError(f"--fine-tuned must be DATASET=hf:FOLDER; got {each!r}.")
        pairs[dataset] = name
    return pairs


def _write_report(cells: list[Cell], folder: Path, page: Path | None) -> str:
    """Write the report and its picture, also into a page; returns the picture's name."""
    from ulr.experiments.report import markdown_report, replace_part
    from ulr.files import atomic_file

    picture = _draw(cells, folder)
    report = markdown_report(cells, None, picture)
    with atomic_file(folder / _REPORT) as file:
        file.write(f"# The paper, reproduced\n\n{report}".encode())
    if page is not None:
        if picture.endswith(".png"):
            with atomic_file(page.parent / picture) as file:
                file.write((folder / picture).read_bytes())
        replace_part(page, _PART, report.rstrip("\n"))
    return picture


def _draw(cells: list[Cell], folder: Path) -> str:
    """Draw Figure 2 if there are sweeps; returns its name, or why it could not be drawn."""
    from ulr.errors import InputError
    from ulr.experiments.figure import FILES, draw_gains

    if not any(cell.key.measure == "sweep" and not cell.not_run for cell in cells):
        return ""
    try:
        draw_gains(cells, folder)
    except InputError as error:
        return f"The picture was not drawn: {error}"
    return FILES[0]


def _summary(cell: Cell) -> dict[str, object]:
    """A cell without the figures of every set of a sweep."""
    return {key: value for key, value in cell.as_dict().items() if key not in ("before", "after")}


def _print_experiments() -> None:
    from ulr.experiments.paper import CLASSIFIERS, EXPERIMENTS

    width = max(map(len, EXPERIMENTS))
    for name, experiment in EXPERIMENTS.items():
        print(f"{name:<{width}}  {experiment.title} ({CLASSIFIERS[experiment.role]})")
