"""What the benchmarks share: times of calls, and tables as Markdown."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from reproduction.pages import replace_part


@dataclass(frozen=True)
class Time:
    """Wall and CPU seconds of one run."""

    wall: float
    cpu: float

    def scaled(self, factor: float) -> Time:
        """The time of so many runs."""
        return Time(self.wall * factor, self.cpu * factor)

    def best(self, other: Time) -> Time:
        """The smaller of each."""
        return Time(min(self.wall, other.wall), min(self.cpu, other.cpu))


def timed(work: Callable[[], object], repeats: int = 1) -> Time:
    """Best wall and best CPU seconds of some runs."""
    best = Time(float("inf"), float("inf"))
    for _ in range(repeats):
        wall, cpu = time.perf_counter(), time.process_time()
        work()
        best = best.best(Time(time.perf_counter() - wall, time.process_time() - cpu))
    return best


def markdown(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table."""
    first, *others = (f"| {' | '.join(row)} |" for row in (head, *rows))
    return "\n".join([first, "|---" * len(head) + "|", *others])


def shown(rows: Iterable[Sequence[str]]) -> Iterator[Sequence[str]]:
    """Rows of a table that are printed as soon as they are measured."""
    for row in rows:
        print(" | ".join(row), file=sys.stderr, flush=True)
        yield row


def publish(text: str, page: str | Path | None, part: str) -> None:
    """Print a text, and write it into a part of a page if there is one."""
    print(text)
    if page:
        replace_part(Path(page), part, text)
