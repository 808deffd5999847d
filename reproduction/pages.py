"""Parts of Markdown pages that a command writes, between ``<!-- name -->`` and ``<!-- /name -->``."""

from __future__ import annotations

from pathlib import Path

from ulr.errors import InputError
from ulr.files import atomic_file


def replace_part(page: Path, name: str, text: str) -> None:
    """Replace the text of a part of a page."""
    before, after = check_part(page, name)
    with atomic_file(page) as file:
        file.write(f"{before}\n{text}\n{after}".encode())


def check_part(page: Path, name: str) -> tuple[str, str]:
    """The text of a page up to and from the marks of a part; refuses a page without them."""
    begin, end = f"<!-- {name} -->", f"<!-- /{name} -->"
    if not page.is_file():
        raise InputError(f"there is no page {page} to write the part {name!r} into.")
    before, found, rest = page.read_text(encoding="utf-8").partition(begin)
    _, closed, after = rest.partition(end)
    if not (found and closed):
        raise InputError(f"{page} has no part {name!r}: it needs {begin} and {end}.")
    return before + begin, end + after
