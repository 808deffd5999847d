"""The report in Markdown: every table, with the paper's figures beside ours.

It depends only on the cells, in any order: it contains no times and no dates.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from ulr.errors import InputError
from ulr.experiments.datasets import DATASETS
from ulr.experiments.figure import gain_by_start
from ulr.experiments.findings import THRESHOLDS, counted, findings, signed
from ulr.experiments.paper import (
    CONCEPTS,
    DUAL,
    EXPERIMENTS,
    FINE_TUNED,
    PROTOCOL,
    SINGLE,
    WORDS,
    Experiment,
    Line,
    PaperFigure,
)
from ulr.experiments.plan import DISTANCE_NAMES, MAIN, CellKey, cell_key, encoder_order, short_name
from ulr.experiments.results import Cell
from ulr.files import atomic_file

_PAPERS_ENCODERS = {
    DUAL: ("RoBERTa trained on NatCat", "--encoder hf:FOLDER"),
    WORDS: ("GloVe 840B with 300 dimensions", "--encoder glove:glove.840B.300d.zip"),
    SINGLE: ("RoBERTa trained on pairs of NatCat", "--single cross:FOLDER"),
    CONCEPTS: ("ESA over all of Wikipedia", "--concepts FILE"),
}
_HEADINGS = {"esa": "ESA (a footnote)", "oracle": "The best names (an oracle)"}
_NONE = "–"

_Cells = dict[CellKey, Cell]


def markdown_report(
    cells: Iterable[Cell], experiments: Sequence[Experiment] | None = None, picture: str = ""
) -> str:
    """The report of some cells.

    Parameters
    ----------
    cells
        The latest cell of every key.
    experiments
        The experiments to show; None for every one whose measurements have all been tried.
    picture
        The file of the picture of Figure 2, or a sentence that says why there is none.
    """
    by_key = {cell.key: cell for cell in sorted(cells, key=lambda cell: cell.key)}
    shown = _tried(by_key) if experiments is None else list(experiments)
    used = [
        cell
        for cell in by_key.values()
        if any(_serves(cell.key, experiment) for experiment in shown)
    ]
    parts = [*_introduction(used)]
    for experiment in shown:
        heading = _HEADINGS.get(experiment.id, experiment.id.capitalize().replace("-", " "))
        parts.append(f"### {heading}: {experiment.title}")
        parts += _section(experiment, by_key, picture)
    return "\n\n".join(parts) + "\n"


def _tried(cells: _Cells) -> list[Experiment]:
    """The experiments whose measurements have all been tried."""
    there = {(key.role, key.measure, key.names == MAIN) for key in cells}
    return [
        experiment
        for experiment in EXPERIMENTS.values()
        if there.issuperset(
            (experiment.role, measure, experiment.measured_columns[0] in DATASETS)
            for measure in experiment.measures
        )
    ]


def _serves(key: CellKey, experiment: Experiment) -> bool:
    return key.distance in experiment.distances and any(
        key == cell_key(experiment, line, column, key.distance, key.encoder)
        for line in experiment.lines
        for column in experiment.measured_columns
    )


def _introduction(cells: Sequence[Cell]) -> Iterator[str]:
    yield (
        "Accuracy in percent; in parentheses, the difference from the paper. *By name* is the "
        'nearest label name, *+ ULR* the paper\'s refinement (`method="ulr"`). The truth is used '
        "to report, never to choose. A dash stands for a figure that was not measured or that the "
        "paper does not print."
    )
    sentences = findings(cells, _title)
    if sentences:
        yield "Which of the paper's claims hold:"
        yield "\n".join(f"{number}. {sentence}" for number, sentence in enumerate(sentences, 1))
        yield THRESHOLDS
    measured = [cell for cell in cells if not cell.not_run]
    if measured:
        yield _datasets_table(measured)
        yield _encoders_table(measured)


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)])


def _datasets_table(cells: Sequence[Cell]) -> str:
    rows: dict[tuple[str, str, str, str], None] = {}
    for name, dataset in DATASETS.items():
        for cell in cells:
            if cell.key.dataset == name:
                user = "the single encoder" if cell.key.role == SINGLE else "vectors"
                n_rows = f"{cell.about['rows']:,}"
                rows[dataset.title, n_rows, cell.about["documents"], user] = None
    several = len({user for *_, user in rows}) > 1
    return _table(
        ("dataset", "documents", ""),
        [
            (title, n_rows, f"{note}, for {user}" if several else note)
            for title, n_rows, note, user in rows
        ],
    )


def _encoders_table(cells: Sequence[Cell]) -> str:
    rows: dict[tuple[str, str, str], None] = {}
    for cell in sorted(cells, key=lambda cell: encoder_order(cell.key.encoder)):
        name, _ = _PAPERS_ENCODERS[cell.key.role]
        if cell.key.measure == FINE_TUNED:
            dataset = DATASETS[cell.key.dataset].title
            what = f"fine-tuned on 30 examples per label of {dataset}"
        else:
            relation = "stands in for" if cell.about["stand_in"] else "used as the paper's"
            what = f"{relation} {name}"
        rows[_title(cell.key.encoder), cell.about["encoder"], what] = None
    return _table(("encoder", "description", ""), rows)


def _section(experiment: Experiment, cells: _Cells, picture: str) -> Iterator[str]:
    own = [cell for cell in cells.values() if _serves(cell.key, experiment)]
    measured = [cell for cell in own if not cell.not_run]
    encoders = sorted({cell.key.encoder for cell in own} - {""}, key=encoder_order)
    heads = [_column(column, measured) for column in experiment.columns]
    if experiment.id != "figure-2":
        yield _table(("distance", "", "", *heads), _table_rows(experiment, cells, encoders))
    elif measured:
        yield from _figure(experiment, cells, encoders, heads, picture)
    notes = [
        *_stand_ins(experiment, measured),
        *_extra_texts(measured),
        *_not_run(experiment, own, measured),
    ]
    notes += experiment.remarks
    if notes:
        yield "\n".join(f"- {note}" for note in notes)


def _table_rows(
    experiment: Experiment, cells: _Cells, encoders: Sequence[str]
) -> Iterator[Sequence[str]]:
    last = ""
    for distance, line in experiment.rows():
        label = DISTANCE_NAMES[distance] if distance != last else ""
        title = line.title
        for name, figures in _line_rows(experiment, line, distance, cells, encoders):
            yield label, title, name, *figures
            label, title, last = "", "", distance


def _line_rows(
    experiment: Experiment, line: Line, distance: str, cells: _Cells, encoders: Sequence[str]
) -> Iterator[tuple[str, list[str]]]:
    """The paper's row, and one per encoder."""
    printed = [experiment.figure(distance, line.step, column) for column in experiment.columns]
    if any(printed):
        yield "the paper", [_paper_figure(figure) for figure in printed]
    if line.measure == FINE_TUNED:
        of_dataset = {key.dataset: cell for key, cell in cells.items() if key.measure == FINE_TUNED}
        by_column = [of_dataset.get(column) for column in experiment.measured_columns]
        if any(cell is not None and not cell.not_run for cell in by_column):
            yield "fine-tuned", _figures(by_column, line, printed)
        return
    for encoder in encoders:
        by_column = _row_cells(experiment, line, distance, cells, encoder)
        if any(by_column):
            yield _title(encoder), _figures(by_column, line, printed)


