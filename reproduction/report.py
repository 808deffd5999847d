"""The report in Markdown: every table, with the paper's figures beside ours.

It depends only on the cells, in any order: it contains no times and no dates.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from reproduction.cells import MAIN, Cell, Key, encoder_order, key_of
from reproduction.datasets import DATASETS
from reproduction.experiments import (
    AUGMENTED_TEXTS,
    CONCEPTS,
    DISTANCE_NAMES,
    DUAL,
    EXPERIMENTS,
    FINE_TUNED,
    SINGLE,
    WORDS,
    Experiment,
    Line,
    PaperFigure,
)
from reproduction.figure import gain_by_start
from reproduction.findings import THRESHOLDS, counted, encoder_title, findings, signed

_PAPERS_ENCODERS = {
    DUAL: ("RoBERTa trained on NatCat", "--encoder hf:FOLDER"),
    WORDS: ("GloVe 840B with 300 dimensions", "--encoder glove:glove.840B.300d.zip"),
    SINGLE: ("RoBERTa trained on pairs of NatCat", "--single cross:FOLDER"),
    CONCEPTS: ("ESA over all of Wikipedia", "--concepts FILE"),
}
_NONE = "–"

_Cells = dict[Key, Cell]


def markdown_report(
    cells: Iterable[Cell], experiments: Sequence[Experiment] | None = None, picture: str = ""
) -> str:
    """The report of some experiments; by default those whose measurements have all been tried.

    `picture` is the file of Figure 2, or a sentence that says why there is none.
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
        name = experiment.id.replace("-", " ")
        heading = name.upper() if name == "esa" else name.capitalize()
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


def _serves(key: Key, experiment: Experiment) -> bool:
    return any(
        key == key_of(experiment, line, column, distance, key.encoder)
        for distance, line in experiment.rows()
        for column in experiment.measured_columns
    )


def _introduction(cells: Sequence[Cell]) -> Iterator[str]:
    yield (
        "Accuracy in percent; in parentheses, the difference from the paper. *By name* is the "
        'nearest label name, *+ ULR* the paper\'s refinement (`method="ulr"`). The truth is used '
        "to report, never to choose. A dash stands for a figure that was not measured or that the "
        "paper does not print."
    )
    if sentences := findings(cells):
        yield "Which of the paper's claims hold:"
        yield "\n".join(f"{number}. {sentence}" for number, sentence in enumerate(sentences, 1))
        yield THRESHOLDS
    if measured := [cell for cell in cells if not cell.not_run]:
        yield _datasets_table(measured)
        yield _encoders_table(measured)


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)])


def _datasets_table(cells: Sequence[Cell]) -> str:
    rows: dict[tuple[str, str, str], None] = {}
    for name, dataset in DATASETS.items():
        for cell in cells:
            if cell.key.dataset == name:
                single = ", for the single encoder" if cell.key.role == SINGLE else ""
                note = f"{cell.about['documents']}{single}"
                rows[dataset.title, f"{cell.about['rows']:,}", note] = None
    return _table(("dataset", "documents", ""), rows)


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
        rows[encoder_title(cell.key.encoder), cell.about["encoder"], what] = None
    return _table(("encoder", "description", ""), rows)


def _section(experiment: Experiment, cells: _Cells, picture: str) -> Iterator[str]:
    own = [cell for cell in cells.values() if _serves(cell.key, experiment)]
    measured = [cell for cell in own if not cell.not_run]
    encoders = sorted({cell.key.encoder for cell in own} - {""}, key=encoder_order)
    heads = [_column(column, measured) for column in experiment.columns]
    if experiment.id == "figure-2" and measured:
        alternative = "gain of refinement against the accuracy by name"
        yield f"![{alternative}]({picture})" if picture.endswith(".png") else picture
    yield _table(("distance", "", "", *heads), _table_rows(experiment, cells, encoders))
    notes = [
        *_stand_ins(experiment, measured),
        *_extra_texts(measured),
        *_not_run(experiment, own, measured),
        *experiment.remarks,
    ]
    if notes:
        yield "\n".join(f"- {note}" for note in notes)


