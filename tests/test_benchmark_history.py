"""Figures of pages are kept with their machine and commit, and the last two are compared."""

import json

import pytest

from benchmarks import history

PAGE = """
| not | a figure of a benchmark |
|---|---|
| row | 9 |

<!-- speed -->

| | texts/s | to it | note |
|---|---:|---|---|
| **`ulr`** | {speed} | 1.50x | first |
| other | 700 | – | none |

<!-- /speed -->
"""


def test_records_hold_the_figures_of_the_parts_and_changes_are_listed(tmp_path):
    page, file = tmp_path / "page.md", tmp_path / "history.jsonl"
    for speed in ("1,000", "2,000"):
        page.write_text(PAGE.format(speed=speed))
        history.add(page, [], file)
    first, _ = (json.loads(line) for line in file.read_text().splitlines())
    figures = {"ulr · texts/s": 1000, "ulr · to it": 1.5, "other · texts/s": 700}
    assert (first["page"], first["part"], first["figures"]) == ("page.md", "speed", figures)
    assert first["machine"]["cores"] > 0
    title, changed = history.compare(file)
    assert title.startswith("page.md, speed: ")
    assert changed == "  ulr · texts/s: 1000 → 2000 (2.00x)"


def test_a_part_that_the_page_lacks_is_refused(tmp_path):
    (tmp_path / "page.md").write_text(PAGE.format(speed=1))
    with pytest.raises(SystemExit, match="has no part size; it has: speed"):
        history.add(tmp_path / "page.md", ["size"], tmp_path / "history.jsonl")


def test_the_history_of_the_repository_can_be_compared():
    assert history.compare()
