"""The report: every table with the paper's figures beside ours, in Markdown.

It depends on the cells alone, in whatever order they come: no times, no dates.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from ulr.experiments.datasets import DATASETS
from ulr.experiments.findings import THRESHOLDS, counted, findings, gain_by_start, signed
from ulr.experiments.paper import PROTOCOL, PaperFigure
from ulr.experiments.plan import (
    CONCEPTS,
    DISTANCE_NAMES,
    DUAL,
    FINE_TUNED,
    MAIN,
    SINGLE,
    STUDIES,
    WORDS,
    Line,
    Place,
    Study,
    encoder_order,
    find_place,
    short_name,
)
from ulr.experiments.results import Cell

_PAPERS = {
    DUAL: ("RoBERTa trained on NatCat", "--encoder hf:FOLDER"),
    WORDS: ("GloVe 840B with 300 dimensions", "--encoder glove:glove.840B.300d.zip"),
    SINGLE: ("RoBERTa trained on pairs of NatCat", "--single cross:FOLDER"),
    CONCEPTS: ("ESA over all of Wikipedia", "--concepts FILE"),
}
_NONE = "–"


def markdown_report(
    cells: Iterable[Cell], studies: Sequence[Study] | None = None, picture: str = ""
) -> str:
    """The report of some cells.

    Parameters
    ----------
    cells
        The latest of every place; their order does not matter.
    studies
        What to show; None for every table of which all measurements are there.
    picture
        The name of the picture of Figure 2, or why there is none.
    """
    table = {cell.place: cell for cell in sorted(cells, key=lambda cell: cell.place)}
    shown = _with_cells(table) if studies is None else list(studies)
    used = [cell for cell in table.values() if any(_serves(cell.place, study) for study in shown)]
    parts = [*_opening(used)]
    for study in shown:
        parts += [f"### {_heading(study)}", *_section(study, table, picture)]
    return "\n\n".join(parts) + "\n"


def _with_cells(table: dict[Place, Cell]) -> list[Study]:
    """The studies of which every measurement was at least tried."""
    there = {(place.role, place.measure, place.names == MAIN) for place in table}
    return [
        study
        for study in STUDIES.values()
        if there.issuperset(
            (study.role, measure, study.columns[0] in DATASETS) for measure in study.measures
        )
    ]


def _serves(place: Place, study: Study) -> bool:
    return place.distance in study.distances and any(
        place == find_place(study, line, column, place.distance, place.encoder)
        for line in study.lines
        for column in study.columns
    )


def _opening(cells: Sequence[Cell]) -> Iterator[str]:
    yield (
        "Accuracy in percent; in parentheses, the difference to the paper. *By name* is the "
        'nearest label name, *+ ULR* the paper\'s refinement (`method="ulr"`). The truth is used '
        "to report, never to choose. A dash is a figure that has not been measured or that the "
        "paper does not print."
    )
    said = findings(cells, _shown)
    if said:
        yield "What holds of the paper's claims, and what does not:"
        yield "\n".join(f"{number}. {sentence}" for number, sentence in enumerate(said, 1))
        yield THRESHOLDS
    measured = [cell for cell in cells if not cell.not_run]
    if measured:
        yield _datasets(measured)
        yield _encoders(measured)


def _datasets(cells: Sequence[Cell]) -> str:
    rows: dict[tuple[str, int, str, str], None] = {}
    for name, dataset in DATASETS.items():
        for cell in cells:
            if cell.place.dataset == name:
                used_by = "the single encoder" if cell.place.role == SINGLE else "vectors"
                rows[dataset.title, cell.about["rows"], cell.about["documents"], used_by] = None
    several = len({used_by for *_, used_by in rows}) > 1
    lines = ["| dataset | documents | |", "|---|---|---|"]
    for title, n_rows, note, used_by in rows:
        lines.append(f"| {title} | {n_rows:,} | {note}{f', for {used_by}' if several else ''} |")
    return "\n".join(lines)


def _encoders(cells: Sequence[Cell]) -> str:
    lines = ["| encoder | what it is | |", "|---|---|---|"]
    rows: dict[tuple[str, str, str], None] = {}
    for cell in sorted(cells, key=lambda cell: encoder_order(cell.place.encoder)):
        name, _ = _PAPERS[cell.place.role]
        is_own = not cell.about["stand_in"]
        if cell.place.measure == FINE_TUNED:
            what = f"fine-tuned on 30 examples a label of {DATASETS[cell.place.dataset].title}"
        else:
            what = f"taken for the paper's {name}" if is_own else f"stands in for {name}"
        rows[_shown(cell.place.encoder), cell.about["encoder"], what] = None
    lines += [f"| {encoder} | {about} | {what} |" for encoder, about, what in rows]
    return "\n".join(lines)


def _heading(study: Study) -> str:
    experiment = study.experiment
    name = {"esa": "ESA (a footnote)", "oracle": "The best names (an oracle)"}
    return f"{name.get(study.id, study.id.capitalize().replace('-', ' '))}: {experiment.title}"


def _section(study: Study, table: dict[Place, Cell], picture: str) -> Iterator[str]:
    own = [cell for cell in table.values() if _serves(cell.place, study)]
    measured = [cell for cell in own if not cell.not_run]
    encoders = sorted({cell.place.encoder for cell in own} - {""}, key=encoder_order)
    if study.id == "figure-2":
        if measured:
            yield from _figure(study, measured, encoders, picture)
    else:
        yield _table(study, table, encoders, measured)
    notes = [*_stand_ins(study, measured), *_extra_texts(measured), *_not_run(study, own, measured)]
    notes += [remark for remark in (study.experiment.remark, study.remark) if remark]
    if notes:
        yield "\n".join(f"- {note}" for note in notes)


def _table(
    study: Study, table: dict[Place, Cell], encoders: Sequence[str], measured: Sequence[Cell]
) -> str:
    columns = study.experiment.columns
    heads = [_column(column, measured) for column in columns]
    lines = [f"| distance | | | {' | '.join(heads)} |", "|---" * (3 + len(heads)) + "|"]
    for distance in study.distances:
        label = DISTANCE_NAMES[distance]
        for line in study.lines:
            if line.distances is not None and distance not in line.distances:
                continue
            title = line.shown
            for name, figures in _rows(study, line, distance, table, encoders):
                lines.append(f"| {label} | {title} | {name} | {' | '.join(figures)} |")
                label = title = ""
    return "\n".join(lines)


def _rows(
    study: Study,
    line: Line,
    distance: str,
    table: dict[Place, Cell],
    encoders: Sequence[str],
) -> Iterator[tuple[str, list[str]]]:
    """The paper's row and one an encoder."""
    experiment = study.experiment
    printed = [experiment.figure(distance, line.step, column) for column in experiment.columns]
    if any(printed):
        yield "the paper", [_paper(figure) for figure in printed]
    if line.measure == FINE_TUNED:
        of_dataset = {p.dataset: cell for p, cell in table.items() if p.measure == FINE_TUNED}
        by_column = [of_dataset.get(column) for column in study.columns]
        if any(cell is not None and not cell.not_run for cell in by_column):
            yield "fine-tuned", _figures(by_column, line, printed)
        return
    for encoder in encoders:
        by_column = [
            table.get(find_place(study, line, column, distance, encoder))
            for column in study.columns
        ]
        if any(cell is not None for cell in by_column):
            yield _shown(encoder), _figures(by_column, line, printed)


