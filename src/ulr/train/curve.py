"""The loss and the ranking accuracy of a run as a picture."""

from __future__ import annotations

from itertools import accumulate
from pathlib import Path

from ulr.plots import new_figure, write_figure
from ulr.train.log import read_log


def write_curve(log: Path, picture: Path, smoothing: float = 0.95) -> None:
    """Draw the loss of every step, smoothed, over the ranking accuracy of every validation."""
    lines = read_log(log)
    steps = [line for line in lines if "loss" in line]
    validations = [line for line in lines if "validation_accuracy" in line]
    losses = [line["loss"] for line in steps]
    smooth = accumulate(losses, lambda before, now: smoothing * before + (1 - smoothing) * now)
    figure = new_figure(7.0, 5.0 if validations else 3.5)
    panels = figure.subplots(2 if validations else 1, 1, sharex=True, squeeze=False)[:, 0]
    numbers = [line["step"] for line in steps]
    panels[0].plot(numbers, losses, color="0.8", linewidth=0.7, label="each step")
    panels[0].plot(numbers, list(smooth), color="tab:blue", linewidth=1.5, label="smoothed")
    panels[0].set_ylabel("loss")
    panels[0].legend(frameon=False)
    if validations:
        at = [line["step"] for line in validations]
        accuracies = [100 * line["validation_accuracy"] for line in validations]
        panels[1].plot(at, accuracies, color="tab:orange", marker="o", markersize=3)
        panels[1].set_ylabel("ranking accuracy, %")
    panels[-1].set_xlabel("step")
    write_figure(figure, picture)
