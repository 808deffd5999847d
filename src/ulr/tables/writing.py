"""Predictions out: the rows of a table with further columns, in any of the formats.

Rows keep their order and their columns, and the file appears when it is whole.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from ulr.errors import TableError
from ulr.files import whole_file
from ulr.tables.reading import Batch, Record, Table, format_of_name, unknown_ending

if TYPE_CHECKING:
    import pyarrow as pa


def write_table(name: str, source: Table, batches: Iterable[Batch], added: dict[str, type]) -> None:
    """Write rows with added columns; the file appears when it is whole.

    Parameters
    ----------
    name
        Path to write, its ending says the format; ``-`` is standard output, in the format of
        the source.
    source
        The table that the rows came from.
    batches
        Its rows, the added columns included.
    added
        Names of the added columns, and their types, `str` or `float`.
    """
    if name == "-":
        _write(sys.stdout.buffer, source.format, source, batches, added)
        sys.stdout.buffer.flush()
        return
    format_ = format_of_name(name)
    if format_ is None:
        raise TableError(unknown_ending(name))
    try:
        with whole_file(Path(name)) as file:
            if name.lower().endswith(".gz"):
                with gzip.GzipFile(fileobj=file, mode="wb", filename="", mtime=0) as packed:
                    _write(packed, format_, source, batches, added)  # type: ignore[arg-type]
            else:
                _write(file, format_, source, batches, added)
    except OSError as error:
        raise TableError(f"{name} cannot be written: {error.strerror or error}.") from error


def _write(
    file: IO[bytes], format_: str, source: Table, batches: Iterable[Batch], added: dict[str, type]
) -> None:
    if format_ == "parquet":
        _write_parquet(file, source, batches, added)
    elif format_ == "jsonl":
        for batch in batches:
            rows = (json.dumps(row, ensure_ascii=False, default=str) for row in batch.records)
            file.write("".join(f"{row}\n" for row in rows).encode())
    else:
        columns = [*source.columns, *added]
        delimiter = "\t" if format_ == "tsv" else ","
        _write_csv_rows(file, delimiter, [columns] if source.how.header else [])
        for batch in batches:
            _write_csv_rows(
                file,
                delimiter,
                ([_csv_value(record.get(c)) for c in columns] for record in batch.records),
            )


def _write_csv_rows(file: IO[bytes], delimiter: str, rows: Iterable[Sequence[Any]]) -> None:
    buffer = _Rows()
    csv.writer(buffer, delimiter=delimiter, lineterminator="\r\n").writerows(rows)
    file.write(buffer.getvalue().encode())


class _Rows(io.StringIO):
    """Ends rows with a line feed; a writer that ends them with both also quotes both."""

    def write(self, row: str, /) -> int:
        return super().write(row.removesuffix("\r\n") + "\n")


def _csv_value(value: Any) -> Any:
    if isinstance(value, dict | list):
        return json.dumps(value, ensure_ascii=False, default=str)
    return value


def _write_parquet(
    file: IO[bytes], source: Table, batches: Iterable[Batch], added: dict[str, type]
) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    arrow_types = {str: pa.string(), float: pa.float64()}
    if source.format == "parquet":
        schema = pq.read_schema(source.path)
    elif source.format == "jsonl":
        schema = _json_schema(source)
    else:
        schema = pa.schema([(column, pa.string()) for column in source.columns])
    for name, kind in added.items():
        schema = schema.append(pa.field(name, arrow_types[kind]))
    with pq.ParquetWriter(file, schema) as writer:
        for batch in batches:
            table = batch.table
            if table is None:
                records = [_flat(record, schema) for record in batch.records]
                table = pa.Table.from_pylist(records, schema=schema)
            writer.write_table(table.cast(schema))


def _json_schema(source: Table) -> pa.Schema:
    """One Arrow type for every key of a JSONL file; text where its values have no common one."""
    import pyarrow as pa

    kinds: dict[str, set[str]] = {name: set() for name in source.columns}
    for batch in source.batches():
        for record in batch.records:
            for name, value in record.items():
                if value is not None:
                    kinds[name].add(_kind(value))
    holders = [
        ({"bool"}, pa.bool_()),
        ({"int", "long int"}, pa.int64()),
        ({"int", "float"}, pa.float64()),
    ]
    return pa.schema(
        [
            (name, next((arrow for held, arrow in holders if found and found <= held), pa.string()))
            for name, found in kinds.items()
        ]
    )


def _kind(value: Any) -> str:
    """The type of a JSON value; whole numbers by whether a float, or only an integer, has them."""
    if type(value) is int and abs(value) > 2**53:
        return "long int" if -(2**63) <= value < 2**63 else "huge int"
    return type(value).__name__


def _flat(record: Record, schema: pa.Schema) -> Record:
    """A JSON record with text wherever the schema says text."""
    import pyarrow as pa

    return {
        field.name: value
        if value is None or isinstance(value, str) or not pa.types.is_string(field.type)
        else json.dumps(value, ensure_ascii=False)
        for field in schema
        for value in (record.get(field.name),)
    }
