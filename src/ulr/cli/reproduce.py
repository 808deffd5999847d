"""`ulr reproduce`: the paper's experiments on real data, its figures beside ours."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from ulr.cli import options
from ulr.cli.console import plain_errors, print_json

if TYPE_CHECKING:
    from ulr.experiments.plan import Place
    from ulr.experiments.results import Cell

_RESULTS, _REPORT = "results.jsonl", "report.md"
_PART = "reproduce"


def reproduce(
    experiments: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[EXPERIMENT]...",
            help="table-1 to table-9, figure-2, esa, oracle; all of them by default.",
            show_default=False,
        ),
    ] = None,
    data: Annotated[
        str | None,
        typer.Option(
            "--data",
            envvar="ULR_DATA",
            metavar="DIR",
            help="Folder of the datasets: official archives, what they unpack to, or samples.",
            show_default=False,
        ),
    ] = None,
    encoder: Annotated[
        list[str] | None,
        typer.Option(
            "--encoder",
            help="What stands for the paper's encoder; repeat it for several. 'l2=NAME' is for one "
            "distance only. By default 'static', and 'glove' in Table 2.",
            show_default=False,
        ),
    ] = None,
    single: Annotated[
        list[str] | None,
        typer.Option(
            "--single",
            metavar="cross:FOLDER",
            help="A single encoder, for Table 4.",
            show_default=False,
        ),
    ] = None,
    single_sample: Annotated[
        int | None,
        typer.Option("--single-sample", help="Most documents for it.", show_default=False, min=1),
    ] = None,
    concepts: Annotated[
        str | None,
        typer.Option(
            "--concepts",
            metavar="FILE",
            help="Articles for ESA; by default concepts/wikipedia_articles.jsonl in DIR.",
            show_default=False,
        ),
    ] = None,
    fine_tuned: Annotated[
        list[str] | None,
        typer.Option(
            "--fine-tuned",
            metavar="DATASET=hf:FOLDER",
            help="An encoder fine-tuned on 30 examples a label, for Table 8; may be repeated.",
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
    seed: Annotated[int, typer.Option("--seed", help="Of every draw.", min=0)] = 1,
    write: Annotated[
        str | None,
        typer.Option(
            "--write",
            metavar="PAGE",
            help="Markdown page to put the report into too, between <!-- reproduce --> and "
            "<!-- /reproduce -->.",
            show_default=False,
        ),
    ] = None,
    list_: Annotated[bool, typer.Option("--list", help="Show what there is.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print the cells as JSON.")] = False,
) -> None:
    """Run the experiments of the paper and print each table with the paper's figures beside ours.

    Every finished cell is kept in DIR/results.jsonl; after a kill the same command goes on from
    there. The report shows what the folder holds, so encoders may be added run by run.

    [bold]Examples[/bold]

    ulr reproduce table-2 --data DIR

    ulr reproduce all --data DIR --encoder static --encoder minilm --cache vectors

    ulr reproduce --data DIR --encoder cosine=hf:dot --encoder l2=hf:l2 --single cross:single
    """
    with plain_errors():
        from ulr.errors import ExperimentError
        from ulr.experiments.materials import Setting
        from ulr.experiments.pages import check_part
        from ulr.experiments.report import markdown_report
        from ulr.experiments.results import Results
        from ulr.experiments.run import check_data, choose_encoders, find_studies, run
        from ulr.files import user_cache

        if list_:
            _print_experiments()
            return
        studies = find_studies(experiments or [])
        if data is None:
            raise ExperimentError(
                "the datasets are needed: name their folder with --data DIR or ULR_DATA."
            )
        check_data(Path(data))
        if write is not None:
            check_part(Path(write), _PART)
        specs = [*(encoder or []), *(single or [])]
        specs += [] if concepts is None else [f"esa:{concepts}"]
        chosen = choose_encoders(specs, Path(data), _by_dataset(fine_tuned or []))
        kept_in = user_cache("vectors") if cache is None else Path(cache)
        setting = Setting(Path(data), kept_in, seed, single_sample, extra_texts)
        folder = Path(out)
        folder.mkdir(parents=True, exist_ok=True)
        with Results(folder / _RESULTS) as results:
            try:
                with _CellBar() as bar:
                    cells = run(studies, chosen, setting, results, bar)
            except KeyboardInterrupt:
                print(
                    f"ulr: stopped; finished cells are kept in {results.path}, and the same "
                    "command goes on from there.",
                    file=sys.stderr,
                )
                raise typer.Exit(130) from None
            everything = results.cells
            picture = _write_report(everything, folder, None if write is None else Path(write))
        if json:
            print_json({"report": str(folder / _REPORT), "cells": [_as_dict(c) for c in cells]})
        else:
            print(markdown_report(everything, studies, picture))
            print(_ending(cells, folder))


def _by_dataset(given: Sequence[str]) -> dict[str, str]:
    from ulr.errors import ExperimentError

    pairs = {}
    for each in given:
        dataset, equals, spec = each.partition("=")
        if not (equals and spec):
            raise ExperimentError(f"--fine-tuned must be DATASET=hf:FOLDER; got {each!r}.")
        pairs[dataset] = spec
    return pairs


def _write_report(cells: list[Cell], folder: Path, page: Path | None) -> str:
    """Write the report and its picture, and into a page where asked; the picture's name."""
    from ulr.experiments.pages import replace_part
    from ulr.experiments.report import markdown_report
    from ulr.files import whole_file

    picture = _draw(cells, folder)
    with whole_file(folder / _REPORT) as file:
        file.write(f"# The paper, reproduced\n\n{markdown_report(cells, None, picture)}".encode())
    if page is not None:
        if picture.endswith(".png"):
            with whole_file(page.parent / picture) as file:
                file.write((folder / picture).read_bytes())
        replace_part(page, _PART, markdown_report(cells, None, picture).rstrip("\n"))
    return picture


