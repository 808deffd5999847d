"""Figures over time: one line of history.jsonl per measurement, with its machine and commit.

    python -m benchmarks.history add docs/installing.md [--part installation]
    python -m benchmarks.history compare [--least 1.1]

`add` reads the tables that benchmarks have just written into a page; `compare` sets the last record
of the same parts beside the one before it, and lists figures that differ by more than a factor.
"""

from __future__ import annotations

import argparse
import json
import math
import platform
import re
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ulr.threads import available_cores, machine_memory

HISTORY = Path(__file__).parent / "history.jsonl"
_PART = re.compile(r"<!-- ([\w-]+) -->\n(.*?)<!-- /\1 -->", re.DOTALL)
_NUMBER = re.compile(r"-?\d+(?:,\d{3})*(?:\.\d+)?")


def figures(text: str) -> Iterator[tuple[str, float]]:
    """The numbers in the tables of a text, each with the names of its row and its column."""
    header: list[str] = []
    for line in text.splitlines():
        if not line.startswith("|"):
            header = []
            continue
        cells = [cell.strip(" `*") for cell in line.strip().strip("|").split("|")]
        if not header:
            header = cells
        elif set(line) - set("|-: "):
            for column, cell in zip(header[1:], cells[1:], strict=False):
                if found := _NUMBER.match(cell):
                    yield f"{cells[0]} · {column}", float(found[0].replace(",", ""))


def parts(page: Path) -> dict[str, dict[str, float]]:
    """The figures of the parts of a page that benchmarks write."""
    found = _PART.findall(page.read_text(encoding="utf-8"))
    return {name: dict(figures(text)) for name, text in found}


def machine() -> dict[str, Any]:
    """What the seconds of a measurement depend on."""
    memory = machine_memory()
    return {
        "processor": _processor(),
        "cores": available_cores(),
        "memory_gb": round(memory / 1e9) if math.isfinite(memory) else None,
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
    }


def _processor() -> str:
    try:
        content = Path("/proc/cpuinfo").read_text()
    except OSError:
        return platform.processor()
    found = re.search(r"^model name\s*: (.*)$", content, re.MULTILINE)
    return found[1] if found else platform.processor()


def commit() -> str:
    """The commit that is checked out, marked if files differ from it."""
    command = ["git", "describe", "--always", "--dirty", "--exclude=*"]
    try:
        run = subprocess.run(command, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):  # not a clone
        return "unknown"
    return run.stdout.strip()


def add(page: Path, names: list[str], history: Path = HISTORY) -> list[dict[str, Any]]:
    """Append a record for each part of a page, or for those that are named."""
    found = parts(page)
    if missing := sorted(set(names) - set(found)):
        sys.exit(f"{page} has no part {', '.join(missing)}; it has: {', '.join(found)}.")
    head = {"date": f"{datetime.now(UTC):%Y-%m-%d}", "commit": commit(), "machine": machine()}
    records = [
        {**head, "page": page.name, "part": name, "figures": values}
        for name, values in found.items()
        if not names or name in names
    ]
    with history.open("a", encoding="utf-8", newline="\n") as file:
        file.writelines(json.dumps(record, ensure_ascii=False) + "\n" for record in records)
    return records


def compare(history: Path = HISTORY, least: float = 1.1) -> list[str]:
    """Lines about the last two records of each part."""
    by_part: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for line in history.read_text(encoding="utf-8").splitlines():
        record = json.loads(line)
        by_part.setdefault((record["page"], record["part"]), []).append(record)
    lines = []
    for (page, part), records in by_part.items():
        if len(records) < 2:
            lines.append(f"{page}, {part}: one record, of {records[0]['commit']}")
            continue
        before, after = records[-2:]
        other = "" if before["machine"] == after["machine"] else "; another machine"
        lines.append(f"{page}, {part}: {before['commit']} → {after['commit']}{other}")
        for name in sorted(before["figures"].keys() | after["figures"].keys()):
            old, new = before["figures"].get(name), after["figures"].get(name)
            if old is None or new is None:
                lines.append(f"  {name}: {'new' if old is None else 'gone'}")
            elif max(old, new) > least * min(old, new):
                ratio = f" ({new / old:.2f}x)" if old else ""
                lines.append(f"  {name}: {old:g} → {new:g}{ratio}")
    return lines


def main() -> None:
    """Append or compare."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    adding = commands.add_parser("add")
    adding.add_argument("page", type=Path)
    adding.add_argument("--part", action="append", default=[])
    comparing = commands.add_parser("compare")
    comparing.add_argument("--least", type=float, default=1.1, help="factor from which on to list")
    given = parser.parse_args()
    if given.command == "add":
        records = add(given.page, given.part)
        print(f"{len(records)} records of {given.page} were appended.")
    else:
        print("\n".join(compare(least=given.least)))


if __name__ == "__main__":
    main()
