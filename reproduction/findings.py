"""Sentences that state which of the paper's claims hold, computed from the figures."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from reproduction.cells import MAIN, Cell, encoder_order, short_name
from reproduction.datasets import DATASETS
from reproduction.experiments import DISTANCE_NAMES, DUAL, EXPERIMENTS, PaperFigure
from reproduction.figure import gain_by_start

POINTS, CORRELATION = 2.0, -0.3
THRESHOLDS = (
    f"A share of improved cases agrees with the paper's if it is at most {POINTS:g} points below; "
    f"gains count as larger where the start is worse if the correlation of the two is below "
    f"−{-CORRELATION:g}."
)


def encoder_title(encoder: str) -> str:
    """What an encoder is called in the report."""
    return f"`{short_name(encoder)}`"


def signed(number: float, decimals: int) -> str:
    """A number with its sign, with a typographical minus."""
    return f"{number:+.{decimals}f}".replace("-", "−")


def counted(counts: tuple[int, int]) -> str:
    """A number of cases, and of how many."""
    return f"{counts[0]:,} of {counts[1]:,}"


def findings(cells: Iterable[Cell]) -> list[str]:
    """Up to three sentences, fewer where measurements are missing."""
    measured = sorted(
        (cell for cell in cells if cell.key.role == DUAL and not cell.not_run),
        key=lambda cell: (encoder_order(cell.key.encoder), cell.key),
    )
    sweeps = [cell for cell in measured if cell.key.measure == "sweep"]
    random = [cell for cell in measured if cell.key.measure == "random starts"]
    named = {
        (cell.key.encoder, cell.key.distance): cell.values["ulr"]
        for cell in measured
        if (cell.key.measure, cell.key.dataset, cell.key.names) == ("names", "agnews", MAIN)
    }
    sentences = []
    if sweeps:
        claim = "Refinement helps in as many cases as the paper counts"
        sentences.append(_sentence(claim, len(sweeps), "sweeps", _fewer(sweeps, "table-6")) + ".")
        claim = "The gain is larger where the start is worse"
        others = [
            f"{_where(cell)} (correlation {signed(correlation, 2)})"
            for cell in sweeps
            if (correlation := gain_by_start(cell)[0]) >= CORRELATION
        ]
        sentences.append(_sentence(claim, len(sweeps), "sweeps", others) + ".")
    if random:
        claim = "Random starts improve in as many trials as reported"
        sentence = _sentence(claim, len(random), "cases", _fewer(random, "table-7"))
        sides = [
            _beside_names(cell, named[cell.key.encoder, cell.key.distance])
            for cell in random
            if (cell.key.encoder, cell.key.distance) in named
        ]
        if sides:
            sentence += f"; compared with refined label names they end {_joined(sides)}"
        sentences.append(sentence + ".")
    return sentences


def _beside_names(cell: Cell, refined: float) -> str:
    """Whether random starts end above or below refined label names."""
    distance, value = cell.key.distance, cell.values["ulr"]
    random, named = (_printed(each, distance, "ulr", "agnews") for each in ("table-7", "table-3"))
    agrees = (value > refined) == (random.value > named.value)
    return (
        f"{'above' if value > refined else 'below'} with {DISTANCE_NAMES[distance]} by "
        f"{encoder_title(cell.key.encoder)} ({value:.1f} against {refined:.1f}, "
        f"{'as' if agrees else 'not as'} reported)"
    )


def _sentence(claim: str, total: int, unit: str, exceptions: Sequence[str]) -> str:
    held = total - len(exceptions)
    if not held:
        return f"{claim} in none of {total} {unit}: {_joined(exceptions)}"
    but = f", but not for {_joined(exceptions)}" if exceptions else ""
    return f"{claim} in {held} of {total} {unit}{but}"


def _joined(parts: Sequence[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def _where(cell: Cell) -> str:
    distance, encoder = DISTANCE_NAMES[cell.key.distance], encoder_title(cell.key.encoder)
    return f"{DATASETS[cell.key.dataset].title} with {distance} by {encoder}"


def _fewer(cells: Iterable[Cell], table: str) -> Sequence[str]:
    """The cells in which fewer cases improve than the paper counts."""
    found = []
    for cell in cells:
        printed = _printed(table, cell.key.distance, "improved", cell.key.dataset)
        if 100 * cell.improved[0] / cell.improved[1] < printed.value - POINTS:
            ours, papers = counted(cell.improved), counted(printed.count or (0, 0))
            found.append(f"{_where(cell)} ({ours}; the paper {papers})")
    return found


def _printed(table: str, distance: str, step: str, column: str) -> PaperFigure:
    figure = EXPERIMENTS[table].figure(distance, step, column)
    assert figure is not None
    return figure
