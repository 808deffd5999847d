"""Documents in, predictions out: CSV, TSV, JSON, JSONL, Excel, Parquet and text files, in batches.

One module per format; `ulr.tables.formats` lists them.
"""

from ulr.tables.batch import MOST_LETTERS, Added, Batch
from ulr.tables.formats import (
    FORMAT_NAMES,
    TEXT_FORMATS,
    TableFormat,
    check_output_name,
    format_of_name,
)
from ulr.tables.json_files import parse_json_object
from ulr.tables.source import Source, check_same_columns, open_source
from ulr.tables.table import Table, find_files, open_table, write_table

__all__ = [
    "FORMAT_NAMES",
    "MOST_LETTERS",
    "TEXT_FORMATS",
    "Added",
    "Batch",
    "Source",
    "Table",
    "TableFormat",
    "check_output_name",
    "check_same_columns",
    "find_files",
    "format_of_name",
    "open_source",
    "open_table",
    "parse_json_object",
    "write_table",
]
