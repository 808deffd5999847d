"""Outputs that a page shows, compared with those of the present code."""

import re


def differences(expected: str, found: str, tolerance: float) -> list[str]:
    """Words of two outputs that differ, and numbers that differ by more than the tolerance.

    The last digits of an encoder's vectors depend on the processor.
    """
    number = re.compile(r"\d+(?:\.\d+)?")
    one, other = ([*number.findall(text)] for text in (expected, found))
    if number.sub("#", expected).split() != number.sub("#", found).split():
        return [f"{expected!r} is now {found!r}"]
    pairs = zip(one, other, strict=True)
    return [f"{a} is now {b}" for a, b in pairs if abs(float(a) - float(b)) > tolerance]
