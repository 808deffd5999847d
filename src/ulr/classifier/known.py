"""Known labels of documents, as users give them, as the codes of a refinement."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ulr.classifier.texts import is_missing
from ulr.errors import LabelError
from ulr.label_files import shown
from ulr.refinement import UNKNOWN


def known_labels(
    y: Any, names: Sequence[str], n_texts: int, called: str = "y"
) -> tuple[NDArray[np.int32], bool]:
    """Label index of each text, -1 where it is unknown, and whether labels are integers.

    Integers are positions in the sorted names, as scikit-learn's LabelEncoder gives them. Messages
    use the name that `y` is `called` by.
    """
    shape = getattr(y, "shape", None)
    if isinstance(y, str) or not isinstance(y, Iterable) or (shape and len(shape) != 1):
        found = f"shape {shape}" if shape else type(y).__name__
        raise LabelError(
            f"{called} must be a list of labels, None (or -1) where unknown; got {found}."
        )
    values = y.to_pylist() if hasattr(y, "to_pylist") else list(y)
    if len(values) != n_texts:
        raise LabelError(
            f"{called} must have one label per text, None (or -1) where it is unknown; got "
            f"{len(values)} for {n_texts} texts."
        )
    index: dict[Any, int] = {name: i for i, name in enumerate(names)}
    in_order = sorted(names)
    integers = any(_is_integer(value) and value >= 0 for value in values)
    known = np.full(n_texts, UNKNOWN, dtype=np.int32)
    for place, value in enumerate(values):
        if is_missing(value) or (not isinstance(value, str) and value == -1):
            continue
        if _is_integer(value) and 0 <= value < len(names):
            known[place] = index[in_order[int(value)]]
        elif not integers and str(value) in index:
            known[place] = index[str(value)]
        else:
            raise LabelError(
                f"{called} must be label names, and None (or -1) where unknown; number {place} is "
                f"{shown(value)}. The labels are: {', '.join(names)}."
            )
    return known, integers


def _is_integer(value: Any) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)
