"""Puts measured tables into a page, between the marks that name their place."""

from __future__ import annotations

from pathlib import Path


def replace_part(page: Path, name: str, text: str) -> None:
    """Replace what stands between ``<!-- name -->`` and ``<!-- /name -->``."""
    begin, end = f"<!-- {name} -->", f"<!-- /{name} -->"
    before, found, rest = page.read_text(encoding="utf-8").partition(begin)
    _, closed, after = rest.partition(end)
    if not (found and closed):
        raise SystemExit(f"{page} has no part {name!r}: it needs {begin} and {end}.")
    page.write_text(f"{before}{begin}\n{text}\n{end}{after}", encoding="utf-8")
