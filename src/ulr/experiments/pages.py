"""Measured tables in a Markdown page, between the marks that name their place."""

from __future__ import annotations

from pathlib import Path

from ulr.errors import InputError
from ulr.files import whole_file


def replace_part(page: Path, name: str, text: str) -> None:
    """Replace what stands between ``<!-- name -->`` and ``<!-- /name -->``.

    Raises
    ------
    InputError
        When the page has no such part.
    """
    check_part(page, name)
    begin, end = _marks(name)
    before, _, rest = page.read_text(encoding="utf-8").partition(begin)
    _, _, after = rest.partition(end)
    with whole_file(page) as file:
        file.write(f"{before}{begin}\n{text}\n{end}{after}".encode())


def check_part(page: Path, name: str) -> None:
    """Say so now if a page has no such part."""
    begin, end = _marks(name)
    if not page.is_file():
        raise InputError(f"there is no page {page} to write the part {name!r} into.")
    _, found, rest = page.read_text(encoding="utf-8").partition(begin)
    if not found or end not in rest:
        raise InputError(f"{page} has no part {name!r}: it needs {begin} and {end}.")


def _marks(name: str) -> tuple[str, str]:
    return f"<!-- {name} -->", f"<!-- /{name} -->"
