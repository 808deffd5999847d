"""The command: ``python -m reproduction [EXPERIMENT ...] --data DIR``."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from pathlib import Path
from typing import Any

from reproduction.cells import Cell, Results, short_name
from reproduction.datasets import ReproductionError
from reproduction.experiments import AUGMENTED_TEXTS, EXPERIMENTS
from reproduction.figure import FILES, draw_gains
from reproduction.inputs import Inputs
from reproduction.pages import check_part, replace_part
from reproduction.report import markdown_report
from reproduction.run import choose_encoders, run
from ulr.errors import InputError
from ulr.files import atomic_file

_ALL, _PART = "all", "reproduce"
_RESULTS, _REPORT = "results.jsonl", "report.md"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m reproduction",
        description="Run the experiments of the paper and print each table with the paper's figures "
        "beside ours. Finished cells are kept in OUT/results.jsonl, and the same command continues "
        "an interrupted run. The report shows all results of the folder, so encoders can be added "
        "run by run.",
    )

    def add(name: str, about: str, **more: Any) -> None:
        parser.add_argument(name, help=about, **more)

    several: dict[str, Any] = {"action": "append", "default": []}
    one_of: dict[str, Any] = {"choices": [*EXPERIMENTS, _ALL], "default": _ALL}
    add("experiments", "see --list; all by default", nargs="*", metavar="EXPERIMENT", **one_of)
    add("--list", "list the experiments", action="store_true")
    add("--data", "folder of the datasets", default=os.environ.get("ULR_DATA"))
    add("--encoder", "encoder, or l2=NAME for one distance; may be repeated", **several)
    add("--single", "single encoder, cross:FOLDER, for Table 4; may be repeated", **several)
    add("--single-sample", "most documents for --single", type=_positive)
    add("--concepts", "articles for ESA, as JSON lines with title and text")
    add("--fine-tuned", "DATASET=hf:FOLDER, for Table 8; may be repeated", **several)
    add("--extra-texts", "most texts to add in Table 9", type=_positive, default=AUGMENTED_TEXTS)
    add("--out", "folder for results, report and vectors", type=Path, default=Path("reproduced"))
    add("--seed", "seed of everything that is drawn", type=int, default=1)
    add("--write", f"page to write the report into, after <!-- {_PART} -->", type=Path)
    return parser


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1; got {text!r}.")
    return int(text)


def main(arguments: list[str] | None = None) -> int:
    """Run the command; returns its exit code."""
    options = _parser().parse_args(arguments)
    try:
        _reproduce(options)
    except InputError as error:
        print(f"reproduction: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        kept = options.out / _RESULTS
        print(
            f"reproduction: stopped; finished cells are kept in {kept}; repeat the command to "
            "continue.",
            file=sys.stderr,
        )
        return 130
    return 0


def _reproduce(options: argparse.Namespace) -> None:
    if options.list:
        for name, experiment in EXPERIMENTS.items():
            print(f"{name:<11}  {experiment.title} ({experiment.role})")
        return
    asked = options.experiments
    experiments = [each for name, each in EXPERIMENTS.items() if _ALL in asked or name in asked]
    if not options.data or not Path(options.data).is_dir():
        raise ReproductionError(
            "put the datasets into a folder and name it with --data DIR or ULR_DATA; got "
            f"{options.data!r}."
        )
    data = Path(options.data)
    if options.write is not None:
        check_part(options.write, _PART)
    names = [*options.encoder, *options.single]
    names += [] if options.concepts is None else [f"esa:{options.concepts}"]
    encoders = choose_encoders(names, data, options.fine_tuned)
    out: Path = options.out
    out.mkdir(parents=True, exist_ok=True)
    results = Results(out / _RESULTS)
    inputs = Inputs(data, out / "vectors", options.seed, options.single_sample, options.extra_texts)
    cells = run(experiments, encoders, inputs, results, _print_progress)
    everything = list(results.latest.values())
    picture = _write_report(everything, out, options.write)
    print(markdown_report(everything, experiments, picture))
    not_run = sum(bool(cell.not_run) for cell in cells)
    print(
        f"{len(cells) - not_run} cells measured, {not_run} not run; the tables say why. "
        f"Written: {out / _REPORT}, {out / _RESULTS}"
    )


def _print_progress(cell: Cell, number: int, total: int) -> None:
    key = cell.key
    names = "" if key.names == "main" else f" {key.names}"
    title = f"{key.measure}, {key.dataset}{names}, {key.distance}, {short_name(key.encoder)}"
    figures = " → ".join(f"{value:.1f}" for value in cell.values.values()) or "not run"
    print(f"[{number}/{total}] {title}: {figures}", file=sys.stderr, flush=True)


def _write_report(cells: list[Cell], folder: Path, page: Path | None) -> str:
    """Write the report and its picture, also into a page; returns the picture, or why it lacks."""
    picture = ""
    if any(cell.key.measure == "sweep" and not cell.not_run for cell in cells):
        try:
            draw_gains(cells, folder)
            picture = FILES[0]
        except ReproductionError as error:
            picture = f"The picture was not drawn: {error}"
    report = markdown_report(cells, None, picture)
    with atomic_file(folder / _REPORT) as file:
        file.write(f"# The paper, reproduced\n\n{report}".encode())
    if page is not None:
        if picture == FILES[0]:
            shutil.copy(folder / picture, page.parent)
        replace_part(page, _PART, report.rstrip("\n"))
    return picture


if __name__ == "__main__":
    sys.exit(main())