def _row_cells(
    experiment: Experiment, line: Line, distance: str, cells: _Cells, encoder: str
) -> list[Cell | None]:
    return [
        cells.get(cell_key(experiment, line, column, distance, encoder))
        for column in experiment.measured_columns
    ]


def _figures(
    cells: Sequence[Cell | None], line: Line, printed: Sequence[PaperFigure | None]
) -> list[str]:
    """A row of measured figures, with the average where the paper has one."""
    values = [_value(cell, line) for cell in cells]
    figures = []
    for cell, value, figure in zip(cells, values, printed, strict=False):
        if cell is None:
            figures.append(_NONE)
        elif value is None:
            figures.append("not run")
        else:
            counts = f"{counted(cell.improved)}, " if line.value == "improved" else ""
            figures.append(f"{counts}{_compared(value, figure)}")
    if len(printed) > len(cells):
        known = [value for value in values if value is not None]
        complete = len(known) == len(values)
        figures.append(_compared(sum(known) / len(known), printed[-1]) if complete else _NONE)
    return figures


def _value(cell: Cell | None, line: Line) -> float | None:
    if cell is None or cell.not_run:
        return None
    if line.value == "improved":
        assert cell.improved is not None
        return 100 * cell.improved[0] / cell.improved[1]
    return cell.values[line.value]


def _compared(value: float, figure: PaperFigure | None) -> str:
    """A measured figure and its difference from the paper's, both rounded."""
    ours = round(value, 1)
    return f"{ours:.1f} ({_difference(ours - figure.value)})" if figure else f"{ours:.1f}"


def _difference(difference: float) -> str:
    rounded = round(difference, 1)
    return signed(rounded, 1) if rounded else "0.0"


def _paper_figure(figure: PaperFigure | None) -> str:
    if figure is None:
        return _NONE
    return f"{counted(figure.count)}, {figure.value:.1f}" if figure.count else f"{figure.value:.1f}"


