"""Documents in, predictions out: CSV, TSV, JSON, JSONL, Excel, Parquet and text files, in batches.

One module per format; `ulr.tables.formats` lists them.
"""

from ulr.tables.batch import Added, Batch
from ulr.tables.formats import (
    FORMAT_NAMES,
    TEXT_FORMATS,
    Source,
    TableFormat,
    format_of_name,
    unknown_ending,
)
from ulr.tables.table import Table, batch_texts, find_files, open_source, open_table, source_batches
from ulr.tables.writing import write_table

__all__ = [
    "FORMAT_NAMES",
    "TEXT_FORMATS",
    "Added",
    "Batch",
    "Source",
    "Table",
    "TableFormat",
    "batch_texts",
    "find_files",
    "format_of_name",
    "open_source",
    "open_table",
    "source_batches",
    "unknown_ending",
    "write_table",
]