def _figures(
    cells: Sequence[Cell | None], line: Line, printed: Sequence[PaperFigure | None]
) -> list[str]:
    """A row of ours, with the average where the paper has one."""
    values = [_value(cell, line) for cell in cells]
    figures = []
    for cell, value, figure in zip(cells, values, printed, strict=False):
        if cell is None:
            figures.append(_NONE)
        elif value is None:
            figures.append("not run")
        else:
            counts = f"{counted(cell.improved)}, " if line.value == "improved" else ""
            figures.append(f"{counts}{_beside(value, figure)}")
    if len(printed) > len(cells):
        known = [value for value in values if value is not None]
        whole = len(known) == len(values)
        figures.append(_beside(sum(known) / len(known), printed[-1]) if whole else _NONE)
    return figures


def _value(cell: Cell | None, line: Line) -> float | None:
    if cell is None or cell.not_run:
        return None
    if line.value == "improved":
        assert cell.improved is not None
        return 100 * cell.improved[0] / cell.improved[1]
    return cell.values[line.value]


def _beside(value: float, figure: PaperFigure | None) -> str:
    """A figure of ours and its difference to the paper's, as it is printed."""
    ours = round(value, 1)
    if figure is None:
        return f"{ours:.1f}"
    return f"{ours:.1f} ({_difference(ours - figure.value)})"


def _difference(difference: float) -> str:
    rounded = round(difference, 1)
    return signed(rounded, 1) if rounded else "0.0"


