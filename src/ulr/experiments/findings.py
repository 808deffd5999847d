"""What of the paper's claims holds, in three sentences made of the figures."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ulr.experiments.datasets import DATASETS
from ulr.experiments.paper import EXPERIMENTS, PaperFigure
from ulr.experiments.plan import DISTANCE_NAMES, DUAL, MAIN, encoder_order
from ulr.experiments.results import Cell

# A share of improved cases is the paper's if it is at most so many points below.
POINTS = 2.0
# Gains are larger where starts are worse if their correlation is below this.
CORRELATION = -0.3

THRESHOLDS = (
    f"A share of improved cases counts as the paper's when it is at most {POINTS:g} points below; "
    f"a gain counts as larger where the start is worse when the correlation of the two is below "
    f"−{-CORRELATION:g}."
)


Percent = NDArray[np.float64]


@dataclass(frozen=True)
class GainByStart:
    """How the gain of refinement goes with the accuracy that it starts from.

    Attributes
    ----------
    correlation
        Of the two, over the sets of names; 0 where one of them never changes.
    of_worst, of_best
        Mean gain, in points, over the third of the sets that start worst, and best.
    """

    correlation: float
    of_worst: float
    of_best: float


def gain_by_start(cell: Cell) -> GainByStart:
    """How the gain goes with the start, in a sweep."""
    start, gain = starts_and_gains(cell)
    varied = len(start) > 1 and np.ptp(start) > 0 and np.ptp(gain) > 0
    correlation = float(np.corrcoef(start, gain)[0, 1]) if varied else 0.0
    third = max(1, len(start) // 3)
    order = np.argsort(start, kind="stable")
    return GainByStart(
        correlation, float(gain[order[:third]].mean()), float(gain[order[-third:]].mean())
    )


def starts_and_gains(cell: Cell) -> tuple[Percent, Percent]:
    """Accuracy by name and its gain by refinement, in percent, for every set of a sweep."""
    before = 100 * np.array(cell.before) / cell.about["rows"]
    return before, 100 * np.array(cell.after) / cell.about["rows"] - before


def signed(number: float, decimals: int) -> str:
    """A number with its sign, a true minus among them."""
    return f"{number:+.{decimals}f}".replace("-", "−")


def counted(counts: tuple[int, int] | None) -> str:
    """In how many cases, and of how many."""
    assert counts is not None
    return f"{counts[0]:,} of {counts[1]:,}"


def findings(cells: Iterable[Cell], shown: Callable[[str], str]) -> list[str]:
    """Three sentences, or fewer where the measurements they need are not there.

    Parameters
    ----------
    cells
        Of a report.
    shown
        What an encoder is called in it.
    """
    measured = sorted(
        (cell for cell in cells if cell.place.role == DUAL and not cell.not_run),
        key=lambda cell: (encoder_order(cell.place.encoder), cell.place),
    )
    sweeps = [cell for cell in measured if cell.place.measure == "sweep"]
    random = [cell for cell in measured if cell.place.measure == "random starts"]
    named = {
        (cell.place.encoder, cell.place.distance): cell.values["ulr"]
        for cell in measured
        if (cell.place.measure, cell.place.dataset, cell.place.names) == ("names", "agnews", MAIN)
    }
    said = []
    if sweeps:
        said += [_as_many_cases(sweeps, shown), _larger_gains(sweeps, shown)]
    if random:
        said.append(_random_starts(random, named, shown))
    return said


def _as_many_cases(sweeps: Sequence[Cell], shown: Callable[[str], str]) -> str:
    fewer = _fewer(sweeps, "table-6", shown)
    return _sentence(
        "Refinement helps in as many cases as the paper counts", len(sweeps), "sweeps", fewer
    )


def _larger_gains(sweeps: Sequence[Cell], shown: Callable[[str], str]) -> str:
    others = [
        f"{_where(cell, shown)} (correlation {signed(correlation, 2)})"
        for cell in sweeps
        if (correlation := gain_by_start(cell).correlation) >= CORRELATION
    ]
    return _sentence("The gain is larger where the start is worse", len(sweeps), "sweeps", others)


def _random_starts(
    random: Sequence[Cell],
    named: dict[tuple[str, str], float],
    shown: Callable[[str], str],
) -> str:
    fewer = _fewer(random, "table-7", shown)
    sentence = _sentence(
        "Random starts improve in as many trials as reported", len(random), "cases", fewer
    ).removesuffix(".")
    sides = []
    for cell in random:
        refined = named.get((cell.place.encoder, cell.place.distance))
        if refined is not None:
            above = cell.values["ulr"] > refined
            as_reported = above == _paper_is_above(cell.place.distance)
            sides.append(
                f"{'above' if above else 'below'} with {DISTANCE_NAMES[cell.place.distance]} by "
                f"{shown(cell.place.encoder)} ({cell.values['ulr']:.1f} against {refined:.1f}, "
                f"{'as' if as_reported else 'not as'} reported)"
            )
    if sides:
        sentence += f"; compared with refined label names they end {_listed(sides)}"
    return f"{sentence}."


def _paper_is_above(distance: str) -> bool:
    """Whether the paper's random starts end above its refined label names on AG News."""
    random, named = (_printed(table, distance, "ulr", "agnews") for table in ("table-7", "table-3"))
    return random.value > named.value


def _sentence(claim: str, total: int, of_what: str, exceptions: Sequence[str]) -> str:
    held = total - len(exceptions)
    if not held:
        return f"{claim} in none of {total} {of_what}: {_listed(exceptions)}."
    told = f"{claim} in {held} of {total} {of_what}"
    return f"{told}, but not for {_listed(exceptions)}." if exceptions else f"{told}."


def _listed(parts: Sequence[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def _where(cell: Cell, shown: Callable[[str], str]) -> str:
    dataset = DATASETS[cell.place.dataset].title
    return f"{dataset} with {DISTANCE_NAMES[cell.place.distance]} by {shown(cell.place.encoder)}"


def _fewer(cells: Iterable[Cell], table: str, shown: Callable[[str], str]) -> list[str]:
    """The cells in which fewer cases improve than the paper counts."""
    found = []
    for cell in cells:
        assert cell.improved is not None
        printed = _printed(table, cell.place.distance, "improved", cell.place.dataset)
        if 100 * cell.improved[0] / cell.improved[1] < printed.value - POINTS:
            ours, papers = counted(cell.improved), counted(printed.count)
            found.append(f"{_where(cell, shown)} ({ours}; the paper {papers})")
    return found


def _printed(table: str, distance: str, step: str, column: str) -> PaperFigure:
    figure = EXPERIMENTS[table].figure(distance, step, column)
    assert figure is not None
    return figure