def _column(column: str, measured: Sequence[Cell]) -> str:
    if column not in DATASETS:
        return column
    sample = any(cell.about["sample"] for cell in measured if cell.key.dataset == column)
    return f"{DATASETS[column].column}{' (sample)' if sample else ''}"


def _figure(
    experiment: Experiment,
    cells: _Cells,
    encoders: Sequence[str],
    heads: Sequence[str],
    picture: str,
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
    rows = []
    for distance, line in experiment.rows():
        for encoder in encoders:
            found = _row_cells(experiment, line, distance, cells, encoder)
            if any(cell is not None and not cell.not_run for cell in found):
                gains = [_NONE if cell is None or cell.not_run else _gains(cell) for cell in found]
                rows.append((DISTANCE_NAMES[distance], _title(encoder), *gains))
    yield _table(("distance", "", *heads), rows)


def _gains(cell: Cell) -> str:
    gain = gain_by_start(cell)
    return f"{signed(gain.correlation, 2)}: {_difference(gain.worst)}, {_difference(gain.best)}"


def _stand_ins(experiment: Experiment, measured: Sequence[Cell]) -> Iterator[str]:
    """That the paper's own encoder was not run, and which ones were instead."""
    own = [cell for cell in measured if cell.key.measure != FINE_TUNED]
    if own and all(cell.about["stand_in"] for cell in own):
        names = sorted({cell.key.encoder for cell in own}, key=encoder_order)
        encoder, option = _PAPERS_ENCODERS[experiment.role]
        instead = ", ".join(map(_title, names))
        yield f"{encoder} was not run; it needs `{option}`. Stand-in: {instead}."


def _extra_texts(measured: Sequence[Cell]) -> Iterator[str]:
    """How many texts were added."""
    counts: dict[str, dict[str, None]] = {}
    for cell in sorted(measured, key=_encoder_and_dataset):
        if "extra_texts" in cell.identity:
            count = f"{DATASETS[cell.key.dataset].title} {cell.identity['extra_texts']:,}"
            counts.setdefault(_title(cell.key.encoder), {})[count] = None
    if counts:
        added = "; ".join(f"{encoder}: {', '.join(each)}" for encoder, each in counts.items())
        most = f"{PROTOCOL.augmented_texts:,}"
        yield f"Augmented text; the paper adds at most {most} per dataset: {added}."


def _encoder_and_dataset(cell: Cell) -> tuple[tuple[int, str], int]:
    return encoder_order(cell.key.encoder), list(DATASETS).index(cell.key.dataset)


def _not_run(
    experiment: Experiment, own: Sequence[Cell], measured: Sequence[Cell]
) -> Iterator[str]:
    """What was not run and why, with every reason once."""
    done = {(cell.key.measure, cell.key.dataset) for cell in measured}
    titles = {line.measure: line.title for line in reversed(experiment.lines)}
    reasons: dict[str, dict[str, dict[str, None]]] = {}
    for cell in sorted(own, key=lambda cell: list(DATASETS).index(cell.key.dataset)):
        key = cell.key
        # A missing encoder is no reason any more if another run had one.
        if cell.not_run and (key.encoder or (key.measure, key.dataset) not in done):
            row = f"{titles[key.measure]}{f', {_title(key.encoder)}' if key.encoder else ''}"
            rows = reasons.setdefault(cell.not_run, {})
            rows.setdefault(row, {})[DATASETS[key.dataset].title] = None
    for reason, rows in reasons.items():
        cases = "; ".join(f"{row}: {', '.join(datasets)}" for row, datasets in rows.items())
        yield f"Not run ({cases}): {reason}"


def _title(encoder: str) -> str:
    return f"`{short_name(encoder)}`"


def replace_part(page: Path, name: str, text: str) -> None:
    """Replace the text of a page between ``<!-- name -->`` and ``<!-- /name -->``."""
    before, after = check_part(page, name)
    with atomic_file(page) as file:
        file.write(f"{before}\n{text}\n{after}".encode())


def check_part(page: Path, name: str) -> tuple[str, str]:
    """The text of a page up to and from the marks of a part; refuses a page without them."""
    begin, end = f"<!-- {name} -->", f"<!-- /{name} -->"
    if not page.is_file():
        raise InputError(f"there is no page {page} to write the part {name!r} into.")
    before, found, rest = page.read_text(encoding="utf-8").partition(begin)
    _, closed, after = rest.partition(end)
    if not (found and closed):
        raise InputError(f"{page} has no part {name!r}: it needs {begin} and {end}.")
    return before + begin, end + after
