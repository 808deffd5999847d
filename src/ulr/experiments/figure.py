"""Figure 2 of the paper as a picture: the gain of refinement over the accuracy it starts from."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from ulr.experiments.datasets import DATASETS
from ulr.experiments.findings import starts_and_gains
from ulr.experiments.plan import DISTANCE_NAMES, encoder_order, short_name
from ulr.experiments.results import Cell
from ulr.plots import new_figure, write_figure

FILES = ("figure-2.png", "figure-2.svg")
_COLOURS = {"cosine": "tab:blue", "l2": "tab:orange"}


def draw_gains(cells: Iterable[Cell], folder: Path) -> None:
    """Write the picture, as PNG and SVG: a row of datasets for every encoder that was swept."""
    sweeps = sorted(
        (cell for cell in cells if cell.place.measure == "sweep" and not cell.not_run),
        key=lambda cell: cell.place,
    )
    encoders = sorted({cell.place.encoder for cell in sweeps}, key=encoder_order)
    datasets = [name for name in DATASETS if any(c.place.dataset == name for c in sweeps)]
    figure = new_figure(3.4 * len(datasets), 3.0 * len(encoders))
    axes = figure.subplots(len(encoders), len(datasets), squeeze=False)
    for row, encoder in zip(axes, encoders, strict=True):
        for each, dataset in zip(row, datasets, strict=True):
            own = [c for c in sweeps if (c.place.encoder, c.place.dataset) == (encoder, dataset)]
            _scatter(each, own)
            each.set_title(f"{DATASETS[dataset].title}, {short_name(encoder)}", fontsize=9)
            each.set_xlabel("accuracy by name (%)", fontsize=8)
        row[0].set_ylabel("gain of ULR (points)", fontsize=8)
    for name in FILES:
        write_figure(figure, folder / name)


def _scatter(axes: Any, sweeps: Sequence[Cell]) -> None:
    """The sweeps of one encoder on one dataset, a colour a distance."""
    axes.axhline(0, color="grey", linewidth=0.8)
    axes.tick_params(labelsize=8)
    for cell in sweeps:
        start, gain = starts_and_gains(cell)
        axes.scatter(
            start,
            gain,
            s=4,
            alpha=0.4,
            linewidths=0,
            color=_COLOURS[cell.place.distance],
            label=DISTANCE_NAMES[cell.place.distance],
            # As pixels, or an SVG of thousands of points would be larger than the data.
            rasterized=True,
        )
    if sweeps:
        axes.legend(fontsize=8, markerscale=2)
