"""Matplotlib figures as PNG, SVG or PDF files, written atomically.

Figures are created without pyplot: they share no state and open no window. Equal figures give equal
bytes.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ulr.errors import InputError
from ulr.files import atomic_file

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ENDINGS = (".png", ".svg", ".pdf")


def check_picture(path: str | Path) -> None:
    """Refuse a file name that a figure cannot be written to, or a missing Matplotlib."""
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
    """Write a figure in the format that the file name ends in."""
    import matplotlib

    kind = Path(path).suffix.lower().removeprefix(".")
    # Otherwise the file contains the time and random identifiers.
    dateless = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": {}}[kind]
    with (
        atomic_file(Path(path)) as file,
        matplotlib.rc_context({"svg.hashsalt": "ulr", "svg.fonttype": "none"}),
    ):
        figure.savefig(file, format=kind, dpi=150, metadata=dateless)
