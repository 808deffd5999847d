"""JSON lines, and JSON files that hold one array of objects."""

from __future__ import annotations

import contextlib
import json
import math
import re
from collections.abc import Iterator
from functools import cache, partial
from itertools import chain
from typing import IO, Any

from ulr.errors import TableError
from ulr.tables.batch import Batch, Record, Rows, in_batches
from ulr.tables.source import Source, lines_of, open_text
from ulr.tables.table import Table

_MOST_ARRAY = 1 << 30  # letters; an array is read as a whole, and a small archive can expand to it
_DECODER = json.JSONDecoder()
_scan = _DECODER.scan_once  # type: ignore[attr-defined]
# Half of a surrogate pair can be escaped, but is no text.
_may_have_surrogate = re.compile(r"\\u[dD][89a-fA-F]").search


def parse_json_object(line: str) -> Record:
    """The JSON object on a line.

    Raises
    ------
    ValueError
        When there is none. The message continues a sentence that begins with the line's number.
    """
    try:
        record = _decode(line)
    except json.JSONDecodeError as error:
        raise ValueError(f"is not JSON: {error.msg}") from None
    if type(record) is not dict:
        raise ValueError(f"must be a JSON object; got {line.strip()[:40]}")
    return record


def _decode(text: str) -> Any:
    """The value of JSON text; all that can be wrong with it is a JSONDecodeError."""
    start = len(text) - len(text.lstrip())
    try:
        value, end = _DECODER.raw_decode(text, start)
        if _may_have_surrogate(text):
            json.dumps(value, ensure_ascii=False).encode()
    except json.JSONDecodeError:
        raise
    except UnicodeEncodeError:
        raise json.JSONDecodeError("Half of a surrogate pair", text, start) from None
    except (ValueError, RecursionError) as error:
        reason = str(error).partition(";")[0]
        raise json.JSONDecodeError(reason, text, start) from None
    if text[end:].strip():
        raise json.JSONDecodeError("Extra data", text, end)
    return value


def _records(source: Source) -> Iterator[tuple[Record, str]]:
    """Objects, each with the line it was read from; empty in an array."""
    with open_text(source) as file:
        if source.format == "json":
            text = file.read(_MOST_ARRAY)
            if len(text) == _MOST_ARRAY:
                raise TableError(
                    f"{source.name} is too large for one JSON array; write one object per line "
                    "(.jsonl)."
                )
            yield from ((record, "") for record in _array(source.name, text))
            return
        for number, line in enumerate(lines_of(source, file), 1):
            text = line.strip()
            if not text:
                continue
            try:
                record, end = _scan(text, 0)  # this alone is enough for most lines
                is_whole = end == len(text) and type(record) is dict
                is_checked = is_whole and not ("\\u" in text and _may_have_surrogate(text))
            except (ValueError, RecursionError, StopIteration):
                is_checked = False
            if not is_checked:
                try:
                    record = parse_json_object(text)
                except ValueError as error:
                    raise TableError(f"{source.name} line {number} {error}.") from None
            yield record, text


def _array(name: str, text: str) -> list[Record]:
    """The objects of a JSON array."""
    try:
        values = _decode(text)
    except json.JSONDecodeError as error:
        raise TableError(f"{name} line {error.lineno} is not JSON: {error.msg}.") from None
    if not isinstance(values, list):
        raise TableError(
            f"{name} must hold an array of objects; it holds one {type(values).__name__}. One object "
            "per line needs the ending .jsonl."
        )
    for number, value in enumerate(values, 1):
        if not isinstance(value, dict):
            raise TableError(
                f"{name}: item {number} must be an object; got {json.dumps(value)[:40]}."
            )
    return values


def columns(source: Source) -> list[str]:
    """Keys of all records, in order of their first appearance."""
    return list(dict.fromkeys(chain.from_iterable(record for record, _ in _records(source))))


def first_columns(source: Source, head: bytes) -> list[str]:
    """Keys of the records on the complete lines of the beginning of a JSONL file."""
    lines = head.decode(source.encoding, "replace").splitlines()[:-1]
    with contextlib.suppress(ValueError):  # it is reported when the file is read
        records = [parse_json_object(line) for line in lines if line.strip()]
        return list(dict.fromkeys(chain.from_iterable(records)))
    return []


def batches(source: Source) -> Iterator[Batch]:
    """The records in batches, with the text of each line."""
    start = 0
    for records, lines in in_batches(_records(source)):
        yield Batch(source.name, start, records, lines if source.format == "jsonl" else None)
        start += len(records)


def write(file: IO[bytes], table: Table, rows: Rows, added: dict[str, type], format_: str) -> None:
    """Write JSON lines, or one array; lines that were read from JSON lines are copied as they are."""
    before, after, between = ("[\n", "\n]\n", ",\n") if format_ == "json" else ("", "\n", "\n")
    members = {name: cache(partial(_member, name)) for name in added}  # few values are distinct
    is_empty = True
    for batch, values in rows:
        if isinstance(batch.data, list) and batch.raw is not None:
            parts = [map(members[name], each) for name, each in values.items()]
            tails = map(", ".join, zip(*parts, strict=True))
            lines = [
                f"{raw[:-1].rstrip()}{', ' if record else ''}{tail}}}"
                for raw, record, tail in zip(batch.raw, batch.data, tails, strict=True)
            ]
        else:
            further = zip(*values.values(), strict=True)
            lines = [
                _as_json(record | dict(zip(values, row, strict=True)))
                for record, row in zip(batch.records(), further, strict=True)
            ]
        if lines:
            file.write((before if is_empty else between).encode())
            file.write(between.join(lines).encode())
            is_empty = False
    if format_ == "json" or not is_empty:
        file.write(("[\n]\n" if is_empty else after).encode())


def _member(name: str, value: Any) -> str:
    return json.dumps({name: value}, ensure_ascii=False)[1:-1]


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