def _column(column: str, measured: Sequence[Cell]) -> str:
    if column not in DATASETS:
        return column
    sample = any(cell.about["sample"] for cell in measured if cell.key.dataset == column)
    return f"{DATASETS[column].column}{' (sample)' if sample else ''}"


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
    columns = experiment.measured_columns
    printed = [experiment.figure(distance, line.step, column) for column in experiment.columns]
    if any(printed):
        yield "the paper", [_printed(figure) for figure in printed]
    if line.measure == FINE_TUNED:  # every dataset has an encoder of its own
        own = {key.dataset: cell for key, cell in cells.items() if key.measure == FINE_TUNED}
        if any(not cell.not_run for cell in own.values()):
            yield "fine-tuned", _figures([own.get(column) for column in columns], line, printed)
        return
    for encoder in encoders:
        keys = [key_of(experiment, line, column, distance, encoder) for column in columns]
        if any(key in cells for key in keys):
            yield encoder_title(encoder), _figures([cells.get(key) for key in keys], line, printed)


def _printed(figure: PaperFigure | None) -> str:
    if figure is None:
        return _NONE
    return f"{counted(figure.count)}, {figure.value:.1f}" if figure.count else f"{figure.value:.1f}"


def _figures(
    cells: Sequence[Cell | None], line: Line, printed: Sequence[PaperFigure | None]
) -> list[str]:
    """A row of measured figures, with the average where the paper has one."""
    figures, values = [], []
    for cell, figure in zip(cells, printed, strict=False):
        if cell is None or cell.not_run:
            figures.append(_NONE if cell is None else "not run")
        elif line.value == "gain":
            correlation, worst, best = gain_by_start(cell)
            figures.append(f"{signed(correlation, 2)}: {_difference(worst)}, {_difference(best)}")
        elif line.value == "improved":
            share = 100 * cell.improved[0] / cell.improved[1]
            figures.append(f"{counted(cell.improved)}, {_compared(share, figure)}")
        else:
            values.append(cell.values[line.value])
            figures.append(_compared(values[-1], figure))
    if len(printed) > len(cells):
        complete = len(values) == len(cells)
        figures.append(_compared(sum(values) / len(values), printed[-1]) if complete else _NONE)
    return figures


def _compared(value: float, figure: PaperFigure | None) -> str:
    """A measured figure and its difference from the paper's, both rounded."""
    ours = round(value, 1)
    return f"{ours:.1f} ({_difference(ours - figure.value)})" if figure else f"{ours:.1f}"


def _difference(difference: float) -> str:
    rounded = round(difference, 1)
    return signed(rounded, 1) if rounded else "0.0"


def _stand_ins(experiment: Experiment, measured: Sequence[Cell]) -> Iterator[str]:
    """That the paper's own encoder was not run, and which ones were instead."""
    own = [cell for cell in measured if cell.key.measure != FINE_TUNED]
    if own and all(cell.about["stand_in"] for cell in own):
        names = sorted({cell.key.encoder for cell in own}, key=encoder_order)
        encoder, option = _PAPERS_ENCODERS[experiment.role]
        instead = ", ".join(map(encoder_title, names))
        yield f"{encoder} was not run; it needs `{option}`. Stand-in: {instead}."


def _extra_texts(measured: Sequence[Cell]) -> Iterator[str]:
    """How many texts were added."""
    counts: dict[str, list[str]] = {}
    in_order = sorted(measured, key=lambda cell: list(DATASETS).index(cell.key.dataset))
    for cell in sorted(in_order, key=lambda cell: encoder_order(cell.key.encoder)):
        if "extra_texts" in cell.about:
            count = f"{DATASETS[cell.key.dataset].title} {cell.about['extra_texts']:,}"
            counts.setdefault(encoder_title(cell.key.encoder), []).append(count)
    if counts:
        added = "; ".join(
            f"{encoder}: {', '.join(dict.fromkeys(each))}" for encoder, each in counts.items()
        )
        yield f"Augmented text; the paper adds at most {AUGMENTED_TEXTS:,} per dataset: {added}."


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
            row = f"{titles[key.measure]}{f', {encoder_title(key.encoder)}' if key.encoder else ''}"
            rows = reasons.setdefault(cell.not_run, {})
            rows.setdefault(row, {})[DATASETS[key.dataset].title] = None
    for reason, rows in reasons.items():
        cases = "; ".join(f"{row}: {', '.join(datasets)}" for row, datasets in rows.items())
        yield f"Not run ({cases}): {reason}"
