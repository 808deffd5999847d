"""Where predictions are written, and the added columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from ulr.errors import TableError
from ulr.files import atomic_folder, refuse_existing
from ulr.tables import (
    Added,
    Batch,
    Table,
    format_of_name,
    source_batches,
    unknown_ending,
    write_table,
)

WithColumns = Callable[[Iterable[Batch], bool], Iterator[tuple[Batch, Added]]]


@dataclass(frozen=True)
class Output:
    """Where predictions are written; nowhere without a path.

    Attributes
    ----------
    path
        A file, ``-`` for standard output, or a folder for one file per input.
    prefix
        Beginning of the names of added columns.
    force
        Whether existing files are replaced.
    stdout
        What ``-`` is written to.
    """

    path: str | None = None
    prefix: str = "ulr_"
    force: bool = False
    stdout: IO[bytes] | None = None

    @property
    def is_folder(self) -> bool:
        """Whether one file is written per input."""
        return self.path is not None and (self.path.endswith("/") or Path(self.path).is_dir())

    def refuse(self, table: Table, added: Sequence[str]) -> None:
        """Refuse what could not be written, before the long part of a job."""
        refuse_columns(table, added)
        self.refuse_file()
        if self.path is not None and self.is_folder:
            folder = Path(self.path)
            if not folder.exists():
                refuse_existing(folder, True, TableError, "--force")
            for name in output_names([source.name for source in table.sources]):
                if folder.is_dir():
                    refuse_existing(folder / name, self.force, TableError, "--force")

    def refuse_file(self) -> None:
        """Refuse a file that could not be written, before anything is read."""
        if self.path == "":
            raise TableError("the name of the output is empty.")
        if self.path is None or self.path == "-" or self.is_folder:
            return
        if format_of_name(self.path) in (None, "txt"):
            raise TableError(unknown_ending(self.path))
        refuse_existing(Path(self.path), self.force, TableError, "--force")

    def write(self, table: Table, with_columns: WithColumns, added: dict[str, type]) -> None:
        """Write the rows of a table with further columns.

        Parameters
        ----------
        table
            The table.
        with_columns
            Adds the values of the further columns to batches of rows, in the order of the table; its
            second argument is whether they are the last ones.
        added
            Names and types of the further columns.
        """
        if self.path is None:
            for _ in with_columns(table.batches(), True):
                pass
        elif not self.is_folder:
            rows = with_columns(table.batches(), True)
            write_table(self.path, table.sources, rows, added, self.stdout)
        elif Path(self.path).is_dir():
            self._write_files(Path(self.path), table, with_columns, added)
        else:
            with atomic_folder(Path(self.path)) as folder:
                self._write_files(folder, table, with_columns, added)

    def _write_files(
        self, folder: Path, table: Table, with_columns: WithColumns, added: dict[str, type]
    ) -> None:
        for source in table.sources:
            rows = with_columns(source_batches(source), source is table.sources[-1])
            write_table(str(folder / output_name(source.name)), [source], rows, added)


def refuse_columns(table: Table, added: Sequence[str]) -> None:
    """Refuse a table that has one of the columns to be added."""
    for name in added:
        if name in table.columns:
            raise TableError(
                f"{table.name} already has a column {name!r}; choose another beginning for the "
                "added columns with --prefix."
            )


def output_names(sources: Sequence[str]) -> list[str]:
    """Names of the files for some inputs in a folder; refuses inputs of the same name."""
    names = [output_name(source) for source in sources]
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise TableError(f"two inputs are called {min(twice)!r}; write them into one file.")
    return names


def output_name(source: str) -> str:
    """Name of the file for an input in a folder; a text file has no columns, so not .txt."""
    name = Path(source).name
    ending = format_of_name(name)
    if ending is None or ending == "txt":
        return f"{name.removesuffix('.gz').removesuffix('.txt')}.csv"
    return name
