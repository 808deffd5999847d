"""Sentences that state which of the paper's claims hold, computed from the figures."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from ulr.experiments.datasets import DATASETS
from ulr.experiments.figure import gain_by_start
from ulr.experiments.paper import DUAL, EXPERIMENTS, PaperFigure
from ulr.experiments.plan import DISTANCE_NAMES, MAIN, encoder_order
from ulr.experiments.results import Cell

# A share of improved cases agrees with the paper's if it is at most this many points below.
POINTS = 2.0
# Gains are larger where starts are worse if their correlation is below this.
CORRELATION = -0.3

THRESHOLDS = (
    f"A share of improved cases agrees with the paper's if it is at most {POINTS:g} points below; "
    f"gains count as larger where the start is worse if the correlation of the two is below "
    f"−{-CORRELATION:g}."
)

EncoderTitle = Callable[[str], str]


def signed(number: float, decimals: int) -> str:
    """A number with its sign, with a typographical minus."""
    return f"{number:+.{decimals}f}".replace("-", "−")


def counted(counts: tuple[int, int] | None) -> str:
    """A number of cases, and of how many."""
    assert counts is not None
    return f"{counts[0]:,} of {counts[1]:,}"


def findings(cells: Iterable[Cell], title: EncoderTitle) -> list[str]:
    """Up to three sentences, fewer where measurements are missing.

    Parameters
    ----------
    cells
        The cells of a report.
    title
        Returns what an encoder is called in the report.
    """
    measured = sorted(
        (cell for cell in cells if cell.key.role == DUAL and not cell.not_run),
        key=lambda cell: (encoder_order(cell.key.encoder), cell.key),
    )
    sweeps = [cell for cell in measured if cell.key.measure == "sweep"]
    random = [cell for cell in measured if cell.key.measure == "random starts"]
    sentences = []
    if sweeps:
        claim = "Refinement helps in as many cases as the paper counts"
        sentences.append(_sentence(claim, len(sweeps), "sweeps", _fewer(sweeps, "table-6", title)))
        claim = "The gain is larger where the start is worse"
        others = [
            f"{_where(cell, title)} (correlation {signed(correlation, 2)})"
            for cell in sweeps
            if (correlation := gain_by_start(cell).correlation) >= CORRELATION
        ]
        sentences.append(_sentence(claim, len(sweeps), "sweeps", others))
    if random:
        named = {
            (cell.key.encoder, cell.key.distance): cell.values["ulr"]
            for cell in measured
            if (cell.key.measure, cell.key.dataset, cell.key.names) == ("names", "agnews", MAIN)
        }
        sentences.append(_random_starts(random, named, title))
    return sentences


def _random_starts(
    random: Sequence[Cell], named: dict[tuple[str, str], float], title: EncoderTitle
) -> str:
    claim = "Random starts improve in as many trials as reported"
    sentence = _sentence(claim, len(random), "cases", _fewer(random, "table-7", title))
    sides = []
    for cell in random:
        distance, value = cell.key.distance, cell.values["ulr"]
        refined = named.get((cell.key.encoder, distance))
        if refined is not None:
            papers = [_printed(each, distance, "ulr", "agnews") for each in ("table-7", "table-3")]
            agrees = (value > refined) == (papers[0].value > papers[1].value)
            sides.append(
                f"{'above' if value > refined else 'below'} with {DISTANCE_NAMES[distance]} by "
                f"{title(cell.key.encoder)} ({value:.1f} against {refined:.1f}, "
                f"{'as' if agrees else 'not as'} reported)"
            )
    if not sides:
        return sentence
    compared = f"compared with refined label names they end {_joined(sides)}"
    return f"{sentence.removesuffix('.')}; {compared}."


def _sentence(claim: str, total: int, unit: str, exceptions: Sequence[str]) -> str:
    held = total - len(exceptions)
    if not held:
        return f"{claim} in none of {total} {unit}: {_joined(exceptions)}."
    but = f", but not for {_joined(exceptions)}" if exceptions else ""
    return f"{claim} in {held} of {total} {unit}{but}."


def _joined(parts: Sequence[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def _where(cell: Cell, title: EncoderTitle) -> str:
    dataset = DATASETS[cell.key.dataset].title
    return f"{dataset} with {DISTANCE_NAMES[cell.key.distance]} by {title(cell.key.encoder)}"


def _fewer(cells: Iterable[Cell], table: str, title: EncoderTitle) -> list[str]:
    """The cells in which fewer cases improve than the paper counts."""
    found = []
    for cell in cells:
        assert cell.improved is not None
        printed = _printed(table, cell.key.distance, "improved", cell.key.dataset)
        if 100 * cell.improved[0] / cell.improved[1] < printed.value - POINTS:
            ours, papers = counted(cell.improved), counted(printed.count)
            found.append(f"{_where(cell, title)} ({ours}; the paper {papers})")
    return found


def _printed(table: str, distance: str, step: str, column: str) -> PaperFigure:
    figure = EXPERIMENTS[table].figure(distance, step, column)
    assert figure is not None
    return figure
