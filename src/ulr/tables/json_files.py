"""JSON lines, and JSON files that hold one array of objects."""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import IO, Any

from ulr.errors import TableError
from ulr.tables.batch import BATCH_ROWS, Added, Batch, Record
from ulr.tables.formats import Source
from ulr.tables.text_io import open_text

_BATCH_CHARACTERS = 1 << 24
_scan = json.JSONDecoder().scan_once  # type: ignore[attr-defined]


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
                yield _parse(text), text
            except ValueError as error:
                raise TableError(f"{source.name} line {number} {error}.") from None


def _parse(line: str) -> Record:
    """As `parse_json_object`, for a line without blanks around it; regular lines take less time."""
    try:
        record, end = _scan(line, 0)
    except (ValueError, RecursionError, StopIteration):
        return parse_json_object(line)
    if end < len(line) or type(record) is not dict or "\\u" in line:
        return parse_json_object(line)
    return record


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
    return keys_of(record for record, _ in _records(source))


def first_columns(source: Source, head: bytes) -> list[str]:
    """Keys of the records on the complete lines of the beginning of a JSONL file."""
    lines = head.decode(source.encoding, "replace").splitlines()[:-1]
    records = []
    with contextlib.suppress(ValueError):  # it is reported when the file is read
        records = [_parse(line.strip()) for line in lines if line.strip()]
    return keys_of(records)


def keys_of(records: Iterable[Record]) -> list[str]:
    """Keys of records, in order of their first appearance."""
    return list(dict.fromkeys(chain.from_iterable(records)))


def batches(source: Source) -> Iterator[Batch]:
    """The records in batches, with the text of each line."""
    start, records, raws, n_characters = 0, list[Record](), list[str](), 0
    for record, raw in _records(source):
        records.append(record)
        if raw is not None:
            raws.append(raw)
            n_characters += len(raw)
        if len(records) == BATCH_ROWS or n_characters > _BATCH_CHARACTERS:
            yield Batch(start, source.columns, records=records, raw=raws or None)
            start, records, raws, n_characters = start + len(records), [], [], 0
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
    first, members = True, {name: _Members(name) for name in added}
    if array:
        file.write(b"[")
    for batch, values in rows:
        copied = batch.raw is not None and batch.records is not None
        lines = _copied(batch, values, members) if copied else _written(batch, values)
        if array:
            text = "".join(f",\n{line}" for line in lines)
            file.write(text.removeprefix("," if first else "").encode())
            first = False
        else:
            file.write("".join([f"{line}\n" for line in lines]).encode())
    if array:
        file.write(b"\n]\n")


class _Members(dict[Any, str]):
    """Values of an added column as members of JSON objects; few of them are distinct."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __missing__(self, value: Any) -> str:
        self[value] = json.dumps({self._name: value}, ensure_ascii=False)[1:-1]
        return self[value]


def _copied(batch: Batch, added: Added, members: dict[str, _Members]) -> Iterator[str]:
    """Lines as they were read, with further values at their end."""
    parts = (map(members[name].__getitem__, values) for name, values in added.items())
    tails = map(", ".join, zip(*parts, strict=True))
    for raw, record, tail in zip(batch.raw or (), batch.records or (), tails, strict=True):
        yield f"{raw[:-1].rstrip()}{', ' if record else ''}{tail}}}"


def _written(batch: Batch, added: Added) -> Iterator[str]:
    for record, values in zip(batch.as_records(), zip(*added.values(), strict=True), strict=True):
        yield _as_json(record | dict(zip(added, values, strict=True)))


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
