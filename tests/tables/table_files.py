"""Files for the tests of tables, and ways to read and copy them."""

import json

from ulr.tables import TableFormat, open_table, write_table

ENDINGS = ["csv", "tsv", "tab", "jsonl", "ndjson", "json", "xlsx", "parquet", "pq"]
ENDINGS += ["csv.gz", "tsv.gz", "jsonl.gz", "json.gz"]
ADDED = {"label": str, "confidence": float}


def written(path, content):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def jsonl(path, records):
    return written(path, "".join(json.dumps(record) + "\n" for record in records))


def read(*names, **how):
    """The rows of some files as records."""
    with open_table([str(name) for name in names], TableFormat(**how)) as table:
        return [record for batch in table.batches() for record in batch.records()]


def columns_of(path, **how):
    with open_table(str(path), TableFormat(**how)) as table:
        return list(table.all_columns())


def convert(sources, target, **how):
    """Write the rows of one file or of several with two more columns."""
    names = [str(name) for name in (sources if isinstance(sources, list) else [sources])]
    with open_table(names, TableFormat(**how)) as table:
        rows = (
            (batch, {"label": ["a; b"] * len(batch), "confidence": [0.25] * len(batch)})
            for batch in table.batches()
        )
        write_table(str(target), table, rows, ADDED)
    return target
