"""Figure 2 of the paper: the gain of refinement over the accuracy before it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reproduction.cells import Cell, encoder_order, short_name
from reproduction.datasets import DATASETS, ReproductionError
from reproduction.experiments import DISTANCE_NAMES
from ulr.errors import require
from ulr.files import atomic_file

FILES = ("figure-2.png", "figure-2.svg")
_COLOURS = {"cosine": "tab:blue", "l2": "tab:orange"}


def gain_by_start(cell: Cell) -> tuple[float, float, float]:
    """How the gain of a sweep depends on the accuracy before refinement.

    The correlation of the two over the sets of names, 0 where one is constant; the mean gain, in
    points, over the third of the sets that start worst; and over the third that start best.
    """
    start, gain = _starts_and_gains(cell)
    varied = len(start) > 1 and np.ptp(start) > 0 and np.ptp(gain) > 0
    correlation = float(np.corrcoef(start, gain)[0, 1]) if varied else 0.0
    third = max(1, len(start) // 3)
    order = np.argsort(start, kind="stable")
    return correlation, float(gain[order[:third]].mean()), float(gain[order[-third:]].mean())


def _starts_and_gains(cell: Cell) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Accuracy by name and its gain by refinement, in percent, for every set of a sweep."""
    before = 100 * np.array(cell.before) / cell.about["rows"]
    return before, 100 * np.array(cell.after) / cell.about["rows"] - before


def draw_gains(cells: Iterable[Cell], folder: Path) -> None:
    """Write the plot as PNG and SVG, with a row of datasets per encoder; equal cells, equal bytes."""
    matplotlib = require("matplotlib", "plots", ReproductionError)
    figures = require("matplotlib.figure", "plots", ReproductionError)
    sweeps = sorted(
        (cell for cell in cells if cell.key.measure == "sweep" and not cell.not_run),
        key=lambda cell: cell.key,
    )
    encoders = sorted({cell.key.encoder for cell in sweeps}, key=encoder_order)
    datasets = [name for name in DATASETS if any(cell.key.dataset == name for cell in sweeps)]
    size = 3.4 * len(datasets), 3.0 * len(encoders)
    figure = figures.Figure(figsize=size, layout="constrained")  # without pyplot's global state
    axes = figure.subplots(len(encoders), len(datasets), squeeze=False)
    for row, encoder in zip(axes, encoders, strict=True):
        for each, dataset in zip(row, datasets, strict=True):
            own = [c for c in sweeps if (c.key.encoder, c.key.dataset) == (encoder, dataset)]
            if own:
                _scatter(each, own)
            each.set_title(f"{DATASETS[dataset].title}, {short_name(encoder)}", fontsize=9)
            each.set_xlabel("accuracy by name (%)", fontsize=8)
        row[0].set_ylabel("gain of ULR (points)", fontsize=8)
    # Otherwise an SVG contains the time and random identifiers.
    with matplotlib.rc_context({"svg.hashsalt": "ulr", "svg.fonttype": "none"}):
        for name, metadata in zip(FILES, ({}, {"Date": None}), strict=True):
            with atomic_file(folder / name) as file:
                figure.savefig(file, format=name[-3:], dpi=150, metadata=metadata)


def _scatter(axes: Any, sweeps: Sequence[Cell]) -> None:
    """The sweeps of one encoder on one dataset, one colour per distance."""
    axes.axhline(0, color="grey", linewidth=0.8)
    axes.tick_params(labelsize=8)
    for cell in sweeps:
        axes.scatter(
            *_starts_and_gains(cell),
            s=4,
            alpha=0.4,
            linewidths=0,
            color=_COLOURS[cell.key.distance],
            label=DISTANCE_NAMES[cell.key.distance],
            # As pixels: an SVG of thousands of points would be larger than the data.
            rasterized=True,
        )
    axes.legend(fontsize=8, markerscale=2)
