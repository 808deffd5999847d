"""Documents in, predictions out: CSV, TSV, JSONL and Parquet, in batches."""

from ulr.tables.reading import (
    FORMATS,
    Batch,
    Table,
    TableFormat,
    format_of_name,
    open_table,
    unknown_ending,
)
from ulr.tables.writing import write_table

__all__ = [
    "FORMATS",
    "Batch",
    "Table",
    "TableFormat",
    "format_of_name",
    "open_table",
    "unknown_ending",
    "write_table",
]