def _draw(cells: list[Cell], folder: Path) -> str:
    """Draw Figure 2 where there are sweeps; its name, or why it could not be drawn."""
    from ulr.errors import InputError
    from ulr.experiments.figure import FILES, draw_gains

    if not any(cell.place.measure == "sweep" and not cell.not_run for cell in cells):
        return ""
    try:
        draw_gains(cells, folder)
    except InputError as error:
        return f"The picture was not drawn: {error}"
    return FILES[0]


def _as_dict(cell: Cell) -> dict[str, object]:
    """A cell for JSON, without the thousands of sets of a sweep, which are in the results."""
    content = {key: value for key, value in asdict(cell).items() if value}
    content = {key: value for key, value in content.items() if key not in ("before", "after")}
    return content.pop("place") | content


def _ending(cells: list[Cell], folder: Path) -> str:
    not_run = sum(bool(cell.not_run) for cell in cells)
    return (
        f"{len(cells) - not_run} cells measured, {not_run} not run, the reasons with the tables. "
        f"Written: {folder / _REPORT}, {folder / _RESULTS}"
    )


def _print_experiments() -> None:
    from ulr.experiments.plan import STUDIES

    width = max(map(len, STUDIES))
    for name, study in STUDIES.items():
        experiment = study.experiment
        print(f"{name:<{width}}  {experiment.title} ({experiment.classifier})")


class _CellBar:
    """Draws how far a run is, on a terminal only: the cells, and the parts of the one at work."""

    def __init__(self) -> None:
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=Console(stderr=True),
            transient=True,
            disable=not sys.stderr.isatty(),
        )
        self._all = self._progress.add_task("Cells", total=None)
        self._one = self._progress.add_task("", total=None)

    def __enter__(self) -> _CellBar:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def begin(self, place: Place, done: int, total: int) -> None:
        """A cell is begun."""
        from ulr.experiments.plan import short_name

        encoder = short_name(place.encoder)
        what = f"{place.measure}, {place.dataset}, {place.distance}, {encoder}"
        self._progress.update(self._all, completed=done, total=total)
        self._progress.update(self._one, description=what, completed=0, total=None)

    def part(self, done: int, total: int) -> None:
        """So much of it is done."""
        self._progress.update(self._one, completed=done, total=total)
