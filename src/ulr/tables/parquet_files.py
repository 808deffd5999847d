"""Parquet files, through pyarrow."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import IO, TYPE_CHECKING, Any

from ulr.tables.batch import BATCH_ROWS, Added, Batch, Record
from ulr.tables.formats import Source, common_columns, scanned

if TYPE_CHECKING:
    import pyarrow as pa

_BATCH_BYTES = 1 << 26


def columns(source: Source) -> list[str]:
    """Names of the columns."""
    import pyarrow.parquet as pq

    return [str(name) for name in pq.read_schema(source.path).names]


def n_rows(source: Source) -> int:
    """Number of rows."""
    import pyarrow.parquet as pq

    return int(pq.read_metadata(source.path).num_rows)


def batches(source: Source) -> Iterator[Batch]:
    """The rows in batches, as Arrow tables."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    with pq.ParquetFile(source.path) as file:
        row, groups = 0, range(file.num_row_groups)
        n_bytes = sum(file.metadata.row_group(group).total_byte_size for group in groups)
        most = _BATCH_BYTES * max(1, file.metadata.num_rows) // max(1, n_bytes)
        for part in file.iter_batches(batch_size=min(BATCH_ROWS, max(1, most))):
            part.validate(full=True)  # texts that are not UTF-8 are only found here
            yield Batch(row, source.columns, table=pa.Table.from_batches([part]))
            row += part.num_rows


def write(
    file: IO[bytes],
    sources: Sequence[Source],
    rows: Iterable[tuple[Batch, Added]],
    added: dict[str, type],
) -> None:
    """Write Parquet; see `FormatReader.write`. Columns of a Parquet source keep their types."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    arrow_types = {str: pa.string(), float: pa.float64()}
    kinds = {source.format for source in sources}
    if kinds == {"parquet"}:
        schema = pq.read_schema(sources[0].path)
    elif kinds <= {"csv", "tsv", "txt"}:
        schema = pa.schema([(name, pa.string()) for name in common_columns(scanned(sources))])
    else:
        schema = _schema_of_values(sources)
    n_own = len(schema)
    for name, kind in added.items():
        schema = schema.append(pa.field(name, arrow_types[kind]))
    with pq.ParquetWriter(file, schema) as writer:
        for batch, values in rows:
            table = batch.table if kinds == {"parquet"} else None
            if table is None:
                own = pa.schema(list(schema)[:n_own])
                records = [_as_text(record, own) for record in batch.as_records()]
                table = pa.Table.from_pylist(records, schema=own)
            for name, kind in added.items():
                table = table.append_column(name, pa.array(values[name], arrow_types[kind]))
            writer.write_table(table.cast(schema))


def _schema_of_values(sources: Sequence[Source]) -> pa.Schema:
    """One Arrow type per column; text where its values have no common one."""
    import pyarrow as pa

    from ulr.tables.formats import reader_of

    kinds: dict[str, set[str]] = {name: set() for name in common_columns(scanned(sources))}
    for source in sources:
        for batch in reader_of(source.format).batches(source):
            for record in batch.as_records():
                for name, value in record.items():
                    if value is not None:
                        kinds[name].add(_kind(value))
    candidates = [
        ({"bool"}, pa.bool_()),
        ({"int", "long int"}, pa.int64()),
        ({"int", "float"}, pa.float64()),
        ({"datetime"}, pa.timestamp("us")),
    ]
    return pa.schema(
        [
            (name, next((t for held, t in candidates if found and found <= held), pa.string()))
            for name, found in kinds.items()
        ]
    )


def _kind(value: Any) -> str:
    """The type of a value; integers by whether a float, or only an integer, can hold them."""
    if type(value) is int and abs(value) > 2**53:
        return "long int" if -(2**63) <= value < 2**63 else "huge int"
    return type(value).__name__


def _as_text(record: Record, schema: pa.Schema) -> Record:
    """A record with text wherever the schema says text."""
    import pyarrow as pa

    return {
        field.name: _text(value) if pa.types.is_string(field.type) else value
        for field in schema
        for value in (record.get(field.name),)
    }


def _text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, default=str)
