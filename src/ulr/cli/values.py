"""Values of options, from the text that was typed."""

from __future__ import annotations

from pathlib import Path

from ulr.errors import ParameterError


def extra_labels_of(value: str | None) -> list[str] | Path | None:
    """Extra labels from the name of a list, a file, or the labels themselves."""
    from ulr.labels import NAMED_LISTS, is_label_file, split_labels

    if value is None:
        return None
    if value in NAMED_LISTS:
        return list(NAMED_LISTS[value])
    return Path(value) if is_label_file(value) else split_labels(value)


def proportions_of(prior: str) -> str | list[float]:
    """The prior by name, or its numbers."""
    try:
        return [float(part) for part in prior.split(",")]
    except ValueError:
        return prior


def strong_share_of(value: str) -> str | float:
    """The share by name, or its number."""
    try:
        return float(value)
    except ValueError:
        return value


def fit_sample_of(value: str) -> int | str | None:
    """The most documents to fit on; None for all."""
    if value in ("auto", "all"):
        return None if value == "all" else "auto"
    digits = value.replace(",", "").replace("_", "")
    if not digits.isdecimal() or len(digits) > 18 or int(digits) == 0:
        raise ParameterError(
            "fit_sample", f"must be 'auto', 'all' or a positive number; got {value[:40]!r}."
        )
    return int(digits)
