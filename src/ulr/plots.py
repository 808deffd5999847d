"""Pictures that people would rather look at: a Matplotlib figure, written whole as PNG, SVG or PDF.

Figures are made without pyplot, so nothing is shared between them and no window is opened; the same
figure gives the same bytes.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ulr.errors import InputError
from ulr.files import whole_file

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ENDINGS = (".png", ".svg", ".pdf")


def check_picture(path: str | Path) -> None:
    """Say so now if a picture could not be written under that name."""
    if Path(path).suffix.lower() not in ENDINGS:
        raise InputError(f"{path}: a picture's name must end in {', '.join(ENDINGS)}.")
    new_figure()


def new_figure(width: float = 7.0, height: float = 4.5) -> Figure:
    """An empty figure, in inches."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise InputError(
            "'matplotlib' is not installed; install it with: pip install 'ulr[plots]'."
        ) from None
    return Figure(figsize=(width, height), layout="constrained")


def write_figure(figure: Figure, path: str | Path) -> None:
    """Write a figure, as what its name ends in, whole or not at all."""
    import matplotlib

    kind = Path(path).suffix.lower().removeprefix(".")
    # Without these, a picture would carry the time, and random names inside.
    dateless = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": {}}[kind]
    with (
        whole_file(Path(path)) as file,
        matplotlib.rc_context({"svg.hashsalt": "ulr", "svg.fonttype": "none"}),
    ):
        figure.savefig(file, format=kind, dpi=150, metadata=dateless)
