"""Parquet files, through pyarrow."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from typing import IO, Any

import pyarrow as pa
import pyarrow.parquet as pq

from ulr.files import file_system
from ulr.tables.batch import BATCH_ROWS, Batch, Rows
from ulr.tables.source import Source
from ulr.tables.table import Table

_BATCH_BYTES = 1 << 26


def open_parquet(path: str) -> pq.ParquetFile:
    """A Parquet file, by path or address."""
    system, path = file_system(path)
    return pq.ParquetFile(path, filesystem=system)


def columns(source: Source) -> list[str]:
    """Names of the columns."""
    with open_parquet(source.path) as file:
        return [str(name) for name in file.schema_arrow.names]


def n_rows(source: Source) -> int:
    """Number of rows."""
    with open_parquet(source.path) as file:
        return int(file.metadata.num_rows)


def batches(source: Source) -> Iterator[Batch]:
    """The rows in batches."""
    with open_parquet(source.path) as file:
        row, groups = 0, range(file.num_row_groups)
        n_bytes = sum(file.metadata.row_group(group).total_byte_size for group in groups)
        most = _BATCH_BYTES * max(1, file.metadata.num_rows) // max(1, n_bytes)
        for part in file.iter_batches(batch_size=min(BATCH_ROWS, max(1, most))):
            part.validate(full=True)  # texts that are not UTF-8 are only found here
            yield Batch(source.name, row, part)
            row += part.num_rows


def write(file: IO[bytes], table: Table, rows: Rows, added: dict[str, type], format_: str) -> None:
    """Write Parquet; columns of a Parquet source keep their types."""
    arrow_types = {str: pa.string(), float: pa.float64(), tuple: pa.list_(pa.string())}
    further = [pa.field(name, arrow_types[kind]) for name, kind in added.items()]
    formats, as_records = {source.format for source in table.sources}, False
    if formats == {"parquet"}:
        with open_parquet(table.sources[0].path) as first:
            own = first.schema_arrow
    elif formats <= {"csv", "tsv", "txt"}:
        own = pa.schema([(name, pa.string()) for name in table.columns])
    else:
        own, as_records = _schema_of_values(table), True
    schema = pa.schema([*own, *further], own.metadata)
    with pq.ParquetWriter(file, schema) as writer:
        for batch, values in rows:
            if as_records:
                data = [_array(batch.column(field.name), field.type) for field in own]
            else:
                data = batch.data.columns  # type: ignore[union-attr]
            arrays = [*data, *(pa.array(values[field.name], field.type) for field in further)]
            writer.write_table(pa.Table.from_arrays(arrays, names=schema.names).cast(schema))


def _schema_of_values(table: Table) -> pa.Schema:
    """One Arrow type per column; text where its values have no common one."""
    kinds: dict[str, set[str]] = {name: set() for name in table.all_columns()}
    for batch in table.batches():
        for record in batch.records():
            for name, value in record.items():
                if value is not None:
                    kinds[name].add(_kind(value))
    candidates = [
        ({"bool"}, pa.bool_()),
        ({"int", "long int"}, pa.int64()),
        ({"int", "float"}, pa.float64()),
        ({"datetime"}, pa.timestamp("us")),
    ]
    types = {
        name: next((each for held, each in candidates if found and found <= held), pa.string())
        for name, found in kinds.items()
    }
    return pa.schema(types)


def _kind(value: Any) -> str:
    """The type of a value; integers by whether a float, or only an integer, can hold them."""
    if type(value) is int and abs(value) > 2**53:
        return "long int" if -(2**63) <= value < 2**63 else "huge int"
    return type(value).__name__


def _array(values: list[Any], kind: pa.DataType) -> pa.Array:
    """Values as an Arrow array, spelled out where that is one of texts."""
    if pa.types.is_string(kind):
        spell = partial(json.dumps, ensure_ascii=False, default=str)
        values = [each if isinstance(each, str | None) else spell(each) for each in values]
    return pa.array(values, kind)
