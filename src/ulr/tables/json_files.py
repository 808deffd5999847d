"""JSON lines, and JSON files that hold one array of objects."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import IO, Any

from ulr.errors import TableError
from ulr.tables.batch import Added, Batch, Record
from ulr.tables.formats import Source
from ulr.tables.text_io import open_text

_BATCH_ROWS = 2048


def parse_json_object(line: str) -> Record:
    """The JSON object on a line.

    Raises
    ------
    ValueError
        When there is none. The message continues a sentence that begins with the line's number.
    """
    try:
        record = json.loads(line)
        if "\\u" in line:  # half of a surrogate pair can be escaped, but is no text
            json.dumps(record, ensure_ascii=False).encode()
    except UnicodeError as error:
        raise ValueError(f"is not JSON: {error}") from None
    except (ValueError, RecursionError) as error:
        reason = error.msg if isinstance(error, json.JSONDecodeError) else str(error)
        raise ValueError(f"is not JSON: {reason}") from None
    if not isinstance(record, dict):
        raise ValueError(f"must be a JSON object; got {line.strip()[:40]}")
    return record


def _records(source: Source) -> Iterator[tuple[Record, str | None]]:
    """Objects, each with the line it was read from; None in an array."""
    if source.format == "json":
        yield from ((record, None) for record in _array(source))
        return
    with open_text(source.path, source.encoding) as lines:
        for number, line in enumerate(lines, 1):
            text = line.strip()
            if not text:
                continue
            try:
                yield parse_json_object(text), text
            except ValueError as error:
                raise TableError(f"{source.name} line {number} {error}.") from None


def _array(source: Source) -> list[Record]:
    with open_text(source.path, source.encoding) as file:
        try:
            text = file.read()
            values = json.loads(text)
            if "\\u" in text:
                json.dumps(values, ensure_ascii=False).encode()
        except (UnicodeEncodeError, RecursionError) as error:
            raise TableError(f"{source.name} is not JSON: {error}.") from None
        except json.JSONDecodeError as error:
            raise TableError(
                f"{source.name} line {error.lineno} is not JSON: {error.msg}."
            ) from None
        except UnicodeError:
            raise
        except ValueError as error:
            raise TableError(f"{source.name} is not JSON: {error}.") from None
    if not isinstance(values, list):
        raise TableError(
            f"{source.name} must hold an array of objects; it holds one {type(values).__name__}. "
            "One object per line needs the ending .jsonl."
        )
    for number, value in enumerate(values, 1):
        if not isinstance(value, dict):
            raise TableError(
                f"{source.name}: item {number} must be an object; got {json.dumps(value)[:40]}."
            )
    return values


def columns(source: Source) -> list[str]:
    """Keys of all records, in order of their first appearance."""
    return list(dict.fromkeys(key for record, _ in _records(source) for key in record))


def batches(source: Source) -> Iterator[Batch]:
    """The records in batches, with the text of each line."""
    start, records, raws = 0, list[Record](), list[str]()
    for record, raw in _records(source):
        records.append(record)
        if raw is not None:
            raws.append(raw)
        if len(records) == _BATCH_ROWS:
            yield Batch(start, source.columns, records=records, raw=raws or None)
            start, records, raws = start + len(records), [], []
    if records:
        yield Batch(start, source.columns, records=records, raw=raws or None)


def write(
    file: IO[bytes],
    sources: Sequence[Source],
    rows: Iterable[tuple[Batch, Added]],
    added: dict[str, type],
    array: bool = False,
) -> None:
    """Write JSON lines, or one array; see `FormatReader.write`. Lines are copied as they are."""
    first = True
    if array:
        file.write(b"[")
    for batch, values in rows:
        more = [dict(zip(values, each, strict=True)) for each in zip(*values.values(), strict=True)]
        for line in _lines(batch, more):
            if array:
                file.write(b"\n" if first else b",\n")
            file.write(line.encode() if array else f"{line}\n".encode())
            first = False
    if array:
        file.write(b"\n]\n")


def _lines(batch: Batch, added: list[Record]) -> Iterator[str]:
    if batch.raw is not None and batch.records is not None:
        for raw, record, more in zip(batch.raw, batch.records, added, strict=True):
            tail = json.dumps(more, ensure_ascii=False)[1:]
            yield f"{raw[:-1].rstrip()}{', ' if record else ''}{tail}"
    else:
        for record, more in zip(batch.as_records(), added, strict=True):
            yield _as_json(record | more)


def _as_json(record: Record) -> str:
    """A record as JSON, which has neither NaN nor infinity; other values are written as text."""
    try:
        return json.dumps(record, ensure_ascii=False, default=str, allow_nan=False)
    except ValueError:
        return json.dumps(_without_nan(record), ensure_ascii=False, default=str)


def _without_nan(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_nan(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_without_nan(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
