"""An audit as a picture."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ulr.audit.findings import Audit, SetFinding
from ulr.plots import new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_BEFORE, _AFTER = "#9aa5b1", "#1f6fb2"


def draw_audit(found: Audit, sets: tuple[SetFinding, ...]) -> Figure:
    """How stable each label is, how each phrase fares, and, with a truth, what sets gain.

    Parameters
    ----------
    found
        The audit.
    sets
        Its sets, with their accuracy where the truth is known.
    """
    with_truth = sets[0].accuracy_before is not None
    n_panels = 3 if with_truth else 2
    n_lines = max(len(found.labels), sum(len(each.phrases) for each in found.labels))
    figure = new_figure(5.5 * n_panels, max(4.0, 1.5 + 0.22 * n_lines))
    panels = figure.subplots(1, n_panels)
    _draw_labels(panels[0], found)
    _draw_phrases(panels[1], found)
    if with_truth:
        _draw_gain(panels[2], sets)
    return figure


def _draw_labels(axes: Axes, found: Audit) -> None:
    places = range(len(found.labels))
    for shift, colour, name, values in (
        (-0.2, _BEFORE, "by name", [each.agreement_before for each in found.labels]),
        (0.2, _AFTER, "refined", [each.agreement_after for each in found.labels]),
    ):
        widths = [100 * (value or 0.0) for value in values]
        axes.barh([place + shift for place in places], widths, 0.38, color=colour, label=name)
    axes.set_yticks(list(places), [each.label for each in found.labels])
    axes.invert_yaxis()
    axes.set_xlim(0, 100)
    axes.set_xlabel("another set gives the same label (%)")
    axes.set_title("Agreement on each label", loc="left")
    axes.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=2, frameon=False)


def _draw_phrases(axes: Axes, found: Audit) -> None:
    lines = [
        (f"{each.label}: {phrase.phrase}" if phrase.phrase != each.label else each.label, phrase)
        for each in found.labels
        for phrase in each.phrases
    ]
    places = list(range(len(lines)))
    axes.scatter(
        [100 * phrase.agreement_before for _, phrase in lines], places, color=_BEFORE, s=22
    )
    axes.scatter([100 * phrase.agreement_after for _, phrase in lines], places, color=_AFTER, s=22)
    axes.axvline(100 * found.agreement_before, color=_BEFORE, linewidth=0.8, linestyle=":")
    axes.axvline(100 * found.agreement_after, color=_AFTER, linewidth=0.8, linestyle=":")
    axes.set_yticks(places, [name for name, _ in lines])
    axes.invert_yaxis()
    axes.set_xlabel("sets with this phrase agree with another set (%)")
    axes.set_title("Agreement by phrase", loc="left")


def _draw_gain(axes: Axes, sets: tuple[SetFinding, ...]) -> None:
    before = [100 * (each.accuracy_before or 0.0) for each in sets]
    after = [100 * (each.accuracy_after or 0.0) for each in sets]
    gain = [a - b for a, b in zip(after, before, strict=True)]
    size = 14 if len(sets) < 500 else 5
    axes.scatter(before, gain, s=size, color=_AFTER, alpha=0.5, linewidths=0)
    axes.axhline(0, color="black", linewidth=0.8)
    axes.set_xlabel("accuracy by name (%)")
    axes.set_ylabel("gain by refinement (points)")
    axes.set_title(f"Gain of {len(sets):,} sets", loc="left")