def _paper(figure: PaperFigure | None) -> str:
    if figure is None:
        return _NONE
    return f"{counted(figure.count)}, {figure.value:.1f}" if figure.count else f"{figure.value:.1f}"


def _column(column: str, measured: Sequence[Cell]) -> str:
    if column not in DATASETS:
        return column
    of_column = [cell for cell in measured if cell.place.dataset == column]
    sample = any(cell.about["sample"] for cell in of_column)
    return f"{DATASETS[column].column}{' (sample)' if sample else ''}"


def _figure(
    study: Study, measured: Sequence[Cell], encoders: Sequence[str], picture: str
) -> Iterator[str]:
    """Figure 2 in numbers, and the picture."""
    if picture.endswith(".png"):
        yield f"![gain of refinement against the accuracy by name]({picture})"
    elif picture:
        yield picture
    yield (
        "Correlation of the gain with the accuracy by name, over all sets of label names; then the "
        "mean gain over the third of the sets that start worst, and over the third that start best."
    )
    heads = [_column(column, measured) for column in study.columns]
    lines = [f"| distance | | {' | '.join(heads)} |", "|---" * (2 + len(heads)) + "|"]
    by_place = {cell.place: cell for cell in measured}
    for distance in study.distances:
        for encoder in encoders:
            cells = [
                by_place.get(find_place(study, study.lines[0], column, distance, encoder))
                for column in study.columns
            ]
            if any(cells):
                figures = " | ".join(_NONE if cell is None else _gains(cell) for cell in cells)
                lines.append(f"| {DISTANCE_NAMES[distance]} | {_shown(encoder)} | {figures} |")
    yield "\n".join(lines)


def _gains(cell: Cell) -> str:
    gain = gain_by_start(cell)
    return (
        f"{signed(gain.correlation, 2)}: {_difference(gain.of_worst)}, {_difference(gain.of_best)}"
    )


def _stand_ins(study: Study, measured: Sequence[Cell]) -> Iterator[str]:
    """That the paper's own encoder was not run, and what was in its stead."""
    own = [cell for cell in measured if cell.place.measure != FINE_TUNED]
    if own and all(cell.about["stand_in"] for cell in own):
        specs = sorted({cell.place.encoder for cell in own}, key=encoder_order)
        names = ", ".join(_shown(spec) for spec in specs)
        paper, how = _PAPERS[study.role]
        yield f"{paper} was not run: it is not here (`{how}`). Stand-in: {names}."


def _extra_texts(measured: Sequence[Cell]) -> Iterator[str]:
    """How many texts were added, which the paper says for its own."""
    counts: dict[str, dict[str, None]] = {}
    datasets = list(DATASETS)
    for cell in sorted(
        measured,
        key=lambda cell: (encoder_order(cell.place.encoder), datasets.index(cell.place.dataset)),
    ):
        if "extra_texts" in cell.identity:
            told = f"{DATASETS[cell.place.dataset].title} {cell.identity['extra_texts']:,}"
            counts.setdefault(_shown(cell.place.encoder), {})[told] = None
    if counts:
        told = "; ".join(f"{encoder}: {', '.join(each)}" for encoder, each in counts.items())
        most = f"{PROTOCOL.augmented_texts:,}"
        yield f"Augmented text, of which the paper has at most {most} a dataset: {told}."


def _not_run(study: Study, own: Sequence[Cell], measured: Sequence[Cell]) -> Iterator[str]:
    """What was not run and why, each reason once."""
    done = {(cell.place.measure, cell.place.dataset) for cell in measured}
    reasons: dict[str, dict[str, dict[str, None]]] = {}
    for cell in sorted(own, key=lambda cell: list(DATASETS).index(cell.place.dataset)):
        place = cell.place
        # Without an encoder the reason holds only as long as no other was given.
        if cell.not_run and (place.encoder or (place.measure, place.dataset) not in done):
            named = f", {_shown(place.encoder)}" if place.encoder else ""
            what = f"{_line_shown(study, place)}{named}"
            rows = reasons.setdefault(cell.not_run, {})
            rows.setdefault(what, {})[DATASETS[place.dataset].title] = None
    for reason, rows in reasons.items():
        cases = "; ".join(f"{what}: {', '.join(datasets)}" for what, datasets in rows.items())
        yield f"Not run ({cases}): {reason}"


def _line_shown(study: Study, place: Place) -> str:
    return next(line.shown for line in study.lines if line.measure == place.measure)


def _shown(encoder: str) -> str:
    return f"`{short_name(encoder)}`"
