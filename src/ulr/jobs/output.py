"""Where predictions are written, and the added columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from ulr.classifier import Settings
from ulr.errors import TableError
from ulr.files import atomic_folder, check_destination, real_path
from ulr.tables import Added, Batch, Table, check_output_name, format_of_name, write_table

_ADDED: dict[str, type] = {"label": str, "confidence": float, "unrefined": str, "why": str}


def added_columns(
    prefix: str, settings: Settings, refined: bool = True, explain: bool = False
) -> dict[str, type]:
    """Names and types of the added columns; a saved model adds no label before refinement.

    A tree of labels adds a column for each level, several labels a text one for all of them.
    """
    tree = settings.label_set.tree
    levels = {f"label_{level + 1}": str for level in range(0 if tree is None else tree.depth)}
    columns = {**_ADDED, **levels}
    if settings.multilabel:
        columns["labels"] = tuple
    left_out = {"unrefined": not refined, "why": not explain}
    return {prefix + name: kind for name, kind in columns.items() if not left_out.get(name)}


@dataclass(frozen=True)
class Output:
    """Where predictions are written; nowhere without a path."""

    path: str | None = None  # a file, ``-`` for standard output, or a folder for one file per input
    prefix: str = "ulr_"  # beginning of the names of added columns
    force: bool = False  # whether existing files are replaced
    stdout: IO[bytes] | None = None  # what ``-`` is written to
    explain: bool = False  # whether the words that spoke for the label are added

    @property
    def is_folder(self) -> bool:
        """Whether one file is written per input."""
        return self.path is not None and (self.path.endswith("/") or Path(self.path).is_dir())

    def check(self, table: Table, settings: Settings, *, refined: bool = True) -> None:
        """Raise if the rows could not be written; called before the long part of a job."""
        check_columns(table, self.path, added_columns(self.prefix, settings, refined))
        self.check_path()
        if self.path is None:
            return
        if not self.is_folder:
            if self.replaces_input(table) and len(table.sources) > 1:
                raise TableError(f"{self.path} is one of several inputs; choose another name.")
            return
        folder = Path(self.path)
        if not folder.exists():
            check_destination(folder, True, TableError, "--force")
        for name in output_names([source.name for source in table.sources]):
            if folder.is_dir():
                check_destination(folder / name, self.force, TableError, "--force")
                if real_path(folder / name) in _input_paths(table):
                    raise TableError(
                        f"{folder / name} is an input, which the output would replace; choose another "
                        "folder."
                    )

    def replaces_input(self, table: Table) -> bool:
        """Whether a file of the table is replaced by its labelled copy."""
        is_file = self.path not in (None, "-") and not self.is_folder
        return is_file and real_path(str(self.path)) in _input_paths(table)

    def check_path(self) -> None:
        """Raise if a file could not be written; called before anything is read."""
        if self.path == "":
            raise TableError("the name of the output is empty.")
        if self.path is None or self.path == "-" or self.is_folder:
            return
        check_output_name(self.path)
        check_destination(Path(self.path), self.force, TableError, "--force")

    def write(
        self, table: Table, rows: Iterator[tuple[Batch, Added]], added: dict[str, type]
    ) -> None:
        """Write the rows of a table with the values of further columns."""
        if self.path is None:
            for _ in rows:
                pass
            return
        check_columns(table, self.path, added)  # of JSON, all are known only now
        if not self.is_folder:
            write_table(self.path, table, rows, added, self.stdout)
            return
        folder = Path(self.path)
        with nullcontext(folder) if folder.is_dir() else atomic_folder(folder) as target:
            _write_files(target, table, rows, added)


def _input_paths(table: Table) -> set[Path]:
    """The files of a table."""
    paths = (Path(each.path, name) for each in table.sources for name in each.files or ("",))
    return {real_path(path) for path in paths}


def _write_files(
    folder: Path, table: Table, rows: Iterator[tuple[Batch, Added]], added: dict[str, type]
) -> None:
    """Write one file per input; the rows of one input follow each other."""
    following = next(rows, None)

    def rows_of(name: str) -> Iterator[tuple[Batch, Added]]:
        nonlocal following
        while following is not None and following[0].name == name:
            yield following
            following = next(rows, None)

    for file in table.files():
        name = file.sources[0].name
        write_table(str(folder / output_name(name)), file, rows_of(name), added)


def check_columns(table: Table, path: str | None, added: Iterable[str]) -> None:
    """Raise if a table already has one of the columns to be added to it, where it is written."""
    for name in added if path else ():
        if name in table.columns:
            raise TableError(
                f"{table.name} already has a column {name!r}; choose another beginning for the "
                "added columns with --prefix."
            )


def output_names(sources: Sequence[str]) -> list[str]:
    """Names of the files for some inputs in a folder, which must differ."""
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
